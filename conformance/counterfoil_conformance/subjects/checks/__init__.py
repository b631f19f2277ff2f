"""The checks of ledger subjects; importing this package fills the table of checks."""

from counterfoil_conformance.subjects.checks import (
    admission,
    life,
    retention,
    waiting,
)

__all__ = ["admission", "life", "retention", "waiting"]
