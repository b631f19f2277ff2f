"""Retention for any number of jobs: an induction over steps, by one tracked job and a summary.

Two kinds of lemma. *Ties*: on ledgers of two and three shown jobs, summarising after the real
action gives what the summary's own action gives. *Steps*: from any summary in which `is_summary`
holds, whatever the counts, every action leads to one in which it holds, and the tracked job's fate
is what the clauses say. So however many jobs there are and however long the history: a live job is
never evicted, a terminal one stays as it is until it is due, then goes with the next sweep and
does not come back, and the count bound does not wear off with use.

A sweep, and what others do, cannot tell pending from running, nor one terminal state from another:
there the tracked job is running, done or gone.
"""

from typing import NamedTuple

from counterfoil_spec import ledger as law
from counterfoil_spec.ledger import Job, Ledger, Limits
from counterfoil_spec.lemmas.shown import (
    ABSENT,
    DONE,
    EARLY,
    LATE,
    PENDING,
    RUNNING,
    TIMEOUT,
    WORLD,
    Shown,
    World,
    act,
    in_completion_order,
    is_job,
    is_world,
    job_of,
    ledger_of,
)
from counterfoil_spec.lemmas.summary import (
    Ages,
    Summary,
    after_admission,
    after_another_ended,
    after_sweep,
    ages_of,
    is_age,
    is_summary,
    retained_count,
    summary_of,
)
from counterfoil_spec.lemmas.table import Broken, broken, lemma

__all__ = [
    "a_sweep_keeps_exactly_what_it_must",
    "a_tracked_job_keeps_the_summary_sound",
    "other_jobs_keep_the_summary_sound",
    "the_summary_sees_another_job",
    "the_summary_sees_the_real_sweep_of_three",
    "the_summary_sees_the_real_sweep_of_two",
]


_GONE = ABSENT
_OLD = Shown(5, DONE, 8, 4)
_MID = Shown(2, DONE, 10, 9)
_NEW = Shown(4, DONE, 3, 30)


class Counts(NamedTuple):
    """How many others there are: live, completed before the tracked job, completed after it."""

    live: int
    older: int
    newer: int


_COUNTS = Counts(3, 4, 5)


def _seen_by(job: Shown, counts: Counts, world: World) -> Summary:
    """The summary these integers stand for; tag 5 is a job that was evicted."""
    tracked = None if job.tag == _GONE else job_of(job)
    depth = counts.live + int(job.tag <= RUNNING)
    return Summary(world.limits, tracked, *counts, depth, world.now)


def _is_seen(job: Shown, counts: Counts, world: World) -> bool:
    """Whether such a summary can be."""
    return (
        0 <= job.tag <= _GONE
        and job.took_ms >= 0
        and job.submitted_at + job.took_ms <= world.now
        and is_summary(_seen_by(job, counts, world))
    )


# Steps


@lemma(
    "R1 R3 R4 R5 R7 R9",
    "has_expired",
    (EARLY, _COUNTS, WORLD, Ages(2, 5)),
    (EARLY, _COUNTS, WORLD._replace(limits=Limits(8, 100, 9)), Ages(2, 5)),
    (LATE, Counts(3, 4, 0), WORLD, Ages(2, 0)),
    (EARLY._replace(tag=_GONE), Counts(3, 0, 5), WORLD, Ages(0, 4)),
)
def a_sweep_keeps_exactly_what_it_must(
    job: Shown, counts: Counts, world: World, ages: Ages
) -> Broken:
    """Among any number of jobs, a sweep evicts the tracked one if and only if it is due.

    pre: job.tag in (RUNNING, DONE, _GONE) and _is_seen(job, counts, world)
    pre: is_age(_seen_by(job, counts, world), ages)
    post: _ == ()
    """
    before = _seen_by(job, counts, world)
    after = after_sweep(before, ages)
    cap = max(world.limits.max_completed, 0)
    ended = DONE <= job.tag <= TIMEOUT
    expired = ended and world.now - job.submitted_at - job.took_ms > world.limits.job_ttl_ms
    excess = retained_count(before._replace(older=ages.young_older, newer=ages.young_newer)) - cap
    stays = after.tracked is not None
    return broken(
        ("S5", is_summary(after)),
        ("R1", job.tag > RUNNING or after.tracked == before.tracked),
        ("R6", not stays or after.tracked == before.tracked),
        ("R7", job.tag != _GONE or not stays),
        ("R3", not (expired and stays)),
        ("R4", retained_count(after) <= cap),
        ("R9", stays or not ended or expired or excess > ages.young_older),
        ("R5", not (ended and stays) or after.newer == ages.young_newer),
        ("R9", retained_count(after) >= min(cap, ages.young_older + ages.young_newer)),
    )


