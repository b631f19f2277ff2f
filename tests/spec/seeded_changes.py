"""For every property a change of the law that breaks it: none of them holds by itself.

A change replaces actions of the law; `patched` alters one field of one job in an answer.
"""

from counterfoil_spec import ledger as law
from counterfoil_spec.ledger import Outcome, Reply, State, Step
from counterfoil_spec.model import LAW, Scope

SMALL = Scope(1, 1, 1, 1)
TWO = Scope(2, 1, 1, 1)
NO_ROOM = Scope(0, 0, 0, 1)


def patched(step, job_id, **fields):
    """The answer with fields of one job altered, in the ledger and in the reply."""

    def alter(job):
        return job._replace(**fields) if job.id == job_id else job

    ledger = step.ledger._replace(
        live=tuple(map(alter, step.ledger.live)), retained=tuple(map(alter, step.ledger.retained))
    )
    return step._replace(ledger=ledger, reply=step.reply._replace(job=ledger.find(job_id)))


def after(action, change):
    """The action, and then a change of its answer if it was accepted."""

    def changed(ledger, *args):
        step = LAW[action](ledger, *args)
        return change(step, *args) if step.accepted else step

    return {action: changed}


def ledger_after(action, **fields):
    """The action, and then some fields of the ledger computed anew from it."""

    def change(step, *_):
        new = {name: compute(step.ledger) for name, compute in fields.items()}
        return step._replace(ledger=step.ledger._replace(**new))

    return after(action, change)


def instead(action, function):
    return {action: function}


def greedy_admit(ledger, task_id="", payload=""):
    return law.admit(ledger._replace(limits=ledger.limits._replace(max_queue=9)), task_id, payload)


def admit_unbounded(ledger, task_id="", payload=""):
    if ledger.depth >= ledger.limits.max_queue + 1:
        return law.admit(ledger, task_id, payload)
    step = greedy_admit(ledger, task_id, payload)
    return step._replace(ledger=step.ledger._replace(limits=ledger.limits))


def admit_timidly(ledger, task_id="", payload=""):
    if ledger.depth + 1 >= ledger.limits.max_queue:
        return Step(ledger, Reply(Outcome.QUEUE_FULL), "A3", "nearly full")
    return law.admit(ledger, task_id, payload)


def refused_admit_counts(ledger, task_id="", payload=""):
    step = law.admit(ledger, task_id, payload)
    return step if step.accepted else step._replace(ledger=ledger._replace(now=ledger.now + 1))


def start_again(ledger, job_id):
    job = ledger.find(job_id)
    if job is None or job.state.terminal:
        return law.start(ledger, job_id)
    return patched(Step(ledger, Reply(Outcome.ACCEPTED, job)), job_id, state=State.RUNNING)


def start_anything(ledger, job_id):
    job = ledger.find(job_id)
    if job is None:
        return law.start(ledger, job_id)
    return patched(Step(ledger, Reply(Outcome.ACCEPTED, job)), job_id, state=State.RUNNING)


def start_unknown(ledger, job_id):
    step = law.start(ledger, job_id)
    return (
        step
        if step.reply.outcome is not Outcome.NOT_FOUND
        else Step(ledger, Reply(Outcome.ACCEPTED))
    )


def start_all(step, _):
    live = tuple(job._replace(state=State.RUNNING) for job in step.ledger.live)
    return step._replace(ledger=step.ledger._replace(live=live))


def start_revives(ledger, job_id):
    step = law.start(ledger, job_id)
    if step.reply.outcome is not Outcome.NOT_FOUND or ledger.live:
        return step
    ghost = law.Job(7, State.PENDING, "task", "payload", ledger.now)
    return step._replace(ledger=ledger._replace(live=(ghost,), depth=ledger.depth + 1))


def finish_only_running(ledger, job_id, result=""):
    job = ledger.find(job_id)
    if job is not None and job.state is State.PENDING:
        return Step(ledger, Reply(Outcome.REFUSED, job), "S3", "not running")
    return law.finish(ledger, job_id, result)


