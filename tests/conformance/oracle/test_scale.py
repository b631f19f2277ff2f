"""The cost of judging grows like n log n: counted in executed lines, so no clock is needed."""

import sys

from simulator import Plan, setting_of, simulate

from counterfoil_conformance.oracle.judge import judge
from counterfoil_spec.ledger import Limits


def executed_lines(call_count, fault=""):
    plan = Plan(Limits(8, 500, 20), clients=9, latency_us=300, think_us=500, fault=fault)
    plan.calls = call_count
    calls, setting = simulate(plan, 1), setting_of(plan)
    lines = 0

    def tracer(_frame, event, _arg):
        nonlocal lines
        lines += event == "line"
        return tracer

    sys.settrace(tracer)
    try:
        judge(calls, setting)
    finally:
        sys.settrace(None)
    return lines / len(calls)


def test_four_times_the_calls_cost_little_more_than_four_times_the_lines():
    small, large = executed_lines(1_000), executed_lines(4_000)
    assert large < 1.4 * small, (small, large)


def test_a_wrong_ledger_costs_no_more_to_judge_in_the_long_run():
    for fault in ("no eviction by count", "a place leaks", "lost wake-up"):
        small, large = executed_lines(1_000, fault), executed_lines(4_000, fault)
        assert large < 2 * small, (fault, small, large)
