"""G1 G2 G4 G5 Q2 R6 S4 S6: what a job gives back, and that it is the job's own.

Every request carries something that nobody else's does: a `req_id` that the envelope must echo,
and, with the `echo` body, a nonce that the data must depend on. What a nonce gives is learnt alone
first; later, side by side with others, it must give the same and nothing else.

Order within `results` is learnt likewise: two images that give different data alone are sent
together in both orders.
"""

import asyncio
import json
from typing import Any

from counterfoil_conformance.wire.answer import NOT_JSON, Answer
from counterfoil_conformance.wire.probing import all_in_places
from counterfoil_conformance.wire.reading import Reading, at_pointer
from counterfoil_conformance.wire.registry import Context, check
from counterfoil_conformance.wire.session import Job, Submitted
from counterfoil_conformance.wire.steps import (
    READERS,
    admit,
    ended,
    is_gone,
    shared_slow,
    submitted,
)
from counterfoil_spec.ledger import Outcome

__all__ = ["done", "echoed", "judge_envelope"]


def judge_envelope(ctx: Context, job: Job, reading: Reading) -> Any:
    """G4, G5 and Q2 of one 200: the results, or None where there is no envelope."""
    body, answer = reading.body, reading.answer
    if reading.outcome is not Outcome.READY or not isinstance(body, dict):
        return None
    results = body.get("results")
    if not isinstance(results, list):
        return None
    if job.task_id:
        ctx.expect(
            body.get("task_id") == job.task_id,
            "Q2",
            f"the task_id is {body.get('task_id')!r:.80}",
            allowed=f"{job.task_id!r:.80}",
            answers=(job.answer, answer),
        )
    if job.images:
        ctx.expect(
            len(results) == job.images,
            "G4",
            f"{len(results)} results for {job.images} images",
            allowed="one item per image",
            answers=(job.answer, answer),
        )
    if body.get("partial") is False:
        ctx.expect(
            body.get("status") == 0,
            "H13",
            f"the envelope of a `done` job has the status {body.get('status')!r:.40}",
            allowed="0",
            answers=(answer,),
        )
    good = [item for item in results if isinstance(item, dict) and item.get("status") == 0]
    shapes = all(_is_item(item) for item in results)
    ctx.expect(
        shapes,
        "G4",
        "an item of `results` has not its own `status` and `data` (null exactly when it failed)",
        allowed='{"status": 0, "data": ...}',
        answers=(answer,),
    )
    some_failed = len(good) < len(results)
    if shapes and not good and results:
        ctx.fail(
            "G5",
            "a job none of whose items succeeded is `done`",
            allowed="`failed`",
            answers=(job.answer, answer),
        )
    elif shapes:
        ctx.expect(
            body.get("partial") is some_failed,
            "G5",
            f"`partial` is {body.get('partial')} with {len(good)} of {len(results)} items fine",
            allowed=str(some_failed).lower(),
            answers=(job.answer, answer),
        )
    return results


def _is_item(item: Any) -> bool:
    if not isinstance(item, dict) or "data" not in item:
        return False
    status = item.get("status")
    if not isinstance(status, int) or isinstance(status, bool):
        return False
    return (item["data"] is None) == (status != 0)


async def done(ctx: Context, body: bytes, task_id: str | None = None) -> tuple[Job, Reading] | None:
    """Submit a body, wait for its end, fetch its result."""
    sent = await admit(ctx, body=body)
    if sent.job is None:
        return None
    sent.job.task_id = task_id
    await ended(ctx, sent.job, period_s=0.006)
    return sent.job, await ctx.session.result(sent.job)


