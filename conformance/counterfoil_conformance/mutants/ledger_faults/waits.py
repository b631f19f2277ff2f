"""Faults of waiting: who is woken, and how long one sleeps."""

from typing import Any

from counterfoil_conformance.mutants.ledger import ledger_fault
from counterfoil_server.ledger import JobLedger, Snapshot, State, Watch

# Waiting


@ledger_fault("look-then-register", "W2", cheapest="schedules")
class _LooksThenRegisters(JobLedger):
    """D4: a waiter's check and its registration are not one critical section."""

    def _watch(self, job: Any, callback: Any) -> Watch:
        watch = Watch(job)
        if job.seen.state.terminal:
            self._tell(callback, job.seen)
        else:
            with job.mutex:
                job.watches[watch] = callback
        return watch


@ledger_fault("wakes-one", "W2 W6", cheapest="schedules")
class _WakesOne(JobLedger):
    """Only the first waiter is woken."""

    def _wake(self, job: Any) -> None:
        watches, job.watches = job.watches, {}
        for callback in list(watches.values())[:1]:
            self._tell(callback, job.seen)


@ledger_fault("failure-wakes-nobody", "W2", cheapest="schedules")
class _SilentFailure(JobLedger):
    """Only a done job wakes its waiters."""

    def _wake(self, job: Any) -> None:
        if job.seen.state is State.DONE:
            super()._wake(job)


@ledger_fault("ended-jobs-are-waited-for", "W1", cheapest="sequences")
class _WaitsForEnded(JobLedger):
    """A wait on an ended job sleeps its budget out."""

    def _watch(self, job: Any, callback: Any) -> Watch:
        watch = Watch(job)
        with job.mutex:
            job.watches[watch] = callback
        return watch


@ledger_fault("start-ends-the-wait", "W4", cheapest="schedules")
class _StartWakes(JobLedger):
    """A waiter of a running job is answered at once."""

    def wait(self, job_id: str, budget_ms: int) -> Snapshot | None:
        seen = self.snapshot(job_id)
        running = seen is not None and seen.state is State.RUNNING
        return seen if running else super().wait(job_id, budget_ms)


@ledger_fault("budget-in-tens", "W4", cheapest="schedules")
class _TenTimes(JobLedger):
    """A wait lasts ten times its budget."""

    def wait(self, job_id: str, budget_ms: int) -> Snapshot | None:
        return super().wait(job_id, budget_ms * 10)


@ledger_fault("expired-wait-is-unknown", "W4 S8 A10 R7 W7", cheapest="schedules")
class _ExpiredUnknown(JobLedger):
    """A wait whose budget runs out says that the job is unknown."""

    def wait(self, job_id: str, budget_ms: int) -> Snapshot | None:
        seen = super().wait(job_id, budget_ms)
        return seen if seen is not None and seen.state.terminal else None


@ledger_fault("unknown-is-waited-for", "W7", cheapest="schedules")
class _WaitsForUnknown(JobLedger):
    """A wait on an unknown id lasts its budget."""

    def wait(self, job_id: str, budget_ms: int) -> Snapshot | None:
        if self._find(job_id) is None:
            super().wait(self.submit("", "") or "", budget_ms)
        return super().wait(job_id, budget_ms)
