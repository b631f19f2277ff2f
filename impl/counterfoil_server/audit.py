"""The invariants, looked at while the server runs.

Every look takes the ledger as it is at one moment and compares it with what must hold of any ledger
at any moment. It is a smoke detector, not a proof: it cannot see what happened between two looks.
A violation is counted in the metrics and logged; it has never been seen, and should never be.
"""

from collections.abc import Iterator
from typing import NamedTuple

from counterfoil_server.ledger import JobLedger, Snapshot, State

__all__ = ["Violation", "audit"]


class Violation(NamedTuple):
    """A clause that did not hold, and how it shows."""

    clause: str
    why: str


def audit(ledger: JobLedger) -> list[Violation]:
    """Everything that is wrong at this moment; its cost grows with the jobs that are known."""
    before = ledger.depth()
    jobs = ledger.jobs()
    after = ledger.depth()
    return [*_of_depth(ledger, before, after), *(v for job in jobs for v in _of_job(job))]


def _of_depth(ledger: JobLedger, *depths: int) -> Iterator[Violation]:
    bound = max(ledger.limits.max_queue, 0)
    for depth in depths:
        if not 0 <= depth <= bound:
            yield Violation("A2", f"depth is {depth}, the bound is {bound}")


def _of_job(job: Snapshot) -> Iterator[Violation]:
    ended = job.state.terminal
    if (job.completed_at is not None) != ended:
        yield Violation("S7", f"{job.job_id} is {job.state} and completed at {job.completed_at}")
    if job.completed_at is not None and job.completed_at < job.submitted_at:
        yield Violation("S7", f"{job.job_id} completed before it was submitted")
    if (job.result is not None) != (job.state is State.DONE):
        yield Violation("S6", f"{job.job_id} is {job.state}, its result does not fit")
    if bool(job.error) != (ended and job.state is not State.DONE):
        yield Violation("S6", f"{job.job_id} is {job.state}, its error does not fit")
