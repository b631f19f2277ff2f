"""What the kit asks of a ledger under test, whatever it is written in.

A *subject* takes messages of the exec protocol (one operation each) and answers them. `ExecSubject`
carries them to a process, `PythonSubject` to an object in this one; every check is written against
the interface below and cannot tell the two apart.

Each answer comes with the interval `[call, return]` in which the operation happened, measured on
our side: the true interval lies inside it, so whatever is concluded from it holds.

The trap is blame. A subject that *answers wrongly* broke a clause; a subject that cannot do an
operation answers `{"error": ...}` and makes clauses UNTESTABLE (`UnsupportedOp`); a driver that
dies, prints garbage or answers out of turn is a `HarnessError`. A call that is not answered in
time is none of these yet: `Unanswered` is raised and the check, which knows whether the operation
was allowed to block, decides.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from counterfoil_conformance.errors import HarnessError
from counterfoil_spec.ledger import Limits

__all__ = [
    "ANSWER_TIMEOUT_S",
    "Answer",
    "Hello",
    "Subject",
    "Ticket",
    "Unanswered",
    "UnsupportedOp",
    "configure_args",
    "now_us",
    "parse_hello",
    "refuse_error",
]

# How long an operation that may not block can take before the driver counts as hung.
ANSWER_TIMEOUT_S: Final = 15.0


class UnsupportedOp(Exception):
    """The subject cannot do an operation: the clauses that need it are UNTESTABLE."""

    def __init__(self, op: str, text: str) -> None:
        super().__init__(f"the driver cannot do {op!r}: {text}")
        self.op = op


class Unanswered(HarnessError):
    """No answer came in time; a check may know better and blame the subject."""

    def __init__(self, subject: str, op: str, seconds: float) -> None:
        super().__init__(f"{subject}: no answer to {op!r} within {seconds:.1f} s")
        self.op = op
        self.seconds = seconds


@dataclass(frozen=True, slots=True)
class Hello:
    """How a driver introduces itself."""

    name: str
    protocol: int
    capabilities: frozenset[str]


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply, without its `n`, and the interval (us of our clock) that holds the call."""

    reply: dict[str, Any]
    call_us: int
    return_us: int


class Ticket(ABC):
    """The promise of an answer to an operation that has been sent."""

    @abstractmethod
    def answer(self, timeout_s: float = ANSWER_TIMEOUT_S) -> Answer:
        """Wait for the answer.

        Raises:
            Unanswered: none came within `timeout_s` seconds.
            UnsupportedOp: the subject cannot do the operation.
            HarnessError: the driver broke the protocol or died.
        """

    @property
    @abstractmethod
    def answered(self) -> bool:
        """Whether `answer` would return at once."""


class Subject(ABC):
    """A ledger under test: `send` messages, collect answers; `configure` makes a fresh ledger."""

    name: str
    hello: Hello

    @abstractmethod
    def send(self, op: str, *, lane: int | None = None, **args: Any) -> Ticket:
        """Send one operation; with `lane` it runs on that thread of the driver."""

    @abstractmethod
    def restart(self) -> None:
        """Begin again with a fresh driver, after a call that never came back."""

    @abstractmethod
    def close(self) -> None:
        """Let the subject go; closing twice is harmless."""

    @abstractmethod
    def repro(self, messages: list[dict[str, Any]]) -> str:
        """One shell command that sends these messages (without `n`) to a fresh subject."""

    def verify(self) -> None:  # noqa: B027 - most subjects have nothing to add
        """Raise the fault, if any, that no call has run into yet (an answer too many, say)."""

    def alarms(self) -> tuple[str, ...]:
        """What a sanitizer that watches the subject has reported so far."""
        return ()

    def offers(self, op: str, job: str | None) -> bool:
        """Whether this call can be made now; a ledger takes any, a server's surface may not."""
        del op, job
        return True

    def aim(self, op: str, job: str) -> str:
        """The job that this call would name instead: a surface may not let one choose."""
        del op
        return job

    def can(self, *capabilities: str) -> bool:
        """Whether the driver has all of these capabilities."""
        return self.hello.capabilities.issuperset(capabilities)

    def call(self, op: str, *, timeout_s: float = ANSWER_TIMEOUT_S, **args: Any) -> dict[str, Any]:
        """Send one operation and wait for its reply."""
        return self.send(op, **args).answer(timeout_s).reply

    def configure(self, limits: Limits) -> None:
        """A fresh, empty ledger with these limits."""
        self.call("configure", **configure_args(limits))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def configure_args(limits: Limits) -> dict[str, int]:
    """The arguments of `configure`."""
    return {
        "max_queue": limits.max_queue,
        "job_ttl_ms": limits.job_ttl_ms,
        "max_completed": limits.max_completed,
    }


def now_us() -> int:
    """Microseconds on our monotonic clock."""
    return time.monotonic_ns() // 1000


def parse_hello(subject: str, message: Mapping[str, Any]) -> Hello:
    """Read a driver's first line.

    Raises:
        HarnessError: it is not a hello of protocol 1.
    """
    hello = message.get("hello")
    if not isinstance(hello, dict):
        raise HarnessError(f"{subject}: the first line is not a hello: {dict(message)!r:.200}")
    protocol, capabilities = hello.get("protocol"), hello.get("capabilities", [])
    if protocol != 1:
        raise HarnessError(f"{subject}: speaks protocol {protocol!r}, this kit speaks 1")
    if not isinstance(capabilities, list) or not all(isinstance(c, str) for c in capabilities):
        raise HarnessError(
            f"{subject}: capabilities are not a list of names: {capabilities!r:.200}"
        )
    return Hello(str(hello.get("name", "")), 1, frozenset(capabilities))


def refuse_error(op: str, reply: Mapping[str, Any]) -> None:
    """Raise `UnsupportedOp` for `{"error": text}`, the answer to an op a driver cannot do."""
    if set(reply) == {"error"} and reply["error"] is not None:
        raise UnsupportedOp(op, str(reply["error"]))
