"""A whole run against targets that misbehave: one line, or findings; no traceback and no hang."""

import time

import hostile
import pytest

from counterfoil_conformance.errors import HarnessError
from counterfoil_conformance.report.events import Finding, HarnessFault
from counterfoil_conformance.run import RunOptions
from counterfoil_conformance.wire.run import run
from counterfoil_conformance.wire.target import parse_target

# Clauses whose checks are many and soon over: what is tested is the kit.
OPTIONS = RunOptions(seed=1, only=frozenset({"E1", "G3", "H13", "A8", "W7"}))
BODIES = {"quick": '{"images":["YQ=="]}', "slow": '{"images":["Yg=="]}', "slow_ms": 100}


def judged(url, **extra):
    events = []
    data = {"base_url": url, "bodies": BODIES, "limits": {"max_queue": 2}, **extra}
    run(parse_target(data), OPTIONS, events.append)
    return events


@pytest.mark.parametrize(
    "behaviour",
    [
        hostile.hangs,
        hostile.closes,
        hostile.resets,
        hostile.babbles,
        hostile.answers_half,
        hostile.floods,
        hostile.drips,
    ],
)
def test_what_does_not_speak_http_ends_the_run_with_one_line(behaviour):
    begun = time.monotonic()
    with hostile.target_that(behaviour) as url, pytest.raises(HarnessError) as end:
        judged(url)
    assert url in str(end.value)
    assert "\n" not in str(end.value)
    assert time.monotonic() - begun < 60


def test_a_target_that_is_not_there_is_one_line_within_five_seconds_of_trying():
    with pytest.raises(HarnessError, match=r"cannot reach http://127\.0\.0\.1:1: "):
        judged("http://127.0.0.1:1")


def test_a_first_submit_that_is_404_asks_for_the_prefix():
    head = b"HTTP/1.1 404 Not Found\r\nContent-Type: application/json"
    told = pytest.raises(HarnessError, match=r"POST /v2/jobs .* is answered 404: is `prefix`")
    with hostile.target_that(hostile.says(head, b'{"error":"no"}')) as url, told:
        judged(url, prefix="/v2")


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (b"200 OK", b"<html>It works!</html>"),
        (b"500 Internal Server Error", b'{"error":"no"}'),
    ],
)
def test_one_answer_to_everything_gives_findings_and_no_fault_of_the_harness(status, body):
    head = b"HTTP/1.1 " + status + b"\r\nContent-Type: application/json"
    begun = time.monotonic()
    with hostile.target_that(hostile.says(head, body)) as url:
        events = judged(url)
    faults = [event for event in events if isinstance(event, HarnessFault)]
    assert not faults
    assert any(isinstance(event, Finding) and not event.should for event in events)
    assert time.monotonic() - begun < 200
