"""Stress: a crew of threads on one ledger, everything they did recorded and judged.

4 submitters, 2 runners, 3 pollers and 2 waiters, as in the stress test the contract comes from;
with little room (refusals and evictions all the time) and with much, with runners that work for a
millisecond and runners that do not. At the end the ledger is at rest: depth is 0, the whole bound
can be admitted, and what is retained is terminal.

The trap is a wait that is late once. Near the end of a play nobody else is at work whose reads
would show that the machine stood still, and on a busy one a thread may be kept from its core for
a second. So a play in which nothing but waits was late is played again: a wake-up that gets lost
gets lost again.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from counterfoil_conformance.oracle.history import Call
from counterfoil_conformance.subjects.books import NEVER_MS
from counterfoil_conformance.subjects.checks.races import judge_recorded, only_late
from counterfoil_conformance.subjects.recorded import framed, recorded_histories
from counterfoil_conformance.subjects.registry import Context, check
from counterfoil_spec.ledger import Limits

_CREW: Final = {"submitters": 4, "runners": 2, "pollers": 3, "waiters": 2}
_ROUNDS: Final = (
    (Limits(32, NEVER_MS, 500), 1),
    (Limits(4, NEVER_MS, 5), 0),
    (Limits(8, NEVER_MS, 40), 1),
)
_SECOND_LOOKS: Final = 2
_CLAUSES: Final = (
    "S1 S2 S3 S4 S5 S6 S8 S9 A1 A2 A3 A5 A6 A8 A10 A11 R4 R6 R7 R9 Q1 Q2 W1 W2 W6 W7 G1 G2 G3"
)


@check(_CLAUSES, needs=("stress",))
def a_crew_of_threads_on_one_ledger(ctx: Context) -> None:
    """Everybody at once; then, at rest, the books must balance."""
    for limits, runner_ms in _ROUNDS:
        name = f"queue {limits.max_queue}, runners of {runner_ms} ms"
        played = _play(ctx, limits, runner_ms)
        for _ in range(_SECOND_LOOKS):
            if played.reply.get("hung") or not only_late(ctx, limits, [played.history]):
                break
            played = _play(ctx, limits, runner_ms)
        judge_recorded(ctx, name, limits, [played.history], played.reply, played.repro)


class _Played(NamedTuple):
    """What came of one play: the history, the driver's answer, how to see it again."""

    history: Sequence[Call]
    reply: dict[str, Any]
    repro: str


def _play(ctx: Context, limits: Limits, runner_ms: int) -> _Played:
    """One crew on a fresh ledger, and the ledger at rest afterwards."""
    ms, most = (3_000, 40_000) if ctx.is_full else (400, 5_000)
    books = ctx.books(limits)
    books.sequential = None
    message = {**_CREW, "ms": ms, "runner_ms": runner_ms, "max_calls": most}
    books.messages.append({"op": "stress", **message})
    repro = books.repro()
    reply = ctx.subject.call("stress", timeout_s=60.0 + ms / 1000, **message)
    [crew] = recorded_histories(ctx.subject.name, reply)
    before = len(books.calls)
    if not reply.get("hung"):
        jobs = [str((call.reply or {}).get("job")) for call in crew if call.op == "submit"]
        for job in [job for job in jobs if job != "None"][-20:]:
            books.snapshot(job)
        _expect_rest(ctx, books.depth())
        for number in range(limits.max_queue + 1):
            books.submit(f"after {number}")
        books.depth()
    history = framed([], crew, books.calls[before:])
    ctx.opened.remove(books)
    return _Played(history, reply, repro)


def _expect_rest(ctx: Context, depth: int) -> None:
    if depth == 0:
        ctx.ok("A11")
    else:
        why = "every admitted job has ended, so depth is 0"
        ctx.fail("A11", why, allowed="0", actual=str(depth))
