"""A queue that is full, and everything that must still be in order (H1 H4 H11 H12).

One fill shows many clauses, and fills are what a run spends its time on, so they are shown
together: first requests that must not take a place (wrong bodies, no token, `/infer`), then as many
slow jobs as the queue holds, all at once, then everything that may be asked of a server whose queue
is full.

Certainty comes from reads afterwards. A job that is still live when it is read after an answer came
was live when it came; only answers that lie before such a read of *every* job are judged by "the
queue was full". Where fewer jobs were admitted than the queue holds, the fill is repeated with one
kind of earlier request at a time, to say which of them took the place.
"""

import asyncio
import re
from collections.abc import Awaitable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from counterfoil_conformance.wire.answer import Answer, now_us
from counterfoil_conformance.wire.census import census
from counterfoil_conformance.wire.checks.counting import Tally
from counterfoil_conformance.wire.checks.no_place import Invalid, invalid_kinds, send_invalid
from counterfoil_conformance.wire.client import Connection
from counterfoil_conformance.wire.laws import retry_after_fault
from counterfoil_conformance.wire.probing import (
    after_refusal,
    error_text,
    has_infer,
    judge_elapsed,
)
from counterfoil_conformance.wire.registry import ALL, CLOSED, Context, check
from counterfoil_conformance.wire.session import Job, Submitted
from counterfoil_conformance.wire.steps import admit, start_of
from counterfoil_conformance.wire.stubborn import open_stubborn, send_in_pieces

__all__: tuple[str, ...] = ()

MOST_AT_ONCE: Final = 64
LIVE: Final = ("pending", "running")
_KIND: Final = "kind: "
_PUBLIC: Final = "public: "


@dataclass(slots=True)
class _Full:
    """One fill: the jobs, what else was asked, and until when all of them were certainly live."""

    ctx: Context
    bound: int
    jobs: list[Job] = field(default_factory=list)
    refused: list[Submitted] = field(default_factory=list)
    filled_us: int = 0
    control_us: int = 0
    late_us: int = 0
    elapsed_ms: dict[str, int] = field(default_factory=dict)
    started: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def certain_us(self) -> int:
        """Until then every job was live: the earliest of the last reads that saw one so."""
        return min((job.live_us for job in self.jobs), default=0)

    def was_full(self, answer: Answer) -> bool:
        """Whether the queue was full all through an exchange."""
        enough = len(self.jobs) >= self.bound
        return enough and self.filled_us <= answer.call_us and answer.return_us <= self.certain_us

    async def fill(self) -> None:
        """Submit a slow job for each worker, and, once they run, as many as there is room for.

        A 202 is as prompt while every worker is busy (H1).
        """
        submit, send = self.ctx.session.submit, self.ctx.session.send
        first = min(self.ctx.target.limits.workers or 1, self.bound)
        sent = await asyncio.gather(*(submit("slow") for _ in range(first)))
        begun = (start_of(self.ctx, one.job, 0.1) for one in sent if one.job is not None)
        await asyncio.gather(*begun)
        controls = asyncio.gather(
            *(send("GET", f"/jobs/cf-{self.ctx.session.nonce()}") for _ in range(self.bound))
        )
        sent += await asyncio.gather(*(submit("slow") for _ in range(self.bound - first)))
        # How long plain reads took beside: what machine and network make of a prompt answer.
        self.control_us = max(answer.trip_us for answer in await controls)
        self.jobs = [one.job for one in sent if one.job is not None]
        self.refused = [one for one in sent if one.refused]
        self.filled_us = now_us()

    async def look(self) -> None:
        """Read every live job, so that what was answered before is certain; H8 on the way."""
        live = [job for job in self.jobs if not job.terminal]
        readings = await asyncio.gather(*(self.ctx.session.status(job) for job in live))
        for job, reading in zip(live, readings, strict=True):
            last = self.elapsed_ms.get(job.id, -1)
            self.elapsed_ms[job.id] = judge_elapsed(self.ctx, job, reading, last)
            if reading.state == "running":
                self.started.set()

    async def watch(self) -> None:
        """Look again and again until every job has ended."""
        deadline_us = now_us() + int(self.ctx.session.patience_s() * 1e6)
        while now_us() < deadline_us and not all(job.terminal for job in self.jobs):
            await self.look()
            await asyncio.sleep(0.04)

    async def until_one_runs(self) -> None:
        """A queue is full of running jobs too: wait until there is one.

        A single worker may be busy with `/infer` first, for as long as a slow run takes.
        """
        limit_s = 0.3 + (self.ctx.target.bodies.slow_ms or 0) / 1000
        with suppress(TimeoutError):
            await asyncio.wait_for(self.started.wait(), limit_s)


