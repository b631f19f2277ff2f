"""The layers that can find a fault of the ledger, in order of cost, and how to ask each.

A *layer* is one way of looking: calls in sequence, waits in real time, every interleaving, races of
real threads, a long stress. Each is run on the faulty ledger exactly as `conform` runs it on
anybody's; nothing here knows which fault it is looking at. A layer *finds* a fault when it reports
one of the clauses the fault is bound to; anything else it reports is shown beside.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from counterfoil_conformance.errors import HarnessError
from counterfoil_conformance.report.events import Event, Finding
from counterfoil_conformance.run import RunOptions
from counterfoil_conformance.schedules.check import explore_scenario
from counterfoil_conformance.schedules.scenarios import SCENARIOS
from counterfoil_conformance.subjects import checks
from counterfoil_conformance.subjects.python import PythonSubject
from counterfoil_conformance.subjects.registry import CHECKS
from counterfoil_conformance.subjects.run import run_checks
from counterfoil_server.ledger import JobLedger

__all__ = ["DETERMINISTIC", "LAYERS", "Found", "Layer", "look"]

assert checks, "importing the package fills the table of checks"


@dataclass(frozen=True, slots=True)
class Found:
    """What a layer reported of a ledger: the broken clauses, and the seconds it took."""

    clauses: frozenset[str]
    seconds: float
    failed: str = ""


@dataclass(frozen=True, slots=True)
class Layer:
    """One way of looking; `find` returns the clauses it reports, and may stop at `sought`."""

    name: str
    sentence: str
    deterministic: bool
    find: Callable[[type[JobLedger], frozenset[str]], frozenset[str]]


def look(layer: Layer, cls: type[JobLedger], sought: Iterable[str]) -> Found:
    """Run one layer on a ledger class."""
    started = time.monotonic()
    try:
        clauses, failed = layer.find(cls, frozenset(sought)), ""
    except HarnessError as error:
        clauses, failed = frozenset(), str(error)
    return Found(clauses, time.monotonic() - started, failed)


def _by_checks(*modules: str) -> Callable[[type[JobLedger], frozenset[str]], frozenset[str]]:
    """The checks of these modules of `subjects.checks`, as `conform python:...` runs them."""

    def find(cls: type[JobLedger], sought: frozenset[str]) -> frozenset[str]:
        del sought
        broken: set[str] = set()

        def publish(event: Event) -> None:
            if isinstance(event, Finding):
                broken.add(event.clause)

        chosen = [c for c in CHECKS if c.function.__module__.rpartition(".")[2] in modules]
        with PythonSubject(cls) as subject:
            run_checks(chosen, subject, RunOptions(seed=1), publish)
        return frozenset(broken)

    return find


def _by_schedules(cls: type[JobLedger], sought: frozenset[str]) -> frozenset[str]:
    """Every interleaving of every scenario, until a sought clause is broken."""
    broken: set[str] = set()
    for scenario in SCENARIOS:
        explored = explore_scenario(cls, scenario, stop_at=sought)
        broken |= {fault.clause for fault in explored.faults}
        if broken & sought:
            break
    return frozenset(broken)


LAYERS: Final = (
    Layer(
        "sequences",
        "calls one after another, judged by the ledgers that could explain them",
        True,
        _by_checks("life", "admission", "retention", "cost"),
    ),
    Layer(
        "schedules",
        "every interleaving of small races on the shipped code",
        True,
        _by_schedules,
    ),
    Layer("waits", "waits around an end, in real time", False, _by_checks("waiting")),
    Layer("races", "small races of real threads, many times", False, _by_checks("races")),
    Layer("stress", "eleven threads for some seconds", False, _by_checks("stress")),
)

DETERMINISTIC: Final = tuple(layer.name for layer in LAYERS if layer.deterministic)
