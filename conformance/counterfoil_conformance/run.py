"""What every kind of run has in common: its options, and the callable it publishes events to."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from counterfoil_conformance.report.events import Event

__all__ = ["DEFAULT_TOLERANCE_MS", "Profile", "Publish", "RunOptions"]

Profile: TypeAlias = Literal["quick", "full"]
Publish: TypeAlias = Callable[[Event], None]

# "At once", "woken" and "not long after" in the contract, before the measured round trip is added.
DEFAULT_TOLERANCE_MS = 250.0


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How to run: `only` holds the clause ids to decide (empty: all); times are in ms.

    `vectors` is a file of sequences to run on a ledger subject instead of the generated ones.
    """

    profile: Profile = "quick"
    only: frozenset[str] = frozenset()
    seed: int = 0
    tolerance_ms: float | None = None
    vectors: str | None = None
