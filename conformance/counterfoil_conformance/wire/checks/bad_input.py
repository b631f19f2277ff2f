"""Bodies that are wrong (E1, E2), odd (E5, E9), or wrongly labelled (E3).

Every row of the tables goes to `/jobs` and to `/infer`. The rows that a correct server must refuse
take no place and run beside anything. Those it merely should refuse may be admitted: they are sent
one at a time, and what was admitted is followed to its end.
"""

import json
from typing import Final

from counterfoil_conformance.wire.answer import Answer
from counterfoil_conformance.wire.bad_bodies import BadBody, bad_bodies, lenient_bodies
from counterfoil_conformance.wire.laws import errors_of
from counterfoil_conformance.wire.probing import (
    all_in_places,
    all_of,
    has_infer,
    judge_bad,
    post_bad,
    quick_body,
    routes,
)
from counterfoil_conformance.wire.registry import DISABLED, Context, check

__all__: tuple[str, ...] = ()

WRONG_TYPES: Final = (
    "text/plain",
    "application/xml",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "application/octet-stream",
    "image/png",
    "application/jsonx",
    "nonsense",
)
RIGHT_TYPES: Final = (
    "application/json",
    "application/json; charset=utf-8",
    "application/json;charset=UTF-8",
    "APPLICATION/JSON",
    'application/json ; charset="utf-8"',
    "application/json; profile=x; charset=utf-8",
)


# Not beside the long run: where its jobs fill the queue, 429 is as right, and hides the refusal.
@check("E1 E2 E5 E9", needs=("bodies.quick",), order=55, even=(DISABLED,))
async def wrong_bodies_are_refused(ctx: Context) -> None:
    """What is no JSON object is 400; wrong `images` are 422 (or 400), with a pointer to each."""
    rows = bad_bodies(quick_body(ctx))

    async def probe(pair: tuple[str, BadBody]) -> None:
        route, row = pair
        answer = await post_bad(ctx, route, row.body)
        if answer is not None:
            judge_bad(ctx, route, row, answer)

    await all_of(((route, row) for route in await routes(ctx) for row in rows), probe)


@check("E2", needs=("bodies.quick",), order=55)
async def each_fault_of_a_body_is_pointed_at(ctx: Context) -> None:
    """Two wrong images are two entries of `errors`."""
    quick = quick_body(ctx)
    body = json.dumps({**quick, "images": [5, *quick["images"][:1], None]}).encode()
    answer = await post_bad(ctx, "/jobs", body)
    if answer is None or answer.status not in (400, 422):
        return  # the table has that
    errors = errors_of(answer, ctx.target) or []
    found = {str(e.get("pointer")).removeprefix("#") for e in errors if isinstance(e, dict)}
    if {"/images/0", "/images/2"} <= found or "/images" in found:
        ctx.ok("E2")
    else:
        said = f"of two wrong images, at 0 and 2, the errors name {sorted(found)}"
        ctx.warn("E2", said, allowed="each fault with its pointer", answers=(answer,))


@check("E2 E5 E9", needs=("bodies.quick",), places=3)
async def odd_bodies_do_no_harm(ctx: Context) -> None:
    """Unknown fields and wrong types SHOULD be refused; nothing of it is a 5xx."""
    rows = lenient_bodies(quick_body(ctx))

    async def submit(row: BadBody) -> None:
        answer = await ctx.session.send("POST", "/jobs", body=row.body)
        await _follow(ctx, answer)
        if answer.status != 429:
            _judge_odd(ctx, "/jobs", row, answer)

    await all_in_places(ctx, rows, submit)
    if not await has_infer(ctx):
        return

    async def probe(row: BadBody) -> None:
        answer = await ctx.session.infer(row.body)
        if answer.status not in (429, 500, 504):
            _judge_odd(ctx, "/infer", row, answer)

    await all_of(rows, probe)


def _judge_odd(ctx: Context, route: str, row: BadBody, answer: Answer) -> None:
    if row.should:
        judge_bad(ctx, route, row, answer)
    elif answer.ok and answer.status < 500:
        ctx.ok("E5")


async def _follow(ctx: Context, answer: Answer) -> None:
    """See an admitted job to its end, so that it is nobody else's burden."""
    job = ctx.session.admitted(answer)
    if job is not None:
        await ctx.session.until_terminal(job, ctx.session.patience_s())


@check("E3", needs=("bodies.quick",), places=3)
async def media_types_are_told_apart(ctx: Context) -> None:
    """A wrong media type SHOULD be 415; a missing one is 415 or JSON; parameters do not matter."""
    body = json.dumps(quick_body(ctx)).encode()

    async def label(row: tuple[str, tuple[int, ...]]) -> None:
        kind, allowed = row
        answer = await ctx.session.send("POST", "/jobs", body=body, headers={"Content-Type": kind})
        await _follow(ctx, answer)
        said = f"media type {kind}" if kind else "no media type"
        _should(ctx, answer, answer.status in allowed, said, " or ".join(map(str, allowed)))

    rows: list[tuple[str, tuple[int, ...]]] = [(kind, (415,)) for kind in WRONG_TYPES]
    rows += [(kind, (202,)) for kind in RIGHT_TYPES]
    await all_in_places(ctx, [*rows, ("", (202, 415))], label)
    if await has_infer(ctx):
        for kind in WRONG_TYPES[:2]:
            answer = await ctx.session.send(
                "POST", "/infer", body=body, headers={"Content-Type": kind}, may_5xx=True
            )
            _should(ctx, answer, answer.status == 415, f"/infer, media type {kind}", "415")


def _should(ctx: Context, answer: Answer, holds: bool, what: str, allowed: str) -> None:
    if not answer.ok or answer.status in (429, 504):
        return
    if holds:
        ctx.ok("E3")
    else:
        ctx.warn("E3", f"{what}: {answer.status}", allowed=allowed, answers=(answer,))
