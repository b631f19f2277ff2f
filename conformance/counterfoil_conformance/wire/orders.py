"""Orders that only the whole run shows: who started first (Q4), who was evicted first (R5).

Both are SHOULDs, and both are judged from what was certainly earlier: of two jobs one was admitted
first when its submit returned before the other's was called, and so for ends and for last reads.
"""

from collections import defaultdict
from collections.abc import Iterator

from counterfoil_conformance.wire.answer import Answer
from counterfoil_conformance.wire.reading import Fault
from counterfoil_conformance.wire.session import Job, Session

__all__ = ["order_faults"]


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
            if earlier.return_us < later.call_us and earlier.pending_us > (later.started_us or 0):
                why = f"{later.id} started before {earlier.id}, which was admitted first"
                fault = Fault("Q4", why, "starts in the order of admission", should=True)
                return fault, (earlier.answer, later.answer)
    return None


def _spared(session: Session, jobs: list[Job]) -> tuple[Fault, tuple[Answer, ...]] | None:
    """R5: a job is gone while one that is older in every order is still there."""
    reads: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for call, answer in session.answers:
        if call.job is not None and call.op != "submit" and answer.status != 404:
            reads[call.job].append((answer.call_us, answer.return_us))
    gone = [job for job in jobs if job.gone_us is not None and job.ended_us is not None]
    there = [job for job in jobs if job.ended_us is not None and reads[job.id]]
    witnessed = 0
    for victim in gone:
        assert victim.gone_us is not None
        last_use_us = max((call for call, _ in reads[victim.id]), default=victim.return_us)
        for older in there:
            if older.call_us >= victim.call_us:
                break
            witnessed += 1
            found = [call for call, _ in reads[older.id] if call > victim.gone_us]
            before = [returned for _, returned in reads[older.id] if returned < last_use_us]
            used = max(
                (returned for call, returned in reads[older.id] if call < victim.gone_us),
                default=older.return_us,
            )
            is_older = older.return_us < victim.call_us and (older.ended_us or 0) < victim.live_us
            if found and before and is_older and used < last_use_us:
                session.odd_order = True
                why = f"{victim.id} is gone, and {older.id}, which is older, is still there"
                return Fault("R5", why, "the oldest go first", should=True), (
                    older.answer,
                    victim.answer,
                )
    if witnessed:
        session.ok("R5", len(gone))
    return None
