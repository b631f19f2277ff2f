"""The kit accuses nobody who is right, and finds the ten faults that it was first asked for.

A few runs stand here for the many of `make fault-matrix`: servers that differ from ours in as many
ways at once as the contract allows, and our own with a fault. Most of a run is waiting, so several
go side by side.
"""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from counterfoil_conformance.mutants.wire import NAMED, WIRE_FAULTS, load_faults
from strangers.config import Config
from strangers.launch import running, write_target
from strangers.variations import VARIATIONS, WARNED

KIT = str(Path(sys.executable).parent / "counterfoil")
DEADLINE_S = 170
CHOSEN = {
    name: VARIATIONS[name]
    for name in (
        "plain",
        "everything-else",
        "jitter-loop",
        "close-after-refusal",
        "one-place",
        "keeps-none",
        "async-disabled-token",
    )
}
CHOSEN["held-by-age-and-use"] = Config(
    late_worker="held", hang_ms=2400, eviction="submission", age_timer=True, front="loop"
)

load_faults()


def judged(name, folder):
    """What the kit says of a variation: clauses by verdict, and the exit code."""
    report = folder / f"{name}.json"
    with running(CHOSEN[name]) as started:
        target = write_target(started.config, folder / f"{name}.toml")
        words = [KIT, "conform", started.url, "--target", target, "--json", report, "--seed", "1"]
        ended = subprocess.run(
            words, capture_output=True, text=True, timeout=DEADLINE_S, check=False
        )
    rows = json.loads(report.read_text())["verdicts"]
    return ended.returncode, {
        verdict: {row["clause"]: row["why"] for row in rows if row["verdict"] == verdict}
        for verdict in ("FAIL", "WARN", "ERROR")
    }


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("variations")
    with ThreadPoolExecutor(4) as pool:
        runs = {name: pool.submit(judged, name, folder) for name in CHOSEN}
        return {name: run.result() for name, run in runs.items()}


@pytest.mark.parametrize("name", CHOSEN)
def test_a_correct_stranger_is_accused_of_nothing(verdicts, name):
    code, rows = verdicts[name]
    assert not rows["FAIL"]
    assert not rows["ERROR"]
    assert set(rows["WARN"]) <= set(WARNED.get(name, ()))
    assert code in (0, 4)


@pytest.fixture(scope="module")
def findings():
    def examined(name):
        words = [sys.executable, "-m", "counterfoil_conformance.mutants.wire", name, "--json"]
        if name != "lost-wake-up":  # which shows by chance, in any of a run's many waits
            words += ["--only", ",".join(WIRE_FAULTS[name].clauses)]
        ended = subprocess.run(
            words, capture_output=True, text=True, timeout=DEADLINE_S, check=False
        )
        return json.loads(ended.stdout)

    with ThreadPoolExecutor(4) as pool:
        return dict(zip(NAMED, pool.map(examined, NAMED), strict=True))


@pytest.mark.parametrize("name", NAMED)
def test_a_fault_of_our_own_server_is_found_under_its_clause(findings, name):
    assert set(findings[name]["FAIL"]) & set(WIRE_FAULTS[name].clauses)


def test_every_seeded_fault_of_our_own_server_has_a_sentence_and_replaces_something():
    assert len(WIRE_FAULTS) >= 60
    for fault in WIRE_FAULTS.values():
        assert fault.sentence
        assert fault.parts
