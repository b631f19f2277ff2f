"""T1 T2 T3 T6, and whatever needs a job that lives long: the long run of the profile.

Runs that outlast their budget take seconds, so all that needs such seconds shares them. Late runs
occupy every worker; a quick job behind them can only wait. Then:

- the budget ends them all, each in its own time, neither early nor late (T1 pending, T6 running;
  one of them waited for a worker first: the budget counts from admission);
- the late ends come and change nothing (T2), while the queue is kept full, so that a place
  released twice is taken twice and seen;
- afterwards every worker runs jobs again (T3).

Meanwhile the waits with budgets (W4, W5, W10) have a job that surely lives, and jobs grow old (R3).
"""

import asyncio
from dataclasses import dataclass, field
from typing import Final

from counterfoil_conformance.wire.answer import now_us
from counterfoil_conformance.wire.census import census
from counterfoil_conformance.wire.checks.aging import ages, has_time_to_age
from counterfoil_conformance.wire.checks.blocking import infer_has_the_budget_of_a_job
from counterfoil_conformance.wire.checks.wait_budgets import wait_budgets_on
from counterfoil_conformance.wire.checks.waiting import at_once_on, judge_waiters
from counterfoil_conformance.wire.reading import Reading
from counterfoil_conformance.wire.registry import ALL, Context, check
from counterfoil_conformance.wire.session import Job
from counterfoil_conformance.wire.steps import (
    ended,
    sleep_until_us,
    submitted,
    waited,
)
from counterfoil_conformance.wire.workers import runs_over_us

POLL_S: Final = 0.04
GRAIN_US: Final = 5_000
PROMPT_US: Final = 50_000
OVERDUE: Final = 6


@dataclass(slots=True)
class Cast:
    """The jobs of the long run, by part."""

    late: list[Job] = field(default_factory=list)
    pending: Job | None = None
    slow: Job | None = None

    @property
    def all(self) -> list[Job]:
        return [*self.late, *([self.pending] if self.pending else [])]


@check(
    "T1 T2 T3 T6 W2 W3 W4 W5 W10 R1 R3 R7 R9 G2 S4 H11",
    needs=("bodies.late", "bodies.late_ms", "limits.timeout_ms", "bodies.quick"),
    places=ALL,
    order=10,
    limit_s=700,
)
async def a_run_that_outlasts_its_budget(ctx: Context) -> None:
    """Late runs on every worker, a job behind them, waits and old jobs beside them."""
    timeout_ms = ctx.target.limits.timeout_ms
    assert timeout_ms is not None
    old = await _some_that_ended(ctx)
    if timeout_ms == 0 or max(timeout_ms, ctx.target.bodies.late_ms or 0) > longest_ms(ctx):
        await _without_late_runs(ctx, old)
        return
    cast = await _set_up(ctx)
    await census(ctx)
    if not cast.late:
        ctx.undecided("T6", "no late job was admitted to the idle queue")
        return
    first = cast.late[0]
    guests = [
        asyncio.create_task(wait_budgets_on(ctx, first, timeout_ms)),
        asyncio.create_task(infer_has_the_budget_of_a_job(ctx)),
    ]
    if old is not None and has_time_to_age(ctx):
        guests.append(asyncio.create_task(ages(ctx, old, cast.slow)))
    if cast.slow is not None:
        guests.append(asyncio.create_task(_until_terminal(ctx, cast.slow)))
    waits = [asyncio.create_task(waited(ctx, job, 290_000)) for job in cast.all]
    try:
        watched = (_watch_budget(ctx, job, job is cast.pending) for job in cast.all)
        _judge_budgets(ctx, cast, list(await asyncio.gather(*watched)))
        await _judge_waits(ctx, cast, waits)
        for job in cast.late[:1]:
            await at_once_on(ctx, job)
        await _late_ends_change_nothing(ctx, cast)
        await asyncio.gather(*guests)
    finally:
        for task in (*guests, *waits):
            task.cancel()


def longest_ms(ctx: Context) -> int:
    """The longest late run that this profile has time for."""
    return 320_000 if ctx.is_full else 9_000


