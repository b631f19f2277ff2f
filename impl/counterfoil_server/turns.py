"""Where runners outside wait for a job to come: a line on the loop, and no thread.

A job that comes rings once, for the one that has waited longest; that one then looks for itself.
Ringing hands nothing over. So a job is never given to a client that went away in between: whoever
was rung for and cannot go any more has the next one rung for (no wake-up is lost).
"""

import asyncio
from collections import OrderedDict

__all__ = ["Turns"]


class Turns:
    """All who wait. Belongs to the loop's thread."""

    def __init__(self) -> None:
        self._bells: OrderedDict[asyncio.Future[None], None] = OrderedDict()
        self.over = False

    def __len__(self) -> int:
        return len(self._bells)

    async def wait(self, seconds: float) -> None:
        """Return when it is this caller's turn, when the time is over, or when all is over."""
        if self.over:
            return
        loop = asyncio.get_running_loop()
        bell: asyncio.Future[None] = loop.create_future()
        self._bells[bell] = None
        timer = loop.call_later(seconds, _ring, bell)
        try:
            await bell
        except asyncio.CancelledError:
            if not bell.cancelled():
                self.ring()
            raise
        finally:
            timer.cancel()
            self._bells.pop(bell, None)

    def ring(self) -> None:
        """A job has come: it is the turn of who has waited longest."""
        while self._bells:
            bell, _ = self._bells.popitem(last=False)
            if not bell.done():
                _ring(bell)
                return

    def end(self) -> None:
        """Nothing more will come: let all go, and nobody wait any more."""
        self.over = True
        for bell in self._bells:
            _ring(bell)


def _ring(bell: "asyncio.Future[None]") -> None:
    if not bell.done():
        bell.set_result(None)
