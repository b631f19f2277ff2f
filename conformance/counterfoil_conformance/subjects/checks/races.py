"""Races: tiny scenarios, thousands of times, from behind a barrier inside the driver.

A pipe is far too slow to hit a window of nanoseconds, so the driver repeats each scenario by
itself and hands back the distinct histories; each is judged as if it were the only one. A scenario
gets a share of time rather than a number of turns, so a slow machine costs turns, not patience.

`before` runs in sequence on a fresh ledger, the threads at once, `after` in sequence: it reads what
is left, so that a place lost or gained in the race shows.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from counterfoil_conformance.errors import Violation
from counterfoil_conformance.oracle.findings import Judgement
from counterfoil_conformance.oracle.history import Call
from counterfoil_conformance.oracle.judge import Setting, judge
from counterfoil_conformance.subjects.base import configure_args
from counterfoil_conformance.subjects.books import CLAUSE_OF, NEVER_MS, Books
from counterfoil_conformance.subjects.python import PythonSubject
from counterfoil_conformance.subjects.recorded import framed, recorded_histories
from counterfoil_conformance.subjects.registry import Context, check
from counterfoil_spec.ledger import Limits

__all__ = ["LATENESS", "RACES", "Race", "judge_recorded", "only_late"]

Json = dict[str, Any]

_SHARE_S: Final = 0.3
_FULL_SHARE_S: Final = 6.0
# Every interleaving in Python is walked anyway (`interleavings`): chance needs less time there.
_IN_PYTHON: Final = 0.4
_CHUNK_S: Final = 0.3
_KEPT: Final = 80
# A wake-up that gets lost gets lost again, if it is given this many times as long.
_SECOND_LOOK: Final = 4
_TIMEOUT_S: Final = 60.0
_FOREVER_MS: Final = 1e12


@dataclass(frozen=True, slots=True)
class Race:
    """A scenario: limits, what to do before, at once, and after."""

    name: str
    limits: Limits
    before: tuple[Json, ...]
    threads: tuple[tuple[Json, ...], ...]
    after: tuple[Json, ...]


def _submit(label: str) -> Json:
    return {"op": "submit", "task_id": f"task {label}", "payload": f"payload {label}", "as": label}


def _on(op: str, label: str, **args: Any) -> Json:
    return {"op": op, "job": f"${label}", **args}


def _finish(label: str, result: str = "result") -> Json:
    return _on("finish", label, result=f"{result} {label}")


def _fail(label: str) -> Json:
    return _on("fail", label, error=f"failed {label}")


def _time_out(label: str) -> Json:
    return _on("timeout", label, error=f"timed out {label}")


def _start(label: str) -> Json:
    return _on("start", label)


def _reads(*labels: str) -> tuple[Json, ...]:
    return tuple(_on(op, label) for label in labels for op in ("snapshot", "result"))


def _wait(label: str, budget_ms: int) -> Json:
    return _on("wait", label, budget_ms=budget_ms)


_DEPTH: Final[Json] = {"op": "depth"}
# A wait that takes this long has slept through its wake-up; on a starved machine threads that spin
# may well keep one asleep for a while, so in a race no less than this counts as late.
_LOST_MS: Final = 1_500
_LATE_MS: Final = 1_000.0
LATENESS: Final = frozenset({"W1", "W2", "W4", "W7"})


def _limits(max_queue: int, max_completed: int = 10) -> Limits:
    return Limits(max_queue, NEVER_MS, max_completed)


RACES: Final[tuple[Race, ...]] = (
    Race(
        "two submits for the last place",
        _limits(2),
        (_submit("a"),),
        ((_submit("b"),), (_submit("c"),)),
        (_DEPTH, *_reads("a", "b", "c"), _submit("d"), _DEPTH),
    ),
    Race(
        "four submits for two places",
        _limits(2),
        (),
        tuple((_submit(k), _submit(k + k)) for k in "abcd"),
        (_DEPTH, *_reads("a", "b", "c", "d"), _submit("z"), _DEPTH),
    ),
    Race(
        "finish, timeout and fail of one job",
        _limits(1),
        (_submit("a"), _start("a")),
        ((_finish("a"),), (_time_out("a"),), (_fail("a"),)),
        (*_reads("a"), _DEPTH, _submit("b"), _submit("c"), _DEPTH),
    ),
    Race(
        "two starts and an end",
        _limits(2),
        (_submit("a"),),
        ((_start("a"),), (_start("a"),), (_finish("a"),)),
        (*_reads("a"), _DEPTH),
    ),
    Race("two starts", _limits(1), (_submit("a"),), ((_start("a"),), (_start("a"),)), _reads("a")),
    Race(
        "two takes",
        _limits(1),
        (_submit("a"),),
        ((_on("take_request", "a"),), (_on("take_request", "a"),)),
        (_on("take_request", "a"), *_reads("a")),
    ),
    Race(
        "a finish under readers",
        _limits(1),
        (_submit("a"), _start("a")),
        ((_finish("a"),), _reads("a", "a"), (_on("result", "a"), _on("snapshot", "a"))),
        _reads("a"),
    ),
    Race(
        "a failure under readers",
        _limits(1),
        (_submit("a"),),
        ((_start("a"), _fail("a")), _reads("a", "a"), _reads("a", "a")),
        _reads("a"),
    ),
    Race(
        "a finish under waiters",
        _limits(1),
        (_submit("a"),),
        ((_start("a"), _finish("a")), (_wait("a", _LOST_MS),), (_wait("a", _LOST_MS),)),
        _reads("a"),
    ),
    Race(
        "a finish and a wait",
        _limits(1),
        (_submit("a"),),
        ((_finish("a"),), (_wait("a", _LOST_MS),)),
        _reads("a"),
    ),
    Race(
        "finishes and waits in step",
        _limits(8),
        tuple(_submit(k) for k in "abcdef"),
        (
            tuple(_finish(k) for k in "abcdef"),
            tuple(_wait(k, _LOST_MS) for k in "abcdef"),
        ),
        (_DEPTH,),
    ),
    Race(
        "a place given back while depth is read",
        _limits(2),
        (_submit("a"), _submit("b")),
        ((_finish("a"), _submit("c")), (_DEPTH, _DEPTH, _submit("d")), (_fail("b"), _DEPTH)),
        (_DEPTH, _submit("e"), _submit("f"), _DEPTH),
    ),
    Race(
        "refusals while depth is read",
        _limits(1),
        (_submit("a"),),
        ((_submit("b"), _submit("c"), _submit("d")), (_DEPTH, _DEPTH, _DEPTH, _DEPTH)),
        (_DEPTH,),
    ),
    Race(
        "a refusal beside a place given back",
        _limits(1),
        (_submit("a"),),
        ((_submit("b"), _submit("c")), (_finish("a"), _submit("d"))),
        (_DEPTH, *_reads("b", "c", "d")),
    ),
    Race(
        "a place is free once the end is seen",
        _limits(1),
        (_submit("a"), _start("a")),
        ((_finish("a"),), (_on("snapshot", "a"), _submit("b")), (_on("result", "a"), _submit("c"))),
        (_DEPTH, *_reads("a", "b", "c")),
    ),
    Race(
        "two ends of one job beside submits",
        _limits(1),
        (_submit("a"), _start("a")),
        (
            (_finish("a"),),
            (_time_out("a"),),
            (_submit("b"), _on("snapshot", "a"), _submit("c"), _DEPTH),
        ),
        (_DEPTH, *_reads("a", "b", "c"), _submit("d"), _DEPTH),
    ),
    Race(
        "who was seen to end is swept",
        _limits(4, 0),
        (_submit("a"), _start("a")),
        (
            (_finish("a"),),
            (_on("snapshot", "a"), _submit("b"), _on("snapshot", "a")),
            (_on("result", "a"), _submit("c"), _on("result", "a")),
        ),
        (_DEPTH, *_reads("a")),
    ),
    Race(
        "an end and the submit that sweeps",
        _limits(4, 0),
        (_submit("a"), _submit("b"), _start("a")),
        ((_finish("a"), _submit("c"), _on("snapshot", "a")), (_finish("b"), _submit("d"))),
        (*_reads("a", "b"), _submit("e"), *_reads("a", "b", "c"), _DEPTH),
    ),
    Race(
        "eviction under readers",
        _limits(4, 1),
        (_submit("a"), _submit("b"), _finish("a"), _submit("c"), _finish("b")),
        ((_submit("d"),), _reads("a", "b"), (_finish("c"), _submit("e"))),
        (*_reads("a", "b", "c"), _submit("f"), *_reads("a", "b", "c")),
    ),
    Race(
        "eviction under a waiter",
        _limits(4, 0),
        (_submit("a"),),
        ((_finish("a"), _submit("b"), _submit("c")), (_wait("a", _LOST_MS),)),
        _reads("a"),
    ),
    Race(
        "submits from everywhere",
        _limits(64),
        (),
        tuple(tuple(_submit(f"{k}{turn}") for turn in range(3)) for k in "abcd"),
        (_DEPTH, *(_on("snapshot", f"{k}{turn}") for k in "abcd" for turn in range(3))),
    ),
)

_CLAUSES: Final = (
    "S1 S2 S3 S4 S5 S6 S8 S9 A1 A2 A3 A5 A6 A8 A10 R4 R6 R7 R9 Q1 Q2 W1 W2 W6 W7 G1 G2 G3"
)


@check(_CLAUSES, needs=("race",))
def races_that_a_barrier_starts(ctx: Context) -> None:
    """Every scenario for its share of time; each distinct history is judged."""
    for race in RACES:
        play(ctx, race)


def play(ctx: Context, race: Race) -> None:
    """One scenario for its share of time, or until it has found something."""
    share_s = _FULL_SHARE_S if ctx.is_full else _SHARE_S
    if isinstance(ctx.subject, PythonSubject):
        share_s *= _IN_PYTHON
    until, patient = time.monotonic() + share_s, True
    while (left_s := until - time.monotonic()) > 0:
        try:
            if _some_turns(ctx, race, min(left_s, _CHUNK_S), patient=patient):
                return
        except _LateOnce:
            until, patient = time.monotonic() + _SECOND_LOOK * share_s, False


class _LateOnce(Exception):
    """Waits were late, and nothing else was wrong: the machine's doing, unless it comes again."""