@check("G1 G2 G4 G5 Q2 R6 S4 S6 H9", needs=("bodies.quick",), places=1)
async def a_result_is_there_once_done_and_stays_the_same(ctx: Context) -> None:
    """Status, wait and result of an ended job, read again and again over a while."""
    kinds = ["quick"] + [k for k in ("failing", "crashing") if ctx.target.has(f"bodies.{k}")]
    for kind in kinds:
        job = await submitted(ctx, kind)
        if job is None or await ended(ctx, job, period_s=0.005) in ("", "gone"):
            continue
        first: tuple[Reading, Reading] | None = None
        for pause_s in (0, 0, 0.02, 0.15):
            await asyncio.sleep(pause_s)
            status, result = await ctx.session.status(job), await ctx.session.result(job)
            wait = await ctx.session.wait(job, 100)
            if any(is_gone(reading) for reading in (status, result, wait)):
                break
            first = first or (status, result)
            _same(ctx, first, (status, result), wait)
        if first is not None:
            _judge_end(ctx, kind, job, first[1])


def _same(
    ctx: Context,
    first: tuple[Reading, Reading],
    later: tuple[Reading, Reading],
    wait: Reading,
) -> None:
    """Two looks at a terminal job agree."""
    views = [_view(r) for r in (first[0], later[0], wait)]
    if not all(r.answer.ok for r in (*first, *later, wait)):
        return
    if views[0] == views[1] == views[2]:
        ctx.ok("S4")
        ctx.ok("S6")
    else:
        ctx.fail(
            "R6",
            "reads of a terminal job differ",
            allowed=str(views[0]),
            answers=(first[0].answer, later[0].answer, wait.answer),
        )
    clause = "G1" if first[1].outcome is Outcome.READY else "G2"
    ctx.expect(
        first[1].answer.status == later[1].answer.status and first[1].reply == later[1].reply,
        clause,
        "the result of a terminal job changed from one read to the next",
        allowed="the same (`server_time_ms` aside)",
        answers=(first[1].answer, later[1].answer),
    )
    ctx.ok("R6")


def _view(reading: Reading) -> tuple[Any, Any]:
    """What of a status must not change."""
    body = reading.body if isinstance(reading.body, dict) else {}
    return reading.state, body.get("error") or None


def _judge_end(ctx: Context, kind: str, job: Job, result: Reading) -> None:
    if job.state == "done":
        ctx.expect(
            result.answer.status == 200,
            "G1",
            f"the result of a done job is answered {result.answer.status}",
            allowed="200",
            answers=(result.answer,),
        )
        judge_envelope(ctx, job, result)
    elif job.state in ("failed", "timeout"):
        ctx.expect(
            result.answer.status == 409 and _names(result, job.state),
            "G2",
            f"the result of a `{job.state}` job is answered {result.answer.say()}",
            allowed=f"409 naming the state `{job.state}`",
            answers=(result.answer,),
        )
    if kind == "quick" and job.state == "failed":
        ctx.undecided("G1", "the body `bodies.quick` ends `failed`")


def _judge_promptness(ctx: Context, job: Job, result: Reading) -> None:
    """A result that was asked for in good time before the end is refused, not held back."""
    sure_us = job.call_us + (ctx.target.bodies.slow_ms or 0) * 900
    answer = result.answer
    allowed_us = ctx.session.allowed_us(answer.call_us, answer.return_us)
    if answer.status == 200 and answer.call_us + allowed_us < sure_us:
        ctx.fail(
            "G2",
            f"the result of a live job was held back for {answer.trip_us // 1000} ms",
            allowed="409 at once",
            answers=(answer,),
        )


def _names(reading: Reading, state: str) -> bool:
    """Whether a 409 names the state: in its error, in the target's own word for it too."""
    return reading.state == state or state in reading.answer.body.decode("utf-8", "replace")


