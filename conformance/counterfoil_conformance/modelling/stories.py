"""A trace as a story: who does which step, and what changes by it.

The checker's traces are states and labels; nobody reads states. A story has one line per step, with
only the fields that changed, in the words of the contract, and the same lines serve the terminal,
the JSON file, the pages under `docs/` and `counterfoil explain`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from counterfoil_conformance.errors import SpecError
from counterfoil_spec.checker import Trace
from counterfoil_spec.ledger import Job, Ledger
from counterfoil_spec.model import FullModel, Key, Label, key
from counterfoil_spec.model_defects import LOST
from counterfoil_spec.model_tagged import TaggedState
from counterfoil_spec.protocol import Frame, ProtocolLabel, ProtocolState

__all__ = ["Line", "Story", "of_keys", "of_ledgers", "of_protocol", "of_tagged"]


@dataclass(frozen=True, slots=True)
class Line:
    """One step: who does what, and what changes."""

    who: str
    does: str
    changes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Story:
    """The lines of a trace; from `loop_from` (0: the first) on they repeat for ever.

    `loop_from` equal to the number of lines means that it stays where it has come to.
    """

    begins: tuple[str, ...]
    lines: tuple[Line, ...]
    loop_from: int | None = None

    def as_json(self) -> dict[str, Any]:
        """The story as the published schema has it."""
        return {
            "begins": list(self.begins),
            "steps": [
                {"who": line.who, "does": line.does, "changes": list(line.changes)}
                for line in self.lines
            ],
            "loop_from": self.loop_from,
        }


def _changed(name: str, old: object, new: object) -> Iterator[str]:
    if old != new:
        yield f"{name} {_told(old)} -> {_told(new)}"


def _told(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, tuple):
        return "[" + " ".join(map(str, value)) + "]"
    return str(value)


# Ledgers


def of_ledgers(trace: Trace[Ledger, Label]) -> Story:
    """A story of the full model: jobs have their ids."""
    lines = [
        Line(_caller(label.action), _call(label), tuple(_ledger_changes(before, after)))
        for before, label, after in zip(trace.states, trace.labels, trace.states[1:], strict=False)
    ]
    return Story((_limits(trace.states[0]),), tuple(lines), trace.loop_from)


def of_keys(trace: Trace[Key, Label], model: FullModel) -> Story:
    """A story of the reduced model, told with ids: the full model takes the same steps.

    Raises:
        SpecError: it cannot, so the reduction is wrong.
    """
    (ledger,) = model.initial()
    ledgers, labels = [ledger], []
    for label, target in zip(trace.labels, trace.states[1:], strict=True):
        for full_label, after in model.moves(ledger):
            if full_label.action == label.action and key(after) == target:
                ledger = after
                labels.append(full_label)
                break
        else:
            raise SpecError(f"the full model cannot follow {label}")
        ledgers.append(ledger)
    return of_ledgers(Trace(tuple(ledgers), tuple(labels), trace.loop_from))


def of_tagged(trace: Trace[TaggedState, Label]) -> Story:
    """A story of the tagged job; of the others only their number is known."""
    lines = []
    for before, label, after in zip(trace.states, trace.labels, trace.states[1:], strict=False):
        whose = label.job or label.shown
        which = "" if whose is None else f" {whose.task_id}"
        does = label.action + (which.replace("task", "another job").replace("tagged", "the job"))
        lines.append(Line(_caller(label.action), does, tuple(_tag_changes(before, after))))
    return Story(("an empty ledger",), tuple(lines), trace.loop_from)


def _limits(ledger: Ledger) -> str:
    limits = ledger.limits
    return (
        f"max_queue {limits.max_queue}, max_completed {limits.max_completed}, "
        f"job_ttl {limits.job_ttl_ms} ms"
    )


def _caller(action: str) -> str:
    if action in ("admit", "sweep", "submit"):
        return "client"
    if action in ("wait", "told", "snapshot", "result"):
        return "reader"
    return {"advance": "time", "time_out": "timer"}.get(action, "runner")


def _call(label: Label) -> str:
    shown = "" if label.job is None else f" {label.job.state} job"
    return f"{label.action}{shown}: {label.outcome}"


def _ledger_changes(before: Ledger, after: Ledger) -> Iterator[str]:
    then = {job.id: job for job in (*before.live, *before.retained)}
    now = {job.id: job for job in (*after.live, *after.retained)}
    for id_ in sorted(then.keys() | now.keys()):
        yield from _job_changes(id_, then.get(id_), now.get(id_))
    yield from _changed("depth", before.depth, after.depth)
    yield from _changed("sweeps owed", before.sweeps_owed, after.sweeps_owed)
    yield from _changed("now", before.now, after.now)


def _job_changes(id_: int, old: Job | None, new: Job | None) -> Iterator[str]:
    if old is None and new is not None:
        yield f"job {id_} {new.state}"
    elif new is None:
        yield f"job {id_} evicted"
    elif old is not None:
        yield from _changed(f"job {id_}", old.state, new.state)
        if old.payload is not None and new.payload is None:
            yield f"job {id_} payload taken"
        yield from _changed(f"job {id_} task id", old.task_id, new.task_id)
        if new.submitted_at == LOST != old.submitted_at:
            yield f"job {id_} is lost from the order of eviction"


def _tag_changes(before: TaggedState, after: TaggedState) -> Iterator[str]:
    old, new = before.tag, after.tag
    state = (old.job and old.job.state, new.job and new.job.state)
    yield from _changed("the job", *state)
    yield from _changed(
        "its age", *(tag.job and -(tag.job.completed_at or 0) for tag in (old, new))
    )
    yield from _changed("waiter", old.waiter or "none", new.waiter or "none")
    yield from _changed("depth", before.code[2], after.code[2])
    yield from _changed("sweeps owed", before.code[3], after.code[3])


# The protocol


def of_protocol(trace: Trace[ProtocolState, ProtocolLabel]) -> Story:
    """A story of threads, instruction by instruction."""
    roles = [frame.role for frame in trace.states[0].frames]
    lines = [
        Line(
            label.role,
            label.instruction,
            tuple(_protocol_changes(before, after, label.thread, roles)),
        )
        for before, label, after in zip(trace.states, trace.labels, trace.states[1:], strict=False)
    ]
    return Story(tuple(_setting(trace.states[0])), tuple(lines), trace.loop_from)


def _setting(state: ProtocolState) -> Iterator[str]:
    memory = state.memory
    yield f"max_queue {memory.max_queue}, max_completed {memory.max_completed}"
    yield f"depth {memory.depth}"
    for job, cell in enumerate(memory.cells):
        yield f"job {job} {cell.state or 'not yet submitted'}"


def _protocol_changes(
    before: ProtocolState, after: ProtocolState, thread: int, roles: list[str]
) -> Iterator[str]:
    old, new = before.memory, after.memory

    def owner(me: int | None) -> str:
        return "free" if me is None else roles[me]

    yield from _changed("depth", old.depth, new.depth)
    yield from _changed("table mutex", owner(old.table), owner(new.table))
    for name in ("listed", "order", "queue"):
        yield from _changed(name, getattr(old, name), getattr(new, name))
    for job, (was, is_) in enumerate(zip(old.cells, new.cells, strict=True)):
        yield from _changed(f"job {job}", was.state, is_.state)
        yield from _changed(f"job {job} payload", was.payload, is_.payload)
        yield from _changed(f"job {job} mutex", owner(was.mutex), owner(is_.mutex))
        yield from _changed(f"job {job} bell mutex", owner(was.bell), owner(is_.bell))
        for name in ("waiters", "rung"):
            names = [tuple(roles[me] for me in getattr(cell, name)) for cell in (was, is_)]
            yield from _changed(f"job {job} {name}", *names)
    yield from _frame_changes(before.frames[thread], after.frames[thread])


def _frame_changes(old: Frame, new: Frame) -> Iterator[str]:
    if new.instruction != old.instruction and "depth" in old.instruction:
        yield f"sees depth {new.seen}"
    if old.instruction in ("load state", "poll", "look", "look and register"):
        yield f"sees {_told(new.state)}"
    if old.instruction == "load payload":
        yield f"sees payload {_told(new.payload)}"
    if new.answer and new.answer != old.answer:
        yield f"answer: {new.answer}"
