"""HTTP/1.1 over our own sockets: exact bytes, exact times, and no surprise.

A conformance kit cannot use a well-behaved client library: it must hold the last byte of twenty
requests back and let them go together, send what no library would send, read an answer while it
still writes, and say in which way an answer was broken. h11 parses the answers; everything else is
here. `Connection` is one socket; `Client` keeps idle ones and opens others.

The trap is reuse. A server may close an idle connection at any time (that is no fault, RFC 9112
9.5), and a request that was written into the closing one is lost without a trace. So a read is then
sent again on a fresh connection, and a `POST`, which may have been admitted, is only ever sent on a
fresh one. Where a check insists on a connection that has carried an answer before, an end without a
byte is marked `reused`, and nobody is blamed for it.
"""

import asyncio
import ssl
from collections.abc import Iterable, Mapping
from typing import Final

import h11

from counterfoil_conformance.errors import UsageError
from counterfoil_conformance.wire.answer import Answer, Request, now_us
from counterfoil_conformance.wire.target import Target

__all__ = ["DEFAULT", "Client", "Connection", "encode"]

MAX_BODY_BYTES: Final = 8 * 1024 * 1024
MAX_HEAD_BYTES: Final = 256 * 1024
CONNECT_TIMEOUT_S: Final = 5.0
ANSWER_TIMEOUT_S: Final = 10.0
HUNG_TIMEOUT_S: Final = 1.5
HUNG_OFTEN: Final = 3
IDLE_FOR_US: Final = 2_000_000
POOL_SIZE: Final = 32


class _Default:
    """ "The target's own token": None means no token at all."""


DEFAULT: Final = _Default()


class Connection:
    """One socket to the target. Methods never raise for what the target does."""

    _count = 0

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        Connection._count += 1
        self.name = f"c{Connection._count}"
        self.used_us = now_us()
        self.pending = b""
        self.closed = False
        self.answers = 0
        self._reader = reader
        self._writer = writer

    @property
    def alive(self) -> bool:
        """Whether, as far as we know, the peer would still read from it."""
        return not (self.closed or self._reader.at_eof() or self._writer.is_closing())

    @property
    def leftover(self) -> bytes:
        """Bytes that came after the last answer and belong to none."""
        buffered: bytes = bytes(getattr(self._reader, "_buffer", b""))
        return self.pending + buffered

    @property
    def answer_ready(self) -> bool:
        """Whether some byte, or the end, has come in already."""
        return bool(self.leftover) or self._reader.at_eof()

    def write(self, data: bytes) -> int:
        """Hand bytes to the socket; the time in us just before. Never blocks, never raises."""
        at = now_us()
        try:
            self._writer.write(data)
        except (OSError, RuntimeError):
            self.closed = True
        return at

    async def drain(self, timeout_s: float = ANSWER_TIMEOUT_S) -> bool:
        """Wait until the written bytes are in the kernel's hands; False if that failed."""
        try:
            await asyncio.wait_for(self._writer.drain(), timeout_s)
        except (OSError, TimeoutError):
            return False
        return True

    def half_close(self) -> None:
        """Close our sending side only."""
        try:
            if self._writer.can_write_eof():
                self._writer.write_eof()
        except (OSError, RuntimeError):
            self.closed = True

    def close(self) -> None:
        """Close orderly."""
        self.closed = True
        self._writer.close()

    def abort(self) -> None:
        """Vanish, as a client whose machine died."""
        self.closed = True
        self._writer.transport.abort()

    async def read_until_close(self, timeout_s: float = ANSWER_TIMEOUT_S) -> tuple[bytes, str]:
        """All bytes until the end, and how that was: `closed`, `reset`, `timeout`, `too big`."""
        data, self.pending = self.pending, b""
        deadline_us = now_us() + int(timeout_s * 1e6)
        while len(data) <= MAX_BODY_BYTES:
            chunk, how = await self._chunk(deadline_us)
            if how:
                return data, how
            data += chunk
        return data, "too big"

    async def read_answer(
        self,
        request: Request,
        call_us: int,
        timeout_s: float = ANSWER_TIMEOUT_S,
    ) -> Answer:
        """Read one answer to `request`, which was written by the caller at `call_us`."""
        reading = self._reading(request, call_us)
        answer = await reading.run(call_us + int(timeout_s * 1e6))
        self.used_us = answer.return_us
        if answer.closed or answer.trouble:
            self.closed = True
            self._writer.close()
        return answer

    def _reading(self, request: Request, call_us: int) -> "_Reading":
        return _Reading(self, request, call_us)

    async def _chunk(self, deadline_us: int) -> tuple[bytes, str]:
        left_s = (deadline_us - now_us()) / 1e6
        try:
            async with asyncio.timeout(max(left_s, 0.001)):
                chunk = await self._reader.read(65536)
        except TimeoutError:
            return b"", "timeout"
        except (OSError, ssl.SSLError):
            return b"", "reset"
        return (chunk, "") if chunk else (b"", "closed")


