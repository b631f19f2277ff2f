"""Where a request comes from: the ids that tie a client's log, ours and a runner's together.

A client may bring an `X-Request-ID` and a W3C `traceparent`. Both are taken over only if they are
safe to repeat: they end up in headers and in logs (E7). Without a request id, we make one.
"""

import re
import secrets
from itertools import count
from typing import Any, Final, NamedTuple

from sanic import Request
from sanic.compat import Header
from sanic.exceptions import BadRequest

from counterfoil_server.answers import Reply

__all__ = ["NOWHERE", "AskedRequest", "Origin", "origin_of", "request_tag"]

_SAFE_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,128}")
_TRACE: Final = re.compile(r"00-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
_NAMES: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_PROCESS: Final = secrets.token_hex(6)
_NUMBERS: Final = count(1)


class Origin(NamedTuple):
    """What a job remembers of the request that submitted it."""

    request_id: str = ""
    traceparent: str = ""

    @property
    def fields(self) -> dict[str, str]:
        """For a line of the log."""
        fields = {"request_id": self.request_id}
        if self.traceparent:
            fields["trace_id"] = self.traceparent.split("-")[1]
        return fields


NOWHERE: Final = Origin()


class AskedRequest(Request):
    """The framework's request, with the id that its answer will carry.

    The framework takes `Content-Length : 5` for a header that it does not know, and the body for
    the next request. A proxy before us may read it otherwise, and could then be made to give one
    client another's answer; so a name that is no token is refused (E8).
    """

    __slots__ = ("tag",)
    tag: str

    def __init__(self, url_bytes: bytes, headers: Header, *words: Any, **options: Any) -> None:
        if headers and not _NAMES.fullmatch("".join(headers)):
            raise BadRequest("a header's name is not a token")
        super().__init__(url_bytes, headers, *words, **options)

    async def respond(self, response: Any = None, **options: Any) -> Any:
        """Take an answer for sending: one of ours needs no more than its stream.

        The framework's way looks for middleware and decides what kind of answer it is, which costs
        as much as the ledger's part of an admission.
        """
        if isinstance(response, Reply) and self.stream is not None:
            self.responded = True
            return self.stream.respond(response)
        return await super().respond(response, **options)


def request_tag(request: Request) -> str:
    """The client's `X-Request-ID` if it is safe to repeat, or one of ours; the same each time."""
    tag: str = getattr(request, "tag", "")
    if not tag:
        given = request.headers.getone("x-request-id", None)
        safe = given is not None and _SAFE_ID.fullmatch(given) is not None
        tag = str(given) if safe else f"{_PROCESS}-{next(_NUMBERS):x}"
        if isinstance(request, AskedRequest):
            request.tag = tag
    return tag


def origin_of(request: Request) -> Origin:
    """The origin of the job that this request submits."""
    trace = request.headers.getone("traceparent", "")
    return Origin(request_tag(request), trace if trace and _TRACE.fullmatch(trace) else "")
