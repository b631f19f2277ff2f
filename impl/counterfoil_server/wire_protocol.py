"""The framework's connection, with what it lacks.

That is an end to slow heads, a bound on connections, an answer to a target that cannot be parsed.

The framework restarts its clock with every byte that arrives, so a head sent one byte a minute
would be waited for without end. Here the clock of a head starts with its first byte.
"""

from typing import Any

from sanic.http import Http, Stage
from sanic.server.protocols.http_protocol import HttpProtocol

__all__ = ["BoundedProtocol"]


class ForgivingHttp(Http):
    """The framework's HTTP/1.1, with an answer for targets that it cannot parse."""

    __slots__ = ()

    async def http1(self) -> None:
        """Serve the connection; whichever way it ends, request, answer and this let go."""
        try:
            await super().http1()  # type: ignore[no-untyped-call]
        finally:
            for part in (self.request, self.response):
                if part is not None:
                    part.stream = None

    def create_empty_request(self) -> None:
        """Make the stand-in for a request that could not be made, without what broke it."""
        self.url = None
        super().create_empty_request()


class BoundedProtocol(HttpProtocol):
    """One connection; `app.config.MAX_CONNECTIONS` of them are held at once."""

    HTTP_CLASS = ForgivingHttp

    def connection_made(self, transport: Any) -> None:
        if len(self.connections) >= self.app.config.MAX_CONNECTIONS:
            transport.abort()
            return
        super().connection_made(transport)  # type: ignore[no-untyped-call]

    def connection_lost(self, exc: Exception | None) -> None:
        if self.conn_info is not None:
            super().connection_lost(exc)  # type: ignore[no-untyped-call]

    def data_received(self, data: bytes) -> None:
        if self.conn_info is None:
            return
        began = self._time
        http = getattr(self, "_http", None)
        in_head = http is not None and http.stage is Stage.REQUEST
        super().data_received(data)
        if in_head:
            self._time = began
