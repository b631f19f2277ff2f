"""Jobs that run outside of this process: claims, fences, and a runner that goes silent.

An external runner claims the oldest waiting job. The claim starts the job and hands its request
out; with it comes a *fence*, a number that no other claim has, which every later word about the job
must carry, and a *lease*: if the runner neither ends the job nor renews within `lease_ms`, the job
fails. It is not handed out again: the request was handed out once (Q1), and the job ran once (S2).

A claim may wait for a job to come. What is kept of a claim is what its end needs: the request is
the runner's now, and its pictures are not held a second time.
"""

import asyncio
import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

from counterfoil_server.deadlines import Deadlines
from counterfoil_server.ledger import JobLedger
from counterfoil_server.runners import JobRunner, JobWork
from counterfoil_server.tasks import InferenceResult, InferenceTask, Item, ModelName
from counterfoil_server.turns import Turns

__all__ = ["Claim", "HandedOut", "Leases"]


class Claim(NamedTuple):
    """A job in the hands of an external runner."""

    job_id: str
    task_id: str
    images: int
    fence: int
    claimed_at: int
    traceparent: str


class HandedOut(NamedTuple):
    """A claim, and the request that is handed out with it, once."""

    claim: Claim
    task: InferenceTask


class Leases:
    """All claims that are open. Belongs to the loop's thread."""

    def __init__(
        self,
        ledger: JobLedger,
        runner: JobRunner,
        lease_ms: int,
        clock: Callable[[], int],
        on_lapse: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_lapse()` is told of every job that fails because its runner was silent."""
        self.lease_ms = lease_ms
        self.turns = Turns()
        runner.on_waiting_job = self.turns.ring
        self._on_lapse = on_lapse
        self._ledger = ledger
        self._runner = runner
        self._clock = clock
        self._fences = itertools.count(1)
        self._claims: dict[str, Claim] = {}
        self._deadlines: Deadlines[str] = Deadlines(lease_ms, clock, self._expire)

    def __len__(self) -> int:
        return len(self._claims)

    async def claim(self, wait_ms: int = 0) -> HandedOut | None:
        """Start the oldest waiting job for a runner outside; None if none came in `wait_ms`."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + wait_ms / 1000
        while (handed := self._take()) is None:
            left_s = deadline - loop.time()
            if left_s <= 0 or self.turns.over:
                return None
            await self.turns.wait(left_s)
        return handed

    def find(self, job_id: str, fence: int) -> Claim | None:
        """The open claim with this fence; None: the caller has not, or no longer, the job."""
        claim = self._claims.get(job_id)
        return claim if claim is not None and claim.fence == fence else None

    def finish(self, claim: Claim, items: Sequence[Item], model: ModelName) -> bool:
        """End the job with one item per image; it failed if none of them succeeded (G5)."""
        result = InferenceResult.of(items, model, self._clock() - claim.claimed_at)
        if result.failed:
            return self.fail(claim, result.reason)
        return self._close(claim, self._ledger.finish(claim.job_id, result))

    def fail(self, claim: Claim, error: str) -> bool:
        """End the job as failed."""
        return self._close(claim, self._ledger.fail(claim.job_id, error))

    def time_out(self, claim: Claim, error: str) -> bool:
        """End the job as timed out."""
        return self._close(claim, self._ledger.time_out(claim.job_id, error))

    def renew(self, claim: Claim) -> bool:
        """Let the lease run anew; refused once the job has ended."""
        seen = self._ledger.snapshot(claim.job_id)
        if seen is None or seen.state.terminal:
            return self._close(claim, accepted=False)
        self._deadlines.renew(claim.job_id, self._clock())
        return True

    def close(self) -> None:
        """Stop the timer, and let those go who wait for a job."""
        self.turns.end()
        self._deadlines.close()

    def _take(self) -> HandedOut | None:
        while (work := self._runner.take()) is not None:
            if not self._ledger.start(work.job_id):
                continue
            taken = self._ledger.take_request(work.job_id)
            if taken is not None and isinstance(taken.payload, InferenceTask):
                return self._open(work, taken.task_id, taken.payload)
        return None

    def _open(self, work: JobWork, task_id: str, task: InferenceTask) -> HandedOut:
        now = self._clock()
        trace = work.origin.traceparent
        claim = Claim(work.job_id, task_id, len(task.images), next(self._fences), now, trace)
        self._claims[claim.job_id] = claim
        self._deadlines.add(claim.job_id, now)
        return HandedOut(claim, task)

    def _close(self, claim: Claim, accepted: bool) -> bool:
        self._claims.pop(claim.job_id, None)
        self._deadlines.discard(claim.job_id)
        self._runner.forget(claim.job_id)
        if accepted:
            self._runner.note_run((self._clock() - claim.claimed_at) / 1000)
        return accepted

    def _expire(self, job_id: str) -> None:
        claim = self._claims.get(job_id)
        if claim is not None and self.fail(claim, f"its runner was silent for {self.lease_ms} ms"):
            self._on_lapse()
