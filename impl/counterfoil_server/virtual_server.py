"""The whole server in this thread, on virtual time: for tests that need exact control.

    server = VirtualServer(Settings(async_enabled=True, runner="external", runner_token="r"))
    job = server.request("POST", "/jobs", {"images": ["..."]}).json["job_id"]
    waiting = server.begin("GET", f"/jobs/{job}/wait?timeout=300000")
    server.advance(299_999)

The loop runs only inside `request`, `advance` and `answer`, so between them time stands still and
nothing happens. With the external runner no thread is involved at all, and a run is repeatable.
"""

import asyncio
import json
import socket
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from counterfoil_server.app import App, build_app
from counterfoil_server.config import Settings
from counterfoil_server.core import Core
from counterfoil_server.models import Model
from counterfoil_server.probe_model import ProbeModel
from counterfoil_server.serving import running
from counterfoil_server.virtual_time import VirtualTimeLoop

__all__ = ["Answer", "VirtualServer"]


class Answer(NamedTuple):
    """What came back, and when, in virtual ms."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    at_ms: int

    @property
    def json(self) -> Any:
        """The body, parsed."""
        return json.loads(self.body)


class VirtualServer:
    """A server with a clock of its own; close it at the end."""

    def __init__(
        self,
        settings: Settings,
        *,
        model: Model | None = None,
        core: Callable[..., Core] = Core,
        build: Callable[[Core], App] = build_app,
    ) -> None:
        self.loop = VirtualTimeLoop(self._works)
        self.core = core(settings, model or ProbeModel(), clock=self.loop.clock)
        self._folder = tempfile.TemporaryDirectory(prefix="counterfoil-")
        self._path = str(Path(self._folder.name) / "socket")
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(self._path)
        listener.setblocking(False)
        self._context = running(self.core, listener, build)
        self.loop.run_until_complete(self._context.__aenter__())

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send a request, and let time pass until it is answered."""
        return self.answer(self.begin(method, path, body, headers))

    def begin(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> "asyncio.Task[Answer]":
        """Send a request, let the server do all that it can without time passing, and go on."""
        task = self.loop.create_task(self._exchange(method, path, body, headers or {}))
        self.settle()
        return task

    def answer(self, task: "asyncio.Task[Answer]") -> Answer:
        """Let time pass until a begun request is answered."""
        return self.loop.run_until_complete(task)

    def advance(self, ms: int) -> None:
        """Let exactly `ms` pass."""
        self.loop.run_until_complete(asyncio.sleep(ms / 1000))
        self.settle()

    def settle(self) -> None:
        """Let everything happen that needs no time."""
        self.loop.run_until_complete(self._turns())

    def close(self) -> None:
        """Stop the server."""
        self.loop.run_until_complete(self._context.__aexit__(None, None, None))
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self.settle()
        self.loop.close()
        self._folder.cleanup()

    def _works(self) -> bool:
        pool = getattr(self.core, "pool", None)
        return pool is not None and pool.size > 0 and bool(pool.busy or pool.pending)

    async def _turns(self) -> None:
        for _ in range(25):  # a request takes a handful of turns of the loop
            await asyncio.sleep(0)

    async def _exchange(
        self, method: str, path: str, body: Any, headers: Mapping[str, str]
    ) -> Answer:
        reader, writer = await asyncio.open_unix_connection(self._path)
        content = b"" if body is None else json.dumps(body).encode()
        usual = {
            "host": "virtual",
            "content-type": "application/json",
            "content-length": str(len(content)),
            "connection": "close",
        }
        lines = [f"{name}: {value}" for name, value in {**usual, **headers}.items()]
        writer.write("\r\n".join([f"{method} {path} HTTP/1.1", *lines, "", ""]).encode() + content)
        try:
            head, _, rest = (await reader.read()).partition(b"\r\n\r\n")
            first, *others = head.decode("latin-1").split("\r\n")
            pairs = (line.split(": ", 1) for line in others)
            answered = {name.lower(): value for name, value in pairs}
            return Answer(int(first.split()[1]), answered, rest, self.loop.clock())
        finally:
            writer.close()
