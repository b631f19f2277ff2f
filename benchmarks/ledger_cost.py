"""submit + start + finish on the ledger alone, with few and with many jobs retained (R8)."""

import gc
import time
from typing import NamedTuple

from counterfoil_server.ledger import JobLedger, Limits

__all__ = ["Cost", "cost"]


class Cost(NamedTuple):
    """One round of submit, start and finish; the best and the median of many batches."""

    retained: int
    best_us: float
    median_us: float


def cost(retained: tuple[int, ...], batches: int = 200, rounds: int = 200) -> list[Cost]:
    """Each ledger full of retained jobs, measured in turns so that noise falls on all alike."""
    ledgers = [full(number) for number in retained]
    times: list[list[float]] = [[] for _ in ledgers]
    gc.collect()
    gc.freeze()
    for _ in range(batches):
        for ledger, spent in zip(ledgers, times, strict=True):
            began = time.perf_counter()
            for _ in range(rounds):
                job_id = ledger.submit("t", "p")
                assert job_id is not None
                ledger.start(job_id)
                ledger.finish(job_id, "r")
            spent.append((time.perf_counter() - began) / rounds * 1e6)
    gc.unfreeze()
    return [
        Cost(number, min(spent), sorted(spent)[len(spent) // 2])
        for number, spent in zip(retained, times, strict=True)
    ]


def full(number: int) -> JobLedger:
    """A ledger that retains `number` jobs and evicts one with every further end."""
    ledger = JobLedger(Limits(max_queue=16, max_completed=number, job_ttl_ms=10**9))
    for _ in range(number + 1):
        job_id = ledger.submit("t", "p")
        assert job_id is not None
        ledger.finish(job_id, "r")
    return ledger
