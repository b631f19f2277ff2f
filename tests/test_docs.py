"""Generated pages are what their tables say, and the tables say what the contract needs."""

import subprocess
import sys
from pathlib import Path

import pytest

from counterfoil_spec.clauses import CLAUSES, DEFECTS, FAMILIES, Level, SeenAt, clause_ids

ROOT = Path(__file__).resolve().parent.parent


def test_no_generated_page_is_stale():
    command = [sys.executable, str(ROOT / "tools" / "generate_docs.py"), "--check"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_there_are_93_clauses_in_13_families_and_their_ids_are_in_order():
    assert len(CLAUSES) == 93
    for family in FAMILIES:
        numbers = [int(id_[1:]) for id_ in CLAUSES if id_.startswith(family)]
        assert numbers == list(range(1, len(numbers) + 1))


def test_core_is_the_musts_of_s_a_r_w_g_h_that_show_at_the_wire():
    assert CLAUSES["W2"].core
    assert not CLAUSES["R5"].core, "a SHOULD"
    assert not CLAUSES["S2"].core, "seen at the ledger only"
    assert not CLAUSES["T1"].core, "another family"
    assert all(
        c.level is Level.MUST and c.seen_at is not SeenAt.INSIDE for c in CLAUSES.values() if c.core
    )


def test_defects_name_clauses_that_exist():
    for defect in DEFECTS.values():
        assert set(defect.breaks + defect.shows_as) <= CLAUSES.keys()
    with pytest.raises(KeyError):
        clause_ids("S1 Z9")
