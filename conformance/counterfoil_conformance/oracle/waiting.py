"""Waiting: W1 W2 W4 W6 W7 and W3, from when an answer was due.

A waiter is due its answer at the earliest of three: when the job is known to have ended (W1, W2),
when the id is known to be gone (W7), when its budget is over (W4). It may be late by the declared
tolerance and the round trip. A live answer may not come early: the budget, less 5 ms of timer
grain, must have passed in the client's own measure, which is never shorter than the server's.

The trap is the machine. A stalled host makes every answer late, so each late wait needs a control:
the slowest other read that was in flight while it was overdue is added to what is allowed.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from counterfoil_conformance.oracle.counting import NEVER
from counterfoil_conformance.oracle.evidence import Evidence, Life, Sight
from counterfoil_conformance.oracle.findings import Bench, describe, tell_us
from counterfoil_conformance.oracle.history import Call
from counterfoil_spec.ledger import State

__all__ = ["judge_waits"]

_TIMER_GRAIN_US: Final = 5_000.0
_CONTROLS: Final = frozenset({"snapshot", "result", "depth", "start", "take_request"})
# A fault that makes every wait late is told soon enough.
_ENOUGH: Final = 50


def judge_waits(evidence: Evidence, lives: Sequence[Life], clock: str, bench: Bench) -> None:
    """Judge when every wait was answered, on one clock."""
    view = _Waits(evidence, clock, bench)
    for life in lives:
        for sight in life.sights:
            if sight.call.op == "wait":
                view.judge(life, sight)
        for call in life.unanswered:
            if call.op == "wait":
                view.judge_silence(life, call)


class _Due(NamedTuple):
    """An answer is due `at` (µs), by which clause, why, and the call that shows it."""

    at: float
    clause: str
    why: str
    proof: Call | None = None


class _Waits:
    """One clock's view of the waits."""

    def __init__(self, evidence: Evidence, clock: str, bench: Bench) -> None:
        self.allowed_us = evidence.setting.late_us
        self.bench = bench
        self._left = _ENOUGH
        self._controls = [
            call for call in evidence.reads_of(clock) if call.op in _CONTROLS and call.answered
        ]

    def judge(self, life: Life, sight: Sight) -> None:
        call, returned = sight.call, sight.call.return_us
        if returned is None:
            return
        if sight.live:
            self._judge_expired(life, sight, returned)
        ended = _ended_apart_from(life, call)
        gone = _gone_apart_from(life, call)
        due = _due(life, call, ended, gone)
        if due is not None:
            self._judge_late(life, call, returned, due)
        elif not sight.live:
            self.bench.witness("W2 W6")

    def judge_silence(self, life: Life, call: Call) -> None:
        """A client that gave up without an answer, long after the job had ended."""
        due = _due(life, call, _ended_apart_from(life, call), NEVER)
        if call.return_us is not None and due is not None:
            self._judge_late(life, call, call.return_us, due)

    def _judge_expired(self, life: Life, sight: Sight, returned: float) -> None:
        """W4: a live answer comes when the budget is over, not before and not long after."""
        call = sight.call
        budget = call.args.get("budget_ms")
        if not isinstance(budget, int | float) or isinstance(budget, bool) or budget <= 0:
            return
        waited = returned - call.call_us
        if waited < budget * 1000 - _TIMER_GRAIN_US:
            self.bench.accuse(
                "W4",
                f"a budget of {budget} ms was over after {tell_us(waited)}: the job had not ended",
                let=(describe(call),),
                calls=(life.story.submit, call),
                also=("W3",) if self._woken_by_start(life, sight, returned) else (),
                job=life.story.job,
            )
            return
        at = call.call_us + budget * 1000
        self._judge_stale(life, sight, at)
        why = f"its budget of {budget} ms was over at {tell_us(at)}"
        self._judge_late(life, call, returned, _Due(at, "W4", why))

    def _woken_by_start(self, life: Life, sight: Sight, returned: float) -> bool:
        """Whether an early answer may be the start's doing: nobody saw the job run long before."""
        if sight.was != State.RUNNING.rank or _ran_before(life, sight.call):
            return False
        return not any(_shows_start(s, returned - self.allowed_us) for s in life.sights)

    def _judge_stale(self, life: Life, sight: Sight, at: float) -> None:
        """W4: what is told when the budget is over is the state then, not that of the beginning."""
        began = next((s for s in life.sights if _shows_start(s, at - self.allowed_us)), None)
        if sight.was == State.PENDING.rank and began is not None:
            self.bench.accuse(
                "W4",
                f"it told pending when its budget was over, {tell_us(at)}; the job had begun",
                let=(describe(began.call), describe(sight.call)),
                calls=(life.story.submit, began.call, sight.call),
                job=life.story.job,
            )

    def _judge_late(self, life: Life, call: Call, returned: float, due: _Due) -> None:
        late = returned - due.at
        if late <= self.allowed_us:
            self.bench.witness({"W2": "W2 W6"}.get(due.clause, due.clause))
            return
        if self._left <= 0:
            return
        self._left -= 1
        control = self._control(due.at, returned)
        if late <= self.allowed_us + control:
            self.bench.undecided.setdefault(
                due.clause, f"a wait was {tell_us(late)} late, but so was everything else then"
            )
            return
        meant = (
            f"late mean more than {tell_us(self.allowed_us)} (tolerance and round trip) and "
            f"{tell_us(control)} (the slowest other read meanwhile)"
        )
        proof = (describe(due.proof),) if due.proof else ()
        self.bench.accuse(
            due.clause,
            f"{due.why}, and it was answered {tell_us(late)} later",
            let=(*proof, describe(call), meant),
            calls=(life.story.submit, due.proof, call),
            job=life.story.job,
            beyond_us=late - self.allowed_us - control,
        )

    def _control(self, start: float, end: float) -> float:
        """How long the slowest other read took that was in flight between the two instants."""
        taken = [
            call.until_us - call.call_us
            for call in self._controls
            if call.call_us <= end and call.until_us >= start
        ]
        return max(taken, default=0.0)


def _due(life: Life, call: Call, ended: float, gone: float) -> _Due | None:
    """When the answer was due because of what is known of the job, if anything is."""
    proof = life.first_end if life.first_end is not call else None
    if gone < call.call_us:
        return _Due(call.call_us, "W7", "the id was gone before the wait", life.first_gone)
    if ended < call.call_us:
        return _Due(call.call_us, "W1", "the job had ended before the wait", proof)
    if ended < NEVER:
        return _Due(ended, "W2", f"the job had ended by {tell_us(ended)}", proof)
    return None


def _shows_start(sight: Sight, by: float) -> bool:
    """Whether the sight proves that the job was running, or beyond, by that instant."""
    return (sight.then or 0) >= State.RUNNING.rank and sight.call.until_us < by


def _ran_before(life: Life, call: Call) -> bool:
    """Whether a read that returned before the call had seen the job running: no start woke it."""
    return any(
        (sight.then or 0) >= 1 and (sight.call.return_us or NEVER) < call.call_us
        for sight in life.sights
    )


def _ended_apart_from(life: Life, wait: Call) -> float:
    """When the job is known to have ended by, from the other calls alone."""
    if life.first_end is not wait:
        return life.ended_by
    ends = [s.call.until_us for s in life.sights if s.ended and s.call is not wait]
    return min(ends, default=NEVER)


def _gone_apart_from(life: Life, wait: Call) -> float:
    return life.gone_by if life.first_gone is not wait else NEVER
