"""Before the first check: is the target there, is it idle, and is it the one the file describes?

A target that cannot be reached is one line and exit code 3. Then a burst of slow jobs fills the
queue: how many were admitted is the capacity, and the 429 says the bound in words. Three numbers,
the configured bound, the one in the text and the observed one, should agree; which two do tells
whose mistake it is:

- text and capacity agree, the file does not: the file describes another target (exit 3);
- file and capacity agree, the text does not: the text is wrong (H4);
- file and text agree, the capacity does not: left to the judge (A2, A3), once the target has had
  time to finish what others left in its queue.
"""

import asyncio
import re
from dataclasses import dataclass
from typing import Final

from counterfoil_conformance.errors import HarnessError
from counterfoil_conformance.wire.answer import Answer, now_us
from counterfoil_conformance.wire.client import Connection
from counterfoil_conformance.wire.idle import IdleWatch
from counterfoil_conformance.wire.session import Session, Submitted

__all__ = ["Learned", "learn_bound", "reach"]

REACH_S: Final = 2.5
PROBE_ID: Final = "job_counterfoil_was_never_issued"


@dataclass(frozen=True, slots=True)
class Learned:
    """What the preflight found: the bound to judge by, if any."""

    max_queue: int | None


async def reach(session: Session) -> None:
    """Get an HTTP answer, or say in one line that there is none.

    Raises:
        HarnessError: nothing answers, or what answers is not HTTP.
    """
    base = session.target.base_url
    deadline_us = now_us() + int(REACH_S * 1e6)
    while True:
        left_s = (deadline_us - now_us()) / 1e6
        conn = await session.client.connect(max(left_s, 0.1))
        if isinstance(conn, Connection):
            break
        if now_us() + 300_000 > deadline_us:
            raise HarnessError(f"cannot reach {base}: {conn}")
        await asyncio.sleep(0.2)
    request = session.client.request("GET", f"{session.target.prefix}/jobs/{PROBE_ID}")
    left_s = max((deadline_us - now_us()) / 1e6, 0.5)
    answer = await session.client.send(request, conn=conn, timeout_s=left_s)
    conn.close()
    if not answer.ok and not await _answers_something(session):
        raise HarnessError(f"{base} gives no HTTP answer: {answer.say()}")
    session.look_at(answer)
    if answer.status == 401 and await _refuses_everything(session):
        told = "refuses the token of the target file" if session.target.token else "wants a token"
        raise HarnessError(f"{base} {told} (401)")
    for _ in range(8):  # the first round trips, for every timing verdict to come
        await session.status(PROBE_ID)


async def _answers_something(session: Session) -> bool:
    """Whether it is one route that gives no answer (E5), and not the whole server."""
    for method, path in (("POST", "/jobs"), ("GET", "/cf-nowhere")):
        where = f"{session.target.prefix}{path}"
        request = session.client.request(method, where, body=b"{}" if method == "POST" else None)
        if (await session.client.send(request, timeout_s=2.0)).ok:
            return True
    return False


async def _refuses_everything(session: Session) -> bool:
    """Whether it is the token, and not one route that wrongly wants (another) one (K1)."""
    for method, path in (("POST", "/jobs"), ("GET", "/jobs/x/result")):
        path = f"{session.target.prefix}{path}"  # noqa: PLW2901
        request = session.client.request(method, path, body=b"{}" if method == "POST" else None)
        if (await session.client.send(request)).status != 401:
            return False
    return True


async def learn_bound(session: Session) -> Learned:
    """Fill the queue once it is idle and compare the three bounds.

    Raises:
        HarnessError: the target file describes another target.
    """
    target = session.target
    told = target.limits.max_queue
    if not target.has("bodies.slow") or not target.exclusive or (told is not None and told <= 0):
        return Learned(told)
    if target.has("bodies.failing"):
        # One failed job among the few that `checks.quiet` finds too old.
        _takes_jobs(session, (await session.submit("failing")).answer)
        await session.settle()
    patience_us = now_us() + int((10 + (target.limits.timeout_ms or 0) / 1000) * 1e6)
    while True:
        sent, certain = await _fill(session, told)
        _takes_jobs(session, sent[0].answer)
        capacity = sum(one.job is not None for one in sent)
        full = next((one.answer for one in sent if one.refused), None)
        idle = IdleWatch(session)
        await session.settle(seen=idle.look)
        said = bound_in(full)
        expected = told if told is not None else said
        short = full is not None and expected is not None and capacity < expected
        if not short or not certain or now_us() > patience_us:
            break
        # Somebody's jobs are still in there: nothing of this attempt may be held against it.
        session.forget()
        await asyncio.sleep(0.5)
    return _compare(session, told, said, capacity if certain else None, full)


def _takes_jobs(session: Session, answer: Answer) -> None:
    """A first submit that is 404 says that we ask at the wrong place."""
    if answer.ok and answer.status == 404 and session.target.limits.async_enabled is not False:
        raise HarnessError(
            f"POST {session.target.prefix}/jobs on {session.target.base_url} is answered 404: is "
            f"`prefix` ({session.target.prefix!r}) right? Where jobs are switched off, say "
            "`limits.async_enabled = false`"
        )


async def _fill(session: Session, told: int | None) -> tuple[list[Submitted], bool]:
    """Submit slow jobs until one is refused; and whether none can have ended meanwhile."""
    started = now_us()
    slow_us = (session.target.bodies.slow_ms or 0) * 1000
    if told is not None and told <= 40:
        sent = await session.burst("slow", told + 2, padding=0)
    else:
        sent = []
        while len(sent) < 300 and not (sent and sent[-1].refused):
            sent += await session.burst("slow", 1 + len(sent) // 2, padding=0)
    return sent, slow_us == 0 or now_us() - started < slow_us * 3 // 4


def bound_in(full: Answer | None) -> int | None:
    """The bound that a 429 speaks of, if its error names exactly one number."""
    numbers = re.findall(r"\d+", str(full.field("error"))) if full is not None else []
    return int(numbers[0]) if len(numbers) == 1 else None


def _compare(
    session: Session,
    told: int | None,
    said: int | None,
    capacity: int | None,
    full: Answer | None,
) -> Learned:
    if full is None or said is None or capacity is None:
        return Learned(told if told is not None else said)
    if told is not None and told not in (said, capacity):
        raise HarnessError(
            f"limits.max_queue = {told} in the target file, but the target says {said} and "
            f"admitted {capacity}: is this the server that the file describes?"
        )
    if said not in (capacity, told):
        session.find(
            "H4",
            f"the 429 speaks of {said}, and {capacity} jobs were admitted",
            allowed=f"an error that contains {capacity}",
            answers=(full,),
        )
    return Learned(told if told is not None else capacity)
