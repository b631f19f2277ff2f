"""The stranger is right: checked by plain http.client, not by the kit that it is there to test."""

import http.client
import json
import socket
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor

import pytest

from strangers.config import Config, arguments_of, parse_arguments
from strangers.launch import body, running, target_text
from strangers.variations import VARIATIONS

JSON = {"Content-Type": "application/json"}


class Client:
    """One keep-alive connection (made anew where the server closes)."""

    def __init__(self, stranger):
        self.config = stranger.config
        self.connection = http.client.HTTPConnection("127.0.0.1", stranger.config.port, timeout=20)

    def ask(self, method, path, content=None, headers=None):
        token = {"Authorization": f"Bearer {self.config.token}"} if self.config.token else {}
        self.connection.request(method, path, content, {**JSON, **token, **(headers or {})})
        answer = self.connection.getresponse()
        raw = answer.read()
        value = json.loads(raw) if raw[:1] in (b"{", b"[") else raw.decode()
        return answer.status, value, answer.headers

    def submit(self, *words, **fields):
        return self.ask("POST", self.config.prefix + "/jobs", body(*words, **fields))

    def job(self, *words, **fields):
        status, value, _ = self.submit(*words, **fields)
        assert status == 202, value
        return value

    def wait(self, job, query="?timeout=5000"):
        path = job["poll_url"].partition("?")[0] + "/wait" + query
        return self.ask("GET", path)[1]

    def get(self, path):
        return self.ask("GET", path)[:2]


@pytest.fixture(scope="module")
def plain():
    with running(Config()) as stranger:
        yield stranger


@pytest.fixture
def client(plain):
    return Client(plain)


def test_a_command_line_says_what_the_configuration_is():
    config = Config(token="t", age_timer=True, eviction="use", job_ttl_ms=7)
    assert parse_arguments(arguments_of(config)) == config


@pytest.mark.parametrize("name", VARIATIONS)
def test_a_target_file_says_how_a_variation_is_configured(name):
    config = VARIATIONS[name]
    target = tomllib.loads(target_text(config, with_process=True))
    assert target["limits"]["max_queue"] == config.max_queue
    assert "strangers" in target["process"]["start"]


@pytest.mark.parametrize(
    "name", ["plain", "loop", "everything-else", "no-keep-alive", "chunked", "prefix-token-loop"]
)
def test_a_job_is_admitted_run_and_read_back_in_every_dress(name):
    with running(VARIATIONS[name]) as stranger:
        client = Client(stranger)
        job = client.job("sleep 800", "fail so", req_id="mine", params={"nonce": "n"})
        assert client.get(job["result_url"])[0] == 409
        assert client.wait(job, "?timeout=10")["state"] in ("pending", "running")
        assert client.wait(job)["state"] == "done"
        status, envelope = client.get(job["result_url"])
        assert (status, envelope["task_id"], envelope["partial"]) == (200, "mine", True)
        assert [item["status"] == 0 for item in envelope["results"]] == [True, False]
        assert client.get(stranger.config.prefix + "/jobs/job_0")[0] == 404
        assert client.submit()[0] in (400, 422)
        assert client.ask("POST", stranger.config.prefix + "/infer", body("x"))[0] == 200


def test_exactly_as_many_jobs_are_admitted_as_there_are_places(plain):
    with ThreadPoolExecutor(12) as pool:
        statuses = list(pool.map(lambda _: Client(plain).submit("sleep 300")[0], range(12)))
    assert sorted(statuses) == [202] * 4 + [429] * 8
    client = Client(plain)
    deadline = time.monotonic() + 5
    while "depth 0" not in client.get("/metrics")[1]:
        assert time.monotonic() < deadline


def test_every_way_a_job_can_end(client):
    states = {
        words: client.wait(client.job(words))
        for words in ("quick", "fail no", "crash", "hang", "late 1800")
    }
    assert [view["state"] for view in states.values()] == [
        "done", "failed", "failed", "timeout", "timeout",
    ]  # fmt: skip
    assert all(bool(view.get("error")) == (view["state"] != "done") for view in states.values())


