"""Steps that several checks take: bringing jobs about, and judging what only intervals can judge.

Nothing here waits for luck. "In time" always means: the deadline that the contract sets, plus the
declared tolerance, plus what round trips and our own event loop were measured to take meanwhile.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from counterfoil_conformance.wire.answer import now_us
from counterfoil_conformance.wire.client import Connection
from counterfoil_conformance.wire.reading import Reading
from counterfoil_conformance.wire.registry import Context
from counterfoil_conformance.wire.session import Job, Submitted
from counterfoil_spec.ledger import Outcome

__all__ = [
    "READERS",
    "admit",
    "ended",
    "is_gone",
    "patience_s",
    "polled",
    "shared_slow",
    "sleep_until_us",
    "start_of",
    "submitted",
    "waited",
]

_JUST_ADMITTED_US = 40_000
# The order of the checks that share a slow job: before the others that take places.
READERS: Final = 45


def patience_s(ctx: Context, run_ms: int = 0) -> float:
    """How long a single job of that run time may take on an idle target, with ample room."""
    budget_ms = ctx.target.limits.timeout_ms or 0
    if ctx.session.has_stuck:
        return 1 + max(run_ms, ctx.target.bodies.slow_ms or 0) / 1000
    return 3 + 2 * max(run_ms, ctx.target.bodies.slow_ms or 0) / 1000 + budget_ms / 1000


async def sleep_until_us(at_us: int) -> None:
    """Sleep until that moment of the run's clock."""
    await asyncio.sleep(max(0, at_us - now_us()) / 1e6)


async def admit(
    ctx: Context, kind: str = "quick", *, body: bytes | None = None, tries_s: float = 5.0
) -> Submitted:
    """Submit until there is a place, for `tries_s`: other checks' jobs may still hold them all.

    Every check that shares the queue submits by this, and so gets a 429 only if none came free.
    """
    session = ctx.session
    deadline_us = now_us() + int((0.5 if session.has_stuck or session.clogged else tries_s) * 1e6)
    while True:
        sent = await session.submit(kind, body=body)
        if not sent.refused or session.is_full_of_stuck:
            return sent
        if now_us() > deadline_us:
            await session.note_clogged()
            return sent
        await asyncio.sleep(0.05)


async def submitted(ctx: Context, kind: str) -> Job | None:
    """A job of that kind, admitted as by `admit`; None where that was not to be had."""
    return (await admit(ctx, kind)).job


async def shared_slow(ctx: Context) -> Job | None:
    """A slow job just admitted, for a check that only reads: one serves all that ask at a time.

    None where it was not to be had.
    """
    session = ctx.session
    async with session.sharing:
        job = session.shared
        if job is None or job.terminal or now_us() - job.return_us > _JUST_ADMITTED_US:
            job = session.shared = await submitted(ctx, "slow")
        return job


async def ended(ctx: Context, job: Job, *, run_ms: int = 0, period_s: float = 0.02) -> str:
    """Poll until the job is terminal: its state then, "gone", or "" where that did not come."""
    limit_s = patience_s(ctx, run_ms)
    reading = await ctx.session.until_terminal(job, limit_s, period_s=period_s)
    if reading is None:
        return ""
    return "gone" if job.ended_us is None else job.state


async def start_of(ctx: Context, job: Job, limit_s: float) -> str:
    """Poll until the job has left `pending`: its state then, "" if it did not."""
    deadline_us = now_us() + int(limit_s * 1e6)
    while now_us() < deadline_us:
        await ctx.session.status(job)
        if job.state != "pending" or job.terminal:
            return job.state
        await asyncio.sleep(0.015)
    return ""


@asynccontextmanager
async def polled(ctx: Context, job: Job, period_s: float = 0.01) -> AsyncIterator[None]:
    """Poll the status beside whatever else is done, so that the end of the job is bracketed."""
    conn = await ctx.session.client.connect()

    async def poll() -> None:
        while True:
            usable = isinstance(conn, Connection) and conn.alive
            await ctx.session.status(job, conn=conn if usable else None)  # type: ignore[arg-type]
            # After the end the reads say how prompt the target is while others still wait.
            await asyncio.sleep(max(period_s, 0.03) if job.terminal else period_s)

    task = asyncio.create_task(poll())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        if isinstance(conn, Connection):
            conn.close()


async def waited(ctx: Context, job: Job, timeout: int | str | None) -> Reading:  # noqa: ASYNC109
    """A wait on a connection of its own, so that it is never behind another request."""
    conn = await ctx.session.client.connect()
    if not isinstance(conn, Connection):
        return await ctx.session.wait(job, timeout)
    try:
        return await ctx.session.wait(job, timeout, conn=conn)
    finally:
        conn.close()


def is_gone(reading: Reading) -> bool:
    """Whether a read says that the id is unknown."""
    return reading.outcome is Outcome.NOT_FOUND
