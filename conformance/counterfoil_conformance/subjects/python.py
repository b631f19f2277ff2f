"""A subject in this process: `python:MODULE:FACTORY` (see `host` for what a factory is).

The same messages, the same answers as through a pipe, without the pipe: an operation is a direct
call, one with a `lane` runs on that lane's thread. What the ledger raises becomes the answer
`{"error": text}`, exactly as a driver process would give it.
"""

import importlib
import json
import shlex
import sys
import threading
from pathlib import Path
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
    refuse_error,
)
from counterfoil_conformance.subjects.host import CAPABILITIES, Factory, Host, Lanes
from counterfoil_conformance.subjects.race import CONCURRENT_OPS

__all__ = ["PythonSubject", "load_factory"]

# These run on a thread of their own, so that one which never returns does not take us with it.
_MAY_BLOCK: Final = frozenset({"wait", *CONCURRENT_OPS})


class _Call(Ticket):
    """An operation in this process, done or on its lane."""

    def __init__(self, subject: str, op: str) -> None:
        self._subject = subject
        self._op = op
        self._done = threading.Event()
        self._answer: Answer | None = None

    def perform(self, host: Host, message: dict[str, Any]) -> None:
        """Do the operation and keep its answer."""
        call_us = now_us()
        try:
            concurrent = CONCURRENT_OPS.get(self._op)
            reply = concurrent(host, message) if concurrent else host.perform(message)
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {error}"}
        self._answer = Answer(reply, call_us, now_us())
        self._done.set()

    @property
    def answered(self) -> bool:
        return self._done.is_set()

    def answer(self, timeout_s: float = ANSWER_TIMEOUT_S) -> Answer:
        if not self._done.wait(timeout_s):
            raise Unanswered(self._subject, self._op, timeout_s)
        assert self._answer is not None
        refuse_error(self._op, self._answer.reply)
        return self._answer


class PythonSubject(Subject):
    """A ledger that `factory` makes in this process."""

    def __init__(self, factory: Factory, name: str = "python") -> None:
        self.name = name
        self.hello = Hello(name, 1, frozenset(CAPABILITIES))
        self.factory = factory
        self._host = self._fresh_host()
        self._lanes = Lanes()

    @classmethod
    def load(cls, spelled: str) -> "PythonSubject":
        """The subject of `MODULE:FACTORY`."""
        return cls(load_factory(spelled), f"python:{spelled}")

    def send(self, op: str, *, lane: int | None = None, **args: Any) -> Ticket:
        call, host = _Call(self.name, op), self._host
        message = {"op": op, **args}
        if lane is None and op not in _MAY_BLOCK:
            call.perform(host, message)
        else:
            self._lanes.run(-1 if lane is None else lane, lambda: call.perform(host, message))
        return call

    def restart(self) -> None:
        self._lanes.close()
        self._lanes = Lanes()
        self._host = self._fresh_host()

    def close(self) -> None:
        self._lanes.close()

    def repro(self, messages: list[dict[str, Any]]) -> str:
        lines = (json.dumps({"n": n, **message}) for n, message in enumerate(messages, 1))
        quoted = " ".join(shlex.quote(line) for line in lines)
        spelled = shlex.quote(self.name.removeprefix("python:"))
        driver = "python -m counterfoil_conformance.subjects.driver"
        return f"printf '%s\\n' {quoted} | {driver} {spelled}"

    def _fresh_host(self) -> Host:
        try:
            return Host(self.factory)
        except Exception as error:
            raise HarnessError(f"{self.name}: the factory raised {error!r}") from error


def load_factory(spelled: str) -> Factory:
    """Import `MODULE:FACTORY`; the current directory counts as a place to import from.

    Raises:
        UsageError: there is no such module, or nothing callable of that name in it.
    """
    module, _, name = spelled.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        factory = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise UsageError(f"python:{spelled}: {error}") from error
    if not callable(factory):
        raise UsageError(f"python:{spelled}: {name} is not callable")
    return factory  # type: ignore[no-any-return]
