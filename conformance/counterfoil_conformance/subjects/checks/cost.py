"""R8: the cost of a submit does not grow with what is retained.

The typical submit of a ledger that retains a hundred jobs is compared with that of one that retains
many thousands. A pipe between us and the ledger hides microseconds, so only a gross growth shows
through one, and filling takes its time: over a pipe this is left to the full profile.
"""

import time
from statistics import median
from typing import Final, NamedTuple

from counterfoil_conformance.subjects.base import Subject
from counterfoil_conformance.subjects.books import NEVER_MS
from counterfoil_conformance.subjects.registry import Context, check
from counterfoil_spec.ledger import Limits

_FEW: Final = 100
_MANY: Final = 20_000
_SAMPLES: Final = 200
_FACTOR: Final = 4.0
_LEAST_US: Final = 25.0


@check("R8", slow_over_a_pipe=True)
def a_submit_costs_the_same_whatever_is_retained(ctx: Context) -> None:
    """Two measurements must agree before the ledger is blamed: a stall is not growth."""
    growth = [_measure(ctx.subject)]
    if growth[0].is_gross:
        growth.append(_measure(ctx.subject))
    if growth[-1].is_gross:
        ctx.fail("R8", growth[-1].why, should=True)
    else:
        ctx.ok("R8")


class _Growth(NamedTuple):
    """The typical cost (us) of a submit with `_FEW` jobs retained, and with `retained`."""

    few_us: float
    many_us: float
    retained: int

    @property
    def is_gross(self) -> bool:
        """More than noise, and more than the caches of a machine make of it."""
        return self.many_us > _FACTOR * self.few_us and self.many_us - self.few_us > _LEAST_US

    @property
    def why(self) -> str:
        few, many = f"{self.few_us:.0f} us with {_FEW}", f"{self.many_us:.0f} us"
        return f"a submit takes {few} jobs retained, {many} with {self.retained}"


def _measure(subject: Subject) -> _Growth:
    """Fill the ledger and look at the cost, until it has grossly grown.

    After that there is no more to see, and filling a ledger whose submits walk over all that is
    retained would take minutes.
    """
    subject.configure(Limits(4, NEVER_MS, _MANY * 2))
    for _ in range(_FEW):
        _round(subject)
    few_us = median(_round(subject) for _ in range(_SAMPLES))
    retained = _FEW + _SAMPLES
    while True:
        many_us = median(_round(subject) for _ in range(_SAMPLES))
        retained += _SAMPLES
        growth = _Growth(few_us, many_us, retained)
        if growth.is_gross or retained >= _MANY:
            return growth


def _round(subject: Subject) -> float:
    """Submit and finish one job; what the submit took, in us."""
    began = time.perf_counter_ns()
    job = subject.call("submit", task_id="t", payload="p")["job"]
    took = time.perf_counter_ns() - began
    subject.call("finish", job=job, result="r")
    return took / 1000
