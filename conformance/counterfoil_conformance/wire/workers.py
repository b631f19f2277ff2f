"""Q4 and T3 over the whole run: spans in which a job was pending and a worker certainly idle.

No check is needed for that, only the intervals of what was seen anyway. A job is *certainly
pending* from the return of its submit to the call of the last read that saw it pending. Whatever
else may have kept a worker busy is given the benefit of the doubt: a job from the call of its
submit (or of the last read that saw it pending) to the return of the first read that saw it ended,
and beyond, where a run may outlast the end of its job (it timed out, or crashed its worker); every
blocking call; every submit whose answer was lost. Where fewer than there are workers may have been
busy, and somebody was pending for longer than tolerance, round trip and our own lag then explain, a
worker was idle.

Once may be the machine's doing; a notification that gets lost, a worker that looks at the clock
instead of the queue, or that is gone for good, shows again and again.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final, NamedTuple

from counterfoil_conformance.wire.answer import Answer
from counterfoil_conformance.wire.jobs import Job
from counterfoil_conformance.wire.reading import Fault
from counterfoil_conformance.wire.session import Session

__all__ = ["IdleSpan", "idle_spans", "runs_over_us", "worker_faults"]

FOREVER_US: Final = 1 << 62
# A crashed worker, or one whose run was cut off, may need a moment to be there again.
COME_BACK_US: Final = 1_000_000
APART_US: Final = 1_500_000
LONG_US: Final = 600_000
OFTEN: Final = 3
PLAIN_US: Final = 900_000
SETTLED_US: Final = 5_000_000
PROMPT_US: Final = 50_000
MANY: Final = 12
# What was measured shortly before and after a span says how the machine was.
_AROUND_US: Final = 1_000_000


class IdleSpan(NamedTuple):
    """`job` was pending from `start_us` to `end_us`, and at most `busy` workers were not idle."""

    start_us: int
    end_us: int
    busy: int
    job: Job

    @property
    def length_us(self) -> int:
        """How long."""
        return self.end_us - self.start_us


class _Span(NamedTuple):
    start_us: int
    end_us: int


def worker_faults(session: Session) -> Iterator[tuple[Fault, tuple[Answer, ...]]]:
    """Q4 where workers were idle beside pending jobs; T3 too where that began with a timeout."""
    workers = session.target.limits.workers or 1
    if not session.target.exclusive:
        return
    spans = [span for span in idle_spans(session, workers) if _is_long(session, span)]
    times = _apart(spans)
    very = [span for span in times if span.length_us > LONG_US + _us(session)]
    if len(times) < OFTEN and len(very) < OFTEN - 1 and not _is_plain(session, very):
        return
    worst = max(spans, key=lambda span: span.length_us)
    why = (
        f"a job stayed pending for {worst.length_us // 1000} ms while at most {worst.busy} of "
        f"{workers} workers can have been busy; so it was {len(times)} times in this run"
    )
    shown = (worst.job.answer,)
    yield Fault("Q4", why, "no job pending while a worker is idle"), shown
    if _since_a_timeout(session, workers, spans):
        yield Fault("T3", f"since a run timed out, {why}", "every worker comes back"), shown


def idle_spans(session: Session, workers: int) -> Iterator[IdleSpan]:
    """The longest stretches in which somebody was certainly pending and a worker certainly idle."""
    jobs = sorted(session.jobs.values(), key=lambda job: job.return_us)
    busy = [(job, _occupied(session, job)) for job in jobs]
    others = [*_blocking(session), *_lost(session)]
    for job in jobs:
        mine = _Span(job.return_us, job.pending_us)
        if mine.end_us - mine.start_us > _us(session):
            rest = [span for other, span in busy if other is not job]
            yield from _idle_in(mine, [*rest, *others], workers, job)


def _is_plain(session: Session, spans: Iterable[IdleSpan]) -> bool:
    """Whether one span is so long, and the target so prompt all the while, that it is enough.

    Not at the very first: who has just been started may still be loading what its workers run.
    """
    first_us = min((job.call_us for job in session.jobs.values()), default=0)
    for span in spans:
        trips = [
            answer.trip_us
            for call, answer in session.answers
            if call.op == "snapshot"
            and span.start_us <= answer.call_us
            and answer.return_us <= span.end_us
        ]
        long = span.length_us > PLAIN_US + _us(session)
        settled = span.start_us > first_us + SETTLED_US
        if long and settled and sum(trip < PROMPT_US for trip in trips) >= MANY:
            return True
    return False


def _apart(spans: Iterable[IdleSpan]) -> list[IdleSpan]:
    """One of those that may have one cause: of each time the longest."""
    times: list[IdleSpan] = []
    for span in sorted(spans, key=lambda one: one.start_us):
        if times and span.start_us < times[-1].start_us + APART_US:
            times[-1] = max(times[-1], span, key=lambda one: one.length_us)
        else:
            times.append(span)
    return times


def _idle_in(mine: _Span, busy: Iterable[_Span], workers: int, job: Job) -> Iterator[IdleSpan]:
    """Where within `mine` fewer than `workers` of `busy` overlap."""
    near = [span for span in busy if span.start_us < mine.end_us and span.end_us > mine.start_us]
    edges = {mine.start_us, mine.end_us}
    edges |= {at for span in near for at in span if mine.start_us < at < mine.end_us}
    start_us, most = None, 0
    for left, right in pairwise(sorted(edges)):
        count = sum(span.start_us < right and span.end_us > left for span in near)
        if count < workers:
            start_us, most = (left, count) if start_us is None else (start_us, max(most, count))
        elif start_us is not None:
            yield IdleSpan(start_us, left, most, job)
            start_us = None
    if start_us is not None:
        yield IdleSpan(start_us, mine.end_us, most, job)


def _occupied(session: Session, job: Job) -> _Span:
    """The longest that a worker may have been busy with a job."""
    start_us = max(job.call_us, job.pending_us)
    seen = [at for at in (job.ended_us, job.gone_us) if at is not None]
    end_us = min(seen, default=FOREVER_US)
    if job.state == "timeout" or not seen:
        end_us = max(end_us, _run_over_us(session, job))
    elif job.state != "done" and job.kind != "failing":
        end_us += COME_BACK_US  # the failure may have been a crash
    return _Span(start_us, end_us)


def _run_over_us(session: Session, job: Job) -> int:
    """When the run of a job that timed out is over, at the latest."""
    bodies = session.target.bodies
    if job.kind == "hanging":
        return FOREVER_US
    longest_ms = max(bodies.late_ms or 0, session.target.limits.timeout_ms or 0, 10_000)
    runs_ms = {"slow": bodies.slow_ms, "other": longest_ms}
    runs_ms |= dict.fromkeys(("late", "late_failing"), bodies.late_ms)
    began_us = max(job.return_us, job.pending_us, job.started_us or 0)
    return began_us + (runs_ms.get(job.kind) or 0) * 1000 + COME_BACK_US


def runs_over_us(session: Session) -> int:
    """When every run that outlasted its budget is over, whenever it began, at the latest."""
    jobs = (job for job in session.jobs.values() if job.state == "timeout")
    ends = [_run_over_us(session, job) for job in jobs]
    return max([*ends, *(span.end_us for span in _blocking(session))], default=0)


def _blocking(session: Session) -> Iterator[_Span]:
    """Blocking calls; what was cut off by its budget may run on."""
    late_us = (session.target.bodies.late_ms or 0) * 1000
    for answer in session.blocking_calls:
        run_us = 0 if answer.ok and answer.status < 500 else late_us
        yield _Span(answer.call_us, answer.return_us + run_us + COME_BACK_US)


def _lost(session: Session) -> Iterator[_Span]:
    """Submits that may have been admitted, and nobody knows the id."""
    budget_us = (session.target.limits.timeout_ms or 60_000) * 1000
    late_us = (session.target.bodies.late_ms or 0) * 1000
    for call in session.history:
        if call.op == "submit" and call.reply is None:
            yield _Span(int(call.call_us), int(call.call_us) + budget_us + late_us + COME_BACK_US)


def _is_long(session: Session, span: IdleSpan) -> bool:
    """Whether neither tolerance nor anything measured at that time explains a span."""
    trips = (
        answer.trip_us
        for call, answer in session.answers
        if call.op == "snapshot" and span.start_us < answer.return_us + _AROUND_US
        if answer.call_us - _AROUND_US < span.end_us
    )
    lag_us = session.lag.between_us(span.start_us - _AROUND_US, span.end_us + _AROUND_US)
    return span.length_us > _us(session) + max(trips, default=0) + lag_us


def _us(session: Session) -> int:
    return int(session.tolerance_ms * 1000)


def _since_a_timeout(session: Session, workers: int, spans: list[IdleSpan]) -> bool:
    """Whether all workers ran at once before the first run timed out, and never again."""
    jobs = session.jobs.values()
    ends = [job.ended_us for job in jobs if job.state == "timeout" and job.ended_us is not None]
    if not ends or min(span.start_us for span in spans) < min(ends):
        return False
    first_us = min(ends)
    last_us = max(span.start_us for span in spans)
    return _at_once(session, 0, first_us) >= workers > _at_once(session, last_us, FOREVER_US)


def _at_once(session: Session, since_us: int, until_us: int) -> int:
    """The most jobs that were certainly running at one moment of that time."""
    runs = [
        _Span(max(job.started_us, since_us), min(job.live_us, until_us))
        for job in session.jobs.values()
        if job.started_us is not None
    ]
    real = [run for run in runs if run.start_us < run.end_us]
    return max((sum(o.start_us <= r.start_us < o.end_us for o in real) for r in real), default=0)
