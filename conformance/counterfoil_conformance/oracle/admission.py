"""Admission: A1 to A6 and A11, from how many jobs are certainly and possibly live.

For each job let C be the time it was certainly live, P the time it was possibly live (see
`evidence`). At any instant depth is at least the number of C's that cover it and, if nobody else
uses the ledger, at most the number of P's. So, without knowing any order:

- more than `max_queue` C's over one instant break A2;
- a 202 is wrong (A3) if at *every* instant of its call the C's fill the queue;
- a 429 is wrong (A3) if at *every* instant of its call the P's leave a place;
- a depth is wrong (A1) if it is below every C count, or above every P count, of its call.

A submit whose answer was lost is possibly live from its call on, for ever: it is never certain that
it was not admitted. A 429 for a body that might have been refused anyway proves nothing.
"""

from collections.abc import Sequence

from counterfoil_conformance.oracle.counting import NEVER, StepFunction
from counterfoil_conformance.oracle.evidence import Evidence, Life, issued_id
from counterfoil_conformance.oracle.findings import Bench, describe, tell_us
from counterfoil_conformance.oracle.history import Call

__all__ = ["judge_admission"]


def judge_admission(evidence: Evidence, lives: Sequence[Life], clock: str, bench: Bench) -> None:
    """Judge every submit and every read of depth, on one clock."""
    _Admission(evidence, lives, clock, bench).judge()


def is_refusal(call: Call) -> bool:
    """Whether the submit was told that the queue is full."""
    return (call.reply or {}).get("refused") is True


class _Admission:
    """One clock's view of depth."""

    def __init__(self, evidence: Evidence, lives: Sequence[Life], clock: str, bench: Bench) -> None:
        setting = evidence.setting
        self.bench = bench
        self.exclusive = setting.exclusive
        self.bound = setting.max_queue
        self.submits = [call for call in evidence.submits if call.clock_id == clock]
        self.depths = [call for call in evidence.depths if call.clock_id == clock]
        self.lives = lives
        lost = [
            (call.call_us if call.clock_id == clock else -NEVER, NEVER) for call in evidence.lost
        ]
        self.certain = StepFunction((life.certainly_live for life in lives), open_ends=True)
        self.possible = StepFunction(
            [*(life.possibly_live for life in lives), *lost],
            open_ends=False,
            base=setting.live_before,
        )
        self.live_before = setting.live_before
        self.lost = evidence.lost

    def judge(self) -> None:
        for call in self.depths:
            self._judge_depth(call)
        if self.bound is None:
            return
        for call in self.submits:
            if issued_id(call) is not None:
                self._judge_admitted(call, self.bound)
            elif is_refusal(call):
                self._judge_refused(call, self.bound)
        self._judge_bound(self.bound)
        self._witness_turnover(self.bound)

    def _judge_bound(self, bound: int) -> None:
        broken = self.certain.first_above(max(bound, 0))
        if broken is None:
            return
        start, end = broken
        live = [life for life in self.lives if _covers(life, start, end)]
        self.bench.accuse(
            "A2",
            f"{len(live)} jobs were certainly live at once, and the bound is {bound}",
            let=(
                f"t be any instant between {tell_us(start)} and {tell_us(end)}",
                *(_certainly_live(life) for life in live[:8]),
            ),
            calls=[
                call
                for life in live
                for call in (life.story.submit, life.last_live, life.first_end)
            ],
        )

    def _judge_admitted(self, call: Call, bound: int) -> None:
        if bound <= 0:
            self._accuse(call, "A4", "a bound of 0 or less admits nothing", ("A2", "A3"), [])
            return
        if self.certain.least(call.call_us, call.until_us) < bound:
            self.bench.witness("A3")
            if self.possible.at(call.until_us) >= bound:
                self.bench.witness("A2")
            return
        if self.bench.enough("A3"):
            return
        holders = [life for life in self.lives if _covers(life, call.call_us, call.call_us)]
        self._accuse(
            call,
            "A3",
            f"it was admitted though at every instant of its call {bound} other jobs were "
            "certainly live",
            ("A2",),
            [_certainly_live(life) for life in holders[:8]],
            [other for life in holders for other in (life.story.submit, life.last_live)],
        )

    def _judge_refused(self, call: Call, bound: int) -> None:
        if bound <= 0:
            self.bench.witness("A3 A4")
            return
        if not self.exclusive or call.args.get("valid") is False:
            return
        most = self.possible.most(call.call_us, call.until_us)
        if most >= bound:
            self.bench.witness("A2 A3 A6")
            return
        if self.bench.enough("A3"):
            return
        holders = [life for life in self.lives if _touches(life, call)]
        filled = self.certain.first_above(bound - 1)
        leaked = filled is not None and filled[0] < call.call_us
        also = (*(("A5",) if leaked else ()), *(("A11",) if most == 0 and leaked else ()))
        self._accuse(
            call,
            "A3",
            f"it was refused though at no instant of its call more than {most} of {bound} places "
            "can have been taken",
            also,
            [_possibly_live(life) for life in holders[:8]]
            + ([f"{self.live_before} jobs be live from before"] if self.live_before else [])
            + (["every other job have ended, so that its place is free (A5)"] if leaked else []),
            [other for life in holders for other in (life.story.submit, life.first_end)],
        )

    def _judge_depth(self, call: Call) -> None:
        depth = (call.reply or {}).get("depth")
        if not isinstance(depth, int):
            return
        least = self.certain.least(call.call_us, call.until_us)
        most = self.possible.most(call.call_us, call.until_us)
        if depth < 0 or (self.bound is not None and depth > max(self.bound, 0)):
            self._accuse(call, "A2", f"depth stays within 0 and {self.bound}", (), [])
        elif depth < least:
            self._accuse(call, "A1", f"at least {least} jobs were live throughout", (), [])
        elif self.exclusive and depth > most:
            self._accuse(call, "A1", f"never more than {most} jobs can have been live", (), [])
        else:
            self.bench.witness("A1")

    def _accuse(  # noqa: PLR0913, PLR0917 - the parts of an accusation
        self,
        call: Call,
        clause: str,
        why: str,
        also: tuple[str, ...],
        let: list[str],
        calls: Sequence[Call | None] = (),
    ) -> None:
        self.bench.accuse(clause, why, let=(describe(call), *let), calls=(call, *calls), also=also)

    def _witness_turnover(self, bound: int) -> None:
        """Count the admissions that only places given back can explain (A5, A11)."""
        admitted = sum(issued_id(call) is not None for call in self.submits)
        self.bench.witness("A5", admitted - max(bound, 0))


def _covers(life: Life, start: float, end: float) -> bool:
    """Whether the job was certainly live at every instant in [start, end]."""
    since, until = life.certainly_live
    if start == end:
        return since < start and end < until
    return since <= start and end <= until


def _touches(life: Life, call: Call) -> bool:
    """Whether the job was possibly live at some instant of the call."""
    since, until = life.possibly_live
    return since <= call.until_us and call.call_us <= until


def _certainly_live(life: Life) -> str:
    since, until = life.certainly_live
    return f"{life.story.job} be live from {tell_us(since)} to {tell_us(until)} at least"


def _possibly_live(life: Life) -> str:
    since, until = life.possibly_live
    return f"{life.story.job} be live from {tell_us(since)} to {tell_us(until)} at most"
