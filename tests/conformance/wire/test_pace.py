"""How late is late, and how long to wait for what never comes: told from measured intervals."""

import asyncio

import pytest

from counterfoil_conformance.run import RunOptions
from counterfoil_conformance.wire.answer import Answer, now_us
from counterfoil_conformance.wire.jobs import Job
from counterfoil_conformance.wire.registry import ALL, Check, Context
from counterfoil_conformance.wire.schedule import run_checks
from counterfoil_conformance.wire.session import Session
from counterfoil_conformance.wire.target import parse_target

MS = 1000
TARGET = {
    "base_url": "http://127.0.0.1:1",
    "limits": {"workers": 2, "timeout_ms": 1500, "max_queue": 4, "max_completed": 5},
    "bodies": {"slow": '{"images":["YQ=="]}', "slow_ms": 600},
}


@pytest.fixture
def events():
    return []


@pytest.fixture
def session(events):
    return Session(parse_target(TARGET), RunOptions(), events.append)


def answered(session, call_ms, return_ms):
    request = session.client.request("GET", "/jobs/x")
    return Answer(request, call_ms * MS, return_ms * MS, 200)


def test_late_once_is_the_machine_and_late_again_and_again_is_not(session):
    assert [session.is_late("W2", 400 * MS, 260 * MS, at * MS) for at in (0, 1000, 2000)] == [
        False,
        False,
        True,
    ]


def test_all_that_was_due_at_one_moment_counts_as_one(session):
    assert not any(session.is_late("W2", 400 * MS, 260 * MS, at * MS) for at in range(20))


def test_a_second_beyond_what_is_allowed_is_late_at_once(session):
    assert session.is_late("W2", 1300 * MS, 260 * MS)


def test_what_was_slow_a_second_before_allows_nothing_later(session):
    session._note_trip(answered(session, 0, 900))
    for at in range(2000, 2300, 30):
        session._note_trip(answered(session, at, at + 2))
    for at in range(100):  # what is usual is not what was worst
        session._note_trip(answered(session, 1000 + at, 1002 + at))
    assert session.allowed_us(2000 * MS, 2300 * MS) < 300 * MS
    assert session.slack_us(1500 * MS) > 1100 * MS


def test_many_quick_reads_meanwhile_say_that_the_machine_had_time(session):
    for at in range(2000, 2300, 30):
        session._note_trip(answered(session, at, at + 2))
    assert session.was_prompt(2000 * MS, 2310 * MS)
    assert not session.was_prompt(2000 * MS, 2100 * MS)
    assert not session.was_prompt(0, 1000 * MS)


def job_of(session, age_ms):
    at = now_us() - age_ms * MS
    request = session.client.request("POST", "/jobs")
    job = Job("job_1", "slow", Answer(request, at - MS, at, 202), "", "", None, 1, now_us())
    session.jobs[job.id] = job
    return job


def test_a_job_is_given_up_once_it_is_a_finding(session, events):
    young, old = job_of(session, 2000), job_of(session, 6000)
    assert not session.is_overdue(young)
    assert session.is_overdue(old)
    session.give_up(old)
    session.give_up(old)
    assert [event.clause for event in events] == ["S9"]


def test_without_a_budget_nobody_is_overdue(events):
    free = {**TARGET, "limits": {**TARGET["limits"], "timeout_ms": 0}}
    session = Session(parse_target(free), RunOptions(), events.append)
    session.give_up(job_of(session, 600_000))
    assert events == []


def test_a_wait_is_silent_without_excuse_only_after_its_job_was_seen_ended(session):
    job = job_of(session, 5000)
    assert not session.is_unwoken(job, now_us() - 5_000_000)
    job.ended_us = now_us() - 4_000_000
    assert session.is_unwoken(job, now_us() - 5_000_000)
    assert not session.is_unwoken(job, now_us() - 500_000)


def test_when_a_run_is_late_those_that_count_places_go_first(session):
    ran = []

    def check(name, places, order):
        async def function(_):
            ran.append(name)

        return Check(name, ("S1",), "", function, (), (), places, "quick", order, 5.0)

    async def settled():
        return True

    session._begun_us -= 60_000_000
    ctx = Context(session, RunOptions(), lambda _: None)
    checks = [check("small", 1, 50), check("counts", ALL, 60), check("counts too", ALL, 61)]
    asyncio.run(run_checks(checks, ctx, lambda _: None, settled))
    assert ran == ["counts", "counts too", "small"]
