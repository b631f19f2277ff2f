"""G4 G5 Q2 at `POST /infer`: one item per image, `partial` as it is, and a name of its own.

The same promises as for the result of a job, on the other way to get one. Whether `/infer` itself
is as it should be (its envelope, its failures, its budget) is asked in `blocking`.
"""

import json
from typing import Any

from counterfoil_conformance.wire.answer import Answer
from counterfoil_conformance.wire.probing import has_infer, quick_body
from counterfoil_conformance.wire.reading import unwrapped
from counterfoil_conformance.wire.registry import CLOSED, DISABLED, Context, check

__all__: tuple[str, ...] = ()


@check("G4 G5 Q2", needs=("bodies.quick",), places=1, even=(DISABLED, CLOSED))
async def a_blocking_call_has_an_item_for_every_image(ctx: Context) -> None:
    """Good images, one that fails among them, nothing but such; with a name and without."""
    if not await has_infer(ctx):
        return
    rest = {key: value for key, value in quick_body(ctx).items() if key != "req_id"}
    good = rest["images"][0]
    for bad in _bad_images(ctx, rest):
        for images in ([bad, good, good], [good, bad], [bad, bad]):
            await _ask(ctx, {**rest, "images": images, "req_id": ctx.session.nonce()}, bad)
    await _ask(ctx, {**rest, "images": [good] * 3, "req_id": ctx.session.nonce()}, None)
    await _ask(ctx, rest, None)
    await _ask(ctx, {**rest, "req_id": ""}, None)


def _bad_images(ctx: Context, rest: dict[str, Any]) -> list[str]:
    """Images that fail beside the fields of the quick body."""
    bad = ["!!!! not base64 !!!!"]
    if ctx.target.has("bodies.failing"):
        failing = json.loads(ctx.target.bodies.failing or "{}")
        others = {k: v for k, v in failing.items() if k not in ("images", "req_id")}
        if others == {k: v for k, v in rest.items() if k != "images"} and failing.get("images"):
            bad.append(failing["images"][0])
    return bad


async def _ask(ctx: Context, content: dict[str, Any], bad: str | None) -> None:
    body = json.dumps(content).encode()
    answer = await ctx.session.infer(body, timeout_s=ctx.session.patience_s())
    envelope = unwrapped(answer.json, ctx.target.adapter)
    results = envelope.get("results") if isinstance(envelope, dict) else None
    if not answer.ok or answer.status not in (200, 500) or not isinstance(results, list):
        return  # refused, busy, or wrong in a way that is looked at elsewhere
    _judge_items(ctx, content["images"], bad, results, answer)
    failed = [not isinstance(item, dict) or item.get("status") != 0 for item in results]
    mixed = any(failed) and not all(failed)
    said = f"/infer: `partial` is {envelope.get('partial')!r:.40} with {sum(failed)} of "
    said += f"{len(failed)} items failed"
    ctx.expect(
        envelope.get("partial") is mixed, "G5", said, allowed=str(mixed).lower(), answers=(answer,)
    )
    _judge_name(ctx, content.get("req_id") or "", envelope.get("task_id"), answer)


def _judge_items(
    ctx: Context, images: list[str], bad: str | None, results: list[Any], answer: Answer
) -> None:
    if len(results) != len(images):
        said = f"/infer: {len(results)} results for {len(images)} images"
        ctx.fail("G4", said, allowed="one item per image", answers=(answer,))
        return
    broken = [k for k, one in enumerate(results) if not isinstance(one, dict) or one.get("status")]
    where = [k for k, image in enumerate(images) if image == bad]
    # A target whose model reads anything finds nothing wrong with the image; and one unreadable
    # image may fail a request whole.
    every = list(range(len(images)))
    said = f"/infer: items {broken} failed, and images {where} were bad"
    ctx.expect(broken in (where, [], every), "G4", said, allowed=str(where), answers=(answer,))
    for item in results:
        shaped = isinstance(item, dict) and "data" in item and "status" in item
        if not shaped or (item["data"] is None) != (item["status"] != 0):
            said = f"/infer: an item is {item!r:.120}"
            allowed = "its own `status`, and `data`, null exactly when it failed"
            ctx.fail("G4", said, allowed=allowed, answers=(answer,))
            return


def _judge_name(ctx: Context, given: str, found: object, answer: Answer) -> None:
    fine = found == given if given else isinstance(found, str) and found != ""
    said = f"/infer: req_id {given!r} came back as {found!r:.80}"
    ctx.expect(fine, "Q2", said, allowed=given or "one that the server made", answers=(answer,))
