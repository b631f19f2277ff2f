"""S1 S5 S6 S9: the life of a job, watched from several sides.

Several observers on connections of their own read one job tightly over its whole life. Each answer
taken alone must be one of five states with an error exactly where one belongs (the session looks);
that no observer sees it go back is the judge's, on the intervals. What is left here is to be there
when it happens.
"""

import asyncio
from typing import Final

from counterfoil_conformance.wire.answer import now_us
from counterfoil_conformance.wire.client import Connection
from counterfoil_conformance.wire.registry import Context, check
from counterfoil_conformance.wire.session import Job
from counterfoil_conformance.wire.steps import patience_s, submitted

ORDER: Final = {"pending": 0, "running": 1, "done": 2, "failed": 2, "timeout": 2}


@check("S1 S5 S6 S9", needs=("bodies.slow", "bodies.quick"), places=2)
async def a_life_is_watched_from_its_birth_to_its_end(ctx: Context) -> None:
    """Tight polls by several observers, of quick jobs throughout and at the end of a slow one."""
    kinds = ["quick", "quick"]
    kinds += [kind for kind in ("failing", "crashing") if ctx.target.has(f"bodies.{kind}")]
    box = ctx.box(4.0)
    for kind in kinds * 2:
        job = None if box.is_over else await submitted(ctx, kind)
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
