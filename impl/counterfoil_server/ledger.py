"""The job ledger that ships: thread-safe, in memory, and nothing else.

It issues an id for every request it admits, keeps the state of that job, tells whoever waits when
the job has ended, and forgets it once its retention is over. It knows nothing of HTTP, workers or
metrics (C6). What follows is the argument that it is right; the code below is short so that the
argument can be checked against it line by line.

**What is shared.** Per job, a `_Job`: `seen`, the published `Snapshot`; `payload`; `watches`. Per
ledger: `_jobs`, the id map; `_ended`, the terminal jobs in order of completion; `_depth`, the
places taken.

**Three kinds of lock**, always taken in this order, and never two of one kind:

    table  ->  job  ->  turnstile

- the *table* guards removal from `_jobs` and `_ended`, and insertion into `_jobs`;
- the *job's* mutex guards every change of that job, and the wake-up of those who watch it (C2);
- the *turnstile* guards `_depth`, and makes "this job has ended" and "its place is free" one event.

No method holds the table while it takes another lock today; the order is what an addition must keep
(C5). Callbacks run under the job's mutex and must not call the ledger.

**One step to publish (C1).** A `Snapshot` is immutable, and a job changes by the store of one
reference to a new one. So a read is one load, needs no lock, and cannot be torn (S6): it sees all
of a transition or nothing of it. Only `_start` and `_close` store, under the job's mutex, after a
check that the state allows it; hence one start (S2), first terminal writer wins (S4), and no
observer sees a job go back (S5).

**One step to end (A5, C4, C5).** `_close` stamps, publishes, appends to `_ended` and gives the
place back inside the turnstile. Whoever has *seen* a job terminal and then submits must pass the
turnstile, and therefore finds the place free and the completion recorded: no window breaks A5 or
R4. In the other direction the place is not free before the end is published, so nobody counts
`max_queue + 1` live jobs (A2). And since the clock is read there too, `_ended` is sorted by
`completed_at`: the jobs past their TTL are a prefix of it, the oldest by count are a prefix of it,
and a sweep pops from the left until it meets a job that may stay (R3, R4, R5). Each job is popped
once in its life, so a submit costs the same whatever is retained (R8).

**One step to enter (A3, C3).** Check and increment happen in one turn of the turnstile. The job is
recorded after its place is taken and before the id is returned: depth may run ahead of the table
(A1 allows it), never behind, and a returned id is found (A10).

**No wake-up is lost (W2, C2, C7).** `watch` is the one primitive for waiting. It looks at the state
and registers under the job's mutex; `_end` publishes and wakes under that same mutex. So a watch
registers before the end, and is woken by it, or after it, and is called at once. The blocking
`wait` and the HTTP server's waiters both stand on it.

**No live job is evicted (R1):** only `_close` appends to `_ended`, and only what is in `_ended` is
evicted.
"""

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from enum import StrEnum
from typing import Final, NamedTuple, TypeAlias

from counterfoil_server import rules

__all__ = [
    "Eviction",
    "JobLedger",
    "Limits",
    "Listener",
    "NotDone",
    "Ready",
    "Snapshot",
    "State",
    "TakenRequest",
    "Watch",
    "monotonic_ms",
    "random_job_id",
]

_log = logging.getLogger(__name__)


class State(StrEnum):
    """Where a job is (S1)."""

    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    TIMEOUT = "timeout"

    @property
    def terminal(self) -> bool:
        """Whether the state absorbs (S4)."""
        return self in _TERMINAL


_TERMINAL: Final = frozenset({State.DONE, State.FAILED, State.TIMEOUT})


class Limits(NamedTuple):
    """What the ledger is configured with.

    `max_queue` bounds depth (at or below 0 nothing is admitted, A4); a terminal job is retained for
    `job_ttl_ms` and while at most `max_completed` are (below 0 counts as 0).
    """

    max_queue: int = 16
    job_ttl_ms: int = 300_000
    max_completed: int = 100


class Snapshot(NamedTuple):
    """A job at one instant, immutable and whole.

    Times are ms of the ledger's clock. `completed_at` is set exactly when the job is terminal (S7),
    `result` exactly when it is done, `error` exactly when it failed or timed out (S6).
    """

    job_id: str
    state: State
    task_id: str
    submitted_at: int
    completed_at: int | None = None
    result: object = None
    error: str | None = None


class TakenRequest(NamedTuple):
    """What a runner is handed: `payload` is None when it was handed out before (Q1, Q2)."""

    task_id: str
    payload: object | None


class Ready(NamedTuple):
    """The answer to `result` for a done job (G1)."""

    task_id: str
    result: object


class NotDone(NamedTuple):
    """The answer to `result` for a job in any other state (G2)."""

    state: State


class Eviction(StrEnum):
    """Why a terminal job was forgotten (R3, R4)."""

    AGE = "age"
    COUNT = "count"


