"""Checks and what they stand in: one decorator, one context.

A check is an async function over a `Context`. What it needs of the target file, how many places in
the queue it takes and which profile has time for it stand in its decorator, so that the runner can
decide what may run beside what and what is UNTESTABLE:

    @check("W2 W6", needs=("bodies.slow",), places=1)
    async def waiters_are_woken_by_the_end(ctx: Context) -> None:
        ...

`places`: 0 takes none (refusals, bad input: runs beside anything); k takes up to k at a time, and
runs beside others while places last; ALL counts places, and has the queue to itself. A check that
raises is the harness's fault, never the target's, except for `Violation`.

The trap: a check that shares the target may find its job evicted by count, or kept waiting for a
worker, by the jobs of others. It must take a 404 after the end for "gone", not for a finding; the
oracle judges every 404 with the whole history in view.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from counterfoil_conformance.report.events import Declared, NotRun, Undecided, Untestable
from counterfoil_conformance.run import Publish, RunOptions
from counterfoil_conformance.wire.answer import Answer
from counterfoil_conformance.wire.session import Session
from counterfoil_conformance.wire.target import Target
from counterfoil_spec.clauses import clause_ids

__all__ = [
    "ALL",
    "CHECKS",
    "CLOSED",
    "DISABLED",
    "Check",
    "CheckFunction",
    "Context",
    "TimeBox",
    "check",
]

ALL: Final = -1
DISABLED: Final = "disabled"
CLOSED: Final = "closed"
Profile: TypeAlias = Literal["quick", "full"]


@dataclass(frozen=True, slots=True)
class TimeBox:
    """A moment of the monotonic clock after which nothing is repeated any more."""

    until_s: float

    @property
    def is_over(self) -> bool:
        """Whether that moment is past."""
        return time.monotonic() > self.until_s


class Context:
    """What a check works with: the session, the target, the options, and how to say what it saw."""

    def __init__(self, session: Session, options: RunOptions, publish: Publish) -> None:
        self.session = session
        self.options = options
        self._publish = publish

    @property
    def target(self) -> Target:
        """The target file."""
        return self.session.target

    @property
    def profile(self) -> str:
        """`quick` or `full`."""
        return self.options.profile

    @property
    def is_full(self) -> bool:
        """Whether there is time."""
        return self.options.profile == "full"

    @property
    def tolerance_s(self) -> float:
        """Declared tolerance + measured round trip + lag of our own loop, in seconds."""
        return self.session.slack_us() / 1e6

    def another_life(self) -> Session:
        """A session of its own for checks that end the target: its ledger is another one.

        Nothing of it is in the recorded history of the run; the caller closes it.
        """
        session = Session(self.target, self.options, self._publish)
        session.max_queue, session.process = self.session.max_queue, self.session.process
        return session

    def times(self, quick: int, full: int, least: int = 2) -> int:
        """How often to repeat something of a few requests: less often where each takes long."""
        wanted = full if self.is_full else quick
        usual_ms = self.session.usual_trip_ms()
        return max(least, int(wanted * min(1.0, 40 / max(usual_ms, 1))))

    def box(self, seconds: float) -> "TimeBox":
        """How long a check may repeat something: less where the run is late already."""
        if self.is_full:
            seconds *= 20
        elif self.session.is_late_already:
            seconds /= 2
        return TimeBox(time.monotonic() + seconds)

    def ok(self, clause: str, count: int = 1) -> None:
        """The clause was exercised and held."""
        self.session.ok(clause, count)

    def fail(
        self,
        clause: str,
        why: str,
        *,
        allowed: str = "",
        answers: Iterable[Answer] = (),
        actual: str = "",
        must: bool = False,
        one_connection: bool = False,
    ) -> None:
        """The target broke the clause; `answers` show it, the last one is what came.

        `must`: this part of a SHOULD clause is a MUST. `one_connection`: to be shown on one.
        """
        self.session.find(
            clause,
            why,
            allowed=allowed,
            answers=answers,
            actual=actual,
            must=must,
            one_connection=one_connection,
        )

    def warn(
        self,
        clause: str,
        why: str,
        *,
        allowed: str = "",
        answers: Iterable[Answer] = (),
        actual: str = "",
    ) -> None:
        """The target did not do what the clause says it SHOULD."""
        self.session.find(clause, why, allowed=allowed, answers=answers, actual=actual, should=True)

    def expect(
        self,
        holds: bool,
        clause: str,
        why: str,
        *,
        allowed: str = "",
        answers: Iterable[Answer] = (),
        one_connection: bool = False,
    ) -> bool:
        """Witness the clause if it holds, else fail it; returns `holds`."""
        if holds:
            self.ok(clause)
        else:
            self.fail(clause, why, allowed=allowed, answers=answers, one_connection=one_connection)
        return holds

    def untestable(self, clause: str, lack: str) -> None:
        """The target (file) lacks what the clause needs: `lack` is the key, or a sentence."""
        why = f"needs `{lack}` in the target file" if " " not in lack else lack
        self._publish(Untestable(clause, why))

    def undecided(self, clause: str, why: str) -> None:
        """What happened allows no conclusion."""
        self._publish(Undecided(clause, why))

    def does_not_apply(self, clause: str, why: str) -> None:
        """The clause speaks of a configuration that the target does not have."""
        self._publish(NotRun(clause, why, applies=False))

    def declared(self, clause: str, why: str) -> None:
        """A deviation that the target file declares."""
        self._publish(Declared(clause, why))


CheckFunction: TypeAlias = Callable[[Context], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Check:
    """A registered check. `order` sorts within a lane; `limit_s` is when the harness gives up."""

    name: str
    clauses: tuple[str, ...]
    sentence: str
    function: CheckFunction
    needs: tuple[str, ...]
    unless: tuple[str, ...]
    places: int
    profile: Profile
    order: int
    limit_s: float
    even: tuple[str, ...] = ()

    def pointless(self, target: Target) -> str:
        """Why the check makes no sense on a target so configured, or ""."""
        if target.limits.async_enabled is False and DISABLED not in self.even:
            return "`limits.async_enabled = false`: there are no jobs"
        closed = target.limits.max_queue is not None and target.limits.max_queue <= 0
        if closed and self.places != 0 and CLOSED not in self.even:
            return "`limits.max_queue` is not above 0: no job is ever admitted"
        return ""

    async def run(self, ctx: Context) -> None:
        """Run it, for at most `limit_s` seconds.

        Raises:
            TimeoutError: it took longer.
        """
        async with asyncio.timeout(self.limit_s):
            await self.function(ctx)


CHECKS: Final[dict[str, Check]] = {}


def check(
    clauses: str,
    *,
    needs: tuple[str, ...] = (),
    unless: tuple[str, ...] = (),
    places: int = 0,
    profile: Profile = "quick",
    order: int = 50,
    limit_s: float = 40.0,
    even: tuple[str, ...] = (),
) -> Callable[[CheckFunction], CheckFunction]:
    """Register a check under its function's name; `clauses` are those it can decide.

    `unless`: left out where the target has all of these keys, as a richer check then covers it.
    `even`: unusual configurations in which it still makes sense: `DISABLED` (there are no jobs),
    `CLOSED` (no job is ever admitted; checks that take no place make sense there by themselves).
    """

    def enter(function: CheckFunction) -> CheckFunction:
        name = function.__name__
        assert name not in CHECKS, name
        sentence = (function.__doc__ or "").strip().split("\n")[0]
        CHECKS[name] = Check(
            name,
            clause_ids(clauses),
            sentence,
            function,
            needs,
            unless,
            places,
            profile,
            order,
            limit_s,
            even,
        )
        return function

    return enter
