"""W5 in real time: the default of 30 s and the cap of 300 s, on a job that lives that long.

A quick run sees what is too short: a budget that was wrapped, or misread, is over while the job
lives. That the default ends at 30 s and not later, and that nobody waits beyond 300 s, only shows
to who waits that long, on a job that is live all the while: a run that hangs, where the target sets
no budget or one beyond it. All waits are issued side by side, so this takes no longer than the
longest, and the job is the last one of the run: it may hold its worker for good.
"""

import asyncio
from typing import Final

from counterfoil_conformance.wire.reading import Reading
from counterfoil_conformance.wire.registry import ALL, Context, check
from counterfoil_conformance.wire.session import Job
from counterfoil_conformance.wire.steps import is_gone

__all__: tuple[str, ...] = ()

DEFAULT_MS: Final = 30_000
CAP_MS: Final = 300_000
GRAIN_US: Final = 5_000
LOOK_S: Final = 0.25
# How a wait is written, and how long it lasts then.
WAITS: Final[tuple[tuple[str | None, int], ...]] = (
    (None, DEFAULT_MS),
    ("29500", 29_500),
    ("300000", CAP_MS),
    ("300001", CAP_MS),
    ("360000", CAP_MS),
    (str(2**31), CAP_MS),
    (str(2**32 + 40), CAP_MS),
    (str(2**63), CAP_MS),
    (f"1{'0' * 30}", CAP_MS),
)


@check(
    "W5 W4",
    needs=("bodies.hanging",),
    places=ALL,
    profile="full",
    order=98,
    limit_s=400,
)
async def the_default_and_the_cap_are_kept_in_real_time(ctx: Context) -> None:
    """Waits without a `timeout` end at 30 s, those beyond the cap at 300 s."""
    budget_ms = ctx.target.limits.timeout_ms
    if budget_ms is None or 0 < budget_ms < DEFAULT_MS + 3_000:
        told = "a job that lives for 30 s: `limits.timeout_ms` is 0 (none) or above 33000"
        ctx.untestable("W5", told)
        return
    lives_ms = CAP_MS + 3_000 if budget_ms == 0 else budget_ms
    job = (await ctx.session.submit("hanging")).job
    if job is None:
        ctx.undecided("W5", "no hanging job was admitted to the idle queue")
        return
    watching = asyncio.create_task(_watch(ctx, job))
    try:
        due = [(text, ms) for text, ms in WAITS if ms < lives_ms - 2_000]
        await asyncio.gather(*(_lasts(ctx, job, text, ms) for text, ms in due))
    finally:
        watching.cancel()
    if len(due) < len(WAITS):
        ctx.undecided("W5", f"the cap of 300 s is beyond the job's budget of {budget_ms} ms")


async def _watch(ctx: Context, job: Job) -> None:
    """Read the job all through, so that it is known to be live, and how prompt the target is."""
    while True:
        await ctx.session.status(job)
        await asyncio.sleep(LOOK_S)


async def _lasts(ctx: Context, job: Job, text: str | None, budget_ms: int) -> None:
    """One wait comes back with a live state when its budget is over."""
    conn = await ctx.session.client.connect()
    if isinstance(conn, str):
        return
    try:
        patience_s = budget_ms / 1000 + 3 + ctx.tolerance_s
        reading = await ctx.session.wait(job, text, conn=conn, patience_s=patience_s)
    finally:
        conn.close()
    _judge(ctx, job, reading, text, budget_ms)


def _judge(ctx: Context, job: Job, reading: Reading, text: str | None, budget_ms: int) -> None:
    answer = reading.answer
    written = "without `timeout`" if text is None else f"with timeout={text:.40}"
    if is_gone(reading) or reading.terminal or job.terminal:
        ctx.undecided("W5", f"the hanging job ended before a wait {written} was over")
        return
    due_us = answer.call_us + budget_ms * 1000
    late_us = answer.return_us - due_us
    allowed_us = ctx.session.allowed_us(due_us, answer.return_us)
    if answer.ok and late_us < -GRAIN_US:
        said = f"a wait {written} came back after {answer.trip_us // 1000} ms, the job live"
    elif answer.trouble == "timeout" or late_us > allowed_us + 1_000_000:
        said = f"a wait {written} was not over after {answer.trip_us // 1000} ms, the job live"
    else:
        if answer.ok and answer.status == 200:
            ctx.ok("W5")
            ctx.ok("W4")
        return
    ctx.fail("W5", said, allowed=f"{budget_ms} ms, and tolerance", answers=(answer,))
