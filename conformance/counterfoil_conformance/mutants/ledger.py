"""Seeded faults of the shipped ledger, as seen by calling it.

Each is a small override of `JobLedger`, bound to the clauses it may be reported under. Those that
also show over HTTP are seeded in `wire_faults` and are taken from there; those in `ledger_faults`
show only to a caller of the ledger, or only between threads. `cheapest` names the layer that must
find the fault: the first in `layers.LAYERS`, which stand in order of cost, that can see it without
sleeping for a minute (a wait that is not answered costs calls in sequence its whole budget).
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Final

from counterfoil_conformance.mutants.wire import WIRE_FAULTS, load_faults
from counterfoil_server.ledger import JobLedger
from counterfoil_spec.clauses import CLAUSES, clause_ids

__all__ = ["LedgerFault", "all_ledger_faults", "ledger_fault"]

_FAMILIES: Final = ("states", "places", "waits")


@dataclass(frozen=True, slots=True)
class LedgerFault:
    """One fault of the ledger; `cheapest` is the layer that must find it."""

    name: str
    sentence: str
    clauses: tuple[str, ...]
    cls: type[JobLedger]
    cheapest: str = "vectors"


_SEEDED: Final[dict[str, LedgerFault]] = {}


def ledger_fault(
    name: str, clauses: str, *, cheapest: str = "vectors"
) -> Callable[[type[JobLedger]], type[JobLedger]]:
    """Seed the decorated subclass; its docstring is the fault's sentence."""

    def seed(cls: type[JobLedger]) -> type[JobLedger]:
        sentence = (cls.__doc__ or "").strip()
        _SEEDED[name] = LedgerFault(name, sentence, clause_ids(clauses), cls, cheapest)
        return cls

    return seed


def all_ledger_faults() -> dict[str, LedgerFault]:
    """Those seeded for the ledger, and those of the wire's that are overrides of it alone."""
    load_faults()
    for family in _FAMILIES:
        import_module(f"{__package__}.ledger_faults.{family}")
    shared = {
        fault.name: LedgerFault(
            fault.name,
            fault.sentence,
            (*fault.clauses, *_SEEN_FROM_WITHIN, *_ALSO.get(fault.name, ())),
            fault.parts[JobLedger],
            _CHEAPEST.get(fault.name, "vectors"),
        )
        for fault in WIRE_FAULTS.values()
        if set(fault.parts) == {JobLedger} and any(CLAUSES[c].at_ledger for c in fault.clauses)
    }
    return {**shared, **_SEEDED}


# A caller of the ledger may read the depth itself, and the completion time.
_SEEN_FROM_WITHIN: Final = ("A1", "S7")
# What else the override breaks, as a caller who ends jobs and reads the depth itself can see.
_ALSO: Final = {
    "budget-makes-failed": ("S3",),
    "refusal-takes-a-place": ("A2",),
    "newest-evicted-first": ("R3",),
}
# Those of the wire's faults that take more than a few calls, two threads, or time, to show.
_CHEAPEST: Final = {
    "ids-come-again": "sequences",
    "same-req-id-same-job": "sequences",
    "age-takes-running-jobs": "sequences",
    "stale-reads": "sequences",
    "results-mixed-up": "sequences",
    "result-read-once": "sequences",
    "running-looks-pending": "sequences",
    "first-waiter-only": "schedules",
    "timeout-wakes-nobody": "schedules",
    "start-wakes-waiters": "schedules",
    "state-before-error": "schedules",
}
