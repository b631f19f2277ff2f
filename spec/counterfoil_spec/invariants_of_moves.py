"""What must hold of every call: from the ledger before it to the step it was answered.

The properties of moves, one after the other in the order of the clauses. `invariants` says what
properties are for; a move is any call there is, accepted, refused or a read.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from counterfoil_spec.ledger import Job, JobId, Ledger, Outcome, State, has_expired
from counterfoil_spec.properties import Move, Predicate, Property, always, enter

__all__ = ["ENDINGS", "MOVE", "READS", "TARGETED", "TRANSITIONS"]

MOVE: Final[dict[str, Property[Move]]] = {}

ENDINGS: Final = frozenset({"finish", "fail", "time_out"})
TRANSITIONS: Final = ENDINGS | {"start"}
READS: Final = frozenset({"snapshot", "result", "wait"})
TARGETED: Final = TRANSITIONS | READS | {"take_request"}
_EVERY: Final = TARGETED | {"admit", "sweep", "advance"}


def _move(
    clauses: str, on: frozenset[str], when: Predicate[Move] = always
) -> Callable[[Predicate[Move]], Predicate[Move]]:
    return enter(MOVE, clauses, when, on)


def _accepted(move: Move) -> bool:
    return move.step.accepted


def _refused(move: Move) -> bool:
    return not move.step.accepted


def _known(move: Move) -> bool:
    return move.target is not None


def _unknown(move: Move) -> bool:
    return move.target is None


def _target_is_live(move: Move) -> bool:
    return move.target is not None and not move.target.state.terminal


def _target_is_terminal(move: Move) -> bool:
    return move.target is not None and move.target.state.terminal


def _jobs(ledger: Ledger) -> tuple[Job, ...]:
    return (*ledger.live, *ledger.retained)


def _some(jobs: Iterable[Job]) -> bool:
    return any(True for _ in jobs)


def _ids(jobs: Iterable[Job]) -> list[JobId]:
    # Lists, not sets: there are a handful, and a symbolic id cannot be hashed and stay symbolic.
    return [job.id for job in jobs]


def _are_in(some: list[JobId], all_of: list[JobId]) -> bool:
    return all(job_id in all_of for job_id in some)


def _changes(move: Move) -> Iterator[tuple[Job, Job]]:
    """Records that are still there after the move and were changed by it: (before, after)."""
    for old in _jobs(move.before):
        new = move.after.find(old.id)
        if new is not None and new is not old and new != old:
            yield old, new


_CALLS: Final = frozenset({"admit"}) | TARGETED
_WRITES: Final = _EVERY - READS


@_move("S4 S8 A6", on=_CALLS, when=_refused)
def _a_refusal_changes_nothing(move: Move) -> bool:
    """A refused call leaves no trace: not in any record, not in depth, not in the ids issued."""
    return move.unchanged


@_move("S5 R6", on=READS, when=_known)
def _a_read_changes_nothing(move: Move) -> bool:
    """Reading is free: any number of reads leave the ledger as it was."""
    return move.unchanged


@_move("S5 S6", on=frozenset({"snapshot"}), when=_known)
def _a_snapshot_shows_the_record(move: Move) -> bool:
    """A read shows the record as one whole, never a mix."""
    return move.step.reply.outcome is Outcome.FOUND and move.step.reply.job == move.target


@_move("S8 R7 G3 W7", on=TARGETED, when=_unknown)
def _an_unknown_id_is_not_found(move: Move) -> bool:
    """Every call on an id that is not recorded is answered "not found" and changes nothing."""
    return move.step.reply == (Outcome.NOT_FOUND, None) and move.unchanged and _refused(move)


@_move("S4 S5", on=TARGETED, when=_known)
def _a_call_touches_no_other_job(move: Move) -> bool:
    """A call on one job leaves every other record as it was."""
    return all(old.id == move.job_id for old, _ in _changes(move))


@_move("S1", on=frozenset({"admit"}), when=_accepted)
def _a_job_is_born_pending(move: Move) -> bool:
    """A new job is pending."""
    job = move.step.reply.job
    return job is not None and job.state is State.PENDING


@_move("S2", on=frozenset({"start"}), when=_known)
def _only_a_pending_job_starts(move: Move) -> bool:
    """A start is accepted exactly when the job is pending, and makes it running."""
    pending = move.target is not None and move.target.state is State.PENDING
    after = move.target_after
    started = after is not None and after.state is State.RUNNING
    return started if pending and move.step.accepted else pending == move.step.accepted


@_move("S2", on=_WRITES - {"start"})
def _only_a_start_makes_a_job_running(move: Move) -> bool:
    """No other action brings a job into running."""
    return all(
        new.state is not State.RUNNING or old.state is State.RUNNING for old, new in _changes(move)
    )


_ENDS_IN: Final = {"finish": State.DONE, "fail": State.FAILED, "time_out": State.TIMEOUT}


@_move("S3 T1 T5 T6", on=ENDINGS, when=_target_is_live)
def _any_live_job_may_end(move: Move) -> bool:
    """Any live job, pending or running, enters the terminal state that is asked for."""
    after = move.target_after
    return move.step.accepted and after is not None and after.state is _ENDS_IN[move.action]


@_move("S4 T2", on=TRANSITIONS, when=_target_is_terminal)
def _terminal_states_absorb(move: Move) -> bool:
    """A transition of a terminal job is refused and changes nothing: the first writer wins."""
    return not move.step.accepted and move.unchanged


@_move("S5", on=_WRITES)
def _no_job_goes_back(move: Move) -> bool:
    """pending < running < terminal: no step takes a job back."""
    return all(old.state.rank <= new.state.rank for old, new in _changes(move))


@_move("S7", on=ENDINGS, when=_accepted)
def _a_job_completes_now(move: Move) -> bool:
    """The completion time is the clock's at the terminal transition."""
    after = move.target_after
    return after is not None and after.completed_at == move.before.now


