"""A gateway before a server: TLS, a header of its own, wrapped bodies, other URLs and words."""

import contextlib
import http.client
import json
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

HERE = Path(__file__).parent
CERTIFICATE = HERE / "tls-cert.pem"
KEY = HERE / "tls-key.pem"  # of the tests, and of nothing else
TENANT = ("X-Tenant", "acme")
PREFIX = "/tenant"


def wrapped(body: bytes) -> bytes:
    """The contract's body inside another, in other words."""
    try:
        content = json.loads(body)
    except ValueError:
        return body
    if isinstance(content, dict) and "job_id" in content:
        content["id"] = content.pop("job_id")
    if isinstance(content, dict) and content.get("state") == "done":
        content["state"] = "succeeded"
    return json.dumps({"data": content, "errors": content.get("errors")}).encode()


class Gateway(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    upstream = ("", 0)

    def relay(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get(TENANT[0]) != TENANT[1] or not self.path.startswith(PREFIX):
            self.answer(404, [], b'{"data": {"error": "who are you?"}}')
            return
        conn = http.client.HTTPConnection(*self.upstream, timeout=60)
        headers = {k: v for k, v in self.headers.items() if k.lower() != "host"}
        conn.request(self.command, self.path.removeprefix(PREFIX), body or None, headers)
        answer = conn.getresponse()
        self.answer(answer.status, answer.getheaders(), answer.read())
        conn.close()

    do_GET = do_POST = relay  # noqa: N815

    def answer(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        body = wrapped(body)
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() == "location":
                self.send_header(name, f"https://public.example/elsewhere{value}")
            elif name.lower() not in ("content-length", "connection", "transfer-encoding"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    """Clients that vanish are part of what goes through here, and no news."""

    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def gateway_to(url: str) -> Iterator[str]:
    """The https base URL of a gateway to the server at `url`."""
    parts = urlsplit(url)
    handler = type("Relay", (Gateway,), {"upstream": (parts.hostname, parts.port)})
    with Server(("127.0.0.1", 0), handler) as server:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATE, KEY)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"https://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
