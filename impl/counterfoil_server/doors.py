"""What stands before every handler: the key, the path, the method, and what every answer carries.

A path is one `Resource` with a table of methods. Its door asks, in the order that the contract
fixes (H12): does the request bear the token, is there such a route here and now, is the method one
of its own. Only then does the handler look at the body. The framework routes paths and no methods.
"""

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from sanic import Request
from sanic.response import HTTPResponse

from counterfoil_server import answers, bodies
from counterfoil_server.keys import Access, Keyring
from counterfoil_server.metrics import Metrics
from counterfoil_server.origins import request_tag

__all__ = ["Doorkeeper", "Handler", "Resource"]

Handler: TypeAlias = Callable[..., Awaitable[HTTPResponse]]


@dataclass(frozen=True, slots=True)
class Resource:
    """A path and what can be done there.

    `exists` tells, for the path's variables, whether there is anything under it at all: a wrong
    method on nothing is a 404.
    """

    path: str
    methods: Mapping[str, Handler]
    access: Access = Access.CLIENT
    enabled: bool = True
    exists: Callable[..., bool] = lambda **_: True

    @property
    def allow(self) -> dict[str, str]:
        """The `Allow` header."""
        methods = [*self.methods, "OPTIONS"]
        return {"allow": ", ".join(["HEAD", *methods] if "GET" in methods else methods)}


class Doorkeeper:
    """Makes the door of a resource."""

    def __init__(self, keyring: Keyring, metrics: Metrics) -> None:
        self._keyring = keyring
        self._metrics = metrics
        self.count_unrouted = metrics.responses("(none)")
        self.resources: dict[str, Resource] = {}

    def door(self, resource: Resource) -> Callable[..., Coroutine[Any, Any, HTTPResponse | None]]:
        """The handler that the framework calls for every method of the resource's path."""
        handlers = dict(resource.methods)
        if "GET" in handlers:
            handlers["HEAD"] = handlers["GET"]
        count = self._metrics.responses(resource.path)

        async def enter(request: Request, **words: str) -> HTTPResponse | None:
            handler = handlers.get(request.method)
            if handler is None:
                response = self.other_method(resource, request, words)
            else:
                refused = self._refuse_entry(resource, request)
                response = refused or await handler(request, **words)
            count(response.status)
            self.stamp(request, response)
            return response if response.status < 400 else await _refused(request, response)

        return enter

    def admits(self, request: Request) -> bool:
        """Whether the request may learn that a path does not exist (K1)."""
        return self._keyring.admits(request, Access.CLIENT)

    def stamp(self, request: Request, response: HTTPResponse) -> None:
        """What every answer carries, besides `no-store` (H9)."""
        response.headers["x-request-id"] = request_tag(request)

    def other_method(
        self, resource: Resource, request: Request, words: Mapping[str, str]
    ) -> HTTPResponse:
        """The answer to a method that the resource does not have (H5)."""
        refused = self._refuse_entry(resource, request)
        if refused is not None:
            return refused
        if request.method == "OPTIONS":
            return answers.no_content(resource.allow)
        if not resource.exists(**words):
            return answers.not_found()
        return answers.refusal(405, "the method is not allowed here", headers=resource.allow)

    def _refuse_entry(self, resource: Resource, request: Request) -> HTTPResponse | None:
        if not self._keyring.admits(request, resource.access):
            return answers.unauthorized()
        return None if resource.enabled else answers.not_found()


async def _refused(request: Request, response: HTTPResponse) -> HTTPResponse | None:
    """Send a refusal whose body may not have been read (E3, E8)."""
    if isinstance(response, bodies.TooLarge):
        await bodies.send_and_linger(request, response)
        return None
    bodies.leave_unread(request)
    return response
