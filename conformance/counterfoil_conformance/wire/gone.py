"""A target that takes no connection any more: what it was asked last, and what that breaks.

A server lives on whatever it is asked (E5), also when the code that runs its model crashes (T5). A
target that is gone for good in the middle of a run has not. One that is back a moment later was
only busy, or was started again by somebody: that is told as the end of the run, and no more.
"""

import asyncio
from typing import Final

from counterfoil_conformance.wire.answer import Answer, now_us
from counterfoil_conformance.wire.client import Connection
from counterfoil_conformance.wire.session import Session

__all__ = ["blame_the_gone"]

_TRIES: Final = 4
_PAUSE_S: Final = 0.5
_JUST_BEFORE_US: Final = 3_000_000
_SHOWN: Final = 3


async def blame_the_gone(session: Session) -> None:
    """Find T5 where a crash was the last thing, else E5; nothing where the target is back."""
    for _ in range(_TRIES):
        conn = await session.client.connect(_PAUSE_S)
        if isinstance(conn, Connection):
            conn.close()
            return
        await asyncio.sleep(_PAUSE_S)
    last_us = max((answer.return_us for _, answer in session.answers if answer.ok), default=0)
    crashed = [answer for answer in session.crashes if answer.return_us > last_us - 500_000]
    why = "the target takes no connection any more"
    if crashed:
        why = f"after a `crashing` body was submitted {why}"
        allowed = "the job `failed`; the server lives on"
        session.find("T5", why, allowed=allowed, answers=(crashed[-1],))
        return
    session.find("E5", why, allowed="the server lives on", answers=_last(session, last_us))


def _last(session: Session, last_us: int) -> list[Answer]:
    """The last requests that were answered, or left without an answer, before the end."""
    since_us = min(last_us, now_us()) - _JUST_BEFORE_US
    return [a for _, a in session.answers if a.call_us > since_us][-_SHOWN:]
