"""A verdict on a lemma: confirmed, refuted by a call that anyone can make, or unknown."""

import subprocess
import sys
from collections.abc import Callable
from typing import NamedTuple

import pytest

from counterfoil_conformance.errors import HarnessError
from counterfoil_conformance.proof.engine import prove
from counterfoil_conformance.proof.verdict import Search, Status, decide
from counterfoil_spec.lemmas.table import Broken, Lemma, broken


class Pair(NamedTuple):
    low: int
    high: int


def doubling_keeps_the_order(pair: Pair) -> Broken:
    """
    pre: pair.low <= pair.high
    post: _ == ()
    """
    return broken(("S5", 2 * pair.low <= 2 * pair.high))


def doubling_adds_a_thousand_at_most(pair: Pair) -> Broken:
    """
    pre: pair.low <= pair.high
    post: _ == ()
    """
    return broken(("S5", pair.low + pair.high <= 1000), ("A1", True))


def nothing_meets_this(number: int) -> Broken:
    """
    pre: number > 3 and number < 3
    post: _ == ()
    """
    return broken(("S5", False))


def a_factor_is_hard_to_find(a: int, b: int) -> Broken:
    """
    pre: a > 1 and b > 1
    post: _ == ()
    """
    return broken(("S5", a * b != 1_000_000_007 * 1_000_000_009))


def raises_for_seven(number: int) -> Broken:
    """
    post: _ == ()
    """
    return broken(("S5", 10 // (number - 7) < 11))


def endless(number: int) -> Broken:
    """
    post: _ == ()
    """
    while number > 0:
        number -= 1
    return ()


def two_contracts(number: int) -> Broken:
    """
    post: _ == ()
    post: True
    """
    return broken(("S5", number > 0))


def lemma_of(function: Callable[..., Broken], *examples: tuple[object, ...]) -> Lemma:
    return Lemma(function.__name__, function, ("S5",), ("x",), examples)


def test_what_holds_for_all_integers_is_confirmed_with_its_paths():
    proof = prove(lemma_of(doubling_keeps_the_order, (Pair(1, 2),)))
    assert proof.status is Status.CONFIRMED
    assert proof.confirmed_paths >= 1
    assert proof.paths >= proof.confirmed_paths


def test_a_refutation_is_replayed_and_names_the_clause():
    lemma = lemma_of(doubling_adds_a_thousand_at_most, (Pair(1, 2),))
    proof = prove(lemma)
    assert proof.status is Status.REFUTED
    assert proof.broken == ("S5",)
    assert proof.counterexample is not None
    assert lemma.function(*proof.counterexample) == ("S5",)


def test_the_program_of_a_refutation_runs_by_itself(tmp_path):
    source = (
        "from typing import NamedTuple\n"
        "class Pair(NamedTuple):\n    low: int\n    high: int\n"
        "def falls(pair: Pair) -> tuple[str, ...]:\n"
        '    """\n    pre: pair.low <= pair.high\n    post: _ == ()\n    """\n'
        '    return () if pair.high < pair.low + 5 else ("S5",)\n'
    )
    (tmp_path / "away.py").write_text(source)
    sys.path.insert(0, str(tmp_path))
    try:
        import away  # type: ignore[import-not-found]

        proof = prove(lemma_of(away.falls, (away.Pair(1, 1),)))
    finally:
        sys.path.remove(str(tmp_path))
    assert proof.status is Status.REFUTED
    run = subprocess.run(
        [sys.executable, "-c", proof.program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stdout == "('S5',)\n", run.stderr


def test_an_exception_is_a_refutation_and_is_named():
    proof = prove(lemma_of(raises_for_seven, (3,)))
    assert proof.status is Status.REFUTED
    assert proof.broken == ("ZeroDivisionError",)
    assert proof.counterexample == (7,)


def test_a_precondition_that_nothing_meets_is_never_confirmed():
    proof = prove(lemma_of(nothing_meets_this, (3,)), faulty=True)
    assert proof.status is Status.UNKNOWN
    assert "precondition" in proof.why


def test_an_example_that_does_not_meet_the_precondition_is_our_own_mistake():
    with pytest.raises(HarnessError, match="does not meet"):
        prove(lemma_of(doubling_keeps_the_order, (Pair(2, 1),)))


@pytest.mark.parametrize(
    ("function", "example"), [(endless, (1,)), (a_factor_is_hard_to_find, (2, 3))]
)
def test_a_search_that_runs_out_of_time_is_unknown(function, example):
    proof = prove(lemma_of(function, example), cpu_s=0.5)
    assert proof.status is Status.UNKNOWN
    assert proof.cpu_s < 5


def test_a_starved_path_is_unknown_and_not_an_unsatisfiable_precondition():
    proof = prove(lemma_of(doubling_keeps_the_order, (Pair(1, 2),)), cpu_s=0.0)
    assert proof.status is Status.UNKNOWN


def test_a_lemma_has_exactly_one_contract():
    with pytest.raises(HarnessError, match="not one readable contract"):
        prove(lemma_of(two_contracts, (1,)))


GOOD = Search(paths=3, confirmed_paths=2, exhausted=True, valid=True)


def test_confirmed_needs_everything_at_once():
    assert decide(GOOD, examples=1) == (Status.CONFIRMED, "")


@pytest.mark.parametrize(
    ("search", "examples"),
    [
        (GOOD, 0),
        (Search(3, 0, True, True), 1),
        (Search(3, 2, False, True), 1),
        (Search(3, 2, True, False), 1),
        (Search(3, 2, True, True, complaints=("Unable to meet precondition.",)), 1),
        (Search(3, 2, True, True, counterexample=(1,)), 1),
    ],
)
def test_whatever_is_missing_makes_it_unknown(search, examples):
    assert decide(search, examples)[0] is Status.UNKNOWN


def test_only_a_counterexample_that_reproduces_refutes():
    search = Search(3, 2, False, False, ("false when",), counterexample=(1,), broken=("S5",))
    assert decide(search, 1)[0] is Status.REFUTED
