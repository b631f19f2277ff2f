"""The law: what a job ledger may do, one pure function per action.

A *ledger* issues an id for every request it admits and keeps the record of that job until the job
has ended and its retention is over. This file is the whole of that law. Everything that judges a
ledger stands on it: the model checker walks its graph, the lemmas prove its functions for all
integers, the oracle filters histories with it, the generated tests call its actions side by side
with a subject's.

How to read it. A `Ledger` is a value: the jobs still *live* (pending or running) in order of
admission, the terminal ones still *retained* in order of completion, the *depth* that admission
looks at, the clock. An action takes a ledger and answers with a `Step`: the next ledger and a
`Reply`, and, where the action was refused, the clause that refuses it and why. A refusal never
changes the ledger.

Time is data: `now` moves only by `advance`. Times are whole milliseconds of one monotonic clock.

A submit is two steps, `admit` and then `sweep`: the place is taken and the job recorded, and only
then are old jobs evicted. Other calls may come between the two (a correct ledger does not hold one
lock over both), so the law keeps them apart, and `sweeps_owed` counts the submits in between.

The trap: *depth* is a field of its own, as in any real ledger, and not the length of `live`. That
the two agree (A1), and that a place comes back exactly once (A5), is proved of these functions,
not assumed by them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple, TypeAlias, TypeVar

from counterfoil_spec.clauses import clause_ids

__all__ = [
    "ACTIONS",
    "Action",
    "Job",
    "JobId",
    "Ledger",
    "Limits",
    "Outcome",
    "Reply",
    "State",
    "Step",
    "admit",
    "advance",
    "empty_ledger",
    "fail",
    "finish",
    "has_expired",
    "is_overdue",
    "result",
    "snapshot",
    "start",
    "submit",
    "survivors",
    "sweep",
    "take_request",
    "time_out",
    "wait",
]

JobId: TypeAlias = int


class State(StrEnum):
    """Where a job is (S1). The order of observation is pending < running < terminal (S5)."""

    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    TIMEOUT = "timeout"

    @property
    def terminal(self) -> bool:
        """Whether the state absorbs (S4)."""
        return self not in (State.PENDING, State.RUNNING)

    @property
    def rank(self) -> int:
        """0 pending, 1 running, 2 terminal: no observer sees it fall (S5)."""
        return 2 if self.terminal else int(self is State.RUNNING)


class Limits(NamedTuple):
    """What a ledger is configured with.

    `max_queue` bounds depth (at or below 0 it admits nothing, A4); `job_ttl_ms` and
    `max_completed` bound retention (below 0 `max_completed` counts as 0); `timeout_ms` is the job
    budget (0 = none).
    """

    max_queue: int
    job_ttl_ms: int
    max_completed: int
    timeout_ms: int = 0


class Job(NamedTuple):
    """The record of one admitted job.

    `payload` is None once handed out (Q1, Q3) while `task_id` stays (Q2). `result` is present
    exactly when done, a non-empty `error` exactly when failed or timed out (S6), `completed_at`
    (ms) exactly when terminal (S7).
    """

    id: JobId
    state: State
    task_id: str
    payload: object | None
    submitted_at: int
    completed_at: int | None = None
    result: object | None = None
    error: str | None = None


class Ledger(NamedTuple):
    """Everything the law remembers.

    `live` is in order of admission, `retained` in order of completion (the oldest first); `depth`
    counts the places taken; `issued` is how many ids were ever given out (A8); `sweeps_owed` counts
    submits that have admitted and not yet swept; `now` is in ms.
    """

    limits: Limits
    live: tuple[Job, ...] = ()
    retained: tuple[Job, ...] = ()
    depth: int = 0
    issued: int = 0
    sweeps_owed: int = 0
    now: int = 0

    def find(self, job_id: JobId) -> Job | None:
        """The job with this id, or None if it never was or is gone (S8, R7)."""
        for job in self.live:
            if job.id == job_id:
                return job
        for job in self.retained:
            if job.id == job_id:
                return job
        return None


class Outcome(StrEnum):
    """How an action was answered: the part of a reply that does not depend on data."""

    ADMITTED = "admitted"
    QUEUE_FULL = "queue_full"
    ACCEPTED = "accepted"
    REFUSED = "refused"
    NOT_FOUND = "not_found"
    FOUND = "found"
    PAYLOAD = "payload"
    NO_PAYLOAD = "no_payload"
    READY = "ready"
    NOT_DONE = "not_done"
    BLOCKED = "blocked"
    EXPIRED = "expired"


class Reply(NamedTuple):
    """What the caller is told: the outcome, and the job as it is seen, where there is one."""

    outcome: Outcome
    job: Job | None = None


class Step(NamedTuple):
    """An action's answer: the next ledger and the reply; `clause` and `why` where it is refused."""

    ledger: Ledger
    reply: Reply
    clause: str | None = None
    why: str = ""

    @property
    def accepted(self) -> bool:
        """Whether the action took place."""
        return self.clause is None


