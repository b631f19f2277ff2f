"""R1 R4 R5 R9: retention by count.

Quick jobs end one after another, more than are retained, while a slow one runs that is older than
they are: a live job is never evicted (R1), and once it has ended it is evicted in its turn like any
other (R4: a completion order that had dropped it while it ran would keep it for ever, and wear off
with each). After every round a census asks after everybody; the judge counts who remains and who is
missing, and in which order they went.
"""

from counterfoil_conformance.wire.census import census
from counterfoil_conformance.wire.registry import ALL, Context, check
from counterfoil_conformance.wire.session import Job
from counterfoil_conformance.wire.steps import ended

__all__ = ["fits", "one_round"]


def fits(ctx: Context) -> bool:
    """Whether this profile has time to let more jobs end than are retained."""
    kept = ctx.target.limits.max_completed
    return kept is not None and kept <= (400 if ctx.is_full else 60)


async def one_round(ctx: Context, old: Job | None) -> None:
    """More quick jobs than are retained; beside `old`, a live job that is older than they are."""
    kept = max(ctx.target.limits.max_completed or 0, 0)
    await _end_one_by_one(ctx, kept + 3)
    await census(ctx)
    if old is not None:
        await ended(ctx, old)
        await _end_one_by_one(ctx, kept + 2)
        await census(ctx)


@check(
    "R1 R4 R5 R6 R7 R9",
    needs=("bodies.quick", "limits.max_completed"),
    places=ALL,
    order=63,
    limit_s=200,
)
async def the_oldest_go_first_and_no_more_than_the_excess(ctx: Context) -> None:
    """Rounds of more quick jobs than are retained (those beside a slow job go with the crowd)."""
    if not fits(ctx):
        kept = ctx.target.limits.max_completed
        for clause in ("R4", "R5", "R9"):
            ctx.undecided(clause, f"to fill {kept} retained jobs takes `--profile full`, or longer")
        return
    limits = ctx.target.limits
    room = limits.workers != 1 and ctx.session.max_queue != 1
    beside = ctx.is_full and room and ctx.target.has("bodies.slow")
    for _ in range(6 if ctx.is_full else 1):
        await one_round(ctx, (await ctx.session.submit("slow")).job if beside else None)
        if room and ctx.target.has("bodies.slow"):
            await _sweep_by_live_jobs(ctx)
    await census(ctx, extra=400, gone=12)


@check(
    "R4",
    needs=("bodies.late", "bodies.quick", "limits.timeout_ms", "limits.max_completed"),
    places=ALL,
    profile="full",  # a budget has to run out
    order=64,
    limit_s=200,
)
async def whoever_timed_out_is_counted(ctx: Context) -> None:
    """Jobs that timed out, then more quick ones than are retained: they push the others out."""
    timeout_ms, kept = ctx.target.limits.timeout_ms or 0, ctx.target.limits.max_completed or 0
    if not fits(ctx) or not 0 < timeout_ms <= 120_000:
        return
    count = min(2, ctx.session.max_queue or 1, max(1, (ctx.target.limits.workers or 1) - 1))
    late = [(await ctx.session.submit("late")).job for _ in range(count)]
    for job in late:
        if job is not None:
            await ended(ctx, job, run_ms=timeout_ms)
    await _end_one_by_one(ctx, max(kept, 0) + 2)
    await census(ctx)


async def _sweep_by_live_jobs(ctx: Context) -> None:
    """Submits whose own jobs certainly live on after they have returned.

    A quick job may have ended before the sweep of its own submit, and then it is one of those that
    count; a slow one is not, so what these submits evict can be counted exactly (R9). Two of them,
    an end apart: an eviction of one too many may show only at every second one.
    """
    for _ in range(2):
        sent = await ctx.session.submit("slow")
        await census(ctx)
        if sent.job is None or sent.job.terminal:
            return
        await _end_one_by_one(ctx, 1)


async def _end_one_by_one(ctx: Context, count: int) -> list[Job]:
    """Quick jobs, each submitted when a read has shown the one before it terminal."""
    jobs = []
    for number in range(count):
        failing = number % 3 == 1 and ctx.target.has("bodies.failing")
        sent = await ctx.session.submit("failing" if failing else "quick")
        if sent.job is None:
            continue
        await ended(ctx, sent.job, period_s=0.004)
        if sent.job.ended_us is not None:
            jobs.append(sent.job)
            await ctx.session.result(sent.job)
    for job in jobs:
        await ctx.session.status(job)
    return jobs