async def _without_late_runs(ctx: Context, old: Job | None) -> None:
    """Where there is no budget (T4 has a check of its own) or no time: the guests alone."""
    if ctx.target.limits.timeout_ms:
        for clause in ("T1", "T2", "T3", "T6"):
            ctx.undecided(clause, f"a late run of more than {longest_ms(ctx)} ms takes too long")
    slow = await submitted(ctx, "slow") if ctx.target.has("bodies.slow") else None
    guests = []
    if slow is not None:
        guests.append(wait_budgets_on(ctx, slow, ctx.target.bodies.slow_ms or 300))
        guests.append(_until_terminal(ctx, slow))
    if old is not None and has_time_to_age(ctx):
        guests.append(ages(ctx, old, slow))
    await asyncio.gather(*guests)


async def _some_that_ended(ctx: Context) -> Job | None:
    """Jobs that ended just before, one of them failed; the last one."""
    last = None
    for kind in ("failing", "quick"):
        job = await submitted(ctx, kind) if ctx.target.has(f"bodies.{kind}") else None
        if job is not None:
            await ended(ctx, job, period_s=0.005)
            last = job
    return last


async def _until_terminal(ctx: Context, job: Job) -> None:
    await ended(ctx, job)


async def _set_up(ctx: Context) -> Cast:
    """Late runs on all workers (one behind a slow job, if places allow) and a quick one behind."""
    limits, cast = ctx.target.limits, Cast()
    bound, workers = ctx.session.max_queue or 1, limits.workers
    occupied = min(workers or 1, bound)
    with_slow = ctx.target.has("bodies.slow") and workers is not None and bound >= workers + 2
    with_slow = with_slow and workers is not None and workers >= 2
    for number in range(occupied):
        last = number == occupied - 1
        if last and with_slow:
            cast.slow = await _admitted(ctx, "slow")
        failing = last and number > 0 and ctx.target.has("bodies.late_failing")
        job = await _admitted(ctx, "late_failing" if failing else "late")
        if job is not None:
            cast.late.append(job)
    if workers is None:
        ctx.untestable("T1", "limits.workers")
        return cast
    cast.pending = await _admitted(ctx, "quick") if bound > occupied >= workers else None
    if cast.pending is None:
        ctx.untestable("T1", "a queue with more places than there are workers")
    return cast


async def _admitted(ctx: Context, kind: str) -> Job | None:
    return (await ctx.session.submit(kind)).job


async def _watch_budget(ctx: Context, job: Job, is_pending: bool) -> bool | None:
    """Poll one job to its end and judge when that came; whether it overstayed, None if untold."""
    clause = "T1" if is_pending else "T6"
    timeout_us = (ctx.target.limits.timeout_ms or 0) * 1000
    earliest_us, latest_us = job.call_us + timeout_us, job.return_us + timeout_us
    started, overdue = False, 0
    while True:
        reading = await ctx.session.status(job)
        started = started or reading.state == "running"
        overdue += not job.terminal and _is_overdue(ctx, reading, latest_us)
        if job.terminal or job.live_us > latest_us + ctx.session.slack_us() + 4_000_000:
            break
        await asyncio.sleep(POLL_S)
    if job.gone_us is not None:
        return None
    late_us = job.live_us - latest_us
    if job.state != "timeout":
        if late_us > ctx.session.slack_us(latest_us):
            return None if is_pending and started else True
        used_up = job.state == "failed" and _used_up(ctx, job, earliest_us)
        if used_up and not (is_pending and started):
            ctx.fail(
                clause,
                "a job that was live until its budget was used up is `failed`",
                allowed="`timeout`",
                answers=(reading.answer,),
            )
        elif is_pending:
            held = "an earlier run that holds its worker beyond the budget of the next"
            ctx.untestable("T1", held)
        elif reading.answer.return_us < earliest_us:
            ctx.undecided("T6", f"the late body ended `{job.state}` within its budget")
        return None
    _judge_moment(ctx, clause, job, reading, overdue)
    if not is_pending or not started:
        ctx.ok(clause)
    await _result_is_409(ctx, job)
    return False


def _is_overdue(ctx: Context, reading: Reading, latest_us: int) -> bool:
    """Whether a prompt read shows a job live when it should long have timed out."""
    answer = reading.answer
    since_us = latest_us + int(ctx.session.tolerance_ms * 1000)
    return answer.ok and answer.call_us > since_us and answer.trip_us < PROMPT_US