@_move("S7", on=_EVERY)
def _the_clock_is_monotonic(move: Move) -> bool:
    """Time never goes back, and only `advance` moves it."""
    now, later = move.before.now, move.after.now
    return now <= later if move.action == "advance" else now == later


@_move("S9", on=ENDINGS, when=_accepted)
def _a_job_ends_once(move: Move) -> bool:
    """An accepted ending takes one job from the live to the retained, and no other step does."""
    was_live = move.job_id in _ids(move.before.live)
    is_live = move.job_id in _ids(move.after.live)
    return was_live and not is_live and move.job_id in _ids(move.after.retained)


@_move("A3", on=frozenset({"admit"}))
def _admission_depends_on_depth_alone(move: Move) -> bool:
    """A submit is admitted exactly when depth is below `async_max_queue`."""
    return move.step.accepted == (move.before.depth < move.before.limits.max_queue)


@_move("A5", on=_EVERY)
def _a_place_is_taken_and_released_once(move: Move) -> bool:
    """Depth grows by one at an admission, falls by one at a terminal transition, else stays."""
    before, after = move.before.depth, move.after.depth
    if move.step.accepted and move.action == "admit":
        return after == before + 1
    if move.step.accepted and move.action in ENDINGS:
        return after == before - 1
    return after == before


@_move("A8", on=frozenset({"admit"}), when=_accepted)
def _every_id_is_new(move: Move) -> bool:
    """An admitted job's id was never issued before."""
    job = move.step.reply.job
    return job is not None and move.before.issued <= job.id < move.after.issued


@_move("A10", on=frozenset({"admit"}), when=_accepted)
def _an_admitted_job_is_found_at_once(move: Move) -> bool:
    """As soon as submit has returned an id, every read finds it."""
    job = move.step.reply.job
    return job is not None and move.after.find(job.id) == job


@_move("R1", on=_WRITES, when=lambda move: _some(move.before.live))
def _a_live_job_is_never_evicted(move: Move) -> bool:
    """However old it is, and however many jobs complete, a live job stays."""
    return _are_in(_ids(move.before.live), _ids(_jobs(move.after)))


@_move("R2", on=_WRITES - {"sweep"}, when=lambda move: _some(move.before.retained))
def _only_a_sweep_evicts(move: Move) -> bool:
    """Eviction happens only inside a submit: not by time, not by a read, not by a transition."""
    return _are_in(_ids(move.before.retained), _ids(_jobs(move.after)))


@_move("R2", on=frozenset({"admit", "sweep"}))
def _every_admission_owes_one_sweep(move: Move) -> bool:
    """An admitted submit sweeps, once, and nobody else does."""
    owed, still = move.before.sweeps_owed, move.after.sweeps_owed
    if move.action == "admit":
        return still == owed + int(move.step.accepted)
    return still == owed - 1 if owed else not move.step.accepted and move.unchanged


def _swept(move: Move) -> bool:
    return move.step.accepted


def _young(move: Move) -> list[Job]:
    """The retained jobs that are within their TTL when the sweep comes."""
    limits, now = move.before.limits, move.before.now
    return [job for job in move.before.retained if not has_expired(job, limits, now)]


def _bound(move: Move) -> int:
    return max(move.before.limits.max_completed, 0)


def _some_are_old(move: Move) -> bool:
    return _swept(move) and len(_young(move)) < len(move.before.retained)


def _some_are_too_many(move: Move) -> bool:
    return _swept(move) and len(_young(move)) > _bound(move)


_SWEEP: Final = frozenset({"sweep"})


