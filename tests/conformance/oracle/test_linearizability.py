"""The whole-ledger search, and the interval judge held against it."""

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from simulator import random_plan, setting_of, simulate
from spoiler import spoil

from counterfoil_conformance.oracle.history import Call, load_history
from counterfoil_conformance.oracle.judge import Setting, judge
from counterfoil_conformance.oracle.linearizability import Found, explain, may_age
from counterfoil_conformance.oracle.thorough import SHORT, judge_thoroughly

GOLDEN = Path(__file__).parent / "golden"
LEDGER = Setting(max_queue=1, job_ttl_ms=1e9, max_completed=1, wire=False, visible=True)
# Clauses that time decides, and those of data that the search is not told of.
NOT_SEARCHED = {"W1", "W2", "W3", "W4", "W7", "A8", "S7", "H8"}
EVICTION = {"A10", "R3", "R4", "R6", "R7", "R9"}


def call(op, job, start, end, reply, **args):
    return Call(f"client at {start}", op, job, start, end, "c", args, reply)


def submit(job, start, end):
    return call("submit", None, start, end, {"job": job} if job else {"refused": True})


def snapshot(job, start, end, state):
    reply = {"unknown": True} if state is None else {"state": state, "error": None}
    return call("snapshot", job, start, end, reply)


def finish(job, start, end, accepted=True):
    return call("finish", job, start, end, {"accepted": accepted})


def depth(start, end, value):
    return call("depth", None, start, end, {"depth": value})


def test_an_order_is_found_and_told():
    calls = [submit("a", 0, 10), submit("b", 5, 30), finish("a", 6, 20)]
    explanation = explain(calls, LEDGER)
    assert explanation.found is Found.EXPLAINED
    ops = [text.split(":")[0] for text in explanation.order]
    assert ops.index("finish") < len(ops) - 1 - ops[::-1].index("admit")


def test_a_history_without_an_order_is_refuted_with_the_clause_that_blocks():
    calls = [submit("a", 0, 10), submit("b", 11, 20), finish("a", 21, 30)]
    explanation = explain(calls, LEDGER)
    assert explanation.found is Found.REFUTED
    assert explanation.clause == "A3"
    assert "admitted at depth 1 of 1" in explanation.blocked[0][1]


def test_what_no_single_rule_of_intervals_proves_is_still_refuted():
    """Three reads of depth in a row show 1, 0, 1 while only one job can ever have been live."""
    calls = [submit("a", 0, 100), depth(10, 11, 1), depth(12, 13, 0), depth(14, 15, 1)]
    setting = replace(LEDGER, max_queue=3)
    assert not judge(calls, setting).accusations
    assert explain(calls, setting).found is Found.REFUTED
    (accusation,) = judge_thoroughly(calls, setting).accusations
    assert accusation.clause == "A1"
    assert "no order of the 4 calls explains" in accusation.text()


def test_a_submit_may_sweep_later_than_it_admits():
    calls = [
        submit("a", 0, 1),
        finish("a", 2, 3),
        submit("b", 10, 90),
        finish("b", 20, 30),
        snapshot("a", 40, 41, "done"),
        snapshot("a", 91, 92, None),
    ]
    assert explain(calls, LEDGER).found is Found.EXPLAINED
    assert explain([*calls[:5], snapshot("a", 91, 92, "done")], LEDGER).found is Found.EXPLAINED
    both = [*calls[:5], snapshot("a", 91, 92, "done"), submit("c", 93, 94)]
    assert explain([*both, snapshot("a", 95, 96, "done")], LEDGER).found is Found.EXPLAINED
    left = [snapshot("a", 95, 96, "done"), snapshot("b", 95, 96, "done")]
    assert explain([*both, *left], LEDGER).found is Found.REFUTED


def test_a_job_may_start_and_end_unseen_unless_every_transition_is_visible():
    calls = [submit("a", 0, 1), snapshot("a", 2, 3, "running"), snapshot("a", 4, 5, "done")]
    assert explain(calls, replace(LEDGER, visible=False)).found is Found.EXPLAINED
    assert explain(calls, LEDGER).found is Found.REFUTED


