"""Bad input, the order of refusals, and connections that stay usable or are closed (E, H12)."""

import json
import re
import socket
import time

import pytest
from sanic.router import Router


def raw(client, data, *, close=False, timeout=60):
    """Everything that comes back for bytes sent as they are."""
    with socket.create_connection((client.address.hostname, client.address.port)) as connection:
        connection.settimeout(timeout)
        connection.sendall(data)
        if close:
            connection.shutdown(socket.SHUT_WR)
        received = b""
        while part := connection.recv(65536):
            received += part
        return received


def post(path="/jobs", body=b"", *lines):
    head = [f"POST {path} HTTP/1.1", "host: x", *lines]
    if not any("transfer-encoding" in line or "content-length" in line for line in lines):
        head.append(f"content-length: {len(body)}")
    return "\r\n".join([*head, "", ""]).encode() + body


LAST = b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"


@pytest.mark.parametrize(
    "body",
    [
        "",
        "nope",
        "[1]",
        '"x"',
        "null",
        '{"images":["YQ=="]',
        '{"images":["YQ=="],"params":{"x":NaN}}',
        '{"images":["YQ=="],"images":["YQ=="]}',
        '{"images":["YQ=="],"params":{"x":' + "[" * 65 + "]" * 65 + "}}",
        '{"images":["YQ=="],"params":{"x":' + "9" * 5000 + "}}",
        b'{"images":["\xff"]}',
        b'\xef\xbb\xbf{"images":["YQ=="]}',
        "[" * 100_000,
    ],
)
def test_what_is_not_a_strict_json_object_is_400(serve, body):
    client = serve()
    answer = client.send("POST", "/jobs", body)
    assert answer.status == 400 and answer.json["errors"][0]["message"]
    assert client.core.ledger.depth() == 0 and not client.core.ledger.jobs()


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/images"),
        ({"images": []}, "/images"),
        ({"images": "YQ=="}, "/images"),
        ({"images": None}, "/images"),
        ({"images": ["YQ==", 7, None]}, "/images/1"),
        ({"images": ["YQ=="] * 65}, "/images"),
        ({"images": ["YQ=="], "req_id": None}, "/req_id"),
        ({"images": ["YQ=="], "req_id": 5}, "/req_id"),
        ({"images": ["YQ=="], "req_id": "a\r\nb"}, "/req_id"),
        ({"images": ["YQ=="], "req_id": "a\u0085b"}, "/req_id"),
        ({"images": ["YQ=="], "req_id": "\ud800"}, "/req_id"),
        ({"images": ["YQ=="], "params": {"a/b": ["\udfff"]}}, "/params/a~1b/0"),
        ({"images": ["YQ=="], "params": {"\ud800": 1}}, "/params"),
        ({"images": ["YQ=="], "params": []}, "/params"),
        ({"images": ["YQ=="], "options": None}, "/options"),
        ({"images": ["YQ=="], "more": 1}, "/more"),
    ],
)
def test_each_fault_is_422_with_its_pointer(serve, body, pointer):
    client = serve()
    answer = client.send("POST", "/jobs", body)
    assert answer.status == 422
    assert pointer in [fault["pointer"] for fault in answer.json["errors"]]
    assert not client.core.ledger.jobs()


def test_deep_brackets_inside_of_strings_are_not_depth(serve):
    client = serve()
    body = {"images": ["YQ=="], "params": {"x": "[" * 500 + '"\\' + "{" * 500}}
    assert client.send("POST", "/jobs", body).status == 202


def test_a_req_id_of_any_text_comes_back_as_it_was(serve):
    client = serve()
    req_id = "Grüße \U0001f600 " + "x" * 3000
    job_id = client.admitted("x", req_id=req_id)
    client.ended(job_id)
    assert client.get(f"/jobs/{job_id}/result").json["task_id"] == req_id


@pytest.mark.parametrize("kind", ["text/plain", "application/xml", "multipart/form-data"])
def test_another_media_type_is_415(serve, kind):
    client = serve()
    answer = client.send("POST", "/jobs", "{}", {"content-type": kind})
    assert answer.status == 415


def test_parameters_of_the_media_type_and_its_case_do_not_matter(serve):
    client = serve()
    headers = {"content-type": "Application/JSON; charset=latin-1"}
    assert client.send("POST", "/jobs", {"images": ["YQ=="]}, headers).status == 202
    assert b" 202 " in raw(client, post("/jobs", b'{"images":["YQ=="]}') + LAST)


