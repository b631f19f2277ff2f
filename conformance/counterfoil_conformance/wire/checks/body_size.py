"""Bodies over the limit (E3): 413, and the client must be able to read it.

A client that is still sending when it is refused can lose the answer: a server that closes with
unread bytes in its hands resets the connection, and takes its own 413 back. So bodies are sent in
three ways (whole, in pieces with a pause, chunked without a length), and the answer must arrive in
each. A server may answer early or after it has read everything; both are right.

The control is a body well under the limit that is wrong in another way: it is not 413.
"""

import json
from collections.abc import Iterator
from typing import Final

from counterfoil_conformance.wire.answer import Answer
from counterfoil_conformance.wire.client import Connection
from counterfoil_conformance.wire.probing import (
    after_refusal,
    patience_s,
    post_bad,
    quick_body,
    routes,
)
from counterfoil_conformance.wire.registry import DISABLED, Context, check
from counterfoil_conformance.wire.stubborn import Stubborn, chunked, open_stubborn, send_in_pieces

__all__: tuple[str, ...] = ()

# Larger bodies than this are announced, but not sent.
MOST_SENT: Final = 16 * 1024 * 1024
PIECE: Final = 32 * 1024
SLAM_US: Final = 100_000


def _padded(ctx: Context, size: int) -> bytes:
    """A good request of `size` bytes: JSON does not mind the white space."""
    body = json.dumps(quick_body(ctx)).encode()
    return body[:-1] + b" " * (size - len(body)) + body[-1:]


@check("E3 E5 E8", needs=("limits.max_body",), order=20, limit_s=120.0, even=(DISABLED,))
async def a_body_over_the_limit_is_413(ctx: Context) -> None:
    """413, whole or in pieces, with or without a length, and readable while still sending."""
    limit = ctx.target.limits.max_body
    assert limit is not None
    for route in await routes(ctx):
        await _control(ctx, route, limit)
        if limit <= MOST_SENT:
            await _whole(ctx, route, limit + 1024)
            await _in_pieces(ctx, route, limit + 1024, "Content-Length")
            await _in_pieces(ctx, route, limit + 1024, "chunked")
            await _in_pieces(ctx, route, 2 * limit + PIECE, "Content-Length")
            await _in_pieces(ctx, route, 2 * limit + PIECE, "chunked")
            await _expecting(ctx, route, limit + 1024)


