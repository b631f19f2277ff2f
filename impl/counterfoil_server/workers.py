"""A fixed number of workers, and what happens to one whose thread does not come back.

A worker is a place to run, not a thread. Its thread takes work in the order it was put (Q4). When
a run has used up its budget, the thread cannot be stopped, only left to itself: it is *stuck*, and
a fresh thread takes its place, so that later work still runs (T3). Should the stuck thread come
back, it finds its place taken and ends. How many may be left behind is bounded; past the bound
a worker stays busy until its thread is back, which is the honest answer to a model that only hangs.

One condition guards everything here. Work runs outside it.
"""

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Protocol

from counterfoil_server.models import Stop

__all__ = ["Work", "WorkerPool"]

_log = logging.getLogger(__name__)
_ABSENT: Final = object()


class Work(Protocol):
    """Something to run once, on a worker's thread."""

    stop: Stop

    def run(self) -> None:
        """Do it; whatever it raises ends this work only."""


class WorkerPool:
    """`size` workers that share one queue; every method may be called from any thread."""

    def __init__(self, size: int, max_stuck: int) -> None:
        """The threads start at once; with `size` 0 the work waits for `take`."""
        self._max_stuck = max_stuck
        self._changed = threading.Condition()
        self._queue: OrderedDict[Work, object] = OrderedDict()
        self._running: dict[Work, threading.Thread] = {}
        self._stuck: set[threading.Thread] = set()
        self._closed = False
        self._idle = 0
        self.size = size
        for _ in range(size):
            self._start_thread()

    @property
    def pending(self) -> int:
        """How much work waits for a worker."""
        return len(self._queue)

    @property
    def busy(self) -> int:
        """How many workers run something, those that nobody could replace included."""
        return len(self._running)

    @property
    def stuck(self) -> int:
        """How many threads were left to themselves and have not come back."""
        return len(self._stuck)

    def put(self, work: Work) -> None:
        """Let the next idle worker run it."""
        with self._changed:
            self._queue[work] = None
            if self._idle:
                self._changed.notify()

    def take(self, fits: Callable[[Work], bool]) -> Work | None:
        """The oldest waiting work that fits, for whoever runs it elsewhere."""
        with self._changed:
            work = next(filter(fits, self._queue), None)
            if work is not None:
                del self._queue[work]
            return work

    def withdraw(self, work: Work) -> bool:
        """Drop work that still waits; whether it did."""
        with self._changed:
            return self._queue.pop(work, _ABSENT) is not _ABSENT

    def give_up(self, work: Work) -> None:
        """Nobody wants its outcome: drop it if it waits, leave it to itself if it runs (T3)."""
        with self._changed:
            self._queue.pop(work, None)
            replace = work in self._running and len(self._stuck) < self._max_stuck
            if replace:
                self._stuck.add(self._running.pop(work))
        work.stop.set()
        if replace:
            self._start_thread()

    def close(self) -> None:
        """Let every thread end after what it runs; what waits is dropped."""
        with self._changed:
            self._closed = True
            self._queue.clear()
            self._changed.notify_all()

    def _start_thread(self) -> None:
        threading.Thread(target=self._work, name="counterfoil-worker", daemon=True).start()

    def _work(self) -> None:
        """The life of a thread: as long as it has a worker's place."""
        while (work := self._next()) is not None:
            try:
                work.run()
            except BaseException:
                _log.exception("a piece of work let an error out")
            if not self._came_back(work):
                return

    def _next(self) -> Work | None:
        with self._changed:
            self._idle += 1
            self._changed.wait_for(lambda: self._queue or self._closed)
            self._idle -= 1
            if self._closed:
                return None
            work, _ = self._queue.popitem(last=False)
            self._running[work] = threading.current_thread()
            return work

    def _came_back(self, work: Work) -> bool:
        """Whether this thread still has its place."""
        with self._changed:
            self._stuck.discard(threading.current_thread())
            return self._running.pop(work, None) is not None
