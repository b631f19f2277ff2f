"""Claims that wait for a job to come, and leases that lapse, on virtual time."""

import asyncio
import contextlib

import pytest

from counterfoil_server.config import Settings
from counterfoil_server.turns import Turns
from counterfoil_server.virtual_server import VirtualServer

RUNNER = {"authorization": "Bearer r"}


@pytest.fixture
def virtual():
    with contextlib.ExitStack() as stack:

        def start(**settings):
            usual = {"async_enabled": True, "runner": "external", "runner_token": "r"}
            server = VirtualServer(Settings(**usual | settings))
            stack.callback(server.close)
            return server

        yield start


def submit(server):
    return server.request("POST", "/jobs", {"images": ["YQ=="]}).json["job_id"]


def begin_claim(server, wait_ms):
    return server.begin("POST", "/runner/claim", {"wait_ms": wait_ms}, RUNNER)


def claim(server, **body):
    return server.request("POST", "/runner/claim", body, RUNNER)


def metric(server, name):
    return server.core.metrics.registry.get_sample_value(f"counterfoil_{name}")


def test_without_a_word_a_claim_does_not_wait(virtual):
    server = virtual()
    before = server.loop.clock()
    for body in ({}, {"wait_ms": 0}):
        answer = claim(server, **body)
        assert (answer.status, answer.at_ms) == (204, before)


def test_a_claim_waits_as_long_as_it_says_and_300_s_at_the_most(virtual):
    server = virtual()
    for wait_ms, least in ((700, 700), (10**30, 300_000)):
        before = server.loop.clock()
        answer = claim(server, wait_ms=wait_ms)
        assert answer.status == 204
        assert least <= answer.at_ms - before <= least + 1
    assert metric(server, "claims_waiting") == 0


@pytest.mark.parametrize("wait_ms", [-1, 1.5, "1", None, True, []])
def test_a_wait_that_is_no_whole_number_is_refused(virtual, wait_ms):
    server = virtual()
    submit(server)
    answer = claim(server, wait_ms=wait_ms)
    assert answer.status == 422 and answer.json["errors"][0]["pointer"] == "/wait_ms"
    assert claim(server).status == 200, "and has taken nothing"


@pytest.mark.parametrize(
    ("word", "body", "pointer"),
    [
        ("renew", {"fence": "1"}, "/fence"),
        ("renew", {"fence": True}, "/fence"),
        ("renew", {"fence": 1.5}, "/fence"),
        ("fail", {"error": "x"}, "/fence"),
        ("fail", {"fence": 1, "error": ""}, "/error"),
        ("timeout", {"fence": 1}, "/error"),
        ("finish", {"fence": 1}, "/results"),
        ("finish", {"fence": 1, "results": [1]}, "/results/0"),
        ("finish", {"fence": 1, "results": [{"status": False}]}, "/results/0"),
        ("finish", {"fence": 1, "results": [{"status": 1, "error": 5}]}, "/results/0/error"),
        ("finish", {"fence": 1, "results": [{"status": 0}], "model": "m"}, "/model"),
        ("finish", {"fence": 1, "results": [{"status": 0}], "model": {"name": 1}}, "/model"),
    ],
)
def test_a_word_that_is_wrong_in_itself_is_refused_and_changes_nothing(
    virtual, word, body, pointer
):
    server = virtual()
    job_id = submit(server)
    assert claim(server).json["fence"] == 1
    for name in (job_id, "job_none"):
        answer = server.request("POST", f"/runner/jobs/{name}/{word}", body, RUNNER)
        assert (answer.status, answer.json["errors"][0]["pointer"]) == (422, pointer)
    assert server.request("GET", f"/jobs/{job_id}").json["state"] == "running"


def test_a_runner_may_say_which_model_it_ran_and_write_its_numbers_as_it_likes(virtual):
    server = virtual()
    job_id = submit(server)
    claim(server, wait_ms=0.0)
    said = {"fence": 1.0, "results": [{"status": 0.0, "data": 1}], "model": {"name": "m"}}
    answer = server.request("POST", f"/runner/jobs/{job_id}/finish", said, RUNNER)
    assert answer.json == {"accepted": True}
    model = server.request("GET", f"/jobs/{job_id}/result").json["model"]
    assert model == {"name": "m", "version": ""}


def test_a_waiting_claim_is_answered_when_a_job_comes(virtual):
    server = virtual()
    waiting = begin_claim(server, 60_000)
    server.advance(5000)
    assert not waiting.done() and metric(server, "claims_waiting") == 1
    now = server.loop.clock()
    job_id = submit(server)
    answer = server.answer(waiting)
    assert (answer.json["job_id"], answer.at_ms) == (job_id, now)
    assert metric(server, "claims_waiting") == 0


