"""Changes of the law that shipped once: the ledger's side of the historic defects.

Most of them live between two steps and show only in `protocol_programs`. D5 is a fault of the
design, visible to a single caller: the order of eviction was that of submission, and while too many
jobs were terminal the sweep dropped its front, also when that was a job still running. Dropped from
the order, the job could never be found there again when it had ended.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from counterfoil_spec.ledger import Job, Ledger, Outcome, Reply, Step
from counterfoil_spec.model import LAW, FullModel, Law, Scope

__all__ = ["LEDGER_DEFECTS", "LOST", "d5_model", "sweep_by_submission"]

# A job that is no longer in the order of eviction. The law has no such field and needs none; a
# submission time before the beginning stands for it, because no answer depends on that time.
LOST: Final = -1


def sweep_by_submission(ledger: Ledger) -> Step:
    """D5: drop the front of the order of submission while too many jobs are terminal."""
    if ledger.sweeps_owed == 0:
        return Step(ledger, Reply(Outcome.REFUSED), "R2", "eviction happens only inside a submit")
    jobs = sorted((*ledger.live, *ledger.retained), key=lambda job: job.id)
    left, evicted, lost = len(ledger.retained), set(), set()
    for job in jobs:
        if left <= max(ledger.limits.max_completed, 0):
            break
        if job.submitted_at == LOST:
            continue
        if job.state.terminal:
            evicted.add(job.id)
            left -= 1
        else:
            lost.add(job.id)
    after = ledger._replace(
        live=tuple(_marked(job, job.id in lost) for job in ledger.live),
        retained=tuple(job for job in ledger.retained if job.id not in evicted),
        sweeps_owed=ledger.sweeps_owed - 1,
    )
    return Step(after, Reply(Outcome.ACCEPTED))


def _marked(job: Job, lost: bool) -> Job:
    return job._replace(submitted_at=LOST) if lost else job


LEDGER_DEFECTS: Final[Mapping[str, Law]] = MappingProxyType(
    {"D5": MappingProxyType({**LAW, "sweep": sweep_by_submission})}
)


def d5_model() -> FullModel:
    """Where D5 is refuted in six operations: nothing is to be retained, and a submit is atomic."""
    return FullModel(Scope(2, 0, 0, 0), LEDGER_DEFECTS["D5"], clock=False)
