"""The concurrency protocol at the grain of single loads, stores, locks and wake-ups (C1-C7).

A program is a tuple of instructions *by name* (`protocol_programs` has them all, and every historic
defect as another order, or another choice, of the same instructions). This file says what each
instruction does to memory. One instruction is one atomic step; between any two, any other process
may take its own. `ProtocolModel` is what the checker searches: all interleavings.

Memory is what the threads of a ledger share: the depth, the table mutex, the map of recorded ids,
the completion order it guards, the atomic queue that completions may be recorded on, and per job a
mutex, the published state, the payload fields and the waiters that are registered. Time does not
pass here (retention is by count) and requests have no content: the ledger model has both.

Fields that no thread could read (*ghosts*) are there for the properties alone: how often a job was
ended, what a call might have answered.

The trap is to make an instruction too big: a defect lives between two steps, and what is one step
here can have no defect in it. Loads and stores of single fields are steps, a compare-and-swap is
one, an exchange of the queue is one; what a thread does with its own registers is not a step.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

from counterfoil_spec.ledger import State

__all__ = [
    "INSTRUCTIONS",
    "Cell",
    "Frame",
    "Instruction",
    "Memory",
    "Program",
    "ProtocolLabel",
    "ProtocolModel",
    "ProtocolState",
]

Program: TypeAlias = tuple[str, ...]


class Cell(NamedTuple):
    """The memory of one job. `state` None: not recorded yet; `ended`, `released` are ghosts."""

    state: State | None = None
    payload: State | None = None
    mutex: int | None = None
    bell: int | None = None
    waiters: tuple[int, ...] = ()
    rung: tuple[int, ...] = ()
    starts: int = 0
    ends: tuple[State, ...] = ()
    completed: bool = False
    released: int = 0

    @property
    def terminal(self) -> bool:
        """Whether a terminal state is published."""
        return self.state is not None and self.state.terminal


class Memory(NamedTuple):
    """What the threads share: mutexes hold the number of their owner, or None."""

    max_queue: int
    max_completed: int
    cells: tuple[Cell, ...]
    depth: int = 0
    table: int | None = None
    listed: tuple[int, ...] = ()
    order: tuple[int, ...] = ()
    queue: tuple[int, ...] = ()


class Frame(NamedTuple):
    """A thread: its program, where it is, its registers, its answer.

    `job` is the job that it is about, `new` the one that it submits, `outcome` how it ends one.

    Ghosts: `window` collects the depths there were during its call, `before` the jobs that were
    terminal when it was called.
    """

    role: str
    program: Program
    job: int = 0
    new: int = 0
    outcome: State | None = None
    at: int = 0
    seen: int = 0
    state: State | None = None
    payload: State | None = None
    victims: tuple[int, ...] = ()
    answer: str = ""
    window: frozenset[int] | None = None
    before: tuple[int, ...] = ()
    placed: bool = False
    owing: bool = False

    @property
    def over(self) -> bool:
        """Whether the program has run to its end."""
        return self.at >= len(self.program)

    @property
    def instruction(self) -> str:
        """The name of the next instruction; empty at the end."""
        return "" if self.over else self.program[self.at]

    def to(self, name: str) -> "Frame":
        """Jump to the next instruction of this name, or to the first if there is none ahead."""
        ahead = self.program[self.at :]
        at = self.at + ahead.index(name) if name in ahead else self.program.index(name)
        return self._replace(at=at)

    def end(self, answer: str) -> "Frame":
        """Leave the program with an answer."""
        return self._replace(at=len(self.program), answer=answer)


class ProtocolState(NamedTuple):
    """The memory and the threads."""

    memory: Memory
    frames: tuple[Frame, ...]


class ProtocolLabel(NamedTuple):
    """Which thread has executed which instruction."""

    thread: int
    role: str
    instruction: str

    def __str__(self) -> str:
        return f"{self.role}: {self.instruction}"


_Next: TypeAlias = Iterable[tuple[Memory, Frame]]
_Effect: TypeAlias = Callable[[Memory, Frame, int], _Next]


class Instruction(NamedTuple):
    """One atomic step: what it does, in words and as a function.

    The function gets the memory, the thread's frame (already past this instruction) and the
    thread's number; it returns what may come of it, and nothing at all while it is blocked.
    `takes` and `frees` name the mutex, where it is about one.
    """

    text: str
    effect: _Effect
    takes: str = ""
    frees: str = ""


_TABLE: Final[dict[str, Instruction]] = {}
INSTRUCTIONS: Final[Mapping[str, Instruction]] = MappingProxyType(_TABLE)


def _step(
    name: str, text: str, *, takes: str = "", frees: str = ""
) -> Callable[[_Effect], _Effect]:
    def enter(effect: _Effect) -> _Effect:
        _TABLE[name] = Instruction(text, effect, takes, frees)
        return effect

    return enter


def _cell(memory: Memory, job: int, **fields: Any) -> Memory:
    cells = list(memory.cells)
    cells[job] = cells[job]._replace(**fields)
    return memory._replace(cells=tuple(cells))


# Mutexes


@_step("lock table", "wait for the table mutex", takes="table")
def _(memory: Memory, frame: Frame, me: int) -> _Next:
    return [(memory._replace(table=me), frame)] if memory.table is None else []


@_step("unlock table", "release the table mutex", frees="table")
def _(memory: Memory, frame: Frame, _me: int) -> _Next:
    return [(memory._replace(table=None), frame)]


@_step("lock job", "wait for the job's mutex", takes="job")
def _(memory: Memory, frame: Frame, me: int) -> _Next:
    if memory.cells[frame.job].mutex is not None:
        return []
    return [(_cell(memory, frame.job, mutex=me), frame)]


@_step("unlock job", "release the job's mutex", frees="job")
def _(memory: Memory, frame: Frame, _me: int) -> _Next:
    return [(_cell(memory, frame.job, mutex=None), frame)]


@_step("lock bell", "wait for the second mutex, that of the waiters alone", takes="bell")
def _(memory: Memory, frame: Frame, me: int) -> _Next:
    if memory.cells[frame.job].bell is not None:
        return []
    return [(_cell(memory, frame.job, bell=me), frame)]


@_step("unlock bell", "release the mutex of the waiters", frees="bell")
def _(memory: Memory, frame: Frame, _me: int) -> _Next:
    return [(_cell(memory, frame.job, bell=None), frame)]


# Submitting


@_step("call", "the call begins")
def _(memory: Memory, frame: Frame, _me: int) -> _Next:
    before = tuple(job for job in memory.listed if memory.cells[job].terminal)
    return [(memory, frame._replace(window=frozenset({memory.depth}), before=before, answer=""))]


@_step("load depth", "read depth; leave, refused, if the queue is full")
def _(memory: Memory, frame: Frame, _me: int) -> _Next:
    if memory.depth >= memory.max_queue:
        return [(memory, frame.end("refused"))]
    return [(memory, frame._replace(seen=memory.depth))]


@_step("take place if unchanged", "add one to depth if it is still what was read, else again (CAS)")
def _(memory: Memory, frame: Frame, _me: int) -> _Next:
    if memory.depth != frame.seen:
        return [(memory, frame.to("load depth"))]
    return [(memory._replace(depth=memory.depth + 1), frame._replace(placed=True))]


@_step("take place", "add one to depth, whatever it is now")
def _(memory: Memory, frame: Frame, _me: int) -> _Next:
    return [(memory._replace(depth=memory.depth + 1), frame._replace(placed=True))]


@_step("record job", "put the new job, pending, into the map")
def _(memory: Memory, frame: Frame, _me: int) -> _Next:
    after = _cell(memory, frame.new, state=State.PENDING)
    after = after._replace(listed=(*memory.listed, frame.new))
    return [(after, frame._replace(placed=False, owing=True))]


@_step("enter order", "put the new job at the end of the order of eviction")
def _(memory: Memory, frame: Frame, _me: int) -> _Next:
    return [(memory._replace(order=(*memory.order, frame.new)), frame)]


@_step("drain", "move the queue to the completion order; what exceeds the bound are the victims")
def _(memory: Memory, frame: Frame, _me: int) -> _Next:
    order = (*memory.order, *memory.queue)
    excess = max(len(order) - memory.max_completed, 0)
    after = memory._replace(order=order[excess:], queue=())
    return [(after, frame._replace(victims=order[:excess], owing=False))]


@_step("drop from order", "while too many are terminal: drop the front; terminal ones are victims")
def _(memory: Memory, frame: Frame, _me: int) -> _Next:
    order, victims = list(memory.order), []
    left = sum(memory.cells[job].terminal for job in memory.listed)
    while order and left > memory.max_completed:
        job = order.pop(0)
        if memory.cells[job].terminal:
            victims.append(job)
            left -= 1
    after = memory._replace(order=tuple(order))
    return [(after, frame._replace(victims=tuple(victims), owing=False))]


@_step("lock victim", "wait for the mutex of the next victim, if there is one", takes="job")
def _(memory: Memory, frame: Frame, me: int) -> _Next:
    if not frame.victims:
        return [(memory, frame.to("unlock table"))]
    victim = frame.victims[0]
    if memory.cells[victim].mutex is not None:
        return []
    return [(_cell(memory, victim, mutex=me), frame)]


@_step("erase victim", "take the victim out of the map, release its mutex, go on", frees="job")
def _(memory: Memory, frame: Frame, _me: int) -> _Next:
    victim, *others = frame.victims
    after = _cell(memory, victim, mutex=None)
    after = after._replace(listed=tuple(job for job in after.listed if job != victim))
    return [(after, frame.to("lock victim")._replace(victims=tuple(others)))]


@_step("return", "the call returns")
def _(memory: Memory, frame: Frame, _me: int) -> _Next:
    return [(memory, frame._replace(answer=frame.answer or "admitted"))]


# The life of a job


@_step("leave unless pending", "read the state; leave unless it is pending")
def _(memory: Memory, frame: Frame, _me: int) -> _Next:
    if memory.cells[frame.job].state is State.PENDING:
        return [(memory, frame)]
    return [(memory, frame.to("unlock job")._replace(answer="refused"))]


@_step("publish running", "store the state: running")
def _(memory: Memory, frame: Frame, _me: int) -> _Next:
    starts = memory.cells[frame.job].starts + 1
    return [(_cell(memory, frame.job, state=State.RUNNING, starts=starts), frame)]


@_step("leave if terminal", "read the state; leave, refused, if it is terminal")
def _(memory: Memory, frame: Frame, _me: int) -> _Next:
    if not memory.cells[frame.job].terminal:
        return [(memory, frame)]
    return [(memory, frame.to("unlock job")._replace(answer="refused"))]


@_step("write payload", "store the result, or the error, and the completion time")
def _(memory: Memory, frame: Frame, _me: int) -> _Next:
    return [(_cell(memory, frame.job, payload=frame.outcome), frame)]


@_step("queue completion", "put the id on the atomic queue of completions")
def _(memory: Memory, frame: Frame, _me: int) -> _Next:
    if frame.answer == "refused":
        return [(memory, frame)]
    after = _cell(memory, frame.job, completed=True)
    return [(after._replace(queue=(*memory.queue, frame.job)), frame)]


@_step("append completion", "put the id at the end of the completion order")
def _(memory: Memory, frame: Frame, _me: int) -> _Next:
    after = _cell(memory, frame.job, completed=True)
    return [(after._replace(order=(*memory.order, frame.job)), frame)]


@_step("release place", "take one from depth")
def _(memory: Memory, frame: Frame, _me: int) -> _Next:
    if frame.answer == "refused":
        return [(memory, frame)]
    after = _cell(memory, frame.job, released=memory.cells[frame.job].released + 1)
    return [(after._replace(depth=memory.depth - 1), frame)]


@_step("publish", "store the terminal state")
def _(memory: Memory, frame: Frame, _me: int) -> _Next:
    ends = (*memory.cells[frame.job].ends, frame.outcome)
    return [(_cell(memory, frame.job, state=frame.outcome, ends=ends), frame)]


@_step("ring", "wake all waiters that are registered")
def _(memory: Memory, frame: Frame, _me: int) -> _Next:
    return [(_ring(memory, frame.job, len(memory.cells[frame.job].waiters)), frame)]


@_step("ring one", "wake one of the waiters that are registered")
def _(memory: Memory, frame: Frame, _me: int) -> _Next:
    return [(_ring(memory, frame.job, 1), frame)]


def _ring(memory: Memory, job: int, count: int) -> Memory:
    cell = memory.cells[job]
    woken, asleep = cell.waiters[:count], cell.waiters[count:]
    return _cell(memory, job, waiters=asleep, rung=(*cell.rung, *woken))


# Reading and waiting


@_step("load payload", "read the result and the error")
def _(memory: Memory, frame: Frame, _me: int) -> _Next:
    return [(memory, frame._replace(payload=memory.cells[frame.job].payload))]


@_step("load state", "read the state")
def _(memory: Memory, frame: Frame, _me: int) -> _Next:
    return [(memory, frame._replace(state=memory.cells[frame.job].state))]


@_step("poll", "read the state without a mutex")
def _(memory: Memory, frame: Frame, _me: int) -> _Next:
    state = memory.cells[frame.job].state
    back = frame.state is not None and state is not None and state.rank < frame.state.rank
    return [(memory, frame._replace(state=state, answer="went back" if back else frame.answer))]


@_step("leave unless ended", "go on only if the state that was read is terminal")
def _(memory: Memory, frame: Frame, _me: int) -> _Next:
    ended = frame.state is not None and frame.state.terminal
    return [(memory, frame if ended else frame.end("still live"))]


@_step("look and register", "read the state; unless it is terminal, register to be woken")
def _(memory: Memory, frame: Frame, me: int) -> _Next:
    cell = memory.cells[frame.job]
    if cell.terminal:
        return [(memory, frame._replace(state=cell.state, answer="told"))]
    return [(_cell(memory, frame.job, waiters=(*cell.waiters, me)), frame)]


@_step("look", "read the state; leave, told, if it is terminal")
def _(memory: Memory, frame: Frame, _me: int) -> _Next:
    cell = memory.cells[frame.job]
    told = "told" if cell.terminal else ""
    return [(memory, frame._replace(state=cell.state, answer=told))]


@_step("register", "register to be woken, unless the state that was read is terminal")
def _(memory: Memory, frame: Frame, me: int) -> _Next:
    if frame.answer == "told":
        return [(memory, frame)]
    waiters = memory.cells[frame.job].waiters
    return [(_cell(memory, frame.job, waiters=(*waiters, me)), frame)]


@_step("sleep", "sleep until woken, then look again")
def _(memory: Memory, frame: Frame, me: int) -> _Next:
    if frame.answer == "told":
        return [(memory, frame.end("told"))]
    rung = memory.cells[frame.job].rung
    if me not in rung:
        return []
    after = _cell(memory, frame.job, rung=tuple(other for other in rung if other != me))
    return [(after, frame._replace(at=0))]


@_step("sleep or expire", "sleep until woken, then look again, or until the budget is spent")
def _(memory: Memory, frame: Frame, me: int) -> _Next:
    awake = _TABLE["sleep"].effect(memory, frame, me)
    return [*awake, (memory, frame)] if frame.answer != "told" else awake


@_step("unregister", "leave nothing behind; read the state to answer with")
def _(memory: Memory, frame: Frame, me: int) -> _Next:
    cell = memory.cells[frame.job]
    waiters = tuple(other for other in cell.waiters if other != me)
    rung = tuple(other for other in cell.rung if other != me)
    answer = "told" if cell.terminal else "expired"
    after = _cell(memory, frame.job, waiters=waiters, rung=rung)
    return [(after, frame._replace(state=cell.state, answer=answer))]


# Reading the depth


@_step("read depth", "read depth, atomically")
def _(memory: Memory, frame: Frame, _me: int) -> _Next:
    return [(memory, frame._replace(seen=memory.depth, answer="read"))]


@_step("read depth plainly", "read depth as a plain int: now, or what this thread read before")
def _(memory: Memory, frame: Frame, _me: int) -> _Next:
    return [
        (memory, frame._replace(seen=memory.depth, answer="read")),
        (memory, frame._replace(answer="read")),
    ]


class ProtocolModel:
    """All interleavings of some threads over one memory."""

    def __init__(self, memory: Memory, frames: Iterable[Frame]) -> None:
        self._initial = ProtocolState(memory, tuple(frames))

    def initial(self) -> Iterator[ProtocolState]:
        """Every thread before its first instruction."""
        yield self._initial

    def moves(self, state: ProtocolState) -> Iterator[tuple[ProtocolLabel, ProtocolState]]:
        """One instruction of one thread."""
        memory, frames = state
        for me, frame in enumerate(frames):
            if frame.over:
                continue
            name = frame.instruction
            past = frame._replace(at=frame.at + 1)
            label = ProtocolLabel(me, frame.role, name)
            for after, moved in INSTRUCTIONS[name].effect(memory, past, me):
                yield label, ProtocolState(after, _windowed(frames, me, moved, after.depth))


def _windowed(frames: tuple[Frame, ...], me: int, moved: Frame, depth: int) -> tuple[Frame, ...]:
    """The threads after a step; whoever is in a call has now seen this depth, too."""
    after = []
    for number, old in enumerate(frames):
        frame = moved if number == me else old
        if frame.window is not None and depth not in frame.window and not frame.over:
            frame = frame._replace(window=frame.window | {depth})
        after.append(frame)
    return tuple(after)
