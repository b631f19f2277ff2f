"""Summarising and acting commute on larger ledgers too; the lemmas say so of two and three."""

import itertools

import pytest

from counterfoil_conformance.proof import runner
from counterfoil_conformance.proof.seeding import seeded
from counterfoil_spec import ledger as law
from counterfoil_spec.ledger import Job, Ledger, Limits, State
from counterfoil_spec.lemmas.summary import (
    after_admission,
    after_another_ended,
    after_sweep,
    ages_of,
    is_age,
    is_summary,
    summary_of,
)

LARGEST = 7
TTL_MS, NOW = 10, 100


def done(number: int, completed_at: int) -> Job:
    return Job(number, State.DONE, "task", None, 0, completed_at, "result")


def ledgers():
    """Every number of retained jobs, of expired ones among them, of live ones, and every bound."""
    for retained, live in itertools.product(range(LARGEST + 1), range(3)):
        for expired, cap in itertools.product(range(retained + 1), range(-1, retained + 2)):
            limits = Limits(live + 1, TTL_MS, cap)
            ages = [NOW - TTL_MS - (n < expired) for n in range(retained)]
            jobs = tuple(done(n, completed_at) for n, completed_at in enumerate(ages))
            alive = tuple(Job(50 + n, State.RUNNING, "task", "", 0) for n in range(live))
            yield Ledger(limits, alive, jobs, live, 90, 1, NOW)


def tracked(ledger: Ledger) -> list[int]:
    return [*(job.id for job in (*ledger.live, *ledger.retained)), 80]


def sweeps_alike(ledger: Ledger, job_id: int) -> bool:
    real = summary_of(law.sweep(ledger).ledger, job_id)
    return real == after_sweep(summary_of(ledger, job_id), ages_of(ledger, job_id))


def test_summarising_and_sweeping_commute():
    seen = 0
    for ledger in ledgers():
        for job_id in tracked(ledger):
            summary = summary_of(ledger, job_id)
            assert is_summary(summary)
            assert is_age(summary, ages_of(ledger, job_id))
            assert sweeps_alike(ledger, job_id), (ledger, job_id)
            seen += 1
    assert seen > 5000


@pytest.mark.parametrize(
    "defect",
    [
        "keeps_one_too_many",
        "keeps_one_too_few",
        "a_negative_count_keeps_all",
        "the_newest_goes_first",
        "count_comes_before_age",
    ],
)
def test_a_wrong_eviction_is_seen_not_to_commute(defect):
    with seeded(runner.all_defects()[defect]):
        assert not all(sweeps_alike(one, job_id) for one in ledgers() for job_id in tracked(one))


def test_summarising_and_admitting_commute():
    for ledger in ledgers():
        for job_id in tracked(ledger):
            for full in (ledger, ledger._replace(limits=ledger.limits._replace(max_queue=0))):
                real = summary_of(law.admit(full).ledger, job_id)
                assert real == after_admission(summary_of(full, job_id))


@pytest.mark.parametrize("end", [law.finish, law.fail, law.time_out])
def test_summarising_and_the_end_of_another_job_commute(end):
    for ledger in ledgers():
        for job_id, other in itertools.permutations(tracked(ledger), 2):
            if any(job.id == other for job in ledger.live):
                real = summary_of(end(ledger, other).ledger, job_id)
                assert real == after_another_ended(summary_of(ledger, job_id))
