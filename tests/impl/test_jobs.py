"""The ledger over HTTP: the H table, from admission to the envelope."""

import hashlib
import threading
import time

import pytest


def test_a_job_is_admitted_waited_for_and_fetched_by_the_urls_it_was_given(serve):
    client = serve()
    answer = client.submit("hello", req_id="mine")
    assert answer.status == 202
    body = answer.json
    assert body["state"] == "pending" and body["job_id"].startswith("job_")
    assert answer.headers["location"] == body["poll_url"] == f"/jobs/{body['job_id']}"
    assert client.ended(body["job_id"])["state"] == "done"
    status = client.get(body["poll_url"])
    assert status.status == 200 and status.json.keys() == {"job_id", "state", "elapsed_ms"}
    result = client.get(body["result_url"])
    assert result.status == 200
    assert result.json["task_id"] == "mine" and result.json["partial"] is False
    (item,) = result.json["results"]
    assert item["status"] == 0
    assert item["data"]["echo"] == hashlib.sha256(b"hello").hexdigest()
    assert client.get(body["result_url"]).content == result.content


def test_an_absent_or_empty_req_id_gets_one_of_the_servers(serve):
    client = serve()
    for more in ({}, {"req_id": ""}):
        job_id = client.admitted("x", **more)
        client.ended(job_id)
        assert client.get(f"/jobs/{job_id}/result").json["task_id"].startswith("task_")


def test_the_admission_of_a_slow_job_is_not_slow_and_its_result_is_409(serve):
    client = serve()
    job_id = client.admitted("delay:4000")
    assert client.get(f"/jobs/{job_id}").json["state"] in ("pending", "running")
    answer = client.get(f"/jobs/{job_id}/result")
    assert answer.status == 409
    assert answer.json["error"].startswith("job not finished (state: ")


def test_the_queue_is_full_at_the_bound_and_says_the_bound(serve):
    client = serve(async_max_queue=1)
    job_id = client.admitted("delay:2000")
    client.until(lambda: client.get(f"/jobs/{job_id}").json["state"] == "running")
    refused = client.submit("x")
    assert refused.status == 429
    assert refused.json["error"] == "async queue full (max 1)"
    assert 1 <= int(refused.headers["retry-after"]) <= 60
    client.ended(job_id)
    client.admitted("x")


def test_an_unknown_id_is_404_everywhere(serve):
    client = serve()
    for path in ("/jobs/job_none", "/jobs/job_none/wait", "/jobs/job_none/result"):
        answer = client.get(path)
        assert answer.status == 404
        assert answer.json["error"] == "job not found: job_none"


@pytest.mark.parametrize(
    "job_id", ["..", "%2e%2e", "a%00b", "%F0%9F%98%80", "x" * 10_000, "a%0d%0aSet-Cookie:1"]
)
def test_a_strange_id_is_not_found(serve, job_id):
    client = serve()
    assert client.get(f"/jobs/{job_id}").status == 404
    assert client.get(f"/jobs/{job_id}/result").status == 404


def test_a_wrong_method_is_405_with_allow_and_404_on_nothing(serve):
    client = serve()
    job_id = client.admitted("x")
    answer = client.send("DELETE", f"/jobs/{job_id}")
    assert answer.status == 405 and answer.headers["allow"] == "HEAD, GET, OPTIONS"
    assert client.send("BREW", f"/jobs/{job_id}").status == 405
    assert client.send("DELETE", "/jobs/job_none").status == 404
    assert client.send("BREW", "/jobs/job_none").status == 404
    assert client.get("/jobs").headers["allow"] == "POST, OPTIONS"
    assert client.get("/jobs/").status == client.get("/nowhere").status == 404
    assert client.get(f"/jobs/{job_id}/other").status == 404


def test_head_and_options_are_answered_and_leave_the_connection_usable(serve):
    client = serve()
    job_id = client.admitted("delay:200")
    for path in (f"/jobs/{job_id}", f"/jobs/{job_id}/wait", "/healthz"):
        assert client.send("HEAD", path).status == 200
        assert client.send("OPTIONS", path).status == 204
    assert client.ended(job_id)["state"] == "done"


def test_without_async_enabled_there_are_no_jobs_but_there_is_infer(serve):
    client = serve(async_enabled=False)
    assert client.submit("x").status == 404
    assert client.get("/jobs/job_none").status == 404
    assert client.submit("x", path="/infer").status == 200


def test_every_url_carries_the_prefix(serve):
    client = serve(prefix="/v1/models/demo")
    body = client.submit("x", path="/v1/models/demo/jobs").json
    assert body["poll_url"].startswith("/v1/models/demo/jobs/job_")
    assert client.get(body["poll_url"] + "/wait").json["state"] == "done"
    assert client.get(body["result_url"]).status == 200
    assert client.submit("x").status == 404
    assert client.get("/healthz").status == client.get("/v1/models/demo/healthz").status == 200


