"""Making failing histories small: soundly, and without running anything again."""

from dataclasses import replace

import pytest
from simulator import Plan, setting_of, simulate

from counterfoil_conformance.oracle.judge import judge
from counterfoil_conformance.oracle.minimise import ddmin, minimise
from counterfoil_spec.ledger import Limits


def failing(fault, **changes):
    plan = Plan(Limits(2, 5000, 2), clients=4, calls=200, visible=False, latency_us=1000)
    plan = replace(plan, fault=fault, **changes)
    for seed in range(50):
        calls = simulate(plan, seed)
        accusations = judge(calls, setting_of(plan)).accusations
        if accusations:
            return calls, setting_of(plan), accusations[0]
    raise AssertionError(fault)


def test_ddmin_finds_the_calls_that_matter():
    assert ddmin(list(range(100)), lambda some: {7, 63} <= set(some)) == [7, 63]
    assert ddmin([1, 2, 3], lambda some: False) == [1, 2, 3]
    assert ddmin([1], lambda some: True) == [1]


@pytest.mark.parametrize("fault", ["stale reads", "no eviction by count", "one too many admitted"])
def test_a_proof_that_leans_on_nothing_missing_becomes_a_handful_of_calls(fault):
    calls, setting, accusation = failing(fault)
    small, where = minimise(calls, setting, accusation)
    assert len(small) <= 7 < len(calls)
    assert not where.exclusive
    assert accusation.clause in {one.clause for one in judge(small, where).accusations}


def test_submits_stay_where_the_proof_leans_on_there_being_no_others():
    calls, setting, accusation = failing("a place leaks", wire=True)
    assert accusation.clause == "A3"
    small, where = minimise(calls, setting, accusation)
    assert where.exclusive
    submits = [call for call in calls if call.op == "submit"]
    assert [call for call in small if call.op == "submit"] == submits
    assert len(small) < len(calls)
    assert accusation.clause in {one.clause for one in judge(small, where).accusations}
