"""Requests that are well-formed and whose content is a trap: names (E7) and images (E6).

A `req_id` travels far: into logs, headers, the ledger, the result. What it says must not become a
header line on the way. An image that is none must cost its own item, not a worker.

Whether an image is "no base64" is judged only where every image in the target file's bodies is
base64: a target whose model reads plain text has another idea of what is wrong. What a name that
was made safe looks like afterwards is not judged either; only that it is no raw header and strict
JSON.
"""

import base64
import binascii
import json
from dataclasses import fields
from typing import Final

from counterfoil_conformance.wire.answer import Answer
from counterfoil_conformance.wire.bad_bodies import BadBody, image_bodies, req_id_bodies
from counterfoil_conformance.wire.client import Connection
from counterfoil_conformance.wire.laws import raw_in_head
from counterfoil_conformance.wire.probing import (
    all_in_places,
    all_of,
    has_infer,
    next_answer,
    quick_body,
)
from counterfoil_conformance.wire.reading import unwrapped
from counterfoil_conformance.wire.registry import Context, check
from counterfoil_conformance.wire.session import Job
from counterfoil_conformance.wire.steps import admit

__all__: tuple[str, ...] = ()

MANY_IMAGES_QUICK: Final = 64
MANY_IMAGES_FULL: Final = 2500
ODD_IMAGES: Final = (
    ("an empty image", ""),
    ("base64 of what is no image", base64.b64encode(b"\x00\xffnot an image").decode()),
    ("an image with a broken padding", "aGVsbG8"),
    ("an image with white space in it", "aGVs\nbG8="),
    ("a data URL", "data:image/png;base64,aGVsbG8="),
    ("a PNG that stops after its signature", "iVBORw0KGgo="),
    ("an image of 100 000 letters", "QUJD" * 25_000),
)


@check("E7 E5 E9", needs=("bodies.quick",), places=3)
async def a_req_id_never_reaches_a_header_raw(ctx: Context) -> None:
    """Controls and non-ASCII in `req_id` are refused or made safe; no response is split."""
    rows = req_id_bodies(quick_body(ctx))

    async def submit(row: BadBody) -> None:
        answer = await _on_its_own(ctx, "/jobs", row)
        job = ctx.session.admitted(answer) if answer is not None else None
        if job is not None:
            await _follow_names(ctx, row, job)

    await all_in_places(ctx, rows, submit)
    if await has_infer(ctx):

        async def probe(row: BadBody) -> None:
            await _on_its_own(ctx, "/infer", row)

        await all_of(rows, probe)


async def _on_its_own(ctx: Context, route: str, row: BadBody) -> Answer | None:
    """Post one name on a connection of its own, and see what else comes out of it."""
    conn = await ctx.session.client.connect()
    if not isinstance(conn, Connection):
        return None
    try:
        answer = await ctx.session.send(
            "POST", route, body=row.body, conn=conn, may_5xx=route == "/infer"
        )
        if answer.trouble == "garbage":
            ctx.fail("E7", f"{row.name}: the answer is no HTTP", answers=(answer,))
        if answer.status == 429 or not answer.ok:
            return answer
        allowed = (202, 200, 422, 400) if route == "/jobs" else (200, 422, 400, 500, 504)
        if answer.status not in allowed:
            said = f"POST {route}, {row.name}: {answer.status}"
            ctx.fail("E7", said, allowed="422, or made safe", answers=(answer,))
        if not _head_is_clean(ctx, row, answer):
            return answer
        found = await next_answer(ctx, conn)
        ctx.expect(
            found.fine,
            "E7",
            f"POST {route}, {row.name}: the next answer on the connection is {found.after}",
            allowed="its own answer, or a closed connection",
            answers=(answer, found.answer) if found.answer is not None else (answer,),
            one_connection=True,
        )
        return answer
    finally:
        conn.close()


def _head_is_clean(ctx: Context, row: BadBody, answer: Answer) -> bool:
    fault = raw_in_head(answer, "E7")
    if fault is not None:
        ctx.fail("E7", f"{row.name}: {fault.why}", allowed=fault.allowed, answers=(answer,))
        return False
    ctx.ok("E7")
    return True