@check(
    "H1 H2 H4 H8 H11 H12 H13 H14 A7 K1 E8 M1 R9",
    needs=("bodies.slow", "bodies.slow_ms"),
    places=ALL,
    order=61,
    limit_s=180.0,
    even=(CLOSED,),
)
async def a_full_queue_is_in_order(ctx: Context) -> None:
    """429 with the bound while it is full; other refusals keep their place; nothing else leaks."""
    bound = ctx.session.max_queue
    if bound is None:
        ctx.untestable("H4", "limits.max_queue")
        return
    if bound <= 0:
        await _never_admits(ctx, bound)
        return
    if bound > MOST_AT_ONCE:
        ctx.untestable("H4", f"a queue of {bound} is more than a run can fill")
        return
    infer = await has_infer(ctx)
    if not infer:
        ctx.untestable("H11", "the target has no POST /infer")
    for attempt in range(3):
        if await _one_fill(ctx, bound, infer=infer) or attempt == 2:
            return
        await ctx.session.settle()


async def _never_admits(ctx: Context, bound: int) -> None:
    ctx.does_not_apply("H1", "`limits.max_queue` is not above 0: no job is ever admitted")
    sent = await ctx.session.submit("slow")
    if sent.refused:
        _judge_429(ctx, sent.answer, bound)
    elif sent.answer.ok:
        said = f"max_queue = {bound}, and a submit is answered {sent.answer.status}"
        ctx.fail("H4", said, allowed="429", answers=(sent.answer,))


async def _one_fill(ctx: Context, bound: int, *, infer: bool) -> bool:
    """One whole round; False if it was too slow to show anything."""
    quick_us = await _quick_latency(ctx)
    tally = Tally(ctx)
    counted = await tally.open()
    await _take_no_place(ctx, bound, invalid=True, unauthorised=bool(ctx.target.token))
    blocking = await _start_infer(ctx) if infer else None
    full = _Full(ctx, bound)
    await full.fill()
    in_flight = blocking is not None and not blocking.done()
    watching = asyncio.create_task(full.watch())
    late = _late_admissions(ctx, full, quick_us)
    before_census: Submitted | None = None
    early = [asyncio.create_task(ctx.session.submit("slow")) for _ in range(2)]
    if full.refused or len(full.jobs) >= bound:
        # Neither live jobs nor a refusal are a reason to evict who is retained (R9).
        before_census = await ctx.session.submit("slow")
        await census(ctx)
    await full.until_one_runs()
    quick = None
    if infer and ctx.target.has("bodies.quick"):
        body, _ = ctx.session.compose("quick")
        quick = asyncio.create_task(ctx.session.infer(body))
    asked = await _ask_while_full(ctx, full)
    asked |= {f"429 early {number}": await task for number, task in enumerate(early)}
    if before_census is not None:
        asked["429 before the census"] = before_census
    await watching
    if len(full.jobs) < bound:
        await _who_took_it(ctx, full, infer=blocking is not None)
    elif in_flight or blocking is None:
        ctx.ok("A7")
        if in_flight:
            ctx.ok("H11")
        if ctx.target.token:
            ctx.ok("K1")
    shown = _judge_asked(ctx, full, asked)
    for task in (blocking, quick):
        if task is not None:
            _judge_infer(ctx, full, await task)
    if counted:
        await ctx.session.settle()
        await tally.close()
    await _nothing_leaked(ctx, asked)
    if late and quick_us is not None:
        await _late_once_more(ctx, bound, quick_us)
    return shown


