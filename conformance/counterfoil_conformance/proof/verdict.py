"""What is known of a lemma after an attempt to prove it.

CONFIRMED: every path through the lemma was followed to its end and on each the postcondition is
valid, so it holds for all arguments that meet the precondition. REFUTED: there are arguments for
which it does not hold; they were called without any solver and broke it. UNKNOWN: anything else.
The trap is to let "no counterexample was found" read like a proof, so `decide` asks CONFIRMED for
everything at once: the search exhausted, no path given up, at least one path confirmed, and an
executed example for the precondition.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

__all__ = ["Proof", "Search", "Status", "decide"]


class Status(StrEnum):
    """The verdict on one lemma."""

    CONFIRMED = "CONFIRMED"
    REFUTED = "REFUTED"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True)
class Search:
    """What the symbolic search reports: paths followed and confirmed, whether none is left.

    `valid` is the solver's overall answer; `complaints` are its messages. `counterexample` are
    breaking arguments, `broken` is what they were seen to break when the lemma was called with them
    without the solver (empty: nothing).
    """

    paths: int
    confirmed_paths: int
    exhausted: bool
    valid: bool
    complaints: tuple[str, ...] = ()
    counterexample: tuple[object, ...] | None = None
    broken: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Proof:
    """One row of the report.

    `cpu_s` is processor time, which other load does not inflate much. Of a refutation,
    `counterexample` are the arguments, `broken` what they break, `program` makes the call.
    """

    lemma: str
    status: Status
    why: str = ""
    paths: int = 0
    confirmed_paths: int = 0
    cpu_s: float = 0.0
    counterexample: tuple[object, ...] | None = None
    broken: tuple[str, ...] = ()
    program: str = ""
    defect: str = ""

    def as_json(self) -> dict[str, Any]:
        """The row as `prove --json` writes it."""
        return {
            "lemma": self.lemma,
            "status": str(self.status),
            "why": self.why,
            "paths": self.paths,
            "confirmed_paths": self.confirmed_paths,
            "cpu_s": round(self.cpu_s, 2),
            "broken": list(self.broken),
            "program": self.program,
            "defect": self.defect,
        }


def decide(search: Search, examples: int) -> tuple[Status, str]:
    """The verdict on a search, and why it is not CONFIRMED where it is not.

    Args:
        search: what the solver reports.
        examples: how many concrete arguments met the precondition when they were executed.
    """
    complaints = "; ".join(search.complaints)
    if search.broken:
        return Status.REFUTED, complaints
    if search.counterexample is not None:
        return Status.UNKNOWN, f"the counterexample did not reproduce: {complaints}"
    if search.complaints:
        return Status.UNKNOWN, complaints
    if not (search.exhausted and search.valid):
        return Status.UNKNOWN, f"{search.paths} paths tried, not all of them to the end"
    if search.confirmed_paths == 0 or examples == 0:
        return Status.UNKNOWN, "nothing was seen to meet the precondition"
    return Status.CONFIRMED, ""
