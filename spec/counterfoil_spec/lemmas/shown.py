"""Ledgers made of integers: two jobs that are shown, and any number that are not.

CrossHair confirms a statement over all paths when its arguments are integers; symbolic tuples of
jobs it cannot exhaust. So a lemma takes its jobs as integers: a *tag* says which state a job is in
and the rest of the record follows, well-formed by construction (S6, S7). Two jobs are shown. Of the
others that are live only their number, `unseen`, is known: they count in `depth` and no action on
another job looks at them. Retained ones that are not shown are the business of `summary`.

A *scene* is what most lemmas speak of: one job in any state, or two.

Payload, result and error are opaque to the law, which only carries them; a lemma that cares about
one takes it as an argument of its own.
"""

import itertools
from typing import Final, NamedTuple

from counterfoil_spec import ledger as law
from counterfoil_spec.ledger import Job, Ledger, Limits, State, Step
from counterfoil_spec.lemmas.table import Obligation

__all__ = [
    "ABSENT",
    "DONE",
    "EARLY",
    "FAILED",
    "LATE",
    "PENDING",
    "RUNNING",
    "TIMEOUT",
    "WORLD",
    "Shown",
    "World",
    "act",
    "ended_at",
    "in_completion_order",
    "invariant",
    "is_job",
    "is_scene",
    "is_world",
    "job_of",
    "ledger_of",
    "present",
    "scene_of",
]

PENDING, RUNNING, DONE, FAILED, TIMEOUT = range(5)
ABSENT: Final = 5
RESULT, ERROR = "result", "error"


class Shown(NamedTuple):
    """One job as integers: its id, which state (a tag, 0..4), when submitted, how long it took."""

    id: int
    tag: int
    submitted_at: int
    took_ms: int


class World(NamedTuple):
    """Everything else: the limits, how many live jobs are not shown, ids issued, the clock."""

    limits: Limits
    unseen: int
    issued: int
    sweeps_owed: int
    now: int


# Arguments for examples: an early job, a late one, and a world for both.
EARLY = Shown(1, DONE, 10, 5)
LATE = Shown(3, RUNNING, 12, 0)
WORLD = World(Limits(8, 100, 2, 50), unseen=3, issued=9, sweeps_owed=1, now=40)


def is_job(shown: Shown, world: World) -> bool:
    """Whether a record can be this one: known state, issued id, times in order and not ahead."""
    return (
        0 <= shown.tag <= TIMEOUT
        and 0 <= shown.id < world.issued
        and shown.took_ms >= 0
        and shown.submitted_at + shown.took_ms <= world.now
    )


def is_world(world: World, shown_live: int) -> bool:
    """Whether the rest can be so: nothing negative, depth bounded (A2), ids only with room (A4)."""
    return (
        world.unseen >= 0
        and world.sweeps_owed >= 0
        and world.issued >= 0
        and shown_live + world.unseen <= max(world.limits.max_queue, 0)
        and (world.issued == 0 or world.limits.max_queue > 0)
    )


def is_scene(first: Shown, second: Shown, world: World) -> bool:
    """Whether these make a ledger: one job in any state, or two in order of admission.

    Of two, each is pending, running or done: the three terminal states differ in what a job
    carries, and that one job shows. A `second` whose tag is `ABSENT` is not there.
    """
    if not is_job(first, world):
        return False
    if second.tag == ABSENT:
        return is_world(world, int(first.tag <= RUNNING))
    return (
        first.tag <= DONE
        and second.tag <= DONE
        and is_job(second, world)
        and first.id < second.id
        and is_world(world, int(first.tag <= RUNNING) + int(second.tag <= RUNNING))
    )


def in_completion_order(*jobs: Shown) -> bool:
    """Whether these are done jobs, the oldest completion first, with ids of their own."""
    ends = [job.submitted_at + job.took_ms for job in jobs]
    return (
        all(job.tag == DONE and job.took_ms >= 0 for job in jobs)
        and all(a <= b for a, b in itertools.pairwise(ends))
        and all(a.id != b.id for a, b in itertools.combinations(jobs, 2))
    )