def _judge_moment(ctx: Context, clause: str, job: Job, reading: Reading, overdue: int) -> None:
    """A job that timed out: neither before its budget was over nor long after.

    `overdue`: how many prompt reads showed it live when tolerance was over. The machine does not
    answer promptly and forget the time all the while.
    """
    timeout_us = (ctx.target.limits.timeout_ms or 0) * 1000
    late_us = job.live_us - job.return_us - timeout_us
    slack_us = ctx.session.allowed_us(job.return_us + timeout_us, reading.answer.return_us)
    early_us = job.call_us + timeout_us - reading.answer.return_us
    why = ""
    if early_us > GRAIN_US:
        why = f"timed out {early_us // 1000} ms before its budget was over"
    elif late_us > slack_us and _counts_from_start(job, timeout_us):
        why = f"timed out {late_us // 1000} ms late: the budget was counted from the start"
    elif ctx.session.is_late(clause, late_us, slack_us) or (
        late_us > slack_us and overdue >= OVERDUE
    ):
        why = f"timed out {late_us // 1000} ms after its budget was over"
    if why:
        allowed = f"{timeout_us // 1000} ms after admission"
        ctx.fail(clause, why, allowed=allowed, answers=(reading.answer,))


def _counts_from_start(job: Job, timeout_us: int) -> bool:
    """Whether a job that had to wait for a worker ended a whole budget after it got one."""
    started_us = job.started_us or 0
    return abs(job.live_us - started_us - timeout_us) < 120_000


def _used_up(ctx: Context, job: Job, earliest_us: int) -> bool:
    """Whether a job ended when its budget was used up, and well before its late run ended."""
    late_us = job.call_us + (ctx.target.bodies.late_ms or 0) * 1000
    ended_us = job.ended_us or 0
    return job.live_us > earliest_us - 100_000 and ended_us < late_us - 100_000


def _judge_budgets(ctx: Context, cast: Cast, overstayed: list[bool | None]) -> None:
    """T1 and T6: jobs that went on beyond their budget. One of several may be the machine's."""
    by_job = dict(zip((job.id for job in cast.all), overstayed, strict=True))
    late = [job for job in cast.late if by_job[job.id] is not None]
    pending = [cast.pending] if cast.pending is not None and by_job[cast.pending.id] else []
    if late and all(by_job[job.id] for job in late):
        if not ctx.target.dialect.running_budget:
            ctx.declared("T6", "`dialect.running_budget = false`: a run may overstay")
        else:
            for job in late:
                _over_budget(ctx, "T6", job)
    for job in pending:
        _over_budget(ctx, "T1", job)


def _over_budget(ctx: Context, clause: str, job: Job) -> None:
    spent_ms = (job.live_us - job.return_us) // 1000
    ctx.fail(
        clause,
        f"a job was still live {spent_ms} ms after its admission, and then `{job.state}`",
        allowed=f"`timeout` after {ctx.target.limits.timeout_ms} ms",
        answers=(job.answer,),
    )


async def _result_is_409(ctx: Context, job: Job) -> None:
    """G2 of a job that timed out."""
    reading = await ctx.session.result(job)
    if reading.answer.status == 409:
        ctx.ok("G2")


async def _judge_waits(ctx: Context, cast: Cast, waits: list[asyncio.Task[Reading]]) -> None:
    """W2 of an end by timeout, W3 of the job that was pending all the time."""
    due = [(job, task) for job, task in zip(cast.all, waits, strict=True) if job.terminal]
    while not all(task.done() for _, task in due):
        # How prompt the target is while somebody still waits.
        await ctx.session.status(cast.all[0])
        await asyncio.sleep(0.03)
    for job, task in due:
        reading = await task
        if judge_waiters(ctx, job, [reading], "W2") and reading.terminal:
            ctx.ok("W3")


