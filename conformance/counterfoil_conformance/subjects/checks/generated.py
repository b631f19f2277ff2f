"""Programs that hypothesis writes: any calls, in any order, shrunk to the few that matter."""

from typing import Final

from counterfoil_conformance.machine import find_failure
from counterfoil_conformance.subjects.registry import Context, check

_CLAUSES: Final = (
    "S1 S2 S3 S4 S5 S6 S7 S8 S9 A1 A2 A3 A4 A5 A6 A8 A10 A11 R1 R3 R4 R6 R7 R9 Q1 Q2 W1 G1 G2 G3"
)


@check(_CLAUSES)
def programs_that_are_generated_from_the_law(ctx: Context) -> None:
    """The smallest program that is answered wrongly, if there is one."""
    failure = find_failure(ctx.subject, "deep" if ctx.is_full else "ci", ctx.options.seed)
    if failure is None:
        return
    why = f"{failure.why}, in the program\n{failure.program()}"
    for clause in (failure.clause, *failure.also):
        ctx.fail(clause, why, allowed=failure.allowed, actual=failure.actual, repro=failure.repro)