@lemma(
    "R1 R6 R7 A1 A5",
    "start finish fail time_out take_request",
    (EARLY, _COUNTS, WORLD, 2),
    (LATE, Counts(3, 4, 0), WORLD, 1),
)
def a_tracked_job_keeps_the_summary_sound(
    job: Shown, counts: Counts, world: World, which: int
) -> Broken:
    """What happens to the tracked job itself keeps the summary sound, whatever the others are.

    pre: _is_seen(job, counts, world) and 0 <= which <= 4
    post: _ == ()
    """
    before = _seen_by(job, counts, world)
    shown = () if before.tracked is None else (before.tracked,)
    step = act(which, ledger_of(world._replace(unseen=counts.live), *shown), job.id)
    tracked, live = step.ledger.find(job.id), any(one.id == job.id for one in step.ledger.live)
    after = before._replace(tracked=tracked, depth=step.ledger.depth)
    return broken(
        ("A1", is_summary(after)),
        ("R7", (tracked is None) == (before.tracked is None)),
        ("A5", after.depth == counts.live + int(live)),
    )


@lemma(
    "R1 R6 A1 A2",
    "admit",
    (EARLY, _COUNTS, WORLD, 7),
    (LATE, Counts(3, 4, 0), WORLD, 0),
)
def other_jobs_keep_the_summary_sound(job: Shown, counts: Counts, world: World, ms: int) -> Broken:
    """Admissions, endings of other jobs and time keep the summary sound and the record as it is.

    pre: job.tag in (RUNNING, DONE, _GONE) and _is_seen(job, counts, world) and ms >= 0
    post: _ == ()
    """
    before = _seen_by(job, counts, world)
    admitted = after_admission(before)
    ended = after_another_ended(before) if counts.live > 0 else before
    later = before._replace(now=before.now + ms)
    return broken(
        ("A2", is_summary(admitted)),
        ("A1", is_summary(ended)),
        ("R2", is_summary(later)),
        ("R6", admitted.tracked == before.tracked and ended.tracked == before.tracked),
        ("R4", retained_count(ended) <= retained_count(before) + 1),
    )


# Ties


def _sweeps_alike(limits: Limits, now: int, tracked_id: int, *jobs: Job) -> Broken:
    """Whether summarising and sweeping commute."""
    before = Ledger(limits, (), jobs, sweeps_owed=1, now=now)
    ages = ages_of(before, tracked_id)
    real = summary_of(law.sweep(before).ledger, tracked_id)
    summary = summary_of(before, tracked_id)
    return broken(
        ("R9", real == after_sweep(summary, ages)),
        ("R5", is_age(summary, ages)),
    )


@lemma(
    "R3 R4 R5 R9",
    "sweep survivors",
    (_OLD, _MID, 2, Limits(1, 20, 1), 32),
    (_OLD, _MID, 5, Limits(1, 20, 1), 30),
    (_OLD, _MID, 7, Limits(1, 20, 1), 33),
)
def the_summary_sees_the_real_sweep_of_two(
    a: Shown, b: Shown, tracked_id: int, limits: Limits, now: int
) -> Broken:
    """On two retained jobs the real sweep and the summary's agree, whichever is tracked.

    pre: in_completion_order(a, b)
    post: _ == ()
    """
    return _sweeps_alike(limits, now, tracked_id, job_of(a), job_of(b))


@lemma(
    "R3 R4 R5 R9",
    "sweep survivors",
    (_OLD, _MID, _NEW, 2, Limits(1, 20, 2), 34),
    (_OLD, _MID, _NEW, 4, Limits(1, 20, 1), 40),
    (_OLD, _MID, _NEW, 7, Limits(1, 20, 3), 30),
)
def the_summary_sees_the_real_sweep_of_three(
    a: Shown, b: Shown, c: Shown, tracked_id: int, limits: Limits, now: int
) -> Broken:
    """On three retained jobs the real sweep and the summary's agree, whichever is tracked.

    pre: in_completion_order(a, b, c)
    post: _ == ()
    """
    return _sweeps_alike(limits, now, tracked_id, job_of(a), job_of(b), job_of(c))


@lemma(
    "A1 A3 R1 R6",
    "admit finish fail time_out",
    (EARLY, LATE, WORLD, 1),
    (EARLY, LATE, WORLD, 0),
)
def the_summary_sees_another_job(tracked: Shown, other: Shown, world: World, which: int) -> Broken:
    """What another job does, admission or ending, is to the summary what it is to the ledger.

    pre: is_job(tracked, world) and is_job(other, world) and other.tag in (PENDING, RUNNING)
    pre: tracked.id != other.id and 0 <= which <= 3
    pre: is_world(world, 1 + int(tracked.tag <= RUNNING))
    post: _ == ()
    """
    before = ledger_of(world._replace(unseen=0), job_of(tracked), job_of(other))
    summary = summary_of(before, tracked.id)
    if which == 0:
        real = law.admit(before).ledger
        return broken(("A3", summary_of(real, tracked.id) == after_admission(summary)))
    real = act(which, before, other.id).ledger
    return broken(("A1", summary_of(real, tracked.id) == after_another_ended(summary)))
