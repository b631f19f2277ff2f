"""Faults of admission, of retention, and of handing the request out."""

from collections import deque
from typing import Any

from counterfoil_conformance.mutants.ledger import ledger_fault
from counterfoil_server import rules
from counterfoil_server.ledger import JobLedger, Snapshot, State, TakenRequest

# Admission


@ledger_fault("depth-counts-retained", "A1 A2 A11")
class _CountsRetained(JobLedger):
    """Depth tells how many jobs are known."""

    def depth(self) -> int:
        return len(self._jobs)


@ledger_fault("depth-counts-running-only", "A1")
class _CountsRunning(JobLedger):
    """Depth tells how many jobs run."""

    def depth(self) -> int:
        return sum(job.seen.state is State.RUNNING for job in list(self._jobs.values()))


@ledger_fault("depth-checked-then-counted", "A2 A3", cheapest="schedules")
class _ChecksThenActs(JobLedger):
    """D3: the check and the increment are two critical sections."""

    def _admit(self) -> bool:
        if not rules.has_place(self.depth(), self.limits.max_queue):
            return False
        with self._turnstile:
            self._depth += 1
        return True


@ledger_fault("depth-without-a-lock", "A1 A2 A3", cheapest="schedules")
class _NoLock(JobLedger):
    """D2: depth is a plain integer, read and written without a lock."""

    def _admit(self) -> bool:
        if not rules.has_place(self._depth, self.limits.max_queue):
            return False
        self._depth += 1
        return True


@ledger_fault("place-free-after-the-end", "A5 A3", cheapest="schedules")
class _FreedLate(JobLedger):
    """The end is published before the place is free."""

    def _close(self, job: Any, state: State, result: Any, error: Any) -> None:
        job.seen = job.seen._replace(
            state=state, completed_at=self._clock(), result=result, error=error
        )
        with self._turnstile:
            self._ended.append(job)
            self._depth -= 1


@ledger_fault("recorded-after-the-answer", "A10 S8")
class _RecordedLate(JobLedger):
    """A job is found from the second read on."""

    def snapshot(self, job_id: str) -> Snapshot | None:
        seen = super().snapshot(job_id)
        read: set[str] = self.__dict__.setdefault("read_once", set())
        if job_id in read:
            return seen
        read.add(job_id)
        return None


# Retention


@ledger_fault("reads-evict", "R2 R9 R6")
class _ReadsEvict(JobLedger):
    """A read sweeps, too."""

    def snapshot(self, job_id: str) -> Snapshot | None:
        self._sweep()
        return super().snapshot(job_id)


@ledger_fault("age-reached-is-too-old", "R9 R6")
class _AgeReached(JobLedger):
    """A job whose age is just the TTL is evicted."""

    def _expired(self, job: Any, now: int) -> bool:
        return bool(now - job.seen.completed_at >= self.limits.job_ttl_ms)


@ledger_fault("sweep-walks-over-all", "R8", cheapest="cost")
class _WalksOverAll(JobLedger):
    """Every submit looks at every job."""

    def _sweep(self) -> None:
        super()._sweep()
        with self._table:
            self.__dict__["terminal"] = sum(j.seen.state.terminal for j in self._jobs.values())


@ledger_fault("negative-keeps-all", "R4")
class _NegativeKeepsAll(JobLedger):
    """`max_completed` below 0 retains everything."""

    def _sweep(self) -> None:
        if self.limits.max_completed >= 0:
            super()._sweep()


@ledger_fault("none-kept-orphans", "R4 R3")
class _OrphansWhenNoneKept(JobLedger):
    """D5: a job that outlived an older one's eviction is in no order and is never evicted."""

    def _close(self, job: Any, state: State, result: Any, error: Any) -> None:
        super()._close(job, state, result, error)
        older = next(iter(self._jobs.values()))
        if older is not job and job in self._ended:
            self._ended.remove(job)


@ledger_fault("count-takes-all", "R9 R6")
class _TakesAll(JobLedger):
    """Once too many are retained, all are evicted."""

    def _sweep(self) -> None:
        if len(self._ended) > max(self.limits.max_completed, 0):
            with self._table:
                self._jobs = {k: j for k, j in self._jobs.items() if j not in self._ended}
                self._ended = deque()
        super()._sweep()


@ledger_fault("count-takes-live-jobs", "R1 R9 A1", cheapest="sequences")
class _TakesLive(JobLedger):
    """Eviction by count takes the first job of the table, whatever its state."""

    def _sweep(self) -> None:
        super()._sweep()
        with self._table:
            if len(self._jobs) > max(self.limits.max_completed, 0) + 2:
                del self._jobs[next(iter(self._jobs))]


# Handing out


@ledger_fault("payload-twice", "Q1")
class _PayloadTwice(JobLedger):
    """The payload is handed out every time."""

    def take_request(self, job_id: str) -> TakenRequest | None:
        job = self._find(job_id)
        return None if job is None else TakenRequest(job.seen.task_id, job.payload)


@ledger_fault("payload-taken-in-two-steps", "Q1", cheapest="schedules")
class _TakenInSteps(JobLedger):
    """The payload is read and cleared in two steps, without the job's mutex."""

    def take_request(self, job_id: str) -> TakenRequest | None:
        job = self._find(job_id)
        if job is None:
            return None
        payload = job.payload
        job.payload = None
        return TakenRequest(job.seen.task_id, payload)


@ledger_fault("payload-kept", "Q3", cheapest="sequences")
class _PayloadKept(JobLedger):
    """A handed-out payload stays referenced."""

    def take_request(self, job_id: str) -> TakenRequest | None:
        taken = super().take_request(job_id)
        self.__dict__.setdefault("kept", []).append(taken)
        return taken


@ledger_fault("task-id-goes-with-the-payload", "Q2")
class _TaskIdGone(JobLedger):
    """The task id leaves with the payload."""

    def take_request(self, job_id: str) -> TakenRequest | None:
        taken = super().take_request(job_id)
        job = self._find(job_id)
        if job is not None:
            job.seen = job.seen._replace(task_id="")
        return taken
