"""The interval judge: it never accuses a correct ledger, and each rule fires on a wrong one."""

import random
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from simulator import Plan, random_plan, setting_of, simulate

from counterfoil_conformance.oracle.history import Call
from counterfoil_conformance.oracle.judge import Setting, judge
from counterfoil_spec.ledger import Limits

FAULTS = {
    "404 window": ("A10", {}),
    "a completion time too early": ("S7", {"wire": False}),
    "a done result is refused": ("S5", {}),
    "a place leaks": ("A3", {}),
    "a refusal takes a place": ("A3", {}),
    "a refused end overwrites": ("S4", {"visible": True}),
    "a second end is accepted": ("S4", {"visible": True}),
    "a second start is accepted": ("S2", {"visible": True}),
    "a wait on a terminal job sleeps": ("W1", {}),
    "all evicted at the bound": ("R9", {}),
    "an error is missing": ("S6", {}),
    "back from the dead": ("R7", {}),
    "depth is off by one": ("A1", {"wire": False}),
    "elapsed goes back": ("H8", {"wire": True, "think_us": 30_000}),
    "elapsed in seconds": ("H8", {"wire": True, "think_us": 30_000}),
    "elapsed of the server": ("H8", {"wire": True, "latency_us": 10}),
    "ids repeat": ("A8", {}),
    "lost wake-up": ("W2", {}),
    "no eviction by age": ("R3", {"limits": Limits(2, 20, 50)}),
    "no eviction by count": ("R4", {}),
    "one too few admitted": ("A3", {}),
    "one too few kept": ("R9", {}),
    "one too many admitted": ("A2", {}),
    "results are mixed up": ("G4", {"visible": True}),
    "results change": ("G1", {}),
    "running evicted": ("R1", {"visible": True}),
    "stale reads": ("S5", {}),
    "the payload is handed out again": ("Q1", {"visible": True}),
    "the task id is lost": ("Q2", {}),
    "ttl halved": ("R9", {"think_us": 60_000, "visible": True, "clients": 2}),
    "waits end early": ("W4", {"think_us": 1000, "visible": False}),
}


def faulty_plan(fault, **changes):
    limits = Limits(2, 500, 3) if "age" in fault or "ttl" in fault else Limits(2, 5000, 2)
    plan = Plan(limits, clients=4, calls=200, visible=False, fault=fault, latency_us=1000)
    return replace(plan, **changes)


def shrink_hint(plan, seed, judgement):
    first = judgement.accusations[0]
    return f"seed {seed}, {plan}\n{first.clause} {first.also}\n{first.text()}"


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32), st.integers(0, 2**32))
def test_no_correct_ledger_is_ever_accused(shape, seed):
    plan = random_plan(random.Random(shape))
    judgement = judge(simulate(plan, seed), setting_of(plan))
    assert not judgement.accusations, shrink_hint(plan, seed, judgement)


def test_thousands_of_correct_histories_are_not_accused_and_witness_every_rule():
    witnessed = set()
    for seed in range(1500):
        plan = random_plan(random.Random(seed))
        judgement = judge(simulate(plan, seed), setting_of(plan))
        assert not judgement.accusations, shrink_hint(plan, seed, judgement)
        witnessed |= judgement.witnesses.keys()
    ledger = "S1 S2 S3 S4 S5 S6 S7 S8 S9 A1 A2 A3 A4 A5 A6 A8 A10 R1 R3 R4 R6 R7 R9"
    assert witnessed >= set((ledger + " Q1 Q2 W1 W2 W4 W6 W7 G1 G2 G3").split())


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_accused_under_its_clause(fault):
    clause, changes = FAULTS[fault]
    plan = faulty_plan(fault, **changes)
    setting = setting_of(plan)
    found = [judge(simulate(plan, seed), setting).clauses for seed in range(8)]
    assert any(clause in clauses for clauses in found), found
    sound = replace(plan, fault="")
    assert not any(judge(simulate(sound, seed), setting).accusations for seed in range(8))


def test_what_is_not_known_is_not_held_against_anybody():
    for fault in ("one too few admitted", "no eviction by count", "one too few kept"):
        plan = faulty_plan(fault)
        unknown = replace(
            setting_of(plan), max_queue=None, job_ttl_ms=None, max_completed=None, visible=False
        )
        for seed in range(8):
            assert not judge(simulate(plan, seed), unknown).accusations


def test_other_users_of_the_ledger_excuse_refusals_and_evictions():
    for seed in range(200):
        plan = random_plan(random.Random(seed), lose=0.0)
        calls = simulate(plan, seed)
        mine = [call for call in calls if call.op != "submit" or call.client != "client-0"]
        judgement = judge(mine, replace(setting_of(plan), exclusive=False))
        assert not judgement.accusations, shrink_hint(plan, seed, judgement)


def test_a_claim_without_an_answer_may_have_started_any_job():
    def call(op, job, start, reply, **args):
        return Call("a", op, job, start, start + 5, "c", args, reply)

    calls = [
        call("submit", None, 0, {"job": "j"}),
        call("start", None, 10, None),
        call("snapshot", "j", 20, {"state": "running"}),
        call("snapshot", "j", 30, {"state": "failed", "error": "the lease was over"}),
    ]
    assert not judge(calls, Setting(visible=True)).accusations
    assert judge([calls[0], *calls[2:]], Setting(visible=True)).clauses == {"S2"}


def test_a_fence_excuses_a_refusal():
    submit = Call("a", "submit", None, 0, 5, "c", {}, {"job": "j"})
    for args, clauses in (({"fence": "f"}, set()), ({}, {"S3"})):
        late = Call("r", "finish", "j", 10, 15, "c", args, {"accepted": False})
        assert judge([submit, late], Setting(visible=True)).clauses == clauses


def test_a_live_job_that_outlives_a_refused_submit_or_its_ttl_witnesses_r1():
    def call(op, job, at_ms, reply):
        return Call("c", op, job, at_ms * 1000, at_ms * 1000 + 100, "k", {}, reply)

    limits = Setting(max_queue=1, job_ttl_ms=100, max_completed=1)
    born = call("submit", None, 0, {"job": "a"})
    live = {"state": "running", "error": None}
    refused = [born, call("submit", None, 5, {"refused": True}), call("snapshot", "a", 9, live)]
    assert judge(refused, limits).witnesses.get("R1", 0) == 1
    assert judge([born, call("snapshot", "a", 90, live)], limits).witnesses.get("R1", 0) == 0
    assert judge([born, call("snapshot", "a", 190, live)], limits).witnesses.get("R1", 0) == 1


def test_where_none_is_retained_a_job_read_again_after_its_end_witnesses_r9():
    def call(op, job, at_ms, reply):
        return Call("c", op, job, at_ms * 1000, at_ms * 1000 + 100, "k", {}, reply)

    done = {"state": "done", "error": None}
    calls = [call("submit", None, 0, {"job": "a"}), call("snapshot", "a", 9, done)]
    setting = Setting(max_queue=1, job_ttl_ms=100, max_completed=0)
    assert judge(calls, setting).witnesses.get("R9", 0) == 0
    calls.append(call("snapshot", "a", 20, done))
    assert judge(calls, setting).witnesses.get("R9", 0) == 1
