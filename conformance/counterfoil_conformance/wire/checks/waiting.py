"""W1 W2 W6 W7: who waits is told in time, with the end of the job in view.

The end of a job is bracketed by tight polls on another connection: a waiter is late only when it
returns later than tolerance + measured round trip after a poll had *returned* the terminal state.
Lost wake-ups live in a window of microseconds between a waiter's look at the state and its sleep,
so many waits are issued around many ends of jobs that end within milliseconds (`wakeups` aims at
the ends of slow ones).
"""

import asyncio

from counterfoil_conformance.wire.client import Connection, encode
from counterfoil_conformance.wire.reading import Reading
from counterfoil_conformance.wire.registry import Context, check
from counterfoil_conformance.wire.session import Job
from counterfoil_conformance.wire.steps import (
    ended,
    is_gone,
    polled,
    submitted,
    waited,
)

BUDGET_MS = 4000
# A server may treat the patient and the impatient differently.
BUDGETS_MS = (BUDGET_MS, 900, 1_900, 60_000)


def early_clause(job: Job, reading: Reading) -> str:
    """W3 if the start of the run may have woken the waiter, else W4."""
    ran = job.started_us is not None and job.started_us < reading.answer.call_us
    return "W3" if reading.state == "running" and not ran else "W4"


def judge_waiters(ctx: Context, job: Job, readings: list[Reading], clauses: str) -> bool:
    """All waits had a budget beyond the end: whether each came back at the end."""
    if job.ended_us is None:
        return True  # evicted before a poll saw its end: the judge has the history
    seen, good = set(), all(reading.answer.ok for reading in readings)
    for reading in readings:
        answer = reading.answer
        due_us = max(job.ended_us, answer.call_us)
        late_us = answer.return_us - due_us
        if not answer.ok or is_gone(reading):
            continue  # the hook and the judge have seen it
        allowed_us = ctx.session.allowed_us(due_us, answer.return_us)
        shown = late_us > allowed_us and ctx.session.was_prompt(due_us, answer.return_us)
        if ctx.session.is_late("W2", late_us, allowed_us, due_us) or shown:
            good = False
            ctx.fail(
                clauses.split(maxsplit=1)[0],
                f"a waiter was answered {late_us // 1000} ms after the job was seen {job.state}",
                allowed=f"within {allowed_us // 1000} ms",
                answers=(answer,),
            )
        elif reading.state in ("pending", "running"):
            good = False
            ctx.fail(
                early_clause(job, reading),
                f"a waiter came back with `{reading.state}` after {answer.trip_us // 1000} ms, "
                "long before its budget",
                allowed="the terminal state, or the budget spent",
                answers=(answer,),
            )
        else:
            seen.add(reading.state)
            for clause in clauses.split():
                ctx.ok(clause)
    if len(seen) > 1:
        answers = [r.answer for r in readings]
        ctx.fail(
            "W6",
            f"waiters of one job saw {' and '.join(sorted(map(str, seen)))}",
            allowed="the same terminal state",
            answers=answers,
        )
    return good


@check("W1 W2 W6", needs=("bodies.slow",), places=1)
async def waiters_of_a_slow_job_are_all_woken(ctx: Context) -> None:
    """Waiters with different budgets, some of whose neighbours vanish, are woken by the end."""
    job = await submitted(ctx, "slow")
    if job is None:
        return
    vanish = [await ctx.session.client.connect() for _ in range(6)]
    gone = [conn for conn in vanish if isinstance(conn, Connection)]
    path = f"{ctx.target.prefix}/jobs/{job.id}/wait?timeout={BUDGET_MS}"
    for conn in gone:
        conn.write(encode(ctx.session.client.request("GET", path)))
    async with polled(ctx, job):
        early = [waited(ctx, job, t) for t in (BUDGET_MS, 300_000, None, 2**31 - 1)]
        waits = [asyncio.create_task(w) for w in early]
        await asyncio.sleep(0.1)
        for conn in gone:
            conn.abort()
        waits += [asyncio.create_task(waited(ctx, job, BUDGET_MS)) for _ in range(4)]
        await ended(ctx, job, period_s=0.005)
        await _evict_at_once(ctx)
        readings = list(await asyncio.gather(*waits))
    judge_waiters(ctx, job, readings, "W2 W6")
    await at_once_on(ctx, job)


