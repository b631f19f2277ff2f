"""Make a failing history small before a person reads it, without running anything again.

What may be left out? A *read* always: fewer sights loosen bounds, they never tighten one. A submit
or a transition only if the accusation does not lean on its absence: "nobody can have filled the
queue" is said of all submits there were. So the history is first judged as if others had used the
ledger too; an accusation that survives that does not lean on anything being complete, and then
every call may go. Otherwise the calls that can change the ledger stay.

The search is ddmin (Zeller): drop ever smaller pieces while the same clause is still broken. It
starts from the calls that the accusation itself names, which mostly is the answer already.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from counterfoil_conformance.oracle.findings import Accusation
from counterfoil_conformance.oracle.history import READS, Call
from counterfoil_conformance.oracle.judge import judge
from counterfoil_conformance.oracle.setting import Setting

__all__ = ["ddmin", "minimise"]

# Judging is fast but not free; so many attempts are enough to get close.
_ATTEMPTS: Final = 400
_ONLY_LOOK: Final = READS | {"depth", "take_request"}


def _never() -> bool:
    return False


def minimise(
    calls: Sequence[Call],
    setting: Setting,
    accusation: Accusation,
    enough: Callable[[], bool] = _never,
) -> tuple[tuple[Call, ...], Setting]:
    """The fewest calls, in their order, that still break the same clause for the same job.

    Args:
        calls: the whole history, of which the accusation was made.
        setting: that under which it was judged.
        accusation: what must survive.
        enough: asked before each attempt; once it is true, what there is by then is returned.

    Returns:
        The calls, and the setting under which they may be judged alone: where calls that change the
        ledger were dropped it no longer claims that the history is complete.
    """
    loose = replace(setting, exclusive=False, visible=False, ended_before=None)

    def breaks(some: Sequence[Call], where: Setting) -> bool:
        found = judge(some, where).accusations
        return any(one.clause == accusation.clause and one.job == accusation.job for one in found)

    named = [call for call in calls if call in set(accusation.calls)]
    if breaks(named, loose):
        return tuple(ddmin(named, lambda some: breaks(some, loose), enough)), loose
    if enough():
        return tuple(calls), setting
    if breaks(calls, loose):
        return tuple(ddmin(list(calls), lambda some: breaks(some, loose), enough)), loose
    acts = [call for call in calls if call.op not in _ONLY_LOOK]
    looks = [call for call in calls if call.op in _ONLY_LOOK]

    def still(some: Sequence[Call]) -> bool:
        return breaks([*acts, *some], setting)

    kept = set(ddmin([call for call in looks if call in set(named)], still, enough))
    if not still(list(kept)):
        kept = set(ddmin(looks, still, enough))
    return tuple(call for call in calls if call.op not in _ONLY_LOOK or call in kept), setting


def ddmin(
    calls: list[Call],
    fails: Callable[[Sequence[Call]], bool],
    enough: Callable[[], bool] = _never,
) -> list[Call]:
    """A small sublist that still fails; the list itself if it does not fail.

    Within the budget of attempts no single call of the answer can be dropped.
    """
    attempts, pieces = _ATTEMPTS, 2
    if not fails(calls):
        return calls
    while len(calls) > 1 and attempts > 0:
        size = -(-len(calls) // pieces)
        for start in range(0, len(calls), size):
            if enough():
                return calls
            rest = calls[:start] + calls[start + size :]
            attempts -= 1
            if rest and fails(rest):
                calls, pieces = rest, max(pieces - 1, 2)
                break
            if attempts <= 0:
                break
        else:
            if size == 1:
                break
            pieces = min(pieces * 2, len(calls))
    return calls
