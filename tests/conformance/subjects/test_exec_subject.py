"""A driver in another process: what it may do, and every way in which it can let us down."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from counterfoil_conformance.errors import HarnessError, UsageError
from counterfoil_conformance.subjects import UnsupportedOp, open_subject
from counterfoil_conformance.subjects.base import Unanswered
from counterfoil_conformance.subjects.books import check_shape
from counterfoil_spec.ledger import Limits

ROOT = Path(__file__).resolve().parents[3]
REFERENCE = f"exec:{sys.executable} {ROOT / 'drivers' / 'python' / 'job_ledger.py'}"

HELLO = 'print(\'{"hello":{"protocol":1,"name":"rogue","capabilities":[]}}\', flush=True)\n'
READ = "import sys, json, time\nm = json.loads(sys.stdin.readline())\n"


def rogue(script):
    return f"exec:{sys.executable} -c {shlex.quote(script)}"


def test_the_reference_driver_answers_in_the_shapes_of_the_protocol():
    with open_subject(REFERENCE) as subject:
        assert subject.can("clock", "lanes", "race", "stress", "completed_at")
        subject.configure(Limits(1, 5, 1))
        job = subject.call("submit", task_id="t", payload="p")["job"]
        assert subject.call("submit", task_id="t", payload="p") == {"refused": True}
        assert subject.call("start", job=job) == {"accepted": True}
        assert subject.call("take_request", job=job) == {"task_id": "t", "payload": "p"}
        assert subject.call("take_request", job=job) == {"task_id": "t", "payload": None}
        assert subject.call("result", job=job) == {"status": "not_done", "state": "running"}
        subject.call("advance", ms=3)
        assert subject.call("finish", job=job, result="r") == {"accepted": True}
        ready = {"status": "ready", "task_id": "t", "result": "r"}
        assert subject.call("result", job=job) == ready
        seen = subject.call("snapshot", job=job)
        assert (seen["state"], seen["error"]) == ("done", None)
        assert seen["completed_at"] - seen["submitted_at"] == 3
        assert subject.call("depth") == {"depth": 0}
        assert subject.call("snapshot", job="nobody") == {"unknown": True}


def test_a_wait_on_a_lane_blocks_nobody_else():
    with open_subject(REFERENCE) as subject:
        subject.configure(Limits(1, 5, 1))
        job = subject.call("submit", task_id="t", payload="p")["job"]
        wait = subject.send("wait", lane=1, job=job, budget_ms=60_000)
        assert not wait.answered
        subject.call("finish", job=job, result="r")
        assert wait.answer().reply["state"] == "done"


def test_an_operation_that_a_driver_cannot_do_is_nobodys_fault():
    with open_subject(REFERENCE) as subject, pytest.raises(UnsupportedOp, match="fly"):
        subject.call("fly")


def test_a_race_returns_each_distinct_history_with_how_often_it_came_up():
    submits = [[{"op": "submit", "task_id": k, "payload": "", "as": k}] for k in "ab"]
    with open_subject(REFERENCE) as subject:
        subject.configure(Limits(1, 1000, 10))
        reply = subject.call("race", setup=[], threads=submits, after=[{"op": "depth"}], repeat=200)
    assert sum(history["count"] for history in reply["histories"]) == 200
    for history in reply["histories"]:
        calls = history["calls"]
        assert sum("job" in call["reply"] for call in calls) == 1
        assert calls[-1]["reply"] == {"depth": 1}
        assert all(call["call"] <= call["return"] for call in calls)


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ("raise SystemExit(7)", r"died \(exit status 7\)"),
        ("print('hi there', flush=True)", "no JSON object.*hi there"),
        ("print('{\"n\":1}', flush=True)", "not a hello"),
        ('print(\'{"hello":{"protocol":2}}\', flush=True)', "protocol 2"),
        ('print(\'{"hello":{"protocol":1,"capabilities":7}}\', flush=True)', "capabilities"),
    ],
    ids=["dies", "garbage", "no hello", "another protocol", "odd capabilities"],
)
def test_a_driver_that_does_not_introduce_itself_is_the_harness_error(script, complaint):
    with pytest.raises(HarnessError, match=complaint):
        open_subject(rogue(script))


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        (READ + "sys.stderr.write('assertion failed: depth\\n'); sys.exit(3)", "status 3.*depth"),
        (READ + "print('oops', flush=True); time.sleep(60)", "no JSON object.*oops"),
        (READ + "print('[1]', flush=True); time.sleep(60)", "no JSON object"),
        (READ + "print('{\"n\":99}', flush=True); time.sleep(60)", "never asked, n=99"),
        (READ + "print('{\"depth\":0}', flush=True); time.sleep(60)", "without a number"),
    ],
    ids=["dies", "garbage", "not an object", "unknown n", "no n"],
)
def test_a_driver_that_breaks_the_protocol_is_the_harness_error(script, complaint):
    with open_subject(rogue(HELLO + script)) as subject:
        with pytest.raises(HarnessError, match=complaint):
            subject.call("depth", timeout_s=20)
        with pytest.raises(HarnessError, match=complaint):
            subject.call("depth")


def test_a_driver_that_answers_twice_is_found_out_even_if_nobody_asks_again():
    twice = "print(json.dumps({'n': m['n'], 'depth': 0}), flush=True)\n" * 2
    with open_subject(rogue(HELLO + READ + twice + READ)) as subject:
        subject.call("depth")
        subject.close()
        with pytest.raises(HarnessError, match="answered twice n=1"):
            subject.verify()


def test_a_driver_that_hangs_leaves_the_call_unanswered():
    with (
        open_subject(rogue(HELLO + READ + "time.sleep(60)")) as subject,
        pytest.raises(Unanswered, match=r"no answer to 'depth' within 0\.3 s"),
    ):
        subject.call("depth", timeout_s=0.3)


def test_a_driver_is_ended_with_whatever_it_started():
    with open_subject(rogue("import os\nos.system('sleep 600 &')\n" + HELLO + READ)) as subject:
        readers = subject._process._readers
    assert not any(reader.is_alive() for reader in readers), "somebody still holds its output open"


def test_a_restart_begins_again_with_an_empty_ledger():
    with open_subject(REFERENCE) as subject:
        subject.configure(Limits(4, 5, 1))
        subject.call("submit", task_id="t", payload="p")
        subject.restart()
        subject.configure(Limits(4, 5, 1))
        assert subject.call("depth") == {"depth": 0}


def test_a_repro_is_one_command_that_runs_the_same_messages():
    with open_subject(REFERENCE) as subject:
        command = subject.repro(
            [
                {"op": "configure", "max_queue": 0, "job_ttl_ms": 5, "max_completed": 1},
                {"op": "submit", "task_id": "it's", "payload": "p"},
            ]
        )
    lines = subprocess.run(command, shell=True, capture_output=True, text=True, check=True).stdout
    assert json.loads(lines.splitlines()[-1]) == {"n": 2, "refused": True}


@pytest.mark.parametrize(
    "text", ["exec:", "exec: ", "python:", "python:json", "python:no.such:thing", "json:dumps"]
)
def test_what_is_no_subject_is_refused_as_usage(text):
    with pytest.raises(UsageError):
        open_subject(text)


def test_a_command_that_does_not_exist_is_the_harness_error():
    with pytest.raises(HarnessError, match="cannot start"):
        open_subject("exec:/no/such/driver")


def test_a_depth_that_is_told_as_a_float_is_the_same_number():
    assert check_shape("driver", "depth", {"depth": 2.0}) == {"depth": 2}
    with pytest.raises(HarnessError):
        check_shape("driver", "depth", {"depth": 2.5})
