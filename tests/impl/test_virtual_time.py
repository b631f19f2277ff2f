"""The real server at full scale on virtual time: minutes to the millisecond, in milliseconds."""

import asyncio
import contextlib

import pytest

from counterfoil_server.config import Settings
from counterfoil_server.ledger import JobLedger
from counterfoil_server.virtual_server import VirtualServer
from counterfoil_server.virtual_time import VirtualTimeLoop

RUNNER = {"authorization": "Bearer r"}


@pytest.fixture
def virtual():
    with contextlib.ExitStack() as stack:

        def start(core=None, **settings):
            usual = {"async_enabled": True, "runner": "external", "runner_token": "r"}
            options = {"core": core} if core else {}
            server = VirtualServer(Settings(**usual | settings), **options)
            stack.callback(server.close)
            return server

        yield start


def submit(server):
    return server.request("POST", "/jobs", {"images": ["YQ=="]}).json["job_id"]


def claim(server):
    return server.request("POST", "/runner/claim", {}, RUNNER)


def tell(server, word, job_id, **body):
    return server.request("POST", f"/runner/jobs/{job_id}/{word}", body, RUNNER)


def state(server, job_id):
    answer = server.request("GET", f"/jobs/{job_id}")
    return answer.json["state"] if answer.status == 200 else answer.status


def test_the_clock_stands_still_but_for_jumps():
    loop = VirtualTimeLoop()
    try:
        before = loop.clock()
        loop.run_until_complete(asyncio.sleep(86_400))
        assert loop.clock() - before == 86_400_000
    finally:
        loop.close()


@pytest.mark.parametrize(
    ("query", "budget_ms"),
    [
        ("", 30_000),
        ("?timeout=0", 30_000),
        ("?timeout=-7", 30_000),
        ("?timeout=1", 1),
        ("?timeout=299999", 299_999),
        ("?timeout=300000", 300_000),
        ("?timeout=300001", 300_000),
        ("?timeout=18446744073709551617", 300_000),
    ],
)
def test_a_wait_blocks_for_its_budget_to_the_millisecond(virtual, query, budget_ms):
    server = virtual(async_timeout=0)
    job_id = submit(server)
    asked_at = server.loop.clock()
    answer = server.request("GET", f"/jobs/{job_id}/wait{query}")
    assert answer.json["state"] == "pending"
    assert 0 <= answer.at_ms - asked_at - budget_ms <= 1
    assert server.core.waiters.blocked == 0


def test_a_waiter_is_woken_by_the_end_and_not_by_the_start(virtual):
    server = virtual()
    job_id = submit(server)
    waiting = server.begin("GET", f"/jobs/{job_id}/wait?timeout=300000")
    server.advance(1000)
    fence = claim(server).json["fence"]
    server.advance(1000)
    assert state(server, job_id) == "running" and not waiting.done()
    ended_at = server.loop.clock()
    tell(server, "fail", job_id, fence=fence, error="no")
    answer = server.answer(waiting)
    assert answer.json["state"] == "failed" and answer.at_ms == ended_at


def test_a_pending_job_times_out_at_its_budget_and_not_before(virtual):
    server = virtual(async_timeout=300_000)
    early = submit(server)
    server.advance(100_000)
    late = submit(server)
    server.advance(199_990)
    assert state(server, early) == "pending"
    server.advance(20)
    assert (state(server, early), state(server, late)) == ("timeout", "pending")
    server.advance(100_000)
    assert state(server, late) == "timeout"
    assert server.core.ledger.depth() == 0
    assert claim(server).status == 204, "a job that has ended is handed to nobody"


def test_a_running_job_times_out_too_and_its_late_result_is_dropped(virtual):
    server = virtual(async_timeout=5000, runner_lease=60_000)
    job_id = submit(server)
    fence = claim(server).json["fence"]
    server.advance(5010)
    assert state(server, job_id) == "timeout"
    late = tell(server, "finish", job_id, fence=fence, results=[{"status": 0, "data": 1}])
    assert late.json == {"accepted": False}
    assert state(server, job_id) == "timeout"
    assert server.request("GET", f"/jobs/{job_id}/result").status == 409


def test_without_a_budget_a_job_waits_for_days(virtual):
    server = virtual(async_timeout=0)
    job_id = submit(server)
    server.advance(86_400_000)
    assert state(server, job_id) == "pending"


