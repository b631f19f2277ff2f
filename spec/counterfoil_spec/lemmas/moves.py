"""Every action, on every ledger: the invariant is kept, and every property of moves holds.

The properties are those that the model checker evaluates over all reachable states of small
ledgers (`counterfoil_spec.invariants`), the very same functions. Here each action is taken in an
arbitrary ledger in which the invariant holds, under any limits and at any time, whether the ledger
accepts it or not. The first two lemmas close the circle: an empty ledger has the invariant, and a
ledger that has it has every property of jobs and ledgers. So no sequence of actions, however long,
leads to one that has not.
"""

from collections.abc import Callable
from typing import TypeVar

from counterfoil_spec import ledger as law
from counterfoil_spec.invariants import MOVE, broken_by, broken_in
from counterfoil_spec.ledger import JobId, Ledger, Limits, Step
from counterfoil_spec.lemmas.shown import (
    ABSENT,
    EARLY,
    LATE,
    WORLD,
    Shown,
    World,
    invariant,
    is_scene,
    scene_of,
)
from counterfoil_spec.lemmas.table import Broken, broken, lemma
from counterfoil_spec.properties import Move

__all__ = [
    "a_sound_ledger_has_every_property",
    "admit_is_sound",
    "advance_is_sound",
    "an_empty_ledger_is_sound",
    "fail_is_sound",
    "finish_is_sound",
    "result_is_sound",
    "snapshot_is_sound",
    "start_is_sound",
    "sweep_is_sound",
    "take_request_is_sound",
    "time_out_is_sound",
    "wait_is_sound",
]

_ALONE = LATE._replace(tag=ABSENT)
_FAILED = EARLY._replace(tag=3)
_INVARIANT = "S1 S4 S6 S7 A1 A2 A4 A8 R5"

_Statement = TypeVar("_Statement", bound=Callable[..., Broken])


def _sound(action: str, *examples: tuple[object, ...]) -> Callable[[_Statement], _Statement]:
    """Enter a lemma about an action, under the clauses of the invariant and of its properties."""
    clauses = dict.fromkeys(_INVARIANT.split())
    for one in MOVE.values():
        if action in one.on:
            clauses |= dict.fromkeys(one.clauses)
    return lemma(" ".join(clauses), action, *examples)


def _judged(
    action: str, before: Ledger, step: Step, world: World, job_id: JobId | None = None
) -> Broken:
    """What a call breaks: properties of moves, by name, and parts of the invariant, by clause."""
    move = Move(before, action, job_id, step)
    return (*broken_by(move), *broken(*invariant(step.ledger, world.unseen)))


@lemma(_INVARIANT, "empty_ledger", (Limits(3, 10, 2), 5), (Limits(-1, -1, -1), 0))
def an_empty_ledger_is_sound(limits: Limits, now: int) -> Broken:
    """A ledger that has never issued an id has the invariant, whatever its limits.

    post: _ == ()
    """
    return broken(*invariant(law.empty_ledger(limits, now), 0))


@lemma(_INVARIANT + " A11 T4", "is_overdue", (EARLY, LATE, WORLD), (_FAILED, _ALONE, WORLD))
def a_sound_ledger_has_every_property(first: Shown, second: Shown, world: World) -> Broken:
    """Where the invariant holds, every property of jobs and of ledgers holds.

    pre: is_scene(first, second, world._replace(unseen=0))
    post: _ == ()
    """
    return broken_in(scene_of(first, second, world._replace(unseen=0)))


@_sound(
    "admit",
    (EARLY, LATE, WORLD),
    (EARLY, LATE, WORLD._replace(unseen=7)),
    (_FAILED, _ALONE, WORLD),
)
def admit_is_sound(first: Shown, second: Shown, world: World) -> Broken:
    """Admitting a job, or refusing it, keeps the invariant and the properties.

    pre: is_scene(first, second, world)
    post: _ == ()
    """
    before = scene_of(first, second, world)
    step = law.admit(before, "task", "payload")
    return _judged("admit", before, step, world)


@_sound(
    "start",
    (EARLY, LATE, WORLD, 3),
    (_FAILED, _ALONE, WORLD, 1),
    (EARLY, LATE, WORLD, 2),
)
def start_is_sound(first: Shown, second: Shown, world: World, job_id: int) -> Broken:
    """Starting a job, known or not, keeps the invariant and the properties.

    pre: is_scene(first, second, world)
    post: _ == ()
    """
    before = scene_of(first, second, world)
    step = law.start(before, job_id)
    return _judged("start", before, step, world, job_id)


