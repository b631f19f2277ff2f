"""`counterfoil judge`: exit codes, what is taken for granted, what a person and a machine read."""

import json
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest

from counterfoil_conformance.cli import main
from counterfoil_conformance.oracle.history import load_history

GOLDEN = Path(__file__).parent.parent / "oracle" / "golden"
LIMITS = ["--max-queue", "9", "--job-ttl-ms", "1000", "--max-completed", "2"]


def schema(name):
    folder = files("counterfoil_conformance.oracle")
    return json.loads(folder.joinpath(f"{name}.schema.json").read_text())


def judge(capsys, name, *options):
    path = name if isinstance(name, Path) else GOLDEN / f"{name}.jsonl"
    code = main(["judge", str(path), *options])
    return code, capsys.readouterr().out


def test_a_history_that_holds_exits_0_and_says_how_often_each_clause_was_seen(capsys):
    code, out = judge(capsys, "went-back-good")
    assert code == 0
    assert "held (times seen): S1 2" in out
    assert "others may have used it" in out


def test_a_broken_must_exits_1_with_a_proof_that_fits_80_columns(capsys):
    code, out = judge(capsys, "bound-broken-bad", "--max-queue", "2")
    assert code == 1
    assert "A3 broken (also A2)" in out
    assert "let   c: submit() -> job j3" in out
    assert "then  it was admitted though" in out
    assert "broken: A2 A3" in out
    assert max(len(line) for line in out.splitlines()) <= 80


def test_what_is_not_told_is_not_held_against_the_ledger(capsys):
    code, _ = judge(capsys, "count-too-many-bad")
    assert code == 0
    code, _ = judge(capsys, "count-too-many-bad", *LIMITS)
    assert code == 0
    code, out = judge(capsys, "count-too-many-bad", *LIMITS, "--every-call", "--fresh")
    assert code == 1
    assert "R9 broken" in out


def test_the_tolerance_may_be_nothing(capsys):
    assert judge(capsys, "lost-wake-up-good")[0] == 0
    assert judge(capsys, "lost-wake-up-good", "--tolerance-ms", "0")[0] == 1


def test_limits_come_from_a_target_file_and_options_win(capsys, tmp_path):
    target = tmp_path / "target.toml"
    target.write_text("[limits]\nmax_queue = 2\n")
    assert judge(capsys, "bound-broken-bad", "--target", str(target))[0] == 1
    both = ["--target", str(target), "--max-queue", "3"]
    assert judge(capsys, "bound-broken-bad", *both)[0] == 0


def test_unreadable_lines_are_counted_apart_and_end_the_claim_to_be_complete(capsys, tmp_path):
    path = tmp_path / "h.jsonl"
    path.write_text("no\n" + (GOLDEN / "count-too-many-bad.jsonl").read_text())
    code, out = judge(capsys, path, *LIMITS, "--every-call", "--fresh")
    assert code == 4
    assert "1 lines are no calls" in out
    assert "line 1:" in out
    assert "others may have used it" in out


def test_an_empty_history_shows_nothing_and_exits_4(capsys, tmp_path):
    (tmp_path / "h.jsonl").write_text("\n")
    code, out = judge(capsys, tmp_path / "h.jsonl")
    assert code == 4
    assert "nothing was exercised" in out


@pytest.mark.parametrize(
    "options",
    [
        ["--json", "/nowhere/at/all/x"],
        ["--target", "/nowhere/at/all.toml"],
        ["--tolerance-ms", "-1"],
    ],
)
def test_bad_options_exit_2(capsys, options):
    assert judge(capsys, "went-back-good", *options)[0] == 2


def test_a_missing_file_exits_2(capsys):
    assert judge(capsys, "no-such-history")[0] == 2


def test_the_json_holds_verdicts_accusations_and_the_exit_code(capsys, tmp_path):
    path = tmp_path / "out.json"
    code, _ = judge(capsys, "went-back-bad", "--json", str(path))
    document = json.loads(path.read_text())
    assert document["exit"] == code == 1
    verdicts = {row["clause"]: row["verdict"] for row in document["verdicts"]}
    assert verdicts["S5"] == "FAIL"
    assert verdicts["S1"] == "PASS"
    (accusation,) = document["accusations"]
    assert accusation["clause"] == "S5"
    assert [call["op"] for call in accusation["calls"]] == ["submit", "snapshot", "snapshot"]
    assert document["setting"]["max_queue"] is None
    jsonschema.validate(document, schema("judgement"))


def test_the_minimal_history_can_be_judged_again(capsys, tmp_path):
    path = tmp_path / "small.jsonl"
    assert judge(capsys, "went-back-bad", "--minimal", str(path))[0] == 1
    assert len(load_history(path).calls) == 3
    assert judge(capsys, path)[0] == 1


def test_every_golden_line_fits_the_published_schema():
    for path in GOLDEN.glob("*.jsonl"):
        for line in path.read_text().splitlines():
            jsonschema.validate(json.loads(line), schema("line"))


def test_a_short_complete_history_is_searched_whole(capsys, tmp_path):
    """Depth 1, 0, 1 while only one job can ever have been live: no single bound proves it wrong."""
    path, lines = tmp_path / "h.jsonl", []
    lines.append({"op": "submit", "call": 0, "return": 100, "reply": {"job": "a"}})
    for start, value in ((10, 1), (20, 0), (30, 1)):
        reply = {"depth": value}
        lines.append({"op": "depth", "call": start, "return": start + 5, "reply": reply})
    more = {"clock_id": "c", "args": {}}
    lines = [json.dumps({"client": f"c{n}", **line, **more}) for n, line in enumerate(lines)]
    path.write_text("\n".join(lines))
    options = ["--max-queue", "3", "--max-completed", "9", "--job-ttl-ms", "999999"]
    assert judge(capsys, path, *options)[0] == 0
    code, out = judge(capsys, path, *options, "--every-call", "--fresh", "--every-transition")
    assert code == 1
    assert "A1 broken" in out
    assert "no order of the 4 calls explains all answers" in out
