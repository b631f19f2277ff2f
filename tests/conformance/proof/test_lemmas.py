"""What a table of lemmas must be: about real functions, none of them vacuous, nothing left out."""

import pytest

from counterfoil_conformance.proof import engine, runner
from counterfoil_spec import ledger as law
from counterfoil_spec.invariants import MOVE
from counterfoil_spec.ledger import ACTIONS

LEMMAS = runner.all_lemmas()


@pytest.mark.parametrize("name", LEMMAS)
def test_every_precondition_has_a_witness_that_is_executed(name):
    lemma = LEMMAS[name]
    conditions = engine._checkable(lemma, 1.0).conditions
    assert lemma.examples
    for example in lemma.examples:
        for condition in conditions.pre:
            bound = conditions.sig.bind(*example).arguments
            assert condition.evaluate(dict(bound)), condition.expr_source
        assert lemma.function(*example) == ()


@pytest.mark.parametrize("name", LEMMAS)
def test_every_lemma_asks_for_no_broken_clause_and_for_nothing_else(name):
    (post,) = engine._checkable(LEMMAS[name], 1.0).conditions.post
    assert post.expr_source == "_ == ()"
    assert LEMMAS[name].sentence.endswith(".")


def test_every_action_of_the_law_has_a_lemma_under_the_clauses_of_its_properties():
    for action in ACTIONS:
        lemma = LEMMAS[f"{action}_is_sound"]
        assert lemma.about == (action,)
        for property_ in MOVE.values():
            if action in property_.on:
                assert set(property_.clauses) <= set(lemma.clauses)


def test_lemmas_are_about_functions_that_exist():
    shipped = engine.__name__.replace("engine", "shipped")
    for lemma in LEMMAS.values():
        for name in lemma.about:
            if lemma.function.__module__ == shipped:
                assert callable(getattr(runner.importlib.import_module(shipped).RULES, name[6:]))
            else:
                assert callable(getattr(law, name))
