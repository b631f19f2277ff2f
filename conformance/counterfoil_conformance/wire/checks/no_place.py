"""A7: requests that are refused for their form take no place in the queue, not for a moment.

Asked before the busy checks, when only a few jobs have come and gone. Every kind of invalid request
is sent once, so that it is known which ones this target refuses (a lenient one may admit some of
them). Then, a few kinds at a time, more of each than there are places, and at once after their
answers a good submit: on a queue in which no job is live it is refused only if an invalid request
took a place, for good or for some milliseconds. A place that is taken before the body is read and
given back with the refusal shows only to a submit beside it, so at last good and invalid requests
go out together, their last bytes in one moment.

The control is a good submit before any invalid request, which must be admitted.
"""

import asyncio
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from counterfoil_conformance.wire.answer import Answer
from counterfoil_conformance.wire.client import DEFAULT, _Default
from counterfoil_conformance.wire.registry import ALL, Context, check
from counterfoil_conformance.wire.session import Submitted

__all__ = ["Invalid", "invalid_kinds", "send_invalid"]

_LARGEST_SENT: Final = 1 << 21
_MOST_OF_A_KIND: Final = 40
_KINDS_AT_ONCE: Final = 3
# Where one request or one quick job takes longer than this, all kinds go out together.
_SLOW_TRIP_MS, _SLOW_JOB_US = 40, 250_000
_BESIDE: Final = 3


@dataclass(frozen=True, slots=True)
class Invalid:
    """A submit that is refused for its form, or that a lenient target may admit."""

    name: str
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)
    token: str | _Default | None = DEFAULT


def invalid_kinds(ctx: Context) -> Iterator[Invalid]:
    """Every way in which a submit may be refused for what it is, one thing wrong in each."""
    good = ctx.session.compose("quick")[0]
    content = json.loads(good)
    rest = {key: value for key, value in content.items() if key != "req_id"}

    def changed(**fields: object) -> bytes:
        return json.dumps({**rest, **fields}).encode()

    yield Invalid("no JSON", b"{not json}")
    yield Invalid("an empty body", b"")
    yield Invalid("no object", b"[]")
    yield Invalid("NaN", good[:-1] + b', "params": {"x": NaN}}')
    yield Invalid("bytes that are no UTF-8", good[:-1] + b', "params": {"x": "\xff"}}')
    yield Invalid("no images", b'{"req_id": "no images"}')
    yield Invalid("an empty list of images", changed(images=[]))
    yield Invalid("a number for images", changed(images=7))
    yield Invalid("a number among the images", changed(images=[5]))
    yield Invalid("an image that is no base64", changed(images=["!!! no base64 !!!"]))
    yield Invalid("an empty image", changed(images=[""]))
    yield Invalid("a number for req_id", changed(req_id=5))
    yield Invalid("null for req_id", changed(req_id=None))
    yield Invalid("a req_id that is no Unicode text", changed(req_id="\ud800"))
    yield Invalid("a control character in req_id", changed(req_id="a\r\nb"))
    yield Invalid("an unknown field", changed(zz_unknown=1))
    yield Invalid("a list for params", changed(params=[]))
    yield Invalid("a number for options", changed(options=5))
    yield Invalid("a wrong media type", good, {"Content-Type": "text/plain"})
    if ctx.target.token:
        yield Invalid("no token", good, {}, None)
        yield Invalid("a wrong token", good, {}, "wrong")
    limit = ctx.target.limits.max_body
    if limit is not None and limit <= _LARGEST_SENT:
        yield Invalid("a body over the limit", good[:-1] + b" " * limit + b"}")