async def _control(ctx: Context, route: str, limit: int) -> None:
    body = b" " * (min(limit, MOST_SENT) // 2) + b"nope"
    answer = await post_bad(ctx, route, body)
    if answer is not None and answer.ok and answer.status == 413:
        said = f"POST {route}: 413 for {len(body)} bytes, under the limit of {limit}"
        ctx.fail("E3", said, allowed="no 413 under the limit", answers=(answer,))
    if limit <= MOST_SENT:
        answer = await post_bad(ctx, route, b" " * (limit - 4) + b"nope")
        if answer is not None and answer.ok and answer.status == 413:
            said = f"POST {route}: 413 for a body of just the limit of {limit} bytes"
            ctx.warn("E3", said, allowed="413 over the limit", answers=(answer,))


def _judge(
    ctx: Context, route: str, how: str, answer: Answer, conn: Connection | None = None
) -> bool:
    """Whether it was the 413; an answer that got lost is E3's as well."""
    if answer.ok and answer.status == 413:
        if isinstance(conn, Stubborn) and _slammed(conn, answer):
            said = f"POST {route}, {how}: right after the 413 the connection was reset under a "
            said += "client that was still sending; over a network the answer would be lost"
            ctx.warn("E3", said, allowed="413, and a moment to read it", answers=(answer,))
        ctx.ok("E3")
        return True
    if answer.ok and answer.status == 429:
        return False  # H12: right as well, while the queue is full
    came = answer.status if answer.ok else f"no answer ({answer.trouble})"
    said = f"POST {route} with a body over the limit, {how}: {came}"
    ctx.fail("E3", said, allowed="413, readable", answers=(answer,))
    return False


def _slammed(conn: Stubborn, answer: Answer) -> bool:
    """Whether the peer took no more bytes almost at once after its answer."""
    return conn.refused_us is not None and conn.refused_us - answer.return_us < SLAM_US


async def _whole(ctx: Context, route: str, size: int) -> None:
    """All at once; then the next request on the same connection (E8)."""
    conn = await open_stubborn(ctx.session.client)
    if conn is None:
        return
    try:
        body = _padded(ctx, size)
        headers = {"Content-Type": "application/json", "Content-Length": str(len(body))}
        answer = await _send(ctx, conn, route, headers, iter((body,)), body=body)
        if _judge(ctx, route, "sent whole", answer):
            await after_refusal(ctx, conn, "a body over the limit", answer)
    finally:
        conn.close()


async def _in_pieces(ctx: Context, route: str, size: int, framing: str) -> None:
    """Piece by piece, with a pause after the limit is passed; all of it in the end."""
    conn = await open_stubborn(ctx.session.client)
    if conn is None:
        return
    try:
        body = _padded(ctx, size)
        headers = {"Content-Type": "application/json"}
        if framing == "chunked":
            headers["Transfer-Encoding"] = "chunked"
            pieces: Iterator[bytes] = iter(chunked(body, PIECE))
        else:
            headers["Content-Length"] = str(len(body))
            pieces = (body[i : i + PIECE] for i in range(0, len(body), PIECE))
        answer = await _send(ctx, conn, route, headers, pieces, body=body)
        if _judge(ctx, route, f"in pieces ({framing})", answer, conn):
            await after_refusal(ctx, conn, f"a body over the limit in pieces ({framing})", answer)
    finally:
        conn.close()


async def _send(
    ctx: Context,
    conn: Connection,
    route: str,
    headers: dict[str, str],
    pieces: Iterator[bytes],
    *,
    body: bytes,
) -> Answer:
    request = ctx.session.client.request(
        "POST", ctx.target.prefix + route, body=body, headers=headers
    )
    answer, _ = await send_in_pieces(
        conn,
        request,
        pieces,
        pause_s=0.002,
        timeout_s=patience_s(ctx),
    )
    ctx.session.look_at(answer, may_fail=True, may_5xx=route == "/infer")
    if route == "/jobs" and answer.status == 202:
        ctx.session.submitted(answer, "other", body)
    return answer


async def _expecting(ctx: Context, route: str, size: int) -> None:
    """A client that asks first (`Expect: 100-continue`) is refused, before or after it sends."""
    conn = await open_stubborn(ctx.session.client)
    if conn is None:
        return
    try:
        body = _padded(ctx, size)
        headers = {
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            "Expect": "100-continue",
        }

        def pieces() -> Iterator[bytes]:
            yield body

        request = ctx.session.client.request(
            "POST", ctx.target.prefix + route, body=body, headers=headers
        )
        answer, _ = await send_in_pieces(
            conn,
            request,
            pieces(),
            pause_s=0.3,
            timeout_s=patience_s(ctx),
            stop_early=True,
        )
        ctx.session.look_at(answer, may_fail=True, may_5xx=route == "/infer")
        _judge(ctx, route, "asking with Expect: 100-continue", answer)
    finally:
        conn.close()


@check("E3 E8", needs=("limits.max_body",), limit_s=120.0)
async def a_client_that_is_still_sending_can_read_the_413(ctx: Context) -> None:
    """A large body is announced and comes slowly: the 413 arrives before or after its end."""
    limit = ctx.target.limits.max_body
    assert limit is not None
    if limit > MOST_SENT:
        return
    for framing in ("Content-Length", "chunked"):
        conn = await open_stubborn(ctx.session.client)
        if conn is None:
            return
        try:
            await _slowly(ctx, conn, limit + 4 * PIECE, framing)
        finally:
            conn.close()


async def _slowly(ctx: Context, conn: Connection, size: int, framing: str) -> None:
    body = _padded(ctx, size)
    headers = {"Content-Type": "application/json"}
    if framing == "chunked":
        headers["Transfer-Encoding"] = "chunked"
        pieces = list(chunked(body, max(PIECE, size // 10)))
    else:
        headers["Content-Length"] = str(len(body))
        step = max(PIECE, size // 10)
        pieces = [body[i : i + step] for i in range(0, len(body), step)]
    path = f"{ctx.target.prefix}/jobs"
    request = ctx.session.client.request("POST", path, body=body, headers=headers)
    answer, _ = await send_in_pieces(
        conn,
        request,
        pieces,
        pause_s=0.08,
        timeout_s=patience_s(ctx),
    )
    ctx.session.look_at(answer, may_fail=True)
    if answer.status == 202:
        ctx.session.submitted(answer, "other", body)
    _judge(ctx, "/jobs", f"slowly ({framing})", answer, conn)


@check("E3", needs=("limits.max_body",))
async def an_announced_body_over_the_limit_is_refused(ctx: Context) -> None:
    """A length far over the limit is refused before the client has sent it all, or with it."""
    limit = ctx.target.limits.max_body
    assert limit is not None
    if limit <= MOST_SENT:
        return  # bodies of that size are sent, which shows more
    headers = {"Content-Type": "application/json", "Content-Length": str(4 * limit)}
    request = ctx.session.client.request("POST", f"{ctx.target.prefix}/jobs", headers=headers)
    conn = await open_stubborn(ctx.session.client)
    if conn is None:
        return
    try:
        piece = b" " * PIECE
        answer, _ = await send_in_pieces(
            conn, request, (piece for _ in range(40)), pause_s=0.05, timeout_s=10.0
        )
        if answer.ok:
            _judge(ctx, "/jobs", "announced", answer)
        else:
            ctx.untestable("E3", f"limits.max_body = {limit} is more than the kit sends")
    finally:
        conn.close()
