"""What only shows when the server itself ends: a restart (X1) and an orderly stop (X4).

These checks come last, for the target is another one afterwards. They need `[process].start`; a
target that was already running when the run began is not ours to signal, and then `stop` and `kill`
have to be commands.

The trap of a drain is its beginning: a signal is taken a moment after it was sent. So nothing is
asked of `/ready` before tolerance is over, and nothing of a server that had no work left.
"""

import asyncio
from collections.abc import Iterable
from typing import Final

from counterfoil_conformance.wire.answer import Answer, now_us
from counterfoil_conformance.wire.client import Connection
from counterfoil_conformance.wire.process import TargetProcess
from counterfoil_conformance.wire.reading import Reading
from counterfoil_conformance.wire.registry import ALL, Context, check
from counterfoil_conformance.wire.session import Job, Session

__all__: tuple[str, ...] = ()

LIVE: Final = ("pending", "running")
END_WITHIN_S: Final = 45.0


ALREADY: Final = (
    "something answered at `base_url` before the run began, so `[process] start` was not used: "
    "stop it first, or say in `process.{}` how to end it"
)


@check(
    "X1",
    needs=("process.start", "bodies.slow"),
    places=ALL,
    profile="full",
    order=1000,
    limit_s=240.0,
)
async def a_restart_forgets_everything(ctx: Context) -> None:
    """After a restart old ids are 404 everywhere and the queue is empty."""
    process: TargetProcess = ctx.session.process
    if not process.can_kill():
        ctx.untestable("X1", ALREADY.format("kill"))
        return
    life = ctx.another_life()
    try:
        old = await _some_jobs(ctx, life)
        await process.kill()
        if not await process.ended(15.0):
            ctx.undecided("X1", "the target lives on after `process.kill`")
            return
    finally:
        await life.aclose()
    await process.start()
    life = ctx.another_life()
    try:
        await _old_ids_are_unknown(ctx, life, old)
        await _the_queue_is_empty(ctx, life, old)
        await life.settle()
    finally:
        await life.aclose()


async def _some_jobs(ctx: Context, life: Session) -> list[Job]:
    """One that has ended, and as many live ones as the queue holds."""
    jobs = []
    if ctx.target.has("bodies.quick"):
        sent = await life.submit("quick")
        if sent.job is not None:
            await life.until_terminal(sent.job, life.patience_s())
            jobs.append(sent.job)
    filled, _ = await life.fill("slow", most=16)
    return [*jobs, *filled]


async def _old_ids_are_unknown(ctx: Context, life: Session, old: list[Job]) -> None:
    for job in old:
        for action in ("", "/wait?timeout=200", "/result"):
            answer = await life.send("GET", f"/jobs/{job.id}{action}")
            if answer.ok:
                said = f"after a restart GET /jobs/{{id}}{action} of an old id: {answer.status}"
                ctx.expect(answer.status == 404, "X1", said, allowed="404", answers=(answer,))


async def _the_queue_is_empty(ctx: Context, life: Session, old: list[Job]) -> None:
    bound = ctx.session.max_queue
    if bound is None or not 0 < bound <= 64:
        return
    sent = await asyncio.gather(*(life.submit("slow") for _ in range(bound)))
    admitted = [one.job for one in sent if one.job is not None]
    said = f"after a restart the queue took {len(admitted)} jobs of {bound}"
    answers = tuple(one.answer for one in sent)
    ctx.expect(len(admitted) == bound, "X1", said, allowed=f"{bound}", answers=answers)
    again = {job.id for job in old} & {job.id for job in admitted}
    if again:
        ctx.fail("A8", f"after a restart the id {min(again)} was issued again")


@check(
    "X4",
    needs=("process.start", "bodies.slow", "bodies.slow_ms"),
    places=ALL,
    profile="full",
    order=1001,
    limit_s=300.0,
)
async def a_stop_drains(ctx: Context) -> None:
    """SIGTERM: not ready, no admission, jobs finish, waiters are answered, exit code 0."""
    process: TargetProcess = ctx.session.process
    if not process.can_stop():
        ctx.untestable("X4", ALREADY.format("stop"))
        return
    await _finish_in_time(ctx, process)
    if ctx.target.has("bodies.hanging"):
        await process.start()
        await _outstay_the_grace(ctx, process)


