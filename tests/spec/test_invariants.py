"""Every property can fail: beside each stands a change of the law that breaks it."""

import pytest

from counterfoil_spec import invariants
from counterfoil_spec.checker import explore
from counterfoil_spec.clauses import CLAUSES
from counterfoil_spec.invariants import JOB, LEDGER, MOVE
from counterfoil_spec.model import LAW, FullModel, KeyModel
from counterfoil_spec.model_footprints import LedgerModel
from tests.spec.seeded_changes import CHANGES, law_with

# Decided by `is_overdue` itself, which no action calls.
BY_THE_BUDGET = "without_a_budget_nothing_is_overdue"


def found_by(model, name, limits):
    return any(name in explore(model, judge=model, limit=limit).found for limit in limits)


@pytest.mark.parametrize("name", CHANGES)
def test_a_seeded_change_of_the_law_breaks(name):
    scope, actions = CHANGES[name]
    changed = law_with(actions)
    if name == "ids_are_unique":
        assert found_by(FullModel(scope, changed), name, (60,))
        return
    assert found_by(KeyModel(scope, changed), name, (15, 60, 400)), "the plain search"
    assert found_by(LedgerModel(scope, changed), name, (400,)), "the fast search"


def test_a_budget_where_there_is_none_breaks_its_property(monkeypatch):
    monkeypatch.setattr(invariants, "is_overdue", lambda *_: True)
    scope, _ = CHANGES["a_job_is_born_pending"]
    model = KeyModel(scope)
    assert BY_THE_BUDGET in explore(model, judge=model, limit=5).found


def test_no_property_is_without_a_change_that_breaks_it():
    assert CHANGES.keys() | {BY_THE_BUDGET} == JOB.keys() | LEDGER.keys() | MOVE.keys()


def test_every_clause_that_a_ledger_shows_is_a_property():
    named = {c for table in (JOB, LEDGER, MOVE) for p in table.values() for c in p.clauses}
    families = {c.id for c in CLAUSES.values() if c.at_ledger and c.family in "SARQWG"}
    # R8 is about cost, which a model does not have.
    assert families - named == {"R8"}


def test_properties_have_sentences_and_speak_of_actions_that_exist():
    for table in (JOB, LEDGER, MOVE):
        for prop in table.values():
            assert prop.sentence.endswith("."), prop.name
    assert {action for prop in MOVE.values() for action in prop.on} == LAW.keys()
