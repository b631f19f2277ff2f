"""Which lemmas there are, and how they are all proved, or all tried on seeded defects.

The lemmas of the law are in `counterfoil_spec.lemmas`; those of the shipped server join them where
the server is installed. One order of business everywhere: the longest first, so that two cores
finish together.
"""

import importlib
import importlib.util
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from counterfoil_conformance.errors import UsageError
from counterfoil_conformance.proof import engine
from counterfoil_conformance.proof.pool import Task, run_all
from counterfoil_conformance.proof.seeding import DEFECTS, SeededDefect, reaches, seed
from counterfoil_conformance.proof.verdict import Proof
from counterfoil_spec.lemmas import LEMMAS, Lemma

__all__ = [
    "DEFECT_CPU_S",
    "all_defects",
    "all_lemmas",
    "chosen",
    "pairs",
    "prove_all",
    "refute_all",
]

_SERVER: Final = "counterfoil_server"
DEFECT_CPU_S: Final = 10.0

# Lemmas that take longest come first; the rest as they are written.
_LONG: Final = (
    "a_sweep_keeps_exactly_what_it_must",
    "a_tracked_job_keeps_the_summary_sound",
    "sweep_is_sound",
    "other_jobs_keep_the_summary_sound",
)


def all_lemmas() -> dict[str, Lemma]:
    """Every lemma by its name, the law's first."""
    if importlib.util.find_spec(_SERVER) is not None:
        importlib.import_module("counterfoil_conformance.proof.shipped")
    return LEMMAS


def all_defects() -> dict[str, SeededDefect]:
    """Every seeded defect by its name."""
    all_lemmas()
    importlib.import_module("counterfoil_conformance.proof.defects")
    if importlib.util.find_spec(_SERVER) is not None:
        importlib.import_module("counterfoil_conformance.proof.defects.shipped")
    return DEFECTS


def chosen(names: Iterable[str]) -> dict[str, Lemma]:
    """The lemmas whose names contain one of these (no names: all of them).

    Raises:
        UsageError: a name fits no lemma.
    """
    lemmas, wanted = all_lemmas(), list(names)
    for name in wanted:
        if not any(name in known for known in lemmas):
            raise UsageError(f"no lemma is called {name}; `counterfoil prove --list` shows them")
    return {n: lemmas[n] for n in lemmas if not wanted or any(name in n for name in wanted)}


def prove_all(
    lemmas: Mapping[str, Lemma], *, cpu_s: float = engine.DEFAULT_CPU_S, at_once: int = 0
) -> Iterator[Proof]:
    """A verdict on each lemma, as they come."""
    order = [n for n in _LONG if n in lemmas] + [n for n in lemmas if n not in _LONG]
    tasks = [Task(n, "", partial(engine.prove, lemmas[n], cpu_s=cpu_s), cpu_s) for n in order]
    return run_all(tasks, at_once=at_once)


def pairs(lemmas: Mapping[str, Lemma]) -> list[tuple[str, str]]:
    """Each lemma with each seeded defect of a function that it is about or may come to call."""
    defects = all_defects()
    return [
        (name, defect.name)
        for name, lemma in lemmas.items()
        for defect in defects.values()
        if defect.of in lemma.about or reaches(lemma.function, defect.original)
    ]


def refute_all(
    wanted: Iterable[tuple[str, str]], *, cpu_s: float = DEFECT_CPU_S, at_once: int = 0
) -> Iterator[Proof]:
    """Try each lemma on each seeded defect it is paired with."""
    all_defects()
    tasks = [Task(n, d, partial(_try_on, n, d, cpu_s), cpu_s) for n, d in wanted]
    return run_all(tasks, at_once=at_once)


def _try_on(name: str, defect: str, cpu_s: float) -> Proof:
    """In a child: seed the defect, then try to prove the lemma."""
    seed(all_defects()[defect])
    return replace(engine.prove(LEMMAS[name], cpu_s=cpu_s, faulty=True), defect=defect)
