"""`counterfoil load`, as a person runs it: a process of its own, and a verdict."""

import json
import subprocess
import sys

import pytest

from counterfoil_conformance.oracle.history import load_history


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
