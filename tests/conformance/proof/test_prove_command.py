"""`counterfoil prove`: verdicts on the terminal, in JSON, and as an exit code."""

import json
from collections.abc import Callable

import pytest

from counterfoil_conformance.cli import main
from counterfoil_conformance.proof import runner
from counterfoil_spec.lemmas import Lemma
from counterfoil_spec.lemmas.table import Broken, broken


def falls_at_a_thousand(number: int) -> Broken:
    """Every number is small.

    post: _ == ()
    """
    return broken(("S5", number < 1000))


def spins(number: int) -> Broken:
    """Every number comes down to nothing.

    post: _ == ()
    """
    while number > 0:
        number -= 1
    return ()


@pytest.fixture
def only(monkeypatch):
    def choose(function: Callable[..., Broken]) -> None:
        lemma = Lemma(function.__name__, function, ("S5",), ("x",), ((1,),))
        monkeypatch.setattr(runner, "all_lemmas", lambda: {lemma.name: lemma})

    return choose


def test_confirmed_is_exit_0_and_the_json_counts_the_paths(tmp_path, capsys):
    file = tmp_path / "proofs.json"
    assert main(["prove", "--only", "expiry_is_strict", "--json", str(file)]) == 0
    assert "CONFIRMED" in capsys.readouterr().out
    report = json.loads(file.read_text())
    assert report["exit"] == 0
    (row,) = report["lemmas"]
    assert row["status"] == "CONFIRMED"
    assert row["confirmed_paths"] >= 1


def test_refuted_is_exit_1_with_a_call_to_make(only, capsys):
    only(falls_at_a_thousand)
    assert main(["prove"]) == 1
    said = capsys.readouterr().out
    assert "breaks S5" in said
    assert "import falls_at_a_thousand; print(falls_at_a_thousand(1000))" in said


def test_unknown_is_exit_4_and_never_green(only, capsys):
    only(spins)
    assert main(["prove", "--seconds", "0.3"]) == 4
    assert "1 UNKNOWN" in capsys.readouterr().out


def test_a_name_that_fits_no_lemma_is_bad_usage(capsys):
    assert main(["prove", "--only", "no_such_lemma"]) == 2
    assert "no_such_lemma" in capsys.readouterr().err


def test_a_record_of_some_lemmas_is_bad_usage(capsys):
    assert main(["prove", "--record", "--only", "expiry_is_strict"]) == 2
    assert "--only" in capsys.readouterr().err


def test_the_list_says_what_each_lemma_is(capsys):
    assert main(["prove", "--list"]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in runner.all_lemmas())


def test_a_lemma_shows_the_defect_that_it_refutes(capsys):
    assert main(["prove", "--defects", "--only", "expiry_is_strict"]) == 0
    said = capsys.readouterr().out
    assert "the_ttl_is_inclusive" in said
    assert "breaks R3" in said


def test_a_lemma_that_refutes_nothing_is_exit_1(only, capsys):
    only(falls_at_a_thousand)
    assert main(["prove", "--defects"]) == 1
    assert "falls_at_a_thousand refutes no seeded defect" in capsys.readouterr().out
