"""W9 W6, and R1 R4 beside it: a crowd of waiters on one slow job.

200 waiters are in place while a worker is idle: submits, reads and runs go on as without them, and
all of them are woken at the end. The slow job is at the same time older than every job that ends
meanwhile, which is what a round of retention by count needs, so that round runs beside the crowd.
"""

import asyncio
from typing import Final

from counterfoil_conformance.wire.answer import Answer
from counterfoil_conformance.wire.checks.retention import fits, one_round
from counterfoil_conformance.wire.checks.waiting import early_clause
from counterfoil_conformance.wire.client import Connection, encode
from counterfoil_conformance.wire.reading import read
from counterfoil_conformance.wire.registry import ALL, Context, check
from counterfoil_conformance.wire.session import Job
from counterfoil_conformance.wire.steps import ended, is_gone, patience_s, polled
from counterfoil_spec.wire import Route

# One crowd may meet a stall of the machine; as many in a row do not.
_CROWDS: Final = 3


@check(
    "W9 W6 R1 R4 R5 R9",
    needs=("bodies.slow", "bodies.quick"),
    places=ALL,
    order=62,
    limit_s=120,
)
async def many_waiters_hold_nobody_up(ctx: Context) -> None:
    """200 waiters on a slow job: submits, reads and (with a free worker) runs go on as without."""
    limits = ctx.target.limits
    count = 200 if limits.max_connections is None else min(200, limits.max_connections // 2)
    late: list[Answer] = []
    for _ in range(_CROWDS):
        control = await ctx.session.submit("quick")
        if control.job is None or await ended(ctx, control.job, period_s=0.004) == "":
            ctx.undecided("W9", "a quick job did not end on the idle target")
            return
        conns = await _open_connections(ctx, count)
        arrival_us = await _arrive(ctx, conns)
        if arrival_us is None:
            return
        job = (await ctx.session.submit(_long_kind(ctx))).job
        if job is None:
            return
        crowd = await _gather_crowd(ctx, job, conns)
        # Most of what any crowd costs is over before anybody is asked to be prompt beside it.
        pause_us = min(arrival_us, (ctx.target.bodies.slow_ms or 0) * 300)
        await asyncio.sleep(pause_us / 1e6)
        if await _judge_service_beside(ctx, job, control.job, arrival_us - pause_us, late):
            break
        # The job ended before the crowd was in place, or somebody was late: once more.
        _judge_crowd(ctx, job, [(conn, await task) for conn, task in crowd])
    else:
        if len(late) < _CROWDS:
            ctx.undecided("W9", "the slow job ended before the waiters were in place, three times")
            return
        ctx.fail(
            "W9",
            f"beside waiters a submit took {late[-1].trip_us // 1000} ms, and so with each of "
            f"{_CROWDS} crowds; without them the one before took {control.answer.trip_us // 1000}",
            allowed=f"tolerance ({ctx.session.tolerance_ms:g} ms) more than without them",
            answers=late[-1:],
        )
        return
    if (
        fits(ctx)
        and not ctx.session.is_late_already
        and limits.workers != 1
        and ctx.session.max_queue != 1
    ):
        await one_round(ctx, job)
    await ended(ctx, job)
    _judge_crowd(ctx, job, [(conn, await task) for conn, task in crowd])


def _long_kind(ctx: Context) -> str:
    """A body that runs long enough to tell an idle worker from a busy one."""
    bodies, budget_ms = ctx.target.bodies, ctx.target.limits.timeout_ms
    late_ms = min(bodies.late_ms or 0, budget_ms or bodies.late_ms or 0)
    return "late" if (bodies.slow_ms or 0) < 550 < late_ms < 2_500 else "slow"


async def _open_connections(ctx: Context, count: int) -> list[Connection]:
    """Before the job there is: so that the crowd costs nothing of its life."""
    conns: list[Connection] = []
    for start in range(0, count, 50):
        batch = [ctx.session.client.connect() for _ in range(start, min(count, start + 50))]
        opened = await asyncio.gather(*batch)
        conns += [conn for conn in opened if isinstance(conn, Connection)]
    return conns


async def _gather_crowd(
    ctx: Context, job: Job, conns: list[Connection]
) -> list[tuple[Connection, "asyncio.Task[Answer]"]]:
    """A waiter on each connection."""
    path = f"{ctx.target.prefix}/jobs/{job.id}/wait?timeout=20000"
    request = ctx.session.client.request("GET", path)
    crowd = []
    for conn in conns:
        call_us = conn.write(encode(request))
        reading = conn.read_answer(request, call_us, patience_s(ctx))
        crowd.append((conn, asyncio.create_task(reading)))
    await asyncio.sleep(0.02)
    return crowd


def _judge_crowd(ctx: Context, job: Job, answers: list[tuple[Connection, Answer]]) -> None:
    """W6: everybody was woken."""
    for conn, _ in answers:
        conn.close()
    if job.ended_us is None:
        return
    for _, answer in answers:
        late_us = answer.return_us - max(job.ended_us, answer.call_us)
        # A crowd is answered one after another, and read so by us: a second is not a hang.
        if answer.trouble == "refused":
            continue
        ctx.session.look_at(answer, may_fail=True)
        reading = read(Route.WAIT, answer, job.id, ctx.target.adapter)
        if answer.ok and not (reading.terminal or is_gone(reading)):
            clause = "W9" if answer.status >= 400 else early_clause(job, reading)
            ctx.fail(
                clause,
                f"one of {len(answers)} waiters was answered {answer.say()} after "
                f"{answer.trip_us // 1000} ms",
                allowed="the terminal state, or 404 once it is evicted",
                answers=(answer,),
            )
            return
        if not answer.ok or late_us > ctx.session.slack_us(job.ended_us) + 1_000_000:
            ctx.fail(
                "W6",
                f"one of {len(answers)} waiters was not woken: {answer.say()}",
                allowed="all woken by the end of the job",
                answers=(answer,),
            )
            return
    ctx.ok("W6", len(answers))


async def _arrive(ctx: Context, conns: list[Connection]) -> int | None:
    """How long it takes that many plain reads at once to be answered, us: what any crowd costs.

    Connections that were closed after it are opened again, in place. None where some got no answer:
    there is no room for so many waiters.
    """
    path = f"{ctx.target.prefix}/jobs/cf-{ctx.session.nonce()}"
    request = ctx.session.client.request("GET", path)
    calls = [conn.write(encode(request)) for conn in conns]
    reads = (
        c.read_answer(request, at, patience_s(ctx)) for c, at in zip(conns, calls, strict=True)
    )
    answers = await asyncio.gather(*reads)
    hung = [answer for answer in answers if answer.trouble == "timeout"]
    if hung:
        ctx.fail(
            "W9",
            f"of {len(conns)} clients at once, {len(hung)} got no answer to a plain read",
            allowed="as many waiters as that, and others beside them",
            answers=hung[:1],
        )
        return None
    for number, conn in enumerate(conns):
        if not conn.alive:
            again = await ctx.session.client.connect()
            conns[number] = again if isinstance(again, Connection) else conn
    good = [answer.return_us for answer in answers if answer.ok]
    return max(good) - min(calls) if good else 0


async def _judge_service_beside(
    ctx: Context, job: Job, control: Job, arrival_us: int, late: list[Answer]
) -> bool:
    """While the waiters wait: a submit is prompt, and a quick job runs where a worker is free.

    False where the slow job ended too soon to tell, or where the submit was late with all that was
    read beside it, which may be the machine's: then its answer joins `late`. `arrival_us`: what the
    crowd may still cost.
    """
    async with polled(ctx, job, 0.02):
        sent = await ctx.session.submit("quick")
    look = await ctx.session.status(job)
    answer = sent.answer
    allowed_us = ctx.session.allowed_us(answer.call_us, answer.return_us)
    allowed_us += control.answer.trip_us + arrival_us
    # The crowd was there when the submit was called; one late answer may be the machine's.
    # Reads at the end of the job are slowed by all who wake then; enough were prompt before.
    beyond_us = ctx.session.tolerance_ms * 1000 + control.answer.trip_us + arrival_us
    shown = answer.trip_us > beyond_us and ctx.session.was_prompt(answer.call_us, answer.return_us)
    if ctx.session.is_late("W9", answer.trip_us, allowed_us) or shown:
        ctx.fail(
            "W9",
            f"beside waiters a submit took {answer.trip_us // 1000} ms: {answer.say()}",
            allowed=f"within {allowed_us // 1000} ms, as without them",
            answers=(answer,),
        )
        return True
    if answer.ok and answer.trip_us > beyond_us:
        late.append(answer)
        return False
    if look.terminal or not answer.ok:
        return False
    ctx.ok("W9")
    if sent.job is None or (ctx.target.limits.workers or 1) < 2:
        return True
    # Where it was gone before it was seen ended, that it was gone tells as much.
    run_us = (control.ended_us or control.gone_us or control.return_us) - control.return_us
    limit_us = run_us + 2 * allowed_us + 100_000
    async with polled(ctx, job, 0.02):
        await ctx.session.until_terminal(sent.job, limit_us / 1e6, period_s=0.005)
    idle_us = min(sent.job.pending_us, job.live_us) - sent.job.return_us
    since_us, until_us = sent.job.return_us, sent.job.return_us + max(0, idle_us)
    beyond = idle_us > ctx.session.tolerance_ms * 1000 + control.answer.trip_us + run_us
    shown = beyond and ctx.session.was_prompt(since_us, until_us)
    if shown or idle_us > ctx.session.slack_us(since_us) + 200_000:
        ctx.fail(
            "W9",
            f"beside waiters a quick job was pending for {idle_us // 1000} ms although a worker "
            "was idle",
            allowed="started as without them",
            answers=(sent.answer,),
        )
    elif sent.job.terminal:
        ctx.ok("W9")
    return True
