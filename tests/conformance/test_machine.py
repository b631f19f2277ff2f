"""The generated state machine: it finds faults, shrinks them, repeats itself, drives the app."""

import base64
import json
import logging
import re

import pytest

from counterfoil_conformance import machine
from counterfoil_conformance.machine import find_failure
from counterfoil_conformance.report.events import Finding
from counterfoil_conformance.run import RunOptions
from counterfoil_conformance.subjects import open_subject
from counterfoil_conformance.subjects.base import Answer, Hello, Subject, Ticket, now_us
from counterfoil_conformance.subjects.python import PythonSubject
from counterfoil_conformance.subjects.run import run_subject
from counterfoil_server.config import Settings
from counterfoil_server.core import Core
from counterfoil_server.ledger import JobLedger, State
from counterfoil_server.virtual_server import VirtualServer
from counterfoil_spec.ledger import ACTIONS


class PayloadTwice(JobLedger):
    def take_request(self, job_id):
        job = self._find(job_id)
        payload = None if job is None else job.payload
        taken = super().take_request(job_id)
        if job is not None:
            job.payload = payload
        return taken


class TtlInclusive(JobLedger):
    def _expired(self, job, now):
        return now - job.seen.completed_at >= self.limits.job_ttl_ms


class LeaksOnFailure(JobLedger):
    def _close(self, job, state, result, error):
        super()._close(job, state, result, error)
        self._depth += state is State.FAILED


def test_every_action_of_the_law_is_a_rule():
    with PythonSubject(JobLedger) as subject:
        made = vars(machine.machine_for(subject))
    rules = {name for name, value in made.items() if hasattr(value, "hypothesis_stateful_rule")}
    spelled = {"admit": "submit", "time_out": "timeout"}
    assert rules == {spelled.get(name, name) for name in ACTIONS} - {"sweep"}


def test_the_shipped_ledger_answers_every_program_right():
    with PythonSubject(JobLedger) as subject:
        assert find_failure(subject, "ci", 1, remember=False) is None


@pytest.mark.parametrize(
    ("ledger", "clause", "calls"),
    [(PayloadTwice, "Q1", 3), (TtlInclusive, "R9", 6), (LeaksOnFailure, "A1", 3)],
)
def test_a_fault_shrinks_to_a_short_program(ledger, clause, calls):
    with PythonSubject(ledger) as subject:
        failure = find_failure(subject, "ci", 1, remember=False)
    assert failure is not None
    assert failure.clause == clause
    assert len(failure.messages) - 1 <= calls + 2
    assert failure.program().startswith('{"op": "configure"')


def test_the_same_seed_writes_the_same_programs():
    failures = []
    for _ in range(2):
        with PythonSubject(LeaksOnFailure) as subject:
            failures.append(find_failure(subject, "ci", 7, remember=False))
    programs = [re.sub(r"job_[0-9a-f]+", "job", failure.program()) for failure in failures]
    assert programs[0] == programs[1]


def test_a_failure_is_kept_as_vectors_that_fail_again(tmp_path):
    with PythonSubject(PayloadTwice) as subject:
        failure = find_failure(subject, "ci", 1, remember=False)
        path = tmp_path / "failure.json"
        path.write_text(json.dumps(failure.as_vectors()))
        events = []
        run_subject(subject, RunOptions(vectors=str(path)), events.append)
    assert {event.clause for event in events if isinstance(event, Finding)} == {"Q1"}


def test_a_failing_example_is_remembered_and_tried_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with PythonSubject(LeaksOnFailure) as subject:
        assert find_failure(subject, "ci") is not None
        assert (tmp_path / ".hypothesis" / "counterfoil").is_dir()
        assert find_failure(subject, "ci", programs=1) is not None


def test_it_drives_a_ledger_in_another_language(cpp_ledger):
    with open_subject(f"exec:{cpp_ledger}") as subject:
        assert find_failure(subject, "ci", 1, programs=20, remember=False) is None
    with open_subject(f"exec:{cpp_ledger} double-decrement") as subject:
        failure = find_failure(subject, "ci", 1, remember=False)
    assert failure is not None
    assert failure.clause in {"A1", "A2"}
    assert failure.repro.startswith("counterfoil replay 'exec:")


class WrongOnce(JobLedger):
    """Answers wrongly now and then: what hypothesis tries again may be right the next time."""

    calls = 0

    def finish(self, job_id, result):
        type(self).calls += 1
        accepted = super().finish(job_id, result)
        return not accepted if type(self).calls % 7 == 0 else accepted


def test_a_wrong_answer_that_does_not_come_again_is_told_all_the_same():
    with PythonSubject(WrongOnce) as subject:
        failure = find_failure(subject, "ci", 1, remember=False)
    assert failure is not None
    assert failure.clause in {"S3", "S4", "S8"}


# The real app, in this process, on virtual time


class _Done(Ticket):
    """An answer that is there already."""

    def __init__(self, reply):
        self._reply = reply

    @property
    def answered(self):
        return True

    def answer(self, timeout_s=0.0):
        stamp = now_us()
        return Answer(self._reply, stamp, stamp)


