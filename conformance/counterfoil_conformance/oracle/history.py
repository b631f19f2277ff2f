"""A recorded history: what was asked of a ledger, what it answered, and when.

A *call* is one request with the interval in which it was in flight. That interval is all a client
can know: the effect took place at some instant inside it, and which one nobody saw. Everything the
judges conclude rests on intervals alone, so the recorder must stamp *outside* the call (before the
first byte leaves, after the last one came) and every stamp must come from a clock that never goes
back.

On disk a history is JSON lines, one object per call, in any order:

    {"client": "poller-1", "op": "snapshot", "job": "job_7", "call": 1042, "return": 1377,
     "clock_id": "host-a", "args": {}, "reply": {"state": "running", "error": null}}

`call` and `return` are microseconds of the clock that `clock_id` names. Stamps of different clocks
are never compared. A line without a `clock_id` has its client's own clock. `return` is null where
no answer came; `reply` is null where none came or what came made no sense. Unknown fields are
ignored; a line that cannot be understood is counted apart, with its number, and the rest is judged.

The traps. A call without a reply may still take effect, at any time after it was sent: nobody may
conclude anything from the moment the client gave up. And equal stamps prove no order: a clock has a
grain, so only a strictly smaller return comes before a call.
"""

import json
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

from counterfoil_conformance.errors import UsageError

__all__ = [
    "OPS",
    "READS",
    "TRANSITIONS",
    "BadLine",
    "Call",
    "History",
    "Json",
    "Pending",
    "Recorder",
    "load_history",
    "monotonic_us",
    "parse_history",
    "save_history",
]

Json: TypeAlias = Any

# What may be asked of a ledger, in the words of the exec protocol. HTTP calls are mapped onto them.
TRANSITIONS: Final = frozenset({"start", "finish", "fail", "timeout"})
READS: Final = frozenset({"snapshot", "result", "wait"})
OPS: Final = TRANSITIONS | READS | {"submit", "take_request", "depth", "advance"}


_FOREVER_US: Final = 1 << 63


