"""W4 W5 W10: how long a wait may block, on a job that lives longer than the budgets asked for.

All waits are issued together, each on a connection of its own. What came back is judged by
intervals: a wait may not come back with a live state before its budget, and not later than the
budget plus slack while the job was certainly live. A budget that cannot be spent within the life of
the job (30 s, 300 s, a number beyond any machine word) shows its faults early: one that was wrapped
or misread comes back before the end of the job.
"""

import asyncio
from collections.abc import Awaitable
from typing import Final

from counterfoil_conformance.wire.answer import Answer
from counterfoil_conformance.wire.reading import Reading
from counterfoil_conformance.wire.registry import Context, check
from counterfoil_conformance.wire.session import Job
from counterfoil_conformance.wire.steps import ended, is_gone, submitted, waited

__all__ = ["wait_budgets_on"]

GRAIN_US: Final = 5_000
# Wrapped to 16, 32 or 64 bits, signed or not, or read as seconds or as a float, each of these is
# something short.
HUGE: Final = (
    300_001,
    2**31,
    2**32 + 40,
    2**63,
    2**64 + 40,
    10**12,
    10**30 + 7,
    9_007_199_254_740_993,
    4_294_967_295,
    # More digits than Python turns into a number by default.
    10**4400,
)
JUNK: Final = (
    "abc",
    "1e3",
    "150ms",
    "",
    "1.5",
    "0x40",
    "40,5",
    "40%2050",
    "1_0",
    "--5",
    "NaN",
    "4%00",
    "%D9%A4%D9%A0",
    "null",
)


async def wait_budgets_on(ctx: Context, job: Job, live_ms: int) -> None:
    """Issue all waits on a job that is expected to live `live_ms` more, and judge them."""
    budgets = [b for b in (1, 40, 150, 333, 900) if b < live_ms * 0.7]
    tasks: list[Awaitable[None]] = [_runs_out(ctx, job, budget) for budget in budgets]
    tasks += [_runs_out(ctx, job, 120, f"%2B{120}"), _runs_out(ctx, job, 120, "0120")]
    tasks += [_is_capped(ctx, job, number) for number in HUGE]
    tasks += [_zero(ctx, job, -number) for number in (450, 700, 1000) if number < live_ms * 0.7]
    tasks += [_is_not_early(ctx, job, None), *(_zero(ctx, job, n) for n in (0, 0, 0, 0, -1))]
    tasks += [_zero(ctx, job, -(2**31)), _zero(ctx, job, -(10**20))]
    tasks += [_junk(ctx, job, text) for text in JUNK]
    tasks.append(_in_turn(ctx, job, live_ms))
    await asyncio.gather(*tasks)


