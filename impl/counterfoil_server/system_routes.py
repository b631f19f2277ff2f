"""Routes about the server itself: is it alive, is it ready, what does it count, what can it do."""

from typing import Final

from sanic import Request
from sanic.response import HTTPResponse

from counterfoil_server.answers import answer
from counterfoil_server.core import Core
from counterfoil_server.doors import Resource
from counterfoil_server.keys import Access
from counterfoil_server.metrics import METRICS_TYPE
from counterfoil_server.openapi import describe
from counterfoil_server.status_page import PAGE_TYPE, render
from counterfoil_server.strict_json import dumps

__all__ = ["SystemRoutes"]

_FEW_JOBS: Final = 2000


class SystemRoutes:
    """The handlers, over one core."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._openapi = dumps(describe(core.settings))

    def resources(self) -> list[Resource]:
        """At the root, and under the prefix as well."""
        return [
            resource
            for prefix in dict.fromkeys(["", self._core.settings.prefix])
            for resource in (
                Resource(f"{prefix}/healthz", {"GET": self.healthz}, Access.PUBLIC),
                Resource(f"{prefix}/ready", {"GET": self.ready}, Access.PUBLIC),
                Resource(f"{prefix}/openapi.json", {"GET": self.openapi}, Access.PUBLIC),
                Resource(f"{prefix}/metrics", {"GET": self.metrics}),
                Resource(f"{prefix}/status", {"GET": self.status}),
            )
        ]

    async def healthz(self, request: Request) -> HTTPResponse:  # noqa: ARG002
        """200 while the process answers at all."""
        return answer(200, b'{"status":"ok"}')

    async def ready(self, request: Request) -> HTTPResponse:  # noqa: ARG002
        """503 before the workers run, and from the moment the server is told to stop (X4)."""
        if self._core.draining:
            return answer(503, b'{"status":"draining","error":"the server is stopping"}')
        if not self._core.ready:
            return answer(503, b'{"status":"starting","error":"the server is not ready yet"}')
        return answer(200, b'{"status":"ready"}')

    async def openapi(self, request: Request) -> HTTPResponse:  # noqa: ARG002
        """The description of this server, as it is configured."""
        return answer(200, self._openapi)

    async def metrics(self, request: Request) -> HTTPResponse:  # noqa: ARG002
        """Prometheus text, after a look at the invariants where that is quickly done."""
        if self._core.ledger.known() <= _FEW_JOBS:
            self._core.look()
        return answer(200, self._core.metrics.render(), content_type=METRICS_TYPE)

    async def status(self, request: Request) -> HTTPResponse:  # noqa: ARG002
        """A page for people."""
        page = render(self._core, self._core.look())
        headers = {"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'"}
        return answer(200, page, headers, PAGE_TYPE)
