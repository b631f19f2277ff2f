"""Every interleaving of the shipped ledger is right, and every broken one has a schedule."""

import itertools
import threading

import pytest

from counterfoil_conformance.cli import main
from counterfoil_conformance.errors import UsageError
from counterfoil_conformance.mutants.ledger import all_ledger_faults
from counterfoil_conformance.schedules.check import (
    check_schedules,
    explore_scenario,
    replay_schedule,
    seek,
)
from counterfoil_conformance.schedules.scenarios import SCENARIOS
from counterfoil_server import ledger as shipped
from counterfoil_server.ledger import JobLedger, Limits

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
    assert found.report.schedules >= 5
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


FAULTS = {name: f for name, f in all_ledger_faults().items() if f.cheapest == "schedules"}


@pytest.mark.parametrize("name", FAULTS)
def test_a_broken_ledger_has_a_schedule_that_shows_it_and_that_replays(name):
    factory, clauses = factory_of(FAULTS[name].cls), FAULTS[name].clauses
    *_, found = seek(factory, clauses)
    hits = [fault for fault in found.faults if fault.clause in clauses]
    assert hits, f"no schedule shows: {FAULTS[name].sentence}"
    story = list(replay_schedule(factory, found.scenario.name, hits[0].schedule))
    assert any(line.startswith(f"{hits[0].clause}: ") for line in story), story


def test_exploring_leaves_the_shipped_code_as_it_was():
    before = {name: vars(shipped._Job)[name] for name in shipped._Job.__slots__}
    explore_scenario(factory_of(JobLedger), BY_NAME["take || take"])
    assert shipped.threading is threading
    assert before == {name: vars(shipped._Job)[name] for name in shipped._Job.__slots__}
    assert "_depth" not in vars(JobLedger)


def test_the_findings_name_the_clause_the_scenario_and_how_to_see_it_again():
    events = []
    race = [BY_NAME["take || take"]]
    check_schedules(
        factory_of(FAULTS["payload-taken-in-two-steps"].cls), events.append, "python:x:y", race
    )
    finding = next(event for event in events if getattr(event, "repro", ""))
    assert finding.clause == "Q1"
    assert "--scenario 'take || take' --schedule '" in finding.repro


def test_a_schedule_that_is_none_is_refused():
    with pytest.raises(UsageError, match="allowed are"):
        list(replay_schedule(factory_of(JobLedger), "no such", "0"))
    with pytest.raises(UsageError, match="thread numbers"):
        list(replay_schedule(factory_of(JobLedger), "take || take", "zero"))


def test_the_command_of_a_finding_runs_its_schedule_again(capsys):
    subject = "python:counterfoil_server.ledger:JobLedger"
    race = ["replay", subject, "--scenario", "take || take"]
    assert main([*race, "--schedule", "0 1"]) == 0
    assert '"payload": "p-a"' in capsys.readouterr().out
    assert main(race) == 2
    assert main([*race, "--schedule", "9 9"]) == 2
