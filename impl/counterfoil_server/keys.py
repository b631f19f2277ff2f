"""Who may ask what: bearer tokens, compared in constant time and never logged (K1, K2)."""

import hmac
from enum import Enum

from sanic import Request

__all__ = ["Access", "Keyring"]


class Access(Enum):
    """Whom a route is for."""

    PUBLIC = "public"
    CLIENT = "client"
    RUNNER = "runner"


class Keyring:
    """The configured tokens; an empty one opens the clients' routes, and closes the runners'."""

    def __init__(self, client_token: str, runner_token: str) -> None:
        self._client = client_token.encode()
        self._runner = runner_token.encode()

    def admits(self, request: Request, access: Access) -> bool:
        """Whether the request bears what the route asks for."""
        if access is Access.PUBLIC:
            return True
        token = self._client if access is Access.CLIENT else self._runner
        if not token:
            return access is Access.CLIENT
        headers = request.headers.getall("authorization", ())
        return len(headers) == 1 and hmac.compare_digest(_bearer(headers[0]), token)


def _bearer(header: str) -> bytes:
    """The token in the header, which is none (and empty) if the scheme is another."""
    scheme, _, token = header.partition(" ")
    if scheme.lower() != "bearer":
        return b""
    return token.strip(" \t").encode("utf-8", "surrogateescape")
