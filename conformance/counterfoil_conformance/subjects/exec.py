"""A subject in another process: one JSON object per line, out and back, matched by `n`.

The driver may be anything that reads stdin and writes stdout. It speaks first (`hello`); from then
on every line we write carries a fresh `n`, and every line it writes answers one of them, in any
order. Stderr is read too, kept short, and searched for ThreadSanitizer's reports.

The trap is a driver that misbehaves quietly. Everything it can do wrong (garbage, an answer to a
number never asked, a second answer, an exit) is noticed by the reader thread the moment it
happens, fails every call that is open and every later one, and is told with the line that did it.
"""

import json
import os
import re
import shlex
import signal
import subprocess
import threading
from collections import deque
from typing import Any, Final

from counterfoil_conformance.errors import HarnessError, UsageError
from counterfoil_conformance.subjects.base import (
    ANSWER_TIMEOUT_S,
    Answer,
    Hello,
    Subject,
    Ticket,
    Unanswered,
    now_us,
    parse_hello,
    refuse_error,
)

__all__ = ["ExecSubject"]

_STDERR_LINES: Final = 400
_GRACE_S: Final = 1.0
_ALARM: Final = re.compile(r"WARNING: ThreadSanitizer: (data race|heap-use-after-free)")


class _Pending(Ticket):
    """An operation on its way to the process and back."""

    def __init__(self, process: "_Process", op: str) -> None:
        self._process = process
        self.op = op
        self.call_us = 0
        self.return_us = 0
        self.reply: dict[str, Any] | None = None
        self.done = threading.Event()

    @property
    def answered(self) -> bool:
        return self.done.is_set()

    def answer(self, timeout_s: float = ANSWER_TIMEOUT_S) -> Answer:
        if not self.done.wait(timeout_s):
            raise Unanswered(self._process.name, self.op, timeout_s)
        if self.reply is None:
            raise HarnessError(self._process.end)
        refuse_error(self.op, self.reply)
        return Answer(self.reply, self.call_us, self.return_us)