def _some_turns(ctx: Context, race: Race, seconds: float, *, patient: bool) -> bool:
    """Play for a while, and judge; whether something was found.

    Raises:
        _LateOnce: nothing but waits that were late, and we are `patient`.
    """
    if ctx.subject.can("race_setup"):
        ctx.subject.configure(race.limits)
        message = {
            "setup": list(race.before),
            "threads": [list(thread) for thread in race.threads],
            "after": list(race.after),
            "repeat": 1_000_000,
            "ms": int(seconds * 1000) + 1,
            "limit": _KEPT,
        }
        reply = ctx.subject.call("race", timeout_s=_TIMEOUT_S, **message)
        repro = ctx.subject.repro(
            [{"op": "configure", **configure_args(race.limits)}, {"op": "race", **message}]
        )
        histories = recorded_histories(ctx.subject.name, reply)
        if patient and not reply.get("hung") and only_late(ctx, race.limits, histories, _LATE_MS):
            raise _LateOnce
        return judge_recorded(
            ctx, race.name, race.limits, histories, reply, repro, late_ms=_LATE_MS
        )
    return any(_one_turn(ctx, race) for _ in range(20))


def _one_turn(ctx: Context, race: Race) -> bool:
    """For drivers whose `race` knows no setup: the kit does what comes before and after."""
    books = Books(ctx.subject, race.limits, ctx.works, sequential_wanted=False)
    names: dict[str, str | None] = {}
    for op in race.before:
        _perform(books, op, names)
    marked = len(books.calls)
    threads = [[_named(op, names) for op in thread] for thread in race.threads]
    ready = [[op for op in thread if op is not None] for thread in threads]
    reply = ctx.subject.call("race", timeout_s=_TIMEOUT_S, threads=ready, repeat=1)
    [middle] = recorded_histories(ctx.subject.name, reply)
    labels = {op["task_id"]: op["as"] for thread in ready for op in thread if "as" in op}
    for call in middle:
        if call.op == "submit" and call.args.get("task_id") in labels:
            names[labels[call.args["task_id"]]] = (call.reply or {}).get("job")
    for op in race.after:
        _perform(books, op, names)
    history = framed(books.calls[:marked], middle, books.calls[marked:])
    return judge_recorded(
        ctx, race.name, race.limits, [history], reply, books.repro(), late_ms=_LATE_MS
    )


