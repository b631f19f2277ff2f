"""R3 R9: retention when hardly anything is retained.

On a busy target the bound on the count explains almost every loss, and hides almost every job that
age should have taken. So once, before the busy checks, nothing happens for as long as a job is
retained. What ended before is then of every kind, and hardly more than is retained by count:

- shortly before its time is up a submit takes none of it (R9). The slow jobs among it were then
  submitted longer ago than they are retained: who counts their age from there, or from their start,
  has evicted them;
- the submit that ends the silence takes all that is too old, few as they are (R3);
- then a few jobs end, fewer than are retained, and the next submits take none (R9).
"""

import asyncio

from counterfoil_conformance.wire.answer import now_us
from counterfoil_conformance.wire.census import census
from counterfoil_conformance.wire.registry import ALL, Context, check
from counterfoil_conformance.wire.session import Job
from counterfoil_conformance.wire.steps import ended, is_gone, sleep_until_us

__all__ = ["LONGEST_QUIET_MS"]

LONGEST_QUIET_MS = 2_500
# So many quick jobs may end so that none of before the run can still be retained.
_MOST_FILLED = 24
_MANY_READS, _READS_AT_ONCE = 32, 8


@check(
    "R3 R6 R7 R9",
    needs=("bodies.quick", "limits.job_ttl_ms"),
    places=ALL,
    order=5,
    limit_s=200,
)
async def few_jobs_are_retained_for_their_time_and_no_longer(ctx: Context) -> None:
    """Silence for as long as a job is retained, then a few jobs of every kind of ending."""
    ttl_ms, kept = ctx.target.limits.job_ttl_ms, ctx.target.limits.max_completed
    if ttl_ms is None:
        return
    if ttl_ms > (120_000 if ctx.is_full else LONGEST_QUIET_MS):
        why = f"`limits.job_ttl_ms` = {ttl_ms} is longer than this run waits: a target configured "
        why += f"with at most {LONGEST_QUIET_MS} shows it, or `--profile full` up to 120000"
        for clause in ("R3", "R9"):
            ctx.undecided(clause, why)
        return
    await _some_of_every_kind(ctx, kept)
    last_us = max((job.ended_us or 0 for job in ctx.session.jobs.values()), default=now_us())
    await _nearly_old(ctx, ttl_ms * 1000, last_us)
    # Reads in between do not make anything younger.
    await sleep_until_us(last_us + ttl_ms * 700)
    await census(ctx)
    await sleep_until_us(last_us + ttl_ms * 1000 + 40_000)
    await _end(ctx, "quick")
    await census(ctx)
    kinds = [k for k in ("crashing", "failing", "echo") if ctx.target.has(f"bodies.{k}")]
    # Beside them: the slow one, the quick one of before, and the one of after.
    room = len(kinds) if kept is None else max(0, kept - 3)
    for kind in kinds[:room]:
        await _end(ctx, kind)
    last = await _end(ctx, "quick")
    await census(ctx)
    if last is not None and last.state == "done":
        await _any_number_of_times(ctx, last)


async def _some_of_every_kind(ctx: Context, kept: int | None) -> None:
    """After the slow ones of the preflight: as many as are retained, one more, and two kinds."""
    of_ours = sum(job.ended_us is not None for job in ctx.session.jobs.values())
    if kept is not None and kept <= _MOST_FILLED:
        for _ in range(kept - of_ours - 1):
            await _end(ctx, "quick")
    for kind in ("crashing", "failing"):
        if ctx.target.has(f"bodies.{kind}"):
            await _end(ctx, kind)


async def _nearly_old(ctx: Context, ttl_us: int, last_us: int) -> None:
    """A submit when as many slow jobs as may be were submitted long ago, and are not too old.

    Their ends are known from reads that saw them live, so that moment is on the safe side. Best is
    one at which its own job outlives the silence: then that ends with as few as are retained.
    """
    # The judge allows for a server that took the time of an end by tolerance before it showed it.
    spared_us = int(ctx.session.tolerance_ms * 1000) + 70_000 + 2 * ctx.session.trip_us()
    ended_jobs = [job for job in ctx.session.jobs.values() if job.ended_us is not None]
    windows = [(job.return_us + ttl_us, job.live_us + ttl_us - spared_us) for job in ended_jobs]
    moments = [last for first, last in windows if last > max(first, now_us())]
    if not moments:
        return
    due_us, run_us = last_us + ttl_us + 60_000, (ctx.target.bodies.slow_ms or 0) * 950

    def worth(at: int) -> tuple[bool, int, int]:
        seen = sum(low < at <= high for low, high in windows)
        return (seen > 1 and at + run_us > due_us, seen, at)

    best = max(moments, key=worth)
    await sleep_until_us(best - 100_000)
    await census(ctx)
    await sleep_until_us(best)
    # A job that lives on is not itself one of those that count.
    others = (ctx.target.limits.workers or 1) > 1 and ctx.target.has("bodies.slow")
    if (await ctx.session.submit("slow" if others else "quick")).job is not None:
        await census(ctx)


async def _end(ctx: Context, kind: str) -> Job | None:
    job = (await ctx.session.submit(kind)).job
    if job is not None:
        await ended(ctx, job, period_s=0.005)
        await ctx.session.result(job)
    return job


async def _any_number_of_times(ctx: Context, job: Job) -> None:
    """R6: nothing wears off with reading."""
    for _ in range(ctx.times(_MANY_READS, 4 * _MANY_READS) // _READS_AT_ONCE):
        readings = await asyncio.gather(*(ctx.session.result(job) for _ in range(_READS_AT_ONCE)))
        await ctx.session.wait(job, 100)
        status = await ctx.session.status(job)
        if is_gone(status):
            return  # whether that may be, the judge knows
        lost = next((reading for reading in readings if is_gone(reading)), None)
        if lost is not None:
            ctx.fail(
                "R6",
                "the result of a job whose status is there is unknown after many reads",
                allowed="as before, any number of times",
                answers=(job.answer, lost.answer, status.answer),
            )
            return
        ctx.ok("R6")