def test_a_body_over_the_limit_is_413_also_for_who_is_still_sending(serve):
    client = serve(max_body=1000)
    answer = client.send("POST", "/jobs", b" " * 3_000_000)
    assert answer.status == 413 and answer.headers["connection"] == "close"
    assert answer.headers["x-request-id"] and answer.json["errors"]
    chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
    whole = chunk * 20 + b"0\r\n\r\n"
    received = raw(client, post("/jobs", whole, "transfer-encoding: chunked"))
    assert received.startswith(b"HTTP/1.1 413") and received.count(b"HTTP/1.1") == 1


def test_after_a_413_what_still_comes_is_taken_whatever_it_is(serve):
    client = serve(max_body=1000)
    address = (client.address.hostname, client.address.port)
    with socket.create_connection(address) as connection:
        connection.settimeout(60)
        connection.sendall(post("/jobs", b"800\r\n" + b" " * 2048, "transfer-encoding: chunked"))
        received = connection.recv(65536)
        assert received.startswith(b"HTTP/1.1 413")
        for _ in range(20):
            connection.sendall(b"no chunk at all" * 1000)
            time.sleep(0.01)
        while received:
            received = connection.recv(65536)


def test_a_body_of_exactly_the_limit_is_read(serve):
    client = serve(max_body=1000)
    body = b'{"images":["YQ=="]}'
    assert client.send("POST", "/jobs", body + b" " * (1000 - len(body))).status == 202
    assert client.send("POST", "/jobs", body + b" " * (1001 - len(body))).status == 413


def test_a_chunked_body_is_read(serve):
    client = serve()
    body = b'9\r\n{"images"\r\n9;x=y\r\n:["YQ=="]\r\n1\r\n}\r\n0\r\n\r\n'
    assert b" 202 " in raw(client, post("/jobs", body, "transfer-encoding: chunked") + LAST)


def test_every_refusal_leaves_the_connection_usable_or_closes_it(serve):
    client = serve(token="t", max_body=1000)
    good = json.dumps({"images": ["YQ=="]}).encode()
    key = "authorization: Bearer t"
    refused = [
        (post("/jobs", good), b"401"),
        (post("/jobs", b"nope", key), b"400"),
        (post("/jobs", b"{}", key), b"422"),
        (post("/nowhere", good, key), b"404"),
        (post("/jobs/none/wait", good, key), b"404"),
        (post("/jobs", good, key, "content-type: text/plain"), b"415"),
        (post("/healthz", good), b"405"),
    ]
    for request, status in refused:
        received = raw(client, request + LAST)
        assert received.split(b" ", 2)[1] == status
        assert received.count(b"HTTP/1.1 ") == 2 and received.endswith(b'{"status":"ok"}')


def test_who_expects_100_is_refused_without_sending_the_body(serve):
    client = serve(token="t")
    request = post("/jobs", b"", "expect: 100-continue", "content-length: 100")
    received = raw(client, request)
    assert received.startswith(b"HTTP/1.1 401") and b"connection: close" in received


def test_who_expects_100_is_told_to_go_on(serve):
    client = serve()
    body = b'{"images":["YQ=="]}'
    head = post("/jobs", b"", "expect: 100-continue", f"content-length: {len(body)}")
    with socket.create_connection((client.address.hostname, client.address.port)) as connection:
        connection.sendall(head)
        assert connection.recv(100).startswith(b"HTTP/1.1 100")
        connection.sendall(body)
        assert connection.recv(100).startswith(b"HTTP/1.1 202")


