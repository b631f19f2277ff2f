"""`python -m benchmarks.endurance [--requests N]`: hostility, a plateau of memory, hanging models.

Three promises that take minutes to check, each against the shipped command in a process of its own:
hostile requests give no 5xx and no stack trace, and the memory comes back; memory does not grow
with the number of jobs that were ever run; with a model that hangs on every worker the server still
submits, polls and refuses quickly. Exit code 1 if one of them is broken.

Memory is what the process has written and holds (anonymous pages, as Linux counts them); what it
weighs after a tenth of the requests is what it may not outgrow by more than a tenth. A whole run
writes docs/endurance.md.
"""

import argparse
import asyncio
import base64
import gc
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import psutil

__all__ = ["hanging", "hostile", "plateau"]

CLIENTS = 16
HOSTILE_CLIENTS = 128
WHOLE = 100_000
PAGE = Path(__file__).parent.parent / "docs" / "endurance.md"

INTRODUCTION = """# Endurance

Written by `make endurance`, against the shipped command with the probe model; load average at the
start: {load:.1f}. Memory is what the process has written and holds (anonymous pages).

| promise | seen | |
|---|---|---|"""


class Kept(NamedTuple):
    """A promise, what was seen of it, and whether it held."""

    promise: str
    seen: str
    held: bool

    @property
    def word(self) -> str:
        """The verdict."""
        return "held" if self.held else "BROKEN"


class Server:
    """The shipped command, its memory and its log."""

    def __init__(self, child: subprocess.Popen[str], port: int) -> None:
        self.process = psutil.Process(child.pid)
        self.port = port

    def mib(self) -> float:
        """What the process has written and still holds.

        Pages of libraries are left out: whether they count as its own (USS) depends on which other
        processes of the machine happen to have them mapped as well.
        """
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        return int(status.split("RssAnon:")[1].split()[0]) / 1024

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


async def hostile(number: int) -> Kept:
    """No 5xx, no stack trace, and the memory within a tenth of what it was after a tenth."""
    async with served("--max-body", "100000", "--head-timeout", "1000") as server:
        bad: list[bytes] = []
        statuses: Counter[str] = Counter()
        weights = []
        for part in range(10):
            seeds = range(part * number // 10, (part + 1) * number // 10)
            await _crowd(server, iter(seeds), statuses, bad)
            await asyncio.sleep(2)
            weights.append(server.mib())
        alive = b" 200 " in await server.exchange(request("GET", "/healthz"))
        for answer in bad[:5]:
            print(f"  {answer[:300]!r}")
        counted = ", ".join(f"{count} x {status}" for status, count in sorted(statuses.items()))
        return Kept(
            f"{number} hostile requests: no 5xx, no stack trace, memory within 10 %",
            f"{len(bad)} answers of 5xx or with a trace; {_mibs(weights)}. Answers: {counted}",
            alive and not bad and max(weights) <= weights[0] * 1.1,
        )


async def _crowd(
    server: Server, seeds: Iterator[int], statuses: Counter[str], bad: list[bytes]
) -> None:
    async def one() -> None:
        for seed in seeds:
            answer = await server.exchange(hostility(random.Random(seed)))
            statuses[answer[9:12].decode("ascii", "replace") or "none (cut)"] += 1
            if b"HTTP/1.1 5" in answer or b"Traceback" in answer:
                bad.append(answer)

    await asyncio.gather(*(one() for _ in range(HOSTILE_CLIENTS)))


async def plateau(number: int) -> Kept:
    """The memory never a tenth above what it was after a tenth of the jobs."""
    async with served("--async-max-completed", "1000", "--async-max-queue", "64") as server:
        weights = []
        for _ in range(10):
            await _run_jobs(server, number // 10)
            weights.append(server.mib())
        return Kept(
            f"{number} jobs, 1000 of them retained: memory within 10 %",
            _mibs(weights),
            max(weights) <= weights[0] * 1.1,
        )


def _mibs(weights: list[float]) -> str:
    return f"MiB after each tenth: {', '.join(f'{weight:.1f}' for weight in weights)}"


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


async def hanging(rounds: int) -> Kept:
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
        return Kept(
            "a model that hangs on every worker: p99 of submits, polls and 429s at most 50 ms",
            f"{', '.join(f'{ms} ms' for ms in slowest)}; {rounds} of each but the submits",
            right and max(slowest) <= 50,
        )


async def _status(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    at = head.index(b"content-length: ") + 16
    await reader.readexactly(int(head[at : head.index(b"\r", at)]))
    return head[9:12]


def _p99(timed: list[tuple[float, bytes]]) -> float:
    values = sorted(ms for ms, _ in timed)
    return round(values[min(len(values) * 99 // 100, len(values) - 1)], 1)


def _page(kept: list[Kept], load: float) -> str:
    rows = [f"| {one.promise} | {one.seen} | {one.word} |" for one in kept]
    return "\n".join([INTRODUCTION.format(load=load), *rows, ""])


async def main(number: int, only: str) -> int:
    """What is asked for; the exit code."""
    load = os.getloadavg()[0]
    promises: dict[str, Callable[[], Coroutine[Any, Any, Kept]]] = {
        "hanging": lambda: hanging(max(number // 100, 100)),
        "plateau": lambda: plateau(number),
        "hostile": lambda: hostile(number),
    }
    kept = []
    for name, check in promises.items():
        if only in ("", name):
            kept.append(await check())
            print(f"{name}: {kept[-1].word}: {kept[-1].promise}: {kept[-1].seen}", flush=True)
    if not only and number >= WHOLE:
        PAGE.write_text(_page(kept, load), encoding="utf-8")
    return int(not all(one.held for one in kept))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.endurance", description=__doc__)
    parser.add_argument("--requests", type=int, default=WHOLE)
    parser.add_argument("--only", default="", choices=["", "hanging", "plateau", "hostile"])
    args = parser.parse_args()
    with suppress(KeyboardInterrupt):
        sys.exit(asyncio.run(main(args.requests, args.only)))
