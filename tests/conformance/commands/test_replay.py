import json

import pytest

from counterfoil_conformance.cli import main
from counterfoil_conformance.commands.replay import command_of

ROW = {
    "clause": "W2",
    "verdict": "FAIL",
    "repro": "counterfoil conform http://h:1 --target 't x.toml' --only W2 --seed 7",
}
REPORT = {"subject": "http://h:1", "profile": "quick", "seed": 7, "verdicts": [ROW]}


def test_the_failures_are_run_again_with_the_same_target_seed_and_profile():
    other = {**ROW, "clause": "A5"}
    assert command_of(REPORT, [ROW, other]) == [
        "conform", "http://h:1", "--target", "t x.toml",
        "--profile", "quick", "--seed", "7", "--only", "W2,A5",
    ]  # fmt: skip


def test_our_own_server_needs_no_subject():
    report = {**REPORT, "subject": "our own server"}
    row = {**ROW, "repro": "counterfoil conform http://127.0.0.1:5 --only W2 --seed 7"}
    assert command_of(report, [row])[:3] == ["conform", "--profile", "quick"]


def test_a_report_without_failures_has_nothing_to_run(tmp_path, capsys):
    file = tmp_path / "r.json"
    file.write_text(json.dumps({**REPORT, "verdicts": [{**ROW, "verdict": "PASS"}]}))
    assert main(["replay", str(file)]) == 0
    assert "nothing failed" in capsys.readouterr().out


def test_a_failure_that_is_run_again_is_told_beside_what_it_was(tmp_path, capsys):
    ledger = tmp_path / "report.json"
    subject = "python:counterfoil_server.ledger:JobLedger"
    ledger.write_text(
        json.dumps(
            {**REPORT, "subject": subject, "verdicts": [{**ROW, "clause": "A8", "repro": ""}]}
        )
    )
    assert main(["replay", str(ledger)]) == 0
    assert "A8: FAIL then, PASS now" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["{", "[]", '{"subject": "x"}'])
def test_what_is_no_report_is_refused_by_name(tmp_path, text, capsys):
    file = tmp_path / "h.jsonl"
    file.write_text(text)
    assert main(["replay", str(file)]) == 2
    assert "no report" in capsys.readouterr().err
