"""Every seeded fault of the ledger is found, by the cheapest layer that can see it.

The whole matrix, every fault before every layer, is `make mutants`.
"""

import json

import pytest

from counterfoil_conformance.cli import main
from counterfoil_conformance.commands.model import VARIANTS
from counterfoil_conformance.mutants.layers import DETERMINISTIC, LAYERS, SHIPPED, Found, look
from counterfoil_conformance.mutants.ledger import all_ledger_faults
from counterfoil_conformance.mutants.page import matrix_page
from counterfoil_conformance.mutants.row import Row
from counterfoil_conformance.mutants.twins import (
    IN_THE_MODEL,
    UNDER_LEMMAS,
    refuted_by_lemmas,
)
from counterfoil_conformance.proof.matrix import PINNED
from counterfoil_server.ledger import JobLedger

FAULTS = all_ledger_faults()
# Those that only an interleaving shows are shown, and replayed, in `test_schedules`.
BY_CALLS = [name for name, fault in FAULTS.items() if fault.cheapest != "schedules"]
BY_NAME = {layer.name: layer for layer in LAYERS}


@pytest.mark.parametrize("name", BY_CALLS)
def test_the_cheapest_layer_finds_the_fault_under_a_clause_it_breaks(name):
    fault = FAULTS[name]
    layer = BY_NAME[fault.cheapest]
    found = look(layer, fault)
    assert not found.failed
    assert layer.finds(fault, found), f"{layer.name} reports {sorted(found.clauses) or 'nothing'}"


def test_the_cheapest_layers_are_deterministic_and_there_are_enough_faults():
    by_luck = [fault for fault in FAULTS.values() if fault.cheapest not in DETERMINISTIC]
    # What breaks only the SHOULD about speed shows only in a time that is measured.
    assert {clause for fault in by_luck for clause in fault.clauses} == {"R8"}
    assert len(FAULTS) >= 60


def test_every_fault_is_a_ledger_of_its_own_with_a_sentence_and_clauses():
    for fault in FAULTS.values():
        assert issubclass(fault.cls, JobLedger)
        assert fault.cls is not JobLedger
        assert fault.sentence
        assert fault.clauses
    assert len({fault.cls for fault in FAULTS.values()}) == len(FAULTS)


@pytest.mark.parametrize("layer", ["vectors", "sequences", "cost"])
def test_no_call_reports_the_ledger_as_it_ships(layer):
    found = look(BY_NAME[layer], SHIPPED)
    assert not found.failed
    assert not found.clauses


def test_every_twin_exists_and_the_lemmas_refute_theirs():
    refuted = {defect for lemma in json.loads(PINNED.read_text()).values() for defect in lemma}
    assert set(IN_THE_MODEL) <= set(FAULTS)
    assert set(IN_THE_MODEL.values()) <= set(VARIANTS)
    assert set(UNDER_LEMMAS) <= set(FAULTS)
    assert set(UNDER_LEMMAS.values()) <= refuted
    for name in UNDER_LEMMAS:
        assert refuted_by_lemmas(name)
    assert not refuted_by_lemmas("budget-in-tens")


def test_the_page_begins_with_survivors_and_names_what_only_one_layer_finds():
    layers = (BY_NAME["sequences"], BY_NAME["schedules"])
    one, other, third = list(FAULTS.values())[:3]
    nothing, hit = Found(frozenset(), 0.1), Found(frozenset(one.clauses), 0.2)
    rows = [
        Row(one, {"sequences": hit, "schedules": nothing}),
        Row(other, {"sequences": nothing, "schedules": nothing}),
        Row(third, {"sequences": Found(frozenset({"C9"}), 0.1), "schedules": nothing}),
    ]
    page = matrix_page(rows, layers)
    assert f"2 survive**: `{other.name}`, `{third.name}`." in page
    assert f"| 1 | 1 | `{one.name}` |" in page
    assert "| **nothing** | 0 | - |" in page
    faults = page[page.index("## Faults") :]
    assert faults.index(other.name) < faults.index(f"**{one.name}**")
    assert "| (C9) | · |" in faults


def test_a_matrix_that_was_cut_short_goes_on_where_it_was(tmp_path, capsys):
    kept = tmp_path / "matrix.json"
    words = ["mutants", "--fault", "starts-again", "--resume", str(kept)]
    assert main([*words, "--layer", "vectors"]) == 0
    seen = json.loads(kept.read_text())[0]["layers"]["vectors"]
    seen["seconds"] = 99.0
    row = json.loads(kept.read_text())[0] | {"layers": {"vectors": seen}}
    kept.write_text(json.dumps([row]))
    page = tmp_path / "page.md"
    assert main([*words, "--layer", "vectors,lemmas", "--page", str(page)]) == 0
    layers = json.loads(kept.read_text())[0]["layers"]
    assert layers["vectors"]["seconds"] == 99.0
    assert layers["lemmas"]["clauses"]
    assert "| 99.0 s | yes |" in page.read_text()
    capsys.readouterr()


def test_a_file_that_holds_no_matrix_is_bad_usage(tmp_path, capsys):
    (tmp_path / "m.json").write_text("[1]")
    assert main(["mutants", "--resume", str(tmp_path / "m.json"), "--fault", "wakes-one"]) == 2
    assert "no matrix" in capsys.readouterr().err