@check("G2", needs=("bodies.slow",), places=1, order=READERS)
async def the_result_of_a_live_job_is_a_409(ctx: Context) -> None:
    """Results asked for all through the life of a slow job: 409 naming the state, until done."""
    job = await shared_slow(ctx)
    if job is None:
        return
    while not job.terminal:
        before = await ctx.session.status(job)
        result = await ctx.session.result(job)
        after = await ctx.session.status(job)
        states = {before.state, after.state}
        _judge_promptness(ctx, job, result)
        if states <= {"pending", "running"} and result.answer.ok and result.answer.status != 404:
            named = any(_names(result, str(state)) for state in states)
            ctx.expect(
                result.answer.status == 409 and named,
                "G2",
                f"the result of a live job is answered {result.answer.say()}",
                allowed=f"409 naming {' or '.join(sorted(map(str, states)))}",
                answers=(before.answer, result.answer),
            )
        await asyncio.sleep(0.03)


@check("Q2", needs=("bodies.quick",), places=3)
async def the_task_id_is_the_clients_or_one_the_server_made(ctx: Context) -> None:
    """`req_id` given, absent, empty, long, not Latin; one that is no Unicode text is refused."""
    content = json.loads(ctx.target.bodies.quick or "{}")
    content.pop("req_id", None)
    given = [
        f"ours {ctx.session.nonce()}",
        'say "hi" to C:\\new/folder ' + ctx.session.nonce(),
        f"  padded {ctx.session.nonce()}  ",
        f"00{ctx.session.rng.randrange(10**9)}",
        "x" * 120,
        ctx.session.nonce() + "-\u00e9\u4e2d\U0001f600",
    ]

    async def comes_back(text: str) -> None:
        # JSON text in ASCII escapes: an odd req_id may be refused (422) or made safe (E7).
        outcome = await done(ctx, json.dumps({**content, "req_id": text}).encode())
        if outcome is None or outcome[1].outcome is not Outcome.READY:
            return
        task_id = outcome[1].body.get("task_id")
        if text.isascii():
            ctx.expect(
                task_id == text,
                "Q2",
                f"req_id {text!r} came back as {task_id!r}",
                allowed=repr(text),
                answers=(outcome[0].answer, outcome[1].answer),
            )

    async def one_is_made(extra: dict[str, str]) -> None:
        outcome = await done(ctx, json.dumps({**content, **extra}).encode())
        if outcome is not None and outcome[1].outcome is Outcome.READY:
            task_id = outcome[1].body.get("task_id")
            ctx.expect(
                isinstance(task_id, str) and task_id != "",
                "Q2",
                f"without a req_id the task_id is {task_id!r}",
                allowed="one that the server made",
                answers=(outcome[0].answer, outcome[1].answer),
            )

    await all_in_places(ctx, given, comes_back)
    await all_in_places(ctx, ({}, {"req_id": ""}), one_is_made)
    lone = json.dumps({**content, "req_id": "\ud800 is no text"}).encode()
    sent = await admit(ctx, body=lone)
    if sent.answer.ok and not sent.refused:
        ctx.expect(
            400 <= sent.answer.status < 500,
            "Q2",
            f"a req_id with a lone surrogate is answered {sent.answer.status}",
            allowed="a refusal (422 or 400)",
            answers=(sent.answer,),
        )


async def echoed(ctx: Context, nonce: str) -> Any:
    """What the echo body gives for a nonce, alone; `NOT_JSON` where it cannot be told."""
    body, task_id = ctx.session.compose("echo", nonce=nonce)
    outcome = await done(ctx, body, task_id)
    if outcome is None:
        return NOT_JSON
    job, reading = outcome
    if reading.outcome is not Outcome.READY:
        if job.state == "failed":
            _no_echo(ctx, f"an `echo` job with the nonce {nonce} ended `failed`", job.answer)
        return NOT_JSON
    judge_envelope(ctx, job, reading)
    shown = at_pointer(reading.body, ctx.target.bodies.echo_pointer or "")
    if shown is NOT_JSON:
        pointer = ctx.target.bodies.echo_pointer
        _no_echo(ctx, f"bodies.echo_pointer = {pointer!r} finds nothing there", reading.answer)
    return shown


