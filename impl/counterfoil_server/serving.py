"""From a configuration to a process that listens, and from SIGTERM to exit code 0.

We bind the socket ourselves (the framework would read port 0 as 8000) and run the framework's
server on our own loop, so that the order of stopping is ours (X4):

1. `/ready` says 503 and no job is admitted; the listener still accepts, so that this can be seen;
2. jobs end within the grace period, what is left then fails, and their waiters are answered;
3. the listener closes, then the connections, once nothing is being answered.

SIGINT does the same. A second signal cuts the grace short. SIGHUP is ignored: the configuration is
read once, and a new one takes a restart.
"""

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from sanic import Sanic

from counterfoil_server.app import App, build_app
from counterfoil_server.config import ConfigError, Settings
from counterfoil_server.core import Core
from counterfoil_server.wire_protocol import BoundedProtocol

__all__ = ["bind", "new_loop", "running", "serve", "url_of"]

_log = logging.getLogger(__name__)
_BACKLOG: Final = 4096
_LAST_WORDS_S: Final = 5.0


def new_loop() -> asyncio.AbstractEventLoop:
    """The loop that serves: a fast one where there is one."""
    try:
        import uvloop  # noqa: PLC0415
    except ModuleNotFoundError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def bind(settings: Settings) -> socket.socket:
    """The listening socket; OSError if the address cannot be had."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((settings.host, settings.port))
        listener.listen(_BACKLOG)
    except OSError:
        listener.close()
        raise
    listener.setblocking(False)
    return listener


def url_of(listener: socket.socket) -> str:
    """Where the socket listens."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@asynccontextmanager
async def running(
    core: Core, listener: socket.socket, build: Callable[[Core], App] = build_app
) -> AsyncIterator[Any]:
    """The server, answering on this loop for as long as the context is open."""
    app = build(core)
    server: Any = await app.create_server(
        sock=listener,
        protocol=BoundedProtocol,
        backlog=_BACKLOG,
        access_log=False,
        asyncio_server_kwargs={"start_serving": False},
    )
    await server.startup()
    core.open(asyncio.get_running_loop())
    await server.start_serving()
    try:
        yield server
    finally:
        await _close(server)
        core.close()
        Sanic.unregister_app(app)


async def serve(core: Core, listener: socket.socket) -> int:
    """Serve until a signal says stop; the exit code. ConfigError if the port cannot be told."""
    stop = _signals()
    async with running(core, listener):
        url = url_of(listener)
        if core.settings.port_file:
            _write_port(core.settings.port_file, listener.getsockname()[1])
        print(f"listening on {url}", flush=True)
        await stop.get()
        _log.info("stopping: no job is admitted any more")
        await _drain(core, stop)
    return 0


async def _drain(core: Core, stop: "asyncio.Queue[None]") -> None:
    """Drain within the grace, or until the second signal."""
    draining = asyncio.ensure_future(core.drain(core.settings.grace / 1000))
    hurry = asyncio.ensure_future(stop.get())
    await asyncio.wait([draining, hurry], return_when=asyncio.FIRST_COMPLETED)
    hurry.cancel()
    if not draining.done():
        draining.cancel()
        await core.drain(0)


def _signals() -> "asyncio.Queue[None]":
    loop = asyncio.get_running_loop()
    stop: asyncio.Queue[None] = asyncio.Queue()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.put_nowait, None)
    with contextlib.suppress(AttributeError):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    return stop


async def _close(server: Any) -> None:
    """Close the listener, let answers in flight go out, then close every connection."""
    if server.server is None:
        return
    server.server.close()
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _LAST_WORDS_S
    while server.connections and loop.time() < deadline:
        for connection in list(server.connections):
            connection.close_if_idle()
        await asyncio.sleep(0.01)
    for connection in list(server.connections):
        connection.abort()
    await asyncio.sleep(0)


def _write_port(file: str, port: int) -> None:
    """Written beside and moved, so that a reader sees all of it or nothing."""
    path = Path(file)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_text(f"{port}\n")
        beside.replace(path)
    except OSError as error:
        raise ConfigError(f"port_file = {file!r}: {error.strerror}") from None
