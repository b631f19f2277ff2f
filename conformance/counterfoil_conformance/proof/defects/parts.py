"""What the seeded defects of the law are put together from."""

from counterfoil_spec.ledger import Job, Ledger, Step, admit

__all__ = ["admitted", "with_depth", "with_job"]


def admitted(ledger: Ledger, task_id: str, payload: object) -> Step:
    """A correct admission, whether or not there is room."""
    limits = ledger.limits
    step = admit(
        ledger._replace(limits=limits._replace(max_queue=ledger.depth + 1)), task_id, payload
    )
    return step._replace(ledger=step.ledger._replace(limits=limits))


def with_depth(step: Step, by: int) -> Step:
    """The same answer with depth changed by so much."""
    return step._replace(ledger=step.ledger._replace(depth=step.ledger.depth + by))


def with_job(ledger: Ledger, job: Job) -> Ledger:
    """The ledger with this record in the place of the one with its id."""
    live = tuple(job if one.id == job.id else one for one in ledger.live)
    retained = tuple(job if one.id == job.id else one for one in ledger.retained)
    return ledger._replace(live=live, retained=retained)
