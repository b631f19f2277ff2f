"""R3 R9 R7: retention by age, counted from completion.

Two jobs tell. One that ended long before (`old`) must be gone once a submit that was admitted after
its time is up has returned. One that took long to run (`slow`) must still be there after a submit
that falls between the end of its time counted from *submission* and the end of it counted from
*completion*: who counts from the wrong moment evicts it. Its 404 is judged by the oracle, which
also knows how many jobs ended meanwhile; here the moment is brought about.
"""

import asyncio

from counterfoil_conformance.wire.answer import now_us
from counterfoil_conformance.wire.census import census
from counterfoil_conformance.wire.checks.quiet import LONGEST_QUIET_MS
from counterfoil_conformance.wire.registry import ALL, Context, check
from counterfoil_conformance.wire.session import Job
from counterfoil_conformance.wire.steps import ended, is_gone, sleep_until_us, submitted

__all__ = ["ages", "has_time_to_age"]


def has_time_to_age(ctx: Context) -> bool:
    """Whether this profile has time to wait for a job to grow too old."""
    ttl_ms = ctx.target.limits.job_ttl_ms
    return ttl_ms is not None and ttl_ms <= (120_000 if ctx.is_full else 4_000)


async def ages(ctx: Context, old: Job, slow: Job | None) -> None:
    """Bring both moments about; `old` has ended, `slow` ends some time from now."""
    ttl_ms = ctx.target.limits.job_ttl_ms
    assert ttl_ms is not None
    ttl_us = ttl_ms * 1000
    if ttl_ms > LONGEST_QUIET_MS:
        await _young(ctx, old, ttl_us)  # else seen in the silence, and a place is worth more here
    if slow is not None:
        await _between(ctx, slow, ttl_us)
    await _after(ctx, old, ttl_us)
    if slow is not None and slow.ended_us is not None:
        await _after(ctx, slow, ttl_us)


async def _young(ctx: Context, old: Job, ttl_us: int) -> None:
    """At three quarters of its time a submit takes none of those that are as young."""
    if old.ended_us is None:
        return
    await sleep_until_us(old.live_us + ttl_us * 3 // 4 - 250_000)
    sent = await ctx.session.submit("quick")
    if sent.job is not None:
        await census(ctx)


async def _between(ctx: Context, slow: Job, ttl_us: int) -> None:
    """A submit after submission + ttl and before completion + ttl: the job must still be there."""
    while not slow.terminal:
        await asyncio.sleep(0.02)
        if now_us() - slow.call_us > 60_000_000:
            return
    first_us, last_us = slow.return_us + ttl_us, slow.live_us + ttl_us
    await sleep_until_us(first_us + (last_us - first_us) // 3)
    sent = await ctx.session.submit("quick")
    if sent.job is None:
        return
    reading = await ctx.session.status(slow)
    if reading.answer.return_us < last_us and reading.terminal:
        ctx.ok("R9")
    await census(ctx)


async def _after(ctx: Context, old: Job, ttl_us: int) -> None:
    """Once a submit admitted after completion + ttl has returned, the job is unknown everywhere."""
    if old.ended_us is None or old.gone_us is not None:
        return
    due_us = old.ended_us + ttl_us + 20_000
    # A read must not make it younger.
    await sleep_until_us(due_us - ttl_us // 4)
    await ctx.session.status(old)
    await sleep_until_us(due_us)
    deadline_us = now_us() + 8_000_000
    while not any(job.call_us > due_us for job in ctx.session.jobs.values()):
        if now_us() > deadline_us:
            return
        sent = await ctx.session.submit("quick")
        if sent.job is None:
            await asyncio.sleep(0.04)
    # The judge says R3 of a 200; each of the three routes must say 404 from here on.
    status, result = await ctx.session.status(old), await ctx.session.result(old)
    wait = await ctx.session.wait(old, 50)
    for reading in (status, result, wait):
        if is_gone(reading):
            ctx.ok("R7")
            ctx.ok("R3")
        elif reading.answer.ok:
            age_ms = (reading.answer.call_us - old.ended_us) // 1000
            ctx.fail(
                "R3",
                f"a job that ended {age_ms} ms ago is still there, although a submit admitted "
                f"after its {ttl_us // 1000} ms were over has returned",
                allowed="404",
                answers=(reading.answer,),
            )


@check(
    "R3 R7 R9",
    needs=("bodies.quick", "limits.job_ttl_ms"),
    unless=("bodies.late", "limits.timeout_ms"),
    places=ALL,
    order=12,
    limit_s=200,
)
async def a_job_is_retained_for_its_time_and_no_longer(ctx: Context) -> None:
    """A job too old is gone after a submit; one that is only old by its submission stays."""
    if not has_time_to_age(ctx):
        told = "`--profile full` has time for it, if `limits.job_ttl_ms` is at most 120000"
        for clause in ("R3", "R9"):
            ctx.undecided(clause, told)
        return
    old = await submitted(ctx, "quick")
    if old is None or await ended(ctx, old) in ("", "gone"):
        return
    slow = await submitted(ctx, "slow") if ctx.target.has("bodies.slow") else None
    task = asyncio.create_task(ended(ctx, slow)) if slow is not None else None
    await ages(ctx, old, slow)
    if task is not None:
        await task


@check(
    "R3 R7 R9",
    needs=("bodies.quick", "bodies.slow", "limits.job_ttl_ms"),
    places=ALL,
    profile="full",  # in a quick run `quiet` does this once, before there is much to be old
    order=66,
    limit_s=400,
)
async def whatever_has_ended_grows_old(ctx: Context) -> None:
    """In a quiet time, so that eviction by count does not hide that by age.

    Jobs that ended in every way are read once more, and outlive their time by no more than the next
    submit. That one leaves nothing behind: what ends now is among the few, and has to stay (R9).
    """
    ttl_ms = ctx.target.limits.job_ttl_ms
    if ttl_ms is None or ttl_ms > (120_000 if ctx.is_full else 2_500):
        return
    await ctx.session.settle()
    for _ in range(3 if ctx.is_full else 1):
        jobs = await _ended_in_every_way(ctx)
        if not jobs:
            return
        await asyncio.gather(*(_after(ctx, job, ttl_ms * 1000) for job in jobs))
        if (ctx.target.limits.max_completed or 0) < 4:
            continue
        fresh = await _ended_in_every_way(ctx, long=False)
        if await ctx.session.submit("slow"):
            await asyncio.gather(*(ctx.session.status(job) for job in fresh))


async def _ended_in_every_way(ctx: Context, *, long: bool = True) -> list[Job]:
    """Jobs that have ended: done, failed, and (where there is time) by their budget."""
    kinds = ["failing", "quick"]
    timeout_ms = ctx.target.limits.timeout_ms
    if long and ctx.is_full and timeout_ms and timeout_ms <= 120_000:
        kinds.append("late")
    jobs = []
    for kind in kinds:
        job = await submitted(ctx, kind) if ctx.target.has(f"bodies.{kind}") else None
        if job is not None and await ended(ctx, job) not in ("", "gone"):
            jobs.append(job)
    return jobs
