"""Requests per second: the 202 path, the bare echo of the same process, and the peer.

All are measured in turns, so that what else the machine does falls on all. Besides the rate, the
server's own CPU time per request is taken: it is what a busy machine disturbs least, and the ratio
of the two says the same as the ratio of the rates.
"""

import base64
import json
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import psutil

__all__ = ["Rate", "compare"]

BODY = json.dumps({"images": [base64.b64encode(bytes(300)).decode()], "req_id": "bench-1"})
CONNECTIONS = 32


class Rate(NamedTuple):
    """What one route of one server does; medians over the rounds."""

    per_second: float
    cpu_us: float
    p50_ms: float
    p99_ms: float


@contextmanager
def process(module: str, *words: str) -> Iterator[tuple[psutil.Process, int]]:
    """A server in a process of its own, and its port."""
    child = subprocess.Popen(
        [sys.executable, "-m", module, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    try:
        yield psutil.Process(child.pid), int(child.stdout.readline().rsplit(":", 1)[-1])
    finally:
        child.kill()
        child.communicate()


def compare(rounds: int, seconds: float) -> dict[str, Rate]:
    """The echo, the 202 path, the 202 path while jobs run, and the peer, in turns."""
    names = ("echo", "jobs", "jobs, run as well", "peer")
    taken: dict[str, list[Rate]] = {name: [] for name in names}
    for _ in range(rounds):
        with process("benchmarks.server", "external") as (server, port):
            taken["echo"].append(flood(server, port, "/echo", 200, seconds))
            taken["jobs"].append(flood(server, port, "/jobs", 202, seconds))
        with process("benchmarks.server", "internal") as (server, port):
            taken["jobs, run as well"].append(flood(server, port, "/jobs", 202, seconds))
        with process("benchmarks.peer") as (server, port):
            taken["peer"].append(flood(server, port, "/jobs", 202, seconds))
    return {name: median(rates) for name, rates in taken.items()}


def flood(server: psutil.Process, port: int, path: str, status: int, seconds: float) -> Rate:
    """One round of load from another process."""
    order: dict[str, Any] = {
        "port": port,
        "method": "POST",
        "path": path,
        "body": BODY,
        "token": "bench",
        "status": status,
        "connections": CONNECTIONS,
        "seconds": seconds,
    }
    before = sum(server.cpu_times()[:2])
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.generator"],
        input=json.dumps(order),
        capture_output=True,
        text=True,
        check=True,
    )
    spent = sum(server.cpu_times()[:2]) - before
    answer = json.loads(done.stdout)
    if answer["others"]:
        raise SystemExit(f"{path}: {answer['others']} answers were not {status}")
    cpu_us = spent / answer["requests"] * 1e6
    return Rate(answer["per_second"], cpu_us, answer["p50_ms"], answer["p99_ms"])


def median(rates: list[Rate]) -> Rate:
    """Field by field."""
    return Rate(*(statistics.median(values) for values in zip(*rates, strict=True)))
