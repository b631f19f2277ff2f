"""R8: the cost of a submit does not grow with what is retained.

The typical submit of a ledger that retains a hundred jobs is compared with that of one that retains
many thousands. A pipe between us and the ledger hides microseconds, so only a gross growth shows
through one, and filling takes its time: over a pipe this is left to the full profile.
"""

import time
from statistics import median
from typing import Final

from counterfoil_conformance.report.events import NotRun
from counterfoil_conformance.subjects.base import Subject
from counterfoil_conformance.subjects.books import NEVER_MS
from counterfoil_conformance.subjects.python import PythonSubject
from counterfoil_conformance.subjects.registry import Context, check
from counterfoil_spec.ledger import Limits

_FEW: Final = 100
_MANY: Final = 20_000
_SAMPLES: Final = 200
# Growth by less than this is noise, or the caches of the machine.
_FACTOR: Final = 4.0
_LEAST_US: Final = 25.0


@check("R8")
def a_submit_costs_the_same_whatever_is_retained(ctx: Context) -> None:
    """Two measurements must agree before the ledger is blamed: a stall is not growth."""
    if not ctx.is_full and not isinstance(ctx.subject, PythonSubject):
        ctx.publish(NotRun("R8", "only --profile full has time for it over a pipe"))
        return
    growth = [_measure(ctx.subject)]
    if _grows(growth[0]):
        growth.append(_measure(ctx.subject))
    few, many = growth[-1]
    if _grows(growth[-1]):
        why = f"a submit takes {few:.0f} us with {_FEW} jobs retained, {many:.0f} us with {_MANY}"
        ctx.fail("R8", why, should=True)
    else:
        ctx.ok("R8")


def _grows(measured: tuple[float, float]) -> bool:
    few, many = measured
    return many > _FACTOR * few and many - few > _LEAST_US


def _measure(subject: Subject) -> tuple[float, float]:
    """The median cost (us) of a submit with few and with many jobs retained."""
    subject.configure(Limits(4, NEVER_MS, _MANY * 2))
    for _ in range(_FEW):
        _round(subject)
    few = median(_round(subject) for _ in range(_SAMPLES))
    for _ in range(_MANY - _FEW):
        _round(subject)
    return few, median(_round(subject) for _ in range(_SAMPLES))


def _round(subject: Subject) -> float:
    """Submit and finish one job; what the submit took, in us."""
    began = time.perf_counter_ns()
    job = subject.call("submit", task_id="t", payload="p")["job"]
    took = time.perf_counter_ns() - began
    subject.call("finish", job=job, result="r")
    return took / 1000
