"""Programs that hypothesis writes: any calls, in any order, shrunk to the few that matter."""

from typing import Final, NamedTuple

from counterfoil_conformance.machine import PROFILES, Profile, find_failure
from counterfoil_conformance.subjects.registry import Context, check

_CLAUSES: Final = (
    "S1 S2 S3 S4 S5 S6 S7 S8 S9 A1 A2 A3 A4 A5 A6 A8 A10 A11 R1 R3 R4 R6 R7 R9 Q1 Q2 W1 G1 G2 G3"
)


class _Share(NamedTuple):
    """What a profile has for the programs: their usual number, their calls each, and its time."""

    profile: Profile
    calls: int
    seconds: float


# Calls, with the reads in between, as measured.
_QUICK: Final = _Share("ci", 60, 8.0)
_FULL: Final = _Share("deep", 150, 120.0)
_FEWEST: Final = 20


@check(_CLAUSES)
def programs_that_are_generated_from_the_law(ctx: Context) -> None:
    """The smallest program that is answered wrongly, if there is one."""
    share = _FULL if ctx.is_full else _QUICK
    programs = _affordable(share, ctx.typical_ms)
    failure = find_failure(ctx.subject, share.profile, ctx.options.seed, programs=programs)
    if failure is None:
        return
    why = f"{failure.why}, in the program\n{failure.program()}"
    for clause in (failure.clause, *failure.also):
        ctx.fail(clause, why, allowed=failure.allowed, actual=failure.actual, repro=failure.repro)


def _affordable(share: _Share, typical_ms: float) -> int:
    """How many programs there is time for; a driver may take long over each answer."""
    usual = PROFILES[share.profile].max_examples
    cost_s = share.calls * typical_ms / 1000
    return max(_FEWEST, min(usual, int(share.seconds / cost_s) if cost_s else usual))
