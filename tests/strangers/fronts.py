"""Two ways to hold a conversation: a thread for each connection, or one loop for all."""

import asyncio
import contextlib
import select
import socket
import struct
import threading
import time
from collections.abc import Callable
from typing import Any

from strangers.book import Book, Job
from strangers.conversation import Conversation, Drop, Gone, HalfClose, Pause, Read, Send
from strangers.messages import Parked

__all__ = ["ThreadedFront", "serve_on_loop", "serve_on_threads"]

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
NewConversation = Callable[[], Conversation]


class ThreadedFront:
    """One connection on its own thread."""

    def __init__(self, book: Book, connection: socket.socket) -> None:
        self.book, self.connection = book, connection

    def hold(self, conversation: Conversation) -> None:
        talk = conversation.talk()
        result: Any = None
        try:
            while True:
                result = self.obey(talk.send(result))
        except (StopIteration, OSError):
            pass
        finally:
            self.connection.close()

    def obey(self, command: Any) -> Any:
        match command:
            case Read(seconds):
                self.connection.settimeout(seconds)
                try:
                    return self.connection.recv(65_536)
                except TimeoutError:
                    return None
            case Send(raw):
                self.connection.settimeout(60)
                self.connection.sendall(raw)
            case Pause(seconds):
                time.sleep(seconds)
            case Parked():
                self.park(command)
            case Gone():
                return self.gone()
            case HalfClose():
                self.connection.shutdown(socket.SHUT_WR)
            case Drop():
                option = socket.SO_LINGER
                self.connection.setsockopt(socket.SOL_SOCKET, option, _RESET_ON_CLOSE)
                raise ConnectionAbortedError
        return None

    def park(self, parked: Parked) -> None:
        done = threading.Event()
        self.book.watch(parked.job, done.set)
        budget_ms = parked.budget_ms
        if not self.sleep(done, None if budget_ms is None else budget_ms / 1000):
            self.book.unwatch(parked.job, done.set)

    def sleep(self, done: threading.Event, seconds: float | None) -> bool:
        return done.wait(seconds)

    def gone(self) -> bool:
        readable, _, _ = select.select([self.connection], [], [], 0)
        return bool(readable) and not self.connection.recv(1, socket.MSG_PEEK)


def serve_on_threads(
    listener: socket.socket,
    new: NewConversation,
    front: Callable[[socket.socket], ThreadedFront],
    stopped: threading.Event,
) -> None:
    """Accept until the listener is closed."""
    while not stopped.is_set():
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        hold = front(connection).hold
        threading.Thread(target=hold, args=(new(),), daemon=True, name="connection").start()


async def serve_on_loop(listener: socket.socket, book: Book, new: NewConversation) -> None:
    """Serve on one event loop until it is cancelled."""

    async def on_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.CancelledError):
            await _hold(new(), book, reader, writer)
        writer.close()

    server = await asyncio.start_server(on_connection, sock=listener, limit=1 << 20)
    async with server:
        await server.serve_forever()


async def _hold(
    conversation: Conversation,
    book: Book,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    talk = conversation.talk()
    result: Any = None
    while True:
        try:
            command = talk.send(result)
        except StopIteration:
            return
        result = None
        match command:
            case Read(seconds):
                try:
                    result = await asyncio.wait_for(reader.read(65_536), seconds)
                except TimeoutError:
                    result = None
            case Send(raw):
                writer.write(raw)
                await writer.drain()
            case Pause(seconds):
                await asyncio.sleep(seconds)
            case Parked(job, budget_ms):
                await _park(book, job, budget_ms)
            case Gone():
                await asyncio.sleep(0)
                result = reader.at_eof()
            case HalfClose():
                writer.write_eof()


async def _park(book: Book, job: Job, budget_ms: float | None) -> None:
    loop = asyncio.get_running_loop()
    done = asyncio.Event()

    def wake() -> None:
        loop.call_soon_threadsafe(done.set)

    book.watch(job, wake)
    try:
        await asyncio.wait_for(done.wait(), None if budget_ms is None else budget_ms / 1000)
    except TimeoutError:
        book.unwatch(job, wake)
