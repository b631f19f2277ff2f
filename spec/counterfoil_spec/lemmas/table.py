"""The table of lemmas, and what a lemma is.

A lemma is a function with a PEP 316 contract in its docstring: `pre:` lines say for which arguments
it speaks, and its one `post:` line is always the same, `_ == ()`. The body builds a ledger from
plain integers, calls functions of the law on it, and returns the clauses that were broken, so that
a counterexample names them.

The trap is a lemma that holds because nothing meets its precondition. Every lemma therefore brings
`examples`, concrete arguments that meet it; they are executed, and a lemma without one is refused.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

from counterfoil_spec.clauses import clause_ids

__all__ = ["LEMMAS", "Broken", "Lemma", "Obligation", "broken", "lemma"]

Broken: TypeAlias = tuple[str, ...]
Obligation: TypeAlias = tuple[str, bool]


@dataclass(frozen=True, slots=True)
class Lemma:
    """One statement about functions of the law, for all integers.

    `about` names the functions it speaks of, `clauses` what it proves of them, `examples` are
    argument tuples that meet the precondition.
    """

    name: str
    function: Callable[..., Broken]
    clauses: tuple[str, ...]
    about: tuple[str, ...]
    examples: tuple[tuple[object, ...], ...]

    @property
    def sentence(self) -> str:
        """What the lemma says, in one paragraph."""
        text = (self.function.__doc__ or "").split("pre:")[0].split("post:")[0]
        return " ".join(text.split())


LEMMAS: Final[dict[str, Lemma]] = {}
_Statement = TypeVar("_Statement", bound=Callable[..., Broken])


def lemma(
    clauses: str, about: str, *examples: tuple[object, ...]
) -> Callable[[_Statement], _Statement]:
    """Enter a function into the table of lemmas, unchanged."""
    assert examples, "a lemma without an example may speak of nothing"

    def enter(function: _Statement) -> _Statement:
        name = function.__name__
        assert name not in LEMMAS
        LEMMAS[name] = Lemma(
            name, function, clause_ids(clauses), tuple(about.split()), tuple(examples)
        )
        return function

    return enter


def broken(*obligations: Obligation) -> Broken:
    """The clauses whose obligation does not hold."""
    return tuple(clause for clause, holds in obligations if not holds)
