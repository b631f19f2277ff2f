"""Each search in a process of its own.

A search leaves the solver, the interpreter's patches and any seeded defect behind it, so every one
is forked afresh from a parent that has only imported CrossHair. That also makes the outcome of a
lemma independent of which ran before it. A process that outlives its wall-clock allowance (the
machine was busy, or the solver did not come back) is ended, and its lemma is UNKNOWN.
"""

import multiprocessing
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from counterfoil_conformance.errors import HarnessError
from counterfoil_conformance.proof.verdict import Proof, Status

__all__ = ["Task", "run_all", "usable_cores"]

# How much longer than its processor time a search may take on the clock, when others compete: so
# many times as long, and so many seconds more.
CROWD = 10.0
GRACE_S = 30.0


@dataclass(frozen=True, slots=True)
class Task:
    """A search to make: `work` runs in the child; `cpu_s` is its allowance."""

    lemma: str
    defect: str
    work: Callable[[], Proof]
    cpu_s: float


@dataclass(frozen=True, slots=True)
class _Child:
    task: Task
    process: BaseProcess
    deadline: float


def usable_cores() -> int:
    """How many processors this process may run on."""
    return len(os.sched_getaffinity(0))


def run_all(tasks: Iterable[Task], *, at_once: int = 0) -> Iterator[Proof]:
    """Run the tasks, `at_once` at a time (0: as many as there are cores), as they end.

    Raises:
        HarnessError: a child broke; its message says how.
    """
    waiting, running = list(tasks), dict[Connection, _Child]()
    waiting.reverse()
    limit = at_once or usable_cores()
    try:
        while waiting or running:
            while waiting and len(running) < limit:
                _start(waiting.pop(), running)
            yield from _collect(running)
    finally:
        for child in running.values():
            child.process.kill()
            child.process.join()


def _start(task: Task, running: dict[Connection, _Child]) -> None:
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_in_child, args=(task, theirs), daemon=True)
    process.start()
    theirs.close()
    running[ours] = _Child(task, process, time.monotonic() + _allowance_s(task))


def _allowance_s(task: Task) -> float:
    return task.cpu_s * CROWD + GRACE_S


def _in_child(task: Task, answer: Connection) -> None:
    try:
        answer.send(task.work())
    except BaseException as error:  # whatever it was, the parent must hear of it
        answer.send(f"{type(error).__name__}: {error}")
    answer.close()


def _collect(running: dict[Connection, _Child]) -> Iterator[Proof]:
    """Wait for the next child to end or to overstay, and yield its answer."""
    patience = min(child.deadline for child in running.values()) - time.monotonic()
    for ready in wait(list(running), timeout=max(patience, 0.0)):
        assert isinstance(ready, Connection)
        child = running.pop(ready)
        try:
            answer = ready.recv()
        except EOFError:
            answer = "the process died"
        ready.close()
        child.process.join()
        if not isinstance(answer, Proof):
            raise HarnessError(f"lemma {child.task.lemma}: {answer}")
        yield answer
    now = time.monotonic()
    for connection in [c for c, child in running.items() if child.deadline <= now]:
        child = running.pop(connection)
        child.process.kill()
        child.process.join()
        connection.close()
        yield Proof(
            child.task.lemma,
            Status.UNKNOWN,
            f"no answer within {_allowance_s(child.task):.0f} s",
            cpu_s=child.task.cpu_s,
            defect=child.task.defect,
        )