def test_a_late_result_does_not_overwrite_a_timeout(client):
    job = client.job("late 1700")
    before = client.wait(job)
    time.sleep(0.4)
    assert client.get(job["poll_url"])[1] == before
    assert client.get(job["result_url"])[0] == 409


def test_jobs_go_by_count_oldest_completion_first(client):
    jobs = []
    for _ in range(8):
        jobs.append(client.job("quick"))
        client.wait(jobs[-1])
    found = [client.get(job["poll_url"])[0] for job in jobs]
    assert found == [404] * 2 + [200] * 6


def test_jobs_go_by_age_at_the_next_submit(client):
    old = client.job("quick")
    client.wait(old)
    time.sleep(1.6)
    assert client.get(old["poll_url"])[0] == 200
    client.wait(client.job("quick"))
    assert client.get(old["poll_url"])[0] == 404


@pytest.mark.parametrize("timeout", ["1e3", "150ms", "", "1_0", "0x10", "\u0661", " 5"])
def test_an_odd_timeout_is_refused_with_a_pointer(client, timeout):
    job = client.job("quick")
    client.wait(job)
    status, value, _ = client.ask("GET", job["poll_url"] + f"/wait?timeout={quoted(timeout)}")
    assert status == 422
    assert value["errors"][0]["pointer"] == "/timeout"


def quoted(text):
    return "".join(f"%{byte:02X}" for byte in text.encode())


def test_a_huge_timeout_is_capped_and_a_terminal_job_answers_at_once(client):
    job = client.job("fail")
    for timeout in ("9" * 400, str(2**31), str(2**63), "-5", "0"):
        assert client.wait(job, f"?timeout={timeout}")["state"] == "failed"


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"", 400), (b"nonsense", 400), (b"[]", 400), (b'"x"', 400), (b"\xff", 400), (b"NaN", 400),
        (b"[" * 100_000, 400), (b'{"images":["eA=="],"params":{"a":' + b"9" * 9999 + b"}}", 400),
        (b"{}", 422), (b'{"images":[]}', 422), (b'{"images":"eA=="}', 422),
        (b'{"images":[1]}', 422), (b'{"images":["eA=="],"req_id":null}', 422),
        (b'{"images":["eA=="],"req_id":"\\ud800"}', 422), (b'{"images":["eA=="],"x":1}', 422),
        (b'{"images":["eA=="],"\\ud800":1}', 422), (b'{"images":["eA=="],"params":[]}', 422),
        (b'{"images":["eA=="],"req_id":"a\\r\\nX: y"}', 422),
    ],
)  # fmt: skip
def test_bad_bodies_are_refused_and_take_no_place(client, content, status):
    for path in ("/jobs", "/infer"):
        got, value, _ = client.ask("POST", path, content)
        assert got == status
        assert value["errors"][0]["message"]
    assert "depth 0" in client.get("/metrics")[1]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/jobs", 405), ("PUT", "/jobs", 405), ("POST", "/jobs/job_1", 404),
        ("POST", "/jobs/job_1/wait", 405), ("GET", "/jobs/job_1/cancel", 404), ("GET", "/", 404),
        ("GET", "/jobs/", 404), ("GET", "/jobs/..%2fhealthz", 404), ("GET", "/jobs/%00", 404),
        ("GET", "/jobs/" + "x" * 10_000, 404), ("GET", "/healthz", 200), ("GET", "/ready", 200),
        ("GET", "/openapi.json", 200), ("OPTIONS", "/jobs", 204), ("HEAD", "/healthz", 200),
        ("DELETE", "/infer", 405),
    ],
)  # fmt: skip
def test_paths_and_methods(client, method, path, status):
    got, value, _ = client.ask(method, path)
    assert got == status
    assert not value or status < 400 or "error" in value
    assert client.get("/healthz")[0] == 200


def exchange(stranger, raw, seconds=5.0):
    """Send raw bytes, close our half, and return all that comes."""
    with socket.create_connection(("127.0.0.1", stranger.config.port), timeout=seconds) as sock:
        sock.sendall(raw)
        sock.shutdown(socket.SHUT_WR)
        parts = []
        while part := sock.recv(65_536):
            parts.append(part)
        return b"".join(parts)