@dataclass(frozen=True, slots=True)
class Action:
    """An entry of the table of actions: what it is called, what it does, which clauses it is."""

    name: str
    apply: Callable[..., Step]
    clauses: tuple[str, ...]
    reads_only: bool


ACTIONS: Final[dict[str, Action]] = {}
_Function = TypeVar("_Function", bound=Callable[..., Step])


def action(*, clauses: str, reads_only: bool = False) -> Callable[[_Function], _Function]:
    """Enter a function into the table of actions, unchanged."""

    def enter(function: _Function) -> _Function:
        name = function.__name__
        ACTIONS[name] = Action(name, function, clause_ids(clauses), reads_only)
        return function

    return enter


def empty_ledger(limits: Limits, now: int = 0) -> Ledger:
    """A ledger that has never issued an id, at `now` ms."""
    return Ledger(limits, now=now)


# Admission and retention


@action(clauses="S1 A2 A3 A4 A6 A8 A10")
def admit(ledger: Ledger, task_id: str = "", payload: object = "") -> Step:
    """Check the bound and take the place in one step; the new job is pending and found at once."""
    if ledger.depth >= ledger.limits.max_queue:
        return Step(ledger, Reply(Outcome.QUEUE_FULL), "A3", "depth has reached max_queue")
    job = Job(ledger.issued, State.PENDING, task_id, payload, ledger.now)
    after = ledger._replace(
        live=(*ledger.live, job),
        depth=ledger.depth + 1,
        issued=ledger.issued + 1,
        sweeps_owed=ledger.sweeps_owed + 1,
    )
    return Step(after, Reply(Outcome.ADMITTED, job))


@action(clauses="R1 R2 R3 R4 R5 R9")
def sweep(ledger: Ledger) -> Step:
    """Evict what retention no longer covers: the second half of an admitted submit."""
    if ledger.sweeps_owed == 0:
        return Step(ledger, Reply(Outcome.REFUSED), "R2", "eviction happens only inside a submit")
    after = ledger._replace(
        retained=survivors(ledger.retained, ledger.limits, ledger.now),
        sweeps_owed=ledger.sweeps_owed - 1,
    )
    return Step(after, Reply(Outcome.ACCEPTED))


def submit(ledger: Ledger, task_id: str = "", payload: object = "") -> Step:
    """`admit`, then `sweep`, with nothing between: a submit as a sequential caller sees it."""
    step = admit(ledger, task_id, payload)
    return step._replace(ledger=sweep(step.ledger).ledger) if step.accepted else step


def has_expired(job: Job, limits: Limits, now: int) -> bool:
    """Whether a terminal job completed strictly more than `job_ttl_ms` ago (R3)."""
    return job.completed_at is not None and now - job.completed_at > limits.job_ttl_ms


def survivors(retained: tuple[Job, ...], limits: Limits, now: int) -> tuple[Job, ...]:
    """The jobs a sweep leaves: by age first (R3), then the most recently completed (R4, R5, R9)."""
    young = tuple(job for job in retained if not has_expired(job, limits, now))
    excess = len(young) - max(limits.max_completed, 0)
    return young[excess:] if excess > 0 else young


# The life of a job


@action(clauses="S2 S8")
def start(ledger: Ledger, job_id: JobId) -> Step:
    """PENDING -> RUNNING, once; refused for any other state and for an unknown job."""
    job = ledger.find(job_id)
    if job is None:
        return _not_found(ledger)
    if job.state is not State.PENDING:
        return Step(ledger, Reply(Outcome.REFUSED, job), "S2", "only a pending job may start")
    running = job._replace(state=State.RUNNING)
    return Step(_with_live(ledger, running), Reply(Outcome.ACCEPTED, running))


@action(clauses="S3 S4 S6 S8 A5")
def finish(ledger: Ledger, job_id: JobId, result: object = "") -> Step:
    """Any live job -> DONE, with its result."""
    return _end(ledger, job_id, State.DONE, result=result)


@action(clauses="S3 S4 S6 S8 A5 T5")
def fail(ledger: Ledger, job_id: JobId, error: str = "failed") -> Step:
    """Any live job -> FAILED, with a non-empty error."""
    return _end(ledger, job_id, State.FAILED, error=error)


