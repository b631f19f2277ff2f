"""What a run is told of its history: the proof, made small, and still a proof."""

import time

import pytest

from counterfoil_conformance.oracle.history import Call
from counterfoil_conformance.oracle.judge import judge
from counterfoil_conformance.oracle.setting import Setting
from counterfoil_conformance.wire.hearing import smallest

SETTING = Setting(max_queue=2)


def call(op, job, at, reply, **args):
    return Call("c", op, job, at, at + 10, "wire", args, reply)


@pytest.fixture
def history():
    """Many jobs that are in order, and one that goes back from `done` to `running`."""
    calls = []
    for number in range(200):
        at, job = number * 1000, f"job_{number}"
        calls.append(call("submit", None, at, {"job": job}, task_id=job))
        for step, state in enumerate(("pending", "running", "done", "done")):
            calls.append(call("snapshot", job, at + 100 + step * 50, {"state": state}))
    calls.append(call("snapshot", "job_77", 77_500, {"state": "running"}))
    return calls


def test_a_proof_is_shown_by_the_few_calls_that_it_needs(history):
    accusation = judge(history, SETTING).accusations[0]
    shown, left = smallest(history, SETTING, accusation, time.monotonic() + 20)
    assert (shown.clause, shown.job) == (accusation.clause, "job_77")
    assert f"of the {len(history)} recorded calls" in left
    assert int(left.split()[0].strip("(")) <= 4


def test_without_time_the_proof_is_shown_as_it_is(history):
    accusation = judge(history, SETTING).accusations[0]
    begun = time.monotonic()
    shown, _ = smallest(history, SETTING, accusation, 0.0)
    assert (shown.clause, shown.job) == (accusation.clause, "job_77")
    assert time.monotonic() - begun < 5