async def _late_once_more(ctx: Context, bound: int, quick_us: int) -> None:
    """A stall of the machine does not come twice in the same place; a late 202 does (H1)."""
    await ctx.session.settle()
    again = _Full(ctx, bound)
    await again.fill()
    for job in _late_admissions(ctx, again, quick_us):
        _accuse_late(ctx, again, job, quick_us)
    await ctx.session.settle()


async def _quick_latency(ctx: Context) -> int | None:
    """The shortest of three 202s for quick jobs, us."""
    trips = []
    if not ctx.target.has("bodies.quick"):
        return None
    for _ in range(3):
        sent = await admit(ctx, "quick")
        if sent.job is not None:
            trips.append(sent.answer.trip_us)
    await ctx.session.settle()
    return min(trips, default=None)


async def _take_no_place(ctx: Context, bound: int, *, invalid: bool, unauthorised: bool) -> None:
    """Requests that are refused for what they are; one place they take is one job too few.

    Only two of each kind: where they take places for good, some must be left to say who did.
    """
    good, _ = ctx.session.compose("slow")
    posts: list[Awaitable[object]] = []
    for number in range(min(2, bound)):
        if invalid:
            body = (b"nope", b"{}", b'{"images": []}', b'{"images": [1]}')[number % 4]
            posts.append(ctx.session.send("POST", "/jobs", body=body))
            text = {"Content-Type": "text/plain"}
            posts.append(ctx.session.send("POST", "/jobs", body=b"nope", headers=text))
            posts.append(_too_large(ctx))
        if unauthorised:
            posts.append(ctx.session.send("POST", "/jobs", body=good, token=None))
    await asyncio.gather(*posts)


async def _too_large(ctx: Context) -> None:
    """One body over the limit, where that is not too much to send."""
    limit = ctx.target.limits.max_body
    if limit is None or limit > 2 * 1024 * 1024:
        return
    conn = await open_stubborn(ctx.session.client)
    if conn is None:
        return
    try:
        body = b"{" + b" " * limit + b"}"
        request = ctx.session.client.request("POST", f"{ctx.target.prefix}/jobs", body=body)
        await send_in_pieces(conn, request, (body,), pause_s=0.02, stop_early=True)
    finally:
        conn.close()


async def _start_infer(ctx: Context) -> "asyncio.Task[Answer]":
    """A slow `/infer` that has certainly been taken in."""
    body, _ = ctx.session.compose("slow")
    task = asyncio.create_task(ctx.session.infer(body))
    await asyncio.sleep(0.05 + ctx.session.trip_us() / 1e6)
    return task


def _late_admissions(ctx: Context, full: _Full, quick_us: int | None) -> list[Job]:
    """H1: the slow jobs whose 202 came later than a quick one's, tolerance and load aside."""
    if quick_us is None:
        if ctx.target.has("bodies.quick"):
            ctx.undecided("H1", "no quick job was admitted to compare a slow one's 202 with")
        else:
            ctx.untestable("H1", "bodies.quick")
        return []
    run_us = (ctx.target.bodies.slow_ms or 0) * 1000
    full.late_us = quick_us + ctx.session.slack_us(full.filled_us) + full.control_us
    for job in full.jobs:
        if job.answer.trip_us <= full.late_us and job.answer.trip_us < run_us * 3 // 4:
            ctx.ok("H1")
    return [job for job in full.jobs if job.answer.trip_us > full.late_us]


def _accuse_late(ctx: Context, full: _Full, job: Job, quick_us: int) -> None:
    said = f"the 202 of a slow job took {job.answer.trip_us / 1000:.0f} ms, of a quick one "
    said += f"{quick_us / 1000:.0f} ms (the run takes {ctx.target.bodies.slow_ms} ms)"
    allowed = f"at most {full.late_us / 1000:.0f} ms: sent at admission"
    ctx.fail("H1", said, allowed=allowed, answers=(job.answer,))


