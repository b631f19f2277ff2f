"""R3 R9: retention when hardly anything is retained.

On a busy target the bound on the count explains almost every loss, and hides almost every job that
age should have taken. So once, before the busy checks, nothing happens for as long as a job is
retained. The submit that ends the silence takes all that is too old, few as they are (R3). Then a
few jobs end, fewer than are retained and one of every kind, and the next submits take none (R9).
"""

from counterfoil_conformance.wire.answer import now_us
from counterfoil_conformance.wire.census import census
from counterfoil_conformance.wire.registry import ALL, Context, check
from counterfoil_conformance.wire.steps import ended, sleep_until_us

_LONGEST_QUIET_MS = 2_500


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
    if ttl_ms is None or ttl_ms > (120_000 if ctx.is_full else _LONGEST_QUIET_MS):
        return
    last_us = max((job.ended_us or 0 for job in ctx.session.jobs.values()), default=now_us())
    # Reads in between do not make anything younger.
    await sleep_until_us(last_us + ttl_ms * 600)
    await census(ctx)
    await sleep_until_us(last_us + ttl_ms * 1000 + 40_000)
    await _end(ctx, "quick")
    await census(ctx)
    kinds = [k for k in ("failing", "crashing", "echo") if ctx.target.has(f"bodies.{k}")]
    room = len(kinds) if kept is None else max(0, kept - 2)
    for kind in kinds[:room]:
        await _end(ctx, kind)
    for _ in range(2):
        await _end(ctx, "quick")
    await census(ctx)


async def _end(ctx: Context, kind: str) -> None:
    job = (await ctx.session.submit(kind)).job
    if job is not None:
        await ended(ctx, job, period_s=0.005)
        await ctx.session.result(job)
