"""One ledger of a subject, with every call on it written down and judged.

`Books` is what a check holds in its hands: it performs operations, keeps each as a `Call` with the
interval it happened in, and when the check is done has the whole history judged. Sequential calls
under a driven clock are moreover compared, one by one, with the set of ledgers the law allows: the
first answer that none of them gives ends the check (`Violation`), since nothing after it is
meaningful.

The trap is a driver that answers in a wrong *shape*: that is no broken clause but a broken driver,
and is said so (`HarnessError`), while a wrong *value* is left to the judges.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from counterfoil_conformance.errors import HarnessError, Violation
from counterfoil_conformance.oracle.history import Call
from counterfoil_conformance.oracle.judge import Judgement, Setting, judge
from counterfoil_conformance.oracle.sequential import Rejection, Sequential
from counterfoil_conformance.subjects.base import (
    ANSWER_TIMEOUT_S,
    Answer,
    Subject,
    Ticket,
    Unanswered,
    UnsupportedOp,
    configure_args,
    now_us,
)
from counterfoil_conformance.subjects.program import command_of_program, labelled
from counterfoil_spec.ledger import Limits

__all__ = ["CLAUSE_OF", "KIT_CLOCK", "NEVER_MS", "Books", "Posted", "Rejected", "check_shape"]

Json = dict[str, Any]

KIT_CLOCK: Final = "kit"
# A TTL that no run outlives.
NEVER_MS: Final = 3_600_000
# A ledger whose clock does not move never sees a job grow old.
_FROZEN_MS: Final = 1e12


class Rejected(Violation):
    """An answer that no ledger of the law can have given."""

    def __init__(self, rejection: Rejection, actual: Json) -> None:
        super().__init__(rejection.clause, rejection.why)
        self.also = rejection.also
        self.allowed = " or ".join(rejection.allowed)
        self.actual = actual


@dataclass(slots=True)
class Posted:
    """A call that was sent to a lane: its answer comes later, or never."""

    books: "Books"
    ticket: Ticket
    message: Json
    client: str
    call_us: int
    collected: bool = False

    @property
    def answered(self) -> bool:
        """Whether an answer has come."""
        return self.ticket.answered

    def reply(self, timeout_s: float) -> Json | None:
        """The reply, or None if the subject had not answered after `timeout_s`."""
        try:
            answer = self.ticket.answer(timeout_s)
        except Unanswered:
            answer = None
        if not self.collected:
            self.collected = True
            self.books.write(self.client, self.message, self.call_us, answer)
        return None if answer is None else answer.reply


@dataclass(slots=True)
class Books:
    """A fresh ledger of `subject`, and what was done with it.

    Args:
        subject: whose ledger it is.
        limits: what it is configured with.
        works: operations this driver is known to do; grows. An error from one of them is the
            ledger's failure, from any other the driver's lack.
    """

    subject: Subject
    limits: Limits
    works: set[str] = field(default_factory=set)
    calls: list[Call] = field(default_factory=list)
    messages: list[Json] = field(default_factory=list)
    advanced: bool = False
    sequential_wanted: bool = True
    sequential: Sequential | None = None

    def __post_init__(self) -> None:
        if not self.sequential_wanted:
            pass
        elif self.subject.can("clock") or self.limits.job_ttl_ms >= NEVER_MS:
            self.sequential = Sequential(self.limits)
        self.messages.append({"op": "configure", **configure_args(self.limits)})
        self.subject.configure(self.limits)

    # Operations

    def submit(self, task_id: str = "task", payload: str = "payload") -> str | None:
        """The new job's id, or None when refused."""
        job = self.do("submit", task_id=task_id, payload=payload).get("job")
        return None if job is None else str(job)

    def admit(self, task_id: str = "task", payload: str = "payload") -> str:
        """Submit where there is room; a refusal is left to the judges, and ends the check."""
        job = self.submit(task_id, payload)
        if job is None:
            raise Violation("A3", f"a submit was refused ({self.limits})")
        return job

    def start(self, job: str) -> bool:
        return self.do("start", job=job).get("accepted") is True

    def finish(self, job: str, result: Any = "result") -> bool:
        return self.do("finish", job=job, result=result).get("accepted") is True

    def fail(self, job: str, error: str = "it failed") -> bool:
        return self.do("fail", job=job, error=error).get("accepted") is True

    def time_out(self, job: str, error: str = "it took too long") -> bool:
        return self.do("timeout", job=job, error=error).get("accepted") is True

    def end(self, job: str, how: str) -> bool:
        """End a job as `how` says: finish, fail or timeout."""
        return {"finish": self.finish, "fail": self.fail, "timeout": self.time_out}[how](job)

    def take(self, job: str) -> Json:
        return self.do("take_request", job=job)

    def snapshot(self, job: str) -> Json:
        return self.do("snapshot", job=job)

    def result(self, job: str) -> Json:
        return self.do("result", job=job)

    def wait(self, job: str, budget_ms: int, timeout_s: float = ANSWER_TIMEOUT_S) -> Json | None:
        """Wait on the main lane; None if no answer came in `timeout_s`."""
        return self.post(None, "wait", job=job, budget_ms=budget_ms).reply(timeout_s)

    def depth(self) -> int:
        return int(self.do("depth")["depth"])

    def advance(self, ms: int) -> None:
        """Move the driver's clock."""
        self.advanced = True
        self.messages.append({"op": "advance", "ms": ms})
        self.subject.call("advance", ms=ms)
        if self.sequential is not None:
            self.sequential.observe("advance", {"ms": ms}, {})

    def pause(self, seconds: float) -> None:
        """Let real time pass."""
        self.messages.append({"op": "pause", "ms": round(seconds * 1000, 3)})
        time.sleep(seconds)

    def read_all(self, *jobs: str) -> None:
        """Everything that can be seen of these jobs, and the depth."""
        for job in jobs:
            self.snapshot(job)
            self.result(job)
        self.depth()

    def do(self, op: str, **args: Any) -> Json:
        """Perform one operation, write it down, and return the reply."""
        message = {"op": op, **args}
        self.messages.append(message)
        call_us = now_us()
        try:
            answer = self.subject.send(op, **args).answer()
        except UnsupportedOp as error:
            self._blame_error(op, error)
            raise
        self.works.add(op)
        self.write("kit", message, call_us, answer)
        return answer.reply

    def post(self, lane: int | None, op: str, **args: Any) -> Posted:
        """Send one operation, to a lane if one is given, and do not wait for the answer."""
        message = {"op": op, **args} if lane is None else {"op": op, "lane": lane, **args}
        if lane is not None:
            self.sequential = None  # from here on calls overlap
        self.messages.append(message)
        call_us = now_us()
        ticket = self.subject.send(op, lane=lane, **args)
        client = "kit" if lane is None else f"lane-{lane}"
        return Posted(self, ticket, message, client, call_us)

    # Judging

    def write(
        self, client: str, message: Mapping[str, Any], call_us: int, answer: Answer | None
    ) -> None:
        """Keep a call; the reply must be in the protocol's shape."""
        op = message["op"]
        reply = None
        if answer is not None:
            reply = check_shape(self.subject.name, op, answer.reply)
            call_us = answer.call_us
        args = {k: v for k, v in message.items() if k not in ("op", "job", "lane")}
        returned = now_us() if answer is None else answer.return_us
        self.calls.append(
            Call(client, op, message.get("job"), call_us, returned, KIT_CLOCK, args, reply)
        )
        if self.sequential is not None:
            asked = {k: v for k, v in message.items() if k not in ("op", "lane")}
            rejection = self.sequential.observe(op, asked, reply)
            if rejection is not None:
                raise Rejected(rejection, reply or {})

    def judged(self, tolerance_ms: float) -> Judgement:
        """What the judge of histories says of all calls so far."""
        return judge(self.calls, self.setting(tolerance_ms))

    def setting(self, tolerance_ms: float) -> Setting:
        """What the judge may take for granted."""
        ttl_ms: float | None = self.limits.job_ttl_ms
        if self.subject.can("clock"):
            ttl_ms = None if self.advanced else _FROZEN_MS
        return replace(Setting.of_ledger(self.limits, tolerance_ms), job_ttl_ms=ttl_ms)

    def repro(self) -> str:
        """One command that repeats all calls."""
        return command_of_program(self.subject, self.program())

    def program(self) -> tuple[Json, ...]:
        """All messages, with labels for the ids that this run happened to issue."""
        return labelled(self.messages, self.calls)

    def _blame_error(self, op: str, error: UnsupportedOp) -> None:
        if op in self.works:
            raise Violation(CLAUSE_OF[op], f"the ledger failed in {op}: {error}") from error


