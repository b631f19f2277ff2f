import json

import pytest

from counterfoil_conformance.wire.answer import Answer, Request
from counterfoil_conformance.wire.reading import at_pointer, read, surface_faults
from counterfoil_conformance.wire.target import Adapter
from counterfoil_spec.ledger import Outcome
from counterfoil_spec.wire import Route

JSON = ("Content-Type", "application/json; charset=utf-8")
GOOD = (JSON, ("X-Request-ID", "1"), ("Cache-Control", "no-store"))


def answer(status, body, headers=GOOD, trouble=""):
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Answer(Request("GET", "/jobs/j"), 0, 9, status, headers, raw, trouble)


def faults(route, status, body, **extra):
    headers = (*GOOD, ("Location", "/jobs/j"), ("Retry-After", "1"))
    return {f.clause for f in read(route, answer(status, body, headers), "j", **extra).faults}


def test_a_good_status_is_read_without_a_fault():
    body = {"job_id": "j", "state": "running", "elapsed_ms": 3, "more": 1}
    reading = read(Route.STATUS, answer(200, body), "j")
    assert (reading.outcome, reading.state, reading.faults) == (Outcome.FOUND, "running", ())
    assert reading.reply == {"state": "running", "error": None, "elapsed_ms": 3}


@pytest.mark.parametrize(
    ("change", "clause"),
    [
        ({"state": "queued"}, "S1"),
        ({"state": "DONE"}, "S1"),
        ({"elapsed_ms": -1}, "H8"),
        ({"elapsed_ms": 1.5}, "H8"),
        ({"job_id": "k"}, "H13"),
        ({"state": "failed"}, "S6"),
        ({"state": "timeout", "error": ""}, "S6"),
        ({"state": "running", "error": "boom"}, "S6"),
        ({"state": "done", "error": "boom"}, "S6"),
    ],
)
def test_each_wrong_field_is_blamed_on_its_clause(change, clause):
    body = {"job_id": "j", "state": "running", "elapsed_ms": 3} | change
    assert clause in faults(Route.STATUS, 200, body)


@pytest.mark.parametrize("error", [None, ""])
def test_an_error_that_is_null_or_empty_is_absent(error):
    body = {"job_id": "j", "state": "done", "elapsed_ms": 3, "error": error}
    assert faults(Route.STATUS, 200, body) == set()


def test_a_202_must_have_its_urls_and_be_pending():
    good = {"job_id": "j", "state": "pending", "poll_url": "/a", "result_url": "/b"}
    assert faults(Route.SUBMIT, 202, good) == set()
    assert faults(Route.SUBMIT, 202, good | {"state": "running"}) == {"S1"}
    assert faults(Route.SUBMIT, 202, {"job_id": "j", "state": "pending"}) == {"H10"}
    bare = read(Route.SUBMIT, answer(202, good), "")
    assert {f.clause for f in bare.faults} == {"H3"}  # no Location


def test_a_409_names_the_state():
    reading = read(Route.RESULT, answer(409, {"error": "job not finished (state: failed)"}), "j")
    assert reading.reply == {"status": "not_done", "state": "failed"}
    assert read(Route.RESULT, answer(409, {"error": "no"}), "j").state is None


def test_a_409_that_speaks_of_done_and_of_a_state_means_the_state():
    said = read(Route.RESULT, answer(409, {"error": "still not done, it is running"}), "j")
    assert said.state == "running"
    unclear = read(Route.RESULT, answer(409, {"error": "pending or running, wait"}), "j")
    assert (unclear.state, unclear.reply) == (None, None)


def test_an_adapter_reads_wrapped_bodies_in_other_words():
    adapter = Adapter(
        body="/data", fields={"job_id": "id", "state": "status"}, states={"done": "succeeded"}
    )
    body = {"data": {"id": "j", "status": "succeeded", "elapsed_ms": 1}}
    assert read(Route.STATUS, answer(200, body), "j", adapter).state == "done"
    assert faults(Route.STATUS, 200, body, adapter=adapter) == set()


@pytest.mark.parametrize(
    ("came", "clauses"),
    [
        (answer(200, {}), set()),
        (answer(500, {"error": "x"}), {"E5"}),
        (answer(404, {"error": 'Traceback (most recent call last):\n  File "a.py"'}), {"E5"}),
        (answer(200, b"", trouble="timeout"), {"E5"}),
        (answer(200, b'{"a": NaN}'), {"E9"}),
        (answer(200, b"{}", (JSON,)), {"H9"}),
        (answer(200, b"{}", (("Content-Type", "text/plain"), *GOOD[1:])), {"H13"}),
        (
            answer(200, b"{}", (("Content-Type", "Application/JSON;charset=UTF-8"), *GOOD[1:])),
            set(),
        ),
    ],
)
def test_what_no_answer_may_be(came, clauses):
    assert {fault.clause for fault in surface_faults(came)} == clauses


def test_pointers_lead_into_lists_and_objects_or_nowhere():
    value = {"results": [{"a/b": 1}]}
    assert at_pointer(value, "/results/0/a~1b") == 1
    assert not at_pointer(value, "/results/1")
    assert not at_pointer(value, "/nope/0")


@pytest.mark.parametrize(
    "trace",
    [
        'x\n  File "/app/model.py", line 7, in run',
        "java.lang.NullPointerException\n\tat com.acme.Runner.run(Runner.java:42)",
        "TypeError: x\n    at Object.<anonymous> (/app/server.js:10:5)",
        "System.Exception: x\n   at Acme.Jobs.Run() in /src/Jobs.cs:line 12",
        "goroutine 7 [running]:",
        "thread 'main' panicked at src/main.rs:4",
        "app.rb:10:in `run'",
        "x\n#0 /var/www/jobs.php(12): run()",
    ],
)
def test_a_stack_trace_is_seen_in_the_error_of_a_job_too(trace):
    came = answer(200, {"job_id": "j", "state": "failed", "elapsed_ms": 3, "error": trace})
    assert "E5" in {fault.clause for fault in surface_faults(came)}


@pytest.mark.parametrize(
    "text",
    [
        "the runner broke at 10:30",
        "image 3: cannot be read\n  at position 7",
        "model error: see http://127.0.0.1:8000/healthz",
        "failed at step 4 of model.onnx",
        "x\n  at 127.0.0.1:8000",
    ],
)
def test_what_only_resembles_a_stack_trace_is_none(text):
    came = answer(200, {"job_id": "j", "state": "failed", "elapsed_ms": 3, "error": text})
    assert "E5" not in {fault.clause for fault in surface_faults(came)}
