"""Small moves that checks of single requests share.

The most important one is `next_answer`: after whatever happened on a connection, ask for an id that
nobody else asks for and see whose answer comes. A refusal names the id (H13), so an answer that is
not ours is recognised by what it does not say.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeVar

from counterfoil_conformance.wire.answer import Answer, now_us
from counterfoil_conformance.wire.bad_bodies import BadBody
from counterfoil_conformance.wire.client import Connection, encode
from counterfoil_conformance.wire.laws import errors_of
from counterfoil_conformance.wire.reading import Reading, unwrapped
from counterfoil_conformance.wire.registry import Context
from counterfoil_conformance.wire.session import Job
from counterfoil_conformance.wire.stubborn import push

__all__ = [
    "After",
    "Aftermath",
    "after_refusal",
    "all_in_places",
    "all_of",
    "error_text",
    "has_infer",
    "judge_bad",
    "judge_elapsed",
    "next_answer",
    "patience_s",
    "post_bad",
    "quick_body",
    "routes",
]

AT_ONCE: Final = 6
LIVE: Final = ("pending", "running")
_T = TypeVar("_T")
_FALLBACK: Final[Mapping[str, Any]] = {"images": ["aGVsbG8="]}


class After(StrEnum):
    """What became of a connection."""

    OWN = "its own answer"
    CLOSED = "the connection was closed"
    FOREIGN = "an answer that is not its own"
    HUNG = "no answer, and no end"


@dataclass(frozen=True, slots=True)
class Aftermath:
    """What came for the next request on a connection."""

    after: After
    answer: Answer | None = None

    @property
    def fine(self) -> bool:
        """E8: its own answer, or a closed connection."""
        return self.after in (After.OWN, After.CLOSED)


async def all_of(
    rows: Iterable[_T], probe: Callable[[_T], Awaitable[None]], at_once: int = AT_ONCE
) -> None:
    """Run a probe for each row, a few at a time."""
    turn = asyncio.Semaphore(at_once)

    async def one(row: _T) -> None:
        async with turn:
            await probe(row)

    async with asyncio.TaskGroup() as group:
        for row in rows:
            group.create_task(one(row))


async def all_in_places(
    ctx: Context, rows: Iterable[_T], probe: Callable[[_T], Awaitable[None]]
) -> None:
    """The same for probes that may be admitted: no more at once than a check of 3 places holds.

    Where jobs take so long that the last rows would make the run late, these are left out.
    """
    box = ctx.box(5.0)

    async def in_time(row: _T) -> None:
        if not box.is_over:
            await probe(row)

    bounds = [ctx.session.max_queue, ctx.target.limits.max_completed, 3]
    await all_of(rows, in_time, max(1, min(bound for bound in bounds if bound is not None)))


def quick_body(ctx: Context) -> dict[str, Any]:
    """The content of `bodies.quick`, or something that looks like a request."""
    text = ctx.target.bodies.quick
    return dict(json.loads(text)) if text is not None else dict(_FALLBACK)


def error_text(ctx: Context, answer: Answer) -> str:
    """The `error` of a body, or "" where it has none."""
    body = unwrapped(answer.json, ctx.target.adapter)
    error = body.get("error") if isinstance(body, dict) else None
    return error if isinstance(error, str) else ""


async def has_infer(ctx: Context) -> bool:
    """Whether the target serves `/infer`."""
    answer = await ctx.session.send("POST", "/infer", body=b"nope", may_5xx=True)
    return answer.ok and answer.status not in (404, 405)


async def routes(ctx: Context) -> tuple[str, ...]:
    """The routes that take a request body."""
    jobs = () if ctx.target.limits.async_enabled is False else ("/jobs",)
    return (*jobs, "/infer") if await has_infer(ctx) else jobs


async def post_bad(
    ctx: Context,
    route: str,
    body: bytes,
    headers: Mapping[str, str] | None = None,
    conn: Connection | None = None,
) -> Answer | None:
    """Post a body that is to be refused for what it is; None if the queue stayed full (H12)."""
    for _ in range(1 if ctx.session.clogged else 12):
        answer = await ctx.session.send(
            "POST", route, body=body, headers=headers or {}, may_5xx=route == "/infer", conn=conn
        )
        if answer.status != 429 or conn is not None:
            return answer
        if ctx.session.max_queue is not None and ctx.session.max_queue <= 0:
            return None  # it is always full
        await asyncio.sleep(0.25)
    await ctx.session.note_clogged()
    return None


def judge_bad(ctx: Context, route: str, row: BadBody, answer: Answer) -> None:
    """Whether the answer to a wrong body is one of those that its row allows."""
    if not answer.ok:
        return  # the session has published it (E5)
    say = ctx.warn if row.should else ctx.fail
    if answer.status not in row.allowed:
        allowed = " or ".join(map(str, row.allowed))
        said = f"POST {route} with {row.name}: {answer.status}"
        say(row.clause, said, allowed=allowed, answers=(answer,))
        return
    if row.pointers and not _points_at(ctx, row, answer):
        said = f"POST {route} with {row.name}: the refusal does not point at it"
        allowed = "`errors` with a pointer " + " or ".join(repr(p) for p in row.pointers)
        say(row.clause, said, allowed=allowed, answers=(answer,))
        return
    ctx.ok(row.clause)


def _points_at(ctx: Context, row: BadBody, answer: Answer) -> bool:
    errors = errors_of(answer, ctx.target) or []
    found = [e.get("pointer") for e in errors if isinstance(e, dict)]
    return any(isinstance(p, str) and p.removeprefix("#") in row.pointers for p in found)


def patience_s(ctx: Context, usual_s: float = 10.0) -> float:
    """How long to listen for an answer that is due at once."""
    return ctx.session.client.patience_s(usual_s + ctx.tolerance_s)


async def next_answer(ctx: Context, conn: Connection) -> Aftermath:
    """Ask for an unknown id of our own on a connection that was used before."""
    if not conn.alive and not conn.leftover:
        return Aftermath(After.CLOSED)
    job_id = f"cf-own-{ctx.session.nonce()}"
    path = f"{ctx.target.prefix}/jobs/{job_id}"
    request = ctx.session.client.request("GET", path)
    call_us = now_us()
    await push(conn, encode(request))
    answer = await conn.read_answer(request, call_us, patience_s(ctx, 5.0))
    ctx.session.client.note(answer)
    if answer.trouble in ("closed", "reset"):
        return Aftermath(After.CLOSED, answer)
    if answer.trouble == "timeout":
        return Aftermath(After.HUNG, answer)
    if answer.ok and await _is_own(ctx, answer, job_id):
        return Aftermath(After.OWN, answer)
    return Aftermath(After.FOREIGN, answer)


async def _is_own(ctx: Context, answer: Answer, job_id: str) -> bool:
    named = job_id.encode() in answer.body
    if named and answer.status == 404:
        return True
    # A target that never names the id is wrong elsewhere (H13); a fresh connection tells.
    other = f"cf-own-{ctx.session.nonce()}"
    control = await ctx.session.send("GET", f"/jobs/{other}")
    same = control.status == answer.status
    return same and (other.encode() in control.body) == named


async def after_refusal(ctx: Context, conn: Connection, what: str, answer: Answer) -> None:
    """E8: the next request gets its own answer, or the connection is closed."""
    if answer.closed and not conn.leftover:
        ctx.ok("E8")
        return
    found = await next_answer(ctx, conn)
    answers = (answer, found.answer) if found.answer is not None else (answer,)
    ctx.expect(
        found.fine,
        "E8",
        f"after {what} ({answer.status}), the next request on the connection got {found.after}",
        allowed="its own answer, or a closed connection",
        answers=answers,
        one_connection=True,
    )


def judge_elapsed(ctx: Context, job: Job, reading: Reading, last: int) -> int:
    """H8: one read of `elapsed_ms` against the interval of the read; the value, or `last`."""
    body, answer = reading.body, reading.answer
    if answer.status != 200 or not isinstance(body, dict):
        return last
    value = body.get("elapsed_ms")
    allowed = "a non-negative integer of ms since admission, not less than before"
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        said = f"elapsed_ms = {value!r:.60}"
        ctx.fail("H8", said, allowed=allowed, answers=(answer,))
        return last
    grain_ms = 30
    most = (answer.return_us - job.call_us) / 1000 + grain_ms
    least = (answer.call_us - job.return_us) / 1000 - grain_ms
    if value > most:
        said = f"elapsed_ms = {value}, at most {most:.0f} ms after the submit was sent"
    elif reading.state in LIVE and value < least:
        said = f"elapsed_ms = {value}, at least {least:.0f} ms after the 202"
    elif value < last:
        said = f"elapsed_ms = {value}, after {last}"
    else:
        ctx.ok("H8")
        return value
    ctx.fail("H8", said, allowed=allowed, answers=(job.answer, answer))
    return max(value, last)
