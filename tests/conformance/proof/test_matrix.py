"""The pinned table lemma x defect: gone through again by plain calls, and complete."""

import pytest

from counterfoil_conformance.errors import HarnessError
from counterfoil_conformance.proof import engine, matrix, runner
from counterfoil_conformance.proof.seeding import reaches, seeded
from counterfoil_spec import ledger as law
from counterfoil_spec.ledger import Limits, Outcome

LEMMAS, DEFECTS, TABLE = runner.all_lemmas(), runner.all_defects(), matrix.load()


@pytest.mark.parametrize("name", LEMMAS)
def test_the_pinned_calls_break_with_the_defect_and_hold_without_it(name):
    lemma = LEMMAS[name]
    for defect, cell in TABLE[name].items():
        arguments = matrix.arguments_of(lemma, cell)
        assert engine.breaks(lemma, arguments) == (), f"{defect}: breaks without the defect too"
        with seeded(DEFECTS[defect]):
            assert engine.breaks(lemma, arguments) == cell.broken, defect


def test_every_lemma_refutes_a_defect_and_every_defect_is_refuted_by_a_lemma():
    assert {name for name, row in TABLE.items() if row} == set(LEMMAS)
    assert {defect for row in TABLE.values() for defect in row} == set(DEFECTS)


def test_every_pinned_cell_is_a_pair_that_would_be_tried():
    tried = set(runner.pairs(LEMMAS))
    assert {(name, defect) for name, row in TABLE.items() for defect in row} <= tried


def test_the_quickest_pairs_name_every_lemma_once():
    assert [name for name, _ in matrix.quickest(TABLE, LEMMAS)] == list(LEMMAS)


def test_a_table_survives_being_written_and_read(tmp_path):
    matrix.save(TABLE, tmp_path / "table.json")
    assert matrix.load(tmp_path / "table.json") == TABLE
    (tmp_path / "table.json").write_text('{"x": {"y": {}}}')
    with pytest.raises(HarnessError, match=r"table\.json"):
        matrix.load(tmp_path / "table.json")


def test_a_defect_is_seeded_wherever_the_function_is_bound_and_taken_back():
    full = law.empty_ledger(Limits(1, 1, 1))._replace(depth=1)
    assert law.submit(full).reply.outcome is Outcome.QUEUE_FULL
    with seeded(DEFECTS["admits_one_too_many"]):
        assert law.submit(full).reply.outcome is Outcome.ADMITTED
    assert law.submit(full).reply.outcome is Outcome.QUEUE_FULL


def test_reaching_follows_calls_through_modules_and_helpers():
    assert reaches(law.submit, law.has_expired)
    assert reaches(law.finish, law._end)
    assert not reaches(law.start, law.has_expired)