def test_an_unanswered_call_may_have_happened_later_or_never():
    lost = call("submit", None, 2, None, None)
    for reply in ({"job": "b"}, {"refused": True}):
        calls = [lost, call("submit", None, 10, 11, reply)]
        assert explain(calls, LEDGER).found is Found.EXPLAINED
    two = [submit("a", 0, 1), call("finish", "a", 2, 3, None)]
    for state in ("pending", "done"):
        assert explain([*two, snapshot("a", 4, 5, state)], LEDGER).found is Found.EXPLAINED


def test_a_submit_refused_for_its_content_may_evict_and_takes_no_place():
    setting = replace(LEDGER, job_ttl_ms=5, max_queue=2)
    calls = [submit("a", 0, 1), finish("a", 2, 3), call("advance", None, 4, 5, {}, ms=6)]
    rejected = call("submit", None, 6, 7, {"rejected": True})
    for state in ("done", None):
        rest = [rejected, snapshot("a", 8, 9, state), depth(8, 9, 0)]
        assert explain([*calls, *rest], setting).found is Found.EXPLAINED
    assert explain([*calls, snapshot("a", 8, 9, None)], setting).found is Found.REFUTED


def test_a_driven_clock_makes_ages_exact():
    setting = replace(LEDGER, job_ttl_ms=5, max_queue=2)
    start = [submit("a", 0, 1), finish("a", 2, 3)]
    for ms, state, found in (
        (5, "done", Found.EXPLAINED),
        (6, "done", Found.REFUTED),
        (5, None, Found.REFUTED),
        (6, None, Found.EXPLAINED),
    ):
        rest = [call("advance", None, 4, 5, {}, ms=ms), submit("b", 6, 7)]
        assert explain([*start, *rest, snapshot("a", 8, 9, state)], setting).found is found


def test_a_search_that_reaches_its_cap_is_unknown():
    calls = [submit(f"j{n}", 0, 100) for n in range(8)] + [depth(0, 100, 9)]
    explanation = explain(calls, replace(LEDGER, max_queue=8), cap=50)
    assert explanation.found is Found.UNKNOWN
    assert explanation.states == 50
    assert judge_thoroughly(calls[:-1], replace(LEDGER, max_queue=8)).undecided == {}


@pytest.mark.parametrize(
    "changes", [{"exclusive": False}, {"ended_before": None}, {"max_queue": None}]
)
def test_an_incomplete_history_is_not_searched(changes):
    explanation = explain([submit("a", 0, 1)], replace(LEDGER, **changes))
    assert explanation.found is Found.UNKNOWN
    assert not explanation.states


def test_long_histories_are_left_to_the_interval_judge():
    calls = [depth(n, n + 0.5, 0) for n in range(SHORT + 1)]
    assert judge_thoroughly(calls, LEDGER).witnesses == {"A1": SHORT + 1}


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*-good.jsonl")), ids=lambda path: path.stem)
def test_no_good_golden_history_is_refuted(path):
    entry = json.loads((GOLDEN / "expected.json").read_text())[path.stem]
    setting = {"max_queue": 9, "max_completed": 9} | entry["setting"]
    explanation = explain(load_history(path).calls, Setting(**setting))
    assert explanation.found is not Found.REFUTED, explanation.blocked


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32), st.sampled_from([8, 14, 20, 30]))
def test_every_correct_history_has_an_explanation(seed, size):
    plan = random_plan(random.Random(seed), calls=size)
    explanation = explain(simulate(plan, seed), setting_of(plan), cap=5000)
    assert explanation.found is not Found.REFUTED, (explanation.order, explanation.blocked)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32), st.sampled_from([8, 14, 20, 30]))
@example(1692, 30)
def test_whoever_is_accused_has_no_explanation(seed, size):
    """The interval judge against exhaustion: what it says is proved must be refuted by search."""
    rng = random.Random(seed)
    plan = random_plan(rng, calls=size, lose=0.0, clocks=1)
    calls, setting = spoil(simulate(plan, seed), rng, rng.choice([1, 1, 2])), setting_of(plan)
    accused = [
        one
        for one in judge(calls, setting).accusations
        if one.clause not in NOT_SEARCHED and "its error" not in one.why
    ]
    if may_age(calls, setting):
        # The search lets any job grow old then; the judge knows from stamps which cannot have.
        accused = [one for one in accused if one.clause not in EVICTION]
    if accused:
        explanation = explain(calls, setting, cap=3000)
        assert explanation.found is not Found.EXPLAINED, (accused[0].text(), explanation.order)
