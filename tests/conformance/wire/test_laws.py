"""What holds of every answer, shown on answers that keep it and on answers that break it."""

import json

import pytest

from counterfoil_conformance.wire.answer import Answer, Request
from counterfoil_conformance.wire.laws import broken_laws, raw_in_head, retry_after_fault
from counterfoil_conformance.wire.target import Adapter, Target

TARGET = Target(base_url="http://t", prefix="/v1/models/m")
JSON = ("Content-Type", "application/json; charset=utf-8")


def answer(status, body, *headers, method="POST", path="/v1/models/m/jobs", head=b""):
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Answer(Request(method, path), 0, 1, status, (JSON, *headers), text, head=head)


def clauses(given, target=TARGET):
    return [(fault.clause, fault.should) for fault in broken_laws(given, target)]


ADMITTED = {
    "job_id": "j",
    "poll_url": "/v1/models/m/jobs/j",
    "result_url": "/v1/models/m/jobs/j/result",
}
LOCATION = ("Location", "/v1/models/m/jobs/j")
ERRORS = [{"pointer": "/images", "message": "missing"}]


def test_urls_under_the_prefix_are_fine():
    assert clauses(answer(202, ADMITTED, LOCATION)) == []


@pytest.mark.parametrize(
    "url", ["/jobs/j", "jobs/j", "http://t/v1/models/m/jobs/j", "//t/v1/models/m/jobs/j", 5]
)
def test_urls_that_are_relative_whole_or_without_the_prefix_are_not(url):
    assert clauses(answer(202, ADMITTED | {"poll_url": url}, LOCATION)) == [("H10", False)]


def test_a_gateway_that_rewrites_urls_is_declared():
    target = Target(base_url="http://t", adapter=Adapter(rewritten_urls=True), prefix="/x")
    given = answer(202, ADMITTED, ("Location", "http://gateway/j"), path="/x/jobs")
    assert clauses(given, target) == []


def test_a_401_offers_bearer_in_any_case_and_order():
    for offer in ("Bearer", 'bearer realm="x"', 'Basic realm="x", Bearer'):
        assert clauses(answer(401, {"error": "no"}, ("WWW-Authenticate", offer))) == []
    for headers in ((), (("WWW-Authenticate", "Basic"),)):
        assert clauses(answer(401, {"error": "no"}, *headers)) == [("K1", False)]


def test_a_refusal_of_the_body_lists_what_is_wrong():
    assert clauses(answer(422, {"error": "no", "errors": ERRORS})) == []
    assert clauses(answer(422, {"error": "no"})) == [("E2", False)]
    assert clauses(answer(400, {"error": "no", "errors": []})) == [("H13", False)]
    assert clauses(answer(413, {"error": "no"})) == [("H13", True)]
    dotted = [{"pointer": "images.0", "message": "no text"}]
    assert clauses(answer(422, {"error": "no", "errors": dotted})) == [("E2", False)]
    silent = [{"pointer": "/images", "message": ""}]
    assert clauses(answer(422, {"error": "no", "errors": silent})) == [("E2", False)]


def test_a_refusal_says_something_in_words():
    assert clauses(answer(404, {"status_str": "not found"}, method="GET")) == []
    assert clauses(answer(404, {"code": 7}, method="GET")) == [("H13", False)]
    assert clauses(answer(409, b"", method="GET")) == [("H13", False)]


def test_nothing_is_asked_of_a_head_request_or_of_no_answer():
    assert clauses(answer(404, b"", method="HEAD")) == []
    assert clauses(Answer(Request("GET", "/"), 0, 1, trouble="timeout")) == []


def test_a_405_without_allow_is_a_warning():
    assert clauses(answer(405, {"error": "no"}, method="PUT")) == [("H5", True)]


@pytest.mark.parametrize(
    "line",
    [
        b"X-Injected: yes",
        b"X-Request-ID: caf\xe9",
        b"X-Request-ID: a\x00b",
        b"X-Request-ID: a\nX-Injected: yes",
        b"X-Request-ID: \xf0\x9f\x98\x80",
    ],
)
def test_what_reaches_a_header_raw_is_found(line):
    head = b"HTTP/1.1 202 Accepted\r\nServer: x\r\n" + line
    headers = (("X-Injected", "yes"),) if line.startswith(b"X-Inj") else ()
    fault = raw_in_head(answer(202, ADMITTED, *headers, head=head), "E7")
    assert fault is not None and fault.clause == "E7"


def test_what_was_made_safe_is_not():
    head = b"HTTP/1.1 202 Accepted\r\nX-Request-ID: a%0d%0aX-Injected:%20yes\r\nServer: x"
    assert raw_in_head(answer(202, ADMITTED, head=head), "E7") is None


@pytest.mark.parametrize(("value", "fine"), [("1", 1), ("60", 1), ("0", 0), ("61", 0), ("x", 0)])
def test_retry_after_is_one_to_sixty_seconds(value, fine):
    fault = retry_after_fault(answer(429, {"error": "full"}, ("Retry-After", value)), "H4")
    assert (fault is None) == bool(fine)
