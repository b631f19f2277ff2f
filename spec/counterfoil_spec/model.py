"""The ledger as a model: who may call what, and which ledgers are the same ledger.

`FullModel` is the law as it stands: ids are issued, the clock runs, nothing is ever the same again,
so it can only be searched up to a bound. It shows what is about ids (A8).

`key` forgets what no later answer depends on, and nothing else:

- ids: live jobs become a sorted multiset, retained jobs stay a sequence (in order of completion);
- the clock: a terminal job keeps its *age*, which saturates at one past the TTL, for older than too
  old is not older still; a live job has no age, unless there is a job budget: then it keeps how
  much of it is spent, up to the whole.

What is left is finite. `KeyModel` searches it by representatives and thereby *closes*: it covers
any number of submits and any length of time. That the key forgets nothing that matters is checked,
not argued: all full states of one key allow the same calls with the same replies and lead to the
same keys (`checker.unlike`).

Who calls. Everybody may call anything at any moment, on any job, but for one thing: at most
`submitters` submits may be between their admission and their sweep at the same time, which is how
many clients there are that submit. Without such a bound the number of terminal jobs would have
none (each sweep could be as late as one likes). 0 stands for the atomic submit, `admit` and `sweep`
in one step, the ledger as a single caller sees it.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

from counterfoil_spec.invariants import JOB, MOVE, JobFact, Move, broken_by, broken_in
from counterfoil_spec.ledger import (
    ACTIONS,
    Job,
    JobId,
    Ledger,
    Limits,
    Outcome,
    Step,
    empty_ledger,
)

__all__ = [
    "JOB_CALLS",
    "LAW",
    "Call",
    "FullModel",
    "Key",
    "KeyModel",
    "Label",
    "Law",
    "Scope",
    "judged",
    "key",
    "representative",
    "seen_from",
    "unjudged",
]

Law: TypeAlias = Mapping[str, Callable[..., Step]]
LAW: Final[Law] = {name: action.apply for name, action in ACTIONS.items()}

_UNKNOWN: Final = -1


class Scope(NamedTuple):
    """How big: the limits of the ledger, and how many submits may be in flight (0: atomic).

    Without a job budget (`timeout_ms` = 0) a job may time out at any moment all the same: who
    enforces budgets, and by which clock, is not the ledger's business.
    """

    max_queue: int
    max_completed: int
    job_ttl_ms: int
    submitters: int = 1
    timeout_ms: int = 0

    @property
    def limits(self) -> Limits:
        """The limits of the ledger."""
        return Limits(self.max_queue, self.job_ttl_ms, self.max_completed, self.timeout_ms)

    def __str__(self) -> str:
        return f"{self.max_queue}/{self.max_completed}/{self.job_ttl_ms}"


class Call(NamedTuple):
    """An action and its arguments: the times are those of `wait`, the task id of `admit`."""

    action: str
    job_id: JobId | None = None
    waited_ms: int = 0
    budget_ms: int = 0
    task_id: str = "task"

    def apply(self, law: Law, ledger: Ledger) -> Step:
        """Make the call."""
        function = law[self.action]
        if self.action == "advance":
            return function(ledger, 1)
        if self.action == "admit":
            return function(ledger, self.task_id, "payload")
        if self.action == "wait":
            return function(ledger, self.job_id, self.waited_ms, self.budget_ms)
        return function(ledger) if self.job_id is None else function(ledger, self.job_id)


# What may be called on a job. A waiter asks before, at and after the end of its budget.
JOB_CALLS: Final = (
    *(Call(name) for name in ("start", "finish", "fail", "time_out", "take_request")),
    *(Call(name) for name in ("snapshot", "result")),
    *(Call("wait", None, waited_ms, 1) for waited_ms in (0, 1, 2)),
)


class Label(NamedTuple):
    """A call and its answer without ids and times: the job as it was, the outcome, the job shown.

    `broken` names the properties that the call breaks.
    """

    action: str
    job: Job | None
    outcome: Outcome
    shown: Job | None
    waited_ms: int = 0
    broken: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.action if self.job is None else f"{self.action} {self.job.state}"


class Key(NamedTuple):
    """A ledger without ids and clock: jobs as `seen_from` now."""

    live: tuple[Job, ...]
    retained: tuple[Job, ...]
    depth: int
    sweeps_owed: int


def seen_from(job: Job, limits: Limits, now: int) -> Job:
    """The job without its id, its times counted back from now and no further than they matter."""
    farthest = -max(limits.job_ttl_ms, 0) - 1
    ended_at, submitted_at = job.completed_at, farthest
    if limits.timeout_ms > 0 and not job.state.terminal:
        submitted_at = max(job.submitted_at - now, -limits.timeout_ms)
    return job._replace(
        id=0,
        submitted_at=submitted_at,
        completed_at=None if ended_at is None else max(ended_at - now, farthest),
    )


def key(ledger: Ledger) -> Key:
    """What later answers depend on."""
    limits, now = ledger.limits, ledger.now
    return Key(
        tuple(sorted((seen_from(job, limits, now) for job in ledger.live), key=repr)),
        tuple(seen_from(job, limits, now) for job in ledger.retained),
        ledger.depth,
        ledger.sweeps_owed,
    )


def representative(limits: Limits, key_: Key) -> Ledger:
    """A ledger of this key: it is 0 ms, and the ids count up from the oldest."""
    jobs = [job._replace(id=id_) for id_, job in enumerate((*key_.retained, *key_.live))]
    border = len(key_.retained)
    return Ledger(
        limits,
        live=tuple(jobs[border:]),
        retained=tuple(jobs[:border]),
        depth=key_.depth,
        issued=len(jobs),
        sweeps_owed=key_.sweeps_owed,
    )


def unjudged(ledger: Ledger, call: Call, step: Step) -> Label:
    """The label of a call."""
    limits, now, shown = ledger.limits, ledger.now, step.reply.job
    target = None if call.job_id is None else ledger.find(call.job_id)
    return Label(
        call.action,
        target and seen_from(target, limits, now),
        step.reply.outcome,
        shown and seen_from(shown, limits, now),
        call.waited_ms,
    )


def judged(ledger: Ledger, call: Call, step: Step, bites: Counter[str] | None = None) -> Label:
    """The label of a call, with what it breaks; counts in `bites` which properties it tries."""
    move = Move(ledger, call.action, call.job_id, step, call.waited_ms, call.budget_ms)
    after = move.target_after or step.reply.job
    fact = None if after is None else JobFact(after, step.ledger)
    ill = () if fact is None else tuple(p.name for p in JOB.values() if p.broken(fact))
    if bites is not None:
        bites.update(p.name for p in MOVE.values() if move.action in p.on and p.when(move))
        bites.update(p.name for p in JOB.values() if fact is not None and p.when(fact))
    return unjudged(ledger, call, step)._replace(broken=(*broken_by(move), *ill))


class FullModel:
    """The law with its ids and its clock; `reads` includes the calls that change nothing."""

    def __init__(
        self,
        scope: Scope,
        law: Law = LAW,
        *,
        reads: bool = False,
        clock: bool = True,
        judge: bool = True,
    ) -> None:
        self.scope, self._law, self._reads = scope, law, reads
        self._clock, self._judge = clock, judge

    def initial(self) -> Iterator[Ledger]:
        """The empty ledger."""
        yield empty_ledger(self.scope.limits)

    def moves(self, ledger: Ledger) -> Iterator[tuple[Label, Ledger]]:
        """Every call, on every job, also on one that is unknown."""
        yield from self._submits(ledger)
        if self._clock:
            yield from self._call(ledger, Call("advance"))
        for job_id in (*(job.id for job in (*ledger.live, *ledger.retained)), _UNKNOWN):
            for call in JOB_CALLS:
                yield from self._call(ledger, call._replace(job_id=job_id))

    def of_state(self, ledger: Ledger) -> tuple[str, ...]:
        """Names of the broken properties of jobs and ledgers."""
        return broken_in(ledger)

    def of_label(self, label: Label) -> tuple[str, ...]:
        """Names of the broken properties of moves."""
        return label.broken

    def _submits(self, ledger: Ledger) -> Iterator[tuple[Label, Ledger]]:
        if self.scope.submitters == 0:
            yield from self._submit(ledger)
            return
        if ledger.sweeps_owed < self.scope.submitters:
            yield from self._call(ledger, Call("admit"))
        yield from self._call(ledger, Call("sweep"))

    def _submit(self, ledger: Ledger) -> Iterator[tuple[Label, Ledger]]:
        for admitted, between in self._call(ledger, Call("admit")):
            if admitted.outcome is not Outcome.ADMITTED:
                yield admitted._replace(action="submit"), between
                continue
            for swept, after in self._call(between, Call("sweep")):
                broken = (*admitted.broken, *swept.broken, *broken_in(between))
                yield admitted._replace(action="submit", broken=broken), after

    def _call(self, ledger: Ledger, call: Call) -> Iterator[tuple[Label, Ledger]]:
        step = call.apply(self._law, ledger)
        label = (judged if self._judge else unjudged)(ledger, call, step)
        if self._reads or label.broken or step.ledger != ledger:
            yield label, step.ledger


class KeyModel:
    """The same model up to `key`, move by move on a representative: plain, and slow."""

    def __init__(self, scope: Scope, law: Law = LAW, *, reads: bool = False) -> None:
        self.scope = scope
        self._full = FullModel(scope, law, reads=reads)
        self._reads = reads

    def initial(self) -> Iterator[Key]:
        """The key of the empty ledger."""
        yield key(empty_ledger(self.scope.limits))

    def moves(self, key_: Key) -> Iterator[tuple[Label, Key]]:
        """The calls on a representative; those that keep the key only where they are asked for."""
        for label, after in self._full.moves(representative(self.scope.limits, key_)):
            target = key(after)
            if self._reads or label.broken or target != key_:
                yield label, target

    def of_state(self, key_: Key) -> tuple[str, ...]:
        """Names of the broken properties of jobs and ledgers."""
        return broken_in(representative(self.scope.limits, key_))

    def of_label(self, label: Label) -> tuple[str, ...]:
        """Names of the broken properties of moves."""
        return label.broken
