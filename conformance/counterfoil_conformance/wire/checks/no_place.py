"""A7: requests that are refused for their form take no place in the queue.

Asked before any check, when only a few jobs have come and gone: more invalid requests of every kind
than there are places, between two submits. If the first is admitted and the second refused, nothing
but an invalid request can have taken the places.
"""

import asyncio
import json
from collections.abc import Iterator

from counterfoil_conformance.wire.answer import Answer
from counterfoil_conformance.wire.registry import ALL, Context, check
from counterfoil_conformance.wire.session import Session

_LARGEST_SENT = 1 << 21


@check("A7", needs=("bodies.quick",), places=ALL, order=6, limit_s=100)
async def invalid_requests_take_no_place(ctx: Context) -> None:
    """More invalid requests of every kind than there are places, between two submits."""
    session, bound = ctx.session, ctx.session.max_queue
    if bound is None or bound < 1 or (await session.submit("quick")).job is None:
        return
    await session.settle()
    answers = await _invalid(session, min(bound, 20) + 1)
    sent = await session.submit("failing" if session.target.has("bodies.failing") else "quick")
    if any(answer.status == 202 for answer in answers):
        return  # an admitted one is another fault
    refused = [answer for answer in answers if 400 <= answer.status < 500]
    if sent.job is not None and refused:
        session.ok("A7")
    elif sent.refused and refused:
        session.find(
            "A7",
            f"after {len(refused)} requests that were refused for their form an idle queue is full",
            allowed="202: none of them takes a place",
            answers=(*_one_of_each(refused), sent.answer),
        )
    await session.settle()


async def _invalid(session: Session, count: int) -> list[Answer]:
    """`count` requests of each kind, all at once."""
    send, good = session.send, session.compose("quick")[0]
    posts = [
        send("POST", "/jobs", body=body, headers=headers)
        for body, headers in _bodies(good)
        for _ in range(count)
    ]
    if session.target.token:
        posts += [send("POST", "/jobs", body=good, token=None) for _ in range(count)]
    answers = list(await asyncio.gather(*posts))
    limit = session.target.limits.max_body
    if limit is not None and limit <= _LARGEST_SENT:
        large = good[:-1] + b" " * limit + b"}"
        # One after another: each may cost its connection.
        answers += [await send("POST", "/jobs", body=large, may_fail=True) for _ in range(count)]
    return answers


def _bodies(good: bytes) -> Iterator[tuple[bytes, dict[str, str]]]:
    content = json.loads(good)
    yield b"{not json", {}
    yield b"[]", {}
    yield json.dumps({**content, "images": []}).encode(), {}
    yield json.dumps({**content, "images": 7}).encode(), {}
    yield b'{"req_id": "no images"}', {}
    yield b"images", {"Content-Type": "text/plain"}


def _one_of_each(answers: list[Answer]) -> list[Answer]:
    return list({answer.status: answer for answer in answers}.values())