class Listener:
    """Told of every event as it happens; a base whose methods do nothing.

    The methods run inside the ledger's locks, so that what they count is never behind what a reader
    has seen: they must be brief, and must not call the ledger. What they raise is logged.
    """

    def admitted(self, snapshot: Snapshot) -> None:
        """A submit was admitted, and its job recorded."""

    def refused(self) -> None:
        """A submit found the queue full."""

    def started(self, snapshot: Snapshot) -> None:
        """A job began to run."""

    def ended(self, snapshot: Snapshot) -> None:
        """A job is about to be seen terminal."""

    def evicted(self, snapshot: Snapshot, cause: Eviction) -> None:
        """A terminal job was forgotten."""


Callback: TypeAlias = Callable[[Snapshot], None]


class _Job:
    """The shared record of one job; its mutex guards all but the load of `seen`."""

    __slots__ = ("mutex", "payload", "seen", "watches")

    def __init__(self, seen: Snapshot, payload: object) -> None:
        self.mutex = threading.Lock()
        self.seen = seen
        self.payload: object | None = payload
        self.watches: dict[Watch, Callback] = {}


class Watch:
    """A callback waiting for the end of one job; it outlives the job's eviction (W7)."""

    __slots__ = ("_job",)

    def __init__(self, job: _Job) -> None:
        self._job = job

    def snapshot(self) -> Snapshot:
        """The job as it is now, also when the ledger has evicted it meanwhile."""
        return self._job.seen

    def cancel(self) -> None:
        """Forget the callback, leaving nothing behind (W8). Once this returns it is not called."""
        with self._job.mutex:
            self._job.watches.pop(self, None)


def monotonic_ms() -> int:
    """Whole milliseconds of the system's monotonic clock (S7)."""
    return time.monotonic_ns() // 1_000_000


def random_job_id() -> str:
    """`job_` and 128 random bits: not guessed from others, not met twice (A8, A9)."""
    return f"job_{os.urandom(16).hex()}"