def test_what_is_no_request_is_refused_and_the_connection_closed(plain):
    for raw in (
        b"\x16\x03\x01\r\n\r\n",
        b"GET / HTTP/2\r\n\r\n",
        b"GET / HTTP/1.1\r\nA B: c\r\n\r\n",
    ):
        answer = exchange(plain, raw)
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert b"Connection: close" in answer


@pytest.mark.parametrize("name", ["plain", "early-refusal-closes"])
def test_the_body_of_a_refused_request_is_never_taken_for_the_next_one(name):
    inner = b"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
    first = b"POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(inner)
    last = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    with running(VARIATIONS[name]) as stranger:
        answers = exchange(stranger, first + inner + last)
    assert answers.count(b"HTTP/1.1 404 ") == 1
    assert answers.count(b"HTTP/1.1 200 ") == (1 if name == "plain" else 0)


def test_a_413_is_readable_by_a_client_that_is_still_sending(plain):
    head = (
        b"POST /jobs HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 9000000\r\n\r\n"
    )
    assert exchange(plain, head + b" " * 9_000_000).startswith(b"HTTP/1.1 413 ")
    chunks = (b"10000\r\n" + b" " * 65_536 + b"\r\n") * 40
    head = head.replace(b"Content-Length: 9000000", b"Transfer-Encoding: chunked")
    assert exchange(plain, head + chunks + b"0\r\n\r\n").startswith(b"HTTP/1.1 413 ")


def test_a_chunked_body_is_read_whole(plain, client):
    content = body("quick").encode()
    parts = b"".join(b"%x\r\n%s\r\n" % (1, content[i : i + 1]) for i in range(len(content)))
    head = b"POST /infer HTTP/1.1\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n"
    raw = exchange(plain, head + b"\r\n" + parts + b"0\r\n\r\n")
    assert raw.startswith(b"HTTP/1.1 200 ")


def test_the_token_is_asked_for_everywhere_but_on_public_pages():
    with running(VARIATIONS["token"]) as stranger:
        client = Client(stranger)
        job = client.job("quick")
        for path in (job["poll_url"], "/jobs/x", "/nowhere", "/metrics"):
            for wrong in (
                "",
                "Bearer",
                "Bearer s3cret",
                "Bearer s3cret-Token2",
                "Basic s3cret-Token",
            ):
                status, _, headers = client.ask("GET", path, headers={"Authorization": wrong})
                assert (status, headers["WWW-Authenticate"]) == (401, "Bearer")
            assert (
                client.ask("GET", path, headers={"Authorization": "bEARER s3cret-Token"})[0] != 401
            )
        for path in ("/healthz", "/ready", "/openapi.json"):
            assert client.ask("GET", path, headers={"Authorization": "no"})[0] == 200


def test_nothing_is_there_when_async_is_disabled():
    with running(VARIATIONS["async-disabled"]) as stranger:
        client = Client(stranger)
        assert client.submit("quick")[0] == 404
        assert client.get("/jobs/x/wait")[0] == 404
        assert client.ask("POST", "/infer", body("quick"))[0] == 200


def test_a_stop_lets_live_jobs_finish_and_admits_no_more():
    with running(Config(grace_ms=2000)) as stranger:
        client, other = Client(stranger), Client(stranger)
        job, hanging = client.job("sleep 500"), client.job("sleep 30000")
        stranger.process.terminate()
        deadline = time.monotonic() + 1
        while other.get("/ready")[0] != 503:
            assert time.monotonic() < deadline
        assert other.submit("quick")[0] == 503
        assert client.wait(job)["state"] == "done"
        assert client.wait(hanging)["state"] in ("failed", "timeout")
        assert stranger.process.wait(5) == 0


def test_two_hundred_waiters_delay_nobody():
    with running(Config(workers=1)) as stranger:
        client = Client(stranger)
        job = client.job("sleep 1000")
        with ThreadPoolExecutor(200) as pool:
            views = [pool.submit(lambda: Client(stranger).wait(job)) for _ in range(200)]
            began = time.monotonic()
            assert client.ask("POST", "/infer", b"{}")[0] == 422
            assert time.monotonic() - began < 0.9
            assert {view.result()["state"] for view in views} == {"done"}