@_sound(
    "finish",
    (EARLY, LATE, WORLD, 3),
    (_FAILED, _ALONE, WORLD, 1),
    (EARLY, LATE, WORLD, 2),
)
def finish_is_sound(first: Shown, second: Shown, world: World, job_id: int) -> Broken:
    """Finishing a job, known or not, keeps the invariant and the properties.

    pre: is_scene(first, second, world)
    post: _ == ()
    """
    before = scene_of(first, second, world)
    step = law.finish(before, job_id, "new result")
    return _judged("finish", before, step, world, job_id)


@_sound(
    "fail",
    (EARLY, LATE, WORLD, 3),
    (_FAILED, _ALONE, WORLD, 1),
    (EARLY, LATE, WORLD, 2),
)
def fail_is_sound(first: Shown, second: Shown, world: World, job_id: int) -> Broken:
    """Failing a job, known or not, keeps the invariant and the properties.

    pre: is_scene(first, second, world)
    post: _ == ()
    """
    before = scene_of(first, second, world)
    step = law.fail(before, job_id, "new error")
    return _judged("fail", before, step, world, job_id)


@_sound(
    "time_out",
    (EARLY, LATE, WORLD, 3),
    (_FAILED, _ALONE, WORLD, 1),
    (EARLY, LATE, WORLD, 2),
)
def time_out_is_sound(first: Shown, second: Shown, world: World, job_id: int) -> Broken:
    """Timing out a job, known or not, keeps the invariant and the properties.

    pre: is_scene(first, second, world)
    post: _ == ()
    """
    before = scene_of(first, second, world)
    step = law.time_out(before, job_id, "new error")
    return _judged("time_out", before, step, world, job_id)


@_sound(
    "take_request",
    (EARLY, LATE, WORLD, 3, False),
    (_FAILED, _ALONE, WORLD, 1, True),
    (EARLY, LATE, WORLD, 2, True),
)
def take_request_is_sound(
    first: Shown, second: Shown, world: World, job_id: int, taken: bool
) -> Broken:
    """Handing out a payload, the first time or again, keeps the invariant and the properties.

    pre: is_scene(first, second, world)
    post: _ == ()
    """
    before = scene_of(first, second, world, None if taken else "payload")
    step = law.take_request(before, job_id)
    return _judged("take_request", before, step, world, job_id)


@_sound(
    "snapshot",
    (EARLY, LATE, WORLD, 3),
    (_FAILED, _ALONE, WORLD, 1),
    (EARLY, LATE, WORLD, 2),
)
def snapshot_is_sound(first: Shown, second: Shown, world: World, job_id: int) -> Broken:
    """Reading the status of a job, known or not, keeps the invariant and the properties.

    pre: is_scene(first, second, world)
    post: _ == ()
    """
    before = scene_of(first, second, world)
    step = law.snapshot(before, job_id)
    return _judged("snapshot", before, step, world, job_id)


@_sound(
    "result",
    (EARLY, LATE, WORLD, 3),
    (_FAILED, _ALONE, WORLD, 1),
    (EARLY, LATE, WORLD, 2),
)
def result_is_sound(first: Shown, second: Shown, world: World, job_id: int) -> Broken:
    """Reading the result of a job, known or not, keeps the invariant and the properties.

    pre: is_scene(first, second, world)
    post: _ == ()
    """
    before = scene_of(first, second, world)
    step = law.result(before, job_id)
    return _judged("result", before, step, world, job_id)


@_sound("wait", (EARLY, LATE, WORLD, 3, 9, 9), (_FAILED, _ALONE, WORLD, 1, 0, 9))
def wait_is_sound(
    first: Shown, second: Shown, world: World, job_id: int, waited_ms: int, budget_ms: int
) -> Broken:
    """Waiting for a job, known or not, keeps the invariant and the properties.

    pre: is_scene(first, second, world)
    post: _ == ()
    """
    before = scene_of(first, second, world)
    step = law.wait(before, job_id, waited_ms, budget_ms)
    return broken_by(Move(before, "wait", job_id, step, waited_ms, budget_ms))


@_sound("advance", (EARLY, LATE, WORLD, 7), (_FAILED, _ALONE, WORLD, -1))
def advance_is_sound(first: Shown, second: Shown, world: World, ms: int) -> Broken:
    """Letting time pass, or being told to turn it back, keeps the invariant and every property.

    pre: is_scene(first, second, world)
    post: _ == ()
    """
    before = scene_of(first, second, world)
    return _judged("advance", before, law.advance(before, ms), world)


@_sound(
    "sweep",
    (EARLY, LATE, WORLD),
    (EARLY, LATE, WORLD._replace(sweeps_owed=0)),
    (_FAILED, _ALONE, WORLD),
)
def sweep_is_sound(first: Shown, second: Shown, world: World) -> Broken:
    """Evicting, or being refused to, keeps the invariant and the properties.

    pre: first.tag != 0 and second.tag != 0
    pre: is_scene(first, second, world)
    post: _ == ()
    """
    before = scene_of(first, second, world)
    return _judged("sweep", before, law.sweep(before), world)