async def _late_ends_change_nothing(ctx: Context, cast: Cast) -> None:
    """Fill the queue for the moments of the late ends; read those that timed out all through."""
    late_us = (ctx.target.bodies.late_ms or 0) * 1000
    # One that timed out while it was pending may be run all the same when a worker is free.
    timed_out = [job for job in cast.all if job.state == "timeout"]
    if not ctx.target.has("bodies.slow"):
        for clause in ("T2", "T3"):
            ctx.untestable(clause, "bodies.slow")
    if not timed_out or not ctx.target.has("bodies.slow"):
        return
    # A run that first waited for a worker may count its lateness from its start.
    due_us = {job.id: _began_us(job) + late_us + 60_000 for job in cast.late}
    if cast.pending is not None:
        due_us[cast.pending.id] = max(due_us.values())
    before = {job.id: await ctx.session.status(job) for job in timed_out}
    await sleep_until_us(min(due_us.values()) - (ctx.target.bodies.slow_ms or 0) * 500)
    fillers: list[Job] = []
    stop_us = _last_submit_us(ctx, timed_out, min(due_us.values()))
    while now_us() < max(due_us.values()) + 150_000:
        sent = await ctx.session.submit("slow") if now_us() < stop_us else None
        if sent is not None and sent.job is not None:
            fillers.append(sent.job)
            continue
        for job in timed_out:
            await _stays_timed_out(ctx, job, before[job.id], due_us[job.id])
        await asyncio.sleep(0.04)
    await asyncio.gather(*(ctx.session.status(job) for job in fillers if not job.terminal))
    await _places_released_once(ctx, [job for job in fillers if not job.terminal])
    await _workers_come_back(ctx, [job for job in fillers if not job.terminal])
    for job in timed_out:
        await _stays_timed_out(ctx, job, before[job.id], due_us[job.id])
    await _timed_out_jobs_age(ctx, timed_out)


def _last_submit_us(ctx: Context, timed_out: list[Job], first_due_us: int) -> int:
    """Until when to submit: what is retained no longer goes with a submit, and is to be read."""
    ttl_ms = ctx.target.limits.job_ttl_ms
    ended_us = min(job.ended_us or now_us() for job in timed_out)
    gone_us = ended_us + (ttl_ms or 10**7) * 1000 - 60_000
    return gone_us if gone_us > first_due_us else now_us() + 10**12


def _began_us(job: Job) -> int:
    """When the run of a job began at the latest."""
    seen_us = job.started_us if job.started_us != job.ended_us else None
    return max(job.return_us, job.pending_us, seen_us or 0)


async def _timed_out_jobs_age(ctx: Context, timed_out: list[Job]) -> None:
    """R3 of jobs that timed out, if the end of their time is near."""
    ttl_ms = ctx.target.limits.job_ttl_ms
    if ttl_ms is None:
        return
    due_us = max(job.ended_us or 0 for job in timed_out) + ttl_ms * 1000 + 40_000
    if due_us < now_us() + 1_200_000:
        await sleep_until_us(due_us)
        await submitted(ctx, "quick")
        await census(ctx)


async def _places_released_once(ctx: Context, live: list[Job]) -> None:
    """T2: the late ends gave no place back a second time."""
    bound = ctx.session.max_queue
    if bound is None:
        return
    extra = await ctx.session.burst("slow", 2, padding=0)
    readings = await asyncio.gather(*(ctx.session.status(job) for job in live))
    still = [r for r in readings if r.state in ("pending", "running")]
    admitted = [one for one in extra if one.job is not None]
    if len(still) + len(admitted) > bound and len(still) > bound - len(admitted):
        ctx.fail(
            "T2",
            f"after the late ends {len(still) + len(admitted)} jobs are live in a "
            f"queue of {bound}: a place was released twice",
            allowed="429",
            answers=(one.answer for one in admitted),
        )