def test_a_job_is_gone_only_after_more_than_its_ttl_and_only_by_a_submit(virtual):
    server = virtual(async_job_ttl=300_000)
    job_id = submit(server)
    tell(server, "fail", job_id, fence=claim(server).json["fence"], error="no")
    server.advance(300_000)
    submit(server)
    assert state(server, job_id) == "failed"
    server.advance(1)
    assert state(server, job_id) == "failed"
    submit(server)
    assert state(server, job_id) == 404


def test_the_runner_surface_from_claim_to_envelope(virtual):
    server = virtual()
    job_id = server.request(
        "POST", "/jobs", {"images": ["a", "b"], "req_id": "mine", "params": {"k": 1}}
    ).json["job_id"]
    claimed = claim(server).json
    assert claimed["job_id"] == job_id and claimed["task_id"] == "mine"
    assert claimed["images"] == ["a", "b"] and claimed["params"] == {"k": 1}
    assert state(server, job_id) == "running"
    fence = claimed["fence"]
    bad = tell(server, "finish", job_id, fence=fence, results=[{"status": 0, "data": 1}])
    assert bad.status == 422 and bad.json["errors"][0]["pointer"] == "/results"
    results = [{"status": 0, "data": {"x": 1}}, {"status": 3, "error": "dark"}]
    assert tell(server, "finish", job_id, fence=fence, results=results).json == {"accepted": True}
    assert tell(server, "finish", job_id, fence=fence, results=results).json == {"accepted": False}
    body = server.request("GET", f"/jobs/{job_id}/result").json
    assert body["task_id"] == "mine" and body["partial"] is True
    assert body["results"] == [{"status": 0, "data": {"x": 1}}, {"status": 1, "data": None}]


def test_jobs_are_claimed_in_the_order_of_admission_with_a_fence_each(virtual):
    server = virtual()
    ids = [submit(server) for _ in range(3)]
    claims = [claim(server).json for _ in ids]
    assert [one["job_id"] for one in claims] == ids
    assert len({one["fence"] for one in claims}) == 3
    wrong = tell(server, "fail", ids[0], fence=claims[1]["fence"], error="no")
    assert wrong.json == {"accepted": False}
    assert state(server, ids[0]) == "running"


def test_a_silent_runner_loses_its_job_and_a_renewing_one_does_not(virtual):
    server = virtual(runner_lease=1000)
    silent, loud = submit(server), submit(server)
    claim(server)
    fence = claim(server).json["fence"]
    for _ in range(5):
        server.advance(700)
        assert tell(server, "renew", loud, fence=fence).json == {"accepted": True}
    assert (state(server, silent), state(server, loud)) == ("failed", "running")
    server.advance(1001)
    assert state(server, loud) == "failed"
    assert tell(server, "renew", loud, fence=fence).json == {"accepted": False}
    assert len(server.core.leases) == 0


def test_the_runner_surface_has_a_token_of_its_own(virtual):
    server = virtual(token="c")
    assert server.request("POST", "/runner/claim", {}).status == 401
    client = {"authorization": "Bearer c"}
    assert server.request("POST", "/runner/claim", {}, client).status == 401
    assert claim(server).status == 204
    assert server.request("POST", "/jobs", {"images": ["YQ=="]}, RUNNER).status == 401
    assert tell(server, "fail", "job_none", fence=1, error="no").status == 404
    assert server.request("POST", "/infer", {"images": ["YQ=="]}, client).status == 404


def test_there_is_no_runner_surface_unless_it_is_asked_for(virtual):
    server = virtual(runner="internal", runner_token="", workers=1)
    assert claim(server).status == 404
    assert tell(server, "fail", "job_none", fence=1, error="no").status == 404


def test_internal_workers_run_while_the_clock_stands(virtual):
    server = virtual(runner="internal", runner_token="", workers=1)
    job_id = submit(server)
    before = server.loop.clock()
    answer = server.request("GET", f"/jobs/{job_id}/wait")
    assert answer.json["state"] == "done" and answer.at_ms - before < 1000


def test_what_it_measures_would_show_a_fault(virtual):
    """The same checks on a ledger whose TTL counts from admission: seen at once."""

    class FromAdmission(JobLedger):
        def _expired(self, job, now):
            return now - job.seen.submitted_at > self.limits.job_ttl_ms

    def core(*words, **options):
        from counterfoil_server.core import Core

        return Core(*words, **options, ledger=FromAdmission)

    server = virtual(core, async_job_ttl=300_000)
    job_id = submit(server)
    server.advance(1000)
    tell(server, "fail", job_id, fence=claim(server).json["fence"], error="no")
    server.advance(300_000)
    submit(server)
    assert state(server, job_id) == 404
