"""Faults of the state machine, of what reads show, and of the locks that keep both whole."""

from typing import Any

from counterfoil_conformance.mutants.ledger import ledger_fault
from counterfoil_server.ledger import JobLedger, Ready, Snapshot, State

# The state machine


@ledger_fault("starts-again", "S2")
class _StartsAgain(JobLedger):
    """A running job may be started once more."""

    def _start(self, job: Any) -> bool:
        return super()._start(job) or job.seen.state is State.RUNNING


@ledger_fault("start-revives", "S2 S4 S5 S6 S7 A1")
class _StartRevives(JobLedger):
    """A start is accepted in any state: an ended job runs again."""

    def _start(self, job: Any) -> bool:
        with job.mutex:
            job.seen = job.seen._replace(state=State.RUNNING)
            return True


@ledger_fault("pending-cannot-fail", "S3 S9")
class _PendingCannotFail(JobLedger):
    """Only a running job may fail."""

    def fail(self, job_id: str, error: str) -> bool:
        seen = self.snapshot(job_id)
        pending = seen is not None and seen.state is State.PENDING
        return False if pending else super().fail(job_id, error)


@ledger_fault("second-end-says-true", "S4")
class _SaysTrue(JobLedger):
    """A late end changes nothing and is told that it was accepted."""

    def _end(self, job_id: str, state: State, *, result: Any = None, error: Any = None) -> bool:
        known = self.snapshot(job_id) is not None
        return super()._end(job_id, state, result=result, error=error) or known


@ledger_fault("late-end-moves-the-time", "S4 R6 S7")
class _MovesTheTime(JobLedger):
    """A late end is refused but stamps the job anew."""

    def _end(self, job_id: str, state: State, *, result: Any = None, error: Any = None) -> bool:
        ended = super()._end(job_id, state, result=result, error=error)
        job = self._find(job_id)
        if not ended and job is not None:
            job.seen = job.seen._replace(completed_at=self._clock())
        return ended


@ledger_fault("no-time-on-timeout", "S7")
class _NoTime(JobLedger):
    """A timed-out job has no completion time in its snapshots."""

    def snapshot(self, job_id: str) -> Snapshot | None:
        seen = super().snapshot(job_id)
        timed_out = seen is not None and seen.state is State.TIMEOUT
        return seen._replace(completed_at=None) if seen and timed_out else seen


@ledger_fault("time-on-live-jobs", "S7")
class _TimeOnLive(JobLedger):
    """A running job has a completion time already."""

    def snapshot(self, job_id: str) -> Snapshot | None:
        seen = super().snapshot(job_id)
        running = seen is not None and seen.state is State.RUNNING
        return seen._replace(completed_at=self._clock()) if seen and running else seen


@ledger_fault("completed-before-submitted", "S7")
class _CompletedBefore(JobLedger):
    """The completion time lies before the submission."""

    def snapshot(self, job_id: str) -> Snapshot | None:
        seen = super().snapshot(job_id)
        if seen is None or seen.completed_at is None:
            return seen
        return seen._replace(completed_at=seen.submitted_at - 1)


@ledger_fault("unknown-start-accepted", "S8")
class _UnknownStarts(JobLedger):
    """Starting an unknown job is accepted."""

    def start(self, job_id: str) -> bool:
        return self._find(job_id) is None or super().start(job_id)


# Results and locks


@ledger_fault("result-while-running", "G2 S6")
class _EarlyResult(JobLedger):
    """A running job has a result: nothing."""

    def result(self, job_id: str) -> Any:
        seen = self.snapshot(job_id)
        if seen is not None and seen.state is State.RUNNING:
            return Ready(seen.task_id, "")
        return super().result(job_id)


@ledger_fault("end-checked-outside-the-lock", "S4 A1 A2", cheapest="schedules")
class _EndsInSteps(JobLedger):
    """Two terminal calls can both find the job live."""

    def _end(self, job_id: str, state: State, *, result: Any = None, error: Any = None) -> bool:
        job = self._find(job_id)
        if job is None or job.seen.state.terminal:
            return False
        with job.mutex:
            self._close(job, state, result, error)
            self._wake(job)
            return True


@ledger_fault("start-without-the-lock", "S2 S5 S4", cheapest="schedules")
class _StartsInSteps(JobLedger):
    """Two starts can both find the job pending."""

    def _start(self, job: Any) -> bool:
        if job.seen.state is not State.PENDING:
            return False
        job.seen = job.seen._replace(state=State.RUNNING)
        return True


@ledger_fault("state-before-result", "S6 G1 R6 S4 S5", cheapest="schedules")
class _PublishedInSteps(JobLedger):
    """D1: the state is published, and then the result."""

    def _close(self, job: Any, state: State, result: Any, error: Any) -> None:
        with self._turnstile:
            whole = job.seen._replace(
                state=state, completed_at=self._clock(), result=result, error=error
            )
            job.seen = whole._replace(result=None, error=None)
            job.seen = whole
            self._ended.append(job)
            self._depth -= 1


@ledger_fault("locks-in-reverse", "C5", cheapest="schedules")
class _LocksInReverse(JobLedger):
    """One path takes the table first, another the turnstile: a deadlock."""

    def _sweep(self) -> None:
        with self._turnstile, self._table:
            pass
        super()._sweep()

    def _close(self, job: Any, state: State, result: Any, error: Any) -> None:
        with self._table:
            super()._close(job, state, result, error)