async def _in_turn(ctx: Context, job: Job, live_ms: int) -> None:
    """W4: some short waits alone, when the crowd of others sleeps: no load hides an early end.

    What comes too early is told by every wait's own interval.
    """
    await asyncio.sleep(live_ms * 0.25 / 1000)
    for _ in range(max(2, min(6, live_ms // 200))):
        await _runs_out(ctx, job, 60)


async def _runs_out(ctx: Context, job: Job, budget_ms: int, text: str | None = None) -> None:
    """W4 for one budget."""
    reading = await waited(ctx, job, text or budget_ms)
    answer = reading.answer
    if not answer.ok or is_gone(reading):
        return
    if text is not None and _refused(answer):
        # A leading sign or zero is still an optionally signed decimal integer.
        ctx.warn(
            "W10",
            f"timeout={text} is refused: {answer.say()}",
            allowed=f"{budget_ms} ms",
            answers=(answer,),
        )
        return
    if answer.status != 200:
        ctx.fail(
            "W4",
            f"a wait whose budget ran out is answered {answer.status}",
            allowed="200 with the current state",
            answers=(answer,),
        )
        return
    if reading.terminal:
        lived_us = answer.return_us - job.call_us
        spent = answer.trip_us >= budget_ms * 1000 - GRAIN_US
        if spent and reading.state != "done" and lived_us < ctx.session.shortest_life_us(job):
            ctx.fail(
                "W4",
                f"after a wait of {budget_ms} ms the job is `{reading.state}`, {lived_us // 1000} "
                "ms after its submit: neither its run nor its budget can be over",
                allowed="`pending` or `running`: a wait that ran out is no failure of the job",
                answers=(answer,),
            )
        elif job.live_us > answer.call_us + budget_ms * 1000:
            # Its end woke the waiter at last: others saw it live when the budget was long over.
            _sleeps_on(ctx, answer, budget_ms, min(answer.return_us, job.live_us))
        return  # else the job ended first: nothing to be said of the budget
    spent_us = answer.trip_us
    clause = "W4" if text is None else "W5"
    if spent_us < budget_ms * 1000 - GRAIN_US:
        why = f"a wait of {budget_ms} ms came back after {spent_us / 1000:.1f} ms, the job live"
        ctx.fail(clause, why, allowed=f"not before {budget_ms} ms", answers=(answer,))
    elif not _sleeps_on(ctx, answer, budget_ms, answer.return_us):
        ctx.ok(clause)
        ctx.ok("W5")


def _sleeps_on(ctx: Context, answer: Answer, budget_ms: int, live_us: int) -> bool:
    """Whether a wait was still silent long after its budget, the job live until `live_us`."""
    due_us = answer.call_us + budget_ms * 1000
    allowed_us = ctx.session.allowed_us(due_us, live_us)
    late_us = live_us - due_us
    shown = late_us > allowed_us and ctx.session.was_prompt(due_us, live_us)
    if not ctx.session.is_late("W4", late_us, allowed_us) and not shown:
        return False
    why = f"a wait of {budget_ms} ms was not over after {(live_us - answer.call_us) // 1000} ms"
    # As if the number were of another unit, it is the number that was misread.
    for clause in ("W4", "W5") if late_us > 7 * budget_ms * 1000 else ("W4",):
        ctx.fail(
            clause, why, allowed=f"{budget_ms} ms + {allowed_us // 1000} ms", answers=(answer,)
        )
    return True


def _refused(answer: Answer) -> bool:
    return answer.ok and 400 <= answer.status < 500 and answer.status != 404


def _came_back_early(reading: Reading, budget_ms: int) -> bool:
    """Whether the wait was over while the job was live and the budget not spent."""
    early = reading.answer.trip_us < budget_ms * 1000 - GRAIN_US
    return reading.answer.ok and not reading.terminal and not is_gone(reading) and early


def _digits(number: int) -> str:
    """As text, beyond what `str` allows."""
    return str(number) if number < 10**4000 else f"1{'0' * 4400}"


async def _is_capped(ctx: Context, job: Job, number: int) -> None:
    """W5: beyond the cap it is the cap, never a small number, never an error."""
    text = _digits(number)
    reading = await waited(ctx, job, text)
    answer = reading.answer
    if not answer.ok or is_gone(reading) or answer.status in (414, 431):
        return
    if _refused(answer) or answer.status >= 500:
        ctx.fail(
            "W5",
            f"timeout={text:.40} is answered {answer.status}",
            allowed="the cap of 300000 ms",
            answers=(answer,),
        )
    elif _came_back_early(reading, 300_000):
        ctx.fail(
            "W5",
            f"timeout={text:.40} came back after {answer.trip_us // 1000} ms, the job live",
            allowed="at the end of the job, or after 300000 ms",
            answers=(answer,),
        )
    else:
        ctx.ok("W5")


async def _is_not_early(ctx: Context, job: Job, timeout: int | str | None) -> None:  # noqa: ASYNC109
    """W5: an absent `timeout` is 30 s."""
    reading = await waited(ctx, job, timeout)
    if _came_back_early(reading, 30_000) or _refused(reading.answer):
        took_ms = reading.answer.trip_us // 1000
        ctx.fail(
            "W5",
            f"a wait without `timeout` came back after {took_ms} ms, the job live",
            allowed="at the end of the job, or after 30000 ms",
            answers=(reading.answer,),
        )
    elif reading.answer.ok:
        ctx.ok("W5")


async def _zero(ctx: Context, job: Job, number: int) -> None:
    """W5: 0 or below is 30 s, an immediate answer, or a 4xx."""
    reading = await waited(ctx, job, number)
    answer = reading.answer
    if not answer.ok or is_gone(reading) or reading.terminal or _refused(answer):
        return
    slack_us = ctx.session.allowed_us(answer.call_us, answer.return_us)
    early = answer.status == 200 and _came_back_early(reading, 30_000)
    if early and answer.trip_us > slack_us and _is_the_number(ctx, answer, number):
        ctx.fail(
            "W5",
            f"timeout={number} came back after {answer.trip_us // 1000} ms, job live",
            allowed="at once, after 30000 ms, or a 4xx",
            answers=(answer,),
        )
    else:
        ctx.ok("W5")


def _is_the_number(ctx: Context, answer: Answer, number: int) -> bool:
    """Whether the answer that should come at once took a time that is no accident."""
    took_us = answer.trip_us
    near = abs(took_us - abs(number) * 1000) < 50_000
    allowed_us = ctx.session.allowed_us(answer.call_us, answer.return_us)
    return near or ctx.session.is_late("W5", took_us, allowed_us)


async def _junk(ctx: Context, job: Job, text: str) -> None:
    """W10: refused with 422 and a pointer, or as if absent; never read in part."""
    reading = await waited(ctx, job, text)
    answer = reading.answer
    if not answer.ok or is_gone(reading):
        return
    allowed = "422 with the pointer /timeout, or as if absent (30000 ms)"
    if _refused(answer):
        errors = answer.field("errors")
        pointers = [e.get("pointer") for e in errors or [] if isinstance(e, dict)]
        if answer.status == 422 and "/timeout" in pointers:
            ctx.ok("W10")
        else:
            ctx.warn(
                "W10",
                f"timeout={text!r} is refused without a pointer /timeout, or not with 422",
                allowed=allowed,
                answers=(answer,),
            )
    elif _came_back_early(reading, 30_000):
        ctx.warn(
            "W10",
            f"timeout={text!r} came back after {answer.trip_us // 1000} ms, job live",
            allowed=allowed,
            answers=(answer,),
        )
    elif answer.status == 200:
        ctx.ok("W10")


@check("W4 W5 W10", needs=("bodies.slow",), unless=("bodies.late", "limits.timeout_ms"), places=1)
async def waits_run_out_while_a_slow_job_runs(ctx: Context) -> None:
    """Budgets small, huge, absent, zero, negative and nonsensical, on a slow job."""
    job = await submitted(ctx, "slow")
    if job is None:
        return
    await wait_budgets_on(ctx, job, ctx.target.bodies.slow_ms or 300)
    await ended(ctx, job)
