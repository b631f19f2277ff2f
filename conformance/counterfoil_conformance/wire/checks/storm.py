"""The closing storm and the rest after it: everything at once, judged as one history.

Several clients mix submits (quick, slow, failing, echo), polls, waits, results, bursts for the last
free place and aborted connections for a few seconds. Nothing is judged here: each answer passed the
session's hook, and the oracle reads the whole history at the end. Once all is quiet, as many jobs
must be admitted as there are places, and no more (A11).

The trap is the aborted submit: it may have been admitted, and nobody was told the id. To the judge
it may be live for ever, so these come last, and the count at rest is given time.
"""

import asyncio
from typing import Final

from counterfoil_conformance.wire.answer import now_us
from counterfoil_conformance.wire.census import census
from counterfoil_conformance.wire.checks.admission import too_few
from counterfoil_conformance.wire.client import Connection, encode
from counterfoil_conformance.wire.registry import ALL, Context, check
from counterfoil_conformance.wire.session import Job, Submitted

_KINDS: Final = ("quick", "quick", "quick", "failing", "echo", "slow")


class _Storm:
    """The weather: what is shared by the clients."""

    def __init__(self, ctx: Context, seconds: float) -> None:
        self.ctx = ctx
        self.session = ctx.session
        self.rng = ctx.session.rng
        self.end_us = now_us() + int(seconds * 1e6)
        self.kinds = [kind for kind in _KINDS if ctx.target.has(f"bodies.{kind}")]

    @property
    def blows(self) -> bool:
        return now_us() < self.end_us

    @property
    def is_late(self) -> bool:
        """In the last part no slow jobs begin, so that it is soon quiet afterwards."""
        slow_us = (self.ctx.target.bodies.slow_ms or 0) * 1000
        return now_us() > self.end_us - min(slow_us, 800_000)

    def kind(self) -> str:
        kind = self.rng.choice(self.kinds)
        return "quick" if kind == "slow" and self.is_late else kind

    def somebody(self) -> Job | None:
        jobs = list(self.session.jobs.values())
        return self.rng.choice(jobs[-8:]) if jobs else None

    async def pause(self, most_s: float) -> None:
        await asyncio.sleep(self.rng.uniform(0, most_s))

    async def submitter(self) -> None:
        while self.blows:
            sent = await self.session.submit(self.kind(), named=self.rng.random() < 0.8)
            if sent.job is not None and self.rng.random() < 0.7:
                await self.session.wait(sent.job, self.rng.choice((1, 30, 3000)))
                await self.session.result(sent.job)
            await self.pause(0.03)

    async def poller(self) -> None:
        while self.blows:
            job = self.somebody()
            if job is not None:
                ask = self.session.result if self.rng.random() < 0.3 else self.session.status
                await ask(job)
            await self.pause(0.02)

    async def waiter(self) -> None:
        while self.blows:
            job = self.somebody()
            if job is not None:
                await self.session.wait(job, self.rng.choice((0, 5, 60, 2500)))
            await self.pause(0.02)

    async def burster(self) -> None:
        while self.blows and not self.is_late:
            await self.session.burst(self.kind(), 6, padding=4000)
            await self.pause(0.15)

    async def vanisher(self) -> None:
        """Clients that go away: in the middle of a wait or of a body, later of a submit."""
        while self.blows:
            conn, job = await self.session.client.connect(), self.somebody()
            if isinstance(conn, Connection) and job is not None:
                self._half_a_call(conn, job)
                await self.pause(0.02)
                conn.abort()
            await self.pause(0.1)

    def _half_a_call(self, conn: Connection, job: Job) -> None:
        client, prefix = self.session.client, self.ctx.target.prefix
        choice = self.rng.randrange(3)
        if choice == 0:
            path = f"{prefix}/jobs/{job.id}/wait?timeout=20000"
            conn.write(encode(client.request("GET", path)))
            return
        body, task_id = self.session.compose("quick")
        request = client.request("POST", f"{prefix}/jobs", body=body)
        if choice == 1 or not self.is_late:
            conn.write(encode(request)[: -len(body) // 2])
            return
        call_us = now_us()
        conn.write(encode(request))
        self.session.abandoned(conn.name, task_id, call_us)


@check("A2 A3 S5 R1 W2 W6 G1 G4", needs=("bodies.quick",), places=ALL, order=80, limit_s=120)
async def a_storm_of_calls(ctx: Context) -> None:
    """Submits, polls, waits, results, bursts and vanishing clients, all at once."""
    storm = _Storm(ctx, 12.0 if ctx.is_full else 1.8)
    clients = [storm.submitter() for _ in range(3)] + [storm.poller() for _ in range(2)]
    clients += [storm.waiter() for _ in range(2)] + [storm.burster(), storm.vanisher()]
    await asyncio.gather(*clients)
    await ctx.session.settle()
    await census(ctx)


@check("A11", needs=("bodies.slow",), places=ALL, order=95, limit_s=120)
async def at_rest_every_place_is_free(ctx: Context) -> None:
    """After everything, exactly `max_queue` jobs are admitted."""
    bound = ctx.session.max_queue
    if bound is None or bound < 1:
        return
    deadline_us = now_us() + int(ctx.session.patience_s() * 1e6)
    while True:
        sent = await ctx.session.burst("slow", bound + 2, padding=0)
        admitted = sum(one.job is not None for one in sent)
        hopeless = now_us() > deadline_us or ctx.session.is_full_of_stuck
        if admitted >= bound or hopeless or not _all_answered(sent):
            break
        # A submit whose client vanished may have been admitted and still run.
        await ctx.session.settle()
        await asyncio.sleep(0.1)
    if admitted == bound:
        ctx.ok("A11")
    elif admitted < bound and _all_answered(sent):
        too_few(ctx, admitted, bound, [one.answer for one in sent if one.refused][:1])


def _all_answered(sent: list[Submitted]) -> bool:
    return all(one.answer.ok for one in sent)