def test_who_has_waited_longest_is_served_first_and_each_job_wakes_one(virtual):
    server = virtual()
    waiting = [begin_claim(server, 60_000) for _ in range(3)]
    ids = [submit(server) for _ in range(2)]
    assert [server.answer(one).json["job_id"] for one in waiting[:2]] == ids
    assert not waiting[2].done() and metric(server, "claims_waiting") == 1


def test_a_job_is_not_given_to_a_runner_that_went_away(virtual):
    server = virtual()
    gone, stays = begin_claim(server, 60_000), begin_claim(server, 60_000)
    gone.cancel()
    server.settle()
    job_id = submit(server)
    assert server.answer(stays).json["job_id"] == job_id
    assert len(server.core.leases.turns) == 0


def test_who_was_rung_for_and_cannot_go_has_the_next_one_rung_for():
    async def main():
        turns = Turns()
        first, second = (asyncio.create_task(turns.wait(60)) for _ in range(2))
        await asyncio.sleep(0)
        turns.ring()
        first.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await first
        await asyncio.wait_for(second, 1)
        assert first.cancelled() and len(turns) == 0

    asyncio.run(main())


def test_a_server_that_stops_lets_the_waiting_go(virtual):
    server = virtual()
    waiting = begin_claim(server, 60_000)
    before = server.loop.clock()
    server.loop.run_until_complete(server.core.drain(1000))
    answer = server.answer(waiting)
    assert (answer.status, answer.at_ms) == (204, before)
    assert claim(server, wait_ms=60_000).at_ms == before, "and nobody waits any more"


def test_a_job_that_waits_while_the_server_stops_can_still_be_claimed(virtual):
    server = virtual()
    job_id = submit(server)
    draining = server.loop.create_task(server.core.drain(60_000))
    claimed = claim(server).json
    path = f"/runner/jobs/{job_id}/finish"
    body = {"fence": claimed["fence"], "results": [{"status": 0, "data": 1}]}
    assert server.request("POST", path, body, RUNNER).json == {"accepted": True}
    assert server.loop.run_until_complete(draining) == 0


def test_a_lease_that_lapses_fails_the_job_once_is_counted_and_the_late_word_is_refused(virtual):
    server = virtual(runner_lease=1000, async_max_queue=1)
    job_id = submit(server)
    fence = claim(server).json["fence"]
    server.advance(1001)
    assert server.request("GET", f"/jobs/{job_id}").json["state"] == "failed"
    assert metric(server, "leases_lapsed_total") == 1
    assert claim(server).status == 204, "it is not handed out again"
    body = {"fence": fence, "results": [{"status": 0, "data": 1}]}
    late = server.request("POST", f"/runner/jobs/{job_id}/finish", body, RUNNER)
    assert (late.status, late.json) == (200, {"accepted": False})
    assert server.request("GET", f"/jobs/{job_id}/result").status == 409
    submit(server)
    assert metric(server, "leases_lapsed_total") == 1


def test_a_job_out_of_budget_is_told_to_its_runner_at_the_next_word(virtual):
    server = virtual(async_timeout=1000, runner_lease=60_000)
    job_id = submit(server)
    fence = claim(server).json["fence"]
    server.advance(1001)
    assert server.request("GET", f"/jobs/{job_id}").json["state"] == "timeout"
    renewed = server.request("POST", f"/runner/jobs/{job_id}/renew", {"fence": fence}, RUNNER)
    assert renewed.json == {"accepted": False}
    assert len(server.core.leases) == 0 and metric(server, "leases_lapsed_total") == 0


def test_the_estimate_of_a_refusal_counts_the_runners_outside(virtual):
    """Four runners that take 8 s each: of four jobs ahead each has one."""
    server = virtual(async_max_queue=8)
    for _ in range(40):
        job_id = submit(server)
        fence = claim(server).json["fence"]
        server.advance(8000)
        body = {"fence": fence, "results": [{"status": 0, "data": 1}]}
        server.request("POST", f"/runner/jobs/{job_id}/finish", body, RUNNER)
    for _ in range(8):
        submit(server)
    for _ in range(4):
        claim(server)
    refused = server.request("POST", "/jobs", {"images": ["YQ=="]})
    assert refused.status == 429
    assert 14 <= int(refused.headers["retry-after"]) <= 16, "five ahead, four at once, 8 s each"