@_move("R3", on=_SWEEP, when=_some_are_old)
def _a_sweep_leaves_nothing_past_its_ttl(move: Move) -> bool:
    """A job that completed more than `async_job_ttl` ago is gone after the sweep."""
    limits, now = move.after.limits, move.after.now
    return not any(has_expired(job, limits, now) for job in move.after.retained)


@_move("R4", on=_SWEEP, when=_some_are_too_many)
def _a_sweep_leaves_at_most_max_completed(move: Move) -> bool:
    """At most `async_max_completed` terminal jobs remain after the sweep."""
    return len(move.after.retained) <= _bound(move)


@_move("R5", on=_SWEEP, when=_some_are_too_many)
def _a_sweep_keeps_the_most_recently_completed(move: Move) -> bool:
    """What remains is the end of the completion order."""
    before, kept = move.before.retained, len(move.after.retained)
    return move.after.retained == before[len(before) - kept :]


@_move("R6", on=_WRITES, when=lambda move: _some(move.before.retained))
def _a_retained_job_does_not_change(move: Move) -> bool:
    """Until it is evicted, nothing of a terminal job changes but its payload, once taken."""
    return all(
        not old.state.terminal or old._replace(payload=new.payload) == new
        for old, new in _changes(move)
    )


@_move("R7 A8", on=_EVERY)
def _no_record_comes_out_of_nowhere(move: Move) -> bool:
    """Only an admission adds a record, and only one: an evicted id never comes back."""
    known = _ids(_jobs(move.before))
    new = [job_id for job_id in _ids(_jobs(move.after)) if job_id not in known]
    return len(new) == int(move.action == "admit" and move.step.accepted)


@_move("R9", on=_SWEEP, when=_swept)
def _a_sweep_evicts_no_more_than_it_must(move: Move) -> bool:
    """Of the jobs within their TTL only the excess over `async_max_completed` goes."""
    young = _young(move)
    left = _ids(move.after.retained)
    gone = [job for job in young if job.id not in left]
    return len(gone) <= max(len(young) - _bound(move), 0)


@_move("Q1 Q3", on=frozenset({"take_request"}), when=_known)
def _the_payload_is_handed_out_once(move: Move) -> bool:
    """The first take gets the payload, later ones none; the ledger keeps no reference to it."""
    target, after, reply = move.target, move.target_after, move.step.reply
    if target is None or after is None or reply.job is None:
        return False
    first = target.payload is not None
    outcome = Outcome.PAYLOAD if first else Outcome.NO_PAYLOAD
    return (
        move.step.accepted
        and reply.outcome is outcome
        and reply.job.payload == target.payload
        and after.payload is None
    )


@_move("Q1", on=_WRITES - {"take_request"})
def _nothing_but_a_take_moves_the_payload(move: Move) -> bool:
    """No other action drops a payload or brings one back."""
    return all(old.payload == new.payload for old, new in _changes(move))


@_move("Q2", on=_WRITES)
def _the_task_id_stays(move: Move) -> bool:
    """The task id stays in the record, also after the payload was taken."""
    return all(old.task_id == new.task_id for old, new in _changes(move))


@_move("Q2", on=frozenset({"take_request", "result"}), when=_known)
def _the_task_id_is_told(move: Move) -> bool:
    """A take and a result name the task id of the record."""
    told, target = move.step.reply.job, move.target
    return told is not None and target is not None and told.task_id == target.task_id


@_move("W1 W2 W6", on=frozenset({"wait"}), when=_target_is_terminal)
def _a_wait_on_a_terminal_job_is_answered(move: Move) -> bool:
    """Whatever is left of its budget, a waiter is told the terminal state, the same for all."""
    return move.step.reply == (Outcome.FOUND, move.target)


@_move("W4", on=frozenset({"wait"}), when=_target_is_live)
def _a_wait_on_a_live_job_lasts_as_long_as_its_budget(move: Move) -> bool:
    """A waiter blocks until its budget is spent and is then told the state; the job lives on."""
    spent = move.waited_ms >= move.budget_ms
    outcome = Outcome.EXPIRED if spent else Outcome.BLOCKED
    return move.step.reply == (outcome, move.target) and move.unchanged


def _target_is_done(move: Move) -> bool:
    return move.target is not None and move.target.state is State.DONE


@_move("G1", on=frozenset({"result"}), when=_target_is_done)
def _a_done_job_has_its_result(move: Move) -> bool:
    """`done`: the result, as recorded, every time."""
    return move.step.reply == (Outcome.READY, move.target) and move.step.accepted


@_move("G2", on=frozenset({"result"}), when=lambda move: _known(move) and not _target_is_done(move))
def _no_other_state_has_a_result(move: Move) -> bool:
    """Not `done`: refused, naming the state."""
    return move.step.reply == (Outcome.NOT_DONE, move.target) and not move.step.accepted