@check("A7", needs=("bodies.quick",), places=ALL, order=6, limit_s=100)
async def invalid_requests_take_no_place(ctx: Context) -> None:
    """More invalid requests of every kind than there are places, and a good one after them."""
    bound = ctx.session.max_queue
    if bound is None or bound < 1:
        return
    first = (await ctx.session.submit("quick")).job
    if first is None:
        return
    await ctx.session.settle()
    refused = await _which_are_refused(ctx)
    if not refused or not await _judge_after(ctx, refused):
        return
    together = ctx.session.usual_trip_ms() > _SLOW_TRIP_MS
    together |= (first.ended_us or 0) - first.return_us > _SLOW_JOB_US
    size = len(refused) if together else _KINDS_AT_ONCE
    for start in range(0, len(refused), size):
        kinds = [kind for kind, _ in refused[start : start + size]]
        answers = await asyncio.gather(
            *(send_invalid(ctx, kind) for kind in kinds for _ in range(_enough(bound, kind)))
        )
        if not await _judge_after(ctx, [(kinds[0], answer) for answer in answers]):
            return
    await _side_by_side(ctx, bound, [kind for kind, _ in refused])


def _enough(bound: int, kind: Invalid) -> int:
    """How many of a kind fill the queue if each takes a place; fewer of what costs much to send."""
    return min(bound, _MOST_OF_A_KIND if len(kind.body) < 100_000 else 20) + 1


async def send_invalid(ctx: Context, kind: Invalid) -> Answer:
    """Post it as it is; a large one may be cut off."""
    return await ctx.session.send(
        "POST",
        "/jobs",
        body=kind.body,
        headers=kind.headers,
        token=kind.token,
        may_fail=len(kind.body) > 100_000,
    )


async def _which_are_refused(ctx: Context) -> list[tuple[Invalid, Answer]]:
    """Each kind once: those that are refused for their form. The others' jobs end meanwhile."""
    kinds = list(invalid_kinds(ctx))
    answers = await asyncio.gather(*(send_invalid(ctx, kind) for kind in kinds))
    await ctx.session.settle()
    return [
        (kind, answer) for kind, answer in zip(kinds, answers, strict=True) if _for_its_form(answer)
    ]


def _for_its_form(answer: Answer) -> bool:
    return answer.ok and 400 <= answer.status < 500 and answer.status != 429


async def _judge_after(ctx: Context, refused: Sequence[tuple[Invalid, Answer]]) -> bool:
    """A good submit when only invalid requests were about: whether it was not refused."""
    sent = await ctx.session.submit("quick")
    if sent.refused:
        _accuse(ctx, sent, [answer for _, answer in refused], "after")
    elif sent.job is not None:
        ctx.ok("A7")
    await ctx.session.settle()
    return not sent.refused


def _accuse(ctx: Context, sent: Submitted, others: Sequence[Answer], how: str) -> None:
    refused = [answer for answer in others if _for_its_form(answer)]
    if not refused:
        return
    words = " or ".join(str(status) for status in sorted({answer.status for answer in refused}))
    ctx.fail(
        "A7",
        f"{how} {len(refused)} requests that were refused for their form ({words}) a queue in "
        "which no job is live is full",
        allowed="202: none of them takes a place",
        answers=(*{answer.status: answer for answer in refused}.values(), sent.answer),
    )


async def _side_by_side(ctx: Context, bound: int, refused: Sequence[Invalid]) -> None:
    """Invalid requests in one burst with a good one, which finds no job beside it."""
    bodies = [kind.body for kind in refused if _is_plain(kind)]
    if not bodies or bound > _MOST_OF_A_KIND:
        return
    for number in range(ctx.times(_BESIDE, 4 * _BESIDE, least=1)):
        some = (bodies[number:] + bodies) * (1 + (bound + 4) // len(bodies))
        burst = [*some[: bound + 4], ctx.session.compose("quick")[0]]
        sent = await ctx.session.burst("quick", len(burst), bodies=burst, padding=60_000)
        if len(sent) < len(burst):
            return  # a connection failed, and they are not in step
        *others, good = sent
        await ctx.session.settle()
        if good.refused and not any(one.job is not None for one in others):
            _accuse(ctx, good, [one.answer for one in others], "beside")
            return


def _is_plain(kind: Invalid) -> bool:
    """Whether its body alone is wrong, and can be padded before its last brace."""
    own = kind.headers or kind.token is not DEFAULT
    return not own and kind.body.endswith(b"}") and len(kind.body) < 100_000
