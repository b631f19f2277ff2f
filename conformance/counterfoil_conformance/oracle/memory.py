"""What was seen of each job that the law does not fix: texts, times, the words of a driver.

The law has no opinion on how an error is worded or in which unit a clock counts. But what was read
once must be read again (S5 R6), an error must not be that of a call that was refused (S4), and the
readings of one monotonic clock must not fall (S7). This is remembered here, beside the candidates.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from counterfoil_conformance.oracle.blame import Rejection

__all__ = ["Facts", "Memory"]

_ENDS = frozenset({"finish", "fail", "timeout"})
_LASTING = ("error", "submitted_at", "completed_at", "task_id")


@dataclass(slots=True)
class Facts:
    """What was seen of one job; stamps count the calls observed before."""

    number: int
    submitted: int
    completed: int | None = None
    used: int = 0
    read: int = 0
    found: bool = False
    gone: bool = False
    own_error: str | None = None
    refused_errors: set[str] = field(default_factory=set)
    refused: bool = False
    lasting: dict[str, Any] = field(default_factory=dict)

    @property
    def last_seen(self) -> int:
        """When an answer last proved that the job was there."""
        return max(self.submitted, self.read, self.completed or 0)


class Memory:
    """Remembers what answers have told, and rejects one that tells something else."""

    def __init__(self) -> None:
        self.jobs: dict[int, Facts] = {}
        self._readings: dict[int, float] = {}

    def born(self, number: int, when: int) -> None:
        """A submit was answered with an id."""
        self.jobs[number] = Facts(number, when, used=when, read=when)

    def observe(
        self, op: str, number: int, args: Mapping[str, Any], reply: Mapping[str, Any], when: int
    ) -> Rejection | None:
        """Check one answer about a job against what is remembered, and remember it."""
        facts = self.jobs.get(number)
        if facts is None:
            return None
        if reply.get("unknown") is True or reply.get("status") == "not_found":
            facts.gone = True
            return None
        facts.used = when
        if op in _ENDS:
            _note_end(facts, args, reply, when)
            return None
        if op in ("snapshot", "wait", "result", "take_request"):
            facts.found, facts.read = True, when
            return self._check(facts, reply)
        return None

    def _check(self, facts: Facts, reply: Mapping[str, Any]) -> Rejection | None:
        error = reply.get("error")
        if error and error != facts.own_error and error in facts.refused_errors:
            return Rejection("S4", "the error is that of a call that was refused")
        for key in _LASTING:
            value = reply.get(key)
            if value is None or (key == "error" and not value):
                continue
            first = facts.lasting.setdefault(key, value)
            if value != first:
                return _changed(key, first, value, late_call=facts.refused)
        return self._check_clock(facts)

    def _check_clock(self, facts: Facts) -> Rejection | None:
        """Every reading of the clock is at least each that was taken in an earlier call."""
        taken = {facts.submitted: "submitted_at", facts.completed: "completed_at"}
        for when, key in taken.items():
            if when is None or key not in facts.lasting or when in self._readings:
                continue
            value = facts.lasting[key]
            for other, reading in self._readings.items():
                if (other < when and reading > value) or (other > when and reading < value):
                    why = f"{key} is {value}, though the clock read {reading} "
                    return Rejection("S7", why + ("before" if other < when else "later"))
            self._readings[when] = value
        return None


def _note_end(facts: Facts, args: Mapping[str, Any], reply: Mapping[str, Any], when: int) -> None:
    error = args.get("error")
    if reply.get("accepted") is True:
        facts.completed, facts.own_error = when, error
    else:
        facts.refused = True
        if isinstance(error, str):
            facts.refused_errors.add(error)


def _changed(key: str, first: Any, value: Any, *, late_call: bool) -> Rejection:
    why = f"{key} was {first!r} and is {value!r} now"
    if key == "task_id":
        return Rejection("Q2", why, (repr(first),))
    if key == "submitted_at":
        return Rejection("S7", why, (repr(first),))
    if late_call:
        # A refused call changes nothing: not the error, nor the completion time.
        return Rejection("S4", why, (repr(first),), ("S5", "R6"))
    return Rejection("S5", why, (repr(first),), ("R6",))
