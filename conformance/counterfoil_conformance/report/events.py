"""What can happen in a run, as values.

Checks publish these events and know no reporter; reporters (terminal, JSON, JUnit, HTML) read them
and know no check. `Docket` (in `verdicts`) is one more reader: it turns them into a verdict per
clause.
"""

from dataclasses import dataclass, field
from typing import TypeAlias

__all__ = [
    "CheckEnded",
    "CheckStarted",
    "Declared",
    "Event",
    "Finding",
    "HarnessFault",
    "NotRun",
    "RunEnded",
    "RunStarted",
    "Undecided",
    "Untestable",
    "Witnessed",
]


@dataclass(frozen=True, slots=True)
class RunStarted:
    """A run begins: what is tested, how, and with which seed and tolerance (ms)."""

    subject: str
    profile: str
    seed: int
    tolerance_ms: float


@dataclass(frozen=True, slots=True)
class CheckStarted:
    """A check begins; `clauses` are those it can decide."""

    check: str
    clauses: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CheckEnded:
    """A check is over, after `seconds`."""

    check: str
    clauses: tuple[str, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class Witnessed:
    """The clause was exercised `count` more times and held."""

    clause: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class Finding:
    """The subject broke a clause.

    `should` marks the SHOULD part of a clause (a warning even where the clause is a MUST), `must`
    the MUST part of a clause that is a SHOULD otherwise (a failure all the same).
    `allowed` lists the answers the contract allows, `actual` is what came; `repro` is one command,
    `curl` are lines to paste, where HTTP is involved.
    """

    clause: str
    why: str
    allowed: str = ""
    actual: str = ""
    should: bool = False
    repro: str = ""
    curl: tuple[str, ...] = ()
    check: str = ""
    must: bool = False


@dataclass(frozen=True, slots=True)
class Declared:
    """A deviation that the target file declares (a dialect): reported, not a failure."""

    clause: str
    why: str


@dataclass(frozen=True, slots=True)
class Untestable:
    """The subject or its target file offers no way to provoke the clause; `why` names the lack."""

    clause: str
    why: str


@dataclass(frozen=True, slots=True)
class Undecided:
    """The search budget ran out before the clause was decided."""

    clause: str
    why: str


@dataclass(frozen=True, slots=True)
class NotRun:
    """The run leaves the clause out; `why` names what would run it.

    `applies` is False where the clause speaks of a configuration that the target does not have (A4
    of `max_queue <= 0`, H6 of `async_enabled = false`): then nothing about the target stays open,
    and the run can be conclusive without it.
    """

    clause: str
    why: str
    applies: bool = True


@dataclass(frozen=True, slots=True)
class HarnessFault:
    """The kit itself failed; `clauses` are those it could not decide for that reason."""

    why: str
    clauses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The run is over, with its exit code; `notes` are lines worth reading, `seconds` the wall."""

    exit: int
    seconds: float
    notes: tuple[str, ...] = field(default=())


Event: TypeAlias = (
    RunStarted
    | CheckStarted
    | CheckEnded
    | Witnessed
    | Finding
    | Declared
    | Untestable
    | Undecided
    | NotRun
    | HarnessFault
    | RunEnded
)
