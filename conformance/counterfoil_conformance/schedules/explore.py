"""All executions of a scenario, depth first, each run from its beginning.

An execution is replayed along the choices made so far, then takes the first step nobody has tried
from there. *Sleep sets* leave out orders that cannot differ: when a step has been explored from a
node, it need not be taken again in a sibling until some step that does not commute with it was.
Every complete execution that is left out has a twin that was run. That claim is not taken on trust:
`explore(..., reduced=False)` walks everything, and a test compares the outcomes.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from counterfoil_conformance.errors import UsageError
from counterfoil_conformance.schedules.instrument import Instruments, NewSharedField
from counterfoil_conformance.schedules.scheduler import Choice, Footprint, Scheduler

__all__ = ["Exploration", "Run", "explore", "replay"]


class Run(Protocol):
    """One execution of a scenario in the making."""

    def begin(self, scheduler: Scheduler) -> None:
        """Make a fresh ledger, do what comes first, and spawn the threads."""

    def end(self, stuck: bool) -> None:
        """All threads have ended, or (`stuck`) none can go on."""

    def only_timers(self) -> None:
        """Nothing but timers is left: whoever sleeps now sleeps until its budget is over."""


@dataclass(slots=True)
class Exploration:
    """What an exploration covered: complete executions, those cut short, CPU seconds, exhausted."""

    schedules: int = 0
    pruned: int = 0
    seconds: float = 0.0
    exhausted: bool = True


@dataclass(slots=True)
class _Node:
    """A state on the current path: what could be done there and what has been."""

    enabled: list[tuple[Choice, Footprint]]
    only_timers: bool
    sleep: dict[Choice, Footprint]
    chosen: tuple[Choice, Footprint]
    done: dict[Choice, Footprint] = field(default_factory=dict)


def explore(  # noqa: PLR0913 - the knobs of a search, named
    make_run: Callable[[], Run],
    instruments: Instruments,
    report: Exploration,
    *,
    reduced: bool = True,
    lazy_timers: bool = False,
    seconds: float = 30.0,
) -> Iterator[tuple[list[Choice], Run]]:
    """Run every execution and yield its choices and what became of it.

    `lazy_timers` lets a timer go off only where nothing else can happen. `report` is kept up to
    date; after `seconds` of computing (a busy machine changes no verdict) the exploration ends, not
    exhausted. What was yielded before a shared field was found is yielded again with its points.
    """
    started = time.thread_time()
    path: list[_Node] = []
    while True:
        run = make_run()
        try:
            complete = _execute(run, instruments, path, reduced, lazy_timers)
        except NewSharedField:
            path, report.schedules, report.pruned = [], 0, 0
            continue
        finally:
            instruments.scheduler.abandon()
        if complete:
            report.schedules += 1
            yield [node.chosen[0] for node in path], run
        else:
            report.pruned += 1
        report.seconds = time.thread_time() - started
        if not _backtrack(path, reduced):
            return
        if report.seconds > seconds:
            report.exhausted = False
            return


def replay(run: Run, instruments: Instruments, choices: list[Choice], *, lazy_timers: bool) -> None:
    """Run one execution again, by its choices; what they leave open takes the first step.

    `instruments.shared` must hold the fields that were shared when the choices were made, since
    they decide what a step is.

    Raises:
        UsageError: the choices are not those of an execution of this run.
    """
    path = [_Node([], False, {}, (choice, ((-1, ""), False))) for choice in choices]
    try:
        _execute(run, instruments, path, reduced=False, lazy_timers=lazy_timers)
    except (NewSharedField, IndexError):
        raise UsageError("the schedule is of another ledger: no such step") from None
    finally:
        instruments.scheduler.abandon()


def _execute(
    run: Run, instruments: Instruments, path: list[_Node], reduced: bool, lazy_timers: bool
) -> bool:
    """Run along `path` and on to the end, adding the nodes met; False if it was cut short."""
    scheduler = instruments.scheduler = Scheduler()
    run.begin(scheduler)
    for node in path:
        if node.only_timers or (not node.enabled and _only_timers(scheduler.enabled())):
            run.only_timers()
        scheduler.step(node.chosen[0])
    while enabled := scheduler.enabled():
        only_timers = _only_timers(enabled)
        if only_timers:
            run.only_timers()
        elif lazy_timers:
            enabled = [step for step in enabled if not step[0].timer]
        sleep = _asleep(path, reduced)
        awake = [step for step in enabled if step[0] not in sleep]
        if not awake:
            return False
        path.append(_Node(enabled, only_timers, sleep, awake[0]))
        scheduler.step(awake[0][0])
    run.end(stuck=bool(scheduler.unfinished()))
    return True


def _only_timers(enabled: list[tuple[Choice, Footprint]]) -> bool:
    return all(choice.timer for choice, _ in enabled)


def _asleep(path: list[_Node], reduced: bool) -> dict[Choice, Footprint]:
    """What need not be taken at the node that follows `path`."""
    if not path or not reduced:
        return {}
    parent = path[-1]
    taken = parent.chosen
    return {
        choice: footprint
        for choice, footprint in (*parent.sleep.items(), *parent.done.items())
        if choice.thread != taken[0].thread and _commute(footprint, taken[1])
    }


def _commute(one: Footprint, other: Footprint) -> bool:
    return one[0] != other[0] or not (one[1] or other[1])


def _backtrack(path: list[_Node], reduced: bool) -> bool:
    """Move to the next unexplored choice; False when there is none."""
    while path:
        node = path[-1]
        node.done[node.chosen[0]] = node.chosen[1]
        for step in node.enabled:
            if step[0] not in node.done and not (reduced and step[0] in node.sleep):
                node.chosen = step
                return True
        path.pop()
    return False
