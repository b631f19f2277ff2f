"""A ledger of any size, as one of its jobs sees it.

Whether a sweep evicts a job depends on three things: whether the job is terminal, whether it has
expired, and how many retained jobs completed after it. So one *tracked* job and a few counts say
as much about its fate as the whole ledger does, for any number of jobs: the counts are integers,
and integers CrossHair can leave open.

The tracked job's own transitions are the law's real functions, called on a ledger that shows this
job alone. What other jobs do moves counts. A sweep needs to know how many of the others have
expired; because retained jobs are in order of completion, a young tracked job has only young ones
after it, and an expired one only expired ones before it. `is_age` says so.

The trap: a summary is a copy, and a proof about a copy is worth nothing (D0). That it agrees with
the real functions is itself proved for ledgers of two and three jobs (`any_number`) and tested for
larger ones.
"""

from typing import NamedTuple

from counterfoil_spec import ledger as law
from counterfoil_spec.ledger import Job, Ledger, Limits

__all__ = [
    "Ages",
    "Summary",
    "after_admission",
    "after_another_ended",
    "after_sweep",
    "ages_of",
    "is_age",
    "is_summary",
    "retained_count",
    "summary_of",
]


class Summary(NamedTuple):
    """The tracked job (None once evicted), and how many others there are, of which kind.

    `live_others` are pending or running; `older` are retained and completed before the tracked job
    (all the retained, while it is live), `newer` completed after it.
    """

    limits: Limits
    tracked: Job | None
    live_others: int
    older: int
    newer: int
    depth: int
    now: int


class Ages(NamedTuple):
    """How many of the older and of the newer ones have not expired."""

    young_older: int
    young_newer: int


def is_summary(summary: Summary) -> bool:
    """What is true of a summary at every instant; `any_number` proves it inductive."""
    tracked, limits = summary.tracked, summary.limits
    live = tracked is not None and not tracked.state.terminal
    return (
        summary.live_others >= 0
        and summary.older >= 0
        and summary.newer >= 0
        and (summary.newer == 0 or not live)
        and (summary.older == 0 or tracked is not None)
        and summary.depth == summary.live_others + int(live)
        and summary.depth <= max(limits.max_queue, 0)
    )


def is_age(summary: Summary, ages: Ages) -> bool:
    """Whether so many can be young, given the order of completion."""
    tracked = summary.tracked
    if not (0 <= ages.young_older <= summary.older and 0 <= ages.young_newer <= summary.newer):
        return False
    if tracked is None or not tracked.state.terminal:
        return True
    if law.has_expired(tracked, summary.limits, summary.now):
        return ages.young_older == 0
    return ages.young_newer == summary.newer


def retained_count(summary: Summary) -> int:
    """How many terminal jobs are retained, the tracked one among them."""
    tracked = summary.tracked
    return summary.older + summary.newer + int(tracked is not None and tracked.state.terminal)


def after_admission(summary: Summary) -> Summary:
    """Another job asks for a place; the summary tells whether it gets one."""
    if summary.depth >= summary.limits.max_queue:
        return summary
    return summary._replace(depth=summary.depth + 1, live_others=summary.live_others + 1)


def after_another_ended(summary: Summary) -> Summary:
    """Another live job ended: it is now the most recently completed one."""
    tracked = summary.tracked
    after = summary._replace(depth=summary.depth - 1, live_others=summary.live_others - 1)
    if tracked is None or tracked.state.terminal:
        return after._replace(newer=summary.newer + 1)
    return after._replace(older=summary.older + 1)


def after_sweep(summary: Summary, ages: Ages) -> Summary:
    """What a sweep leaves: the newest young ones, `max_completed` of them at most."""
    tracked, cap = summary.tracked, max(summary.limits.max_completed, 0)
    if tracked is not None and not tracked.state.terminal:
        return summary._replace(older=min(ages.young_older, cap))
    room = cap - ages.young_newer
    if tracked is None or law.has_expired(tracked, summary.limits, summary.now) or room <= 0:
        return summary._replace(tracked=None, older=0, newer=min(ages.young_newer, cap))
    return summary._replace(older=min(ages.young_older, room - 1))


# How a ledger is summarised


def summary_of(ledger: Ledger, tracked_id: int) -> Summary:
    """What the job with this id sees of a ledger."""
    tracked = ledger.find(tracked_id)
    retained = ledger.retained
    after = 0
    for position, job in enumerate(retained):
        if job.id == tracked_id:
            after = len(retained) - position - 1
    if tracked is None:
        older, newer = 0, len(retained)
    elif tracked.state.terminal:
        older, newer = len(retained) - after - 1, after
    else:
        older, newer = len(retained), 0
    others = sum(job.id != tracked_id for job in ledger.live)
    return Summary(ledger.limits, tracked, others, older, newer, ledger.depth, ledger.now)


def ages_of(ledger: Ledger, tracked_id: int) -> Ages:
    """How many of the tracked job's elders and juniors are young."""
    summary = summary_of(ledger, tracked_id)
    elders = ledger.retained[: summary.older]
    juniors = ledger.retained[len(ledger.retained) - summary.newer :]
    return Ages(
        sum(not law.has_expired(job, ledger.limits, ledger.now) for job in elders),
        sum(not law.has_expired(job, ledger.limits, ledger.now) for job in juniors),
    )
