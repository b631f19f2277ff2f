"""How late is late: round trips and the lag of our own loop, measured all through the run.

A timing verdict may blame a target for what exceeds tolerance + round trip, as measured at that
time. Every prompt read of the run is a measurement; so is a task of ours that sleeps for a moment
and notes by how much it overslept: on a loaded machine all that is late may be late because of us.
"""

import asyncio
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Final

from counterfoil_conformance.run import DEFAULT_TOLERANCE_MS, Publish, RunOptions
from counterfoil_conformance.wire.answer import Answer, now_us
from counterfoil_conformance.wire.reporting import Reporting
from counterfoil_conformance.wire.target import Target

__all__ = ["Pace"]

_TRIPS_KEPT: Final = 1024
_SURELY_LATE_US: Final = 1_000_000
_STRIKES: Final = 3
_PROMPT_US: Final = 50_000
_MANY: Final = 7
_ONE_MOMENT_US: Final = 200_000
_STALL_US: Final = 10_000


@dataclass(slots=True)
class _Lag:
    """How late our own event loop was, lately: (when us, late us)."""

    seen: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=512))
    stalls: list[tuple[int, int]] = field(default_factory=list)

    async def measure(self, period_s: float = 0.05) -> None:
        while True:
            before = now_us()
            await asyncio.sleep(period_s)
            after = now_us()
            late_us = max(0, after - before - int(period_s * 1e6))
            self.seen.append((after, late_us))
            if late_us > _STALL_US:
                self.stalls.append((after, late_us))

    def worst_us(self, since_us: int) -> int:
        return max((late for at, late in self.seen if at >= since_us), default=0)

    def between_us(self, since_us: int, until_us: int) -> int:
        """The worst of a time that may be long ago."""
        return max((late for at, late in self.stalls if since_us <= at <= until_us), default=0)


class Pace(Reporting):
    """Measures round trips and lag; says how late an answer may be."""

    def __init__(self, target: Target, options: RunOptions, publish: Publish) -> None:
        super().__init__(target, options, publish)
        self.lag = _Lag()
        self.worst_trip_us = 0
        self._trips: deque[tuple[int, int]] = deque(maxlen=_TRIPS_KEPT)
        self._strikes: Counter[str] = Counter()
        self._timed: Counter[str] = Counter()
        self._counted_us: dict[tuple[int, str], int] = {}

    def is_late(self, clause: str, late_us: int, slack_us: int, due_us: int | None = None) -> bool:
        """Whether an answer that came so late is a fault, and not the machine's.

        Beyond slack and another second it is. Between, a starved thread of a correct server may
        have been the cause once; a fault is there again and again. All that was due at one moment
        (`due_us`) counts as one.
        """
        self._count(self._timed, clause, due_us)
        if late_us > slack_us + _SURELY_LATE_US:
            return True
        if late_us <= slack_us:
            return False
        self._count(self._strikes, clause, due_us)
        strikes = self._strikes[clause]
        return strikes >= _STRIKES and strikes * 10 >= self._timed[clause]

    def _count(self, counter: Counter[str], clause: str, due_us: int | None) -> None:
        """Count once what was due at one moment."""
        if due_us is not None:
            key = (id(counter), clause)
            if abs(due_us - self._counted_us.get(key, -_ONE_MOMENT_US)) < _ONE_MOMENT_US:
                return
            self._counted_us[key] = due_us
        counter[clause] += 1

    @property
    def tolerance_ms(self) -> float:
        """The declared tolerance: of the command line, else of the target file, else 250."""
        given = (self.options.tolerance_ms, self.target.tolerance.ms)
        return next((ms for ms in given if ms is not None), DEFAULT_TOLERANCE_MS)

    def trip_us(self, since_us: int = 0) -> int:
        """The worst round trip of a prompt read since then, or of the recent ones."""
        recent = [trip for at, trip in self._trips if at >= since_us]
        return max(recent or [trip for _, trip in self._trips], default=0)

    def slack_us(self, since_us: int | None = None) -> int:
        """Tolerance + the worst measured round trip and lag of our own loop since then, in us.

        Without `since_us`: over the last 3 s. This is how late an answer that is due "at once" may
        be before it is called late.
        """
        since = now_us() - 3_000_000 if since_us is None else since_us - 1_000_000
        measured = max(self.trip_us(since), self._usual_trip_us())
        return int(self.tolerance_ms * 1000) + measured + self.lag.worst_us(since)

    def allowed_us(self, due_us: int, return_us: int) -> int:
        """How late an answer may be that was due at `due_us` and came at `return_us`, in us.

        Tolerance + the slowest prompt read in flight meanwhile (or what is usual for this target)
        + the lag of our own loop meanwhile; where nothing was read it is `slack_us`. That one also
        counts what was slow a second before, so this is closer, and one answer beyond it proves
        nothing: see `is_late`.
        """
        meanwhile = [trip for at, trip in self._trips if at >= due_us and at - trip <= return_us]
        if not meanwhile:
            return self.slack_us(due_us)
        measured = max(*meanwhile, self._usual_trip_us())
        return int(self.tolerance_ms * 1000) + measured + self.lag.between_us(due_us, return_us)

    def was_prompt(self, due_us: int, return_us: int) -> bool:
        """Whether many reads began and came back quickly between the two moments.

        A machine that has no time for one answer has none for so many others.
        """
        between = [trip for at, trip in self._trips if at <= return_us and at - trip >= due_us]
        return sum(trip < _PROMPT_US for trip in between) >= _MANY

    def usual_trip_ms(self) -> float:
        """The median of the round trips kept."""
        trips = sorted(trip for _, trip in self._trips)
        return trips[len(trips) // 2] / 1000 if trips else 0.0

    def _usual_trip_us(self) -> int:
        """Nearly the worst of all trips kept: a jittery target is jittery throughout."""
        trips = sorted(trip for _, trip in self._trips)
        return trips[int(len(trips) * 0.98)] if trips else 0

    def _note_trip(self, answer: Answer) -> None:
        if answer.ok:
            self._trips.append((answer.return_us, answer.trip_us))
            self.worst_trip_us = max(self.worst_trip_us, answer.trip_us)
