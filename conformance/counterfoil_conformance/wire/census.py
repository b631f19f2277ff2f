"""A census: ask after every job we know of, so that the judge has something to judge.

Retention shows only to those who ask. A census after an admitted submit asks after all jobs that
were not yet seen gone (those that must be, R3 R4; those that may not be, R1 R9), and after a few
that were (they must stay so, R7).
"""

import asyncio
from typing import Final

from counterfoil_conformance.wire.registry import Context
from counterfoil_conformance.wire.session import Job

__all__ = ["census"]

_AT_ONCE: Final = 6


async def census(ctx: Context, extra: int = 40, gone: int = 4) -> None:
    """Read the status of the jobs that may be retained, and of a few that are gone."""
    kept = ctx.target.limits.max_completed
    most = (60 if kept is None else max(kept, 0)) + extra
    jobs = list(ctx.session.jobs.values())
    present = [job for job in jobs if job.gone_us is None][-most:]
    absent = [job for job in jobs if job.gone_us is not None]
    some = ctx.session.rng.sample(absent, min(gone, len(absent)))
    await _read(ctx, [*present, *some])
    for job in some[:2]:
        await ctx.session.result(job)


async def _read(ctx: Context, jobs: list[Job]) -> None:
    for start in range(0, len(jobs), _AT_ONCE):
        await asyncio.gather(*(ctx.session.status(job) for job in jobs[start : start + _AT_ONCE]))
