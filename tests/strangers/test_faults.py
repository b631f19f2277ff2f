"""The catalogue of seeded faults is sound: known clauses, one part each, and each one starts."""

import pytest

from counterfoil_spec.clauses import CLAUSES
from strangers.config import Config
from strangers.faults import FAULTS
from strangers.launch import running
from strangers.server import Server


def test_every_fault_names_clauses_that_show_on_the_wire():
    for fault in FAULTS.values():
        assert fault.clauses
        for id_ in fault.clauses:
            assert CLAUSES[id_].seen_at in ("wire", "both", "process", "inside"), fault.name
        assert fault.name.partition("-")[0].upper() in fault.clauses


def test_every_wire_clause_has_a_fault():
    wire = {clause.id for clause in CLAUSES.values() if clause.at_wire} | {"X1", "X4"}
    assert wire - {id_ for fault in FAULTS.values() for id_ in fault.clauses} == set()


def test_names_and_sentences_are_unique():
    sentences = [fault.sentence for fault in FAULTS.values()]
    assert len(set(sentences)) == len(sentences)


@pytest.mark.parametrize("name", FAULTS)
def test_a_faulty_server_can_be_put_together(name):
    fault = FAULTS[name]
    assert fault.parts.get(Server, Server)(fault.config, fault.parts).config == fault.config


def test_a_fault_is_chosen_by_its_name():
    with running(Config(fault="h14-sick")) as stranger:
        assert stranger.process.poll() is None
