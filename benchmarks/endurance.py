"""`python -m benchmarks.endurance [--requests N]`: hostility, a plateau of memory, hanging models.

Three promises that take minutes to check, each against the shipped command in a process of its own:
hostile requests give no 5xx and no stack trace, and the memory comes back; memory does not grow
with the number of jobs that were ever run; with a model that hangs on every worker the server still
submits, polls and refuses quickly. Exit code 1 if one of them is broken.
"""

import argparse
import asyncio
import base64
import gc
import json
import random
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

import psutil

__all__ = ["hanging", "hostile", "plateau"]

CLIENTS = 16
HOSTILE_CLIENTS = 128


class Server:
    """The shipped command, its memory and its log."""

    def __init__(self, child: subprocess.Popen[str], port: int) -> None:
        self.process = psutil.Process(child.pid)
        self.port = port

    def mib(self) -> float:
        """What the process holds for itself alone."""
        return float(self.process.memory_full_info().uss) / 2**20

    async def exchange(self, data: bytes) -> bytes:
        """Send bytes on a connection of their own, and read until it is closed, or for 3 s."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        received = b""
        try:
            writer.write(data)
            if random.random() < 0.2:
                writer.write_eof()
            async with asyncio.timeout(3):
                while part := await reader.read(65536):
                    received += part
        except (OSError, TimeoutError):
            pass
        finally:
            writer.close()
        return received


@asynccontextmanager
async def served(*words: str) -> AsyncIterator[Server]:
    """The probe model with small limits."""
    usual = ["--model", "probe", "--port", "0", "--async-enabled", "--log-level", "error"]
    command = [sys.executable, "-m", "counterfoil_conformance", "serve", *usual, *words]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: ASYNC220
    assert child.stdout is not None
    try:
        yield Server(child, int(child.stdout.readline().rsplit(":", 1)[1]))
    finally:
        child.kill()
        child.communicate()


def request(method: str, path: str, body: bytes = b"", *lines: str) -> bytes:
    """A whole request that asks for the connection to be closed."""
    head = [f"{method} {path} HTTP/1.1", "host: x", "connection: close", *lines]
    return "\r\n".join([*head, f"content-length: {len(body)}", "", ""]).encode() + body


def told(*commands: str) -> bytes:
    """A body whose only image is a command of the probe model."""
    image = base64.b64encode(";".join(commands).encode()).decode()
    return json.dumps({"images": [image]}).encode()


def hostility(seed: random.Random) -> bytes:
    """One hostile request: bad JSON, bad ids, cut bodies, pipelining, huge heads, noise."""
    good = request("POST", "/jobs", told("x"))
    noise = seed.randbytes(seed.randrange(1, 400))
    kinds: list[Callable[[], bytes]] = [
        lambda: request("POST", "/jobs", noise),
        lambda: request("POST", "/jobs", b'{"images":["\\ud800"]}'),
        lambda: request("POST", "/jobs", b"[" * seed.randrange(1, 5000)),
        lambda: request("POST", "/infer", b'{"images":[' + noise.hex().encode() + b"]}"),
        lambda: request("GET", f"/jobs/%{seed.randrange(256):02x}..%2f{noise[:20].hex()}"),
        lambda: request("GET", "/jobs/" + "x" * seed.randrange(1, 9000) + "/result"),
        lambda: request("GET", f"/jobs/none/wait?timeout={noise.hex()}"),
        lambda: good[: seed.randrange(1, len(good))],
        lambda: good.replace(b"connection: close\r\n", b"") * seed.randrange(2, 9) + good,
        lambda: request("GET", "/healthz", b"", "x: " + "y" * seed.randrange(30_000)),
        lambda: request("POST", "/jobs", b"zz\r\n" + noise, "transfer-encoding: chunked"),
        lambda: noise + b"\r\n\r\n",
        lambda: request(seed.choice(["TRACE", "PUT", "BREW", "get", ""]), "/jobs/none"),
        lambda: request("POST", "/jobs", b" " * 200_000),
    ]
    return seed.choice(kinds)()


async def hostile(number: int) -> bool:
    """No 5xx, no stack trace, and the memory within a tenth of what it was after warming up."""
    async with served("--max-body", "100000", "--head-timeout", "1000") as server:
        bad: list[bytes] = []
        await _crowd(server, number // 2, bad)
        before = server.mib()
        await _crowd(server, number, bad)
        await asyncio.sleep(4)
        after = server.mib()
        alive = b" 200 " in await server.exchange(request("GET", "/healthz"))
        for answer in bad[:5]:
            print(f"  {answer[:300]!r}")
        fine = alive and not bad and after <= before * 1.1
        print(
            f"hostile: {number} requests, {len(bad)} answers of 5xx or with a trace; "
            f"{before:.1f} MiB before, {after:.1f} MiB after: {_word(fine)}"
        )
        return fine


async def _crowd(server: Server, number: int, bad: list[bytes]) -> None:
    seeds = iter(range(number))

    async def one() -> None:
        for seed in seeds:
            answer = await server.exchange(hostility(random.Random(seed)))
            if b"HTTP/1.1 5" in answer or b"Traceback" in answer:
                bad.append(answer)

    await asyncio.gather(*(one() for _ in range(HOSTILE_CLIENTS)))


async def plateau(number: int) -> bool:
    """The memory after all jobs is within a tenth of what it was after a tenth of them."""
    async with served("--async-max-completed", "1000", "--async-max-queue", "64") as server:
        await _run_jobs(server, number // 10)
        early = server.mib()
        await _run_jobs(server, number - number // 10)
        late = server.mib()
        fine = late <= early * 1.1
        print(
            f"plateau: {early:.1f} MiB after {number // 10} jobs, {late:.1f} MiB after {number}:"
            f" {_word(fine)}"
        )
        return fine


async def _run_jobs(server: Server, number: int) -> None:
    left = [number]
    body = told("x" * 2000)
    submit = request("POST", "/jobs", body).replace(b"connection: close\r\n", b"")

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        while left[0] > 0:
            left[0] -= 1
            status = b"429"
            while status == b"429":
                writer.write(submit)
                status = await _status(reader)
        writer.close()

    await asyncio.gather(*(client() for _ in range(CLIENTS)))


async def hanging(rounds: int) -> bool:
    """With every worker hanging: p99 of submits and polls, and of refusals, at most 50 ms."""
    words = ("--workers", "4", "--async-max-queue", "8", "--async-timeout", "600000")
    async with served(*words) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)

        async def timed(data: bytes) -> tuple[float, bytes]:
            began = time.perf_counter()
            writer.write(data.replace(b"connection: close\r\n", b""))
            status = await _status(reader)
            return (time.perf_counter() - began) * 1000, status

        submits = [await timed(request("POST", "/jobs", told("hang"))) for _ in range(8)]
        gc.disable()
        polls = [await timed(request("GET", "/jobs/none")) for _ in range(rounds)]
        refusals = [await timed(request("POST", "/jobs", told("x"))) for _ in range(rounds)]
        writer.close()
        right = {status for _, status in submits} == {b"202"}
        right &= {status for _, status in refusals} == {b"429"}
        slowest = [_p99(part) for part in (submits, polls, refusals)]
        fine = right and max(slowest) <= 50
        print(f"hanging: p99 of submits, polls, refusals {slowest} ms: {_word(fine)}")
        return fine


async def _status(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    at = head.index(b"content-length: ") + 16
    await reader.readexactly(int(head[at : head.index(b"\r", at)]))
    return head[9:12]


def _p99(timed: list[tuple[float, bytes]]) -> float:
    values = sorted(ms for ms, _ in timed)
    return round(values[min(len(values) * 99 // 100, len(values) - 1)], 1)


def _word(fine: bool) -> str:
    return "held" if fine else "BROKEN"


async def main(number: int, only: str) -> int:
    """What is asked for; the exit code."""
    promises: dict[str, Callable[[], Coroutine[Any, Any, bool]]] = {
        "hanging": lambda: hanging(max(number // 100, 100)),
        "plateau": lambda: plateau(number),
        "hostile": lambda: hostile(number),
    }
    held = [await check() for name, check in promises.items() if only in ("", name)]
    return int(not all(held))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.endurance", description=__doc__)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--only", default="", choices=["", "hanging", "plateau", "hostile"])
    args = parser.parse_args()
    with suppress(KeyboardInterrupt):
        sys.exit(asyncio.run(main(args.requests, args.only)))
