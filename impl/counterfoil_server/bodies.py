"""Reading a request's body: within a size, within a time, and refused in a way that can be read.

A body is read only after its sender has been admitted to the route (H12). When it is too large the
answer is sent first, and then what still comes is thrown away for a while: closing at once would
reset the connection under a client that is still sending, and it would never read the 413 (E3).
"""

import asyncio
import contextlib
from typing import Any, Final

from sanic import Request
from sanic.response import HTTPResponse

from counterfoil_server.answers import JSON_TYPE, Reply, refusal
from counterfoil_server.strict_json import dumps

__all__ = ["TooLarge", "body_at_hand", "is_json", "leave_unread", "read_body", "send_and_linger"]

_JSON: Final = "application/json"
_LINGER_S: Final = 3.0


class TooLarge(Reply):
    """The 413: to be sent with `send_and_linger`."""

    def __init__(self, max_bytes: int) -> None:
        message = f"the body is larger than {max_bytes} bytes"
        body = {"error": message, "errors": [{"pointer": "", "message": message}]}
        super().__init__(dumps(body), 413, None, JSON_TYPE)


def body_at_hand(request: Request, max_bytes: int) -> bytes | HTTPResponse | None:
    """The body, or its refusal, if neither has to be waited for: most of the time none has."""
    stream: Any = request.stream
    if not stream.request_body:
        return b""
    size = stream.request_bytes_left  # what `content-length` says, or 0
    if size > max_bytes:
        return TooLarge(max_bytes)
    if not 0 < size <= len(stream.recv_buffer):
        return None
    body = bytes(stream.recv_buffer[:size])
    del stream.recv_buffer[:size]
    stream.request_bytes_left = 0
    stream.request_body = None
    return body


async def read_body(request: Request, max_bytes: int, timeout_s: float) -> bytes | HTTPResponse:
    """The body, or its refusal."""
    body = body_at_hand(request, max_bytes)
    if body is not None:
        return body
    stream: Any = request.stream
    try:
        async with asyncio.timeout(timeout_s):
            return await _read(stream, max_bytes)
    except TimeoutError:
        stream.keep_alive = False
        stream.request_body = None
        return refusal(408, "the body did not arrive in time")


async def send_and_linger(request: Request, response: TooLarge) -> None:
    """Send the 413 and the end of our side, and throw away what comes until theirs, or for a while.

    How the body is framed no longer matters: nothing after it will be answered.
    """
    stream: Any = request.stream
    stream.keep_alive = False
    stream.request_body = None
    await request.respond(response)
    await response.send(end_stream=True)
    transport = stream.protocol.transport
    if transport.can_write_eof():
        transport.write_eof()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_LINGER_S):
            while not transport.is_closing():
                stream.recv_buffer.clear()
                await stream.protocol.receive_more()


def is_json(request: Request) -> bool:
    """Whether the body's media type is JSON, or not said (E3)."""
    kind = request.headers.getone("content-type", _JSON)
    return kind == _JSON or str(kind).partition(";")[0].strip().lower() in (_JSON, "")


def leave_unread(request: Request) -> None:
    """A refusal is sent before the body was read: who waits for `100 Continue` gets none (E8)."""
    stream: Any = request.stream
    if stream is not None and stream.request_body and stream.expecting_continue:
        stream.expecting_continue = False
        stream.keep_alive = False
        stream.request_body = None


async def _read(stream: Any, max_bytes: int) -> bytes | HTTPResponse:
    size, parts = 0, []
    while stream.request_body:
        part = await stream.read()
        if part:
            size += len(part)
            if size > max_bytes:
                return TooLarge(max_bytes)
            parts.append(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)
