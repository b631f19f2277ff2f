"""S1 S5 S6 S9 Q4: the life of a job, watched from several sides.

Several observers on connections of their own read one job tightly over its whole life. Each answer
taken alone must be one of five states with an error exactly where one belongs (the session looks);
that no observer sees it go back is the judge's, on the intervals. What is left here is to be there
when it happens, and the order in which jobs start.
"""

import asyncio
import itertools
from typing import Final

from counterfoil_conformance.wire.answer import now_us
from counterfoil_conformance.wire.client import Connection
from counterfoil_conformance.wire.registry import ALL, Context, check
from counterfoil_conformance.wire.session import Job
from counterfoil_conformance.wire.steps import patience_s, submitted

ORDER: Final = {"pending": 0, "running": 1, "done": 2, "failed": 2, "timeout": 2}


@check("S1 S5 S6 S9", needs=("bodies.slow", "bodies.quick"), places=2)
async def a_life_is_watched_from_its_birth_to_its_end(ctx: Context) -> None:
    """Tight polls by several observers, of quick jobs throughout and at the end of a slow one."""
    kinds = ["quick"] * 4
    for kind in ("failing", "crashing"):
        kinds += [kind] * (2 if ctx.target.has(f"bodies.{kind}") else 0)
    for kind in kinds:
        job = await submitted(ctx, kind)
        if job is not None:
            await _observe(ctx, job, 3, 0.0)
    job = await submitted(ctx, "slow")
    if job is None:
        return
    await asyncio.sleep((ctx.target.bodies.slow_ms or 0) / 1000 * 0.75)
    await _observe(ctx, job, 3, 0.002)


async def _observe(ctx: Context, job: Job, observers: int, pause_s: float) -> None:
    deadline_us = now_us() + int(patience_s(ctx) * 1e6)

    async def observer(number: int) -> None:
        conn = await ctx.session.client.connect()
        rank, extra = -1, 3
        while extra and now_us() < deadline_us:
            usable = conn if isinstance(conn, Connection) and conn.alive else None
            if number == 2:
                reading = await ctx.session.result(job, conn=usable)
            else:
                reading = await ctx.session.status(job, conn=usable)
            seen = ORDER.get(reading.state or "", rank)
            if seen < rank:
                ctx.fail(
                    "S5",
                    f"one observer saw the job go back to `{reading.state}`",
                    allowed="pending < running < terminal",
                    answers=(reading.answer,),
                )
            rank = max(rank, seen)
            extra -= job.terminal
            await asyncio.sleep(pause_s)
        if isinstance(conn, Connection):
            conn.close()
        if rank == ORDER["done"]:
            for clause in ("S1", "S5", "S6", "S9"):
                ctx.ok(clause)

    await asyncio.gather(*(observer(number) for number in range(observers)))


@check("Q4", needs=("bodies.slow",), places=ALL, order=22, limit_s=120)
async def jobs_start_in_order_and_none_is_forgotten(ctx: Context) -> None:
    """More slow jobs than workers, one after another: all start, and in which order."""
    bound = ctx.session.max_queue or 1
    workers = ctx.target.limits.workers or 1
    count = min(bound, workers + 2)
    jobs: list[Job] = []
    for _ in range(count):
        sent = await ctx.session.submit("slow")
        if sent.job is not None:
            jobs.append(sent.job)
    started: dict[str, tuple[int, int]] = {}  # id -> (last read pending: call, first not: return)
    idle_since_us: int | None = None
    deadline_us = now_us() + int(ctx.session.patience_s() * 1e6)
    while not all(job.terminal for job in jobs) and now_us() < deadline_us:
        readings = await asyncio.gather(*(ctx.session.status(j) for j in jobs if not j.terminal))
        running = sum(r.state == "running" for r in readings)
        pending = [r for r in readings if r.state == "pending"]
        _note_starts(jobs, started)
        if not pending or running >= workers:
            idle_since_us = None
        elif idle_since_us is None:
            idle_since_us = max(r.answer.return_us for r in readings)
        elif min(r.answer.call_us for r in readings) > idle_since_us + ctx.session.slack_us():
            ctx.fail(
                "Q4",
                f"{len(pending)} jobs stay pending while {running} of {workers} workers run",
                allowed="no job pending while a worker is idle",
                answers=(pending[0].answer,),
            )
            return
        if len(started) == len(jobs):
            break
        await asyncio.sleep(0.02)
    ctx.ok("Q4")
    _judge_order(ctx, jobs, started)


def _note_starts(jobs: list[Job], started: dict[str, tuple[int, int]]) -> None:
    for job in jobs:
        if job.id not in started and (job.state != "pending" or job.terminal):
            started[job.id] = (job.pending_us, now_us())


def _judge_order(ctx: Context, jobs: list[Job], started: dict[str, tuple[int, int]]) -> None:
    """SHOULD: of two jobs, the one admitted first does not certainly start after the other."""
    for earlier, later in itertools.pairwise(jobs):
        if earlier.id in started and later.id in started:
            # Was `earlier` seen pending by a read that began after `later` was seen started?
            pending_us, started_us = started[earlier.id][0], started[later.id][1]
            if pending_us > started_us:
                ctx.warn(
                    "Q4",
                    f"{later.id} started before {earlier.id}, which was admitted first",
                    allowed="starts in the order of admission",
                    answers=(earlier.answer, later.answer),
                )
                return
