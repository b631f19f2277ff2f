"""Puts the parts together, one of them perhaps replaced by a seeded fault, and stops in good order.

SIGTERM: no new job is admitted and `/ready` says 503 while live jobs finish; what is left when the
grace period ends fails; waiters get their answer; the exit code is 0.
"""

import asyncio
import contextlib
import os
import signal
import socket
import sys
import threading
import time

from strangers.answers import Answers
from strangers.app import App
from strangers.book import Book
from strangers.config import Config
from strangers.conversation import Conversation
from strangers.fronts import ThreadedFront, serve_on_loop, serve_on_threads
from strangers.intake import Intake
from strangers.messages import Writer
from strangers.model import Model
from strangers.workers import Alarm, Pool

__all__ = ["PARTS", "Server"]

PARTS = (Book, Model, Alarm, Pool, Intake, Answers, App, Writer, Conversation, ThreadedFront)
# How long answers to the last waiters may take to leave, and a reader to see /ready say 503.
_FLUSH_S = 0.3


class Server:
    """A stranger; `replaced` maps a part's class to the faulty subclass to use in its place."""

    def __init__(self, config: Config, replaced: dict[type, type] | None = None) -> None:
        part = {each: each for each in PARTS} | (replaced or {})
        self.config = config
        self.book: Book = part[Book](config)
        self.alarm: Alarm = part[Alarm]()
        self.pool: Pool = part[Pool](config, self.book, part[Model](config), self.alarm)
        intake, answers = part[Intake](config), part[Answers](config)
        self.app: App = part[App](config, self.book, self.pool, intake, answers)
        self.writer: Writer = part[Writer](config)
        self.conversation: type[Conversation] = part[Conversation]
        self.front: type[ThreadedFront] = part[ThreadedFront]
        self.stopped = threading.Event()

    def run(self) -> int:
        """Serve until SIGTERM has been obeyed; the exit code."""
        listener = self.listen()
        signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=self.drain).start())
        signal.signal(signal.SIGINT, signal.getsignal(signal.SIGTERM))
        self.pool.open()
        if self.config.age_timer:
            self.sweep_regularly()
        threading.Thread(target=self.serve, args=(listener,), daemon=True, name="serve").start()
        print(f"listening on {listener.getsockname()[1]}", flush=True)
        while not self.stopped.wait(3600):
            pass
        return self.exit_code()

    def exit_code(self) -> int:
        return 0

    def listen(self) -> socket.socket:
        return socket.create_server((self.config.host, self.config.port), backlog=1024)

    def new_conversation(self) -> Conversation:
        return self.conversation(self.config, self.app, self.writer)

    def serve(self, listener: socket.socket) -> None:
        if self.config.front == "loop":
            listener.setblocking(False)
            with contextlib.suppress(RuntimeError):
                asyncio.run(serve_on_loop(listener, self.book, self.new_conversation))
            return

        def front(connection: socket.socket) -> ThreadedFront:
            return self.front(self.book, connection)

        serve_on_threads(listener, self.new_conversation, front, self.stopped)

    def sweep_regularly(self) -> None:
        def sweep() -> None:
            self.book.sweep_by_age()
            self.alarm.at(time.monotonic() * 1000 + 50, sweep)

        sweep()

    def drain(self) -> None:
        """Let live jobs finish within the grace period, fail the rest, then stop."""
        self.stop_admitting()
        until = time.monotonic() + self.config.grace_ms / 1000
        while (self.book.live() or self.book.errands) and time.monotonic() < until:
            time.sleep(0.02)
        for job in self.book.live():
            self.book.end(job, "failed", "the server is stopping")
        time.sleep(_FLUSH_S)
        self.stopped.set()

    def stop_admitting(self) -> None:
        with self.book.lock:
            self.app.draining = True


def main(config: Config, replaced: dict[type, type] | None = None) -> None:
    """Run a server and leave the process at once: runs that hang are not waited for."""
    code = (replaced or {}).get(Server, Server)(config, replaced).run()
    sys.stdout.flush()
    os._exit(code)