class JobLedger:
    """The ledger of one process. Every public method may be called from any thread."""

    def __init__(
        self,
        limits: Limits,
        *,
        clock: Callable[[], int] = monotonic_ms,
        new_id: Callable[[], str] = random_job_id,
        listener: Listener | None = None,
    ) -> None:
        """An empty ledger.

        `clock` gives monotonic ms. Neither it nor `new_id` may raise, and `new_id` must not repeat
        itself for ever.
        """
        self.limits = limits
        self._clock = clock
        self._new_id = new_id
        self._listener = listener or Listener()
        self._table = threading.Lock()
        self._jobs: dict[str, _Job] = {}
        self._ended: deque[_Job] = deque()
        self._turnstile = threading.Lock()
        self._depth = 0

    # Admission and retention

    def submit(self, task_id: str, payload: object) -> str | None:
        """Admit a job and return its new id; None, and no trace, when the queue is full (A6)."""
        if not self._admit():
            self._tell(self._listener.refused)
            return None
        job_id = self._record(task_id, payload)
        self._sweep()
        return job_id

    def depth(self) -> int:
        """How many places are taken: jobs pending or running (A1)."""
        with self._turnstile:
            return self._depth

    # The life of a job

    def start(self, job_id: str) -> bool:
        """PENDING -> RUNNING, once; False for any other state and for an unknown id (S2, S8)."""
        job = self._find(job_id)
        return job is not None and self._start(job)

    def finish(self, job_id: str, result: object) -> bool:
        """Any live job -> DONE; False if it had ended before, or is unknown (S3, S4, S8)."""
        return self._end(job_id, State.DONE, result=result)

    def fail(self, job_id: str, error: str) -> bool:
        """Any live job -> FAILED, with a non-empty `error`; False as for `finish`."""
        return self._end(job_id, State.FAILED, error=_spoken(error))

    def time_out(self, job_id: str, error: str) -> bool:
        """Any live job -> TIMEOUT, with a non-empty `error`; False as for `finish`."""
        return self._end(job_id, State.TIMEOUT, error=_spoken(error))

    def take_request(self, job_id: str) -> TakenRequest | None:
        """Hand the payload out, once, and keep no reference to it (Q1-Q3); None if unknown."""
        job = self._find(job_id)
        if job is None:
            return None
        with job.mutex:
            payload, job.payload = job.payload, None
        return TakenRequest(job.seen.task_id, payload)

    # Reads

    def snapshot(self, job_id: str) -> Snapshot | None:
        """The job as it is now, or None if the id is unknown (S5, S6, S8)."""
        job = self._find(job_id)
        return None if job is None else job.seen

    def result(self, job_id: str) -> Ready | NotDone | None:
        """The result of a done job, any number of times; its state otherwise; None if unknown."""
        seen = self.snapshot(job_id)
        return None if seen is None else self._outcome(seen)

    def jobs(self) -> list[Snapshot]:
        """All jobs that are not forgotten, in order of admission; its cost grows with them."""
        with self._table:
            return [job.seen for job in self._jobs.values()]

    def known(self) -> int:
        """How many jobs are not forgotten."""
        return len(self._jobs)

    # Waiting

    def watch(self, job_id: str, callback: Callback) -> Watch | None:
        """Have `callback(snapshot)` called once, when the job is terminal; at once if it is.

        The callback runs on the thread that ends the job, under the job's mutex: it must be brief
        and must not call the ledger. None if the id is unknown (W7).
        """
        job = self._find(job_id)
        return None if job is None else self._watch(job, callback)

    def wait(self, job_id: str, budget_ms: int) -> Snapshot | None:
        """Block until the job is terminal or `budget_ms` of real time are over (W1-W8).

        Returns the job as it is then, or None at once if the id is unknown.
        """
        bell = _Bell()
        watch = self.watch(job_id, bell.ring)
        if watch is None:
            return None
        try:
            bell.sleep(budget_ms)
        finally:
            watch.cancel()
        return watch.snapshot()

    # The steps. Each is one critical section, or a few in the order that the essay gives.

    def _admit(self) -> bool:
        """Take a place, if there is one: check and increment are one step (A3)."""
        with self._turnstile:
            if not rules.has_place(self._depth, self.limits.max_queue):
                return False
            self._depth += 1
            return True

    def _record(self, task_id: str, payload: object) -> str:
        """Make the job known under an id that no other job has."""
        with self._table:
            job_id = self._new_id()
            while job_id in self._jobs:
                job_id = self._new_id()
            seen = Snapshot(job_id, State.PENDING, task_id, self._clock())
            self._tell(self._listener.admitted, seen)
            self._jobs[job_id] = _Job(seen, payload)
        return job_id

    def _sweep(self) -> None:
        """Forget what retention no longer covers: first by age, then by count (R2)."""
        with self._table:
            now = self._clock()
            while self._ended and self._expired(self._ended[0], now):
                self._evict(Eviction.AGE)
            for _ in range(rules.excess(len(self._ended), self.limits.max_completed)):
                self._evict(Eviction.COUNT)

    def _expired(self, job: _Job, now: int) -> bool:
        """Whether a terminal job completed strictly more than the TTL ago (R3)."""
        completed_at = job.seen.completed_at
        assert completed_at is not None, "only terminal jobs are in the order of completion"
        return rules.has_expired(completed_at, now, self.limits.job_ttl_ms)

    def _evict(self, cause: Eviction) -> None:
        """Forget the job that completed first. The caller holds the table."""
        seen = self._ended.popleft().seen
        del self._jobs[seen.job_id]
        self._tell(self._listener.evicted, seen, cause)

    def _find(self, job_id: str) -> _Job | None:
        with self._table:
            return self._jobs.get(job_id)

    def _start(self, job: _Job) -> bool:
        """Publish RUNNING, which wakes nobody (W3)."""
        with job.mutex:
            if job.seen.state is not State.PENDING:
                return False
            running = job.seen._replace(state=State.RUNNING)
            self._tell(self._listener.started, running)
            job.seen = running
            return True

    def _end(
        self, job_id: str, state: State, *, result: object = None, error: str | None = None
    ) -> bool:
        """The terminal transition: the first one wins; publish and wake are one section (C2)."""
        job = self._find(job_id)
        if job is None:
            return False
        with job.mutex:
            if job.seen.state.terminal:
                return False
            self._close(job, state, result, error)
            self._wake(job)
            return True

    def _close(self, job: _Job, state: State, result: object, error: str | None) -> None:
        """Stamp, publish, record, release, as one event. The caller holds the job's mutex."""
        with self._turnstile:
            ended = job.seen._replace(
                state=state, completed_at=self._clock(), result=result, error=error
            )
            self._tell(self._listener.ended, ended)
            job.seen = ended
            self._ended.append(job)
            self._depth -= 1

    def _wake(self, job: _Job) -> None:
        """Call everyone who watches (W6). The caller holds the job's mutex."""
        watches, job.watches = job.watches, {}
        for callback in watches.values():
            self._tell(callback, job.seen)

    def _outcome(self, seen: Snapshot) -> Ready | NotDone:
        """What `result` makes of a job: a result only when it is done (G2)."""
        return Ready(seen.task_id, seen.result) if seen.state is State.DONE else NotDone(seen.state)

    def _watch(self, job: _Job, callback: Callback) -> Watch:
        """Look and register in one critical section, so that no end falls between the two (W2)."""
        watch = Watch(job)
        with job.mutex:
            if job.seen.state.terminal:
                self._tell(callback, job.seen)
            else:
                job.watches[watch] = callback
        return watch

    def _tell(self, callback: Callable[..., None], *words: object) -> None:
        """Call outside code; its failure is its own, and never stops a transition half-way."""
        try:
            callback(*words)
        except Exception:
            _log.exception("a callback of the ledger failed")


_FOR_EVER_MS: Final = 10**12  # a condition refuses to sleep for more than some centuries


class _Bell:
    """Where a blocked `wait` sleeps."""

    __slots__ = ("_condition", "_rung")

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._rung = False

    def ring(self, _: Snapshot) -> None:
        with self._condition:
            self._rung = True
            self._condition.notify_all()

    def sleep(self, budget_ms: int) -> None:
        with self._condition:
            self._condition.wait_for(
                lambda: self._rung, min(max(budget_ms, 0), _FOR_EVER_MS) / 1000
            )


def _spoken(error: str) -> str:
    if not error:
        raise ValueError("a job that fails or times out needs a non-empty error (S6)")
    return error