def fail_overwrites(ledger, job_id, error="failed"):
    job = ledger.find(job_id)
    if job is None or job.state is not State.DONE:
        return law.fail(ledger, job_id, error)
    step = Step(ledger, Reply(Outcome.ACCEPTED, job))
    return patched(step, job_id, state=State.FAILED, result=None, error=error)


def finish_stays_live(step, job_id, *_):
    job = step.ledger.find(job_id)
    return step._replace(ledger=step.ledger._replace(live=(*step.ledger.live, job)))


def finish_in_place(ledger, job_id, result=""):
    job = ledger.find(job_id)
    if job is None or job.state.terminal:
        return law.finish(ledger, job_id, result)
    ended = law.finish(ledger, job_id, result).ledger.find(job_id)
    live = tuple(ended if other.id == job_id else other for other in ledger.live)
    return Step(ledger._replace(live=live, depth=ledger.depth - 1), Reply(Outcome.ACCEPTED, ended))


def sweep_with(choose):
    def sweep(ledger):
        step = law.sweep(ledger)
        if not step.accepted:
            return step
        return step._replace(ledger=step.ledger._replace(retained=tuple(choose(ledger))))

    return instead("sweep", sweep)


def by_count(ledger):
    bound = max(ledger.limits.max_completed, 0)
    return ledger.retained[max(len(ledger.retained) - bound, 0) :]


def by_age(ledger):
    return [j for j in ledger.retained if not law.has_expired(j, ledger.limits, ledger.now)]


def the_oldest(ledger):
    return by_age(ledger)[: max(ledger.limits.max_completed, 0)]


def reply_with(action, outcome, when=lambda job: True, job_too=True):
    """The action answers with another outcome where `when` holds of the job."""

    def change(ledger, job_id, *args):
        step, job = LAW[action](ledger, job_id, *args), ledger.find(job_id)
        if job is None or not when(job):
            return step
        return Step(ledger, Reply(outcome, job if job_too else None))

    return {action: change}


def terminal(job):
    return job.state.terminal


def in_state(state):
    return lambda job: job.state is state


def snapshot_takes(ledger, job_id):
    return law.take_request(ledger, job_id)._replace(reply=law.snapshot(ledger, job_id).reply)


def snapshot_says_pending(ledger, job_id):
    step = law.snapshot(ledger, job_id)
    job = step.reply.job
    shown = job and job._replace(state=State.PENDING)
    return step._replace(reply=step.reply._replace(job=shown))


