"""`python -m benchmarks [--quick]`: measure, print, and write docs/performance.md."""

import argparse
import asyncio
import os
import platform
from pathlib import Path

from benchmarks.arena import CHANNELS, IMAGES, SIDE, Footprint, footprints
from benchmarks.ledger_cost import Cost, cost
from benchmarks.requests_per_second import Rate, compare
from benchmarks.waiters import Crowd, Wakes, wake_all, wakes

PAGE = Path(__file__).parent.parent / "docs" / "performance.md"

INTRODUCTION = """# Performance

Written by `make bench`; every bar is compared with a limit that was measured in the same run.
Rates depend on the machine, ratios much less.

"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="short rounds; nothing is written")
    quick = parser.parse_args().quick
    load = os.getloadavg()[0]
    parts = [
        rates_table(compare(3 if quick else 9, 1.0 if quick else 4.0)),
        ledger_table(cost((100, 100_000), 50 if quick else 300)),
        waiters_table(
            asyncio.run(wake_all(1_000 if quick else 10_000)),
            asyncio.run(wakes(1_000 if quick else 10_000, 100 if quick else 1_000)),
        ),
        arena_table(footprints()),
    ]
    page = INTRODUCTION + machine(load) + "\n".join(parts)
    print(page)
    if not quick:
        PAGE.write_text(page, encoding="utf-8")


def machine(load: float) -> str:
    """What it ran on, and whether it was alone."""
    return (
        f"Python {platform.python_version()}, {platform.system()} {platform.machine()}, "
        f"{os.cpu_count()} cores; load average at the start: {load:.1f}.\n\n"
    )


def rates_table(rates: dict[str, Rate]) -> str:
    """The 202 path against the echo of the same process."""
    names = {
        "echo": "bare Sanic JSON echo, same process, same body",
        "jobs": "`POST /jobs`, 202 (token, validation, ledger, metrics)",
        "jobs, run as well": "the same, while two workers run the jobs (probe model)",
        "peer": "FastAPI + uvicorn with a dict and no ledger, `POST /jobs`",
    }
    lines = [
        "## Submits\n",
        "| what | requests/s | server CPU per request | p50 | p99 |",
        "|---|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {text} | {rates[name].per_second:.0f} | {rates[name].cpu_us:.0f} µs "
        f"| {rates[name].p50_ms:.1f} ms | {rates[name].p99_ms:.1f} ms |"
        for name, text in names.items()
    ]
    echo, jobs = rates["echo"], rates["jobs"]
    by_rate, by_cpu = jobs.per_second / echo.per_second, echo.cpu_us / jobs.cpu_us
    lines.append(
        f"\n202 path : echo = **{by_rate:.2f}** by requests/s, **{by_cpu:.2f}** by CPU time; "
        f"bar 0.80 by requests/s: {met(by_rate >= 0.8)}.\n"
    )
    return "\n".join(lines)


def ledger_table(costs: list[Cost]) -> str:
    """R8, measured."""
    lines = [
        "## The ledger alone\n",
        "| jobs retained | submit + start + finish, best | median |",
        "|---:|---:|---:|",
    ]
    lines += [
        f"| {one.retained} | {one.best_us:.2f} µs | {one.median_us:.2f} µs |" for one in costs
    ]
    ratio = costs[-1].best_us / costs[0].best_us
    lines.append(f"\nMany : few = **{ratio:.2f}**; bar 1.30: {met(ratio <= 1.3)}.\n")
    return "\n".join(lines)


def waiters_table(crowd: Crowd, one_by_one: Wakes) -> str:
    """Memory, and wake latency."""
    trip = (one_by_one.round_trip_p50_ms, one_by_one.round_trip_p99_ms)
    wake = (one_by_one.wake_p50_ms, one_by_one.wake_p99_ms)
    above = wake[1] - trip[1]
    return "\n".join(
        [
            "## Waiters\n",
            f"{crowd.waiters} waiters on one job: {crowd.kib_each:.1f} KiB each, with connection;",
            f"bar 15 KiB: {met(crowd.kib_each <= 15)}. Woken: {crowd.woken}, the last after",
            f"{crowd.seconds_to_wake_all:.2f} s; all: {met(crowd.woken == crowd.waiters)}.\n",
            f"One waiter at a time, among {one_by_one.among} others:\n",
            "| what | p50 | p99 |",
            "|---|---:|---:|",
            f"| a bare round trip | {trip[0]:.2f} ms | {trip[1]:.2f} ms |",
            f"| from the job's last word to the answer | {wake[0]:.2f} ms | {wake[1]:.2f} ms |",
            f"\np99 above a round trip: **{above:.2f} ms**; bar 5 ms: {met(above <= 5)}.\n",
        ]
    )


def arena_table(weighed: dict[str, Footprint]) -> str:
    """What the arena's shrink option gives back."""
    names = {"shrink": "as served: the arena shrinks after each run", "keep": "without the option"}
    lines = [
        "## Memory of a model\n",
        f"{IMAGES} photographs in one job, through a network with {SIDE} x {SIDE} x {CHANNELS}",
        "pictures between its layers; MiB of resident memory of the process:\n",
        "| | model loaded | peak of the job | after it | the job took |",
        "|---|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {text} | {weighed[name].loaded:.0f} | {weighed[name].peak:.0f} "
        f"| {weighed[name].after:.0f} | {weighed[name].run_s:.1f} s |"
        for name, text in names.items()
    ]
    return "\n".join([*lines, ""])


def met(reached: bool) -> str:
    """In a word."""
    return "reached" if reached else "missed"


if __name__ == "__main__":
    main()
