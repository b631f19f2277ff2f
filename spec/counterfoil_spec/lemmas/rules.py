"""The rules of a job's life, one lemma each: admission, transitions, the payload, reads, time.

A rule speaks of one job in any state, with any number of live jobs beside it that are not shown,
under any limits and at any time; where a second call matters (twice started, twice ended, taken
twice) the lemma makes it. What happens to a bystander is the business of `bystanders`.
"""

from counterfoil_spec import ledger as law
from counterfoil_spec.ledger import Job, Limits, Outcome, State
from counterfoil_spec.lemmas.shown import (
    EARLY,
    LATE,
    PENDING,
    RUNNING,
    WORLD,
    Shown,
    World,
    act,
    is_job,
    is_world,
    job_of,
    ledger_of,
    present,
)
from counterfoil_spec.lemmas.table import Broken, broken, lemma

__all__ = [
    "a_budget_is_used_up_exactly_at_its_end",
    "a_place_comes_back_exactly_once",
    "admission_is_exactly_below_the_bound",
    "any_live_job_may_end",
    "every_id_is_new",
    "only_a_pending_job_starts_and_once",
    "the_first_ending_wins",
    "the_payload_is_handed_out_once",
]

_FULL = WORLD._replace(unseen=8)
_WAITING = EARLY._replace(tag=PENDING)


def _of_one(job: Shown, world: World) -> bool:
    return is_job(job, world) and is_world(world, int(job.tag <= RUNNING))


# Admission


@lemma("S1 A2 A3 A4 A6 A10 Q2", "admit submit", (WORLD, 7), (_FULL, 7))
def admission_is_exactly_below_the_bound(world: World, payload: int) -> Broken:
    """A job is admitted exactly when depth is below the bound, and a refusal leaves no trace.

    pre: is_world(world, 0)
    post: _ == ()
    """
    before = ledger_of(world)
    room = before.depth < world.limits.max_queue
    step = law.admit(before, "task", payload)
    job = Job(world.issued, State.PENDING, "task", payload, world.now)
    if not room:
        refused = law.submit(before, "task", payload)
        return broken(
            ("A3", step.reply.outcome is Outcome.QUEUE_FULL and not step.accepted),
            ("A6", step.ledger == before and refused.ledger == before),
        )
    after = step.ledger
    return broken(
        ("A4", world.limits.max_queue > 0),
        ("A3", step.reply.outcome is Outcome.ADMITTED and step.accepted),
        ("A3", after.depth == before.depth + 1),
        ("S1", step.reply.job == job),
        ("A10", present(after, job)),
        ("R2", after.sweeps_owed == before.sweeps_owed + 1),
    )


@lemma("A8", "admit", (EARLY, WORLD, 1))
def every_id_is_new(job: Shown, world: World, old_id: int) -> Broken:
    """The id of an admitted job was never issued before, whether or not that job is still known.

    pre: _of_one(job, world) and 0 <= old_id < world.issued
    post: _ == ()
    """
    before = ledger_of(world, job_of(job))
    first = law.admit(before)
    second = law.admit(first.ledger)
    news = [step.reply.job.id for step in (first, second) if step.reply.job is not None]
    return broken(
        ("A8", old_id not in news and job.id not in news),
        ("A8", len(news) < 2 or news[0] != news[1]),
        ("A8", second.ledger.issued == before.issued + len(news)),
    )


# Transitions


@lemma("S2 S8", "start", (_WAITING, WORLD, 1), (EARLY, WORLD, 1), (EARLY, WORLD, 2))
def only_a_pending_job_starts_and_once(job: Shown, world: World, job_id: int) -> Broken:
    """Only a pending job may start, and of two starts exactly one is accepted.

    pre: _of_one(job, world)
    post: _ == ()
    """
    before = ledger_of(world, job_of(job))
    step = law.start(before, job_id)
    if job_id != job.id:
        return broken(("S8", step.reply.outcome is Outcome.NOT_FOUND and step.ledger == before))
    if job.tag != PENDING:
        return broken(("S2", step.reply.outcome is Outcome.REFUSED and step.ledger == before))
    again = law.start(step.ledger, job_id)
    return broken(
        ("S2", step.accepted and not again.accepted and again.ledger == step.ledger),
        ("S2", present(step.ledger, job_of(job)._replace(state=State.RUNNING))),
        ("A5", step.ledger.depth == before.depth),
    )


