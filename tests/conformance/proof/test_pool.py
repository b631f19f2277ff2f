"""Searches run in processes of their own, and one that does not come back is unknown."""

import os
import time
from functools import partial

import pytest

from counterfoil_conformance.errors import HarnessError
from counterfoil_conformance.proof import pool
from counterfoil_conformance.proof.pool import Task, run_all
from counterfoil_conformance.proof.verdict import Proof, Status


def confirmed(name: str) -> Proof:
    return Proof(name, Status.CONFIRMED, paths=os.getpid())


def broken() -> Proof:
    raise RuntimeError("oh")


def dead() -> Proof:
    os._exit(7)


def stuck() -> Proof:
    time.sleep(600)
    raise AssertionError


def task(work, cpu_s: float = 60.0, name: str = "x") -> Task:
    return Task(name, "", work, cpu_s)


def test_every_task_is_answered_once_and_from_a_process_of_its_own():
    proofs = list(run_all([task(partial(confirmed, str(n))) for n in range(5)], at_once=2))
    assert sorted(proof.lemma for proof in proofs) == list("01234")
    pids = {proof.paths for proof in proofs}
    assert len(pids) == 5
    assert os.getpid() not in pids


def test_a_child_that_raises_is_a_harness_error_with_its_words():
    with pytest.raises(HarnessError, match="RuntimeError: oh"):
        list(run_all([task(broken)]))


def test_a_child_that_dies_is_a_harness_error():
    with pytest.raises(HarnessError, match="died"):
        list(run_all([task(dead)]))


def test_a_child_that_does_not_come_back_is_unknown_and_the_others_go_on(monkeypatch):
    monkeypatch.setattr(pool, "GRACE_S", 0.1)
    tasks = [task(stuck, cpu_s=0.01, name="slow"), task(partial(confirmed, "quick"))]
    proofs = {proof.lemma: proof for proof in run_all(tasks, at_once=2)}
    assert proofs["slow"].status is Status.UNKNOWN
    assert "no answer" in proofs["slow"].why
    assert proofs["quick"].status is Status.CONFIRMED
