"""The server on a thread of this process, on a real socket: for tests, and for seeded faults.

    with served(Settings(port=0, model="probe", async_enabled=True)) as server:
        server.url, server.core.ledger, ...

What is served is what ships: the same core, application, loop and socket, only the process is
shared.
"""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from counterfoil_server.app import App, build_app
from counterfoil_server.config import Settings
from counterfoil_server.core import Core
from counterfoil_server.models import Model, load_model
from counterfoil_server.serving import bind, new_loop, running, url_of

__all__ = ["Served", "served"]


@dataclass(frozen=True, slots=True)
class Served:
    """A server that answers under `url`."""

    url: str
    core: Core
    loop: asyncio.AbstractEventLoop


@contextmanager
def served(
    settings: Settings,
    *,
    model: Model | None = None,
    core: Callable[[Settings, Model], Core] = Core,
    build: Callable[[Core], App] = build_app,
) -> Iterator[Served]:
    """Start a server (use port 0), wait until it answers, and stop it at the end."""
    made = core(settings, model or load_model(settings.model, None, settings.max_pixels))
    listener = bind(settings)
    loop = new_loop()
    up, down = threading.Event(), asyncio.Event()
    mishap: list[BaseException] = []

    async def main() -> None:
        async with running(made, listener, build):
            up.set()
            await down.wait()

    def run() -> None:
        try:
            loop.run_until_complete(main())
        except BaseException as error:
            mishap.append(error)
        finally:
            up.set()
            loop.close()

    thread = threading.Thread(target=run, name="counterfoil-server", daemon=True)
    url = url_of(listener)
    thread.start()
    up.wait()
    try:
        if mishap:
            raise mishap[0]
        yield Served(url, made, loop)
    finally:
        if not mishap:
            loop.call_soon_threadsafe(down.set)
        thread.join(10)
