"""The answers that the server gives, as values to be returned.

Refusals are returned and never raised: a raised one would be an error in the log, and the framework
would choose its format by the client's `Accept`. Every body is strict JSON, every refusal has an
`error` for people, and refusals of a body name each fault by a pointer.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from sanic.response import HTTPResponse

from counterfoil_server.intake import Fault
from counterfoil_server.strict_json import dumps

__all__ = ["JSON_TYPE", "answer", "no_content", "not_found", "refusal", "unauthorized"]

JSON_TYPE: Final = "application/json; charset=utf-8"


def answer(
    status: int,
    body: bytes,
    headers: Mapping[str, str] | None = None,
    content_type: str = JSON_TYPE,
) -> HTTPResponse:
    """An answer whose body is encoded already."""
    return HTTPResponse(body, status, dict(headers or {}), content_type)


def refusal(
    status: int,
    error: str,
    faults: Sequence[Fault] = (),
    headers: Mapping[str, str] | None = None,
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


def no_content(headers: Mapping[str, str]) -> HTTPResponse:
    """204."""
    return HTTPResponse(None, 204, dict(headers))
