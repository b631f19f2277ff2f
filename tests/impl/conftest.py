"""The shipped server in this process, on a real socket, for as long as a test wants it."""

import base64
import contextlib
import http.client
import json
import time
import urllib.parse
from types import SimpleNamespace

import pytest

from counterfoil_server.config import Settings
from counterfoil_server.in_process import served


def told(*commands):
    """An image for the probe model."""
    return base64.b64encode(";".join(commands).encode()).decode()


class Client:
    """A keep-alive connection to one server, and words for what tests do often."""

    def __init__(self, server):
        self.server = server
        self.core = server.core
        self.address = urllib.parse.urlsplit(server.url)
        self._connection = None

    def send(self, method, path, body=None, headers=None, *, fresh=False):
        if self._connection is None or fresh:
            self._connection = http.client.HTTPConnection(
                self.address.hostname, self.address.port, timeout=90
            )
        if isinstance(body, dict | list):
            body = json.dumps(body)
        headers = {"content-type": "application/json"} | (headers or {})
        self._connection.request(method, path, body, headers)
        answer = self._connection.getresponse()
        content = answer.read()
        is_json = answer.headers.get("content-type", "").startswith("application/json")
        return SimpleNamespace(
            status=answer.status,
            headers=answer.headers,
            content=content,
            json=json.loads(content) if is_json and content else None,
        )

    def get(self, path, **options):
        return self.send("GET", path, **options)

    def submit(self, *commands, path="/jobs", **more):
        return self.send("POST", path, {"images": [told(*commands)], **more})

    def admitted(self, *commands, **more):
        answer = self.submit(*commands, **more)
        assert answer.status == 202, answer.content
        return answer.json["job_id"]

    def ended(self, job_id, within_ms=60_000):
        status = self.get(f"/jobs/{job_id}/wait?timeout={within_ms}").json
        assert status["state"] in ("done", "failed", "timeout"), status
        return status

    def until(self, holds, within_s=60):
        deadline = time.monotonic() + within_s
        while not holds():
            assert time.monotonic() < deadline, "it did not come true"
            time.sleep(0.005)


@pytest.fixture
def serve():
    """`serve(async_max_queue=1, ...)` starts a server with the probe model; its client."""
    with contextlib.ExitStack() as stack:

        def start(**settings):
            options = {name: settings.pop(name) for name in ("core", "build") if name in settings}
            usual = {"port": 0, "model": "probe", "async_enabled": True, "workers": 2}
            server = stack.enter_context(served(Settings(**usual | settings), **options))
            return Client(server)

        yield start