def _no_echo(ctx: Context, why: str, answer: Answer) -> None:
    """Say that half of G4 goes unseen: items in order alone would pass for all of it."""
    said = f"whether jobs get each other's data cannot be seen: {why}"
    allowed = "an `echo` job that ends `done`, and a pointer into its result (target file)"
    ctx.warn("G4", said, allowed=allowed, answers=(answer,))


@check("G4 Q2", needs=("bodies.echo", "bodies.echo_pointer"), places=3, order=52)
async def nobody_gets_anothers_data(ctx: Context) -> None:
    """What a nonce gives alone, it gives among others: as job, several times, read crosswise."""
    nonces = [ctx.session.nonce() for _ in range(4)]
    expected = {}
    for nonce in nonces:
        expected[nonce] = await echoed(ctx, nonce)
    values = [json.dumps(v, sort_keys=True, default=str) for v in expected.values()]
    if NOT_JSON not in expected.values() and len(set(values)) == 1:
        ctx.fail(
            "G4",
            f"{len(nonces)} jobs with different nonces all got the data of the first one",
            allowed="at `bodies.echo_pointer`, something that depends on the nonce",
            actual=values[0][:200],
        )
        return
    if NOT_JSON in expected.values() or len(set(values)) < len(values):
        ctx.undecided(
            "G4",
            "what `bodies.echo` shows at `bodies.echo_pointer` does not tell one "
            "nonce from another",
        )
        return
    ctx.session.echoes |= expected  # from here on every echo of the run is held against them
    await _same_name(ctx, nonces[:2], expected)
    for _ in range(ctx.times(6, 25)):
        composed = [ctx.session.compose("echo", nonce=nonce) for nonce in nonces]
        sent = await ctx.session.burst(
            "echo", len(nonces), padding=500, bodies=[body for body, _ in composed]
        )
        if len(sent) == len(nonces):  # else a connection failed, and they are not in step
            jobs = zip(sent, composed, nonces, strict=True)
            await asyncio.gather(*(_one_echo(ctx, s, c[1], expected[n]) for s, c, n in jobs))


async def _same_name(ctx: Context, nonces: list[str], expected: dict[str, Any]) -> None:
    """Two requests of one `req_id` are two jobs, each with its own data."""
    name = f"twice-{ctx.session.nonce()}"
    for nonce in nonces:
        content = json.loads(ctx.session.compose("echo", nonce=nonce)[0])
        sent = await admit(ctx, body=json.dumps({**content, "req_id": name}).encode())
        await _one_echo(ctx, sent, name, expected[nonce])


async def _one_echo(ctx: Context, sent: Submitted, task_id: str | None, expected: Any) -> None:
    if sent.job is None:
        return
    sent.job.task_id = task_id
    await ended(ctx, sent.job, period_s=0.004)
    reading = await ctx.session.result(sent.job)
    if judge_envelope(ctx, sent.job, reading) is None:
        return
    got = at_pointer(reading.body, ctx.target.bodies.echo_pointer or "")
    ctx.expect(
        got == expected,
        "G4",
        "a job got data that is not its own",
        allowed=f"{expected!r:.120}",
        answers=(sent.answer, reading.answer),
    )


@check("G4 G5", needs=("bodies.quick",), places=1)
async def every_image_has_its_item_in_order(ctx: Context) -> None:
    """Different images together, in both orders; a good one, one that fails and a good one."""
    await _order_of_items(ctx)
    await _partial(ctx)


async def _alone(ctx: Context, content: dict[str, Any], image: Any) -> Any:
    """What an image gives alone, beside these other fields; `NOT_JSON` unless always the same."""
    datas = []
    for _ in range(2):
        outcome = await done(ctx, json.dumps({**content, "images": [image]}).encode())
        results = judge_envelope(ctx, *outcome) if outcome else None
        if not results or not isinstance(results[0], dict):
            return NOT_JSON
        datas.append(results[0].get("data"))
    return datas[0] if datas[0] == datas[1] and datas[0] is not None else NOT_JSON