class ServerSubject(Subject):
    """The Sanic app through its HTTP surface; the kit is its external runner.

    The surface hands jobs out in order (a claim is a start and a take), ends only what was claimed,
    and time passes while one waits: `offers` says what can be asked when.
    """

    name = "our app"
    hello = Hello("our app", 1, frozenset({"clock"}))

    def __init__(self, core=Core):
        self._core = core
        self._server = None
        self._pending, self._fences, self._ended = [], {}, set()

    def offers(self, op, job):
        if op == "start":
            return bool(self._pending) and job == self._pending[0]
        if op in ("finish", "fail", "timeout"):
            return job in self._fences
        if op == "wait":
            return job in self._ended or job == "no-such-job"
        return op != "take_request"

    def aim(self, op, job):
        if op == "start" and self._pending:
            return self._pending[0]
        if op in ("finish", "fail", "timeout") and job not in self._fences:
            return next(iter(self._fences), job)
        return job

    def send(self, op, *, lane=None, **args):
        return _Done(getattr(self, f"_{op}")(**args))

    def restart(self):
        raise AssertionError("nothing hangs on virtual time")

    def close(self):
        if self._server is not None:
            self._server.close()

    def repro(self, messages):
        return "\n".join(json.dumps(message) for message in messages)

    def _configure(self, max_queue, job_ttl_ms, max_completed):
        self.close()
        settings = Settings(
            async_enabled=True,
            async_timeout=0,
            async_max_queue=max_queue,
            async_job_ttl=job_ttl_ms,
            async_max_completed=max_completed,
            runner="external",
            runner_token="runner",
            runner_lease=86_400_000,
        )
        self._server = VirtualServer(settings, core=self._core)
        self._pending, self._fences, self._ended = [], {}, set()
        return {"ok": True}

    def _ask(self, method, path, body=None):
        return self._server.request(method, path, body, {"authorization": "Bearer runner"})

    def _submit(self, task_id, payload):
        image = base64.b64encode(payload.encode()).decode()
        answer = self._ask("POST", "/jobs", {"images": [image], "req_id": _spelled(task_id)})
        if answer.status == 429:
            return {"refused": True}
        assert answer.status == 202
        self._pending.append(answer.json["job_id"])
        return {"job": answer.json["job_id"]}

    def _start(self, job):
        answer = self._ask("POST", "/runner/claim")
        if answer.status == 204:
            return {"accepted": False}
        claimed = self._pending.pop(0)
        self._fences[claimed] = answer.json["fence"]
        return {"accepted": answer.json["job_id"] == job}

    def _end(self, how, job, **words):
        body = {"fence": self._fences[job], **words}
        answer = self._ask("POST", f"/runner/jobs/{job}/{how}", body)
        self._ended.add(job)
        return {"unknown": True} if answer.status == 404 else answer.json

    def _finish(self, job, result):
        return self._end("finish", job, results=[{"status": 0, "data": result}])

    def _fail(self, job, error):
        return self._end("fail", job, error=error)

    def _timeout(self, job, error):
        return self._end("timeout", job, error=error)

    def _snapshot(self, job):
        answer = self._ask("GET", f"/jobs/{job}")
        return {"unknown": True} if answer.status == 404 else answer.json

    def _wait(self, job, budget_ms):
        before = self._server.loop.clock()
        answer = self._ask("GET", f"/jobs/{job}/wait?timeout={budget_ms}")
        assert answer.at_ms == before, "W1, W7: it took time"
        return {"unknown": True} if answer.status == 404 else answer.json

    def _result(self, job):
        answer = self._ask("GET", f"/jobs/{job}/result")
        if answer.status == 404:
            return {"status": "not_found"}
        if answer.status == 409:
            state = re.search(r"state: (\w+)", answer.json["error"])[1]
            return {"status": "not_done", "state": state}
        task_id = _unspelled(answer.json["task_id"])
        return {"status": "ready", "task_id": task_id, "result": answer.json["results"][0]["data"]}

    def _depth(self):
        return {"depth": self._server.core.ledger.depth()}

    def _advance(self, ms):
        self._server.advance(ms)
        return {"ok": True}


def _spelled(task_id):
    """Any text as one that may stand in a header."""
    return "r" + task_id.encode().hex()


def _unspelled(req_id):
    return bytes.fromhex(req_id[1:]).decode()


def test_the_real_app_answers_every_program_right(caplog):
    caplog.set_level(logging.CRITICAL, logger="sanic.error")
    with ServerSubject() as subject:
        assert find_failure(subject, "ci", 3, programs=30, remember=False) is None


def test_a_fault_inside_the_app_is_found_through_its_surface(caplog):
    caplog.set_level(logging.CRITICAL, logger="sanic.error")

    def core(settings, model, **words):
        return Core(settings, model, ledger=TtlInclusive, **words)

    with ServerSubject(core) as subject:
        failure = find_failure(subject, "ci", 1, remember=False)
    assert failure is not None
    assert failure.clause == "R9"
