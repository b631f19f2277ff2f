"""What must hold of the protocol in every interleaving, and that it refines the law.

Each defect is refuted by its own property here; a property that is broken by an unrelated defect
would be a badly cut one, and the tests say so.

*Refinement*: seen through `view`, every step of the protocol is a step of the ledger's law, or
nothing happens. A job counts as admitted when it is in the map, as ended when its completion is
recorded, as evicted when the sweep has taken it off the completion order: what follows (the
release of the place, the publication, the erasure) happens while a mutex keeps every reader away.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from counterfoil_spec.checker import Always, OnStep, Reduced, refines
from counterfoil_spec.checker_liveness import Eventually, Fairness
from counterfoil_spec.ledger import Job, Ledger, Limits, State
from counterfoil_spec.model import FullModel, Key, Scope, key, representative
from counterfoil_spec.protocol import Cell, Frame, Memory, ProtocolLabel, ProtocolState

__all__ = ["ALWAYS", "EVENTUALLY", "eventually", "fairness", "may_end", "refinement", "view"]

_WAITS: Final = frozenset({"sleep", "sleep or expire"})


def _depth_within_bound(state: ProtocolState) -> bool:
    return state.memory.depth <= state.memory.max_queue


def _released_once(state: ProtocolState) -> bool:
    return state.memory.depth >= 0 and all(cell.released <= 1 for cell in state.memory.cells)


def _started_once(state: ProtocolState) -> bool:
    return all(cell.starts <= 1 for cell in state.memory.cells)


def _ended_once(state: ProtocolState) -> bool:
    """One ending is accepted, and what is published is what that one wrote."""
    return all(
        len(cell.ends) <= 1 and (not cell.ends or cell.state is cell.ends[0])
        for cell in state.memory.cells
    )


def _locked_read_whole(state: ProtocolState) -> bool:
    """Who reads payload and state under the mutex sees both or neither."""
    readers = [f for f in state.frames if f.role == "reader" and f.over]
    return all(_whole(f.state, f.payload) for f in readers)


def _whole(state: State | None, payload: State | None) -> bool:
    ended = state is not None and state.terminal
    return payload is state if ended else payload is None


def _published_payload(state: ProtocolState) -> bool:
    """Who sees a terminal state without a mutex, and then reads the payload, finds it."""
    pollers = [f for f in state.frames if f.role == "poller" and f.over]
    ended = [f for f in pollers if f.state is not None and f.state.terminal]
    return all(f.payload is f.state for f in ended)


def _never_back(state: ProtocolState) -> bool:
    return all(frame.answer != "went back" for frame in state.frames)


def _free_when_seen(state: ProtocolState) -> bool:
    """Who saw the only job end is not refused."""
    clients = [f for f in state.frames if f.role == "client"]
    return all(f.answer != "refused" for f in clients)


def _answer_was_possible(state: ProtocolState) -> bool:
    """There was an instant within the call at which the answer of admission was right."""
    bound = state.memory.max_queue
    for frame in state.frames:
        if frame.window is None or not frame.over:
            continue
        if frame.answer == "admitted" and min(frame.window) >= bound:
            return False
        if frame.answer == "refused" and max(frame.window) < bound:
            return False
    return True


def _depth_was_there(state: ProtocolState) -> bool:
    gauges = [f for f in state.frames if f.role == "gauge" and f.over]
    return all(f.window is None or f.seen in f.window for f in gauges)


def _no_more_seen_live_than_places(state: ProtocolState) -> bool:
    """Who was admitted to the only place does not then see the job that held it live."""
    visitors = [f for f in state.frames if f.role == "visitor" and f.over]
    admitted = [f for f in visitors if f.answer == "admitted"]
    return all(f.state is None or f.state.terminal for f in admitted)


def _woken_at_the_end(state: ProtocolState) -> bool:
    """Nobody is woken before the job has ended."""
    return all(cell.terminal or not cell.rung for cell in state.memory.cells)


def _bounded_retention(state: ProtocolState) -> bool:
    """When an admitted submit returns, few of the jobs that were terminal at its call remain."""
    memory = state.memory
    returned = [f for f in state.frames if f.over and f.answer == "admitted"]
    return all(
        len([job for job in frame.before if job in memory.listed]) <= memory.max_completed
        for frame in returned
    )


def _live_stays(state: ProtocolState) -> bool:
    """A job that is recorded and has not ended is in the map."""
    memory = state.memory
    return all(
        cell.state is None or cell.terminal or job in memory.listed
        for job, cell in enumerate(memory.cells)
    )


def _found_at_once(state: ProtocolState) -> bool:
    """A job whose submit has returned is in the map, until it has ended."""
    memory = state.memory
    returned = [f for f in state.frames if f.over and f.answer == "admitted"]
    return all(f.new in memory.listed or memory.cells[f.new].terminal for f in returned)


def _nothing_left_behind(state: ProtocolState) -> bool:
    """Who is not waiting any more is registered nowhere."""
    over = {me for me, frame in enumerate(state.frames) if frame.over}
    return not any(over & {*cell.waiters, *cell.rung} for cell in state.memory.cells)


def _counts_at_rest(state: ProtocolState) -> bool:
    """Between calls, depth is the number of live jobs."""
    if not may_end(state):
        return True
    live = [c for c in state.memory.cells if c.state is not None and not c.terminal]
    return state.memory.depth == len(live)


ALWAYS: Final[tuple[Always[ProtocolState], ...]] = (
    Always("depth_never_passes_its_bound", ("A2", "A3", "C3"), _depth_within_bound),
    Always("an_answer_of_admission_was_possible", ("A3", "C3"), _answer_was_possible),
    Always("a_place_is_released_once", ("A5", "C4"), _released_once),
    Always("a_place_is_free_once_the_end_was_seen", ("A5", "C4"), _free_when_seen),
    Always("no_more_are_seen_live_than_places", ("A2", "C4"), _no_more_seen_live_than_places),
    Always("a_read_depth_was_there", ("A1", "C3"), _depth_was_there),
    Always("depth_counts_the_live_jobs_at_rest", ("A1", "A5", "A11", "C4"), _counts_at_rest),
    Always("one_start_is_accepted", ("S2",), _started_once),
    Always("one_ending_is_accepted", ("S4", "S9"), _ended_once),
    Always("no_poll_goes_back", ("S5", "C1"), _never_back),
    Always("a_locked_read_is_whole", ("S6", "G2", "C2"), _locked_read_whole),
    Always("a_published_ending_has_its_payload", ("S6", "C1"), _published_payload),
    Always("an_admitted_job_is_found", ("A10",), _found_at_once),
    Always("no_live_job_is_erased", ("R1",), _live_stays),
    Always("at_most_max_completed_remain", ("R4", "C5"), _bounded_retention),
    Always("nobody_is_woken_before_the_end", ("W3", "C2"), _woken_at_the_end),
    Always("who_has_left_is_registered_nowhere", ("W8",), _nothing_left_behind),
)


# Eventually


def fairness(threads: int) -> tuple[Fairness[ProtocolLabel], ...]:
    """Every thread goes on while it can; nobody is left standing for ever."""

    def of(me: int) -> Fairness[ProtocolLabel]:
        return Fairness(f"thread {me}", lambda label: label.thread == me)

    return tuple(of(me) for me in range(threads))


def _waiters(state: ProtocolState) -> list[Frame]:
    return [f for f in state.frames if f.instruction == "sleep" and f.answer != "told"]


def _told(state: ProtocolState) -> list[Frame]:
    return [f for f in state.frames if f.over and f.answer == "told"]


def _ended(state: ProtocolState) -> bool:
    return state.memory.cells[0].terminal


EVENTUALLY: Final[tuple[Eventually[ProtocolState, ProtocolLabel], ...]] = (
    Eventually(
        "a_waiter_is_woken",
        ("W2", "C2"),
        when=lambda state: _ended(state) and bool(_waiters(state)) and not _told(state),
        then=lambda state: bool(_told(state)),
    ),
    Eventually(
        "all_waiters_are_woken",
        ("W6", "C2"),
        when=lambda state: _ended(state) and bool(_waiters(state)) and bool(_told(state)),
        then=lambda state: not _waiters(state),
    ),
)


def eventually(frames: Iterable[Frame]) -> tuple[Eventually[ProtocolState, ProtocolLabel], ...]:
    """What must happen eventually among these threads: about waiters, if there is one."""
    fair = fairness(len(frames := tuple(frames)))
    if not any(_WAITS & {*frame.program} for frame in frames):
        return ()
    return tuple(replace(goal, under=fair) for goal in EVENTUALLY)


def may_end(state: ProtocolState) -> bool:
    """Whether nobody stands before a mutex: at the end, or asleep with nothing to wake it yet."""
    return all(frame.over or frame.instruction == "sleep" for frame in state.frames)


# Refinement


def _as_job(number: int, cell: Cell, outcome: State | None) -> Job:
    state = outcome or cell.state or State.PENDING
    return Job(
        id=number,
        state=state,
        task_id="task",
        payload="payload",
        submitted_at=0,
        completed_at=0 if outcome else None,
        result="" if outcome is State.DONE else None,
        error={State.FAILED: "failed", State.TIMEOUT: "timed out"}.get(state),
    )


def view(state: ProtocolState) -> Key:
    """The ledger that an interleaving stands at."""
    memory, frames = state
    cells = memory.cells
    live = tuple(
        _as_job(job, cells[job], None) for job in memory.listed if not cells[job].completed
    )
    completed = (*memory.order, *memory.queue)
    unsettled = sum(cell.completed and not cell.released for cell in cells)
    return key(
        Ledger(
            _limits(memory),
            live=live,
            retained=tuple(_as_job(job, cells[job], cells[job].payload) for job in completed),
            depth=memory.depth - sum(frame.placed for frame in frames) - unsettled,
            issued=len(cells),
            sweeps_owed=sum(frame.owing for frame in frames),
        )
    )


def _limits(memory: Memory) -> Limits:
    return Limits(memory.max_queue, 0, memory.max_completed)


def refinement(memory: Memory, submitters: int) -> OnStep[ProtocolState, ProtocolLabel]:
    """Every step, seen through `view`, is a step of the law or a stutter."""
    scope = Scope(memory.max_queue, memory.max_completed, 0, max(submitters, 1))
    law = FullModel(scope, clock=False, judge=False)
    coarse: Reduced[Key, Ledger, object] = Reduced(
        law, key, lambda key_: representative(scope.limits, key_)
    )
    return refines("every_step_is_a_step_of_the_law", ("C2", "C3", "C4", "C5"), coarse, view)
