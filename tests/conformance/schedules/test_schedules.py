"""Every interleaving of the shipped ledger is right, and every broken one has a schedule."""

import itertools
import threading

import pytest

from counterfoil_conformance.errors import UsageError
from counterfoil_conformance.schedules.check import (
    check_schedules,
    explore_scenario,
    replay_schedule,
)
from counterfoil_conformance.schedules.scenarios import SCENARIOS
from counterfoil_server import ledger as shipped
from counterfoil_server.ledger import JobLedger, Limits, State, TakenRequest, Watch

BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}


def factory_of(cls):
    def factory(limits, *, clock):
        numbers = itertools.count(1)
        return cls(
            Limits(limits.max_queue, limits.job_ttl_ms, limits.max_completed),
            clock=clock,
            new_id=lambda: f"job_{next(numbers)}",
        )

    return factory


@pytest.mark.parametrize("name", BY_NAME)
def test_no_interleaving_of_the_shipped_ledger_breaks_a_clause(name):
    found = explore_scenario(factory_of(JobLedger), BY_NAME[name], seconds=600)
    assert found.report.exhausted
    assert found.faults == []
    assert found.report.schedules >= 6
    assert len(found.histories) >= 2


SMALL = (
    "submit || submit at the bound",
    "finish || timeout",
    "start || fail",
    "take || take",
    "finish || wait",
    "submit with eviction || wait on the evicted",
    "finish || finish, then by count",
)


@pytest.mark.parametrize("name", SMALL)
def test_the_reduction_leaves_out_nothing_that_a_client_could_tell_apart(name):
    scenario = BY_NAME[name]
    reduced = explore_scenario(factory_of(JobLedger), scenario, seconds=600)
    plain = explore_scenario(factory_of(JobLedger), scenario, seconds=600, reduced=False)
    assert plain.report.exhausted
    assert plain.report.schedules > reduced.report.schedules
    assert plain.histories.keys() == reduced.histories.keys()


class ChecksThenActs(JobLedger):
    """D3: the check and the increment are two steps."""

    def _admit(self):
        if self.depth() >= self.limits.max_queue:
            return False
        with self._turnstile:
            self._depth += 1
        return True


class CountsWithoutALock(JobLedger):
    """D2 and D3: depth is a plain integer."""

    def _admit(self):
        if self._depth >= self.limits.max_queue:
            return False
        self._depth += 1
        return True


class LooksBeforeItRegisters(JobLedger):
    """D4: a waiter's check and its registration are not one critical section."""

    def _watch(self, job, callback):
        watch = Watch(job)
        if job.seen.state.terminal:
            callback(job.seen)
        else:
            with job.mutex:
                job.watches[watch] = callback
        return watch


class ForgetsWhoWasRunning(JobLedger):
    """D5: a job that ends while an older one lives is never in the completion order."""

    def _close(self, job, state, result, error):
        super()._close(job, state, result, error)
        if next(iter(self._jobs.values())) is not job and job in self._ended:
            self._ended.remove(job)


class LocksInReverse(JobLedger):
    """C5: one path takes the table first, another the turnstile."""

    def _sweep(self):
        with self._turnstile, self._table:
            pass
        super()._sweep()

    def _close(self, job, state, result, error):
        with self._table:
            super()._close(job, state, result, error)


class ChecksOutsideTheLock(JobLedger):
    """S4: two terminal calls can both find the job live."""

    def _end(self, job_id, state, *, result=None, error=None):
        job = self._find(job_id)
        if job is None or job.seen.state.terminal:
            return False
        with job.mutex:
            self._close(job, state, result, error)
            self._wake(job)
            return True


class StartsWithoutALock(JobLedger):
    """S2: two starts can both find the job pending."""

    def _start(self, job):
        if job.seen.state is not State.PENDING:
            return False
        job.seen = job.seen._replace(state=State.RUNNING)
        return True


class TakesInTwoSteps(JobLedger):
    """Q1: the payload is read and cleared in two steps."""

    def take_request(self, job_id):
        job = self._find(job_id)
        if job is None:
            return None
        payload = job.payload
        job.payload = None
        return TakenRequest(job.seen.task_id, payload)


class TearsItsState(JobLedger):
    """D1: the state is published before the result is there."""

    def _close(self, job, state, result, error):
        with self._turnstile:
            half = job.seen._replace(state=state, completed_at=self._clock())
            job.seen = half
            job.seen = half._replace(result=result, error=error)
            self._ended.append(job)
            self._depth -= 1


class FreesThePlaceLate(JobLedger):
    """A5: the end is published before the place is free."""

    def _close(self, job, state, result, error):
        job.seen = job.seen._replace(
            state=state, completed_at=self._clock(), result=result, error=error
        )
        with self._turnstile:
            self._ended.append(job)
            self._depth -= 1


class WakesOne(JobLedger):
    """W6: only one waiter is woken."""

    def _wake(self, job):
        watches, job.watches = job.watches, {}
        for callback in list(watches.values())[:1]:
            callback(job.seen)


BROKEN = {
    ChecksThenActs: {"A2", "A3"},
    CountsWithoutALock: {"A2", "A3"},
    LooksBeforeItRegisters: {"W2"},
    ForgetsWhoWasRunning: {"R4"},
    LocksInReverse: {"C5"},
    ChecksOutsideTheLock: {"S4"},
    StartsWithoutALock: {"S2"},
    TakesInTwoSteps: {"Q1"},
    TearsItsState: {"S6", "G1"},
    FreesThePlaceLate: {"A5", "A3"},
    WakesOne: {"W2", "W6"},
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_ledger_has_a_schedule_that_shows_it_and_that_replays(broken):
    factory = factory_of(broken)
    for scenario in SCENARIOS:
        found = explore_scenario(factory, scenario, seconds=600, stop_at=BROKEN[broken])
        hits = [fault for fault in found.faults if fault.clause in BROKEN[broken]]
        if hits:
            story = list(replay_schedule(factory, scenario.name, hits[0].schedule))
            assert any(line.startswith(f"{hits[0].clause}: ") for line in story), story
            return
    pytest.fail(f"no schedule shows {broken.__doc__}")


def test_exploring_leaves_the_shipped_code_as_it_was():
    before = {name: vars(shipped._Job)[name] for name in shipped._Job.__slots__}
    explore_scenario(factory_of(JobLedger), BY_NAME["take || take"])
    assert shipped.threading is threading
    assert before == {name: vars(shipped._Job)[name] for name in shipped._Job.__slots__}
    assert "_depth" not in vars(JobLedger)


def test_the_findings_name_the_clause_the_scenario_and_how_to_see_it_again():
    events = []
    race = [BY_NAME["take || take"]]
    check_schedules(factory_of(TakesInTwoSteps), events.append, "python:x:y", race)
    finding = next(event for event in events if getattr(event, "repro", ""))
    assert finding.clause == "Q1"
    assert "--scenario 'take || take' --schedule '" in finding.repro


def test_a_schedule_that_is_none_is_refused():
    with pytest.raises(UsageError, match="allowed are"):
        list(replay_schedule(factory_of(JobLedger), "no such", "0"))
    with pytest.raises(UsageError, match="thread numbers"):
        list(replay_schedule(factory_of(JobLedger), "take || take", "zero"))
