"""`counterfoil load`, as a person runs it: a process of its own, and a verdict."""

import json
import socket
import subprocess
import sys

import pytest

from counterfoil_conformance.oracle.history import load_history
from counterfoil_load.command import PROFILE
from counterfoil_load.own_server import own_server


def load(*words, timeout_s=120):
    command = [sys.executable, "-m", "counterfoil_conformance", "load", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=timeout_s)


def test_the_profile_holds_on_our_own_server_and_every_role_acts(tmp_path):
    report, page, history = (tmp_path / name for name in ("r.json", "r.html", "h.jsonl"))
    files = ["--json", str(report), "--html", str(page), "--history", str(history)]
    run = load("--time", "4s", "--seed", "3", *files)
    assert run.returncode == 0, run.stdout + run.stderr
    verdict = json.loads(report.read_text())
    assert verdict["exit"] == 0
    assert verdict["violations"] == []
    for role in ("submitter", "runner", "poller", "waiter", "closing"):
        assert verdict["calls"][role] > 0
    for clause in ("A2", "A3", "A8", "S4", "S5", "R6", "W2", "G1", "Q1"):
        assert verdict["witnesses"][clause] > 0
    assert verdict["jobs"]["admitted"] == sum(verdict["jobs"]["ended"].values())
    assert verdict["latency_ms"]["wake"]["count"] > 0
    assert len(load_history(history).calls) > 500
    assert "every invariant held" in page.read_text()


def test_processes_merge_their_histories_into_one_verdict(tmp_path):
    report = tmp_path / "r.json"
    run = load("--time", "4s", "--processes", "2", "--json", str(report))
    assert run.returncode == 0, run.stdout + run.stderr
    verdict = json.loads(report.read_text())
    assert verdict["exit"] == 0
    assert verdict["jobs"]["admitted"] == sum(verdict["jobs"]["ended"].values())


def test_too_little_exercised_is_no_pass():
    run = load("--time", "2s", "--min-jobs", "1000000")
    assert run.returncode == 4, run.stdout + run.stderr
    assert "--min-jobs" in run.stdout


def test_locust_alone_keeps_the_mix_whatever_number_of_users_is_asked_for(tmp_path):
    report = tmp_path / "r.json"
    with own_server() as server:
        command = [sys.executable, "-m", "locust", "-f", str(PROFILE), "--headless"]
        command += ["-u", "25", "-t", "3s", "--host", server.url, "--only-summary"]
        command += ["--target-file", str(server.target_file), "--verdict-json", str(report)]
        command += ["--runner-token", server.runner_token, "--min-jobs", "1"]
        run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert run.returncode == 0, run.stdout + run.stderr
    users = json.loads(report.read_text())["users"]
    assert users == {"Submitter": 8, "Runner": 4, "Poller": 6, "Waiter": 4}


def test_a_target_without_runner_surface_runs_its_jobs_itself_and_the_report_says_so(tmp_path):
    report = tmp_path / "r.json"
    with own_server(runner="internal") as server:
        words = [server.url, "--target", str(server.target_file), "--json", str(report)]
        run = load(*words, "--time", "3s")
    assert run.returncode == 0, run.stdout + run.stderr
    verdict = json.loads(report.read_text())
    assert verdict["calls"]["runner"] > 0
    assert any("no runner surface" in note for note in verdict["notes"])


def test_a_target_that_is_not_there_is_one_line_and_exit_3():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    run = load(f"http://127.0.0.1:{port}")
    assert run.returncode == 3
    assert "no answer" in run.stderr
    assert len(run.stderr.strip().splitlines()) == 1


def test_a_refused_runner_token_is_one_line_and_exit_3():
    with own_server() as server:
        run = load(server.url, "--runner-token", "another")
    assert run.returncode == 3
    assert "--runner-token" in run.stderr
    assert len(run.stderr.strip().splitlines()) == 1


def test_locust_is_never_imported_where_tests_and_servers_run():
    code = (
        "import sys, counterfoil_load.command, counterfoil_load.own_server, counterfoil_server.app;"
        "assert not {'locust', 'gevent'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
    assert not {"locust", "gevent"} & set(sys.modules)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--time", "soon"), "--time 'soon'"),
        (("--scale", "0"), "--scale"),
        (("--target", "no-such-file.toml"), "no-such-file.toml"),
    ],
)
def test_bad_usage_is_one_line_and_exit_2(words, told):
    run = load(*words)
    assert run.returncode == 2
    assert told in run.stderr
    assert len(run.stderr.strip().splitlines()) == 1
