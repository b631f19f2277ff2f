"""Which ledgers one answer allows: the law, with the choices it leaves open and the answer put in.

Both searching oracles stand on this file. `successors(ledger, asked)` gives every ledger that the
law allows after a call that was answered so; none if the answer is not allowed, and then `blame`
names the clause. The law's own functions do all the work. What is added here is only what they
leave open on purpose: whose turn it is to be evicted by count (R5 is a SHOULD), whether a refused
submit evicts (it may), what an unanswered call did (anything or nothing).

Ids of a subject are numbered in order of issue, since the law counts; values are compared as JSON.
Errors are only asked to be there: a driver may word a timeout in its own way.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Final, TypeAlias

from counterfoil_conformance.oracle.blame import UNTOLD, Rejection, blame_answer, canonical
from counterfoil_spec import ledger as law
from counterfoil_spec.ledger import Job, Ledger, Step

__all__ = [
    "Asked",
    "Choose",
    "any_victims",
    "blame",
    "may_sweep",
    "oldest_by",
    "successors",
    "sweeps",
]

# Given the retained jobs and how many of them must go: which sets may remain.
Choose: TypeAlias = Callable[[tuple[Job, ...], int], Iterable[tuple[Job, ...]]]


@dataclass(frozen=True, slots=True)
class Asked:
    """A call in the law's own terms.

    Args:
        op: as in a history; `admit` is the first half of a submit.
        number: the job's number (of a submit: the one it issues), or None.
        args, reply: as in a history; `reply` None: unanswered.
    """

    op: str
    number: int | None = None
    args: Mapping[str, Any] = field(default_factory=dict)
    reply: Mapping[str, Any] | None = None

    @property
    def number_or_none(self) -> int:
        """The job's number; one that no job has, if it speaks of an id that was never issued."""
        return -1 if self.number is None else self.number


# Who must go


def any_victims(young: tuple[Job, ...], excess: int) -> Iterable[tuple[Job, ...]]:
    """Any `excess` jobs may go (R5 is a SHOULD)."""
    return combinations(young, len(young) - excess)


def oldest_by(age: Callable[[Job], float]) -> Choose:
    """Those go for which `age` is least."""

    def choose(young: tuple[Job, ...], excess: int) -> Iterable[tuple[Job, ...]]:
        gone = {job.id for job in sorted(young, key=age)[:excess]}
        return (tuple(job for job in young if job.id not in gone),)

    return choose


def sweeps(ledger: Ledger, choose: Choose = any_victims) -> Iterator[Ledger]:
    """Every ledger that the sweep of an admitted submit may leave (R3 R4 R9)."""
    young = _young(ledger)
    excess = len(young) - max(ledger.limits.max_completed, 0)
    for kept in choose(young, excess) if excess > 0 else (young,):
        yield ledger._replace(retained=kept)


def may_sweep(ledger: Ledger, choose: Choose = any_victims) -> Iterator[Ledger]:
    """Every ledger that a refused submit may leave: evicting like an admitted one, or less."""
    young = _young(ledger)
    old = tuple(job for job in ledger.retained if job not in young)
    excess = max(len(young) - max(ledger.limits.max_completed, 0), 0)
    for aged in _subsets(old):
        for gone in range(excess + 1):
            for kept in choose(young, gone) if gone else (young,):
                stay = {job.id for job in (*aged, *kept)}
                yield ledger._replace(
                    retained=tuple(job for job in ledger.retained if job.id in stay)
                )


def _young(ledger: Ledger) -> tuple[Job, ...]:
    limits, now = ledger.limits, ledger.now
    return tuple(job for job in ledger.retained if not law.has_expired(job, limits, now))


def _subsets(jobs: tuple[Job, ...]) -> Iterator[tuple[Job, ...]]:
    for size in range(len(jobs) + 1):
        yield from combinations(jobs, size)


# One call


def successors(ledger: Ledger, asked: Asked, choose: Choose = any_victims) -> Iterator[Ledger]:
    """Every ledger the law allows once the call was answered as it was; may repeat one."""
    if asked.op == "submit":
        yield from _submitted(ledger, asked, choose)
        return
    step = _step(ledger, asked)
    if asked.reply is None:
        yield ledger
        if step is not None and step.ledger != ledger:
            yield step.ledger
    elif blame_answer(ledger, asked.op, asked.number_or_none, asked.args, asked.reply) is None:
        yield ledger if step is None else step.ledger


def blame(ledger: Ledger, asked: Asked) -> Rejection | None:
    """Why the ledger does not allow the answer; None if it does."""
    if asked.reply is None:
        return None
    return blame_answer(ledger, asked.op, asked.number_or_none, asked.args, asked.reply)


def _submitted(ledger: Ledger, asked: Asked, choose: Choose) -> Iterator[Ledger]:
    admitted = _step(ledger, asked)
    assert admitted is not None
    if asked.reply is None:
        yield from may_sweep(ledger, choose)
        if admitted.accepted:
            yield from sweeps(admitted.ledger, choose)
    elif blame(ledger, asked) is not None:
        return
    elif admitted.accepted and asked.reply.get("rejected") is not True:
        yield from sweeps(admitted.ledger, choose)
    else:
        yield from may_sweep(ledger, choose)


def _step(ledger: Ledger, asked: Asked) -> Step | None:
    """What the law makes of the call, the answer aside; None for a call that changes nothing."""
    act = _ACTS.get(asked.op)
    return None if act is None else act(ledger, asked)


def _told(asked: Asked, key: str) -> str:
    """What the caller handed in, as canonical JSON, if the record tells."""
    return canonical(asked.args[key]) if key in asked.args else UNTOLD


def _admit(ledger: Ledger, asked: Asked) -> Step:
    step = law.admit(ledger, str(asked.args.get("task_id") or ""), _told(asked, "payload"))
    if not step.accepted:
        return step
    *others, job = step.ledger.live
    named = job._replace(id=asked.number_or_none)
    return step._replace(ledger=step.ledger._replace(live=(*others, named), sweeps_owed=0))


_ACTS: Final[Mapping[str, Callable[[Ledger, Asked], Step]]] = {
    "submit": _admit,
    "admit": _admit,
    "start": lambda ledger, asked: law.start(ledger, asked.number_or_none),
    "finish": lambda ledger, asked: law.finish(
        ledger, asked.number_or_none, _told(asked, "result")
    ),
    "fail": lambda ledger, asked: law.fail(
        ledger, asked.number_or_none, str(asked.args.get("error") or "failed")
    ),
    "timeout": lambda ledger, asked: law.time_out(
        ledger, asked.number_or_none, str(asked.args.get("error") or "timed out")
    ),
    "take_request": lambda ledger, asked: law.take_request(ledger, asked.number_or_none),
    "advance": lambda ledger, asked: law.advance(ledger, int(asked.args.get("ms", 0))),
}
