"""The answers that the server gives, as values to be returned.

Refusals are returned and never raised: a raised one would be an error in the log, and the framework
would choose its format by the client's `Accept`. Every body is strict JSON, every refusal has an
`error` for people, and refusals of a body name each fault by a pointer.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from sanic.response import HTTPResponse

from counterfoil_server.intake import Fault
from counterfoil_server.strict_json import dumps

__all__ = ["JSON_TYPE", "Reply", "answer", "no_content", "not_found", "refusal", "unauthorized"]

JSON_TYPE: Final = "application/json; charset=utf-8"

_BODILESS: Final = (204, 304)


class Reply(HTTPResponse):
    """An answer whose headers are all ours, and so need not be cleaned of what a client sent."""

    @property
    def processed_headers(self) -> Iterator[tuple[bytes, bytes]]:
        """The headers as they go out."""
        if self.status not in _BODILESS:
            self.headers.setdefault("content-type", self.content_type)
        return ((name.encode(), str(value).encode()) for name, value in self.headers.items())


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
    return Reply(None, 204, headers)