class _Reading:
    """The reading of one answer."""

    def __init__(self, conn: Connection, request: Request, call_us: int) -> None:
        self._conn = conn
        self._request = request
        self._call_us = call_us
        self._parser = _parser_for(request.method)
        self._seen = b""
        self._body = bytearray()
        self._response: h11.Response | None = None
        self._informational: tuple[int, ...] = ()

    async def run(self, deadline_us: int) -> Answer:
        first, self._conn.pending = self._conn.pending, b""
        if first:
            self._feed(first)
        while True:
            try:
                done = self._events()
            except h11.RemoteProtocolError as error:
                return self._trouble(*self._told(str(error)))
            if done:
                return self._whole()
            if len(self._body) > MAX_BODY_BYTES:
                return self._trouble("too big", f"more than {MAX_BODY_BYTES} bytes")
            chunk, how = await self._conn._chunk(deadline_us)  # noqa: SLF001
            if how in ("timeout", "reset"):
                return self._trouble(how, self._progress())
            if how == "closed" and not self._seen:
                return self._trouble("closed", "before any byte of an answer")
            self._feed(chunk)

    def _feed(self, chunk: bytes) -> None:
        if self._response is None and len(self._seen) < MAX_HEAD_BYTES:
            self._seen += chunk
        try:
            self._parser.receive_data(chunk)
        except RuntimeError:  # data after the end: kept for the next answer
            self._conn.pending += chunk

    def _events(self) -> bool:
        while True:
            event = self._parser.next_event()
            if event is h11.NEED_DATA or event is h11.PAUSED:
                return False
            if isinstance(event, h11.InformationalResponse):
                self._informational += (event.status_code,)
            elif isinstance(event, h11.Response):
                self._response = event
            elif isinstance(event, h11.Data):
                self._body += event.data
                if len(self._body) > MAX_BODY_BYTES:
                    return False
            elif isinstance(event, h11.EndOfMessage):
                return True
            elif isinstance(event, h11.ConnectionClosed):
                raise h11.RemoteProtocolError("closed before an answer")

    def _told(self, error: str) -> tuple[str, str]:
        """Which trouble an h11 complaint is: bytes that are not HTTP, or an end too early."""
        early = "peer closed" in error or "closed before" in error
        return ("truncated" if early else "garbage"), error

    def _progress(self) -> str:
        if self._response is not None:
            return f"after the head and {len(self._body)} bytes of the body"
        return f"after {len(self._seen)} bytes" if self._seen else "no byte came"

    def _whole(self) -> Answer:
        response = self._response
        assert response is not None
        self._conn.answers += 1
        trailing = self._parser.trailing_data[0]
        self._conn.pending = bytes(trailing)
        closed = self._parser.their_state is not h11.DONE or _says_close(response)
        if response.status_code == 101:
            closed = True
        return Answer(
            self._request,
            self._call_us,
            now_us(),
            response.status_code,
            tuple((n.decode("latin-1"), v.decode("latin-1")) for n, v in response.headers),
            bytes(self._body),
            head=self._seen.split(b"\r\n\r\n")[0],
            informational=self._informational,
            closed=closed or not self._conn.alive,
            conn=self._conn.name,
            reused=self._conn.answers > 1,
        )

    def _trouble(self, trouble: str, detail: str) -> Answer:
        response = self._response
        return Answer(
            self._request,
            self._call_us,
            now_us(),
            response.status_code if response is not None else 0,
            body=bytes(self._body[:4096]),
            head=self._seen[:4096],
            trouble=trouble,
            detail=detail,
            closed=True,
            conn=self._conn.name,
            reused=self._conn.answers > 0,
        )


def _parser_for(method: str) -> h11.Connection:
    """A parser that believes a request of this method was sent (HEAD answers have no body)."""
    parser = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD_BYTES)
    known = method if method.isalpha() and method != "CONNECT" else "GET"
    parser.send(h11.Request(method=known, target="/", headers=[("Host", "x")]))
    parser.send(h11.EndOfMessage())
    return parser


def _says_close(response: h11.Response) -> bool:
    tokens = b",".join(v for n, v in response.headers if n == b"connection").lower()
    old = response.http_version < b"1.1"
    return b"close" in tokens or (old and b"keep-alive" not in tokens)