class _Drain:
    """One stop, watched from before the signal to the end of the process."""

    def __init__(self, ctx: Context, life: Session) -> None:
        self.ctx = ctx
        self.life = life
        self.kept: list[Connection] = []
        self.waits: list[asyncio.Task[Reading]] = []
        self.stopped_us = 0

    async def prepare(self, kinds: Iterable[str]) -> list[Job]:
        """Live jobs, a waiter on each, and two connections that were used before."""
        jobs = []
        for kind in kinds:
            sent = await self.life.submit(kind)
            if sent.job is not None:
                jobs.append(sent.job)
        for job in jobs:
            self.waits.append(asyncio.create_task(self.life.wait(job, 120_000)))
        for _ in range(2):
            conn = await self.life.client.connect()
            if isinstance(conn, Connection):
                await self.life.send("GET", "/jobs/cf-before-the-stop", conn=conn)
                self.kept.append(conn)
        await asyncio.sleep(0.05)
        return jobs

    async def ask(self, method: str, path: str, body: bytes | None = None) -> list[Answer]:
        """Ask on a kept connection and on a new one."""
        prefix = path != "/ready"
        answers = []
        for conn in (next((c for c in self.kept if c.alive), None), None):
            request = self.life.client.request(
                method, (self.ctx.target.prefix if prefix else "") + path, body=body
            )
            answers.append(await self.life.client.send(request, conn=conn, timeout_s=5.0))
        return answers

    @property
    def working(self) -> bool:
        """Whether some waiter has not been answered: the server still has work."""
        return any(not task.done() for task in self.waits)


async def _finish_in_time(ctx: Context, process: TargetProcess) -> None:
    life = ctx.another_life()
    try:
        drain = _Drain(ctx, life)
        kinds = _live_at_the_stop(ctx)
        has_ready = (await life.send("GET", "/ready", prefix=False, may_5xx=True)).status == 200
        jobs = await drain.prepare(kinds)
        await process.stop()
        drain.stopped_us = now_us()
        await _is_closing(ctx, drain, jobs, has_ready=has_ready)
        await _ends_well(ctx, process, drain, jobs, expected=_states_in_grace(ctx, kinds))
    finally:
        await life.aclose()


def _live_at_the_stop(ctx: Context) -> list[str]:
    """A slow job for each worker and, behind them, pending ones; a place is left for a submit."""
    room = max(1, min((ctx.session.max_queue or 1) - 1, 16))
    running = min(room, ctx.target.limits.workers or 1)
    behind = "quick" if ctx.target.has("bodies.quick") else "slow"
    return ["slow"] * running + [behind] * (room - running)


