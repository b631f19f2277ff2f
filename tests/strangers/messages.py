"""HTTP/1.1 as values: heads parsed from bytes, answers written to bytes, no socket anywhere."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from strangers.book import Job
from strangers.config import Config

__all__ = ["Head", "Malformed", "Parked", "Request", "Response", "Writer", "parse_head"]

_TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_TARGET = re.compile(rb"[\x21-\x7e\x80-\xff]+\Z")
_REASONS = {
    200: "OK", 202: "Accepted", 204: "No Content", 400: "Bad Request", 401: "Unauthorized",
    404: "Not Found", 405: "Method Not Allowed", 408: "Request Timeout", 409: "Conflict",
    413: "Content Too Large", 414: "URI Too Long", 415: "Unsupported Media Type",
    422: "Unprocessable Content", 429: "Too Many Requests",
    431: "Request Header Fields Too Large", 500: "Internal Server Error",
    503: "Service Unavailable", 504: "Gateway Timeout",
}  # fmt: skip


class Malformed(Exception):
    """Bytes that are no request: the status to answer before closing, and why."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


@dataclass(frozen=True)
class Head:
    """A request without its body; `target` as it came, header names in lower case."""

    method: str
    target: str
    version: str
    headers: dict[str, list[str]]

    @property
    def path(self) -> str:
        path = self.target.partition("?")[0]
        return re.sub(r"\Ahttps?://[^/]*", "", path)

    @property
    def query(self) -> str:
        return self.target.partition("?")[2]

    def header(self, name: str) -> str | None:
        values = self.headers.get(name)
        return values[0] if values else None

    @property
    def chunked(self) -> bool:
        return "transfer-encoding" in self.headers

    @property
    def length(self) -> int:
        return int(self.header("content-length") or 0)

    @property
    def has_body(self) -> bool:
        return self.chunked or self.length > 0

    @property
    def expects_continue(self) -> bool:
        return (self.header("expect") or "").lower() == "100-continue"

    @property
    def persistent(self) -> bool:
        connection = (self.header("connection") or "").lower()
        if self.version == "1.0":
            return False
        return "close" not in [part.strip() for part in connection.split(",")]


@dataclass(frozen=True)
class Request:
    """A head and its whole body."""

    head: Head
    body: bytes


@dataclass
class Response:
    """An answer: `payload` is a JSON value, or text or bytes as they are, or None."""

    status: int
    payload: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    close: bool = False


@dataclass(frozen=True)
class Parked:
    """Resume when the job is terminal or after `budget_ms` (None: no end), then ask `answer`."""

    job: Job
    budget_ms: float | None
    answer: Callable[[], Response]


def parse_head(raw: bytes) -> Head:
    """The head in `raw` (without its empty line).

    Raises:
        Malformed: 400 for what is no HTTP/1.x head, or says two things of its body.
    """
    first, *lines = raw.split(b"\r\n")
    parts = first.split(b" ")
    if len(parts) != 3 or not _TOKEN.match(parts[0]) or not _TARGET.match(parts[1]):
        raise Malformed(400, "bad request line")
    if parts[2] not in (b"HTTP/1.1", b"HTTP/1.0"):
        raise Malformed(400, "bad HTTP version")
    headers: dict[str, list[str]] = {}
    for line in lines:
        name, colon, value = line.partition(b":")
        if not colon or not _TOKEN.match(name) or re.search(rb"[\x00\r\n]", value):
            raise Malformed(400, "bad header line")
        headers.setdefault(name.lower().decode(), []).append(value.strip(b" \t").decode("latin-1"))
    head = Head(parts[0].decode(), parts[1].decode("latin-1"), parts[2][5:].decode(), headers)
    _check_framing(head)
    return head


def _check_framing(head: Head) -> None:
    lengths = set(head.headers.get("content-length", []))
    if head.chunked:
        coding = [value.lower() for value in head.headers["transfer-encoding"]]
        if lengths or coding != ["chunked"] or head.version == "1.0":
            raise Malformed(400, "bad transfer coding")
    if len(lengths) > 1 or not all(re.fullmatch(r"[0-9]{1,18}", length) for length in lengths):
        raise Malformed(400, "bad content length")


class Writer:
    """Turns a `Response` into bytes, in the manner that the configuration asks for."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def render(self, response: Response, head: Head | None, close: bool) -> bytes:
        """The whole answer; `head` is None when the request could not be parsed."""
        body = self.body(response)
        bare = response.status == 204 or (head is not None and head.method == "HEAD")
        lines = [("Content-Type", self.content_type(response))] if body else []
        lines += [(name, value) for name, value in response.headers.items()]
        if self.config.chunked and not bare and (head is None or head.version == "1.1"):
            lines.append(("Transfer-Encoding", "chunked"))
            body = self.in_chunks(body)
        elif response.status != 204:
            lines.append(("Content-Length", str(len(body))))
        lines.append(("Connection", "close" if close else "keep-alive"))
        reason = _REASONS.get(response.status, "Unknown")
        top = f"HTTP/1.1 {response.status} {reason}\r\n".encode()
        raw = top + b"".join(self.line(name, value) for name, value in lines) + b"\r\n"
        return raw if bare else raw + body

    def line(self, name: str, value: str) -> bytes:
        """A header line; nothing a client sent can end it or leave ASCII."""
        case = {"lower": name.lower(), "upper": name.upper()}.get(self.config.header_case, name)
        safe = re.sub(r"[^\x20-\x7e]", "?", value)
        return f"{case}: {safe}\r\n".encode("ascii")

    def body(self, response: Response) -> bytes:
        payload = response.payload
        if payload is None or isinstance(payload, bytes):
            return payload or b""
        if isinstance(payload, str):
            return payload.encode()
        return self.json(payload)

    def json(self, payload: Any) -> bytes:
        """Strict JSON: no NaN, no lone surrogates."""
        match self.config.json_style:
            case "pretty":
                text = json.dumps(payload, ensure_ascii=False, allow_nan=False, indent=2) + "\n"
            case "ascii":
                whole = json.dumps(payload, ensure_ascii=False).encode("utf-8", "replace")
                text = json.dumps(json.loads(whole), allow_nan=False)
            case _:
                text = json.dumps(
                    payload, ensure_ascii=False, allow_nan=False, separators=(",", ":")
                )
        return text.encode("utf-8", "replace")

    def content_type(self, response: Response) -> str:
        if isinstance(response.payload, str):
            return "text/plain; version=0.0.4; charset=utf-8"
        return {
            "spaced": "application/json ;  charset=utf-8",
            "upper": "Application/JSON;charset=UTF-8",
        }.get(self.config.content_type, "application/json; charset=utf-8")

    def in_chunks(self, body: bytes) -> bytes:
        half = max(1, len(body) // 2)
        parts = [part for part in (body[:half], body[half:]) if part]
        return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
