"""The answers that the server gives, as values to be returned.

Refusals are returned and never raised: a raised one would be an error in the log, and the framework
would choose its format by the client's `Accept`. Every body is strict JSON, every refusal has an
`error` for people, and refusals of a body name each fault by a pointer.
"""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, Final

from sanic.http import Stage
from sanic.response import HTTPResponse

from counterfoil_server.intake import Fault
from counterfoil_server.strict_json import dumps

__all__ = ["JSON_TYPE", "Reply", "answer", "no_content", "not_found", "refusal", "unauthorized"]

JSON_TYPE: Final = "application/json; charset=utf-8"

_BODILESS: Final = (204, 304)
_FIRST_LINES: Final[dict[int, str]] = {
    status: f"HTTP/1.1 {int(status)} {status.phrase}\r\ncache-control: no-store\r\n"
    for status in HTTPStatus
}


class Reply(HTTPResponse):
    """An answer that is complete when it is made, and goes out in one piece.

    The framework's general way of sending (streams, chunks, cookies, headers that a handler took
    from a client) costs more than all that our handlers do. What is in `headers` is ours, and safe.
    """

    __slots__ = ()

    def __init__(
        self, body: bytes, status: int, headers: dict[str, str] | None, content_type: str
    ) -> None:
        self.asgi = False
        self.body = body
        self.content_type = content_type
        self.headers: Any = {} if headers is None else headers.copy()
        self.status = status
        self.stream = None
        self._cookies = None

    async def send(self, data: Any = None, end_stream: bool | None = None) -> None:  # noqa: ARG002
        """Write head and body; what was sent is not sent again."""
        stream: Any = self.stream
        if stream.response_func is None:
            return
        stream.response_func = None
        stream.expecting_continue = False
        await stream._send(self._rendered(stream))  # noqa: SLF001 (as the framework's own)
        stream.stage = Stage.IDLE

    def _rendered(self, stream: Any) -> bytes:
        """The bytes that go out."""
        body = self.body or b""
        lines = [f"{name}: {value}\r\n" for name, value in self.headers.items()]
        if self.status not in _BODILESS:
            lines.append(f"content-type: {self.content_type}\r\ncontent-length: {len(body)}\r\n")
        lines.append(_KEPT if stream.keep_alive else _CLOSED)
        head = (_FIRST_LINES[self.status] + "".join(lines)).encode("ascii")
        return head if stream.head_only else head + body


_KEPT: Final = "connection: keep-alive\r\n\r\n"
_CLOSED: Final = "connection: close\r\n\r\n"


def answer(
    status: int,
    body: bytes,
    headers: dict[str, str] | None = None,
    content_type: str = JSON_TYPE,
) -> HTTPResponse:
    """An answer whose body is encoded already."""
    return Reply(body, status, headers, content_type)


def refusal(
    status: int,
    error: str,
    faults: Sequence[Fault] = (),
    headers: dict[str, str] | None = None,
) -> HTTPResponse:
    """A refusal; `faults` are what is wrong with the body."""
    body: dict[str, object] = {"error": error}
    if faults:
        body["errors"] = [fault._asdict() for fault in faults]
    return answer(status, dumps(body), headers)


def not_found() -> HTTPResponse:
    """There is nothing under this path (H5)."""
    return refusal(404, "no such path")


def unauthorized() -> HTTPResponse:
    """The token is missing or wrong; nothing was looked at and nothing done (K1)."""
    return refusal(401, "a bearer token is required", headers={"www-authenticate": "Bearer"})


def no_content(headers: dict[str, str]) -> HTTPResponse:
    """204."""
    return Reply(b"", 204, headers, JSON_TYPE)
