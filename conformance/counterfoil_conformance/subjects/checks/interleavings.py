"""Every interleaving of small races, on a ledger in this process: no luck is involved."""

from typing import Final

from counterfoil_conformance.schedules.check import check_schedules
from counterfoil_conformance.subjects.python import PythonSubject
from counterfoil_conformance.subjects.registry import Context, check

_CLAUSES: Final = "S2 S4 S5 S6 S9 A1 A2 A3 A5 R4 R6 R9 Q1 W1 W2 W4 W6 W7 G1 G2"


@check(_CLAUSES)
def every_interleaving_of_small_races(ctx: Context) -> None:
    """Only where the ledger's own steps can be scheduled: in Python, in this process."""
    if isinstance(ctx.subject, PythonSubject):
        check_schedules(ctx.subject.factory, ctx.publish, ctx.subject.name)
