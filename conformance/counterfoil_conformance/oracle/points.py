"""What has to be put in order when a whole history is explained: the points of its calls.

A call takes effect at one instant of its interval, a *point*; a submit at two, because it may evict
later than it admits. The points of a call that was not answered are optional. (The eviction of a
refused submit is not: it has its place in the order, and may turn out to evict nothing.) Order in
real time is a relation between calls: one comes before another if it returned before the other
began, on the same clock.

Sets of points are bits of an integer, since the search asks for little else than subsets.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from counterfoil_conformance.oracle.evidence import issued_id
from counterfoil_conformance.oracle.history import OPS, READS, Call
from counterfoil_conformance.oracle.successors import Asked

__all__ = ["Point", "points_of"]

_PURE: Final = READS | {"depth"}


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """One effect of one call.

    Args:
        call: whose effect it is.
        asked: the call in the law's terms; its op is `admit`, `sweep`, `may_sweep` or that of the
            call.
        optional: it may be left out, because the call was not answered.
        before: the points, none of them optional, that must have taken place.
    """

    call: Call
    asked: Asked
    optional: bool
    before: int = 0

    @property
    def pure(self) -> bool:
        """Whether it only looks."""
        return self.asked.op in _PURE


def points_of(calls: Sequence[Call]) -> list[Point]:
    """The points of a history, with their order in real time."""
    numbers: dict[str, int] = {}
    for index, call in enumerate(calls):
        if call.op == "submit" and (job := issued_id(call)) is not None:
            numbers.setdefault(job, index)
    drafts: list[tuple[Call, Asked, bool, int | None]] = []
    for index, call in enumerate(calls):
        if call.op in OPS:
            _draft(call, index, numbers, drafts)
    return [_ordered(index, drafts) for index in range(len(drafts))]


def _draft(
    call: Call,
    index: int,
    numbers: dict[str, int],
    drafts: list[tuple[Call, Asked, bool, int | None]],
) -> None:
    """Add the points of one call; the last item is the point of the same call that comes first."""
    reply = call.reply if call.answered else None
    if call.op != "submit":
        if reply is not None or call.op not in _PURE:
            asked = Asked(call.op, numbers.get(call.job or ""), call.args, reply)
            drafts.append((call, asked, reply is None, None))
        return
    admitted = issued_id(call) is not None
    first = None
    if reply is None or reply.get("rejected") is not True:
        first = len(drafts)
        drafts.append((call, Asked("admit", index, call.args, reply), reply is None, None))
    # What was refused, for its content too, may evict.
    drafts.append((call, Asked("sweep" if admitted else "may_sweep"), reply is None, first))


def _ordered(index: int, drafts: Sequence[tuple[Call, Asked, bool, int | None]]) -> Point:
    call, asked, optional, first = drafts[index]
    before = 0 if first is None or drafts[first][2] else 1 << first
    for other, (rival, _, maybe, _) in enumerate(drafts):
        if rival.clock_id != call.clock_id:
            continue
        if rival.until_us < call.call_us and not maybe:
            before |= 1 << other
    return Point(call, asked, optional, before)