@action(clauses="S3 S4 S6 S8 A5 T1 T2 T6")
def time_out(ledger: Ledger, job_id: JobId, error: str = "timed out") -> Step:
    """Any live job -> TIMEOUT, with a non-empty error; who enforces the budget decides when."""
    return _end(ledger, job_id, State.TIMEOUT, error=error)


def is_overdue(job: Job, limits: Limits, now: int) -> bool:
    """Whether a live job has used up its budget, counted from admission (T1, T4, T6)."""
    spent_ms = now - job.submitted_at
    return 0 < limits.timeout_ms <= spent_ms and not job.state.terminal


@action(clauses="Q1 Q2 Q3 S8")
def take_request(ledger: Ledger, job_id: JobId) -> Step:
    """Hand the payload out, once; later takes get the task id alone."""
    job = ledger.find(job_id)
    if job is None:
        return _not_found(ledger)
    if job.payload is None:
        return Step(ledger, Reply(Outcome.NO_PAYLOAD, job))
    emptied = job._replace(payload=None)
    after = _with_retained(ledger, emptied) if job.state.terminal else _with_live(ledger, emptied)
    return Step(after, Reply(Outcome.PAYLOAD, job))


# Reads


@action(clauses="S5 S6 S7 S8 R6 R7 A10", reads_only=True)
def snapshot(ledger: Ledger, job_id: JobId) -> Step:
    """The job as it is now, as one consistent whole."""
    job = ledger.find(job_id)
    return _not_found(ledger) if job is None else Step(ledger, Reply(Outcome.FOUND, job))


@action(clauses="G1 G2 G3 Q2 R6", reads_only=True)
def result(ledger: Ledger, job_id: JobId) -> Step:
    """The result of a done job, any number of times; never a result in place of any other state."""
    job = ledger.find(job_id)
    if job is None:
        return _not_found(ledger, "G3")
    if job.state is not State.DONE:
        return Step(ledger, Reply(Outcome.NOT_DONE, job), "G2", f"the job is {job.state}")
    return Step(ledger, Reply(Outcome.READY, job))


@action(clauses="W1 W2 W4 W7", reads_only=True)
def wait(ledger: Ledger, job_id: JobId, waited_ms: int, budget_ms: int) -> Step:
    """What a waiter is told `waited_ms` into its `budget_ms`; BLOCKED: nothing yet."""
    job = ledger.find(job_id)
    if job is None:
        return _not_found(ledger, "W7")
    if job.state.terminal:
        return Step(ledger, Reply(Outcome.FOUND, job))
    spent = waited_ms >= budget_ms
    return Step(ledger, Reply(Outcome.EXPIRED if spent else Outcome.BLOCKED, job))


# Time


@action(clauses="S7 R2")
def advance(ledger: Ledger, ms: int) -> Step:
    """Let `ms` >= 0 milliseconds pass; nothing else happens by time alone."""
    if ms < 0:
        return Step(ledger, Reply(Outcome.REFUSED), "S7", "the clock is monotonic")
    return Step(ledger._replace(now=ledger.now + ms), Reply(Outcome.ACCEPTED))


# How the table changes


def _end(
    ledger: Ledger,
    job_id: JobId,
    state: State,
    *,
    result: object | None = None,
    error: str | None = None,
) -> Step:
    """The terminal transition: the first one wins, and it alone gives the place back."""
    job = ledger.find(job_id)
    if job is None:
        return _not_found(ledger)
    if job.state.terminal:
        return Step(ledger, Reply(Outcome.REFUSED, job), "S4", "terminal states absorb")
    ended = job._replace(state=state, completed_at=ledger.now, result=result, error=error)
    after = ledger._replace(
        live=tuple(other for other in ledger.live if other.id != job_id),
        retained=(*ledger.retained, ended),
        depth=ledger.depth - 1,
    )
    return Step(after, Reply(Outcome.ACCEPTED, ended))


def _not_found(ledger: Ledger, clause: str = "S8") -> Step:
    return Step(ledger, Reply(Outcome.NOT_FOUND), clause, "no such job")


def _with_live(ledger: Ledger, job: Job) -> Ledger:
    return ledger._replace(live=_replaced(ledger.live, job))


def _with_retained(ledger: Ledger, job: Job) -> Ledger:
    return ledger._replace(retained=_replaced(ledger.retained, job))


def _replaced(jobs: tuple[Job, ...], new: Job) -> tuple[Job, ...]:
    return tuple(new if old.id == new.id else old for old in jobs)
