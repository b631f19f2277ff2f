"""Histories that a driver recorded itself: the answers to `race` and `stress`.

Each is a list of history lines on the driver's own clock. Calls that the kit made before or after
are put on the same clock, at stamps before the first or after the last: what was answered before
the operation was sent had returned before any of its calls began, so nothing is claimed that is
not so.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from counterfoil_conformance.errors import HarnessError
from counterfoil_conformance.oracle.history import Call
from counterfoil_conformance.subjects.books import check_shape

__all__ = ["DRIVER_CLOCK", "framed", "recorded_histories"]

DRIVER_CLOCK: Final = "driver"


def recorded_histories(subject: str, reply: dict[str, Any]) -> list[list[Call]]:
    """The histories of an answer to `race` or `stress`.

    Raises:
        HarnessError: it has none, or a line is no call.
    """
    histories = reply.get("histories")
    if not isinstance(histories, list):
        raise HarnessError(f"{subject}: the answer to a race has no histories: {reply!r:.200}")
    return [[_call(subject, line) for line in _lines(subject, one)] for one in histories]


def _lines(subject: str, history: Any) -> list[Any]:
    lines = history.get("calls") if isinstance(history, dict) else history
    if not isinstance(lines, list):
        raise HarnessError(f"{subject}: a history has no calls: {history!r:.200}")
    return lines


def _call(subject: str, line: Any) -> Call:
    try:
        op, reply, returned = str(line["op"]), line["reply"], line["return"]
        call = Call(
            str(line["client"]),
            op,
            line.get("job"),
            float(line["call"]),
            None if returned is None else float(returned),
            DRIVER_CLOCK,
            line.get("args") or {},
            reply,
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise HarnessError(f"{subject}: no line of a history: {line!r:.200} ({error!r})") from error
    if reply is not None and set(reply) != {"error"}:
        check_shape(subject, op, reply)
    return call


def framed(before: Sequence[Call], middle: Sequence[Call], after: Sequence[Call]) -> list[Call]:
    """One history on one clock: `before` had returned, then `middle`, then `after` began."""
    first = min((call.call_us for call in middle), default=0.0)
    ends = [call.call_us if call.return_us is None else call.return_us for call in middle]
    last = max(ends, default=0.0)
    start = _shift(before, first - 10.0 - _end(before))
    end = _shift(after, last + 10.0 - min((call.call_us for call in after), default=0.0))
    return [*start, *middle, *end]


def _end(calls: Iterable[Call]) -> float:
    return max((call.return_us or call.call_us for call in calls), default=0.0)


def _shift(calls: Iterable[Call], by_us: float) -> list[Call]:
    return [
        Call(
            call.client,
            call.op,
            call.job,
            call.call_us + by_us,
            None if call.return_us is None else call.return_us + by_us,
            DRIVER_CLOCK,
            call.args,
            call.reply,
        )
        for call in calls
    ]
