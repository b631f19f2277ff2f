"""What must hold of every ledger and of every step, as data: a property names its clauses.

`ledger` says what the law does; this file says, independently of how it does it, what must come
out. A property is either

- *of a job* (`JOB`): true of every record in every ledger that can be reached;
- *of a ledger* (`LEDGER`): true of every ledger that can be reached;
- *of a move* (`MOVE`): true of every call, from the ledger before it to the step it was answered.

Each is an implication. `when` says where it bites, `holds` what is then demanded, and whoever
checks a property also counts the cases in which `when` was true: a property that never bites has
not been checked. The model checker evaluates them over all reachable states, the hypothesis
machine over random programs, and both by these same functions.

The trap is to demand more than the clause. Where the contract leaves a ledger free (may a refused
submit evict? may eviction by age come early on the wire?) the freedom is stated where subjects
are judged; here the properties speak of *our* law, which picks one answer.
"""

import itertools
from collections.abc import Callable
from typing import Final

from counterfoil_spec.invariants_of_moves import ENDINGS, MOVE, READS, TARGETED, TRANSITIONS
from counterfoil_spec.ledger import Ledger, State, is_overdue
from counterfoil_spec.properties import JobFact, Move, Predicate, Property, always, enter

__all__ = [
    "ENDINGS",
    "JOB",
    "LEDGER",
    "MOVE",
    "READS",
    "TARGETED",
    "TRANSITIONS",
    "JobFact",
    "Move",
    "Property",
    "broken_by",
    "broken_in",
]

JOB: Final[dict[str, Property[JobFact]]] = {}
LEDGER: Final[dict[str, Property[Ledger]]] = {}


def broken_in(ledger: Ledger) -> tuple[str, ...]:
    """Names of the properties of jobs and ledgers that this ledger breaks."""
    facts = [JobFact(job, ledger) for job in (*ledger.live, *ledger.retained)]
    of_jobs = [p.name for p in JOB.values() if any(p.broken(fact) for fact in facts)]
    return (*of_jobs, *(p.name for p in LEDGER.values() if p.broken(ledger)))


def broken_by(move: Move) -> tuple[str, ...]:
    """Names of the properties of moves that this move breaks."""
    return tuple(p.name for p in MOVE.values() if move.action in p.on and p.broken(move))


# Of every job


def _job(
    clauses: str, when: Predicate[JobFact] = always
) -> Callable[[Predicate[JobFact]], Predicate[JobFact]]:
    return enter(JOB, clauses, when)


@_job("S6")
def _a_result_exists_exactly_when_done(fact: JobFact) -> bool:
    """A result exists exactly when the state is done."""
    return (fact.job.result is not None) == (fact.job.state is State.DONE)


@_job("S6")
def _an_error_exists_exactly_when_failed_or_timeout(fact: JobFact) -> bool:
    """A non-empty error exists exactly when the state is failed or timeout."""
    return bool(fact.job.error) == (fact.job.state in (State.FAILED, State.TIMEOUT))


@_job("S7")
def _a_completion_time_exists_exactly_when_terminal(fact: JobFact) -> bool:
    """The completion time is set exactly when the job is terminal, and never before admission."""
    ended_at = fact.job.completed_at
    if ended_at is None:
        return not fact.job.state.terminal
    return fact.job.state.terminal and fact.job.submitted_at <= ended_at <= fact.ledger.now


@_job("T4", when=lambda fact: fact.ledger.limits.timeout_ms == 0)
def _without_a_budget_nothing_is_overdue(fact: JobFact) -> bool:
    """`async_timeout` = 0 sets no budget, however long the job takes."""
    later = fact.ledger.now + 10**9
    return not is_overdue(fact.job, fact.ledger.limits, later)


# Of every ledger


def _ledger(
    clauses: str, when: Predicate[Ledger] = always
) -> Callable[[Predicate[Ledger]], Predicate[Ledger]]:
    return enter(LEDGER, clauses, when)


@_ledger("S1", when=lambda ledger: bool(ledger.live))
def _live_jobs_are_pending_or_running(ledger: Ledger) -> bool:
    """A job that counts as live is in a live state."""
    return all(not job.state.terminal for job in ledger.live)


@_ledger("S1", when=lambda ledger: bool(ledger.retained))
def _retained_jobs_are_terminal(ledger: Ledger) -> bool:
    """A job that counts as terminal is in a terminal state."""
    return all(job.state.terminal for job in ledger.retained)


@_ledger("A1", when=lambda ledger: ledger.depth > 0 or bool(ledger.live))
def _depth_counts_the_live_jobs(ledger: Ledger) -> bool:
    """Depth = number of pending + running jobs."""
    return ledger.depth == len(ledger.live)


@_ledger("A2", when=lambda ledger: ledger.depth >= max(ledger.limits.max_queue, 1))
def _depth_stays_within_its_bound(ledger: Ledger) -> bool:
    """Depth never passes `async_max_queue`."""
    return ledger.depth <= max(ledger.limits.max_queue, 0)


@_ledger("A2")
def _depth_is_never_negative(ledger: Ledger) -> bool:
    """Depth is at least 0."""
    return ledger.depth >= 0


@_ledger("A4", when=lambda ledger: ledger.limits.max_queue <= 0)
def _no_room_admits_nothing(ledger: Ledger) -> bool:
    """`async_max_queue` <= 0: no job was ever admitted."""
    return not ledger.live and not ledger.retained and ledger.issued == 0


@_ledger("A8", when=lambda ledger: len(ledger.live) + len(ledger.retained) > 1)
def _ids_are_unique(ledger: Ledger) -> bool:
    """No two records share an id."""
    ids = [job.id for job in (*ledger.live, *ledger.retained)]
    return all(one != other for one, other in itertools.combinations(ids, 2))


@_ledger("A11", when=lambda ledger: not ledger.live and ledger.issued > 0)
def _all_places_come_back(ledger: Ledger) -> bool:
    """After all admitted jobs are terminal, depth is 0."""
    return ledger.depth == 0


@_ledger("R5 S7", when=lambda ledger: len(ledger.retained) > 1)
def _retained_jobs_stand_in_order_of_completion(ledger: Ledger) -> bool:
    """Retention keeps the completion order, which is the order of the completion times."""
    ended_at = [job.completed_at or 0 for job in ledger.retained]
    return all(earlier <= later for earlier, later in itertools.pairwise(ended_at))
