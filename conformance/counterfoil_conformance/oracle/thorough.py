"""Both judges, one after the other: intervals first, and the whole search where it is short.

The interval judge is quick, names clauses well and needs no complete history, but it only finds
what a few facts prove. On a short, complete history the search settles what is left.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from counterfoil_conformance.oracle.findings import Accusation, Judgement
from counterfoil_conformance.oracle.history import Call
from counterfoil_conformance.oracle.judge import judge
from counterfoil_conformance.oracle.linearizability import (
    DEFAULT_CAP,
    Explanation,
    Found,
    explain,
)
from counterfoil_conformance.oracle.setting import Setting

__all__ = ["SHORT", "judge_thoroughly"]

# Longer histories are not searched: most would only reach the cap.
SHORT: Final = 60
# The longest order that works may be long; its end is where the trouble is.
_SHOWN: Final = 12


def judge_thoroughly(calls: Sequence[Call], setting: Setting, cap: int = DEFAULT_CAP) -> Judgement:
    """Judge a history by intervals, and if that accuses of nothing search the whole ledger.

    A search that cannot be made, or reaches its cap, adds nothing: `undecided` names it under A1,
    the clause whose sentence speaks of "some order", only where the cap was reached.
    """
    judgement = judge(calls, setting)
    if judgement.accusations or len(calls) > SHORT:
        return judgement
    explanation = explain(calls, setting, cap)
    if explanation.found is Found.REFUTED:
        return replace(judgement, accusations=(_accusation(calls, explanation),))
    if explanation.found is Found.UNKNOWN and explanation.states:
        return replace(judgement, undecided={**judgement.undecided, "A1": explanation.why})
    return judgement


def _accusation(calls: Sequence[Call], explanation: Explanation) -> Accusation:
    """No order works: the longest that does, and what blocks every call that could come next."""
    order = explanation.order
    left_out = len(order) - _SHOWN
    let = [f"the first {left_out} points be in order"] if left_out > 0 else []
    let += [f"next come {text}" for text in order[-_SHOWN:]]
    let += [f"{clause} block {why}" for clause, why in explanation.blocked]
    why = (
        f"no order of the {len(calls)} calls explains all answers: {explanation.states} states "
        "were visited, and the longest order that works ends here"
    )
    return Accusation(explanation.clause, why, tuple(let), tuple(calls))
