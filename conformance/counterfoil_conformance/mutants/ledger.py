"""Seeded faults of the shipped ledger, as seen by calling it.

Each is a small override of `JobLedger`, bound to the clauses it may be reported under. Those that
also show over HTTP are seeded in `wire_faults.ledger` and are taken from there; the ones below show
only to a caller of the ledger, or only between threads. `cheapest` names the layer that must find
the fault: the first in `layers.LAYERS`, which stand in order of cost, that can see it at all.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from counterfoil_conformance.mutants.wire import WIRE_FAULTS, load_faults
from counterfoil_server import rules
from counterfoil_server.ledger import (
    JobLedger,
    Ready,
    Snapshot,
    State,
    TakenRequest,
    Watch,
)
from counterfoil_spec.clauses import CLAUSES, clause_ids

__all__ = ["LEDGER_FAULTS", "LedgerFault", "all_ledger_faults"]


@dataclass(frozen=True, slots=True)
class LedgerFault:
    """One fault of the ledger; `cheapest` is the layer that must find it."""

    name: str
    sentence: str
    clauses: tuple[str, ...]
    cls: type[JobLedger]
    cheapest: str = "sequences"


LEDGER_FAULTS: Final[dict[str, LedgerFault]] = {}


def ledger_fault(
    name: str, clauses: str, *, cheapest: str = "sequences"
) -> Callable[[type[JobLedger]], type[JobLedger]]:
    """Seed the decorated subclass; its docstring is the fault's sentence."""

    def seed(cls: type[JobLedger]) -> type[JobLedger]:
        sentence = (cls.__doc__ or "").strip()
        LEDGER_FAULTS[name] = LedgerFault(name, sentence, clause_ids(clauses), cls, cheapest)
        return cls

    return seed


def all_ledger_faults() -> dict[str, LedgerFault]:
    """The faults below, and those of the wire's that are overrides of the ledger alone."""
    load_faults()
    shared = {
        fault.name: LedgerFault(
            fault.name,
            fault.sentence,
            (*fault.clauses, *_SEEN_FROM_WITHIN, *_ALSO.get(fault.name, ())),
            fault.parts[JobLedger],
            _CHEAPEST.get(fault.name, "sequences"),
        )
        for fault in WIRE_FAULTS.values()
        if set(fault.parts) == {JobLedger} and any(CLAUSES[c].at_ledger for c in fault.clauses)
    }
    return {**shared, **LEDGER_FAULTS}


# A caller of the ledger may read the depth itself, and the completion time.
_SEEN_FROM_WITHIN: Final = ("A1", "S7")
# A caller who ends jobs itself also sees that an end it was granted is not the one that shows.
_ALSO: Final = {"budget-makes-failed": ("S3",)}
# Those of the wire's faults that take two threads, or time, to show.
_CHEAPEST: Final = {
    "first-waiter-only": "schedules",
    "timeout-wakes-nobody": "schedules",
    "start-wakes-waiters": "schedules",
    "state-before-error": "schedules",
}


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


@ledger_fault("none-kept-orphans", "R4")
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


@ledger_fault("count-takes-live-jobs", "R1 R9 A1")
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


@ledger_fault("payload-kept", "Q3")
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


@ledger_fault("ended-jobs-are-waited-for", "W1")
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