# property -> (scope, actions to replace)
CHANGES = {
    "a_result_exists_exactly_when_done": (
        SMALL,
        after("finish", lambda step, job_id, *_: patched(step, job_id, result=None)),
    ),
    "an_error_exists_exactly_when_failed_or_timeout": (
        SMALL,
        after("fail", lambda step, job_id, *_: patched(step, job_id, error="")),
    ),
    "a_completion_time_exists_exactly_when_terminal": (
        SMALL,
        after("finish", lambda step, job_id, *_: patched(step, job_id, completed_at=None)),
    ),
    "live_jobs_are_pending_or_running": (SMALL, instead("finish", finish_in_place)),
    "retained_jobs_are_terminal": (
        SMALL,
        after("finish", lambda step, job_id, *_: patched(step, job_id, state=State.RUNNING)),
    ),
    "depth_counts_the_live_jobs": (SMALL, ledger_after("fail", depth=lambda led: led.depth + 1)),
    "depth_stays_within_its_bound": (SMALL, instead("admit", admit_unbounded)),
    "depth_is_never_negative": (SMALL, ledger_after("fail", depth=lambda led: led.depth - 1)),
    "no_room_admits_nothing": (NO_ROOM, instead("admit", admit_unbounded)),
    "ids_are_unique": (TWO, ledger_after("admit", issued=lambda led: led.issued - 1)),
    "all_places_come_back": (SMALL, ledger_after("time_out", depth=lambda led: led.depth + 1)),
    "retained_jobs_stand_in_order_of_completion": (
        TWO,
        ledger_after("finish", retained=lambda led: (led.retained[-1], *led.retained[:-1])),
    ),
    "a_refusal_changes_nothing": (SMALL, instead("admit", refused_admit_counts)),
    "a_read_changes_nothing": (SMALL, instead("snapshot", snapshot_takes)),
    "a_snapshot_shows_the_record": (SMALL, instead("snapshot", snapshot_says_pending)),
    "an_unknown_id_is_not_found": (SMALL, instead("start", start_unknown)),
    "a_call_touches_no_other_job": (TWO, after("start", start_all)),
    "a_job_is_born_pending": (
        SMALL,
        after("admit", lambda step, *_: patched(step, step.reply.job.id, state=State.RUNNING)),
    ),
    "only_a_pending_job_starts": (SMALL, instead("start", start_again)),
    "only_a_start_makes_a_job_running": (
        SMALL,
        after(
            "take_request",
            lambda step, job_id: (
                patched(step, job_id, state=State.RUNNING) if step.ledger.live else step
            ),
        ),
    ),
    "any_live_job_may_end": (SMALL, instead("finish", finish_only_running)),
    "terminal_states_absorb": (SMALL, instead("fail", fail_overwrites)),
    "no_job_goes_back": (SMALL, instead("start", start_anything)),
    "a_job_completes_now": (
        SMALL,
        after("finish", lambda step, job_id, *_: patched(step, job_id, completed_at=-1)),
    ),
    "the_clock_is_monotonic": (SMALL, ledger_after("advance", now=lambda led: led.now - 2)),
    "a_job_ends_once": (SMALL, after("finish", finish_stays_live)),
    "admission_depends_on_depth_alone": (TWO, instead("admit", admit_timidly)),
    "a_place_is_taken_and_released_once": (
        SMALL,
        ledger_after("time_out", depth=lambda led: led.depth + 1),
    ),
    "every_id_is_new": (SMALL, ledger_after("admit", issued=lambda led: led.issued - 1)),
    "an_admitted_job_is_found_at_once": (SMALL, ledger_after("admit", live=lambda led: ())),
    "a_live_job_is_never_evicted": (SMALL, ledger_after("sweep", live=lambda led: ())),
    "only_a_sweep_evicts": (SMALL, ledger_after("advance", retained=by_age)),
    "every_admission_owes_one_sweep": (SMALL, ledger_after("admit", sweeps_owed=lambda led: 0)),
    "a_sweep_leaves_nothing_past_its_ttl": (SMALL, sweep_with(by_count)),
    "a_sweep_leaves_at_most_max_completed": (SMALL, sweep_with(by_age)),
    "a_sweep_keeps_the_most_recently_completed": (SMALL, sweep_with(the_oldest)),
    "a_retained_job_does_not_change": (
        SMALL,
        after("take_request", lambda step, job_id: patched(step, job_id, result=None)),
    ),
    "no_record_comes_out_of_nowhere": (SMALL, instead("start", start_revives)),
    "a_sweep_evicts_no_more_than_it_must": (SMALL, sweep_with(lambda ledger: ())),
    "the_payload_is_handed_out_once": (
        SMALL,
        after("take_request", lambda step, job_id: patched(step, job_id, payload="payload")),
    ),
    "nothing_but_a_take_moves_the_payload": (
        SMALL,
        after("finish", lambda step, job_id, *_: patched(step, job_id, payload=None)),
    ),
    "the_task_id_stays": (
        SMALL,
        after("finish", lambda step, job_id, *_: patched(step, job_id, task_id="")),
    ),
    "the_task_id_is_told": (SMALL, reply_with("result", Outcome.READY, job_too=False)),
    "a_wait_on_a_terminal_job_is_answered": (
        SMALL,
        reply_with("wait", Outcome.BLOCKED, terminal),
    ),
    "a_wait_on_a_live_job_lasts_as_long_as_its_budget": (
        SMALL,
        reply_with("wait", Outcome.EXPIRED, in_state(State.RUNNING)),
    ),
    "a_done_job_has_its_result": (
        SMALL,
        reply_with("result", Outcome.NOT_DONE, in_state(State.DONE)),
    ),
    "no_other_state_has_a_result": (
        SMALL,
        reply_with("result", Outcome.READY, in_state(State.FAILED)),
    ),
}


def law_with(actions):
    return {**LAW, **actions}
