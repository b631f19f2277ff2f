"""Retention: who may be gone, and who must be (R1 R2 R3 R4 R9 A10).

Nobody sees an eviction. What is seen is that an id was still found at one time and unknown at a
later one; the eviction lies between, and (by count always, by age in a ledger) inside a submit.

*Must be gone.* By age, once a submit that began after the job was surely past its TTL has returned.
By count, when an admitted submit returns, at most `max_completed` of those that were terminal
before its call remain: so we count those certainly terminal before the call that were found by a
read that began after the return.

*May not be gone.* Let E be jobs whose evictions all lie between t1 and t2 and none of which age can
explain. Consider the instant of the last of these evictions. It was by count, so `max_completed`
terminal jobs remained. They are among those that may have completed by t2 and were not certainly
gone before t1, E itself excepted. Are these fewer than `max_completed`, no correct ledger did it.
A second bound replaces those from before: of the jobs terminal before an earlier admitted submit at
most `max_completed` were left, so E cannot outnumber the completions since.

The trap: a submit may evict from its call to its return, also a refused one, also, when its answer
was lost, at any later time; and jobs that nobody told us of count as terminal when that helps.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from counterfoil_conformance.oracle.counting import NEVER, count_dominating, just_after, just_before
from counterfoil_conformance.oracle.evidence import Evidence, Life, Sight, issued_id
from counterfoil_conformance.oracle.findings import Bench, describe, tell_us
from counterfoil_conformance.oracle.history import Call

__all__ = ["judge_retention"]


def judge_retention(evidence: Evidence, lives: Sequence[Life], clock: str, bench: Bench) -> None:
    """Judge what was found too late and what was gone too early, on one clock."""
    view = _Retention(evidence, lives, clock, bench)
    view.judge_ages()
    view.judge_counts()
    view.judge_losses()


@dataclass(slots=True, eq=False)
class _Loss:
    """A job that was gone: its eviction took place between `start` and `end`."""

    life: Life
    start: float
    end: float
    by_age: bool


class _Submits:
    """The submits of one clock, as the places where evictions happen."""

    def __init__(self, evidence: Evidence, clock: str) -> None:
        mine = [call for call in evidence.submits if call.clock_id == clock]
        mine.sort(key=lambda call: call.call_us)
        self.anywhere = len(mine) < len(evidence.submits)
        self._calls = [call.call_us for call in mine]
        self._latest = list(accumulate((call.until_us for call in mine), max))
        self._soonest_return = list(accumulate((c.until_us for c in reversed(mine)), min))[::-1]
        self._by_return = sorted((call.until_us, call.call_us) for call in mine)
        self._returns = [returned for returned, _ in self._by_return]
        starts = [called for _, called in self._by_return]
        self._soonest = list(accumulate(reversed(starts), min))[::-1]
        admitted = [call for call in mine if issued_id(call) is not None]
        self.admitted = admitted
        self._admitted_calls = [call.call_us for call in admitted]
        self._first_return = list(accumulate((c.until_us for c in reversed(admitted)), min))[::-1]
        ended = sorted((call.until_us, call.call_us) for call in admitted)
        self._admitted_returns = [returned for returned, _ in ended]
        self._last_call = list(accumulate((called for _, called in ended), max))

    def last_instant(self, stamp: float) -> float:
        """The last instant not after `stamp` that lies in a submit; -inf if none does."""
        index = bisect_right(self._calls, stamp)
        if self.anywhere:
            return stamp
        return min(stamp, self._latest[index - 1]) if index else -NEVER

    def first_instant(self, stamp: float) -> float:
        """The first instant not before `stamp` that lies in a submit; inf if none does."""
        index = bisect_left(self._returns, stamp)
        if self.anywhere:
            return stamp
        return max(stamp, self._soonest[index]) if index < len(self._returns) else NEVER

    def swept_by(self, stamp: float) -> float:
        """The first return of an admitted submit that was called after `stamp`; inf if none."""
        index = bisect_right(self._admitted_calls, stamp)
        return self._first_return[index] if index < len(self._first_return) else NEVER

    def any_by(self, stamp: float) -> float:
        """The first return of any submit, also a refused one, called after `stamp`."""
        index = bisect_right(self._calls, stamp)
        return self._soonest_return[index] if index < len(self._soonest_return) else NEVER

    def called_before(self, stamp: float) -> float:
        """The last call of an admitted submit that returned before `stamp`; -inf if none."""
        index = bisect_left(self._admitted_returns, stamp)
        return self._last_call[index - 1] if index else -NEVER


class _Retention:
    """One clock's view of what was retained."""

    def __init__(self, evidence: Evidence, lives: Sequence[Life], clock: str, bench: Bench) -> None:
        self.setting = evidence.setting
        self.bench = bench
        self.submits = _Submits(evidence, clock)
        self.lives = lives
        self.swept = {id(life): self._swept_by_age(life.ended_by) for life in lives}
        stamps = [call.call_us for call in evidence.submits if call.clock_id == clock]
        stamps += [sight.call.call_us for life in lives for sight in life.sights]
        self.begin = min(stamps, default=0.0)
        self.lost = [call.call_us if call.clock_id == clock else -NEVER for call in evidence.lost]

    def _swept_by_age(self, ended_by: float) -> float:
        """When a job that ended by then is surely gone by age."""
        age = self.setting.surely_expired_us
        return NEVER if age is None or ended_by == NEVER else self.submits.swept_by(ended_by + age)

    # Found too late

    def judge_ages(self) -> None:
        """R3: found after a submit that began when the job was past its TTL has returned."""
        for life in self.lives:
            if self.swept[id(life)] >= NEVER:
                continue
            if life.found_until <= self.swept[id(life)]:
                self.bench.witness("R3", int(life.asked_until > self.swept[id(life)]))
                continue
            if self.bench.enough("R3"):
                continue
            submit = next(
                call
                for call in self.submits.admitted
                if call.until_us < life.found_until
                and call.call_us > life.ended_by + (self.setting.surely_expired_us or 0)
            )
            self._accuse(
                life,
                "R3",
                f"the job was found though a submit has returned that was called "
                f"{tell_us(submit.call_us - life.ended_by)} or more after it had ended; its TTL is "
                f"{self.setting.job_ttl_ms} ms",
                (life.first_end, submit, life.last_found),
            )

    def judge_counts(self) -> None:
        """R4: when an admitted submit returns, not too many terminal jobs remain."""
        if self.setting.max_completed is None:
            return
        keep = max(self.setting.max_completed, 0)
        points = [(life.ended_by, life.found_until) for life in self.lives]
        after = [
            (just_before(call.call_us), just_after(call.until_us)) for call in self.submits.admitted
        ]
        found = count_dominating(points, after)
        asked = count_dominating([(life.ended_by, life.asked_until) for life in self.lives], after)
        for call, left, probed in zip(self.submits.admitted, found, asked, strict=True):
            if left > keep:
                self._accuse_surplus(call, keep)
            elif probed > keep:
                self.bench.witness("R4")

    def _accuse_surplus(self, call: Call, keep: int) -> None:
        if self.bench.enough("R4"):
            return
        left = [
            life
            for life in self.lives
            if life.ended_by < call.call_us and life.found_until > call.until_us
        ]
        self.bench.accuse(
            "R4",
            f"{len(left)} jobs that were terminal before the submit was called were found after it "
            f"had returned; at most {keep} may remain",
            let=(
                describe(call),
                *(f"{life.story.job} have ended by {tell_us(life.ended_by)}" for life in left[:6]),
            ),
            calls=(call, *(c for life in left for c in (life.first_end, life.last_found))),
        )

    # Gone too early

    def judge_losses(self) -> None:
        """R1, R9, R2, A10: gone though neither age nor count can have evicted the job."""
        losses = [self._loss(life) for life in self.lives if life.gone_by < NEVER]
        self._witness_stay()
        suspects = []
        for loss in losses:
            if loss.life.ended_from > loss.life.gone_by:
                self._accuse_loss(loss, "it was certainly live when it was gone")
            elif not loss.by_age:
                suspects.append(loss)
        if not self.setting.exclusive:
            return
        suspects = [loss for loss in suspects if not self._impossible(loss)]
        if self.setting.max_completed is not None:
            self._judge_excess(suspects, max(self.setting.max_completed, 0))

    def _loss(self, life: Life) -> _Loss:
        start = self.submits.first_instant(max(life.ended_from, life.found_until))
        end = self.submits.last_instant(life.gone_by)
        return _Loss(life, start, max(end, -NEVER), self._may_be_old(life, end))

    def _may_be_old(self, life: Life, end: float) -> bool:
        """Whether age may have evicted the job: over the wire at any time, else in a submit."""
        young = self.setting.surely_young_us
        if young is None:
            return True
        completed = life.ended_from
        if not self.setting.visible:
            # The server may have read its clock a while before it published the end.
            completed -= self.setting.tolerance_ms * 1000
        return (life.gone_by if self.setting.wire else end) - completed > young

    def _impossible(self, loss: _Loss) -> bool:
        """No submit took place between the last that was seen of the job and its absence."""
        if loss.start <= loss.end:
            return False
        self._accuse_loss(
            loss,
            "no submit was in flight between its last sight and its absence: none evicted it",
        )
        return True

    def _judge_excess(self, losses: list[_Loss], keep: int) -> None:
        """R9 by count: see the second paragraph of the module's essay."""
        windows = [(loss.start, loss.end) for loss in losses]
        windows += [(-NEVER, loss.end) for loss in losses]
        left = self._at_most_left(windows, keep)
        inside = count_dominating(
            [(loss.end, loss.start) for loss in losses], [(end, start) for start, end in windows]
        )
        for index, (start, end) in enumerate(windows):
            if left[index] - inside[index] >= keep or self.bench.enough("R9"):
                continue
            loss = losses[index % len(losses)]
            group = [other for other in losses if start <= other.start and other.end <= end]
            self._accuse_loss(
                loss,
                f"of {left[index]} jobs that may have been terminal {inside[index]} were evicted, "
                f"none by age, and eviction by count leaves {keep}",
                group,
            )

    def _at_most_left(self, windows: list[tuple[float, float]], keep: int) -> list[float]:
        """For each (t1, t2): how many terminal jobs may have been there between, evicted or not."""
        lives = self.lives
        gone = [(life.ended_from, min(life.gone_by, self.swept[id(life)])) for life in lives]
        gone += [(stamp, NEVER) for stamp in self.lost]
        there = count_dominating(gone, [(end, start) for start, end in windows])
        since = [self.submits.called_before(start) for start, _ in windows]
        fresh = [(life.ended_from, life.ended_by) for life in lives]
        fresh += [(stamp, NEVER) for stamp in self.lost]
        new = count_dominating(
            fresh, [(end, call) for call, (_, end) in zip(since, windows, strict=True)]
        )
        before = self._from_before()
        forgotten = self._swept_by_age(self.begin)
        if self.setting.gone_by_us is not None:
            forgotten = min(forgotten, self.setting.gone_by_us)
        answers: list[float] = []
        for index, (start, _) in enumerate(windows):
            first = there[index] + self.setting.live_before
            first_bound = first + (before if start <= forgotten else 0)
            second_bound = new[index] + keep + self.setting.live_before
            usable = since[index] > -NEVER
            answers.append(min(first_bound, second_bound) if usable else first_bound)
        return answers

    def _from_before(self) -> float:
        """How many terminal jobs of before the history may still be retained."""
        return NEVER if self.setting.ended_before is None else self.setting.ended_before

    def _accuse_loss(self, loss: _Loss, why: str, group: Sequence[_Loss] = ()) -> None:
        life = loss.life
        clause = self._clause_of_loss(loss)
        also = ("R6",) if clause == "R9" else ()
        calls = [life.last_live, life.last_found, life.first_gone]
        calls += [c for other in group[:6] for c in (other.life.last_found, other.life.first_gone)]
        self._accuse(life, clause, why, calls, also)

    def _clause_of_loss(self, loss: _Loss) -> str:
        life, nowhere = loss.life, loss.start > loss.end
        only_its_own = nowhere or loss.end <= life.admitted_by
        if only_its_own and not any(sight.found for sight in life.sights):
            return "A10"
        if life.ended_from > life.gone_by:
            return "R1"
        age = self.setting.surely_young_us
        if nowhere and age is not None and life.gone_by - life.ended_from > age:
            return "R2"
        last = max((s for s in life.sights if s.found), key=_call_us, default=None)
        return "R1" if last is not None and last.live and not last.ended else "R9"

    def _accuse(
        self,
        life: Life,
        clause: str,
        why: str,
        calls: Sequence[Call | None],
        also: tuple[str, ...] = (),
    ) -> None:
        shown: list[Call] = []
        for call in (life.story.submit, *calls):
            if call is not None and call not in shown:
                shown.append(call)
        self.bench.accuse(
            clause,
            why,
            let=[describe(call) for call in shown[:8]],
            calls=shown,
            also=also,
            job=life.story.job,
        )

    def _witness_stay(self) -> None:
        """Count the jobs that outlived a sweep (live ones, R1; terminal ones, R9) or their time."""
        old_us = self.setting.surely_expired_us or NEVER
        keeps_none = self.setting.max_completed is not None and self.setting.max_completed <= 0
        for life in self.lives:
            last_us = min(life.live_until, life.found_until)
            swept = self.submits.any_by(life.admitted_by)
            self.bench.witness("R1", int(last_us > min(swept, life.admitted_by + old_us)))
            if life.ended_by < NEVER:
                # Where none is retained, nothing but the absence of a submit keeps a job.
                later = life.ended_by if keeps_none else self.submits.swept_by(life.ended_by)
                self.bench.witness("R9 R6", int(life.found_until > later))
            self.bench.witness("A10", int(any(s.found for s in life.sights)))
            absent = [s for s in life.sights if s.found is False]
            if life.gone_by < NEVER:
                self.bench.witness("R7 S8", sum(_call_us(s) > life.gone_by for s in absent))
                self.bench.witness("G3", sum(s.call.op == "result" for s in absent))


def _call_us(sight: Sight) -> float:
    return sight.call.call_us