async def _ask_while_full(ctx: Context, full: _Full) -> dict[str, Any]:
    """Everything that is asked of the full queue, at the same time."""
    send = ctx.session.send
    good, _ = ctx.session.compose("slow")
    text = {"Content-Type": "text/plain"}
    asked: dict[str, Any] = {
        "429 first": _on_a_connection(ctx),
        "429 again": ctx.session.submit("slow"),
        "429 for a quick one": ctx.session.submit(
            "quick" if ctx.target.has("bodies.quick") else "slow"
        ),
        "no JSON": send("POST", "/jobs", body=b"nope"),
        "no images": send("POST", "/jobs", body=b"{}"),
        "no object": send("POST", "/jobs", body=b"[]"),
        "a wrong image": send("POST", "/jobs", body=b'{"images": [5]}'),
        "a wrong type and no JSON": send("POST", "/jobs", body=b"nope", headers=text),
        "an unknown path": send("POST", "/cf-nowhere", body=good),
        "a wrong method": send("PUT", "/jobs", body=good),
        "results": asyncio.gather(*(ctx.session.result(job) for job in full.jobs[:8])),
    }
    if ctx.target.token:
        asked["no token"] = send("POST", "/jobs", body=good, token=None)
        asked["no token, no JSON"] = send("POST", "/jobs", body=b"nope", token=None)
    if ctx.target.has("bodies.quick"):
        asked |= {f"{_KIND}{k.name}": send_invalid(ctx, k) for k in _small_kinds(ctx)}
    for path in ctx.target.dialect.public or ():
        asked[_PUBLIC + path] = send("GET", path, prefix=False, may_5xx=True)
    answers = await asyncio.gather(*asked.values())
    return dict(zip(asked, answers, strict=True))


def _small_kinds(ctx: Context) -> list[Invalid]:
    return [kind for kind in invalid_kinds(ctx) if len(kind.body) < 100_000]


async def _nothing_leaked(ctx: Context, asked: dict[str, Any]) -> None:
    """A7 H12: what was refused while the queue was full has taken no place either."""
    await ctx.session.settle()
    if not ctx.target.has("bodies.quick") or ctx.session.has_stuck:
        return
    sent = await ctx.session.submit("quick")
    refused = [a for a in asked.values() if isinstance(a, Answer) and 400 <= a.status < 500]
    if sent.refused and not any(a.status == 202 for a in refused):
        why = f"after {len(refused)} requests that a full queue refused, invalid ones among them, "
        why += "it is still full when every job has ended"
        for clause in ("A7", "H12"):
            ctx.fail(clause, why, allowed="202", answers=(*refused[:3], sent.answer))
    await ctx.session.settle()


async def _on_a_connection(ctx: Context) -> Submitted:
    """A submit on a connection of its own, and what its 429 leaves there (E8)."""
    conn = await ctx.session.client.connect()
    if not isinstance(conn, Connection):
        return await ctx.session.submit("slow")
    try:
        sent = await ctx.session.submit("slow", conn=conn)
        if sent.refused:
            await after_refusal(ctx, conn, "a full queue", sent.answer)
        return sent
    finally:
        conn.close()


def _judge_asked(ctx: Context, full: _Full, asked: dict[str, Any]) -> bool:
    """Judge what the full queue answered; whether that showed anything of a full queue."""
    shown = _judge_blocking(ctx, full, [a for a in asked.values() if isinstance(a, Submitted)])
    for name, came in asked.items():
        if isinstance(came, Submitted):
            shown |= _judge_submit(ctx, full, came)
        elif not isinstance(came, Answer) or not came.ok:
            continue
        elif name.startswith(_PUBLIC):
            if came.status != 200:
                # A full queue is not ill; whether it is "not ready" the contract does not say.
                said = f"with the queue full, GET {came.request.path}: {came.status}"
                ctx.warn("H14", said, allowed="200 on a healthy server", answers=(came,))
        # Elsewhere a lenient target may admit one of these kinds.
        elif not name.startswith(_KIND) or full.was_full(came):
            _judge_refusal(ctx, name.removeprefix(_KIND), came)
    return shown