async def _follow_names(ctx: Context, row: BadBody, job: Job) -> None:
    """Every read of such a job is looked at as well: its record holds the name."""
    await ctx.session.until_terminal(job, ctx.session.patience_s())
    for path in (job.poll_url, f"{ctx.target.prefix}/jobs/{job.id}/wait?timeout=50"):
        _head_is_clean(ctx, row, await ctx.session.send("GET", path, prefix=False))
    answer = await ctx.session.send("GET", job.result_url, prefix=False)
    _head_is_clean(ctx, row, answer)


@check("E6 E5", needs=("bodies.quick",), places=3)
async def unreadable_images_cost_their_item_only(ctx: Context) -> None:
    """What is no image fails its item, or is refused with 422; the worker lives on."""
    quick = quick_body(ctx)
    strict = images_are_base64(ctx)
    rows = [(row.name, row.body, strict) for row in image_bodies(quick)]
    for name, image in ODD_IMAGES:
        body = json.dumps({**quick, "images": [image]}).encode()
        if len(body) < (ctx.target.limits.max_body or len(body) + 1):
            rows.append((name, body, False))

    async def submit(row: tuple[str, bytes, bool]) -> None:
        answer = await ctx.session.send("POST", "/jobs", body=row[1])
        await _ends_badly(ctx, row[0], answer, strict=row[2])

    await all_in_places(ctx, rows, submit)
    await _mixed(ctx, strict=strict)
    await _bad_images_of_infer(ctx)
    await _worker_lives(ctx)


def images_are_base64(ctx: Context) -> bool:
    """Whether all images of the target file are strict base64, so that others stand out."""
    for f in fields(ctx.target.bodies):
        text = getattr(ctx.target.bodies, f.name)
        if not isinstance(text, str) or f.name == "echo_pointer":
            continue
        for image in json.loads(text.replace("{nonce}", "abcd")).get("images") or []:
            try:
                base64.b64decode(image, validate=True)
            except (binascii.Error, ValueError, TypeError):
                return False
    return True


async def _ends_badly(ctx: Context, name: str, answer: Answer, *, strict: bool) -> None:
    """A job whose only image is bad fails, or never was one (422; 400 is as good here)."""
    if not answer.ok or answer.status == 429:
        return
    job = ctx.session.admitted(answer)
    if job is None:
        if answer.status == 202:
            return
        if answer.status in (422, 400, 413):
            ctx.ok("E6")
        else:
            ctx.fail("E6", f"{name}: {answer.status}", allowed="202, 422", answers=(answer,))
        return
    reading = await ctx.session.until_terminal(job, ctx.session.patience_s())
    said = ""
    if reading is None:
        said = f"{name}: the job is still `{job.state}`"
    elif job.state == "timeout" and await _only_this_times_out(ctx, job):
        said = f"{name}: the job does not end before its budget, and a good one does"
    if said:
        allowed = "failed, or done with `partial`"
        ctx.fail("E6", said, allowed=allowed, answers=(answer,))
    elif job.gone_us is None and job.state in ("failed", "done"):
        await _judge_result(ctx, name, job, strict=strict)


async def _only_this_times_out(ctx: Context, job: Job) -> bool:
    """Whether the same body times out again while a good job, submitted after it, is done.

    A job may time out without any fault of its own where others hold the workers.
    """
    for _ in range(2):
        answer = await ctx.session.send("POST", "/jobs", body=job.body)
        again = ctx.session.admitted(answer)
        good = await admit(ctx, "quick")
        if again is None or good.job is None:
            return False
        for one in (again, good.job):
            await ctx.session.until_terminal(one, ctx.session.patience_s())
        if again.state != "timeout" or good.job.state != "done":
            return False
    return True


async def _judge_result(ctx: Context, name: str, job: Job, *, strict: bool) -> None:
    result = await ctx.session.result(job)
    status = result.answer.status
    if not result.answer.ok or status == 404:
        return
    if job.state == "failed":
        said = f"{name}: the job is `failed`, and its result is {status}"
        ctx.expect(status == 409, "E6", said, allowed="409", answers=(job.answer, result.answer))
        return
    fine = status == 200 and not (strict and _item_is_fine(result.body, 0))
    said = f"{name}: the job is `done`, and its result {status}, with the status 0 for that item"
    answers = (job.answer, result.answer)
    ctx.expect(fine, "E6", said, allowed="200, the item fails", answers=answers)


