"""How a wait over HTTP sleeps: no thread, one future, one timer, nothing left behind (W8, W9).

A waiter registers with the ledger's one primitive, `watch`. The callback runs on whichever thread
ends the job, under the job's mutex, so it does as little as can be done: it puts the future into a
mailbox. The mailbox wakes the loop once for all that was put in meanwhile: ten thousand waiters on
one job cost one wake-up call, not ten thousand.
"""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any

from counterfoil_server.ledger import JobLedger, Snapshot

__all__ = ["Mailbox", "Waiters"]


class Mailbox:
    """Hands calls from any thread to the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._lock = threading.Lock()
        self._calls: list[tuple[Callable[..., None], tuple[Any, ...]]] = []

    def post(self, call: Callable[..., None], *words: Any) -> None:
        """Have `call(*words)` run soon on the loop; dropped when the loop is closed.

        Who puts the first letter into an empty box rings; to look and to put are one step, or two
        threads could each take the other for the first.
        """
        with self._lock:
            first = not self._calls
            self._calls.append((call, words))
        if first:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is left to tell
                self._loop.call_soon_threadsafe(self._empty)

    def _empty(self) -> None:
        with self._lock:
            calls, self._calls = self._calls, []
        for call, words in calls:
            call(*words)


class Waiters:
    """All waits that are blocked now."""

    def __init__(
        self,
        ledger: JobLedger,
        mailbox: Mailbox,
        on_wake: Callable[[float], None] = lambda _: None,
    ) -> None:
        """`on_wake(seconds)` is told how long it took from the end of a job to the waiter."""
        self._ledger = ledger
        self._mailbox = mailbox
        self._on_wake = on_wake
        self.blocked = 0

    async def wait(self, job_id: str, budget_ms: int) -> Snapshot | None:
        """The job once it is terminal, or as it is after `budget_ms`; None if unknown (W1-W7)."""
        loop = asyncio.get_running_loop()
        woken: asyncio.Future[float | None] = loop.create_future()
        watch = self._ledger.watch(job_id, lambda _: self._ring(woken))
        if watch is None:
            return None
        if (seen := watch.snapshot()).state.terminal:
            return seen
        timer = loop.call_later(budget_ms / 1000, _settle, woken, None)
        self.blocked += 1
        try:
            rung_at = await woken
        finally:
            self.blocked -= 1
            timer.cancel()
            watch.cancel()
        if rung_at is not None:
            self._on_wake(time.perf_counter() - rung_at)
        return watch.snapshot()

    def _ring(self, woken: "asyncio.Future[float | None]") -> None:
        self._mailbox.post(_settle, woken, time.perf_counter())


def _settle(future: "asyncio.Future[float | None]", value: float | None) -> None:
    if not future.done():
        future.set_result(value)
