"""Seeded defects of admission: bounds, places, ids."""

from counterfoil_conformance.proof.defects.parts import admitted, with_depth, with_job
from counterfoil_conformance.proof.seeding import defect
from counterfoil_spec.ledger import (
    Ledger,
    Limits,
    Outcome,
    Reply,
    State,
    Step,
    admit,
    empty_ledger,
    submit,
)

__all__: list[str] = []


@defect(empty_ledger)
def born_with_a_place_taken(limits: Limits, now: int = 0) -> Ledger:
    """A new ledger already counts one job."""
    return empty_ledger(limits, now)._replace(depth=1)


@defect(admit)
def admits_one_too_many(ledger: Ledger, task_id: str = "", payload: object = "") -> Step:
    """`>` for `>=`: depth may pass the bound by one."""
    room = ledger.depth <= ledger.limits.max_queue
    return admitted(ledger, task_id, payload) if room else admit(ledger, task_id, payload)


@defect(admit)
def admits_one_too_few(ledger: Ledger, task_id: str = "", payload: object = "") -> Step:
    """The last place is never given."""
    if ledger.depth + 1 >= ledger.limits.max_queue:
        return Step(ledger, Reply(Outcome.QUEUE_FULL), "A3", "full")
    return admit(ledger, task_id, payload)


@defect(admit)
def no_bound_at_zero(ledger: Ledger, task_id: str = "", payload: object = "") -> Step:
    """`max_queue` <= 0 is read as "no bound"."""
    if ledger.limits.max_queue <= 0:
        return admitted(ledger, task_id, payload)
    return admit(ledger, task_id, payload)


@defect(admit)
def a_refusal_takes_a_place(ledger: Ledger, task_id: str = "", payload: object = "") -> Step:
    """A refused submit counts in depth."""
    step = admit(ledger, task_id, payload)
    return step if step.accepted else with_depth(step, 1)


@defect(admit)
def a_refusal_uses_an_id(ledger: Ledger, task_id: str = "", payload: object = "") -> Step:
    """A refused submit leaves a trace: an id is gone."""
    step = admit(ledger, task_id, payload)
    if step.accepted:
        return step
    return step._replace(ledger=ledger._replace(issued=ledger.issued + 1))


@defect(admit)
def an_admission_takes_no_place(ledger: Ledger, task_id: str = "", payload: object = "") -> Step:
    """The job is recorded and depth stays."""
    step = admit(ledger, task_id, payload)
    return with_depth(step, -1) if step.accepted else step


@defect(admit)
def ids_are_used_again(ledger: Ledger, task_id: str = "", payload: object = "") -> Step:
    """The new id is the number of jobs known: free again after an eviction."""
    known = len(ledger.live) + len(ledger.retained)
    step = admit(ledger._replace(issued=known), task_id, payload)
    return step._replace(ledger=step.ledger._replace(issued=max(ledger.issued, known + 1)))


@defect(admit)
def the_same_id_twice(ledger: Ledger, task_id: str = "", payload: object = "") -> Step:
    """The count of issued ids is not moved."""
    step = admit(ledger, task_id, payload)
    return step._replace(ledger=step.ledger._replace(issued=ledger.issued))


@defect(admit)
def born_running(ledger: Ledger, task_id: str = "", payload: object = "") -> Step:
    """A new job is running at once."""
    step = admit(ledger, task_id, payload)
    if step.reply.job is None:
        return step
    running = step.reply.job._replace(state=State.RUNNING)
    return Step(with_job(step.ledger, running), Reply(Outcome.ADMITTED, running))


@defect(admit)
def the_task_id_is_lost(ledger: Ledger, task_id: str = "", payload: object = "") -> Step:
    """The record does not keep the task id."""
    del task_id
    return admit(ledger, "", payload)


@defect(admit)
def an_admission_evicts(ledger: Ledger, task_id: str = "", payload: object = "") -> Step:
    """The oldest retained job makes room for the new one."""
    step = admit(ledger, task_id, payload)
    return step._replace(ledger=step.ledger._replace(retained=step.ledger.retained[1:]))


@defect(submit)
def a_submit_never_sweeps(ledger: Ledger, task_id: str = "", payload: object = "") -> Step:
    """Nothing is ever evicted."""
    step = admit(ledger, task_id, payload)
    return step._replace(ledger=step.ledger._replace(sweeps_owed=ledger.sweeps_owed))
