import asyncio
import os
import subprocess
import time

import hostile
import pytest

from counterfoil_conformance.wire.answer import NOT_JSON, Request, strict_json
from counterfoil_conformance.wire.client import Client
from counterfoil_conformance.wire.reading import surface_faults
from counterfoil_conformance.wire.target import parse_target


def ask(url, *, timeout_s=1.0, method="GET", body=None, times=1):
    async def go():
        client = Client(parse_target({"base_url": url}))
        try:
            request = client.request(method, "/jobs/x", body=body)
            answers = [await client.send(request, timeout_s=timeout_s) for _ in range(times)]
            return answers if times > 1 else answers[0]
        finally:
            await client.aclose()

    return asyncio.run(go())


@pytest.mark.parametrize(
    ("behaviour", "trouble"),
    [
        (hostile.hangs, "timeout"),
        (hostile.closes, "closed"),
        (hostile.resets, "reset"),
        (hostile.babbles, "garbage"),
        (hostile.answers_half, "truncated"),
        (hostile.floods, "too big"),
        (hostile.has_no_end_of_head, "garbage"),
        (hostile.drips, "timeout"),
    ],
)
def test_every_broken_answer_is_a_value_and_comes_in_bounded_time(behaviour, trouble):
    begun = time.monotonic()
    with hostile.target_that(behaviour) as url:
        answer = ask(url, timeout_s=1.0 if trouble == "timeout" else 30.0)
    assert answer.trouble == trouble
    assert not answer.ok
    assert answer.say()
    assert time.monotonic() - begun < 30


def test_nobody_there_is_refused():
    answer = ask("http://127.0.0.1:1")
    assert (answer.trouble, answer.status) == ("refused", 0)


def test_bytes_after_an_answer_are_not_taken_for_part_of_it():
    with hostile.target_that(hostile.promises_too_little) as url:
        answer = ask(url)
    assert answer.ok
    assert answer.body == b'{"'
    assert answer.json is NOT_JSON


def test_a_whole_answer_has_its_interval_and_the_connection_is_used_again():
    head = b"HTTP/1.1 404 Not Found\r\nContent-Type: application/json"
    with hostile.target_that(hostile.says(head, b'{"error":"x"}')) as url:
        first, second = ask(url, times=2, timeout_s=30)
    assert first.status == 404
    assert first.header("CONTENT-TYPE") == "application/json"
    assert first.field("error") == "x"
    assert first.call_us <= first.return_us <= second.call_us <= second.return_us
    assert first.conn == second.conn


def test_a_post_is_never_sent_twice():
    seen = []

    def closes_after_first(conn):
        hostile.read_request(conn)
        seen.append(1)

    with hostile.target_that(closes_after_first) as url:
        answer = ask(url, method="POST", body=b"{}", timeout_s=30)
    assert answer.trouble in ("closed", "reset")
    assert len(seen) == 1


def answers_once(conn):
    """An answer that promises nothing, then the end: a server that keeps few idle connections."""
    hostile.read_request(conn)
    conn.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}")


def test_a_kept_connection_may_end_between_two_requests():
    with hostile.target_that(answers_once) as url:
        read = ask(url, times=3, timeout_s=30)
        posted = ask(url, times=3, method="POST", body=b"{}", timeout_s=30)
    assert [answer.status for answer in (*read, *posted)] == [404] * 6


def test_an_end_of_a_kept_connection_is_no_finding():
    async def go(url):
        client = Client(parse_target({"base_url": url}))
        conn = await client.connect()
        request = client.request("POST", "/jobs", body=b"{}")
        answers = [await client.send(request, conn=conn, timeout_s=30) for _ in range(2)]
        await client.aclose()
        return answers

    with hostile.target_that(answers_once) as url:
        first, second = asyncio.run(go(url))
    assert (first.status, first.reused) == (404, False)
    assert second.closed_idle
    assert not list(surface_faults(second))


@pytest.mark.parametrize(
    ("text", "is_strict"),
    [
        (b'{"a": [1, null, "\\ud83d\\ude00"]}', True),
        (b'{"a": NaN}', False),
        (b"[Infinity]", False),
        (b'"\\ud800"', False),
        (b"{", False),
        (b"\xff", False),
        (b"[" * 100_000, False),
    ],
)
def test_strict_json_has_no_nan_and_no_lone_surrogates(text, is_strict):
    value, why = strict_json(text)
    assert (value is not NOT_JSON) == is_strict
    assert bool(why) != is_strict


def test_a_curl_line_says_everything_and_hides_the_token():
    headers = (("Host", "h"), ("Authorization", "Bearer s3cret"), ("X-A", "b"))
    request = Request("PUT", "/jobs/a%2Fb", headers, b"it's", "http://h:1", secret="s3cret")
    line = request.curl()
    assert "-X PUT" in line and "'http://h:1/jobs/a%2Fb'" in line
    assert "s3cret" not in line and "Bearer $TOKEN" in line
    assert r"'it'\''s'" in line


@pytest.mark.parametrize(
    "body",
    [
        b"GET /x HTTP/1.1\r\nHost: y\r\n\r\n" * 3,
        b"\r\n\r\n" + b"GET /jobs/smuggled HTTP/1.1\r\nHost: y\r\n\r\n" * 900,
        b'{"a' + b" " * 5000 + b'"}',
        b"it's\n\x00",
        b'{"x": "\xff\xfe"}',
        '{"x": "\u4efb"}'.encode(),
    ],
)
def test_the_curl_line_sends_the_very_bytes_that_were_sent(body, tmp_path):
    """Every body but a NUL (no shell passes one on), also one that is itself a request."""
    if b"\x00" in body:
        body = body.replace(b"\x00", b"")
    fake = tmp_path / "curl"
    fake.write_text(
        "#!/bin/bash\nwhile [ $# -gt 0 ]; do\n"
        '  if [ "$1" = --data-binary ]; then\n'
        f'    if [ "$2" = @- ]; then cat > {tmp_path}/sent\n'
        f'    else printf %s "$2" > {tmp_path}/sent; fi\n'
        "  fi\n  shift\ndone\n"
    )
    fake.chmod(0o755)
    line = Request("POST", "/jobs", (), body, "http://h:1").curl()
    assert len(line) < 1500
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    subprocess.run(["bash", "-c", line], check=True, env=env, timeout=20)
    assert (tmp_path / "sent").read_bytes() == body
