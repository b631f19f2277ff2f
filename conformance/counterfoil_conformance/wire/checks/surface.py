"""The shape of the surface: what a 202 promises, what a refusal says, what is public.

Everything here follows what the target says, as it says it: the URLs of a 202 are asked for letter
by letter, not rebuilt from the id.
"""

import asyncio
from typing import Final
from urllib.parse import urljoin, urlsplit

from counterfoil_conformance.wire.answer import Answer, now_us
from counterfoil_conformance.wire.probing import error_text, judge_elapsed
from counterfoil_conformance.wire.reading import Reading, unwrapped
from counterfoil_conformance.wire.registry import DISABLED, Context, check
from counterfoil_conformance.wire.session import Job
from counterfoil_conformance.wire.steps import READERS, admit, shared_slow

__all__: tuple[str, ...] = ()

LIVE: Final = ("pending", "running")
PLAIN_IDS: Final = ("a", "7", "job_x", "no-such-job", "A-Z_09", "x" * 128, "-", "__")


@check("H3 H9 H10", needs=("bodies.quick",), places=1)
async def the_urls_of_a_202_work_as_they_are(ctx: Context) -> None:
    """`poll_url`, `result_url` and `Location` lead to this job, letter by letter."""
    sent = await admit(ctx, "quick")
    if sent.job is None:
        if sent.answer.ok and not sent.refused:
            said = f"a good request is answered {sent.answer.status}"
            ctx.fail("H3", said, allowed="202 (or 429)", answers=(sent.answer,))
        return
    body = unwrapped(sent.answer.json, ctx.target.adapter)
    given = {"Location": sent.answer.header("location")}
    given |= {name: body.get(name) for name in ("job_id", "poll_url", "result_url")}
    for name, value in given.items():
        fine = isinstance(value, str) and value != ""
        said = f"{name} of a 202 is {value!r:.60}"
        ctx.expect(fine, "H3", said, allowed="a non-empty string", answers=(sent.answer,))
    said = f"state of a 202 is {body.get('state')!r:.60}"
    fine = body.get("state") == "pending"
    ctx.expect(fine, "H3", said, allowed='"pending"', answers=(sent.answer,))
    del given["job_id"]
    await ctx.session.until_terminal(sent.job, ctx.session.patience_s())
    if ctx.target.adapter.rewritten_urls:
        ctx.declared("H3", "`adapter.rewritten_urls`: a gateway rewrites the URLs")
        return
    for name, url in given.items():
        if isinstance(url, str) and url:
            await _follow(ctx, sent.job, name, url)


async def _follow(ctx: Context, job: Job, name: str, url: str) -> None:
    base = ctx.target.base_url + job.answer.request.path
    try:
        parts = urlsplit(urljoin(base, url))
    except ValueError:
        parts = urlsplit("")
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    if not path.startswith("/") or not path.isascii() or not path.isprintable() or " " in path:
        ctx.fail("H3", f"{name} = {url!r} is no URL", allowed="a URL", answers=(job.answer,))
        return
    answer = await ctx.session.send("GET", path, prefix=False)
    if answer.status == 404:
        # Others submit meanwhile: it may have been evicted. Its status tells.
        if (await ctx.session.status(job.id)).answer.status == 404:
            return
    elif answer.status == 429 or not answer.ok:
        return
    wants_result = name == "result_url" or path == job.result_url
    fine = _is_result(ctx, job, answer) if wants_result else _is_status(ctx, job, answer)
    if ctx.expect(
        fine,
        "H3",
        f"{name} = {url!r} does not lead to {job.id}",
        allowed="its result" if wants_result else "its status",
        answers=(job.answer, answer),
    ):
        ctx.ok("H10")


def _is_status(ctx: Context, job: Job, answer: Answer) -> bool:
    body = unwrapped(answer.json, ctx.target.adapter)
    return answer.status == 200 and isinstance(body, dict) and body.get("job_id") == job.id


def _is_result(ctx: Context, job: Job, answer: Answer) -> bool:
    if answer.status == 409:
        return job.state != "done"
    body = unwrapped(answer.json, ctx.target.adapter)
    fine = answer.status == 200 and isinstance(body, dict)
    return fine and (job.task_id is None or body.get("task_id") == job.task_id)


@check("H2 H13", needs=("bodies.slow", "bodies.slow_ms"), places=1, order=READERS)
async def a_fresh_slow_job_is_live(ctx: Context) -> None:
    """Right after the 202 its status is pending or running, and its result 409."""
    job = await shared_slow(ctx)
    if job is None:
        return
    conn = await ctx.session.client.connect()
    steady = None if isinstance(conn, str) else conn
    until_us = job.return_us + (ctx.target.bodies.slow_ms or 0) * 600
    while True:
        if steady is not None and not steady.alive:
            steady = None
        result = await ctx.session.result(job, conn=steady)
        _live(ctx, job, result, "result", result.answer.status == 409)
        if steady is not None and not steady.alive:
            steady = None
        status = await ctx.session.status(job, conn=steady)
        _live(ctx, job, status, "status", status.answer.status == 200 and status.state in LIVE)
        if now_us() > until_us:
            break
        await asyncio.sleep(0.03)
    if steady is not None:
        steady.close()
    await ctx.session.until_terminal(job, ctx.session.patience_s())