def _judge_blocking(ctx: Context, full: _Full, asked: list[Submitted]) -> bool:
    """H4: submits to a full queue that all get no answer for as long as it is full."""
    if len(full.jobs) < full.bound:
        return False
    due, blocked = 0, []
    for answer in (sent.answer for sent in asked if sent.answer.ok):
        late_us = answer.call_us + ctx.session.slack_us(answer.call_us) + full.control_us
        if full.filled_us <= answer.call_us and late_us < full.certain_us:
            due += 1
            if answer.return_us > late_us:
                blocked.append(answer)
    # One late answer is a stall of the machine; all of them are the server's way.
    if len(blocked) < max(3, due):
        return False
    last = blocked[-1]
    said = f"{len(blocked)} submits to the full queue got no answer while it was full; then, after "
    said += f"{last.trip_us / 1000:.0f} ms, {last.status}"
    ctx.fail("H4", said, allowed="429 while it is full", answers=(last,))
    return True


def _judge_submit(ctx: Context, full: _Full, sent: Submitted) -> bool:
    answer = sent.answer
    if sent.refused:
        _judge_429(ctx, answer, full.bound)
        return True
    if answer.ok and full.was_full(answer):
        said = f"{full.bound} jobs were live, and a submit was answered {answer.status}"
        answers = (*(job.answer for job in full.jobs), answer)
        ctx.fail("H4", said, allowed="429", answers=answers)
        return True
    return False


def _judge_429(ctx: Context, answer: Answer, bound: int) -> None:
    text = error_text(ctx, answer)
    named = re.search(rf"(?<![\d-]){bound}(?!\d)", text) is not None
    said = f"the 429 does not contain the bound {bound}: {text!r:.120}"
    allowed = f"an `error` that contains {bound}"
    if ctx.expect(named, "H4", said, allowed=allowed, answers=(answer,)) and (
        text != f"async queue full (max {bound})"
    ):
        allowed = f"async queue full (max {bound})"
        ctx.warn("H13", f"the 429 reads {text!r:.120}", allowed=allowed, answers=(answer,))
    fault = retry_after_fault(answer, "H4")
    if fault is not None:
        ctx.session.report((fault,), answer)


def _judge_refusal(ctx: Context, name: str, answer: Answer) -> None:
    allowed: tuple[int, ...] = (429, 400, 422, 415)
    clause = "H12"
    if name.startswith(("no token", "a wrong token")):
        allowed = (401,)
    elif name == "an unknown path":
        allowed = (404,)
    elif name == "a wrong method":
        allowed = (405, 404)
    said = f"with the queue full, {name}: {answer.status}"
    words = " or ".join(map(str, allowed))
    ctx.expect(answer.status in allowed, clause, said, allowed=words, answers=(answer,))


def _judge_infer(ctx: Context, full: _Full, answer: Answer) -> None:
    """H11: a full job queue does not refuse `/infer`."""
    if not answer.ok or len(full.jobs) < full.bound:
        return
    if answer.status == 429:
        said = "with the job queue full, /infer is answered 429"
        allowed = "200: it takes no place"
        ctx.fail("H11", said, allowed=allowed, answers=(answer,), must=True)
    elif answer.status == 200:
        ctx.ok("H11")


async def _who_took_it(ctx: Context, full: _Full, *, infer: bool) -> None:
    """Fewer were admitted than the queue holds: repeat with one suspect at a time."""
    bound = full.bound
    answers = tuple(one.answer for one in full.refused)[:1]
    suspects: dict[str, tuple[str, str]] = {
        "A7": ("invalid requests", "an invalid request takes no place"),
    }
    if ctx.target.token:
        suspects["K1"] = ("requests without the token", "a 401 does no work")
    if infer:
        suspects["H11"] = ("a running /infer", "`/infer` takes no place in the queue")
    await ctx.session.settle()
    alone = _Full(ctx, bound)
    await alone.fill()
    await ctx.session.settle()
    left = len(alone.jobs)  # fewer than the bound: places are taken for good
    for clause, (who, allowed) in suspects.items():
        blocking = None
        if clause == "H11":
            blocking = await _start_infer(ctx)
        else:
            await _take_no_place(ctx, bound, invalid=clause == "A7", unauthorised=clause == "K1")
        again = _Full(ctx, bound)
        await again.fill()
        if blocking is not None:
            await blocking
        await ctx.session.settle()
        if len(again.jobs) < left:
            said = f"after {who} the queue took {len(again.jobs)} jobs, before {left}, of {bound}"
            ctx.fail(clause, said, allowed=allowed, answers=answers, must=True)
        left = len(again.jobs)
