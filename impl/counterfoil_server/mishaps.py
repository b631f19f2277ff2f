"""What the framework raises, turned into answers like all others.

A path that is not routed, a head that cannot be parsed, a connection that is too slow: the
framework raises for these before any handler of ours runs. Nothing of the request is quoted back,
and nothing of the server's inside is shown (E5).
"""

import asyncio
import logging
from typing import Final

from sanic import Request
from sanic.exceptions import MethodNotAllowed, NotFound, PayloadTooLarge, SanicException
from sanic.handlers import ErrorHandler
from sanic.response import HTTPResponse

from counterfoil_server import answers, bodies
from counterfoil_server.doors import Doorkeeper

__all__ = ["Mishaps"]

_log = logging.getLogger(__name__)

_REFUSED: Final = "the request is refused"
_TEXTS: Final = {
    400: "the request cannot be parsed",
    408: "the request did not arrive in time",
    413: "the body is too large",
    414: "the path is too long",
    417: "only `Expect: 100-continue` is understood",
}


class Mishaps(ErrorHandler):
    """Answers every exception that reaches the framework."""

    def __init__(self, doorkeeper: Doorkeeper) -> None:
        super().__init__()
        self._doorkeeper = doorkeeper

    def default(self, request: Request, exception: BaseException) -> HTTPResponse:
        """The answer; only what nobody foresaw is logged as an error."""
        response = self._answer(request, exception)
        if not isinstance(exception, asyncio.CancelledError):
            self._doorkeeper.count_unrouted(response.status)
        self._doorkeeper.stamp(request, response)
        bodies.leave_unread(request)
        return response

    def _answer(self, request: Request, exception: BaseException) -> HTTPResponse:
        if isinstance(exception, MethodNotAllowed):
            return self._strange_method(request)
        if isinstance(exception, NotFound):
            known = self._doorkeeper.admits(request)
            return answers.not_found() if known else answers.unauthorized()
        if isinstance(exception, PayloadTooLarge) and request.stream is not None:
            return answers.refusal(431, "the head of the request is too large")
        if isinstance(exception, asyncio.CancelledError):
            return answers.refusal(408, "the client went away")  # nobody reads it
        if isinstance(exception, SanicException) and exception.status_code < 500:
            return answers.refusal(
                exception.status_code, _TEXTS.get(exception.status_code, _REFUSED)
            )
        _log.error("an error that nobody foresaw", exc_info=exception)
        return answers.refusal(500, "internal error")

    def _strange_method(self, request: Request) -> HTTPResponse:
        """A method that the framework does not know, on a path that it does."""
        route, _, words = request.app.router.get(request.path, "GET", None)
        resource = self._doorkeeper.resources[route.name]
        return self._doorkeeper.other_method(resource, request, words)