def test_some_items_fail_and_the_job_is_done_in_part(serve):
    client = serve()
    images = ["YQ==", "ZmFpbDpubw==", "not base64!"]
    job_id = client.send("POST", "/jobs", {"images": images}).json["job_id"]
    assert client.ended(job_id)["state"] == "done"
    body = client.get(f"/jobs/{job_id}/result").json
    assert body["partial"] is True
    assert [item["status"] for item in body["results"]] == [0, 1, 1]
    assert [item["data"] is None for item in body["results"]] == [False, True, True]
    assert [fault["pointer"] for fault in body["errors"]] == ["/images/1", "/images/2"]


def test_no_item_succeeds_and_the_job_failed(serve):
    client = serve()
    job_id = client.admitted("fail:too dark")
    assert client.ended(job_id)["error"] == "image 0: too dark"
    assert client.get(f"/jobs/{job_id}/result").status == 409


def test_a_crash_fails_the_job_and_gives_worker_and_place_back(serve):
    client = serve(workers=1, async_max_queue=1)
    for _ in range(3):
        assert "crashed" in client.ended(client.admitted("crash"))["error"]
    assert client.ended(client.admitted("x"))["state"] == "done"


def test_elapsed_ms_stops_at_completion(serve):
    client = serve()
    job_id = client.admitted("delay:50")
    first = client.ended(job_id)["elapsed_ms"]
    time.sleep(0.05)
    assert client.get(f"/jobs/{job_id}").json["elapsed_ms"] == first >= 50


def test_a_result_has_a_tag_that_spares_reading_it_again(serve):
    client = serve()
    job_id = client.admitted("x")
    client.ended(job_id)
    tag = client.get(f"/jobs/{job_id}/result").headers["etag"]
    for known in (tag, f"W/{tag}", f'"other", {tag}'):
        again = client.get(f"/jobs/{job_id}/result", headers={"if-none-match": known})
        assert again.status == 304 and not again.content
    other = client.get(f"/jobs/{job_id}/result", headers={"if-none-match": '"other", W/"x"'})
    assert other.status == 200 and other.content


def test_a_wait_answers_the_state_when_its_budget_runs_out(serve):
    client = serve()
    job_id = client.admitted("delay:4000")
    before = time.monotonic()
    answer = client.get(f"/jobs/{job_id}/wait?timeout=100")
    assert time.monotonic() - before >= 0.095
    assert answer.status == 200 and answer.json["state"] in ("pending", "running")


def test_two_waiters_hear_of_the_same_end(serve):
    client = serve()
    job_id = client.admitted("delay:200")
    answers = []

    def wait():
        path = f"/jobs/{job_id}/wait"
        answers.append(type(client)(client.server).get(path).json["state"])

    waiters = [threading.Thread(target=wait) for _ in range(2)]
    for waiter in waiters:
        waiter.start()
    for waiter in waiters:
        waiter.join()
    assert answers == ["done", "done"]
    assert client.core.waiters.blocked == 0


@pytest.mark.parametrize("text", ["abc", "1e3", "150ms", "", "--1", "%201"])
def test_a_wait_budget_that_is_no_integer_is_refused(serve, text):
    client = serve()
    job_id = client.admitted("x")
    answer = client.get(f"/jobs/{job_id}/wait?timeout={text}")
    assert answer.status == 422
    assert answer.json["errors"][0]["pointer"] == "/timeout"


@pytest.mark.parametrize("text", ["1000", "+1000", "%2B1000", "-5", "0", "9" * 5000])
def test_a_wait_budget_of_any_size_is_taken(serve, text):
    client = serve()
    job_id = client.admitted("x")
    assert client.get(f"/jobs/{job_id}/wait?timeout={text}").json["state"] == "done"


def test_infer_answers_the_envelope_and_takes_no_place(serve):
    client = serve(async_max_queue=1, workers=2)
    client.admitted("delay:4000")
    assert client.submit("x").status == 429
    answer = client.submit("y", path="/infer", req_id="mine")
    assert answer.status == 200 and answer.json["task_id"] == "mine"


def test_infer_says_what_failed(serve):
    client = serve()
    answer = client.submit("fail:no", path="/infer")
    assert answer.status == 200 and answer.json["status"] == 1
    answer = client.submit("crash", path="/infer")
    assert answer.status == 500 and answer.json["status_str"].startswith("the model crashed")
    assert serve(async_timeout=200).submit("delay:4000", path="/infer").status == 504


def test_infer_is_bounded_by_itself(serve):
    client = serve(infer_max_pending=1)
    other = threading.Thread(
        target=lambda: type(client)(client.server).submit("delay:2000", path="/infer")
    )
    other.start()
    client.until(lambda: client.core.runner.calls == 1)
    answer = client.submit("x", path="/infer")
    assert answer.status == 429 and answer.headers["retry-after"]
    other.join()


def test_every_answer_has_a_request_id_and_is_not_stored(serve):
    client = serve()
    for path in ("/healthz", "/jobs/none", "/nowhere"):
        answer = client.get(path)
        assert answer.headers["x-request-id"] and answer.headers["cache-control"] == "no-store"
    answer = client.get("/healthz", headers={"x-request-id": "abc-1"})
    assert answer.headers["x-request-id"] == "abc-1"
    answer = client.get("/healthz", headers={"x-request-id": "a b\u00e9"})
    assert answer.headers["x-request-id"] != "a b\u00e9"