async def _order_of_items(ctx: Context) -> None:
    """Two images that give different data alone, beside the same other fields, then together."""
    other = "echo" if ctx.target.has("bodies.echo") else "slow"
    if not ctx.target.has(f"bodies.{other}"):
        return
    nonce = ctx.session.nonce()
    content = json.loads((getattr(ctx.target.bodies, other) or "").replace("{nonce}", nonce))
    content.pop("req_id", None)
    one = json.loads(ctx.target.bodies.quick or "{}")["images"][0]
    two = content["images"][0]
    first, second = await _alone(ctx, content, one), await _alone(ctx, content, two)
    if NOT_JSON in (first, second) or first == second:
        return
    for images, wanted in (
        ([one, one, two], [first, first, second]),
        ([two, one], [second, first]),
    ):
        outcome = await done(ctx, json.dumps({**content, "images": images}).encode())
        results = judge_envelope(ctx, *outcome) if outcome else None
        if outcome is None or results is None:
            continue
        got = [item.get("data") for item in results if isinstance(item, dict)]
        ctx.expect(
            got == wanted,
            "G4",
            "the items are not those of the images, in order",
            allowed=f"{wanted!r:.200}",
            answers=(outcome[0].answer, outcome[1].answer),
        )


async def _partial(ctx: Context) -> None:
    """An image that cannot be read between two good ones, and the failing body's image likewise."""
    content = json.loads(ctx.target.bodies.quick or "{}")
    good = content["images"][0]
    bad = ["!!!! not base64 !!!!"]
    if ctx.target.has("bodies.failing"):
        failing = json.loads(ctx.target.bodies.failing or "{}")
        rest = {k: v for k, v in failing.items() if k != "images"}
        if rest == {k: v for k, v in content.items() if k != "images"}:
            bad.append(failing["images"][0])
    box = ctx.box(4.0)
    for image in bad:
        if box.is_over:
            return
        ends: dict[str, list[tuple[Job, Reading]]] = {}
        for images in ([image, good, good], [image, good], [good, image]):
            outcome = await done(ctx, json.dumps({**content, "images": images}).encode())
            if outcome is None:
                continue
            ends.setdefault(outcome[0].state, []).append(outcome)
            results = judge_envelope(ctx, *outcome)
            if results is None or len(results) != len(images):
                continue
            broken = [k for k, item in enumerate(results) if item.get("status") != 0]
            where = [k for k, each in enumerate(images) if each == image]
            ctx.expect(
                broken in (where, []),
                "G4",
                f"items {broken} failed, and images {where} were bad",
                allowed=f"{where}",
                answers=(outcome[0].answer, outcome[1].answer),
            )
        _judge_ends(ctx, ends)
        await _all_bad(ctx, content, image)


def _judge_ends(ctx: Context, ends: dict[str, list[tuple[Job, Reading]]]) -> None:
    """G5: a bad image among good ones means the same in any order; the job is not forgotten."""
    if "done" in ends and "failed" in ends:
        job, reading = ends["failed"][0]
        ctx.fail(
            "G5",
            "of the same images in two orders one job is `done` in part and the other `failed`",
            allowed="`done` with `partial` wherever some items succeeded",
            answers=(ends["done"][0][0].answer, job.answer, reading.answer),
        )
    # On a machine so busy that slack is a second, a quick job may really take its whole budget.
    if set(ends) == {"timeout"} and len(ends["timeout"]) > 1 and ctx.tolerance_s < 1:
        job, reading = ends["timeout"][0]
        ctx.fail(
            "G5",
            "quick jobs with a bad image among good ones are not reported until their budget ends",
            allowed="`done` with `partial`",
            answers=(job.answer, reading.answer),
        )


async def _all_bad(ctx: Context, content: dict[str, Any], image: str) -> None:
    """G5: none succeeded, so it is `failed`."""
    outcome = await done(ctx, json.dumps({**content, "images": [image, image]}).encode())
    if outcome is not None and outcome[0].state == "failed":
        ctx.ok("G5")
