"""A state machine for hypothesis, generated from the law's table of actions.

Every action of `counterfoil_spec.ledger.ACTIONS` becomes a rule; its arguments are drawn by the
names of the action's own parameters, so an action that is added to the law is tested without a line
here. The rules perform their calls on a subject through `Books`, where the oracle judges every
answer; after a step that says so, the depth and a snapshot of every job are read as well, and at
the end always.

A failure shrinks to a short program in the subject's own terms: the messages it was sent. They are
kept as data (`Failure`), printed as one command that repeats them, and can be written down as
vectors, which any subject can run.

The trap is a waiter: real time is slow. A wait on a live job therefore has a budget of 1 ms, and a
wait on a terminal one a budget so long that a ledger which sleeps through it is noticed.
"""

import inspect
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

from hypothesis import HealthCheck, Phase, Verbosity, seed, settings
from hypothesis import strategies as st
from hypothesis.database import DirectoryBasedExampleDatabase
from hypothesis.errors import Flaky
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from counterfoil_conformance.errors import HarnessError, Violation
from counterfoil_conformance.subjects.base import Subject
from counterfoil_conformance.subjects.books import NEVER_MS, Books
from counterfoil_conformance.vectors import FORMAT
from counterfoil_spec.ledger import ACTIONS, Limits

__all__ = ["PROFILES", "Failure", "Profile", "find_failure", "machine_for"]

Json = dict[str, Any]
Profile: TypeAlias = Literal["ci", "deep"]

_COMMON: Final = settings(
    deadline=None,
    suppress_health_check=list(HealthCheck),
    verbosity=Verbosity.quiet,
    report_multiple_bugs=False,
    print_blob=False,
    # The explanation of a failure is the oracle's; hypothesis's own costs seconds.
    phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),
)
# ci: a second or two on any ledger; deep: minutes.
PROFILES: Final[dict[Profile, settings]] = {
    "ci": settings(_COMMON, max_examples=120, stateful_step_count=25),
    "deep": settings(_COMMON, max_examples=3_000, stateful_step_count=60),
}
_DATABASE: Final = Path(".hypothesis") / "counterfoil"
_STRANGER: Final = "no-such-job"
_PATIENCE_S: Final = 10.0
_ENDS: Final = frozenset({"finish", "fail", "timeout"})

_TEXTS: Final = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
_NAMES: Final = {"time_out": "timeout", "admit": "submit"}
# `sweep` is no call of its own: it is the second half of a submit.
_NO_CALLS: Final = frozenset({"sweep"})


@dataclass(frozen=True, slots=True)
class Failure:
    """A program that a subject answered wrongly: the last answer broke `clause`."""

    clause: str
    why: str
    limits: Limits
    messages: tuple[Json, ...]
    repro: str
    also: tuple[str, ...] = ()
    allowed: str = ""
    actual: str = ""

    def program(self) -> str:
        """The messages, one per line."""
        return "\n".join(json.dumps(message, ensure_ascii=False) for message in self.messages)

    def as_vectors(self) -> Json:
        """The program as a document of vectors, without expected answers: the oracle judges."""
        first, *rest = self.messages
        limits = {key: value for key, value in first.items() if key != "op"}
        sequence = {"name": self.clause, "limits": limits, "steps": rest}
        return {"format": FORMAT, "sequences": [sequence]}


class _Machine(RuleBasedStateMachine):
    """What all generated machines share: a fresh ledger, and calls on it."""

    subject: Subject
    failures: list[Failure]
    asleep = False

    def __init__(self) -> None:
        super().__init__()
        self.books: Books | None = None
        self.live: list[str] = []
        self.ended: list[str] = []
        self.look = False
        self.failed = False

    def open(self, limits: Limits) -> None:
        """A fresh ledger."""
        self.limits = limits
        self.books = Books(self.subject, limits)

    def choose(self, which: int) -> str:
        """A job by its place: the live ones first, the newest of each first, a stranger last."""
        jobs = [*reversed(self.live), *reversed(self.ended), _STRANGER]
        return jobs[min(which, len(jobs) - 1)]

    def learn(self, op: str, job: str, reply: Json) -> None:
        """Remember who lives and who has ended, for the next choice."""
        if op == "submit" and "job" in reply:
            self.live.append(reply["job"])
        elif op in _ENDS and reply.get("accepted") is True and job in self.live:
            self.live.remove(job)
            self.ended = [*self.ended[-3:], job]

    def perform(self, op: str, args: Json) -> Json:
        """One call; a wrong answer is kept as a failure."""
        assert self.books is not None
        with self._noting():
            if op == "advance":
                self.books.advance(args["ms"])
                return {}
            if op == "wait":
                return self._wait(args["job"])
            return self.books.do(op, **args)
        raise AssertionError("unreachable")

    def read_everything(self) -> None:
        """The depth, and every job that there is or was."""
        assert self.books is not None
        with self._noting():
            self.books.depth()
            for job in (*self.live, *self.ended):
                self.books.snapshot(job)

    def _wait(self, job: str) -> Json:
        assert self.books is not None
        state = self.books.snapshot(job).get("state", "")
        quick = self.asleep or state in ("pending", "running")
        budget_ms, began = 1 if quick else 2_000, time.monotonic()
        reply = self.books.wait(job, budget_ms, _PATIENCE_S)
        # Other checks tell that a ledger sleeps through an end; once is enough here.
        type(self).asleep |= time.monotonic() - began > 1.5
        if reply is None:
            self.subject.restart()
            raise Violation("W1" if budget_ms > 1 else "W4", "the wait was never answered")
        return reply

    @contextmanager
    def _noting(self) -> Iterator[None]:
        assert self.books is not None
        try:
            yield
        except Violation as violation:
            self.failed = True
            self.failures.append(
                Failure(
                    violation.clause,
                    violation.why,
                    self.limits,
                    self.books.program(),
                    self.books.repro(),
                    getattr(violation, "also", ()),
                    getattr(violation, "allowed", ""),
                    str(getattr(violation, "actual", "")),
                )
            )
            raise