def job_of(shown: Shown, payload: object | None = "payload") -> Job:
    """The record that the integers stand for."""
    job = Job(shown.id, State.PENDING, "task", payload, shown.submitted_at)
    if shown.tag == PENDING:
        return job
    if shown.tag == RUNNING:
        return job._replace(state=State.RUNNING)
    ended = job._replace(completed_at=shown.submitted_at + shown.took_ms)
    if shown.tag == DONE:
        return ended._replace(state=State.DONE, result=RESULT)
    state = State.FAILED if shown.tag == FAILED else State.TIMEOUT
    return ended._replace(state=state, error=ERROR)


def scene_of(
    first: Shown, second: Shown, world: World, payload: object | None = "payload"
) -> Ledger:
    """The ledger of a scene; `payload` is what the first job has of its own, None once taken."""
    if second.tag == ABSENT:
        return ledger_of(world, job_of(first, payload))
    return ledger_of(world, job_of(first, payload), job_of(second))


def ledger_of(world: World, *jobs: Job) -> Ledger:
    """The ledger of these jobs, given in order of admission, and of the unseen ones."""
    live = tuple(job for job in jobs if not job.state.terminal)
    retained: tuple[Job, ...] = ()
    for job in jobs:
        if job.state.terminal:
            before = tuple(one for one in retained if ended_at(one) <= ended_at(job))
            retained = (*before, job, *retained[len(before) :])
    return Ledger(
        world.limits,
        live,
        retained,
        len(live) + world.unseen,
        world.issued,
        world.sweeps_owed,
        world.now,
    )


def ended_at(job: Job) -> int:
    """When a terminal job completed; before all time for one that says nothing."""
    return -1 if job.completed_at is None else job.completed_at


def present(ledger: Ledger, job: Job) -> bool:
    """Whether the ledger has exactly this record, every field alike."""
    return ledger.find(job.id) == job


def act(which: int, ledger: Ledger, job_id: int) -> Step:
    """A transition of a job, by its number: 0 start, 1 finish, 2 fail, 3 time out; else a take."""
    if which == 0:
        return law.start(ledger, job_id)
    if which == 1:
        return law.finish(ledger, job_id, "new result")
    if which == 2:
        return law.fail(ledger, job_id, "new error")
    if which == 3:
        return law.time_out(ledger, job_id, "new timeout")
    return law.take_request(ledger, job_id)


def invariant(ledger: Ledger, unseen: int) -> tuple[Obligation, ...]:
    """What is true of a ledger at every instant, part by part, with the clause each part is."""
    live, retained = ledger.live, ledger.retained
    jobs = (*live, *retained)
    return (
        ("A1", ledger.depth == len(live) + unseen),
        ("A2", 0 <= ledger.depth <= max(ledger.limits.max_queue, 0)),
        ("S1", not any(job.state.terminal for job in live)),
        ("S4", all(job.state.terminal for job in retained)),
        ("S6", all(_payload_of_state(job) for job in jobs)),
        ("S7", all(_times_in_order(job, ledger.now) for job in jobs)),
        ("A4", ledger.issued == 0 or ledger.limits.max_queue > 0),
        ("A8", all(0 <= job.id < ledger.issued for job in jobs)),
        ("A8", all(older.id < newer.id for older, newer in itertools.pairwise(live))),
        ("A8", all(one.id != other.id for one in live for other in retained)),
        ("R5", all(ended_at(a) <= ended_at(b) for a, b in itertools.pairwise(retained))),
        ("R2", ledger.sweeps_owed >= 0),
    )


def _payload_of_state(job: Job) -> bool:
    """A result exactly when done, a non-empty error exactly when failed or timed out (S6)."""
    failed = job.state in (State.FAILED, State.TIMEOUT)
    return (job.result is not None) == (job.state is State.DONE) and bool(job.error) == failed


def _times_in_order(job: Job, now: int) -> bool:
    """Submitted, then completed, exactly if terminal, and neither in the future (S7)."""
    if job.completed_at is None:
        return not job.state.terminal and job.submitted_at <= now
    return job.state.terminal and job.submitted_at <= job.completed_at <= now
