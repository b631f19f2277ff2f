"""Seeded defects of the payload, the reads, the wait and the clock."""

from counterfoil_conformance.proof.defects.parts import with_job
from counterfoil_conformance.proof.seeding import defect
from counterfoil_spec.ledger import (
    Job,
    JobId,
    Ledger,
    Limits,
    Outcome,
    Reply,
    State,
    Step,
    advance,
    has_expired,
    is_overdue,
    result,
    snapshot,
    take_request,
    wait,
)

__all__: list[str] = []


@defect(take_request)
def the_payload_is_handed_out_twice(ledger: Ledger, job_id: JobId) -> Step:
    """The record keeps the payload."""
    return take_request(ledger, job_id)._replace(ledger=ledger)


@defect(take_request)
def the_payload_is_never_handed_out(ledger: Ledger, job_id: JobId) -> Step:
    """Even the first take gets the task id alone."""
    step = take_request(ledger, job_id)
    return step if step.reply.job is None else step._replace(reply=Reply(Outcome.NO_PAYLOAD))


@defect(take_request)
def the_task_id_goes_with_the_payload(ledger: Ledger, job_id: JobId) -> Step:
    """The whole request is moved out, its task id with it."""
    step = take_request(ledger, job_id)
    job = step.ledger.find(job_id)
    if job is None:
        return step
    return step._replace(ledger=with_job(step.ledger, job._replace(task_id="")))


@defect(take_request)
def taking_resets_the_job(ledger: Ledger, job_id: JobId) -> Step:
    """A taken job is pending again."""
    step = take_request(ledger, job_id)
    job = step.ledger.find(job_id)
    if job is None:
        return step
    return step._replace(ledger=with_job(step.ledger, job._replace(state=State.PENDING)))


@defect(result)
def a_result_is_consumed(ledger: Ledger, job_id: JobId) -> Step:
    """Reading a result removes the job."""
    step = result(ledger, job_id)
    if not step.accepted:
        return step
    left = tuple(job for job in ledger.retained if job.id != job_id)
    return step._replace(ledger=ledger._replace(retained=left))


@defect(result)
def a_failed_job_has_a_result(ledger: Ledger, job_id: JobId) -> Step:
    """Any terminal job is answered as ready."""
    step, job = result(ledger, job_id), ledger.find(job_id)
    if job is not None and job.state.terminal:
        return Step(ledger, Reply(Outcome.READY, job))
    return step


@defect(snapshot)
def reading_renews_a_job(ledger: Ledger, job_id: JobId) -> Step:
    """A status read moves the completion time (an expiry by last use)."""
    step, job = snapshot(ledger, job_id), ledger.find(job_id)
    if job is None or job.completed_at is None:
        return step
    return step._replace(ledger=with_job(ledger, job._replace(completed_at=ledger.now)))


@defect(snapshot)
def an_unknown_job_is_pending(ledger: Ledger, job_id: JobId) -> Step:
    """A status read of an unknown id invents a pending job."""
    step = snapshot(ledger, job_id)
    if step.accepted:
        return step
    return Step(ledger, Reply(Outcome.FOUND, Job(job_id, State.PENDING, "", None, ledger.now)))


@defect(wait)
def a_wait_ends_early(ledger: Ledger, job_id: JobId, waited_ms: int, budget_ms: int) -> Step:
    """The budget is over one millisecond too soon."""
    return wait(ledger, job_id, waited_ms + 1, budget_ms)


@defect(wait)
def a_wait_sleeps_on(ledger: Ledger, job_id: JobId, waited_ms: int, budget_ms: int) -> Step:
    """A waiter is told of the end only when its budget is over."""
    step = wait(ledger, job_id, waited_ms, budget_ms)
    if step.reply.outcome is Outcome.FOUND and waited_ms < budget_ms:
        return Step(ledger, Reply(Outcome.BLOCKED, step.reply.job))
    return step


@defect(advance)
def the_clock_runs_back(ledger: Ledger, ms: int) -> Step:
    """A negative step is taken."""
    return Step(ledger._replace(now=ledger.now + ms), Reply(Outcome.ACCEPTED))


@defect(advance)
def time_alone_evicts(ledger: Ledger, ms: int) -> Step:
    """Expired jobs vanish without a submit."""
    after = advance(ledger, ms).ledger
    young = tuple(job for job in after.retained if not has_expired(job, after.limits, after.now))
    return Step(after._replace(retained=young), Reply(Outcome.ACCEPTED))


@defect(is_overdue)
def a_budget_is_over_too_late(job: Job, limits: Limits, now: int) -> bool:
    """`>` for `>=`: a job may take one millisecond more."""
    return limits.timeout_ms > 0 and is_overdue(job, limits, now - 1)


@defect(is_overdue)
def no_budget_is_no_time(job: Job, limits: Limits, now: int) -> bool:
    """`timeout_ms` = 0 is read as "at once"."""
    return limits.timeout_ms <= now - job.submitted_at and not job.state.terminal


@defect(is_overdue)
def a_running_job_has_no_budget(job: Job, limits: Limits, now: int) -> bool:
    """Only the time in the queue is counted."""
    return job.state is State.PENDING and is_overdue(job, limits, now)
