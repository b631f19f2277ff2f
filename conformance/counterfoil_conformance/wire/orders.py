"""Orders that only the whole run shows: who started first (Q4), who was evicted first (R5).

Both are SHOULDs, and both are judged from what was certainly earlier: of two jobs one was admitted
first when its submit returned before the other's was called, and so for ends and for last reads.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from counterfoil_conformance.wire.answer import Answer
from counterfoil_conformance.wire.reading import Fault
from counterfoil_conformance.wire.session import Job, Session

__all__ = ["order_faults"]

_BREATH_US: Final = 100_000


def order_faults(session: Session) -> Iterator[tuple[Fault, tuple[Answer, ...]]]:
    """At most one fault of each order, with the answers that show it."""
    jobs = sorted(session.jobs.values(), key=lambda job: job.call_us)
    for find in (_overtaken, _spared):
        found = find(session, jobs)
        if found is not None:
            yield found


def _overtaken(_: Session, jobs: list[Job]) -> tuple[Fault, tuple[Answer, ...]] | None:
    """Q4: a job seen pending after one that was admitted later had been seen started."""
    started = [job for job in jobs if job.started_us is not None]
    for later in started:
        for earlier in jobs:
            if earlier.call_us >= later.call_us:
                break
            # Two workers may take a breath between the line and the run, one a longer one.
            since_us = (later.started_us or 0) + _BREATH_US
            if earlier.return_us < later.call_us and earlier.pending_us > since_us:
                why = f"{later.id} started before {earlier.id}, which was admitted first"
                fault = Fault("Q4", why, "starts in the order of admission", should=True)
                return fault, (earlier.answer, later.answer)
    return None


@dataclass(slots=True)
class _Reads:
    """The reads that found one job, in the order of their calls; times in us."""

    calls: list[int] = field(default_factory=list)
    latest_returns: list[int] = field(default_factory=list)  # of the reads up to each of these

    def add(self, answer: Answer) -> None:
        before = self.latest_returns[-1] if self.latest_returns else answer.return_us
        self.calls.append(answer.call_us)
        self.latest_returns.append(max(before, answer.return_us))

    def used_us(self, until_us: int) -> int | None:
        """When the last use that was called before that moment was over."""
        count = bisect_left(self.calls, until_us)
        return self.latest_returns[count - 1] if count else None


def _spared(session: Session, jobs: list[Job]) -> tuple[Fault, tuple[Answer, ...]] | None:
    """R5: a job is gone while one that is older in every order is still there."""
    reads: dict[str, _Reads] = defaultdict(_Reads)
    for call, answer in sorted(session.answers, key=lambda pair: pair[1].call_us):
        if call.job is not None and call.op != "submit" and answer.status != 404:
            reads[call.job].add(answer)
    gone = [job for job in jobs if job.gone_us is not None and job.ended_us is not None]
    there = [job for job in jobs if job.ended_us is not None and job.id in reads]
    witnessed = 0
    for victim in gone:
        assert victim.gone_us is not None
        found = reads.get(victim.id)
        last_use_us = found.calls[-1] if found else victim.return_us
        for older in there:
            if older.call_us >= victim.call_us:
                break
            witnessed += 1
            used_us = reads[older.id].used_us(victim.gone_us)
            if (
                used_us is not None
                and used_us < last_use_us
                and reads[older.id].calls[-1] > victim.gone_us
                and older.return_us < victim.call_us
                and (older.ended_us or 0) < victim.live_us
            ):
                session.odd_order = True
                why = f"{victim.id} is gone, and {older.id}, which is older, is still there"
                return Fault("R5", why, "the oldest go first", should=True), (
                    older.answer,
                    victim.answer,
                )
    if witnessed:
        session.ok("R5", len(gone))
    return None
