"""The searches that `counterfoil model` makes, as independent tasks for a pool of processes.

A task is plain data (`Task`); `perform` runs it and answers with plain data (`Outcome`), so that it
can cross a process border. Every outcome says what was searched, how far, what was found, and
whether that is what ought to be found: for the law nothing, for a defect its own property.
"""

import dataclasses
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeVar

from counterfoil_conformance.modelling.stories import (
    Story,
    of_keys,
    of_ledgers,
    of_protocol,
    of_tagged,
)
from counterfoil_spec.checker import DEADLOCK, Exploration, Trace, explore, unlike, wandered
from counterfoil_spec.checker_liveness import Graph, lasso
from counterfoil_spec.invariants import JOB, LEDGER, MOVE
from counterfoil_spec.ledger import Ledger
from counterfoil_spec.model import FullModel, Key, Label, Scope, key, representative
from counterfoil_spec.model_defects import LEDGER_DEFECTS, d5_model
from counterfoil_spec.model_footprints import Code, LedgerModel
from counterfoil_spec.model_scopes import pinned
from counterfoil_spec.model_tagged import TaggedModel, liveness
from counterfoil_spec.protocol import ProtocolLabel, ProtocolModel, ProtocolState
from counterfoil_spec.protocol_programs import CORRECT, SCENARIOS, VARIANTS, model_of
from counterfoil_spec.protocol_properties import (
    ALWAYS,
    EVENTUALLY,
    eventually,
    may_end,
    refinement,
)

__all__ = ["Outcome", "Task", "clauses_of", "perform"]

S = TypeVar("S", bound=Hashable)
L = TypeVar("L", bound=Hashable)

# How many states of the full model are compared with what stands for them, per scope, and how many
# are looked at for what is about ids.
GATE_STATES = 700
GATE_WALKS, GATE_STEPS = 20, 40
ID_STATES = 3_000