@pytest.mark.parametrize(
    ("head", "statuses"),
    [
        (b"GET /jobs/\xff HTTP/1.1\r\n\r\n", (b"400",)),
        (b"GET  / HTTP/1.1\r\n\r\n", (b"400",)),
        (b"GET / HTTP/2.0\r\n\r\n", (b"400",)),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", (b"400",)),
        (b"nonsense\r\n\r\n", (b"400",)),
        (b"GET nonsense HTTP/1.1\r\n\r\n", (b"400",)),
        (b"GET /jobs/\x7f HTTP/1.1\r\n\r\n", (b"400",)),
        (b"POST /healthz HTTP/1.1\r\ncontent-length : 3\r\n\r\nGET", (b"400",)),
        (b"GET /healthz HTTP/1.1\r\n x: folded\r\n\r\n", (b"400",)),
        (b"GET /healthz HTTP/1.1\r\n: nameless\r\nx\x00: y\r\n\r\n", (b"400",)),
        (b"GET http://[::1/ HTTP/1.1\r\n\r\n", (b"400",)),
        (b"GET /x HTTP/1.1\r\nno colon\r\n\r\n", (b"400",)),
        (b"POST /jobs HTTP/1.1\r\ncontent-length: x\r\n\r\n", (b"400",)),
        (b"POST /jobs HTTP/1.1\r\ncontent-length: -1\r\n\r\n", (b"400",)),
        (b"POST /jobs HTTP/1.1\r\ncontent-length: 3\r\ncontent-length: 4\r\n\r\n", (b"400",)),
        (b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\n\r\n", (b"431", b"414")),
        (b"GET / HTTP/1.1\r\nx: " + b"y" * 20_000 + b"\r\n\r\n", (b"431",)),
        (b"POST /jobs HTTP/1.1\r\nexpect: tea\r\ncontent-length: 3\r\n\r\n", (b"417",)),
    ],
)
def test_a_head_that_cannot_be_parsed_is_refused_in_json_and_closed(serve, head, statuses, caplog):
    client = serve(token="t")
    received = raw(client, head)
    assert received.split(b" ", 2)[1] in statuses
    assert b'{"error":"' in received and b"Traceback" not in received
    assert "Traceback" not in caplog.text
    assert client.get("/healthz").status == 200


def test_a_head_that_trickles_in_is_not_waited_for(serve):
    client = serve(head_timeout=300)
    with socket.create_connection((client.address.hostname, client.address.port)) as connection:
        connection.settimeout(60)
        began = time.monotonic()
        connection.sendall(b"GET /healthz HTTP/1.1\r\n")
        received = b""
        while not received and time.monotonic() - began < 60:
            connection.sendall(b"x: y\r\n")
            connection.settimeout(0.05)
            try:
                received = connection.recv(1000)
            except TimeoutError:
                continue
        assert received.startswith(b"HTTP/1.1 408")


def test_a_body_that_does_not_come_is_not_waited_for(serve):
    client = serve(body_timeout=200)
    received = raw(client, post("/jobs", b"{", "content-length: 100"))
    assert received.startswith(b"HTTP/1.1 408") and b"connection: close" in received


def test_a_cut_body_admits_nothing(serve):
    client = serve()
    raw(client, post("/jobs", b'{"images":["YQ=="]}', "content-length: 100"), close=True)
    client.until(lambda: client.get("/healthz").status == 200)
    assert not client.core.ledger.jobs()


def test_more_connections_than_allowed_are_closed_at_once(serve):
    client = serve(max_connections=2)
    assert client.get("/healthz").status == 200
    address = (client.address.hostname, client.address.port)
    held = socket.create_connection(address)
    client.until(lambda: client.get("/healthz").status == 200)
    with socket.create_connection(address) as extra:
        extra.settimeout(5)
        try:
            assert extra.recv(1) == b""
        except ConnectionResetError:
            pass
    held.close()
    assert client.get("/healthz").status == 200


def test_a_waiter_that_goes_away_leaves_nothing_behind(serve, caplog):
    client = serve()
    job_id = client.admitted("delay:2000")
    address = (client.address.hostname, client.address.port)
    connection = socket.create_connection(address)
    connection.sendall(f"GET /jobs/{job_id}/wait HTTP/1.1\r\nhost: x\r\n\r\n".encode())
    client.until(lambda: client.core.waiters.blocked == 1)
    connection.close()
    client.until(lambda: client.core.waiters.blocked == 0)
    assert not client.core.ledger._jobs[job_id].watches
    client.ended(job_id)
    assert "Traceback" not in caplog.text


def test_answers_are_counted_by_route_and_never_by_what_was_asked(serve):
    client = serve()
    for number in range(5):
        assert client.get(f"/nowhere/{number}").status == 404
        assert client.get(f"/jobs/{number}").status == 404
    assert b" 400 " in raw(client, b"nonsense\r\n\r\n")
    text = client.get("/metrics").content.decode()
    counted = re.findall(r'http_responses_total\{route="([^"]+)",status="(\d+)"\} (\d+)', text)
    assert set(counted) == {
        ("(none)", "404", "5"),
        ("(none)", "400", "1"),
        ("/jobs/<job_id>", "404", "5"),
    }


def test_what_strangers_send_is_not_kept(serve):
    """The framework would keep a thousand paths and host names of any length."""
    client = serve()
    remembered = Router.get.cache_info
    client.get("/jobs/none", headers={"host": "a"})
    before = remembered().currsize
    for number in range(20):
        assert client.get(f"/jobs/{number}" + "x" * 5000).status == 404
        assert client.get("/jobs/none", headers={"host": f"{number}" + "y" * 5000}).status == 404
    assert remembered().currsize == before
