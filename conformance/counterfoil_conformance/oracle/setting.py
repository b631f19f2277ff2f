"""What a judge may take for granted about the ledger and about the recording.

A history alone proves little: whether a 429 was right depends on the bound, whether a 404 was on
everybody who may have submitted. A `Setting` says what is known. What is not known is None, or the
more careful choice, and the rules that would need it stay silent.
"""

from dataclasses import dataclass
from typing import Final

from counterfoil_spec.ledger import Limits

__all__ = ["Setting"]

# Two clocks of real machines drift apart by no more than this share (R3 compares theirs with ours),
# and a clock may tick as coarsely as this.
_DRIFT: Final = 1e-3
_GRAIN_US: Final = 20_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The circumstances of a history.

    Args:
        max_queue, job_ttl_ms, max_completed: the limits; None where unknown.
        wire: the answers crossed a wire, where eviction by age may come at any time (R2).
        exclusive: nobody else used the ledger; every submit and read is in the history.
        visible: every transition of every job is in the history as a call, and the ledger ends no
            job by itself. Otherwise a job may start and end unseen.
        live_before: how many jobs may have been pending or running when the history begins.
        ended_before: how many terminal jobs may have been retained then; None: any number.
        gone_by_us: the instant, if known, at which all of those had been evicted.
        known: ids that were issued before the history begins.
        tolerance_ms: how late "at once" may be, before the round trip `rtt_ms` is added.
    """

    max_queue: int | None = None
    job_ttl_ms: float | None = None
    max_completed: int | None = None
    wire: bool = True
    exclusive: bool = True
    visible: bool = False
    live_before: int = 0
    ended_before: int | None = 0
    gone_by_us: float | None = None
    known: frozenset[str] = frozenset()
    tolerance_ms: float = 250.0
    rtt_ms: float = 0.0

    @classmethod
    def of_ledger(cls, limits: Limits, tolerance_ms: float = 250.0) -> "Setting":
        """A fresh ledger in the same process, of which every call is recorded."""
        return cls(
            max_queue=limits.max_queue,
            job_ttl_ms=limits.job_ttl_ms,
            max_completed=limits.max_completed,
            wire=False,
            visible=True,
            tolerance_ms=tolerance_ms,
        )

    @property
    def late_us(self) -> float:
        """How late, in µs, an answer that is due at once may be."""
        return (self.tolerance_ms + self.rtt_ms) * 1000

    @property
    def surely_expired_us(self) -> float | None:
        """An age, in µs of the client's clock, at which a job is past its TTL on any clock."""
        if self.job_ttl_ms is None:
            return None
        return self.job_ttl_ms * 1000 * (1 + _DRIFT) + _GRAIN_US

    @property
    def surely_young_us(self) -> float | None:
        """An age, in µs, up to which a job is within its TTL on any clock."""
        if self.job_ttl_ms is None:
            return None
        return self.job_ttl_ms * 1000 * (1 - _DRIFT) - _GRAIN_US
