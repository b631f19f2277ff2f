"""Waiters: what one costs in memory, how late one is woken among many, and whether all are.

The server is the shipped command in a process of its own; this process holds the other ends.
"""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import psutil

from counterfoil_server.open_files import room_for

__all__ = ["Crowd", "Wakes", "wake_all", "wakes"]


class Crowd(NamedTuple):
    """Many waiters on one job."""

    waiters: int
    woken: int
    kib_each: float
    seconds_to_wake_all: float


class Wakes(NamedTuple):
    """One waiter after another, among many that wait for something else."""

    among: int
    round_trip_p50_ms: float
    round_trip_p99_ms: float
    wake_p50_ms: float
    wake_p99_ms: float


class Server:
    """The shipped server with external runners, and plain requests to it."""

    def __init__(self, pid: int, port: int) -> None:
        self.process = psutil.Process(pid)
        self.port = port

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        """A request on a connection of its own; the parsed answer."""
        reader, writer = await self.send(method, path, body, close=True)
        content = (await reader.read()).partition(b"\r\n\r\n")[2]
        writer.close()
        return json.loads(content) if content[:1] in (b"{", b"[") else content

    async def send(
        self, method: str, path: str, body: Any = None, *, close: bool = False
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Send a request and leave the answer to the caller."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=2**16)
        writer.write(self.head(method, path, body, close=close))
        return reader, writer

    def head(self, method: str, path: str, body: Any = None, *, close: bool = False) -> bytes:
        """The bytes of a request."""
        content = b"" if body is None else json.dumps(body).encode()
        lines = [
            f"{method} {path} HTTP/1.1",
            "host: bench",
            "authorization: Bearer runner" if path.startswith("/runner") else "x: y",
            f"content-length: {len(content)}",
            f"connection: {'close' if close else 'keep-alive'}",
        ]
        return "\r\n".join([*lines, "", ""]).encode() + content

    async def submit(self) -> str:
        """A job that nobody runs until `end`."""
        return str((await self.ask("POST", "/jobs", {"images": ["YQ=="]}))["job_id"])

    async def claim(self) -> tuple[str, int]:
        """The oldest job, and the fence to end it with."""
        claimed = await self.ask("POST", "/runner/claim", {})
        return claimed["job_id"], claimed["fence"]

    async def waiters(self) -> int:
        """How many waits the server says are blocked."""
        text = (await self.ask("GET", "/metrics")).decode()
        line = next(line for line in text.split("\n") if line.startswith("counterfoil_waiters "))
        return int(float(line.split()[1]))

    async def hold(
        self, job_id: str, number: int
    ) -> list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """Block `number` waits on a job, and return once the server has them all."""
        path = f"/jobs/{job_id}/wait?timeout=300000"
        held = [await self.send("GET", path) for _ in range(number)]
        before = time.monotonic()
        while await self.waiters() < number:
            if time.monotonic() - before > 120:
                raise SystemExit("the server does not hold the waiters")
            await asyncio.sleep(0.1)
        return held


@asynccontextmanager
async def served() -> AsyncIterator[Server]:
    """The shipped command."""
    words = "serve --model probe --port 0 --async-enabled --async-timeout 0 --runner external"
    more = "--runner-token runner --async-max-queue 100000 --log-level warning"
    child = subprocess.Popen(  # noqa: ASYNC220 (before anything else runs)
        [sys.executable, "-m", "counterfoil_conformance", *words.split(), *more.split()],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    try:
        yield Server(child.pid, int(child.stdout.readline().rsplit(":", 1)[1]))
    finally:
        child.kill()
        child.communicate()


async def wake_all(number: int) -> Crowd:
    """Hold `number` waiters, weigh them, end the job, and count who hears of it."""
    room_for(number)
    async with served() as server:
        job_id = await server.submit()
        for _ in range(50):
            await server.ask("GET", "/healthz")
        before = server.process.memory_full_info().uss
        held = await server.hold(job_id, number)
        grown = server.process.memory_full_info().uss - before
        _, fence = await server.claim()
        began = time.perf_counter()
        await server.ask("POST", f"/runner/jobs/{job_id}/fail", {"fence": fence, "error": "over"})
        heads = [await reader.readuntil(b"\r\n\r\n") for reader, _ in held]
        spent = time.perf_counter() - began
        for _, writer in held:
            writer.close()
        woken = sum(head.startswith(b"HTTP/1.1 200") for head in heads)
        return Crowd(number, woken, grown / 1024 / number, spent)


async def wakes(among: int, samples: int) -> Wakes:
    """How long after the request that ends a job its only waiter has the answer.

    The bare loop round trip beside it is a `/healthz` on an open connection, under the same crowd.
    """
    room_for(among)
    async with served() as server:
        await server.submit()
        held_id, _ = await server.claim()
        held = await server.hold(held_id, among)
        trips, late = [], []
        reader, writer = await server.send("GET", "/healthz")
        await answer(reader)
        for _ in range(samples):
            began = time.perf_counter()
            writer.write(server.head("GET", "/healthz"))
            await answer(reader)
            trips.append(time.perf_counter() - began)
            late.append(await one_wake(server))
        for _, other in held:
            other.close()
        trips.sort()
        late.sort()
        return Wakes(among, *_two(trips), *_two(late))


async def one_wake(server: Server) -> float:
    """From sending the runner's last word to the waiter's answer: one round trip, and the wake."""
    job_id = await server.submit()
    _, fence = await server.claim()
    reader, writer = await server.send("GET", f"/jobs/{job_id}/wait?timeout=300000")
    runner_reader, runner = await server.send("GET", "/healthz")
    await answer(runner_reader)
    body = {"fence": fence, "error": "over"}
    began = time.perf_counter()
    runner.write(server.head("POST", f"/runner/jobs/{job_id}/fail", body))
    await answer(reader)
    spent = time.perf_counter() - began
    await answer(runner_reader)
    writer.close()
    runner.close()
    return spent


async def answer(reader: asyncio.StreamReader) -> None:
    """Read one answer to its end."""
    head = await reader.readuntil(b"\r\n\r\n")
    at = head.index(b"content-length: ") + 16
    await reader.readexactly(int(head[at : head.index(b"\r", at)]))


def _two(values: list[float]) -> tuple[float, float]:
    return values[len(values) // 2] * 1000, values[len(values) * 99 // 100] * 1000
