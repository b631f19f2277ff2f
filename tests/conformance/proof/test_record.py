"""The recorded path counts: one for every lemma, and a change is said."""

import pytest

from counterfoil_conformance.errors import HarnessError
from counterfoil_conformance.proof import record, runner
from counterfoil_conformance.proof.verdict import Proof, Status

TWO = [
    Proof("a", Status.CONFIRMED, paths=9, confirmed_paths=4),
    Proof("b", Status.UNKNOWN, paths=9, confirmed_paths=4),
]


def test_every_lemma_is_recorded_with_paths_that_were_confirmed():
    recorded = record.load()
    assert recorded.keys() == runner.all_lemmas().keys()
    assert all(0 < confirmed <= tried for confirmed, tried in recorded.values())


def test_only_what_is_confirmed_is_recorded(tmp_path):
    record.save(TWO, tmp_path / "paths.json")
    assert record.load(tmp_path / "paths.json") == {"a": (4, 9)}


def test_fewer_confirmed_paths_than_recorded_are_worth_a_look():
    assert record.changes({"a": (4, 9)}, TWO) == []
    assert record.changes({"a": (5, 9)}, TWO) == ["a: 4 of 9 paths, recorded are 5 of 9"]
    assert record.changes({}, TWO) == ["a: 4 of 9 paths, recorded are none of none"]


def test_a_record_that_cannot_be_read_is_the_kits_fault(tmp_path):
    (tmp_path / "paths.json").write_text('{"a": 3}')
    with pytest.raises(HarnessError, match=r"paths\.json"):
        record.load(tmp_path / "paths.json")
