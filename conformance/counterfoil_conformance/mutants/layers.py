"""The layers that can find a fault of the ledger, in order of cost, and how to ask each.

A *layer* is one way of looking: calls in sequence, waits in real time, every interleaving, races of
real threads, a long stress. Each is run on the faulty ledger exactly as `conform` runs it on
anybody's; nothing here knows which fault it is looking at. A layer *finds* a fault when it reports
one of the clauses the fault is bound to; anything else it reports is shown beside. Two layers look
at the law and the protocol, not at code: they find a fault when they refute its twin there.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from counterfoil_conformance.errors import HarnessError
from counterfoil_conformance.mutants.ledger import LedgerFault
from counterfoil_conformance.mutants.twins import refuted_by_lemmas, refuted_by_model
from counterfoil_conformance.mutants.wire import WIRE_FAULTS, examine
from counterfoil_conformance.report.events import Event, Finding
from counterfoil_conformance.run import RunOptions
from counterfoil_conformance.schedules.check import seek
from counterfoil_conformance.subjects import checks
from counterfoil_conformance.subjects.python import PythonSubject
from counterfoil_conformance.subjects.registry import CHECKS
from counterfoil_conformance.subjects.run import run_checks
from counterfoil_server.ledger import JobLedger

__all__ = ["DETERMINISTIC", "LAYERS", "SHIPPED", "Found", "Layer", "look"]

SHIPPED: Final = LedgerFault("none", "The ledger as it ships.", (), JobLedger)

assert checks, "importing the package fills the table of checks"


@dataclass(frozen=True, slots=True)
class Found:
    """What a layer reported of a ledger: the broken clauses, and the seconds it took.

    A deterministic layer computes, and its seconds are the processor's; the others wait.
    """

    clauses: frozenset[str]
    seconds: float
    failed: str = ""


@dataclass(frozen=True, slots=True)
class Layer:
    """One way of looking; `find` returns the clauses it reports, and may stop at the fault's own.

    `twin`: it looks at the same mistake in the law or the protocol, so all it reports counts.
    """

    name: str
    sentence: str
    deterministic: bool
    find: Callable[[LedgerFault], frozenset[str]]
    twin: bool = False

    def finds(self, fault: LedgerFault, found: Found) -> bool:
        """Whether what was reported is a report of this fault."""
        return bool(found.clauses if self.twin else found.clauses & set(fault.clauses))


def look(layer: Layer, fault: LedgerFault) -> Found:
    """Run one layer on a ledger, faulty or as it ships."""
    clock = time.process_time if layer.deterministic else time.monotonic
    started = clock()
    try:
        clauses, failed = layer.find(fault), ""
    except HarnessError as error:
        clauses, failed = frozenset(), str(error)
    return Found(clauses, clock() - started, failed)


def _by_checks(*modules: str) -> Callable[[LedgerFault], frozenset[str]]:
    """The checks of these modules of `subjects.checks`, as `conform python:...` runs them."""

    def find(fault: LedgerFault) -> frozenset[str]:
        broken: set[str] = set()

        def publish(event: Event) -> None:
            if isinstance(event, Finding):
                broken.add(event.clause)

        chosen = [c for c in CHECKS if c.function.__module__.rpartition(".")[2] in modules]
        with PythonSubject(fault.cls) as subject:
            run_checks(chosen, subject, RunOptions(seed=1), publish)
        return frozenset(broken)

    return find


def _by_schedules(fault: LedgerFault) -> frozenset[str]:
    """Every interleaving of every scenario, until one of the fault's clauses is broken."""
    explored = seek(fault.cls, fault.clauses)
    return frozenset(shown.clause for each in explored for shown in each.faults)


def _by_wire(fault: LedgerFault) -> frozenset[str]:
    """The whole server with this ledger, over HTTP; nothing, where the fault is not seeded there.

    The ledger as it ships is judged over HTTP by `counterfoil conform`.
    """
    seeded = WIRE_FAULTS.get(fault.name)
    if seeded is None:
        return frozenset()
    outcome = examine(seeded, RunOptions(only=frozenset(seeded.clauses), seed=1))
    return frozenset(outcome.fails) | (frozenset(outcome.warns) if seeded.should else frozenset())


LAYERS: Final = (
    Layer(
        "vectors",
        "sequences that cover the law's state graph, each answer compared",
        True,
        _by_checks("vectors"),
    ),
    Layer(
        "sequences",
        "calls one after another, judged by the ledgers that could explain them",
        True,
        _by_checks("life", "admission", "retention"),
    ),
    Layer(
        "machine",
        "programs that hypothesis writes from the law's actions, shrunk",
        True,
        _by_checks("generated"),
    ),
    Layer(
        "schedules",
        "every interleaving of small races on the shipped code",
        True,
        _by_schedules,
    ),
    Layer(
        "cost",
        "how long a submit takes, with little and with much retained",
        False,
        _by_checks("cost"),
    ),
    Layer("waits", "waits around an end, in real time", False, _by_checks("waiting")),
    Layer("races", "small races of real threads, many times", False, _by_checks("races")),
    Layer("stress", "eleven threads for some seconds", False, _by_checks("stress")),
    Layer("wire", "the whole server over HTTP, as a black box", False, _by_wire),
    Layer(
        "model",
        "the same mistake in the protocol, searched exhaustively",
        True,
        lambda fault: refuted_by_model(fault.name),
        twin=True,
    ),
    Layer(
        "lemmas",
        "the same mistake in the law, or in the rules that ship, refuted for all integers",
        True,
        lambda fault: refuted_by_lemmas(fault.name),
        twin=True,
    ),
)

DETERMINISTIC: Final = tuple(layer.name for layer in LAYERS if layer.deterministic)
