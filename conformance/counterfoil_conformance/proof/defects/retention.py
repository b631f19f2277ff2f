"""Seeded defects of eviction, by age and by count, and of the summary for any number of jobs."""

from counterfoil_conformance.proof.defects.parts import with_depth
from counterfoil_conformance.proof.seeding import defect
from counterfoil_spec.ledger import Job, Ledger, Limits, Step, has_expired, survivors, sweep
from counterfoil_spec.lemmas.summary import (
    Ages,
    Summary,
    after_admission,
    after_another_ended,
    after_sweep,
)

__all__: list[str] = []


@defect(has_expired)
def the_ttl_is_inclusive(job: Job, limits: Limits, now: int) -> bool:
    """`>=` for `>`: a job is gone one millisecond too early."""
    return job.completed_at is not None and now - job.completed_at >= limits.job_ttl_ms


@defect(has_expired)
def nothing_expires(job: Job, limits: Limits, now: int) -> bool:
    """Age is not looked at."""
    del job, limits, now
    return False


@defect(has_expired)
def age_counts_from_submission(job: Job, limits: Limits, now: int) -> bool:
    """The time to live begins at the submission."""
    return job.completed_at is not None and now - job.submitted_at > limits.job_ttl_ms


@defect(survivors)
def keeps_one_too_many(retained: tuple[Job, ...], limits: Limits, now: int) -> tuple[Job, ...]:
    """The count is checked with `>` before the new one is counted."""
    more = limits._replace(max_completed=max(limits.max_completed, 0) + 1)
    return survivors(retained, more, now)


@defect(survivors)
def keeps_one_too_few(retained: tuple[Job, ...], limits: Limits, now: int) -> tuple[Job, ...]:
    """One job too many is evicted by count."""
    return survivors(retained, limits._replace(max_completed=limits.max_completed - 1), now)


@defect(survivors)
def a_negative_count_keeps_all(
    retained: tuple[Job, ...], limits: Limits, now: int
) -> tuple[Job, ...]:
    """`max_completed` below 0 is read as "no bound"."""
    young = tuple(job for job in retained if not has_expired(job, limits, now))
    return young if limits.max_completed < 0 else survivors(retained, limits, now)


@defect(survivors)
def the_newest_goes_first(retained: tuple[Job, ...], limits: Limits, now: int) -> tuple[Job, ...]:
    """By count, the most recently completed are evicted."""
    young = tuple(job for job in retained if not has_expired(job, limits, now))
    return young[: max(limits.max_completed, 0)]


@defect(survivors)
def count_comes_before_age(retained: tuple[Job, ...], limits: Limits, now: int) -> tuple[Job, ...]:
    """Only when the count is exceeded is anything evicted at all, by age or otherwise."""
    if len(retained) <= max(limits.max_completed, 0):
        return retained
    return survivors(retained, limits, now)


@defect(sweep)
def a_sweep_without_a_debt(ledger: Ledger) -> Step:
    """A sweep is possible at any time."""
    step = sweep(ledger._replace(sweeps_owed=max(ledger.sweeps_owed, 1)))
    return step._replace(ledger=step.ledger._replace(sweeps_owed=max(ledger.sweeps_owed - 1, 0)))


@defect(sweep)
def an_eviction_frees_a_place(ledger: Ledger) -> Step:
    """Depth falls with every job that is evicted."""
    step = sweep(ledger)
    return with_depth(step, len(step.ledger.retained) - len(ledger.retained))


@defect(sweep)
def an_old_live_job_is_swept(ledger: Ledger) -> Step:
    """Age counts from submission, and a job that is still running goes too."""
    step, limits = sweep(ledger), ledger.limits
    live = tuple(job for job in ledger.live if ledger.now - job.submitted_at <= limits.job_ttl_ms)
    return step._replace(ledger=step.ledger._replace(live=live)) if step.accepted else step


@defect(sweep)
def a_debt_is_never_paid(ledger: Ledger) -> Step:
    """A sweep may be repeated at will."""
    step = sweep(ledger)
    return step._replace(ledger=step.ledger._replace(sweeps_owed=ledger.sweeps_owed))


@defect(after_admission)
def the_summary_has_no_bound(summary: Summary) -> Summary:
    """The summary admits whatever the depth."""
    return summary._replace(depth=summary.depth + 1, live_others=summary.live_others + 1)


@defect(after_another_ended)
def the_summary_mistakes_the_order(summary: Summary) -> Summary:
    """The job that ended last counts as the oldest."""
    after = after_another_ended(summary)
    return after._replace(older=summary.older + 1, newer=summary.newer)


@defect(after_sweep)
def the_summary_keeps_one_too_many(summary: Summary, ages: Ages) -> Summary:
    """One more than the bound stays in the summary."""
    limits = summary.limits
    more = limits._replace(max_completed=max(limits.max_completed, 0) + 1)
    return after_sweep(summary._replace(limits=more), ages)._replace(limits=limits)


@defect(after_sweep)
def the_summary_evicts_a_live_job(summary: Summary, ages: Ages) -> Summary:
    """A live tracked job goes when nothing may be retained."""
    if summary.limits.max_completed > 0:
        return after_sweep(summary, ages)
    return summary._replace(tracked=None, older=0, newer=0)
