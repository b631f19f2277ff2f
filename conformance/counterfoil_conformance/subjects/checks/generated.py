"""Programs that hypothesis writes: any calls, in any order, shrunk to the few that matter."""

import time
from typing import Final, NamedTuple

from counterfoil_conformance.machine import PROFILES, Failure, Profile, find_failure
from counterfoil_conformance.subjects.registry import Context, check

_CLAUSES: Final = (
    "S1 S2 S3 S4 S5 S6 S7 S8 S9 A1 A2 A3 A4 A5 A6 A8 A10 A11 R1 R3 R4 R6 R7 R9 Q1 Q2 W1 G1 G2 G3"
)


class _Share(NamedTuple):
    """What a profile has for the programs: how many at a time, and for how many seconds."""

    profile: Profile
    batch: int
    seconds: float

    @property
    def batches(self) -> int:
        """As many as make up the profile's number of programs."""
        return -(-PROFILES[self.profile].max_examples // self.batch)


_QUICK: Final = _Share("ci", 40, 8.0)
_FULL: Final = _Share("deep", 300, 120.0)


@check(_CLAUSES)
def programs_that_are_generated_from_the_law(ctx: Context) -> None:
    """The smallest program that is answered wrongly, if there is one.

    A driver may take long over each answer, and a busy machine over everything: batches follow one
    another until the profile has no time left for one more.
    """
    share = _FULL if ctx.is_full else _QUICK
    until = time.monotonic() + share.seconds
    for number in range(share.batches):
        seed = ctx.options.seed + number * 1_000_003
        failure = find_failure(ctx.subject, share.profile, seed, programs=share.batch)
        if failure is not None:
            _tell(ctx, failure)
            return
        if time.monotonic() > until:
            return


def _tell(ctx: Context, failure: Failure) -> None:
    why = f"{failure.why}, in the program\n{failure.program()}"
    for clause in (failure.clause, *failure.also):
        ctx.fail(clause, why, allowed=failure.allowed, actual=failure.actual, repro=failure.repro)