@dataclass(frozen=True, slots=True)
class Task:
    """One search: `kind` is a key of `_SEARCHES`; `limit` cuts it off after so many states."""

    kind: str
    scope: Scope | None = None
    name: str = ""
    form: str = "queued"
    limit: int | None = None

    @property
    def subject(self) -> str:
        """What is searched, in a few words."""
        if self.scope is not None:
            return str(self.scope)
        return self.name


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a task.

    `broken` has one story per property that was violated, `expected` those that must be. `pin` is
    the number of states there have to be, where it is known. `bounded` marks a search that is cut
    off by design.
    """

    task: Task
    states: int
    transitions: int = 0
    depth: int = 0
    seconds: float = 0.0
    peak_mb: int = 0
    complete: bool = True
    bounded: bool = False
    pin: int | None = None
    broken: Mapping[str, Story] = field(default_factory=dict)
    expected: tuple[str, ...] = ()
    bites: Mapping[str, int] = field(default_factory=dict)
    note: str = ""

    @property
    def verdict(self) -> str:
        """`ok`, `UNKNOWN` (cut off), `FOUND` (a counterexample), `MISSED`, `COUNT` (not pinned)."""
        if set(self.broken) - set(self.expected):
            return "FOUND"
        if set(self.expected) - set(self.broken):
            return "MISSED" if self.complete else "UNKNOWN"
        if not self.complete and not self.bounded and not self.expected:
            return "UNKNOWN"
        if self.complete and self.pin is not None and self.pin != self.states:
            return "COUNT"
        return "ok"

    def as_json(self) -> dict[str, Any]:
        """The outcome as the published schema has it."""
        task = self.task
        return {
            "kind": task.kind,
            "subject": task.subject,
            "form": task.form if task.kind in ("protocol", "defect") else None,
            "submitters": task.scope.submitters if task.scope else None,
            "verdict": self.verdict,
            "states": self.states,
            "transitions": self.transitions,
            "depth": self.depth,
            "seconds": round(self.seconds, 3),
            "peak_mb": self.peak_mb,
            "complete": self.complete,
            "bounded": self.bounded,
            "pinned": self.pin,
            "expected": list(self.expected),
            "counterexamples": [
                {"property": name, "clauses": list(clauses_of(name)), **story.as_json()}
                for name, story in self.broken.items()
            ],
            "witnesses": dict(self.bites),
            "note": self.note,
        }


def clauses_of(name: str) -> tuple[str, ...]:
    """The clauses that a property stands for, wherever it is defined."""
    if name == DEADLOCK:
        return ("C5",)
    goals = liveness(Scope(1, 1, 1, timeout_ms=1))
    tables = (JOB.values(), LEDGER.values(), MOVE.values(), ALWAYS, EVENTUALLY, goals)
    return next((p.clauses for table in tables for p in table if p.name == name), ())


def perform(task: Task) -> Outcome:
    """Run a task to its end."""
    began = time.perf_counter()
    outcome = _SEARCHES[task.kind](task)
    peak_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds = time.perf_counter() - began
    return dataclasses.replace(outcome, seconds=seconds, peak_mb=peak_kb // 1024)


def _watch(task: Task) -> Callable[[Exploration[S, L]], None]:
    """On a terminal, say now and then how far a long search has come."""

    def tell(exploration: Exploration[S, L]) -> None:
        if sys.stderr.isatty():
            told = f"{task.kind} {task.subject}: {exploration.states:,} states so far"
            print(f"\r{told}\x1b[K", end="", file=sys.stderr, flush=True)

    return tell


def _outcome(task: Task, found: Exploration[S, L], **more: Any) -> Outcome:
    return Outcome(
        task, found.states, found.transitions, found.depth, complete=found.complete, **more
    )


def _scope(task: Task) -> Scope:
    if task.scope is None:
        raise TypeError(f"a {task.kind} task needs a scope")
    return task.scope


def _ledger(task: Task) -> Outcome:
    """All ledgers of a scope in full detail."""
    scope = _scope(task)
    model = LedgerModel(scope)
    found = explore(model, judge=model, limit=task.limit, watch=_watch(task))

    def story(trace: Trace[Code, Label]) -> Story:
        keys = Trace(tuple(map(model.decode, trace.states)), trace.labels, trace.loop_from)
        return of_keys(keys, FullModel(scope))

    broken = {name: story(trace) for name, trace in found.found.items()}
    return _outcome(task, found, broken=broken, bites=model.bites, pin=pinned("full", scope))


def _tagged(task: Task) -> Outcome:
    """All ledgers of a scope with one job in detail."""
    scope = _scope(task)
    model = TaggedModel(scope)
    found = explore(model, judge=model, limit=task.limit, watch=_watch(task))
    broken = {name: of_tagged(trace) for name, trace in found.found.items()}
    return _outcome(task, found, broken=broken, pin=pinned("tagged", scope))


def _liveness(task: Task) -> Outcome:
    """What must happen eventually does; and does not when what has to be fair is not."""
    scope = _scope(task)
    model = TaggedModel(scope, waiting=True)
    found = explore(model, judge=model, limit=task.limit, watch=_watch(task))
    if not found.complete:
        return _outcome(task, found)
    graph = Graph(model, found)
    broken, bites = {}, Counter[str]()
    for goal in liveness(scope):
        bites[goal.name] = sum(map(goal.when, graph.states))
        trace = lasso(graph, goal)
        if trace is not None:
            broken[goal.name] = of_tagged(trace)
        for fair in goal.under:
            rest = tuple(other for other in goal.under if other is not fair)
            without = lasso(graph, dataclasses.replace(goal, under=rest))
            bites[f"{goal.name} fails without fair {fair.name}"] += without is not None
    return _outcome(task, found, broken=broken, bites=bites, pin=pinned("liveness", scope))


def _ids(task: Task) -> Outcome:
    """What is about ids, on the model that has them: bounded, by its nature."""
    model = FullModel(_scope(task))
    found = explore(model, judge=model, limit=task.limit or ID_STATES)
    broken = {name: of_ledgers(trace) for name, trace in found.found.items()}
    bites: Counter[str] = Counter()
    for ledger in found.index:
        bites.update(p.name for p in LEDGER.values() if p.when(ledger))
    return _outcome(task, found, broken=broken, bites=bites, bounded=True)


def _gate(task: Task) -> Outcome:
    """Ledgers with ids and clock behave like the ledger that stands for them (bisimulation)."""
    scope = _scope(task)
    model = FullModel(scope, reads=True, judge=False)
    found = explore(model, limit=task.limit or GATE_STATES)
    far = wandered(FullModel(scope, judge=False), Random(0), GATE_WALKS, GATE_STEPS)
    limits = scope.limits

    def stand_in(key_: Key) -> Ledger:
        return representative(limits, key_)

    odd = unlike(model, [*found.index, *far], key, stand_in)
    note = "" if odd is None else f"{odd[0]} and {odd[1]} differ in {odd[2]}"
    expected = () if odd is None else ("bisimulation",)
    return _outcome(task, found, bounded=True, note=note, expected=expected)


def _protocol(task: Task) -> Outcome:
    """A scenario of a correct form of the protocol: its properties, and that it refines the law."""
    scenario = SCENARIOS[task.name]
    model = model_of(scenario, CORRECT[task.form])
    refines = refinement(scenario.memory, len(scenario.threads))
    found = explore(
        model, always=ALWAYS, step=[refines], may_end=may_end, limit=task.limit, watch=_watch(task)
    )
    traces = dict(found.found)
    traces |= _endless(model, found)
    broken = {name: of_protocol(trace) for name, trace in traces.items()}
    return _outcome(task, found, broken=broken, pin=pinned("protocol", task.name, task.form))


def _endless(
    model: ProtocolModel, found: Exploration[ProtocolState, ProtocolLabel]
) -> dict[str, Trace[ProtocolState, ProtocolLabel]]:
    """Per property of what must happen eventually a fair way to go on without it."""
    (initial,) = model.initial()
    goals = eventually(initial.frames) if found.complete else ()
    if not goals:
        return {}
    graph = Graph(model, found)
    return {goal.name: trace for goal in goals if (trace := lasso(graph, goal)) is not None}


def _defect(task: Task) -> Outcome:
    """A defect, where it shows: it must be refuted, by its own property."""
    variant = VARIANTS[task.name]
    scenario = SCENARIOS[variant.scenario]
    model = model_of(scenario, CORRECT[task.form], variant)
    found = explore(model, always=ALWAYS, may_end=may_end, limit=task.limit, watch=_watch(task))
    traces = dict(found.found)
    traces |= _endless(model, found)
    related = [n for n in traces if set(clauses_of(n)) & set(variant.breaks)]
    expected = (*variant.refuted_by, *(n for n in related if n not in variant.refuted_by))
    broken = {name: of_protocol(trace) for name, trace in traces.items()}
    return _outcome(task, found, broken=broken, expected=expected)


def _law(task: Task) -> Outcome:
    """A defect of the law itself, visible to a single caller."""
    model = {"D5": d5_model}[task.name]()
    found = explore(model, judge=model, stop_early=True, limit=task.limit)
    broken = {name: of_ledgers(trace) for name, trace in found.found.items()}
    expected = ("a_sweep_leaves_at_most_max_completed",)
    return _outcome(task, found, broken=broken, expected=expected)


_SEARCHES: dict[str, Callable[[Task], Outcome]] = {
    "ledger": _ledger,
    "tagged": _tagged,
    "liveness": _liveness,
    "ids": _ids,
    "gate": _gate,
    "protocol": _protocol,
    "defect": _defect,
    "law": _law,
}
LAW_DEFECTS = tuple(LEDGER_DEFECTS)
