"""What a property is: an implication with a name, the clauses it stands for, and a sentence.

The properties themselves are in `invariants` (of jobs and ledgers) and `invariants_of_moves`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from counterfoil_spec.clauses import clause_ids
from counterfoil_spec.ledger import Job, JobId, Ledger, Step

__all__ = ["JobFact", "Move", "Predicate", "Property", "always", "enter"]


class JobFact(NamedTuple):
    """A job and the ledger that records it."""

    job: Job
    ledger: Ledger


class Move(NamedTuple):
    """One call: the ledger before it, the action's name, the job it names (if any), the answer.

    `waited_ms` and `budget_ms` matter to `wait` alone.
    """

    before: Ledger
    action: str
    job_id: JobId | None
    step: Step
    waited_ms: int = 0
    budget_ms: int = 0

    @property
    def after(self) -> Ledger:
        """The ledger after the call."""
        return self.step.ledger

    @property
    def target(self) -> Job | None:
        """The job that the call names, as it was before; None if there was none."""
        return None if self.job_id is None else self.before.find(self.job_id)

    @property
    def target_after(self) -> Job | None:
        """The job that the call names, as it is afterwards."""
        return None if self.job_id is None else self.after.find(self.job_id)

    @property
    def unchanged(self) -> bool:
        """Whether the call changed nothing at all."""
        return self.after is self.before or self.after == self.before


_Subject = TypeVar("_Subject")


@dataclass(frozen=True, slots=True)
class Property(Generic[_Subject]):
    """`when` it bites, it `holds`. `on` are the actions a property of moves speaks of."""

    name: str
    clauses: tuple[str, ...]
    sentence: str
    holds: Callable[[_Subject], bool]
    when: Callable[[_Subject], bool]
    on: frozenset[str] = frozenset()

    def broken(self, subject: _Subject) -> bool:
        """Whether this subject is a counterexample."""
        return self.when(subject) and not self.holds(subject)


Predicate: TypeAlias = Callable[[_Subject], bool]


def enter(
    table: dict[str, Property[_Subject]],
    clauses: str,
    when: Predicate[_Subject],
    on: frozenset[str] = frozenset(),
) -> Callable[[Predicate[_Subject]], Predicate[_Subject]]:
    """Enter a predicate into a table of properties; its docstring is the sentence."""

    def into_table(holds: Predicate[_Subject]) -> Predicate[_Subject]:
        name = holds.__name__.strip("_")
        sentence = " ".join((holds.__doc__ or "").split())
        table[name] = Property(name, clause_ids(clauses), sentence, holds, when, on)
        return holds

    return into_table


def always(_: object) -> bool:
    """The `when` of a property that bites everywhere."""
    return True