def _live(ctx: Context, job: Job, reading: Reading, what: str, holds: bool) -> None:
    """Judge a read that was over before the job's run can have been."""
    answer = reading.answer
    run_us = (ctx.target.bodies.slow_ms or 0) * 900
    timeout_us = (ctx.target.limits.timeout_ms or 10**9) * 900
    if not answer.ok or answer.return_us - job.call_us > min(run_us, timeout_us):
        return
    allowed = "409" if what == "result" else "200, pending or running"
    said = f"{(answer.return_us - job.call_us) // 1000} ms after a slow submit the {what} is "
    said += str(answer.status) + (f" ({reading.state})" if reading.state else "")
    judged = ctx.expect(holds, "H2", said, allowed=allowed, answers=(job.answer, answer))
    if judged and what == "result":
        _judge_409(ctx, answer)


def _judge_409(ctx: Context, answer: Answer) -> None:
    """H13: the 409 of a live job names its state; its exact text SHOULD be ours."""
    text = error_text(ctx, answer)
    named = any(state in text for state in LIVE)
    said = f"the 409 of a live job reads {text!r:.120}"
    allowed = "an `error` that contains the state"
    exact = tuple(f"job not finished (state: {state})" for state in LIVE)
    if ctx.expect(named, "H13", said, allowed=allowed, answers=(answer,)) and text not in exact:
        ctx.warn("H13", said, allowed=exact[0], answers=(answer,))


@check("H7", needs=("bodies.slow", "bodies.slow_ms"), places=1, order=READERS)
async def two_waiters_both_get_the_end(ctx: Context) -> None:
    """Two concurrent waiters on one job both get its terminal state."""
    job, budget_ms = await shared_slow(ctx), 30_000
    if job is None:
        return
    patience_s = ctx.session.patience_s()
    first, second, ended = await asyncio.gather(
        ctx.session.wait(job, budget_ms, patience_s=patience_s),
        ctx.session.wait(job, budget_ms, patience_s=patience_s),
        ctx.session.until_terminal(job, patience_s),
    )
    if ended is None or first.answer.status == 404 or second.answer.status == 404:
        return
    states = (first.state, second.state)
    fine = states[0] == states[1] and states[0] not in (None, *LIVE)
    ctx.expect(
        fine,
        "H7",
        f"two waiters on one job got {_said(first)} and {_said(second)}",
        allowed="both its terminal state",
        answers=(job.answer, first.answer, second.answer),
    )


def _said(reading: Reading) -> str:
    return reading.state or reading.answer.say()[:60]


@check("H8", needs=("bodies.slow", "bodies.slow_ms"), places=1, order=READERS)
async def elapsed_is_counted_from_admission(ctx: Context) -> None:
    """`elapsed_ms` runs with the clock from admission, never back, and SHOULD stop at the end."""
    job = await shared_slow(ctx)
    if job is None:
        return
    last = -1
    for _ in range(400):
        reading = await ctx.session.status(job)
        last = judge_elapsed(ctx, job, reading, last)
        if job.terminal:
            break
        await asyncio.sleep(0.05)
    waited = await ctx.session.wait(job, 1000)
    last = judge_elapsed(ctx, job, waited, last)
    await asyncio.sleep(0.15)
    again = await ctx.session.status(job)
    grown = judge_elapsed(ctx, job, again, last) - last
    if again.state not in (None, *LIVE) and last >= 0:
        if grown <= 20:
            ctx.ok("H8")
        else:
            said = f"`elapsed_ms` of a terminal job grew by {grown} ms"
            ctx.warn("H8", said, allowed="no growth after the end", answers=(again.answer,))


@check("H9 H13")
async def a_404_names_the_id(ctx: Context) -> None:
    """The `error` of every job's 404 contains the id; its exact text SHOULD be ours."""
    for plain in PLAIN_IDS:
        for action in ("", "/wait?timeout=100", "/result"):
            answer = await ctx.session.send("GET", f"/jobs/{plain}{action}")
            if answer.status != 404:
                continue  # E4, G3, W7
            error = error_text(ctx, answer)
            named = plain in error
            ctx.expect(
                named,
                "H13",
                f"the 404 of {plain[:40]}{action} does not name the id: {error!r:.120}",
                allowed="an `error` that contains the id",
                answers=(answer,),
            )
            if named and error != f"job not found: {plain}":
                said = f"the 404 reads {error!r:.120}"
                ctx.warn("H13", said, allowed="job not found: <id>", answers=(answer,))


@check("H14", even=(DISABLED,))
async def public_routes_are_public(ctx: Context) -> None:
    """What is declared public is 200 without and with any token."""
    declared = ctx.target.dialect.public
    if declared is None:
        ctx.untestable("H14", "dialect.public")
        return
    if not declared:
        ctx.does_not_apply("H14", "`dialect.public` is empty")
    for path in declared:
        for token in (None, "wrong") if ctx.target.token else (None,):
            answer = await ctx.session.send("GET", path, prefix=False, token=token, may_5xx=True)
            ctx.expect(
                answer.status == 200,
                "H14",
                f"GET {path} {'without a' if token is None else 'with a wrong'} token: "
                f"{answer.say()[:100]}",
                allowed="200",
                answers=(answer,),
            )
            if answer.status == 200 and path.endswith("openapi.json"):
                fine = isinstance(answer.json, dict)
                said = "/openapi.json is no JSON object"
                ctx.expect(fine, "H14", said, allowed="a JSON object", answers=(answer,))
