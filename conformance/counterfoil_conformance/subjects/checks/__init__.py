"""The checks of ledger subjects; importing this package fills the table of checks, in order."""

from counterfoil_conformance.subjects.checks import (  # isort: skip - the order of the run
    vectors,
    life,
    admission,
    retention,
    generated,
    interleavings,
    waiting,
    races,
    stress,
    cost,
    sanitizer,
)

__all__ = [
    "admission",
    "cost",
    "generated",
    "interleavings",
    "life",
    "races",
    "retention",
    "sanitizer",
    "stress",
    "vectors",
    "waiting",
]