@lemma("S3 S6 S7", "finish fail time_out", (_WAITING, WORLD, 0, 5), (LATE, WORLD, 2, 5))
def any_live_job_may_end(job: Shown, world: World, how: int, token: int) -> Broken:
    """Pending or running, a job may end in each of the three ways, with what the caller gave.

    pre: _of_one(job, world) and job.tag <= RUNNING and 0 <= how <= 2
    post: _ == ()
    """
    before, record = ledger_of(world, job_of(job)), job_of(job)._replace(completed_at=world.now)
    if how == 0:
        step = law.finish(before, job.id, token)
        ended = record._replace(state=State.DONE, result=token)
    elif how == 1:
        step = law.fail(before, job.id, "why")
        ended = record._replace(state=State.FAILED, error="why")
    else:
        step = law.time_out(before, job.id, "why")
        ended = record._replace(state=State.TIMEOUT, error="why")
    reply = step.reply
    return broken(
        ("S3", step.accepted and reply.outcome is Outcome.ACCEPTED),
        ("S7", reply.job is not None and reply.job.completed_at == world.now),
        ("S6", present(step.ledger, ended) and reply.job == ended),
    )


@lemma("S4", "finish fail time_out", (LATE, WORLD, 3, 1), (_WAITING, WORLD, 1, 1))
def the_first_ending_wins(job: Shown, world: World, first: int, second: int) -> Broken:
    """Of two terminal calls on one job the first is accepted and the second changes nothing.

    pre: _of_one(job, world) and job.tag <= RUNNING and 1 <= first <= 3 and 1 <= second <= 3
    post: _ == ()
    """
    ended = act(first, ledger_of(world, job_of(job)), job.id)
    late = act(second, law.advance(ended.ledger, 1).ledger, job.id)
    winner = ended.reply.job
    return broken(
        ("S4", ended.accepted and not late.accepted),
        ("S4", winner is not None and present(late.ledger, winner)),
    )


@lemma("A5 A11", "admit finish fail time_out", (LATE, WORLD, 1, 3), (LATE, WORLD, 3, 3))
def a_place_comes_back_exactly_once(job: Shown, world: World, first: int, second: int) -> Broken:
    """A job's end gives back one place, once, and the next submit can have it.

    pre: _of_one(job, world) and job.tag <= RUNNING and 1 <= first <= 3 and 1 <= second <= 3
    post: _ == ()
    """
    before = ledger_of(world, job_of(job))
    once = act(first, before, job.id).ledger
    twice = act(second, once, job.id).ledger
    return broken(
        ("A5", once.depth == before.depth - 1),
        ("A5", twice.depth == once.depth),
        ("A11", law.submit(twice).accepted),
    )


# The payload, and reads


@lemma("Q1 Q2 Q3", "take_request", (LATE, WORLD, 9), (EARLY, WORLD, 9))
def the_payload_is_handed_out_once(job: Shown, world: World, payload: int) -> Broken:
    """The first take gets the payload, later ones the task id alone, and no trace of it is kept.

    pre: _of_one(job, world)
    post: _ == ()
    """
    record = job_of(job, payload)
    first = law.take_request(ledger_of(world, record), job.id)
    second = law.take_request(first.ledger, job.id)
    one, two = first.reply.job, second.reply.job
    return broken(
        ("Q1", first.reply.outcome is Outcome.PAYLOAD and one == record),
        ("Q1", second.reply.outcome is Outcome.NO_PAYLOAD),
        ("Q3", present(second.ledger, record._replace(payload=None))),
        ("Q2", two is not None and two.task_id == record.task_id),
    )


# Time


@lemma("T1 T4 T6", "is_overdue", (_WAITING, Limits(1, 1, 1, 5), 15), (LATE, Limits(1, 1, 1), 15))
def a_budget_is_used_up_exactly_at_its_end(job: Shown, limits: Limits, now: int) -> Broken:
    """A live job is overdue from `timeout_ms` after its admission on; without a budget never.

    pre: 0 <= job.tag <= 4
    post: _ == ()
    """
    overdue = law.is_overdue(job_of(job), limits, now)
    spent = now >= job.submitted_at + limits.timeout_ms
    return broken(
        ("T4", limits.timeout_ms > 0 or not overdue),
        ("T1", job.tag != PENDING or limits.timeout_ms <= 0 or overdue == spent),
        ("T6", job.tag != RUNNING or limits.timeout_ms <= 0 or overdue == spent),
        ("S4", job.tag <= RUNNING or not overdue),
    )