def _perform(books: Books, op: Json, names: dict[str, str | None]) -> None:
    message = _named(op, names)
    if message is not None:
        words = {k: v for k, v in message.items() if k not in ("op", "as")}
        reply = books.do(message["op"], **words)
        if "as" in op:
            names[op["as"]] = reply.get("job")


def _named(op: Json, names: dict[str, str | None]) -> Json | None:
    """The operation with its job's real id; None if that submit was refused."""
    job = op.get("job", "")
    if not job.startswith("$"):
        return op
    real = names.get(job[1:])
    return None if real is None else {**op, "job": real}


def judge_recorded(  # noqa: PLR0913, PLR0917 - a recording and its circumstances
    ctx: Context,
    name: str,
    limits: Limits,
    histories: Sequence[Sequence[Call]],
    reply: Json,
    repro: str,
    late_ms: float = 0.0,
) -> bool:
    """Judge each history by itself, and say what hung; whether something was found."""
    setting = _setting(ctx, limits, late_ms)
    found = False
    for calls in histories:
        judgement = judge(calls, setting)
        _publish(ctx, name, judgement, repro)
        found |= bool(judgement.accusations)
        for call in calls:
            if call.reply is not None and call.reply.keys() == {"error"}:
                why = f"{name}: the ledger failed in {call.op}: {call.reply['error']}"
                ctx.fail(CLAUSE_OF[call.op], why, repro=repro)
                found = True
    if reply.get("hung"):
        ctx.subject.restart()
        stuck = [call for call in histories[-1] if call.return_us is None]
        ops = ", ".join(sorted({call.op for call in stuck})) or "its threads"
        clause = _clause_of_stuck(stuck)
        raise Violation(clause, f"{name}: never returned: {ops}")
    return found


