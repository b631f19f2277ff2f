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
        self._tokens = {
            Access.CLIENT: client_token.encode(),
            Access.RUNNER: runner_token.encode(),
        }
        self._open = {Access.PUBLIC} if client_token else {Access.PUBLIC, Access.CLIENT}

    def admits(self, request: Request, access: Access) -> bool:
        """Whether the request bears what the route asks for."""
        if access in self._open:
            return True
        given = _bearer(request)
        token = self._tokens[access]
        return given is not None and bool(token) and hmac.compare_digest(given, token)


def _bearer(request: Request) -> bytes | None:
    """The one token that the request bears; the scheme's name has no case."""
    headers = request.headers.getall("authorization", [])
    if len(headers) != 1:
        return None
    scheme, _, token = str(headers[0]).strip(" \t").partition(" ")
    if scheme.lower() != "bearer":
        return None
    return token.strip(" \t").encode("utf-8", "surrogateescape")
