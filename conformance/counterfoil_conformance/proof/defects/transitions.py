"""Seeded defects of transitions: starts, endings, the completion record."""

from typing import Any

from counterfoil_conformance.proof.defects.parts import with_depth, with_job
from counterfoil_conformance.proof.seeding import defect
from counterfoil_spec import ledger as law
from counterfoil_spec.ledger import (
    Job,
    JobId,
    Ledger,
    Outcome,
    Reply,
    State,
    Step,
    _end,
    fail,
    finish,
    start,
    survivors,
    time_out,
)

__all__: list[str] = []


@defect(start)
def starts_twice(ledger: Ledger, job_id: JobId) -> Step:
    """A running job may be started again."""
    step, job = start(ledger, job_id), ledger.find(job_id)
    if job is not None and job.state is State.RUNNING:
        return Step(ledger, Reply(Outcome.ACCEPTED, job))
    return step


@defect(start)
def restarts_a_terminal_job(ledger: Ledger, job_id: JobId) -> Step:
    """A terminal job becomes running."""
    step, job = start(ledger, job_id), ledger.find(job_id)
    if job is None or not job.state.terminal:
        return step
    again = job._replace(state=State.RUNNING)
    return Step(with_job(ledger, again), Reply(Outcome.ACCEPTED, again))


@defect(start)
def a_start_takes_a_place(ledger: Ledger, job_id: JobId) -> Step:
    """Running jobs count twice."""
    step = start(ledger, job_id)
    return with_depth(step, 1) if step.accepted else step


@defect(_end)
def a_pending_job_cannot_end(ledger: Ledger, job_id: JobId, state: State, **what: Any) -> Step:
    """Only a running job may end."""
    job = ledger.find(job_id)
    if job is not None and job.state is State.PENDING:
        return Step(ledger, Reply(Outcome.REFUSED, job), "S3", "not running")
    return _end(ledger, job_id, state, **what)


@defect(_end)
def a_terminal_job_is_overwritten(ledger: Ledger, job_id: JobId, state: State, **what: Any) -> Step:
    """The last writer wins."""
    step, job = _end(ledger, job_id, state, **what), ledger.find(job_id)
    if job is None or not job.state.terminal:
        return step
    again = job._replace(state=state, **what)
    return Step(with_job(ledger, again), Reply(Outcome.ACCEPTED, again))


@defect(_end)
def a_late_ending_moves_the_completion_time(
    ledger: Ledger, job_id: JobId, state: State, **what: Any
) -> Step:
    """A refused ending stamps the job anew."""
    step, job = _end(ledger, job_id, state, **what), ledger.find(job_id)
    if job is None or step.accepted:
        return step
    return step._replace(ledger=with_job(ledger, job._replace(completed_at=ledger.now)))


@defect(_end)
def two_places_come_back(ledger: Ledger, job_id: JobId, state: State, **what: Any) -> Step:
    """An ending is counted twice."""
    step = _end(ledger, job_id, state, **what)
    return with_depth(step, -1) if step.accepted else step


@defect(_end)
def a_late_ending_frees_a_place(ledger: Ledger, job_id: JobId, state: State, **what: Any) -> Step:
    """A refused ending gives a place back once more."""
    step = _end(ledger, job_id, state, **what)
    return with_depth(step, -1) if step.clause == "S4" else step


@defect(_end)
def no_place_comes_back(ledger: Ledger, job_id: JobId, state: State, **what: Any) -> Step:
    """An ending leaves depth as it is."""
    step = _end(ledger, job_id, state, **what)
    return with_depth(step, 1) if step.accepted else step


@defect(_end)
def the_completion_time_is_lost(ledger: Ledger, job_id: JobId, state: State, **what: Any) -> Step:
    """A terminal job has no completion time."""
    step, job = _end(ledger, job_id, state, **what), ledger.find(job_id)
    if not step.accepted or step.reply.job is None or job is None:
        return step
    ended = step.reply.job._replace(completed_at=None)
    return step._replace(ledger=with_job(step.ledger, ended), reply=Reply(Outcome.ACCEPTED, ended))


@defect(_end)
def completed_when_submitted(ledger: Ledger, job_id: JobId, state: State, **what: Any) -> Step:
    """The completion time is the submission time."""
    step = _end(ledger, job_id, state, **what)
    if not step.accepted or step.reply.job is None:
        return step
    ended = step.reply.job._replace(completed_at=step.reply.job.submitted_at)
    return step._replace(ledger=with_job(step.ledger, ended), reply=Reply(Outcome.ACCEPTED, ended))


@defect(_end)
def completed_first_in_line(ledger: Ledger, job_id: JobId, state: State, **what: Any) -> Step:
    """The job that just completed is recorded as the oldest completion."""
    step = _end(ledger, job_id, state, **what)
    retained = step.ledger.retained
    if not step.accepted:
        return step
    return step._replace(ledger=step.ledger._replace(retained=(retained[-1], *retained[:-1])))


@defect(_end)
def completed_second_in_line(ledger: Ledger, job_id: JobId, state: State, **what: Any) -> Step:
    """The job that just completed is recorded right after the oldest completion."""
    step = _end(ledger, job_id, state, **what)
    first, rest = step.ledger.retained[:1], step.ledger.retained[1:]
    if not step.accepted or not rest:
        return step
    return step._replace(ledger=step.ledger._replace(retained=(*first, rest[-1], *rest[:-1])))


@defect(_end)
def an_ended_job_stays_live(ledger: Ledger, job_id: JobId, state: State, **what: Any) -> Step:
    """The job ends where it is and is never recorded in the order of completion."""
    step = _end(ledger, job_id, state, **what)
    if not step.accepted or step.reply.job is None:
        return step
    return step._replace(ledger=with_job(ledger, step.reply.job)._replace(depth=step.ledger.depth))


@defect(_end)
def an_ending_evicts(ledger: Ledger, job_id: JobId, state: State, **what: Any) -> Step:
    """A job's end sweeps, outside any submit."""
    step = _end(ledger, job_id, state, **what)
    left = survivors(step.ledger.retained, ledger.limits, ledger.now)
    return step._replace(ledger=step.ledger._replace(retained=left))


@defect(_end)
def an_unknown_job_can_end(ledger: Ledger, job_id: JobId, state: State, **what: Any) -> Step:
    """An ending of an unknown id brings the job into being."""
    step = _end(ledger, job_id, state, **what)
    if step.reply.outcome is not Outcome.NOT_FOUND:
        return step
    job = Job(job_id, state, "", None, ledger.now, ledger.now, **what)
    after = ledger._replace(retained=(*ledger.retained, job))
    return Step(after, Reply(Outcome.ACCEPTED, job))


@defect(finish)
def the_result_is_lost(ledger: Ledger, job_id: JobId, result: object = "") -> Step:
    """A done job has no result."""
    del result
    return _end(ledger, job_id, State.DONE)


@defect(fail)
def the_error_is_lost(ledger: Ledger, job_id: JobId, error: str = "failed") -> Step:
    """A failed job does not say why."""
    del error
    return _end(ledger, job_id, State.FAILED)


@defect(time_out)
def a_timeout_has_a_result(ledger: Ledger, job_id: JobId, error: str = "timed out") -> Step:
    """A timed-out job keeps what its run had so far as a result."""
    return _end(ledger, job_id, State.TIMEOUT, result="partial", error=error)


@defect(law._not_found)  # noqa: SLF001
def unknown_is_accepted(ledger: Ledger, clause: str = "S8") -> Step:
    """An action on an unknown id is answered as if it had taken place."""
    del clause
    return Step(ledger, Reply(Outcome.ACCEPTED))
