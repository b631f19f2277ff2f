"""W2 W6 at every kind of end, and in the window in which a wake-up is lost.

A waiter must be in place before the end, and most jobs end at once. So slow jobs hold every worker,
and one job of every kind of ending waits behind them, pending, with waiters of its own: whoever is
woken by `done` only shows here. When the slow jobs end, all of it ends within moments.

How long the slow ones run is then known, and a second round aims at their end: waits go out at
every millisecond around it, so that some look at the state before the end and begin to sleep after
it (D4), whether that takes a server one millisecond or sixty.

A third way to be late is to look again and again instead of being told. Waits that began all
through the life of a slow job are due at its end at every phase of such a period. Where some of
them come late the round is played again: the machine is not late twice in the same manner.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from counterfoil_conformance.wire.answer import now_us
from counterfoil_conformance.wire.checks.waiting import judge_waiters
from counterfoil_conformance.wire.client import Connection
from counterfoil_conformance.wire.probing import has_infer
from counterfoil_conformance.wire.reading import Reading
from counterfoil_conformance.wire.registry import ALL, Context, check
from counterfoil_conformance.wire.session import Job
from counterfoil_conformance.wire.steps import is_gone, patience_s, sleep_until_us

__all__: tuple[str, ...] = ()

# A wake-up that was lost shows at the end of the budget: far beyond any slack, and soon.
BEYOND_MS: Final = 2_500
PHASES: Final = 16
# When waits arrive, in ms around the expected end.
AROUND_MS: Final = (
    -60, -45, -33, -25, -19, -15, -12, -10, -9, -8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 4, 6,
)  # fmt: skip
ROUNDS: Final = 3


@dataclass(slots=True)
class _Round:
    """One fill of slow jobs with others behind, and the waits on them."""

    slow: list[Job] = field(default_factory=list)
    behind: list[Job] = field(default_factory=list)
    blocking: list["asyncio.Task[object]"] = field(default_factory=list)
    waits: dict[str, list["asyncio.Task[Reading]"]] = field(default_factory=dict)
    phases: list["asyncio.Task[Reading]"] = field(default_factory=list)

    @property
    def jobs(self) -> list[Job]:
        return [*self.slow, *self.behind]


@check(
    "W2 W6 H7 T5 Q4",
    needs=("bodies.slow", "bodies.slow_ms"),
    places=ALL,
    order=55,
    limit_s=120,
)
async def every_kind_of_end_wakes_its_waiters(ctx: Context) -> None:
    """Waiters on jobs that end in every way, and waits issued in the milliseconds of their ends."""
    late: list[_Round] = []
    run_us = None
    for number in range(ROUNDS):
        round_ = await _play(ctx, number, run_us)
        if not round_.jobs:
            ctx.undecided("W2", "no slow job was admitted to the idle queue")
            return
        late += [round_] * await _judge(ctx, round_)
        run_us = _shortest_run_us(round_, run_us)
        if number == ROUNDS - 2 and len(late) != 1:
            break
    if len(late) > 1:
        _accuse_phases(ctx, late[0])
    if await has_infer(ctx):
        await _leave_nobody_behind(ctx)


async def _play(ctx: Context, number: int, run_us: int | None) -> _Round:
    """One round with slow jobs on the workers, waited for from early on and around their end."""
    workers, bound = ctx.target.limits.workers or 1, ctx.session.max_queue or 1
    slow = min(workers, max(1, bound - 1))
    kinds = ("crashing", "quick", "failing") if number % 2 else ("failing", "crashing", "quick")
    round_ = _Round()
    await _submit(ctx, round_.slow, ["slow"] * slow)
    await _submit(ctx, round_.behind, _that_are_there(ctx, kinds)[: bound - slow])
    _wait_early(ctx, round_)
    if run_us is not None:
        _wait_around(ctx, round_, run_us)
    await _until_all_told(ctx, round_)
    return round_


async def _leave_nobody_behind(ctx: Context) -> None:
    """Q4: with a blocking call on each worker and the queue full of failures, the last job runs.

    Blocking calls take no place, so there are more failures than workers: whoever looks for work
    only after an end that is not one of these leaves the last one pending, beside idle workers.
    Once that may be the machine; the second time the intervals of the whole run tell (`workers`).
    """
    workers, bound = ctx.target.limits.workers or 1, ctx.session.max_queue or 1
    for _ in range(2):
        round_ = _Round()
        body, _ = ctx.session.compose("slow")
        calls = (ctx.session.infer(body) for _ in range(workers))
        round_.blocking += [asyncio.create_task(call) for call in calls]
        await asyncio.sleep(0.05 + ctx.session.trip_us() / 1e6)
        kinds = ["failing"] * (min(bound, 2 * workers) - 1) + ["quick"]
        await _submit(ctx, round_.behind, _that_are_there(ctx, kinds))
        _wait_early(ctx, round_)
        await _until_all_told(ctx, round_)
        await _judge(ctx, round_)
        ends_us = [job.ended_us for job in round_.behind if job.ended_us is not None]
        if not ends_us or round_.behind[-1].pending_us < min(ends_us) + ctx.session.slack_us():
            break


async def _submit(ctx: Context, group: list[Job], kinds: list[str]) -> None:
    sent = [await ctx.session.submit(kind) for kind in kinds]
    group += [one.job for one in sent if one.job is not None]


def _that_are_there(ctx: Context, kinds: Iterable[str]) -> list[str]:
    return [kind for kind in kinds if ctx.target.has(f"bodies.{kind}")]


def _wait_early(ctx: Context, round_: _Round) -> None:
    """Waiters from now on, on each job; on the first one some at every phase of its life."""
    slow_ms = ctx.target.bodies.slow_ms or 0
    for job in round_.jobs:
        waits = [_wait_at(ctx, job, now_us(), slow_ms + more) for more in (700, BEYOND_MS)]
        round_.waits[job.id] = [asyncio.create_task(wait) for wait in waits]
    for job in round_.slow[:1]:
        step_us = slow_ms * 950 // PHASES
        for number in range(PHASES):
            wait = _wait_at(ctx, job, job.call_us + number * step_us, slow_ms + BEYOND_MS)
            round_.phases.append(asyncio.create_task(wait))


def _wait_around(ctx: Context, round_: _Round, run_us: int) -> None:
    """Waits that arrive around the expected end of the first slow job, and of one behind it."""
    due_us = round_.jobs[0].call_us + run_us
    for job in (*round_.slow[:1], *round_.behind[:1]):
        for at_ms in AROUND_MS:
            wait = _wait_at(ctx, job, due_us + at_ms * 1000, BEYOND_MS)
            round_.waits[job.id].append(asyncio.create_task(wait))


async def _wait_at(ctx: Context, job: Job, at_us: int, budget_ms: int) -> Reading:
    """A wait that is sent at that moment, on a connection that was opened before."""
    conn = await ctx.session.client.connect()
    await sleep_until_us(at_us)
    if not isinstance(conn, Connection):
        return await ctx.session.wait(job, budget_ms)
    try:
        return await ctx.session.wait(job, budget_ms, conn=conn if conn.alive else None)
    finally:
        conn.close()


async def _until_all_told(ctx: Context, round_: _Round) -> None:
    """Poll every job until it has ended, tightly, so that each end is bracketed.

    Then go on until every waiter has its answer: those reads say how prompt the target is.
    """
    deadline_us = now_us() + int(patience_s(ctx) * 1e6)
    live = round_.jobs
    while live and now_us() < deadline_us:
        await asyncio.gather(*(ctx.session.status(job) for job in live))
        live = [job for job in live if not job.terminal]
        await asyncio.sleep(0.005)
    waits = [task for tasks in (*round_.waits.values(), round_.phases) for task in tasks]
    while not all(task.done() for task in waits):
        await ctx.session.status(round_.jobs[0])
        await asyncio.sleep(0.03)
    await asyncio.gather(*round_.blocking)


async def _judge(ctx: Context, round_: _Round) -> bool:
    """Judge the waiters of each job; whether some of those at every phase came late."""
    for job in round_.jobs:
        readings = [await task for task in round_.waits[job.id]]
        if judge_waiters(ctx, job, readings, "W2 W6") and job.state == "failed":
            ctx.ok("T5")
    return len(await _late_phases(ctx, round_)) > 1


async def _late_phases(ctx: Context, round_: _Round) -> list[Reading]:
    """Those of the waits at every phase that came later than slack explains."""
    readings = [await task for task in round_.phases]
    job = round_.slow[0] if round_.slow else None
    if job is None or job.ended_us is None:
        return []
    good = [reading for reading in readings if reading.answer.ok and not is_gone(reading)]
    late = []
    for reading in good:
        due_us, came_us = max(job.ended_us, reading.answer.call_us), reading.answer.return_us
        if came_us > due_us + ctx.session.allowed_us(due_us, came_us):
            late.append(reading)
    ctx.ok("W2", len(good) - len(late))
    return late


def _accuse_phases(ctx: Context, round_: _Round) -> None:
    """Waits that began at other moments are late by other times, again and again: a period."""
    job = round_.slow[0]
    answers = [task.result().answer for task in round_.phases if not task.cancelled()]
    late_ms = max(answer.return_us - (job.ended_us or 0) for answer in answers) // 1000
    ctx.fail(
        "W2",
        f"of {len(answers)} waits that began all through the life of a job some came up to "
        f"{late_ms} ms after a read had shown its end, in one round after the other",
        allowed="woken by the end, not at the next look",
        answers=answers[-1:],
    )


def _shortest_run_us(round_: _Round, known_us: int | None) -> int | None:
    """How long a slow job takes from its submit on, if it need not wait."""
    runs = [job.ended_us - job.call_us for job in round_.slow if job.ended_us is not None]
    if known_us is not None:
        runs.append(known_us)
    return min(runs, default=None)
