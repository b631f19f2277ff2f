"""`counterfoil serve` as a process: how it starts, refuses to start, drains and stops (X, K3)."""

import base64
import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
import urllib.request

import pytest

from counterfoil_server.app import build_app
from counterfoil_server.config import Settings
from counterfoil_server.core import Core
from counterfoil_server.probe_model import ProbeModel

COMMAND = [
    sys.executable,
    "-m",
    "counterfoil_conformance",
    "serve",
    "--port",
    "0",
    "--max-connections",
    "100",
]
PROBE = [*COMMAND, "--model", "probe", "--async-enabled", "--workers", "2"]


@pytest.fixture
def process():
    with contextlib.ExitStack() as stack:

        def start(*words):
            child = subprocess.Popen(
                [*PROBE, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
            stack.callback(child.communicate)
            stack.callback(child.kill)
            line = child.stdout.readline()
            assert line.startswith("listening on http://127.0.0.1:"), child.stderr.read()
            return child, line.split()[-1]

        yield start


def ask(url, body=None, timeout=90):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, json.load(refused)


def metrics(url):
    with urllib.request.urlopen(f"{url}/metrics", timeout=90) as answer:
        return answer.read().decode()


def images(text):
    return {"images": [base64.b64encode(text.encode()).decode()]}


def run(*words):
    return subprocess.run(
        [*COMMAND, *words], check=False, capture_output=True, text=True, timeout=120
    )


def refused(*words):
    done = run(*words)
    assert done.returncode == 2 and not done.stdout
    assert done.stderr.count("\n") == 1 and "Traceback" not in done.stderr
    return done.stderr


def test_it_listens_where_it_says_and_writes_its_port(process, tmp_path):
    file = tmp_path / "port"
    _, url = process("--port-file", str(file))
    assert url.endswith(f":{file.read_text().strip()}")
    assert ask(f"{url}/ready") == (200, {"status": "ready"})


def test_on_sigterm_it_drains_and_ends_with_0(process):
    child, url = process("--workers", "1")
    jobs = [ask(f"{url}/jobs", images("delay:2500"))[1]["job_id"] for _ in range(2)]
    answers = []
    waiter = threading.Thread(target=lambda: answers.append(ask(f"{url}/jobs/{jobs[1]}/wait")))
    waiter.start()
    waits = "counterfoil_waiters 1.0"
    while waits not in metrics(url):
        time.sleep(0.01)
    child.send_signal(signal.SIGTERM)
    while ask(f"{url}/ready")[0] != 503:
        time.sleep(0.01)
    assert ask(f"{url}/jobs", images("x"))[0] == 503
    assert ask(f"{url}/infer", images("x"))[0] == 503
    assert ask(f"{url}/jobs/{jobs[0]}")[0] == 200
    waiter.join()
    assert answers[0][1]["state"] == "done"
    assert child.wait(60) == 0


def test_what_does_not_end_within_the_grace_fails_and_its_waiters_hear_it(process):
    child, url = process("--grace", "300")
    job_id = ask(f"{url}/jobs", images("hang"))[1]["job_id"]
    answers = []
    waiting = [
        threading.Thread(target=lambda: answers.append(ask(f"{url}/jobs/{job_id}/wait"))),
        threading.Thread(target=lambda: answers.append(ask(f"{url}/infer", images("hang")))),
    ]
    for one in waiting:
        one.start()
    while not {"counterfoil_waiters 1.0", "counterfoil_calls 1.0"} <= set(metrics(url).split("\n")):
        time.sleep(0.01)
    child.send_signal(signal.SIGTERM)
    for one in waiting:
        one.join()
    states = {status: body.get("state", "envelope") for status, body in answers}
    assert states == {200: "failed", 500: "envelope"}
    assert child.wait(60) == 0


def test_a_second_signal_cuts_the_grace_short(process):
    child, url = process("--grace", "60000")
    ask(f"{url}/jobs", images("hang"))
    child.send_signal(signal.SIGTERM)
    while ask(f"{url}/ready")[0] != 503:
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    assert child.wait(60) == 0


def test_sighup_is_ignored(process):
    child, url = process()
    child.send_signal(signal.SIGHUP)
    assert ask(f"{url}/healthz")[0] == 200


def test_after_a_restart_old_ids_are_unknown(process):
    child, url = process()
    job_id = ask(f"{url}/jobs", images("x"))[1]["job_id"]
    child.kill()
    _, again = process()
    assert ask(f"{again}/jobs/{job_id}")[0] == 404


def test_a_wrong_start_is_one_line_and_exit_code_2(tmp_path):
    assert "async_max_queue = 'x'" in refused("--async-max-queue", "x")
    assert "without a token" in refused("--host", "0.0.0.0")
    assert "in memory" in refused("--processes", "2")
    assert "no such file" in refused("--model", str(tmp_path / "none.onnx"))
    nowhere = str(tmp_path / "none" / "file")
    assert "port_file = " in refused("--port-file", nowhere, "--model", "probe")
    assert "event_log = " in refused("--event-log", nowhere, "--model", "probe")


def test_a_port_that_is_taken_is_one_line(process):
    _, url = process()
    assert "in use" in refused("--port", url.rpartition(":")[2])


def test_check_shows_the_configuration_and_hides_the_token():
    done = run("--check", "--token", "s3cret", "--async-max-queue", "7")
    assert done.returncode == 0
    assert "async_max_queue = 7\n" in done.stdout and "token = (hidden)\n" in done.stdout
    assert "s3cret" not in done.stdout + done.stderr


def served_under(soft, hard, *words):
    """How many files a server may open that was started under these limits, and what it says."""
    limit = ["sh", "-c", f'ulimit -Sn {soft}; ulimit -Hn {hard}; exec "$@"', "sh"]
    child = subprocess.Popen(
        [*limit, *PROBE, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout.readline().startswith("listening")
        allowed = resource.prlimit(child.pid, resource.RLIMIT_NOFILE)[0]
        child.terminate()
        return allowed, child.communicate(timeout=60)[1]
    finally:
        child.kill()


def test_it_allows_itself_the_files_that_its_connections_need():
    allowed, said = served_under(256, 1024, "--max-connections", "700")
    assert allowed >= 700 and "max_connections" not in said
    allowed, said = served_under(256, 512, "--max-connections", "700")
    assert allowed == 512 and "max_connections is 700" in said and "ulimit -n" in said


def test_a_core_is_not_served_from_another_process_than_its_own(monkeypatch):
    core = Core(Settings(), ProbeModel())
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(RuntimeError, match="several processes"):
        core.open(None)


def test_a_wait_outlives_the_frameworks_own_timeouts():
    for settings in (Settings(), Settings(async_timeout=1000), Settings(async_timeout=10**9)):
        config = build_app(Core(settings, ProbeModel())).config
        assert max(300, settings.async_timeout / 1000) < config.RESPONSE_TIMEOUT