def _item_is_fine(envelope: object, index: int) -> bool:
    results = envelope.get("results") if isinstance(envelope, dict) else None
    if not isinstance(results, list) or len(results) <= index:
        return False
    item = results[index]
    return isinstance(item, dict) and item.get("status") == 0


async def _mixed(ctx: Context, *, strict: bool) -> None:
    """A good image beside a bad one is `done` and partial, or the request is refused."""
    quick = quick_body(ctx)
    for images in (["!!!not base64!!!", *quick["images"][:1]], [*quick["images"][:1], "*"]):
        body = json.dumps({**quick, "images": images}).encode()
        answer = await ctx.session.send("POST", "/jobs", body=body)
        job = ctx.session.admitted(answer)
        if job is None:
            if answer.status in (400, 422):
                ctx.ok("E6")
            continue
        await ctx.session.until_terminal(job, ctx.session.patience_s())
        result = await ctx.session.result(job)
        if not strict or job.state != "done" or result.answer.status != 200:
            continue
        good = next(i for i, image in enumerate(images) if image in quick["images"][:1])
        fine = (_item_is_fine(result.body, good), not _item_is_fine(result.body, 1 - good))
        ctx.expect(
            all(fine) and result.body.get("partial") is True,
            "E6",
            "of a good and a bad image not exactly the bad one has failed, with `partial`",
            allowed="the bad item fails, the good one does not, `partial` is true",
            answers=(answer, result.answer),
        )


async def _bad_images_of_infer(ctx: Context) -> None:
    if not await has_infer(ctx):
        return
    for row in image_bodies(quick_body(ctx))[:3]:
        answer = await ctx.session.infer(row.body)
        judge_infer_failure(ctx, "E6", f"/infer, {row.name}", answer)


def judge_infer_failure(ctx: Context, clause: str, name: str, answer: Answer) -> None:
    """A 500 of `/infer` carries the envelope (E5), whatever else it may answer."""
    if answer.status != 500:
        if answer.ok and answer.status in (200, 400, 413, 422):
            ctx.ok(clause)
        return
    body = unwrapped(answer.json, ctx.target.adapter)
    kept = isinstance(body, dict) and "status" in body and isinstance(body.get("results"), list)
    fine = kept and body["status"] != 0
    allowed = "500 with the envelope, its `status` not 0"
    ctx.expect(fine, "E5", f"{name}: 500 without the envelope", allowed=allowed, answers=(answer,))


async def _worker_lives(ctx: Context) -> None:
    """The control: a good request still runs."""
    sent = await admit(ctx, "quick")
    if sent.job is None:
        return
    await ctx.session.until_terminal(sent.job, ctx.session.patience_s())
    ctx.expect(
        sent.job.state == "done" or sent.job.gone_us is not None,
        "E6",
        f"after unreadable images a good job is `{sent.job.state}`",
        allowed="done",
        answers=(sent.answer,),
    )


@check("E6 E5 G4 Q4", needs=("bodies.quick",), places=1)
async def many_images_are_many_items(ctx: Context) -> None:
    """A request of many images is refused whole, or answered item by item."""
    quick = quick_body(ctx)
    count = MANY_IMAGES_FULL if ctx.is_full else MANY_IMAGES_QUICK
    body = json.dumps({**quick, "images": quick["images"][:1] * count}).encode()
    if len(body) > (ctx.target.limits.max_body or len(body)):
        return
    answer = await ctx.session.send("POST", "/jobs", body=body)
    job = ctx.session.admitted(answer)
    if job is None:
        if answer.status in (400, 413, 422):
            ctx.ok("E6")
        return
    await ctx.session.until_terminal(job, ctx.session.patience_s())
    never_ran = job.state == "timeout" and job.started_us == job.ended_us
    if never_ran and await _only_this_times_out(ctx, job):
        ctx.fail(
            "Q4",
            f"a job of {count} images is pending until its budget ends, and others run meanwhile",
            allowed="no job pending while a worker is idle",
            answers=(answer,),
        )
    result = await ctx.session.result(job)
    if job.state == "done" and result.answer.status == 200 and isinstance(result.body, dict):
        found = len(result.body.get("results") or [])
        allowed = f"{count} results"
        said = f"{count} images, {found} results"
        ctx.expect(found == count, "G4", said, allowed=allowed, answers=(result.answer,))