class _Process:
    """One run of the driver: its pipes, its reader threads and the calls that are open."""

    def __init__(self, name: str, command: list[str]) -> None:
        self.name = name
        self.fault = ""
        self.end = ""
        self.stderr: deque[str] = deque(maxlen=_STDERR_LINES)
        self.alarms: list[str] = []
        self._lock = threading.Lock()
        self._open: dict[int, _Pending] = {}
        self._last_n = 0
        self._closing = False
        self._hello: dict[str, Any] | None = None
        self._greeted = threading.Event()
        try:
            self._popen = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise HarnessError(f"{name}: cannot start: {error}") from error
        self._readers = [
            threading.Thread(target=self._read_stdout, name="driver-stdout", daemon=True),
            threading.Thread(target=self._read_stderr, name="driver-stderr", daemon=True),
        ]
        # The end of stdout waits for the end of stderr, so this must have begun.
        for reader in reversed(self._readers):
            reader.start()

    def hello(self, timeout_s: float) -> Hello:
        """The driver's first line."""
        if not self._greeted.wait(timeout_s):
            raise HarnessError(f"{self.name}: no hello within {timeout_s:.0f} s{self._tail()}")
        if self._hello is None:
            raise HarnessError(self.end)
        return parse_hello(self.name, self._hello)

    def send(self, op: str, lane: int | None, args: dict[str, Any]) -> _Pending:
        """Write one operation; the ticket fails if the driver is gone."""
        pending = _Pending(self, op)
        assert self._popen.stdin is not None
        with self._lock:
            if self.end:
                raise HarnessError(self.end)
            self._last_n += 1
            message: dict[str, Any] = {"n": self._last_n, "op": op, **args}
            if lane is not None:
                message["lane"] = lane
            line = json.dumps(message).encode() + b"\n"
            self._open[self._last_n] = pending
            pending.call_us = now_us()
            try:
                _write_all(self._popen.stdin.fileno(), line)
            except OSError:
                pass  # the reader sees the end of its output and says why
        return pending

    def close(self) -> None:
        """End the driver: close its input, then insist."""
        self._closing = True
        assert self._popen.stdin is not None
        try:
            self._popen.stdin.close()
        except OSError:
            pass
        for insist in (None, signal.SIGTERM, signal.SIGKILL):
            if insist is not None:
                self._signal(insist)
            try:
                self._popen.wait(_GRACE_S)
                break
            except subprocess.TimeoutExpired:
                continue
        self._signal(signal.SIGKILL)
        for reader in self._readers:
            reader.join(_GRACE_S)
        for pipe in (self._popen.stdout, self._popen.stderr):
            if pipe is not None and not any(reader.is_alive() for reader in self._readers):
                pipe.close()

    def _signal(self, number: signal.Signals) -> None:
        """Signal the driver and whatever it started: they are a session of their own."""
        try:
            os.killpg(self._popen.pid, number)
        except ProcessLookupError:
            pass

    def _read_stdout(self) -> None:
        assert self._popen.stdout is not None
        for raw in self._popen.stdout:
            arrived_us = now_us()
            if not raw.strip():
                continue
            try:
                message = json.loads(raw)
            except ValueError:
                message = None
            if not isinstance(message, dict):
                self._fail(f"the driver printed what is no JSON object: {raw!r:.200}")
                return
            if self._hello is None:
                self._hello = message
                self._greeted.set()
                continue
            if not self._accept(message, arrived_us):
                return
        if self._closing:
            self._release("the driver was let go")
        else:
            self._fail(f"the driver died ({self._status()})")

    def _accept(self, message: dict[str, Any], arrived_us: int) -> bool:
        """Match one answer with its question."""
        number = message.pop("n", None)
        if not isinstance(number, int) or isinstance(number, bool):
            self._fail(f"the driver answered without a number n: {message!r:.200}")
            return False
        with self._lock:
            pending = self._open.pop(number, None)
            asked = 0 < number <= self._last_n
        if pending is None:
            what = "twice" if asked else "a question never asked,"
            self._fail(f"the driver answered {what} n={number}: {message!r:.200}")
            return False
        pending.reply, pending.return_us = message, arrived_us
        pending.done.set()
        return True

    def _read_stderr(self) -> None:
        assert self._popen.stderr is not None
        for raw in self._popen.stderr:
            line = raw.decode(errors="replace").rstrip()
            self.stderr.append(line)
            if _ALARM.search(line):
                self.alarms.append(line)

    def _status(self) -> str:
        try:
            return f"exit status {self._popen.wait(_GRACE_S)}"
        except subprocess.TimeoutExpired:
            return "it closed its output"

    def _tail(self) -> str:
        lines = [line for line in self.stderr if line][-3:]
        return "; stderr: " + " | ".join(lines) if lines else ""

    def _fail(self, fault: str) -> None:
        """Note the first fault and wake everybody who waits for an answer."""
        self._readers[1].join(0.2)
        self.fault = self.fault or f"{self.name}: {fault}{self._tail()}"
        self._release(self.fault)

    def _release(self, why: str) -> None:
        """No answer will come any more, for that reason."""
        with self._lock:
            self.end = why
            waiting = list(self._open.values())
            self._open.clear()
        for pending in waiting:
            pending.done.set()
        self._greeted.set()


class ExecSubject(Subject):
    """A ledger behind a command that speaks the exec protocol.

    Raises:
        UsageError: the command line cannot be split into words.
        HarnessError: it does not start, or does not say hello within 15 s.
    """

    def __init__(self, command: str) -> None:
        self.name = f"exec:{command}"
        try:
            self._command = shlex.split(command)
        except ValueError as error:
            raise UsageError(f"{self.name}: {error}") from error
        self._alarms: list[str] = []
        self._process = self._begin()

    def _begin(self) -> _Process:
        process = _Process(self.name, self._command)
        try:
            self.hello = process.hello(ANSWER_TIMEOUT_S)
        except HarnessError:
            process.close()
            raise
        return process

    def send(self, op: str, *, lane: int | None = None, **args: Any) -> Ticket:
        return self._process.send(op, lane, args)

    def restart(self) -> None:
        self.close()
        self._process = self._begin()

    def close(self) -> None:
        self._process.close()
        self._alarms += self._process.alarms
        self._process.alarms = []

    def verify(self) -> None:
        if self._process.fault:
            raise HarnessError(self._process.fault)

    def alarms(self) -> tuple[str, ...]:
        return (*self._alarms, *self._process.alarms)

    def report(self) -> str:
        """The driver's stderr, the last lines of it."""
        return "\n".join(self._process.stderr)

    def repro(self, messages: list[dict[str, Any]]) -> str:
        lines = (json.dumps({"n": n, **message}) for n, message in enumerate(messages, 1))
        quoted = " ".join(shlex.quote(line) for line in lines)
        return f"printf '%s\\n' {quoted} | {shlex.join(self._command)}"


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
