"""Golden histories, good and bad side by side: each is judged anew, and minimised, on every run."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from counterfoil_conformance.oracle.history import load_history
from counterfoil_conformance.oracle.judge import Setting, judge
from counterfoil_conformance.oracle.minimise import minimise
from counterfoil_spec.clauses import CLAUSES

GOLDEN = Path(__file__).parent / "golden"
EXPECTED = json.loads((GOLDEN / "expected.json").read_text())


def read(name):
    history = load_history(GOLDEN / f"{name}.jsonl")
    assert history.calls and not history.bad_lines
    return history.calls, Setting(**EXPECTED[name]["setting"])


def test_every_file_has_its_expectation_and_every_bad_one_a_clause():
    assert {path.stem for path in GOLDEN.glob("*.jsonl")} == set(EXPECTED)
    for name, entry in EXPECTED.items():
        assert name.endswith("-bad") == bool(entry["clause"]), name
        assert not entry["clause"] or entry["clause"] in CLAUSES


@pytest.mark.parametrize("name", [name for name in EXPECTED if name.endswith("-good")])
def test_a_good_history_is_accused_of_nothing(name):
    judgement = judge(*read(name))
    assert not judgement.accusations, judgement.accusations[0].text()


@pytest.mark.parametrize("name", [name for name in EXPECTED if name.endswith("-bad")])
def test_a_bad_history_is_accused_of_its_clause_with_a_proof(name):
    judgement = judge(*read(name))
    accused = [one for one in judgement.accusations if one.clause == EXPECTED[name]["clause"]]
    assert accused, judgement.accusations
    assert set(EXPECTED[name].get("also", ())) <= judgement.clauses
    for one in judgement.accusations:
        assert one.let and one.why and one.calls
        assert {one.clause, *one.also} <= CLAUSES.keys()
        assert all(line in one.text() for line in one.let)


@pytest.mark.parametrize("name", [name for name in EXPECTED if name.endswith("-bad")])
def test_the_order_of_the_lines_does_not_matter(name):
    calls, setting = read(name)
    assert judge(calls[::-1], setting).clauses == judge(calls, setting).clauses


@pytest.mark.parametrize("name", [name for name in EXPECTED if name.endswith("-bad")])
def test_a_bad_history_is_minimised_and_still_breaks_the_same_clause(name):
    calls, setting = read(name)
    accusation = judge(calls, setting).accusations[0]
    small, where = minimise(calls, setting, accusation)
    assert len(small) <= len(calls)
    again = judge(small, where)
    assert accusation.clause in {one.clause for one in again.accusations}


@pytest.mark.parametrize("name", EXPECTED)
def test_knowing_less_never_accuses_more(name):
    calls, setting = read(name)
    full = judge(calls, setting).clauses
    for less in (
        {"exclusive": False, "ended_before": None},
        {"max_queue": None},
        {"max_completed": None},
        {"job_ttl_ms": None},
        {"ended_before": None},
        {"live_before": 1},
        {"tolerance_ms": 60_000},
    ):
        assert judge(calls, replace(setting, **less)).clauses <= full, less


def test_every_clause_the_judge_can_name_has_a_bad_history():
    judged = "S1 S2 S3 S4 S5 S6 S7 S8 S9 A1 A2 A3 A4 A5 A8 A10 A11 R1 R2 R3 R4 R6 R7 R9"
    judged += " Q1 Q2 W1 W2 W3 W4 W6 W7 G1 G2 G3 G4 H8"
    shown = {clause for name in EXPECTED for clause in judge(*read(name)).clauses}
    assert shown == set(judged.split())