def machine_for(subject: Subject) -> type[_Machine]:
    """The state machine of this subject: a rule per action of the law."""
    driven = subject.can("clock")
    body: dict[str, Any] = {"subject": subject, "failures": []}

    @initialize(
        max_queue=st.sampled_from((1, 2, 3, 4, 2, 3, 1, 2, 3, 4, 0, -1)),
        already=st.integers(0, 3),
        job_ttl_ms=st.sampled_from((1, 0, 2, 4)),
        max_completed=st.sampled_from((1, 0, 2, 3, -1)),
    )
    def configure(
        self: _Machine, max_queue: int, job_ttl_ms: int, max_completed: int, already: int
    ) -> None:
        self.open(Limits(max_queue, job_ttl_ms if driven else NEVER_MS, max_completed))
        # hypothesis leaves rules out of whole programs; there should be jobs all the same.
        for number in range(already):
            args = {"task_id": f"task {number}", "payload": f"payload {number}"}
            self.learn("submit", "", self.perform("submit", args))

    @invariant()
    def read_what_there_is(self: _Machine) -> None:
        if self.look and self.books is not None:
            self.read_everything()

    def teardown(self: _Machine) -> None:
        if self.books is not None and not self.failed:
            self.read_everything()

    body |= {"configure": configure, "read_what_there_is": read_what_there_is}
    body["teardown"] = teardown
    for name, action in ACTIONS.items():
        if name in _NO_CALLS or (name == "advance" and not driven):
            continue
        op = _NAMES.get(name, name)
        body[op] = _rule(op, _arguments(action.apply), subject)
    return type("GeneratedMachine", (_Machine,), body)


def _arguments(apply: Callable[..., Any]) -> dict[str, st.SearchStrategy[Any]]:
    """A strategy for each parameter of an action, by its name."""
    known: dict[str, tuple[str, st.SearchStrategy[Any]]] = {
        "job_id": ("which", st.sampled_from((0, 0, 0, 1, 1, 2, 3, 4, 5, 9))),
        "task_id": ("task_id", _TEXTS),
        "payload": ("payload", _TEXTS),
        "result": ("result", _TEXTS),
        "error": ("error", _TEXTS.filter(bool)),
        "ms": ("ms", st.integers(0, 6)),
    }
    names = list(inspect.signature(apply).parameters)[1:]
    return dict(known[name] for name in names if name in known)


def _rule(op: str, arguments: dict[str, st.SearchStrategy[Any]], subject: Subject) -> Any:
    def perform(self: _Machine, look: bool, **args: Any) -> None:
        if "which" in args:
            args["job"] = subject.aim(op, self.choose(args.pop("which")))
        self.look = look and subject.offers(op, args.get("job"))
        if subject.offers(op, args.get("job")):
            self.learn(op, args.get("job", ""), self.perform(op, args))

    perform.__name__ = op
    return cast("Any", rule)(look=st.booleans(), **arguments)(perform)


def find_failure(
    subject: Subject,
    profile: Profile = "ci",
    seed_: int | None = None,
    *,
    programs: int | None = None,
    remember: bool = True,
) -> Failure | None:
    """Run the machine on a subject: the smallest program that it answers wrongly, or None.

    Args:
        subject: fresh ledgers are made by its `configure`.
        profile: how many programs, how long.
        programs: how many, where the profile's number does not suit.
        seed_: repeats a run's choices; None: hypothesis chooses.
        remember: keep failing examples on disk and try them first the next time.

    Raises:
        HarnessError: the driver failed.
    """
    machine = machine_for(subject)
    if seed_ is not None:
        machine = seed(seed_)(machine)
    database = DirectoryBasedExampleDatabase(_DATABASE) if remember else None
    chosen = settings(PROFILES[profile], database=database)
    if programs is not None:
        chosen = settings(chosen, max_examples=programs)
    try:
        run_state_machine_as_test(machine, settings=chosen)
    except Violation:
        return machine.failures[-1]
    except Flaky as flaky:
        return _seen_once(flaky, machine.failures)
    return None


def _seen_once(flaky: Flaky, failures: list[Failure]) -> Failure | None:
    """What a subject that answers one program now so, now so, did wrong: the shortest program.

    A wrong answer is wrong though it does not come again; only a smaller program cannot be sought.
    """
    causes = flaky.exceptions if isinstance(flaky, BaseExceptionGroup) else ()
    for cause in causes:
        if isinstance(cause, HarnessError):
            raise cause
    return min(failures, key=lambda failure: len(failure.messages), default=None)
