"""Single checks of a ledger: what each must find, and whom it must leave alone."""

import sys
import time
from pathlib import Path

import pytest

from counterfoil_conformance.report.events import Finding, NotRun
from counterfoil_conformance.run import RunOptions
from counterfoil_conformance.subjects import open_subject
from counterfoil_conformance.subjects.checks import cost, generated, retention, vectors, waiting
from counterfoil_conformance.subjects.python import PythonSubject
from counterfoil_conformance.subjects.registry import CHECKS
from counterfoil_conformance.subjects.run import run_checks
from counterfoil_server.ledger import JobLedger

ROOT = Path(__file__).resolve().parents[3]
REFERENCE = f"exec:{sys.executable} {ROOT / 'drivers' / 'python' / 'job_ledger.py'}"


def events_of(function, ledger):
    """What is said of a ledger by the check that this function is."""
    events = []
    [check] = [check for check in CHECKS if check.function is function]
    with PythonSubject(ledger) as subject:
        run_checks([check], subject, RunOptions(), events.append)
    return events


def accused(function, ledger):
    """The clauses that the check finds broken."""
    return {event.clause for event in events_of(function, ledger) if isinstance(event, Finding)}


def slowed(seconds, times):
    """A right ledger whose waits come back late, the first so many times."""

    class Slowed(JobLedger):
        left = times

        def wait(self, job_id, budget_ms):
            seen = super().wait(job_id, budget_ms)
            if type(self).left > 0:
                type(self).left -= 1
                time.sleep(seconds)
            return seen

    return Slowed


@pytest.mark.parametrize("times", [0, 1])
def test_a_wait_that_is_a_little_late_once_is_the_machines(times):
    check = waiting.a_wait_on_a_terminal_job_returns_at_once
    assert accused(check, slowed(0.5, times)) == set()


@pytest.mark.parametrize(("seconds", "times"), [(0.4, 1000), (1.6, 1)])
def test_waits_that_are_late_again_or_very_late_are_the_ledgers(seconds, times):
    check = waiting.a_wait_on_a_terminal_job_returns_at_once
    assert accused(check, slowed(seconds, times)) == {"W1"}


def test_programs_end_when_their_time_is_over_whatever_a_driver_takes(monkeypatch):
    batches = []

    def slow_search(subject, profile, seed, *, programs):
        batches.append(programs)
        time.sleep(0.02)

    monkeypatch.setattr(generated, "find_failure", slow_search)
    monkeypatch.setattr(generated, "_QUICK", generated._QUICK._replace(seconds=0.0))
    assert accused(generated.programs_that_are_generated_from_the_law, JobLedger) == set()
    assert batches == [40]


class SleepsThroughEnds(JobLedger):
    def wait(self, job_id, budget_ms):
        time.sleep(budget_ms / 1000)
        return self.snapshot(job_id)


@pytest.mark.parametrize(
    ("check", "clauses"),
    [
        (vectors.vectors_cover_the_law, {"W1"}),
        (generated.programs_that_are_generated_from_the_law, set()),
    ],
)
def test_a_ledger_that_sleeps_through_ends_costs_no_minutes(check, clauses):
    began = time.monotonic()
    assert accused(check, SleepsThroughEnds) == clauses
    assert time.monotonic() - began < 45


class BeginsAgain(JobLedger):
    """One wake-up for all jobs, and after each the whole budget again."""

    ends = 0

    def _close(self, *words):
        type(self).ends += 1
        super()._close(*words)

    def wait(self, job_id, budget_ms):
        until, ends = time.monotonic() + budget_ms / 1000, self.ends
        while time.monotonic() < until:
            seen = super().wait(job_id, 5)
            if seen is None or seen.state.terminal:
                return seen
            if self.ends != ends:
                until, ends = time.monotonic() + budget_ms / 1000, self.ends
        return self.snapshot(job_id)


class NoMoreThanASecond(JobLedger):
    def wait(self, job_id, budget_ms):
        return super().wait(job_id, min(budget_ms, 1_000))


class TellsTheBeginning(JobLedger):
    def wait(self, job_id, budget_ms):
        before = self.snapshot(job_id)
        seen = super().wait(job_id, budget_ms)
        return seen if seen is None or seen.state.terminal else before


@pytest.mark.parametrize("ledger", [BeginsAgain, NoMoreThanASecond, TellsTheBeginning])
def test_a_budget_is_neither_prolonged_nor_cut_and_ends_with_the_current_state(ledger):
    assert accused(waiting.the_ends_of_other_jobs_move_no_budget, ledger) == {"W4"}


def test_waiters_that_sleep_on_while_other_jobs_end_are_right():
    assert accused(waiting.the_ends_of_other_jobs_move_no_budget, JobLedger) == set()


class Caps(JobLedger):
    """Retains no more than fifty, whatever it is configured with."""

    def __init__(self, limits, **words):
        super().__init__(limits._replace(max_completed=min(limits.max_completed, 50)), **words)


class KeepsOneMore(JobLedger):
    def __init__(self, limits, **words):
        super().__init__(limits._replace(max_completed=limits.max_completed + 1), **words)


@pytest.mark.parametrize(
    ("ledger", "clauses"), [(Caps, {"R9"}), (KeepsOneMore, {"R4"}), (JobLedger, set())]
)
def test_the_default_bound_of_retention_is_kept_whole(ledger, clauses):
    found = accused(retention.by_count_the_default_bound_is_kept_whole, ledger)
    assert found >= clauses
    assert bool(found) == bool(clauses)


class In32Bits(JobLedger):
    """Ages are computed from a clock that wraps after 24.8 days."""

    def _expired(self, job, now):
        now = (now + 2**31) % 2**32 - 2**31
        return super()._expired(job, now)


def test_an_age_that_wraps_is_found_and_a_year_is_not_too_long():
    check = retention.by_age_whatever_the_clock_reads
    assert accused(check, In32Bits) == {"R3"}
    assert accused(check, JobLedger) == set()


def test_the_cost_of_a_submit_is_left_to_the_full_profile_where_a_pipe_hides_it():
    [check] = [c for c in CHECKS if c.function is cost.a_submit_costs_the_same_whatever_is_retained]
    events = []
    with open_subject(REFERENCE) as subject:
        run_checks([check], subject, RunOptions(), events.append)
    assert [event.clause for event in events] == ["R8"]
    assert isinstance(events[0], NotRun)