class Client:
    """Sends requests to one target: pooled keep-alive connections, or one given by the caller."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.gone = False
        self.hung = 0
        self._idle: list[Connection] = []
        self._open: set[Connection] = set()
        self._ssl = _ssl_context(target)

    async def connect(self, timeout_s: float = CONNECT_TIMEOUT_S) -> Connection | str:
        """A fresh connection, or why there is none."""
        try:
            async with asyncio.timeout(timeout_s):
                reader, writer = await asyncio.open_connection(
                    self.target.host, self.target.port, ssl=self._ssl, limit=MAX_HEAD_BYTES
                )
        except TimeoutError:
            return f"no connection within {timeout_s:g} s"
        except (OSError, ssl.SSLError) as error:
            return str(error) or type(error).__name__
        conn = Connection(reader, writer)
        self._open = {c for c in self._open if not c.closed}
        self._open.add(conn)
        return conn

    def request(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | Iterable[tuple[str, str]] = (),
        token: str | _Default | None = DEFAULT,
    ) -> Request:
        """A request with the headers that every one has; `path` is sent exactly as it is."""
        given = tuple(headers.items()) if isinstance(headers, Mapping) else tuple(headers)
        names = {name.lower() for name, _ in given}
        base: list[tuple[str, str]] = [("Host", self.target.base_url.split("//")[-1])]
        base += [("Accept", "application/json"), *self.target.adapter.headers.items()]
        secret = self.target.token if isinstance(token, _Default) else token
        if secret:
            base.append(("Authorization", f"Bearer {secret}"))
        if body is not None:
            base.append(("Content-Type", "application/json"))
            if "transfer-encoding" not in names:
                base.append(("Content-Length", str(len(body))))
        kept = [(name, value) for name, value in base if name.lower() not in names]
        # A header given as "" is left out: that is how a check sends none.
        sent = tuple((n, v) for n, v in (*kept, *given) if v != "")
        return Request(method, path, sent, body, self.target.base_url, secret=self.target.token)

    async def send(
        self, request: Request, *, conn: Connection | None = None, timeout_s: float | None = None
    ) -> Answer:
        """Send a request and read its answer."""
        limit_s = self.patience_s(ANSWER_TIMEOUT_S) if timeout_s is None else timeout_s
        answer = await self._send(request, conn, limit_s)
        if timeout_s is None:
            self.note(answer)
        return answer

    def patience_s(self, usual_s: float) -> float:
        """How long to listen for an answer that is due at once.

        Who has hung a few times will be told of it; the run need not hang with him each time.
        """
        return usual_s if self.hung < HUNG_OFTEN else min(usual_s, HUNG_TIMEOUT_S)

    def note(self, answer: Answer) -> None:
        """Remember that an answer which was due at once did not come."""
        self.hung += answer.trouble == "timeout"

    async def _send(self, request: Request, conn: Connection | None, limit_s: float) -> Answer:
        reads = request.method in ("GET", "HEAD")
        if conn is not None:
            answer = await conn.read_answer(request, conn.write(encode(request)), limit_s)
            if not (reads and answer.closed_idle):
                return answer
        pooled = self._take() if reads and conn is None else None
        if pooled is not None:
            answer = await self._on(pooled, request, limit_s)
            if not answer.closed_idle:
                return answer
        fresh = await self.connect()
        if isinstance(fresh, str):
            at = now_us()
            return Answer(request, at, at, trouble="refused", detail=fresh, closed=True)
        return await self._on(fresh, request, limit_s)

    async def _on(self, conn: Connection, request: Request, limit_s: float) -> Answer:
        try:
            answer = await conn.read_answer(request, conn.write(encode(request)), limit_s)
        except asyncio.CancelledError:
            conn.abort()
            raise
        if conn.alive and not conn.pending and len(self._idle) < POOL_SIZE:
            self._idle.append(conn)
        else:
            conn.close()
        return answer

    def _take(self) -> Connection | None:
        while self._idle:
            conn = self._idle.pop()
            if conn.alive and not conn.answer_ready and now_us() - conn.used_us < IDLE_FOR_US:
                return conn
            conn.close()
        return None

    async def aclose(self) -> None:
        """Close every connection that is still open."""
        for conn in self._open:
            if not conn.closed:
                conn.close()
        self._idle.clear()
        self._open.clear()
        await asyncio.sleep(0)


def encode(request: Request) -> bytes:
    """The bytes of a request."""
    if request.raw is not None:
        return request.raw
    head = f"{request.method} {request.path} HTTP/1.1\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in request.headers)
    return head.encode("utf-8", "surrogateescape") + b"\r\n" + (request.body or b"")


def _ssl_context(target: Target) -> ssl.SSLContext | None:
    if not target.is_tls:
        return None
    try:
        return ssl.create_default_context(cafile=target.adapter.ca_file or None)
    except (OSError, ssl.SSLError) as error:
        raise UsageError(f"adapter.ca_file = {target.adapter.ca_file!r}: {error}") from error