async def _workers_come_back(ctx: Context, live: list[Job]) -> None:
    """T3: once the late runs are over, pending jobs run on every worker."""
    workers = ctx.target.limits.workers or 1
    while len(live) < min(workers, ctx.session.max_queue or 1):
        sent = await ctx.session.submit("slow")
        if sent.job is None:
            break
        live = [*live, sent.job]
    start_us, wanted = now_us(), min(workers, len(live))
    if not wanted:
        return
    budget_us = (ctx.target.limits.timeout_ms or 0) * 1000
    # A late run that first waited for a worker may have begun just before its budget was over.
    since_us = max(start_us, runs_over_us(ctx.session))
    if since_us > start_us + longest_ms(ctx) * 1000:
        return
    most, patience_us = 0, since_us + 4_000_000
    while now_us() < patience_us + ctx.session.slack_us(start_us):
        readings = await asyncio.gather(*(ctx.session.status(job) for job in live))
        most = max(most, sum(r.state == "running" for r in readings))
        if most >= wanted:
            ctx.ok("T3")
            return
        live = [job for job in live if not job.terminal]
        allowed_us = ctx.session.slack_us(start_us) + min(1_000_000, max(250_000, budget_us // 2))
        for job in live:
            pending_us = job.pending_us - max(job.return_us, since_us)
            if job.state == "pending" and pending_us > allowed_us:
                ctx.fail(
                    "T3",
                    f"after the late runs a job was pending for {pending_us // 1000} ms, while at "
                    f"most {most} of {workers} workers ran one",
                    allowed="every worker comes back",
                    answers=(job.answer,),
                )
                return
        if all(job.state != "pending" for job in live):
            # Who was there ended, or was given up: a worker that comes back now needs a job.
            more = await asyncio.gather(*(ctx.session.submit("slow") for _ in range(wanted + 1)))
            live += [one.job for one in more if one.job is not None]
        await asyncio.sleep(0.03)


async def _stays_timed_out(ctx: Context, job: Job, before: Reading, due_us: int) -> None:
    """T2: the state and the error are what they were; seen after the late end it is a witness."""
    after = await ctx.session.status(job)
    if not after.answer.ok or after.answer.status == 404:
        return  # evicted meanwhile
    same = after.state == before.state and after.body.get("error") == before.body.get("error")
    if not same:
        ctx.fail(
            "T2",
            "the late end of a run changed a job that had timed out",
            allowed=f"`timeout`, {before.body.get('error')!r}",
            answers=(before.answer, after.answer),
        )
    elif after.answer.call_us > due_us:
        await _has_no_result(ctx, job, before)


async def _has_no_result(ctx: Context, job: Job, before: Reading) -> None:
    """T2: nor can the late result be fetched."""
    result = await ctx.session.result(job)
    if result.answer.status in (404, 409):
        ctx.ok("T2")
    elif result.answer.status == 200:
        ctx.fail(
            "T2",
            "a job that had timed out has a result",
            allowed="409",
            answers=(before.answer, result.answer),
        )


@check("T4", needs=("bodies.slow", "limits.timeout_ms"), places=1)
async def no_budget_is_no_budget(ctx: Context) -> None:
    """With `timeout_ms = 0` the longest run there is a body for ends `done`."""
    if ctx.target.limits.timeout_ms != 0:
        ctx.does_not_apply("T4", "`limits.timeout_ms` is not 0")
        return
    kind = "late" if ctx.target.has("bodies.late") else "slow"
    job = await submitted(ctx, kind)
    run_ms = ctx.target.bodies.late_ms or 0
    if job is None or run_ms > (120_000 if ctx.is_full else 6_000):
        return
    state = await ended(ctx, job, run_ms=run_ms)
    if state in ("done", "failed", "timeout"):
        reading = await ctx.session.status(job)
        ctx.expect(
            state == "done",
            "T4",
            f"a {kind} job ended `{state}` without a budget",
            allowed="`done`",
            answers=(reading.answer,),
        )


@check(
    "T1 T6",
    needs=("bodies.hanging", "limits.timeout_ms"),
    unless=("bodies.late", "bodies.late_ms"),
    places=ALL,
    order=96,
    limit_s=400,
)
async def a_hanging_run_is_ended_by_its_budget(ctx: Context) -> None:
    """A run that does not come back, and (with one worker) a job behind it."""
    timeout_ms = ctx.target.limits.timeout_ms or 0
    if timeout_ms == 0 or timeout_ms > (310_000 if ctx.is_full else 6_000):
        return
    job = await _admitted(ctx, "hanging")
    if job is None:
        return
    behind = None
    if ctx.target.limits.workers == 1 and ctx.target.has("bodies.quick"):
        behind = await _admitted(ctx, "quick")
    cast = Cast([job], behind)
    watched = (_watch_budget(ctx, one, one is behind) for one in cast.all)
    _judge_budgets(ctx, cast, list(await asyncio.gather(*watched)))
