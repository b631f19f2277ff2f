"""One timer for all budgets.

Everything that has a budget here has the same one: each job `async_timeout`, each lease
`runner_lease`. So the order of arrival is the order of the deadlines, a queue is enough, and one
timer for its head serves any number of entries. What ends in time is taken out at once; nothing
lingers until its deadline.
"""

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from counterfoil_server import rules

__all__ = ["Deadlines"]

Key = TypeVar("Key")


class Deadlines(Generic[Key]):
    """Calls `on_overdue(key)` on the loop once `span_ms` have passed; `span_ms` <= 0: never.

    `add` and `renew` belong to the loop's thread; `discard` may come from any.
    """

    def __init__(
        self, span_ms: int, clock: Callable[[], int], on_overdue: Callable[[Key], None]
    ) -> None:
        self._span_ms = span_ms
        self._clock = clock
        self._on_overdue = on_overdue
        self._lock = threading.Lock()
        self._since: OrderedDict[Key, int] = OrderedDict()
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._since)

    def add(self, key: Key, since_ms: int) -> None:
        """Let the budget of `key` run from `since_ms`, which is not before that of any other."""
        if self._span_ms <= 0:
            return
        with self._lock:
            self._since[key] = since_ms
        if self._timer is None:
            self._arm(since_ms)

    def renew(self, key: Key, since_ms: int) -> None:
        """Let the budget of `key` run anew."""
        self.discard(key)
        self.add(key, since_ms)

    def discard(self, key: Key) -> None:
        """Forget `key`: it ended in time."""
        with self._lock:
            self._since.pop(key, None)

    def close(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()

    def _arm(self, since_ms: int) -> None:
        delay_ms = since_ms + self._span_ms - self._clock()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(max(delay_ms, 0) / 1000, self._fire)

    def _fire(self) -> None:
        self._timer = None
        for key in self._take_overdue():
            self._on_overdue(key)
        if self._timer is None and (head := self._head()) is not None:
            self._arm(head)

    def _take_overdue(self) -> list[Key]:
        """Everything whose time is over: a prefix of the queue."""
        overdue = []
        now = self._clock()
        with self._lock:
            while self._since:
                key, since_ms = next(iter(self._since.items()))
                if not rules.is_overdue(since_ms, now, self._span_ms):
                    break
                del self._since[key]
                overdue.append(key)
        return overdue

    def _head(self) -> int | None:
        with self._lock:
            return next(iter(self._since.values()), None)
