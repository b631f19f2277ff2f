"""A connection that goes on reading after it can no longer write.

A server that refuses a body early answers, closes, and may reset what still comes. An event loop's
own transport drops the answer it had not read yet as soon as a write fails, and an honest server
would be accused of having sent none. Here the socket is ours: a failed write ends the writing, and
reading goes on until the answer is whole or the peer is gone.

Over TLS this cannot be had so simply; there the ordinary connection is used.
"""

import asyncio
import itertools
import socket
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from counterfoil_conformance.wire.answer import Answer, Request, now_us
from counterfoil_conformance.wire.client import Client, Connection, encode

__all__ = ["Stubborn", "chunked", "open_stubborn", "push", "send_in_pieces"]

_RECEIVE_BYTES: Final = 65536
_NUMBERS: Final = itertools.count(1)


class Stubborn(Connection):
    """One non-blocking socket. Methods never raise for what the target does.

    `refused_us` is when a write failed for the first time.
    """

    def __init__(self, sock: socket.socket) -> None:  # the base wants streams; there are none
        self.name = f"s{next(_NUMBERS)}"
        self.used_us = now_us()
        self.pending = b""
        self.answers = 0
        self.closed = False
        self._sock = sock
        self.refused_us: int | None = None
        self._ended = False

    @property
    def alive(self) -> bool:
        return not (self.closed or self._ended or self.refused_us is not None)

    @property
    def leftover(self) -> bytes:
        return self.pending

    async def push(self, data: bytes, timeout_s: float = 5.0) -> bool:
        """Send bytes; False if the peer no longer takes them (or is too slow to)."""
        if self.closed or self.refused_us is not None:
            return False
        try:
            async with asyncio.timeout(timeout_s):
                await asyncio.get_running_loop().sock_sendall(self._sock, data)
        except (OSError, TimeoutError):
            self.refused_us = now_us()
        return self.refused_us is None

    def half_close(self) -> None:
        with suppress(OSError):
            self._sock.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self.closed = True
        with suppress(OSError):
            self._sock.close()

    abort = close

    async def read_answer(self, request: Request, call_us: int, timeout_s: float = 10.0) -> Answer:
        answer = await self._reading(request, call_us).run(call_us + int(timeout_s * 1e6))
        self.used_us = answer.return_us
        self._ended = self._ended or answer.closed or bool(answer.trouble)
        return answer

    async def _chunk(self, deadline_us: int) -> tuple[bytes, str]:
        left_s = (deadline_us - now_us()) / 1e6
        try:
            async with asyncio.timeout(max(left_s, 0.001)):
                chunk = await asyncio.get_running_loop().sock_recv(self._sock, _RECEIVE_BYTES)
        except TimeoutError:
            return b"", "timeout"
        except OSError:
            self._ended = True
            return b"", "reset"
        if not chunk:
            self._ended = True
            return b"", "closed"
        return chunk, ""


async def open_stubborn(client: Client, timeout_s: float = 5.0) -> Connection | None:
    """A connection for refusals that come early; an ordinary one over TLS; None if refused."""
    if client.target.is_tls:
        conn = await client.connect(timeout_s)
        return conn if isinstance(conn, Connection) else None
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(timeout_s):
            found = await loop.getaddrinfo(
                client.target.host, client.target.port, type=socket.SOCK_STREAM
            )
            family, kind, proto, _, address = found[0]
            sock = socket.socket(family, kind, proto)
            sock.setblocking(False)
            await loop.sock_connect(sock, address)
    except (OSError, TimeoutError):
        return None
    return Stubborn(sock)


async def send_in_pieces(
    conn: Connection,
    request: Request,
    pieces: Iterable[bytes],
    *,
    pause_s: float = 0.0,
    timeout_s: float = 10.0,
    stop_early: bool = False,
) -> tuple[Answer, bool]:
    """Send the head of `request`, then `pieces`, reading all the while.

    Returns the answer and whether it came before the last piece was sent. Pieces that are left when
    it comes are sent all the same (the next request can only follow a whole one), unless
    `stop_early`.
    """
    head = encode(Request(request.method, request.path, request.headers, None, request.base_url))
    call_us = now_us()
    await push(conn, head)
    reading = asyncio.create_task(conn.read_answer(request, call_us, timeout_s))
    early = False
    for piece in pieces:
        if pause_s:
            await asyncio.wait({reading}, timeout=pause_s)
        early = early or reading.done()
        if reading.done() and (stop_early or not conn.alive):
            if not stop_early:
                await _still_sending(conn, piece)
            break
        if not await push(conn, piece):
            break
    return await reading, early


async def _still_sending(conn: Connection, piece: bytes) -> None:
    """A client that has not read the answer yet goes on for a moment: does the peer take it?"""
    if isinstance(conn, Stubborn):
        for _ in range(6):
            if not await conn.push(piece[:1024] or b" ", timeout_s=0.3):
                return
            await asyncio.sleep(0.005)


async def push(conn: Connection, data: bytes) -> bool:
    """Send bytes on either kind of connection; False if the peer no longer takes them."""
    if isinstance(conn, Stubborn):
        return await conn.push(data)
    conn.write(data)
    return await conn.drain(5.0)


def chunked(body: bytes, size: int = 4096) -> Iterable[bytes]:
    """A body in chunked coding, piece by piece, with its end."""
    for start in range(0, len(body), size):
        part = body[start : start + size]
        yield b"%x\r\n%b\r\n" % (len(part), part)
    yield b"0\r\n\r\n"