def only_late(
    ctx: Context, limits: Limits, histories: Sequence[Sequence[Call]], late_ms: float = 0.0
) -> bool:
    """Whether waits that were answered late are all there is to say against these histories."""
    setting = _setting(ctx, limits, late_ms)
    broken = frozenset().union(*(judge(calls, setting).clauses for calls in histories))
    return bool(broken) and broken <= LATENESS


def _setting(ctx: Context, limits: Limits, late_ms: float = 0.0) -> Setting:
    ttl_ms = _FOREVER_MS if ctx.subject.can("clock") else limits.job_ttl_ms
    tolerance_ms = max(ctx.tolerance_ms, late_ms)
    return Setting.of_ledger(limits._replace(job_ttl_ms=int(ttl_ms)), tolerance_ms)


def _clause_of_stuck(stuck: Sequence[Call]) -> str:
    """What a call that never returns breaks: the end that does not come about, before all else."""
    ops = {call.op for call in stuck}
    if ops & {"finish", "fail", "timeout"}:
        return "S9"
    return "W2" if not ops or "wait" in ops else CLAUSE_OF[min(ops)]


def _publish(ctx: Context, name: str, judgement: Judgement, repro: str) -> None:
    judgement.publish(ctx.publish, f"{ctx.check}: {name}", repro)
