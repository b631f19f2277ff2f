"""An event loop whose clock jumps: five minutes of waiting take a millisecond.

Where an ordinary loop would sleep until its next timer, this one moves its clock there and goes
on. Everything else is as always: real sockets, real selectors, the code that ships. What it needs
is that nothing happens behind its back: bytes between sockets of this process must be there as soon
as they are sent, which Unix sockets grant and TCP does not promise; and while a thread works for
the loop, `outside()` must say so, and then it sleeps for real.
"""

import asyncio
import selectors
from collections.abc import Callable, Mapping
from typing import Any, Final

__all__ = ["VirtualTimeLoop"]

_GRAIN_S: Final = 1e-6
_GLANCE_S: Final = 0.002


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """`time()` and `clock()` stand still but for jumps to the next timer."""

    def __init__(self, outside: Callable[[], bool] = lambda: False) -> None:
        """`outside()` tells that a thread works for the loop, so that it must not jump."""
        self._now_s = 1000.0
        self._outside = outside
        super().__init__(_JumpingSelector(self))

    def time(self) -> float:
        """Virtual seconds."""
        return self._now_s

    def clock(self) -> int:
        """Virtual whole milliseconds: the clock for the ledger."""
        return int(self._now_s * 1000 + 1e-3)

    def may_jump(self) -> bool:
        """Whether nothing can happen before the next timer."""
        return not self._outside()

    def jump(self, seconds: float) -> None:
        """Move the clock."""
        self._now_s += max(seconds, _GRAIN_S)


class _JumpingSelector(selectors.BaseSelector):
    """A real selector that never sleeps while the clock can be moved instead."""

    def __init__(self, loop: VirtualTimeLoop) -> None:
        self._loop = loop
        self._real = selectors.DefaultSelector()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = self._real.select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None or not self._loop.may_jump():
            return self._real.select(_GLANCE_S)
        self._loop.jump(timeout)
        return []

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._real.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.modify(fileobj, events, data)

    def close(self) -> None:
        self._real.close()

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._real.get_map()
