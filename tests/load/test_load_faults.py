"""The stress profile finds what breaks under stress: ten seeded faults, each with its clause.

The server is a process of its own, the shipped one with one override. Four of the ten are looked at
in every run of the tests; `make load-faults` looks at all of them.
"""

import json
import os
import subprocess
import sys

import pytest

from counterfoil_load.own_server import own_server

ALL = os.environ.get("COUNTERFOIL_LOAD_FAULTS") == "all"

# Fault, the clauses it may be reported under, and the limits under which it shows in seconds.
FAULTS = {
    "admission-in-two-steps": ("A2 A3", {}),
    "lost-wake-up": ("W2 W6 H7", {}),
    "second-finish-accepted": ("S4", {}),
    "results-mixed-up": ("G1 G4 Q2", {}),
    "failure-keeps-its-place": ("A3 A5 A11", {}),
    "404-window-after-submit": ("A10 R1 R9 S8", {}),
    "running-looks-pending": ("S5", {}),
    "age-takes-running-jobs": ("R1 R9 A10 R7", {"job_ttl_ms": 100}),
    "place-released-at-start": ("A2 A3 A5", {}),
    "ids-come-again": ("A8 R7", {"max_completed": 20}),
}
OFTEN = ("admission-in-two-steps", "second-finish-accepted", "ids-come-again", "lost-wake-up")


def faulty(name):
    return (sys.executable, "-m", "counterfoil_conformance.mutants.wire_serve", name)


def load(server, report, *words):
    command = [sys.executable, "-m", "counterfoil_conformance", "load", server.url]
    command += ["--target", str(server.target_file), "--runner-token", server.runner_token]
    command += ["--json", str(report), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


@pytest.mark.parametrize("name", FAULTS if ALL else OFTEN)
def test_a_seeded_fault_is_reported_with_a_clause_of_its_own(name, tmp_path):
    clauses, limits = FAULTS[name]
    report = tmp_path / "report.json"
    with own_server(faulty(name), **limits) as server:
        run = load(server, report, "--time", "5s", "--seed", "5")
    assert run.returncode == 1, run.stdout + run.stderr
    violated = {violation["clause"] for violation in json.loads(report.read_text())["violations"]}
    assert violated & set(clauses.split()), run.stdout
