"""One run against one target: the calls, and what brings a target into the state a check needs.

`Calls` is the contract as a typed API; here are the steps made of several calls: filling the queue,
bursts whose last bytes go out together, waiting until all is quiet. What a run knows of its target
beside the answers (the bound, the process, whether it is fresh) is kept here too.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from counterfoil_conformance.run import Publish, RunOptions
from counterfoil_conformance.wire.answer import Answer, now_us
from counterfoil_conformance.wire.calls import Calls, TargetGone
from counterfoil_conformance.wire.client import HUNG_OFTEN, Connection, encode
from counterfoil_conformance.wire.jobs import Job, Submitted
from counterfoil_conformance.wire.reading import Reading
from counterfoil_conformance.wire.reporting import CURRENT_CHECK
from counterfoil_conformance.wire.target import Target

__all__ = ["CURRENT_CHECK", "Job", "Session", "Submitted", "TargetGone"]


class Session(Calls):
    """One run against one target."""

    def __init__(self, target: Target, options: RunOptions, publish: Publish) -> None:
        super().__init__(target, options, publish)
        self.process: Any = None
        self.is_fresh = False
        self.was_clogged = False
        self.odd_order = False
        self.forgotten: set[str] = set()
        self.sharing = asyncio.Lock()
        self.shared: Job | None = None

    async def until_terminal(
        self, job: Job, timeout_s: float, *, period_s: float = 0.02
    ) -> Reading | None:
        """Poll until a read shows the job terminal or unknown; None if that did not come.

        A job so long past its budget that this is a finding is not waited for any longer.
        """
        deadline_us = now_us() + int(timeout_s * 1e6)
        conn = await self.client.connect()
        steady = conn if isinstance(conn, Connection) else None
        try:
            while now_us() < deadline_us:
                reading = await self.status(job, conn=steady if _usable(steady) else None)
                if job.terminal:
                    return reading
                if self.is_overdue(job):
                    self.give_up(job)
                    break
                await asyncio.sleep(period_s)
        finally:
            if steady is not None:
                steady.close()
        return None

    async def settle(
        self, timeout_s: float | None = None, *, seen: Callable[[list[Job]], None] | None = None
    ) -> bool:
        """Wait until every job we know of is terminal; whether that came about.

        `seen` is called after every round of reads, with the jobs that were read in it.

        A job that did not end in ample time is not waited for again; with a budget it is S9.
        """
        limit_s = self.patience_s() if timeout_s is None else timeout_s
        deadline_us = now_us() + int(limit_s * 1e6)

        def waited_for() -> list[Job]:
            return [j for j in self.jobs.values() if not (j.terminal or self.is_given_up(j))]

        live, given_up = waited_for(), False
        while live and now_us() < deadline_us:
            read = live[:8]
            await asyncio.gather(*(self.status(job) for job in read))
            if seen is not None and len(read) == len(live):
                seen(read)
            for job in filter(self.is_overdue, read):
                self.give_up(job)
                given_up = True
            live = [job for job in live if not (job.terminal or self.is_given_up(job))]
            if live:
                await asyncio.sleep(0.02)
        for job in live:
            self.give_up(job)
        return not (live or given_up)

    async def note_clogged(self) -> None:
        """After a long refusal: full, and no job that we know of lives? Nobody waits as long again.

        An admitted submit takes it back.
        """
        open_jobs = [job for job in self.jobs.values() if not job.terminal][-16:]
        await asyncio.gather(*(self.status(job) for job in open_jobs))
        self.clogged = all(job.terminal for job in open_jobs)
        self.was_clogged |= self.clogged

    @property
    def is_broken(self) -> bool:
        """Whether a MUST was found broken, and the target holds a run up: no job ends, or hangs.

        One that is only slow has its time.
        """
        hung = self.client.hung >= HUNG_OFTEN
        return self.has_failed and (self.has_stuck or self.was_clogged or hung)

    async def fill(self, kind: str = "slow", most: int = 256) -> tuple[list[Job], Answer | None]:
        """Submit until a 429: the jobs admitted, and that answer (None: it never came)."""
        jobs: list[Job] = []
        for _ in range(most):
            sent = await self.submit(kind)
            if sent.job is None:
                return jobs, sent.answer if sent.refused else None
            jobs.append(sent.job)
        return jobs, None

    async def burst(
        self, kind: str, count: int, *, padding: int = 20_000, bodies: list[bytes] | None = None
    ) -> list[Submitted]:
        """Submits on connections opened before, whose last bytes go out together.

        The bodies are padded with JSON whitespace so that a server has something to chew on in
        each; only the closing brace is held back.
        """
        prepared = []
        for number in range(count):
            body, task_id = self.compose(kind) if bodies is None else (bodies[number], None)
            limit = self.target.limits.max_body
            pad = padding if limit is None else max(0, min(padding, limit // 2 - len(body)))
            text = body.rstrip()[:-1] + b" " * pad + b"}"
            request = self.client.request("POST", f"{self.target.prefix}/jobs", body=text)
            prepared.append((request, text, task_id))
        conns = await asyncio.gather(*(self.client.connect() for _ in prepared))
        ready = [(c, p) for c, p in zip(conns, prepared, strict=True) if isinstance(c, Connection)]
        for conn, (request, _, _) in ready:
            conn.write(encode(request)[:-1])
        await asyncio.gather(*(conn.drain() for conn, _ in ready))
        await asyncio.sleep(0.03)
        calls = [conn.write(b"}") for conn, _ in ready]
        answers = await asyncio.gather(
            *(
                conn.read_answer(request, call_us)
                for (conn, (request, _, _)), call_us in zip(ready, calls, strict=True)
            )
        )
        done = []
        for answer, (conn, (_, text, task_id)) in zip(answers, ready, strict=True):
            done.append(self.submitted(answer, kind, text, task_id))
            conn.close()
        return done

    def forget(self) -> None:
        """Drop the history so far: others were still using the target."""
        self.forgotten |= set(self.jobs)
        self.history.clear()
        self.answers.clear()
        self.jobs.clear()

    async def aclose(self) -> None:
        """Close every connection."""
        await self.client.aclose()


def _usable(conn: Connection | None) -> bool:
    return conn is not None and conn.alive
