"""The Sanic application: routes and connection settings, and nothing that decides.

What the framework does by itself and must not: extend itself with whatever is installed, cut a wait
of 300 s after 60 s, read a body before the token is checked, choose error formats. Each of these is
switched off here, next to a word on why.
"""

import itertools
from collections.abc import Iterable
from typing import Any, Final, TypeAlias

from sanic import Sanic
from sanic.application.state import ApplicationServerInfo
from sanic.config import Config
from sanic.constants import HTTP_METHODS
from sanic.http.constants import HTTP
from sanic.router import Router

from counterfoil_server import rules
from counterfoil_server.config import Settings
from counterfoil_server.core import Core
from counterfoil_server.doors import Doorkeeper, Resource
from counterfoil_server.job_routes import JobRoutes
from counterfoil_server.keys import Keyring
from counterfoil_server.mishaps import Mishaps
from counterfoil_server.origins import AskedRequest
from counterfoil_server.runner_routes import RunnerRoutes
from counterfoil_server.system_routes import SystemRoutes

__all__ = ["App", "build_app"]

App: TypeAlias = "Sanic[Config, Any]"

_NUMBERS: Final = itertools.count(1)
_MARGIN_S: Final = 60
_SHORT_PATH: Final = 256


class FrugalRouter(Router):
    """The framework's router, which remembers a thousand paths, whatever their length.

    Anyone can send it megabytes of them to keep. Here it remembers short ones, and no host names,
    of which no route of ours depends.
    """

    def get(self, path: str, method: str, host: str | None) -> Any:  # type: ignore[override]  # noqa: ARG002
        """The route for a request."""
        find = super().get if len(path) <= _SHORT_PATH else self._get
        return find(path, method, None)


def build_app(core: Core) -> App:
    """An application over `core`; the caller opens and closes the core."""
    settings = core.settings
    doorkeeper = Doorkeeper(Keyring(settings.token, settings.runner_token), core.metrics)
    app: App = Sanic(
        f"counterfoil-{next(_NUMBERS)}",
        configure_logging=False,
        env_prefix="COUNTERFOIL_SANIC_",
        strict_slashes=True,
        error_handler=Mishaps(doorkeeper),
        request_class=AskedRequest,
        router=FrugalRouter(),
    )
    _configure(app.config, settings)
    # Without a word on its protocol the framework would add an empty `alt-svc` to every answer.
    app.state.server_info.append(ApplicationServerInfo({"version": HTTP.VERSION_1, "port": 0}))
    for number, resource in enumerate(_resources(core)):
        name = f"resource_{number}"
        doorkeeper.resources[f"{app.name}.{name}"] = resource
        app.add_route(
            doorkeeper.door(resource),
            resource.path,
            methods=sorted(HTTP_METHODS),
            name=name,
            stream=True,  # the handler reads the body, after it has checked the key
        )
    return app


def _resources(core: Core) -> Iterable[Resource]:
    yield from JobRoutes(core).resources()
    yield from RunnerRoutes(core).resources()
    yield from SystemRoutes(core).resources()


def _configure(config: Config, settings: Settings) -> None:
    longest_s = max(rules.LONGEST_WAIT_MS, settings.async_timeout) / 1000 + _MARGIN_S
    config.update(
        {
            "AUTO_EXTEND": False,
            "ACCESS_LOG": False,
            "MOTD": False,
            # It rewrites the framework's own classes, which can be done once per process.
            "TOUCHUP": not getattr(Sanic, "__touched__", False),
            # Blocking answers have budgets of their own; without a job budget /infer has none.
            "RESPONSE_TIMEOUT": longest_s if settings.async_timeout else 10**9,
            "REQUEST_TIMEOUT": settings.head_timeout / 1000,
            "KEEP_ALIVE_TIMEOUT": settings.keep_alive / 1000,
            "REQUEST_MAX_HEADER_SIZE": 16384,
            # Ours is `max_body`. The framework's bounds what it throws away after a refusal.
            "REQUEST_MAX_SIZE": 2 * settings.max_body + 64 * 2**20,
            "MAX_CONNECTIONS": settings.max_connections,
        }
    )