async def _evict_at_once(ctx: Context) -> None:
    """W7: where hardly any job is retained, evict the one that just ended under its waiters."""
    kept = ctx.target.limits.max_completed
    if kept is None or kept > 1 or not ctx.target.has("bodies.quick"):
        return
    for _ in range(max(kept, 0) + 1):
        job = (await ctx.session.submit("quick")).job
        if job is not None and kept > 0:
            await ended(ctx, job, period_s=0.003)


async def at_once_on(ctx: Context, job: Job) -> None:
    """W1 on a job that has ended."""
    if job.ended_us is None or job.gone_us is not None:
        return
    for _ in range(3):
        reading = await ctx.session.wait(job, BUDGET_MS)
        if is_gone(reading) or not reading.answer.ok:
            return
        trip_us = reading.answer.trip_us
        if reading.terminal and trip_us <= ctx.session.slack_us():
            ctx.ok("W1")
            return
        if not reading.terminal:
            break
    ctx.fail(
        "W1",
        f"a wait on a job that is {job.state} took {trip_us // 1000} ms and says {reading.state}, "
        "again and again",
        allowed="an answer at once, with the terminal state",
        answers=(reading.answer,),
    )


@check("W1 W2", needs=("bodies.quick",), places=1)
async def waits_issued_around_a_quick_end_are_answered(ctx: Context) -> None:
    """Quick, failing and crashing jobs, with waits issued in the milliseconds of their ends."""
    kinds = ["quick"] * ctx.times(10, 40)
    if ctx.target.has("bodies.crashing"):
        kinds[2:2] = ["crashing"] * 2
    if ctx.target.has("bodies.failing"):
        kinds[2:2] = ["failing"] * ctx.times(4, 8)
    conns = [await ctx.session.client.connect() for _ in range(4)]
    ready = [conn for conn in conns if isinstance(conn, Connection)]
    missed, box = 0, ctx.box(4.0)
    for number, kind in enumerate(kinds):
        job = None if missed > 2 or box.is_over else await submitted(ctx, kind)
        if job is None:
            continue
        async with polled(ctx, job, 0.004):
            readings = await asyncio.gather(
                *(
                    delayed_wait(ctx, job, 0.0011 * k * (number % 5), BUDGETS_MS[k % 4], conn)
                    for k, conn in enumerate(ready)
                )
            )
            await ended(ctx, job, period_s=0.005)
        missed += not judge_waiters(ctx, job, list(readings), "W2 W6")
        if number % 4 == 0 or kind != "quick":
            await at_once_on(ctx, job)
    for conn in ready:
        conn.close()


async def delayed_wait(
    ctx: Context, job: Job, delay_s: float, budget_ms: int, conn: Connection
) -> Reading:
    """A wait after a delay, on a warm connection."""
    if delay_s:
        await asyncio.sleep(delay_s)
    return await ctx.session.wait(job, budget_ms, conn=conn if conn.alive else None)


@check("W7 G3 S8")
async def an_unknown_id_is_answered_at_once(ctx: Context) -> None:
    """Status, wait (with a long budget) and result of ids never issued: 404 at once, and again."""
    for shape in ("job_" + ctx.session.nonce(32), ctx.session.nonce(8), "0", "job_"):
        for _ in range(2):
            waits = await ctx.session.wait(shape, 5000, patience_s=7)
            status = await ctx.session.status(shape)
            result = await ctx.session.result(shape)
            for clause, reading in (("W7", waits), ("S8", status), ("G3", result)):
                ctx.expect(
                    is_gone(reading),
                    clause,
                    f"an id that was never issued is answered {reading.answer.say()}",
                    allowed="404",
                    answers=(reading.answer,),
                )
            if not is_gone(waits):
                return
            trip_us = waits.answer.trip_us
            ctx.expect(
                not ctx.session.is_late("W7", trip_us, ctx.session.slack_us()),
                "W7",
                f"the 404 of a wait on an unknown id took {trip_us // 1000} ms",
                allowed="at once",
                answers=(waits.answer,),
            )
