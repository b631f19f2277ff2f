"""Idle workers beside pending jobs, told from intervals alone: lives that accuse beside lives that
do not, because somebody else may have kept the worker busy."""

import pytest

from counterfoil_conformance.run import RunOptions
from counterfoil_conformance.wire.answer import Answer
from counterfoil_conformance.wire.jobs import Job
from counterfoil_conformance.wire.session import Session
from counterfoil_conformance.wire.target import parse_target
from counterfoil_conformance.wire.workers import worker_faults

MS = 1000
TARGET = {
    "base_url": "http://127.0.0.1:1",
    "limits": {"workers": 2, "timeout_ms": 1500},
    "bodies": {"slow": '{"images":["YQ=="]}', "slow_ms": 600},
}


@pytest.fixture
def session():
    return Session(parse_target(TARGET), RunOptions(), lambda _: None)


class Life:
    """Adds jobs to a session by what was seen of them; times in ms."""

    def __init__(self, session):
        self.session = session

    def job(self, call, *, pending=0, running=None, live=0, end=None, state="done", kind="slow"):
        request = self.session.client.request("POST", "/jobs")
        answer = Answer(request, call * MS, (call + 1) * MS, 202)
        job = Job(f"job_{len(self.session.jobs)}", kind, answer, "", "", None, 1, live * MS)
        job.pending_us, job.state = pending * MS, state
        starts = [at for at in (running, end) if at is not None]
        job.started_us = min(starts) * MS if starts else None
        job.ended_us = None if end is None else end * MS
        self.session.jobs[job.id] = job

    def blocking(self, call, end):
        request = self.session.client.request("POST", "/infer")
        self.session.blocking_calls.append(Answer(request, call * MS, end * MS, 200))


def clauses(session):
    return [fault.clause for fault, _ in worker_faults(session)]


def one_after_the_other(life, at):
    life.job(at, running=at + 5, live=at + 590, end=at + 600)
    life.job(at + 1, pending=at + 595, running=at + 605, live=at + 1190, end=at + 1200)


def test_jobs_that_run_one_after_the_other_beside_an_idle_worker_are_q4(session):
    for round_ in range(3):
        one_after_the_other(Life(session), round_ * 2000)
    assert clauses(session) == ["Q4"]


def test_once_may_be_the_machine(session):
    one_after_the_other(Life(session), 0)
    assert clauses(session) == []


def test_a_blocking_call_may_have_held_the_worker(session):
    for round_ in range(3):
        one_after_the_other(Life(session), round_ * 2000)
        Life(session).blocking(round_ * 2000, round_ * 2000 + 700)
    assert clauses(session) == []


def test_a_third_job_that_nobody_read_may_have_held_the_worker(session):
    for round_ in range(3):
        one_after_the_other(Life(session), round_ * 2000)
        Life(session).job(round_ * 2000, end=round_ * 2000 + 700)
    assert clauses(session) == []


def test_a_run_that_timed_out_may_hold_its_worker_until_it_is_over(session):
    Life(session).job(0, running=5, live=1490, end=1500, state="timeout", kind="hanging")
    for round_ in range(1, 4):
        one_after_the_other(Life(session), round_ * 2000)
    assert clauses(session) == []


def test_what_was_pending_for_less_than_tolerance_is_no_matter(session):
    for round_ in range(3):
        at = round_ * 2000
        Life(session).job(at, pending=at + 200, running=at + 210, live=at + 800, end=at + 810)
    assert clauses(session) == []


def test_who_had_two_workers_before_a_timeout_and_one_since_has_lost_one(session):
    life = Life(session)
    for _ in range(2):
        life.job(0, running=5, live=590, end=600)
    life.job(700, running=705, live=2190, end=2200, state="timeout", kind="slow")
    for round_ in range(3):
        one_after_the_other(life, 6000 + round_ * 2000)
    assert clauses(session) == ["Q4", "T3"]


def test_nothing_is_said_of_a_target_that_others_use_too(session):
    shared = Session(parse_target({**TARGET, "exclusive": False}), RunOptions(), lambda _: None)
    for round_ in range(3):
        one_after_the_other(Life(shared), round_ * 2000)
    assert clauses(shared) == []