# What an operation that fails outright, having worked before, breaks first of all.
CLAUSE_OF: Final = {
    "submit": "A3",
    "start": "S2",
    "finish": "S3",
    "fail": "S3",
    "timeout": "S3",
    "take_request": "Q1",
    "snapshot": "S6",
    "result": "G1",
    "wait": "W1",
    "depth": "A1",
}


def check_shape(subject: str, op: str, reply: Json) -> Json:
    """The reply, if it is one that the protocol knows for `op`.

    Raises:
        HarnessError: it is not; the driver is at fault, no clause.
    """
    kinds = _SHAPES.get(op)
    if kinds is None or any(_is_shape(reply, shape) for shape in kinds):
        return reply
    raise HarnessError(f"{subject}: no answer to {op!r} looks like this: {reply!r:.300}")


_TRUE: Final = (True,)
_SHAPES: Final[dict[str, tuple[dict[str, Any], ...]]] = {
    "submit": ({"job": str}, {"refused": _TRUE}),
    **dict.fromkeys(
        ("start", "finish", "fail", "timeout"), ({"accepted": bool}, {"unknown": _TRUE})
    ),
    "take_request": ({"task_id": object, "payload": object}, {"unknown": _TRUE}),
    "snapshot": ({"state": str}, {"unknown": _TRUE}),
    "wait": ({"state": str}, {"unknown": _TRUE}),
    "result": (
        {"status": ("ready",), "result": object},
        {"status": ("not_done",), "state": str},
        {"status": ("not_found",)},
    ),
    "depth": ({"depth": int},),
}


def _is_shape(reply: Json, shape: Mapping[str, Any]) -> bool:
    for key, kind in shape.items():
        if key not in reply:
            return False
        value = reply[key]
        if kind is int and isinstance(value, float) and value.is_integer():
            value = reply[key] = int(value)  # JSON has one kind of number: 2.0 is 2
        fits = value in kind if isinstance(kind, tuple) else isinstance(value, kind)
        if not fits or (kind is int and isinstance(value, bool)):
            return False
    return True
