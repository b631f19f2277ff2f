"""One verdict per clause, and the exit code they add up to.

The `Docket` reads the events of a run and keeps, per clause, the worst thing that was said of it.
PASS needs a witness: a clause that nobody exercised is never green. The order of precedence is in
`_decide`, and only there.

Exit codes: 0 nothing failed and every core clause was exercised; 1 a MUST clause failed (with
`strict` a SHOULD too); 3 the harness failed; 4 nothing failed, but a core clause was not decided.
(2, bad usage, never gets as far as a docket.)
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from counterfoil_conformance.report.events import (
    CheckEnded,
    Declared,
    Event,
    Finding,
    HarnessFault,
    NotRun,
    Undecided,
    Untestable,
    Witnessed,
)
from counterfoil_spec.clauses import CLAUSES, Level

__all__ = ["ClauseVerdict", "Docket", "Verdict", "exit_code", "left_open"]


class Verdict(StrEnum):
    """What a run says of one clause."""

    PASS = "PASS"
    FAIL = "FAIL"
    WARN = "WARN"
    UNTESTABLE = "UNTESTABLE"
    UNKNOWN = "UNKNOWN"
    NOT_RUN = "NOT_RUN"
    ERROR = "ERROR"


@dataclass(frozen=True, slots=True)
class ClauseVerdict:
    """A row of the report: `witnesses` counts how often the clause was seen to hold."""

    clause: str
    level: Level
    verdict: Verdict
    why: str = ""
    repro: str = ""
    seconds: float = 0.0
    witnesses: int = 0
    declared: bool = False
    applies: bool = True

    def as_json(self) -> dict[str, Any]:
        """The row of the published schema."""
        return {
            "clause": self.clause,
            "level": str(self.level),
            "verdict": str(self.verdict),
            "why": self.why,
            "repro": self.repro,
            "seconds": round(self.seconds, 3),
            "witnesses": self.witnesses,
            "declared": self.declared,
            "applies": self.applies,
        }


class Docket:
    """Collects the events of one run about the clauses in `scope` (ids, in report order)."""

    def __init__(self, scope: Iterable[str]) -> None:
        self.scope = tuple(scope)
        self.findings: list[Finding] = []
        self._witnesses: Counter[str] = Counter()
        self._seconds: Counter[str] = Counter()
        self._notes: dict[str, dict[type, str]] = defaultdict(dict)
        self._inapplicable: set[str] = set()
        self._ran: dict[str, list[str]] = defaultdict(list)

    def __call__(self, event: Event) -> None:
        """Read one event."""
        match event:
            case Finding():
                self.findings.append(event)
            case Witnessed(clause, count):
                self._witnesses[clause] += count
            case CheckEnded(check, clauses, seconds):
                for clause in clauses:
                    self._ran[clause].append(check)
                    self._seconds[clause] += seconds  # type: ignore[assignment]
            case Untestable(clause, why):
                # Of several checks the one that lacks least is the shortest way to a verdict.
                known = self._notes[clause].get(Untestable)
                if known is None or why.count("`") < known.count("`"):
                    self._notes[clause][Untestable] = why
            case Declared(clause, why) | Undecided(clause, why):
                self._notes[clause].setdefault(type(event), why)
            case NotRun(clause, why, applies):
                self._notes[clause].setdefault(NotRun, why)
                if not applies:
                    self._inapplicable.add(clause)
            case HarnessFault(why, clauses):
                for clause in clauses:
                    self._notes[clause].setdefault(HarnessFault, why)
            case _:
                pass

    def verdicts(self) -> tuple[ClauseVerdict, ...]:
        """One verdict per clause of the scope."""
        return tuple(self._decide(clause) for clause in self.scope)

    def _decide(self, id_: str) -> ClauseVerdict:
        clause, notes, seen = CLAUSES[id_], self._notes[id_], self._witnesses[id_]
        found = [f for f in self.findings if f.clause == id_]
        binding = clause.level is Level.MUST
        musts = [f for f in found if f.must or (binding and not f.should)]
        shoulds = [f for f in found if f not in musts]
        verdict, why, repro = Verdict.NOT_RUN, "no check of this run looks at it", ""
        if musts:
            verdict, why, repro = Verdict.FAIL, musts[0].why, musts[0].repro
        elif Declared in notes:
            verdict, why = Verdict.WARN, f"declared: {notes[Declared]}"
        elif HarnessFault in notes:
            verdict, why = Verdict.ERROR, notes[HarnessFault]
        elif shoulds:
            verdict, why, repro = Verdict.WARN, shoulds[0].why, shoulds[0].repro
        elif seen:
            verdict, why = Verdict.PASS, ""
        elif Undecided in notes:
            verdict, why = Verdict.UNKNOWN, notes[Undecided]
        elif Untestable in notes:
            verdict, why = Verdict.UNTESTABLE, notes[Untestable]
        elif self._ran[id_] and id_ not in self._inapplicable:
            verdict, why = Verdict.UNKNOWN, self._moment_missed(id_)
        elif NotRun in notes:
            verdict, why = Verdict.NOT_RUN, notes[NotRun]
        return ClauseVerdict(
            id_,
            clause.level,
            verdict,
            why,
            repro,
            float(self._seconds[id_]),
            seen,
            Declared in notes,
            id_ not in self._inapplicable,
        )

    def _moment_missed(self, id_: str) -> str:
        """What to say of a clause whose checks ran, and saw neither that it holds nor a fault."""
        names = list(dict.fromkeys(self._ran[id_]))
        who = ", ".join(names[:2]) + (f" and {len(names) - 2} more" if len(names) > 2 else "")
        later = f"; {self._notes[id_][NotRun]}" if NotRun in self._notes[id_] else ""
        return f"the moment that would show it did not come in {who}{later}"


def exit_code(
    verdicts: Iterable[ClauseVerdict],
    core: Collection[str],
    *,
    strict: bool = False,
    allow_untestable: bool = False,
    expected: Mapping[str, Verdict] | None = None,
) -> int:
    """The exit code of a run.

    Args:
        verdicts: one per clause in scope.
        core: ids that must have been exercised for the run to be conclusive.
        strict: a SHOULD that was broken fails the run too.
        allow_untestable: a core clause that was not decided does not make the run inconclusive.
        expected: verdicts that a baseline accepts, by clause id.
    """
    accepted = expected or {}
    rows = [row for row in verdicts if accepted.get(row.clause) is not row.verdict]
    if any(row.verdict is Verdict.FAIL for row in rows):
        return 1
    if strict and any(row.verdict is Verdict.WARN and not row.declared for row in rows):
        return 1
    if any(row.verdict is Verdict.ERROR for row in rows):
        return 3
    return 4 if not allow_untestable and any(left_open(row, core) for row in rows) else 0


def left_open(row: ClauseVerdict, core: Collection[str]) -> bool:
    """Whether a clause that a conclusive run must decide was not decided."""
    if row.clause not in core or row.verdict in (Verdict.PASS, Verdict.WARN):
        return False
    return row.applies or row.verdict is not Verdict.NOT_RUN