def _states_in_grace(ctx: Context, kinds: list[str]) -> tuple[str, ...]:
    """How those jobs may end: `done`; `failed` if the grace period may be over before.

    `timeout` only if the budget leaves no time for all of them: who is still pending then was not
    run although there was a worker, and whoever reached the budget had not outstayed the grace.
    """
    grace_ms, slow_ms = ctx.target.process.grace_ms, ctx.target.bodies.slow_ms or 0
    budget_ms = ctx.target.limits.timeout_ms or 10**9
    rounds = -(-kinds.count("slow") // (ctx.target.limits.workers or 1))
    need_ms = rounds * slow_ms + 500 + ctx.tolerance_s * 1000
    states = ["done"]
    if grace_ms is None or grace_ms < need_ms:
        states.append("failed")
    if budget_ms <= need_ms:
        states.append("timeout")
    return tuple(states)


async def _is_closing(ctx: Context, drain: _Drain, jobs: list[Job], *, has_ready: bool) -> None:
    """`/ready` turns 503 within tolerance, and then no submit is admitted."""
    # A process under load takes its signal late: nearly a second more than tolerance is allowed.
    deadline_us = drain.stopped_us + int(ctx.tolerance_s * 1e6) + 800_000
    seen: list[Answer] = []
    while has_ready and drain.working:
        seen = await drain.ask("GET", "/ready")
        if any(answer.status == 503 for answer in seen):
            ctx.ok("X4")
            break
        if now_us() > deadline_us and drain.working:
            said = f"{(now_us() - drain.stopped_us) // 1000} ms after the stop, with jobs running, "
            said += "/ready is " + " and ".join(answer.say()[:60] for answer in seen)
            ctx.fail("X4", said, allowed="503", answers=seen)
            break
        await asyncio.sleep(0.02)
    if not has_ready:
        await asyncio.sleep(ctx.tolerance_s)
    if not drain.working:
        return
    body, _ = drain.life.compose("slow")
    closing = False
    for answer in await drain.ask("POST", "/jobs", body):
        if answer.ok and drain.working:
            said = f"a submit while draining: {answer.say()[:80]}"
            # Where the queue is full besides, 429 is right as well.
            full = answer.status == 429 and len(jobs) >= (ctx.session.max_queue or 0)
            fine = answer.status == 503 or full
            ctx.expect(fine, "X4", said, allowed="503", answers=(answer,))
            closing = closing or answer.status == 503
    if has_ready and closing and drain.working:
        # By now the signal has arrived, however late: submits are refused for it.
        seen = await drain.ask("GET", "/ready")
        said = "submits are refused as while draining, and /ready is " + seen[-1].say()[:60]
        if drain.working and all(answer.status == 200 for answer in seen):
            ctx.fail("X4", said, allowed="503", answers=seen)
    for answer in await drain.ask("GET", f"/jobs/{jobs[0].id}"):
        # Only `/ready` and `POST` are 503 while draining (E5): the jobs are still there.
        if answer.ok and answer.status >= 500 and drain.working:
            said = f"a read of a live job while draining: {answer.say()[:80]}"
            ctx.fail("X4", said, allowed="its status", answers=(answer,))


async def _ends_well(
    ctx: Context,
    process: TargetProcess,
    drain: _Drain,
    jobs: list[Job],
    *,
    expected: tuple[str, ...],
) -> None:
    """Every waiter is answered with an end, and the exit code is 0."""
    grace_ms = ctx.target.process.grace_ms
    limit_s = END_WITHIN_S if grace_ms is None else grace_ms / 1000 + 15
    ended = await process.ended(limit_s)
    if not ended:
        said = f"the process is still there {limit_s:.0f} s after the stop"
        if grace_ms is None:
            ctx.undecided("X4", f"{said}; `process.grace_ms` would tell whether it may be")
        else:
            ctx.fail("X4", said, allowed="it ends after the grace period")
        await process.kill()
        await process.ended(15.0)
    code = process.exit_code
    if ended and code is not None:
        said = f"the exit code after a stop is {code}: {process.last_words()}"
        ctx.expect(code == 0, "X4", said, allowed="0")
    done, late = await asyncio.wait(drain.waits, timeout=5.0)
    for task in late:
        task.cancel()
    for job, task in zip(jobs, drain.waits, strict=True):
        if task not in done or task.cancelled() or task.exception() is not None:
            ctx.fail("X4", f"a waiter on {job.id} was not answered", allowed="its terminal state")
            continue
        reading = task.result()
        allowed = "200 with " + " or ".join(expected)
        said = f"a waiter was answered {reading.state or reading.answer.say()[:60]}"
        fine = reading.state in expected
        if ended:
            ctx.expect(fine, "X4", said, allowed=allowed, answers=(reading.answer,))
        early_us = reading.answer.return_us - drain.stopped_us
        run_us = (ctx.target.bodies.slow_ms or 0) * 500
        if (
            grace_ms is None
            and job.kind == "slow"
            and reading.state == "failed"
            and early_us < run_us
        ):
            said += f" {early_us // 1000} ms after the stop (is that `process.grace_ms`?)"
            ctx.warn("X4", said, allowed="live jobs may finish", answers=(reading.answer,))


async def _outstay_the_grace(ctx: Context, process: TargetProcess) -> None:
    """What is left after the grace period becomes `failed` (or its own budget ended it)."""
    grace_ms = ctx.target.process.grace_ms
    if grace_ms is not None and grace_ms > 60_000:
        return
    life = ctx.another_life()
    try:
        drain = _Drain(ctx, life)
        jobs = await drain.prepare(["hanging"])
        has_ready = (await life.send("GET", "/ready", prefix=False, may_5xx=True)).status == 200
        await process.stop()
        drain.stopped_us = now_us()
        await _is_closing(ctx, drain, jobs, has_ready=has_ready)
        budget_ms = ctx.target.limits.timeout_ms or 10**9
        longest_ms = END_WITHIN_S * 1000 if grace_ms is None else grace_ms + 2000
        expected = ("failed",) if budget_ms > longest_ms else ("failed", "timeout")
        await _ends_well(ctx, process, drain, jobs, expected=expected)
    finally:
        await life.aclose()
