"""Eviction, from both sides: what must go is gone, and what must stay is there.

A one-sided statement is worthless here: a sweep that evicts everything satisfies "what must go is
gone". So for two and for three retained jobs, completed in any order of submission, every job's
fate is fixed by the clauses: gone if it expired (R3), and of the rest the most recently completed
stay (R5), no more than `max_completed` (R4) and no fewer than that (R9). Nothing else is touched:
not a live job (R1), not a record that stays (R6), not the depth. Any number of jobs is the business
of `any_number`.
"""

import itertools

from counterfoil_spec import ledger as law
from counterfoil_spec.ledger import Job, Limits
from counterfoil_spec.lemmas.shown import (
    DONE,
    EARLY,
    LATE,
    PENDING,
    RUNNING,
    WORLD,
    Shown,
    World,
    act,
    ended_at,
    in_completion_order,
    is_job,
    is_world,
    job_of,
    ledger_of,
    present,
)
from counterfoil_spec.lemmas.table import Broken, Obligation, broken, lemma

__all__ = [
    "a_submit_evicts_after_it_is_admitted",
    "a_sweep_leaves_exactly_these_of_three",
    "a_sweep_leaves_exactly_these_of_two",
    "an_ending_is_recorded_last",
    "expiry_is_strict",
]

_SECOND = Shown(0, DONE, 11, 9)
_THIRD = Shown(2, DONE, 5, 30)


@lemma("R3", "has_expired", (15, 0, Limits(1, 15, 1), 30), (15, 0, Limits(1, 14, 1), 30))
def expiry_is_strict(submitted_at: int, took_ms: int, limits: Limits, now: int) -> Broken:
    """A terminal job expires strictly more than `job_ttl_ms` after it completed, and stays so.

    pre: took_ms >= 0
    post: _ == ()
    """
    job = job_of(Shown(0, DONE, submitted_at, took_ms))
    expired = law.has_expired(job, limits, now)
    return broken(
        ("R3", expired == (now > submitted_at + took_ms + limits.job_ttl_ms)),
        ("R3", not expired or law.has_expired(job, limits, now + 1)),
        ("R1", not law.has_expired(job_of(Shown(0, RUNNING, submitted_at, 0)), limits, now)),
    )


def _fates(retained: tuple[Job, ...], limits: Limits, now: int) -> tuple[Obligation, ...]:
    """What the clauses say of a sweep over these jobs, the oldest completion first."""
    left = law.survivors(retained, limits, now)
    cap = max(limits.max_completed, 0)
    kept = [any(one.id == job.id for one in left) for job in retained]
    old = [now - ended_at(job) > limits.job_ttl_ms for job in retained]
    young = sum(not expired for expired in old)
    evicted_young = sum(not (stays or gone) for stays, gone in zip(kept, old, strict=True))
    return (
        ("R3", not any(stays and gone for stays, gone in zip(kept, old, strict=True))),
        ("R4", len(left) <= cap),
        ("R9", evicted_young <= max(young - cap, 0)),
        ("R5", all(later or not stays for stays, later in itertools.pairwise(kept))),
        ("R6", left == tuple(job for job, stays in zip(retained, kept, strict=True) if stays)),
    )


@lemma(
    "R3 R4 R5 R6 R9",
    "survivors",
    (EARLY, _SECOND, Limits(8, 100, 1), 40),
    (EARLY, _SECOND, Limits(8, 21, 2), 40),
)
def a_sweep_leaves_exactly_these_of_two(a: Shown, b: Shown, limits: Limits, now: int) -> Broken:
    """Of two terminal jobs exactly those stay that are young and within the count.

    pre: in_completion_order(a, b)
    post: _ == ()
    """
    return broken(*_fates((job_of(a), job_of(b)), limits, now))


@lemma(
    "R3 R4 R5 R6 R9",
    "survivors",
    (EARLY, _SECOND, _THIRD, Limits(8, 100, 1), 40),
    (EARLY, _SECOND, _THIRD, Limits(8, 20, -1), 40),
)
def a_sweep_leaves_exactly_these_of_three(
    a: Shown, b: Shown, c: Shown, limits: Limits, now: int
) -> Broken:
    """Of three terminal jobs exactly those stay that are young and within the count.

    pre: in_completion_order(a, b, c)
    post: _ == ()
    """
    return broken(*_fates((job_of(a), job_of(b), job_of(c)), limits, now))


@lemma(
    "R5 R6 S9",
    "finish fail time_out",
    (EARLY, _SECOND, LATE, WORLD, 1),
    (EARLY, _SECOND, LATE._replace(tag=PENDING), WORLD, 3),
)
def an_ending_is_recorded_last(a: Shown, b: Shown, job: Shown, world: World, how: int) -> Broken:
    """Whoever completed before, in whatever order they came, the job that ends now stands last.

    pre: in_completion_order(a, b) and is_job(a, world) and is_job(b, world)
    pre: is_job(job, world) and job.tag <= RUNNING and is_world(world, 1)
    pre: a.id != job.id and b.id != job.id and 1 <= how <= 3
    post: _ == ()
    """
    before = ledger_of(world, job_of(job))._replace(retained=(job_of(a), job_of(b)))
    step = act(how, before, job.id)
    return broken(
        ("S9", step.ledger.live == ()),
        ("R5", step.ledger.retained[2:] == (step.reply.job,)),
        ("R6", step.ledger.retained[:2] == before.retained),
    )


@lemma("R2 R3 R4", "submit", (EARLY, WORLD), (EARLY, WORLD._replace(limits=Limits(8, 3, 2))))
def a_submit_evicts_after_it_is_admitted(job: Shown, world: World) -> Broken:
    """An admitted submit leaves nothing that is due and owes nothing; a refused one may leave all.

    pre: is_job(job, world) and is_world(world, 0) and job.tag > 1
    post: _ == ()
    """
    before = ledger_of(world, job_of(job))
    step = law.submit(before)
    if not step.accepted:
        return broken(("A6", step.ledger == before))
    due = law.has_expired(job_of(job), world.limits, world.now) or world.limits.max_completed <= 0
    return broken(
        ("R3", due != present(step.ledger, job_of(job))),
        ("R2", step.ledger.sweeps_owed == before.sweeps_owed),
    )