class _NotACallError(Exception):
    """A line of JSON that is no call; the message names the field."""


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """One call: who asked for what, the interval in which it was in flight, and the answer.

    Args:
        client: who called; a client makes one call at a time.
        op: one of `OPS`; a call with another op is kept and judged by nobody.
        job: the id spoken of; None for `submit`, `depth` and `advance`, and for a transition of
            which the client never learned the job (a claim that was not answered: op `start`).
        call_us, return_us: the interval in µs of the clock `clock_id` (fractions allowed); no
            `return_us` where the call never came back.
        args: `task_id`, `payload`, `budget_ms`, `result`, `error`, `ms`, as far as known. Two more
            tell what an answer cannot prove: `valid: false` (a submit that may be refused for its
            content) and `fence` (a transition that may be refused for a stale lease).
        reply: the answer, in the shapes of the exec protocol; None where none came. A submit
            refused for its content is `{"rejected": true}`; an answer that proves nothing (a 5xx)
            is `{"error": text}`.
    """

    client: str
    op: str
    job: str | None
    call_us: float
    return_us: float | None
    clock_id: str
    args: Mapping[str, Json] = field(default_factory=dict)
    reply: Mapping[str, Json] | None = None

    @property
    def answered(self) -> bool:
        """Whether an answer came that says what happened."""
        return self.reply is not None and self.reply.keys() != {"error"}

    @property
    def until_us(self) -> float:
        """The latest instant at which the call may have taken effect; infinite if unanswered."""
        if self.return_us is None or not self.answered:
            return math.inf
        return self.return_us

    def as_line(self) -> dict[str, Json]:
        """The call as an object of the line format."""
        line: dict[str, Json] = {"client": self.client, "op": self.op}
        if self.job is not None:
            line["job"] = self.job
        return line | {
            "call": self.call_us,
            "return": self.return_us,
            "clock_id": self.clock_id,
            "args": dict(self.args),
            "reply": None if self.reply is None else dict(self.reply),
        }


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that is no call: its number, from 1, and what is wrong with it."""

    number: int
    why: str


@dataclass(frozen=True, slots=True)
class History:
    """The calls of a history, by clock and then by time, and the lines that could not be read."""

    calls: tuple[Call, ...]
    bad_lines: tuple[BadLine, ...] = ()


def parse_history(lines: Iterable[str]) -> History:
    """Read a history from JSON lines, in any order; blank lines are skipped."""
    calls: list[Call] = []
    bad: list[BadLine] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            calls.append(_call(json.loads(line)))
        except (_NotACallError, ValueError, RecursionError) as error:
            bad.append(BadLine(number, str(error)))
    calls.sort(key=lambda call: (call.clock_id, call.call_us))
    return History(tuple(calls), tuple(bad))


def load_history(path: str | Path) -> History:
    """Read a history from a file of JSON lines.

    Raises:
        UsageError: the file cannot be read.
    """
    try:
        text = Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UsageError(f"cannot read the history {path}: {error.strerror}") from error
    return parse_history(text.split("\n"))


def save_history(path: str | Path, calls: Iterable[Call]) -> None:
    """Write calls as JSON lines, in order of call; fractions of a µs are cut off."""
    ordered = sorted(calls, key=lambda call: (call.clock_id, call.call_us))
    lines = (json.dumps(_whole(call.as_line()), ensure_ascii=False) for call in ordered)
    Path(path).write_text("".join(line + "\n" for line in lines), encoding="utf-8")


def _whole(line: dict[str, Json]) -> dict[str, Json]:
    """With stamps in whole µs: cutting both keeps every order, or makes it a tie."""
    line["call"] = math.floor(line["call"])
    line["return"] = None if line["return"] is None else math.floor(line["return"])
    return line


def _call(line: Json) -> Call:
    """One line as a call.

    Raises:
        _NotACallError: it is none; the message names the field.
    """
    if not isinstance(line, dict):
        raise _NotACallError("not a JSON object")
    client, op, job = _text(line, "client"), _text(line, "op"), line.get("job")
    if not (job is None or isinstance(job, str)):
        raise _NotACallError("`job` is not a string")
    started, returned = _stamp(line, "call"), None
    if line.get("return") is not None:
        returned = _stamp(line, "return")
        if returned < started:
            raise _NotACallError("`return` is before `call`")
    clock = line.get("clock_id", f"the clock of {client}")
    if not isinstance(clock, str):
        raise _NotACallError("`clock_id` is not a string")
    args = _object(line, "args") or {}
    return Call(client, op, job, started, returned, clock, args, _object(line, "reply"))


def _text(line: dict[str, Json], key: str) -> str:
    value = line.get(key)
    if not isinstance(value, str):
        raise _NotACallError(f"`{key}` is missing or not a string")
    return value


def _stamp(line: dict[str, Json], key: str) -> float:
    value = line.get(key)
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _FOREVER_US:
        return value
    raise _NotACallError(f"`{key}` is missing or not a number of microseconds")


def _object(line: dict[str, Json], key: str) -> dict[str, Json] | None:
    value = line.get(key)
    if not (value is None or isinstance(value, dict)):
        raise _NotACallError(f"`{key}` is not an object")
    return value


def monotonic_us() -> int:
    """The monotonic clock of this process, in whole µs."""
    return time.monotonic_ns() // 1000


class Pending:
    """A call in flight: set `reply` when the answer is there, and `job` if only it tells the id."""

    __slots__ = ("job", "reply")

    def __init__(self, job: str | None) -> None:
        self.job = job
        self.reply: Mapping[str, Json] | None = None


class Recorder:
    """Collects the calls of many threads or tasks that share one clock.

    Args:
        clock_id: the name of the clock; the same for everything that `now_us` stamps.
        now_us: the clock, in µs, never going back.
    """

    def __init__(self, clock_id: str = "local", now_us: Callable[[], float] = monotonic_us) -> None:
        self.clock_id = clock_id
        self.now_us = now_us
        self._calls: list[Call] = []
        self._lock = threading.Lock()

    @contextmanager
    def calling(
        self, client: str, op: str, job: str | None = None, **args: Json
    ) -> Iterator[Pending]:
        """Stamp the call made in the body; an exception there leaves it unanswered, and goes on."""
        pending, started, returned = Pending(job), self.now_us(), None
        try:
            yield pending
            returned = self.now_us()
        finally:
            reply = None if returned is None else pending.reply
            self.add(Call(client, op, pending.job, started, returned, self.clock_id, args, reply))

    def add(self, call: Call) -> None:
        """Keep a call that was stamped elsewhere."""
        with self._lock:
            self._calls.append(call)

    def calls(self) -> tuple[Call, ...]:
        """What was recorded so far, by clock and then by time."""
        with self._lock:
            calls = list(self._calls)
        return tuple(sorted(calls, key=lambda call: (call.clock_id, call.call_us)))
