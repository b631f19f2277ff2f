"""Checks of a ledger, and what they stand in: one decorator, one context.

A check is a function over a `Context`. Its decorator says which clauses it can decide and which
capabilities of the driver it needs, so that the runner knows what is UNTESTABLE without running it:

    @check("W2 W6", needs=("lanes",))
    def waiters_are_woken_by_the_end(ctx: Context) -> None:
        books = ctx.books(Limits(4, NEVER_MS, 10))
        ...

Whatever a check does with its `Books` is recorded, and judged when the check is over: most checks
only provoke, and leave the verdict to the judges. A check ends early with `Violation` where going
on makes no sense.
"""

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from counterfoil_conformance.report.events import Finding, Undecided, Untestable, Witnessed
from counterfoil_conformance.run import DEFAULT_TOLERANCE_MS, Publish, RunOptions
from counterfoil_conformance.subjects.base import Subject
from counterfoil_conformance.subjects.books import Books, Rejected
from counterfoil_spec.clauses import clause_ids
from counterfoil_spec.ledger import Limits

__all__ = ["CHECKS", "Check", "CheckFunction", "Context", "Stop", "check"]


class Stop(Exception):
    """Ends a check early, without a word: the judges have enough."""


class Pulse:
    """How late our own sleeps came back since the last `reset`: a starved machine delays all alike.

    A thread sleeps and looks at the clock; nothing that its lateness explains is held against the
    subject.
    """

    _BEAT_S: Final = 0.01

    def __init__(self) -> None:
        self.worst_ms = 0.0
        self._stop = threading.Event()
        threading.Thread(target=self._beat, name="pulse", daemon=True).start()

    def reset(self) -> None:
        """Begin a new measurement."""
        self.worst_ms = 0.0

    def stop(self) -> None:
        """End the thread."""
        self._stop.set()

    def _beat(self) -> None:
        while not self._stop.is_set():
            began = time.monotonic()
            time.sleep(self._BEAT_S)
            late_ms = (time.monotonic() - began - self._BEAT_S) * 1000
            self.worst_ms = max(self.worst_ms, late_ms)


@dataclass(slots=True)
class Context:
    """What a check works with: the subject, the options, and how to say what it saw."""

    subject: Subject
    options: RunOptions
    publish: Publish
    check: str = ""
    rtt_ms: float = 0.0
    works: set[str] = field(default_factory=set)
    opened: list[Books] = field(default_factory=list)
    pulse: Pulse = field(default_factory=Pulse)

    @property
    def is_full(self) -> bool:
        """Whether there is time."""
        return self.options.profile == "full"

    @property
    def tolerance_ms(self) -> float:
        """How late "at once" may be: declared, the round trip, and how long *we* overslept."""
        declared = self.options.tolerance_ms
        base_ms = DEFAULT_TOLERANCE_MS if declared is None else declared
        return base_ms + self.rtt_ms + self.pulse.worst_ms

    @property
    def dice(self) -> random.Random:
        """The run's choices, the same for the same seed and check."""
        return random.Random(f"{self.options.seed} {self.check}")

    def books(self, limits: Limits) -> Books:
        """A fresh ledger; what is done with it is judged when the check is over."""
        books = Books(self.subject, limits, self.works)
        self.opened.append(books)
        return books

    def ok(self, clauses: str, count: int = 1) -> None:
        """Each of these clauses was exercised, and held."""
        for clause in clause_ids(clauses):
            self.publish(Witnessed(clause, count))

    def fail(  # noqa: PLR0913 - a finding has these parts
        self,
        clause: str,
        why: str,
        *,
        allowed: str = "",
        actual: str = "",
        repro: str = "",
        should: bool = False,
    ) -> None:
        """The subject broke the clause."""
        command = repro or (self.opened[-1].repro() if self.opened else "")
        self.publish(
            Finding(clause, why, allowed, actual, should=should, repro=command, check=self.check)
        )

    def reject(self, rejected: Rejected) -> None:
        """The subject gave an answer that no ledger of the law can have given."""
        for clause in (rejected.clause, *rejected.also):
            self.fail(clause, rejected.why, allowed=rejected.allowed, actual=str(rejected.actual))

    def undecided(self, clause: str, why: str) -> None:
        """What happened allows no conclusion."""
        self.publish(Undecided(clause, why))

    def untestable(self, clauses: str, why: str) -> None:
        """The subject offers no way to provoke these clauses."""
        for clause in clause_ids(clauses):
            self.publish(Untestable(clause, why))


CheckFunction: TypeAlias = Callable[[Context], Any]


@dataclass(frozen=True, slots=True)
class Check:
    """An entry of the table of checks."""

    name: str
    clauses: tuple[str, ...]
    function: CheckFunction
    needs: tuple[str, ...] = ()
    only_full: bool = False
    slow_over_a_pipe: bool = False
    second_look: bool = False

    def lacks(self, subject: Subject) -> tuple[str, ...]:
        """The capabilities that the subject's driver would need for this check, and has not."""
        return tuple(need for need in self.needs if not subject.can(need))


CHECKS: Final[list[Check]] = []


def check(
    clauses: str,
    *,
    needs: tuple[str, ...] = (),
    only_full: bool = False,
    slow_over_a_pipe: bool = False,
    second_look: bool = False,
) -> Callable[[CheckFunction], CheckFunction]:
    """Enter a function into the table of checks, unchanged.

    `only_full` checks are left to the full profile; `slow_over_a_pipe` ones too, unless the ledger
    is called in this process. With `second_look` a check in which waits were a little late, and
    nothing else was wrong, is made again before anybody is blamed.
    """

    def enter(function: CheckFunction) -> CheckFunction:
        name = getattr(function, "__name__", "check").replace("_", " ")
        ids = clause_ids(clauses)
        CHECKS.append(Check(name, ids, function, needs, only_full, slow_over_a_pipe, second_look))
        return function

    return enter
