"""Which checks run beside which: places in the queue are the currency.

Three kinds of checks share one target. Those that take no place run at any time, a few side by
side. Those that take k places run together while places last. Those that count places have the
queue to themselves: they begin when every job we know of is terminal, and nobody else submits
meanwhile. The places lent out at once are bounded by `max_queue` and by `max_completed` (a job
that ends must not be evicted before its check has read it), so a small target simply runs them one
after another.
"""

import asyncio
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from counterfoil_conformance.errors import HarnessError, Violation
from counterfoil_conformance.report.events import CheckEnded, CheckStarted, HarnessFault
from counterfoil_conformance.run import Publish
from counterfoil_conformance.wire.registry import ALL, Check, Context
from counterfoil_conformance.wire.session import CURRENT_CHECK, TargetGone

__all__ = ["Places", "first_things", "later_things", "run_checks"]

_PASSIVE_AT_ONCE: Final = 4
_SHARED_AT_MOST: Final = 4
_FIRST: Final = 10
# A target that makes everything wait gets no more new checks after this, in seconds.
_LONGEST_S: Final = {"quick": 100.0, "full": 1800.0}
# And one that has failed, and holds the run up, ends with what was seen by then.
_LONGEST_FAILED_S: Final = {"quick": 45.0, "full": 1200.0}
_SLOW_TRIP_MS: Final = 60.0


class Places:
    """A weighted semaphore, first come first served, so that a large demand is not starved."""

    def __init__(self, total: int) -> None:
        self.total = max(1, total)
        self._free = self.total
        self._queue: list[tuple[int, asyncio.Future[None]]] = []

    @asynccontextmanager
    async def taken(self, wanted: int) -> AsyncIterator[None]:
        """Hold `wanted` places (ALL, or more than there are: every one)."""
        count = self.total if wanted == ALL else min(wanted, self.total)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append((count, turn))
        self._serve()
        try:
            await turn
        except asyncio.CancelledError:
            self._leave(count, turn)
            raise
        try:
            yield
        finally:
            self._free += count
            self._serve()

    def _leave(self, count: int, turn: asyncio.Future[None]) -> None:
        if (count, turn) in self._queue:
            self._queue.remove((count, turn))
        elif turn.done() and not turn.cancelled():
            self._free += count
        self._serve()

    def _serve(self) -> None:
        while self._queue and self._queue[0][0] <= self._free:
            count, turn = self._queue.pop(0)
            if not turn.done():
                self._free -= count
                turn.set_result(None)


def first_things(checks: Iterable[Check]) -> list[Check]:
    """The checks that want a target to which hardly anything has happened: nothing runs beside."""
    return [check for check in checks if check.order < _FIRST]


def later_things(checks: Iterable[Check]) -> list[Check]:
    """All the others."""
    return [check for check in checks if check.order >= _FIRST]


async def run_checks(
    checks: Iterable[Check], ctx: Context, publish: Publish, settle: Callable[[], Awaitable[bool]]
) -> None:
    """Run all checks, each where it may.

    Raises:
        TargetGone: the target stopped answering; the checks that were not over are told to publish.
    """
    await _Schedule(list(checks), ctx, publish, settle).run()


class _Schedule:
    """The checks of one part of a run, and what they wait for."""

    def __init__(
        self,
        checks: list[Check],
        ctx: Context,
        publish: Publish,
        settle: Callable[[], Awaitable[bool]],
    ) -> None:
        self.ordered = sorted(checks, key=lambda c: (c.order, c.places != ALL))
        self.ctx, self.publish, self.settle = ctx, publish, settle
        limits, bound = ctx.target.limits, ctx.session.max_queue or 1
        retained = _SHARED_AT_MOST if limits.max_completed is None else limits.max_completed
        self.places = Places(min(max(1, bound), max(1, retained), _SHARED_AT_MOST))
        is_slow = ctx.session.usual_trip_ms() > _SLOW_TRIP_MS
        self.passive = asyncio.Semaphore(_PASSIVE_AT_ONCE * (2 if is_slow else 1))
        self.counting = {check.name for check in checks if check.places == ALL}
        self.counted = asyncio.Event()

    async def run(self) -> None:
        """Run them all, until one raises."""
        tasks = [asyncio.create_task(self._one(check), name=check.name) for check in self.ordered]
        try:
            for task in asyncio.as_completed(tasks):
                await task
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _one(self, check: Check) -> None:
        if check.places == 0:
            async with self.passive:
                await self._in_time(check)
        elif check.places == ALL:
            try:
                async with self.places.taken(ALL):
                    await self._in_time(check)
            finally:
                self.counting.discard(check.name)
                if not self.counting:
                    self.counted.set()
        else:
            await self._shared(check)

    async def _shared(self, check: Check) -> None:
        """Where time is short those that count places go first: they see most."""
        async with self.places.taken(check.places):
            if not self.counting or not self.ctx.session.is_late_already:
                await self._in_time(check)
                return
        await self.counted.wait()
        async with self.places.taken(check.places):
            await self._in_time(check)

    async def _in_time(self, check: Check) -> None:
        """Run a check, unless those before have taken all the time there is."""
        session = self.ctx.session
        # What fails and is prompt is held up by itself; who answers late may be slow in everything.
        prompt = session.usual_trip_ms() < _SLOW_TRIP_MS
        limits_s = _LONGEST_FAILED_S if session.is_broken and prompt else _LONGEST_S
        longest_s = limits_s[self.ctx.profile]
        if session.age_s > longest_s:
            why = f"no time was left: the checks before took {longest_s:.0f} s"
            for clause in check.clauses:
                self.ctx.undecided(clause, why)
            return
        if check.places == ALL:
            await self.settle()
        await _run(check, self.ctx, self.publish)


async def _run(check: Check, ctx: Context, publish: Publish) -> None:
    """Run one check; what it raises is the harness's fault (`Violation`, a gone target aside)."""
    CURRENT_CHECK.set(check.name)
    publish(CheckStarted(check.name, check.clauses))
    started = time.monotonic()
    try:
        await check.run(ctx)
    except Exception as raised:
        error = _innermost(raised)
        if isinstance(error, Violation):
            ctx.fail(error.clause, error.why)
        elif isinstance(error, TargetGone | HarnessError):
            raise error from raised
        elif isinstance(error, TimeoutError):
            # Nobody's fault that we can tell: a target that is slow in everything.
            for clause in check.clauses:
                ctx.undecided(clause, f"{check.name} did not end within {check.limit_s:g} s")
        else:
            publish(HarnessFault(f"{check.name}: {_told(error)}", check.clauses))
    finally:
        ctx.session.flush()
        publish(CheckEnded(check.name, check.clauses, time.monotonic() - started))


def _innermost(error: BaseException) -> BaseException:
    """The first exception inside groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _told(error: BaseException) -> str:
    """What it was and where it was raised, on one line."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{where}"
