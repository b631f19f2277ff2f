"""What must happen eventually: leads-to under weak fairness, sound on cycles.

`Eventually(when, then)` says that after every state in which `when` holds, one comes in which
`then` does. It cannot be refuted by a state, only by a way of going on for ever (or of stopping for
ever: a state may always be left alone). Not every such way counts. *Weak fairness* of a set of
moves says: these are not neglected for ever while they are possible all the time. So a lasso is a
counterexample only if, for each fair set, its cycle takes one of these moves or passes a state in
which none of them is possible.

It is enough to look at strongly connected components of the part of the graph in which `then` does
not hold: a component can be walked as a whole, so it has a fair cycle exactly when, for each fair
set, it contains such a move or such a state. A single state is a component of its own (the
stutter), fair when no fair move is possible there.

The trap is to assume too much. Each assumption is listed with the property it serves, and the tests
show that the property fails when its assumption is dropped.
"""

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from counterfoil_spec.checker import Exploration, Model, Trace

__all__ = ["Eventually", "Fairness", "Graph", "lasso"]

S = TypeVar("S", bound=Hashable)
L = TypeVar("L", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Fairness(Generic[L]):
    """A set of moves that is not neglected for ever while one of them is always possible."""

    name: str
    takes: Callable[[L], bool]


@dataclass(frozen=True, slots=True)
class Eventually(Generic[S, L]):
    """Whenever `when` holds, `then` does later, provided that the moves of `under` are fair."""

    name: str
    clauses: tuple[str, ...]
    when: Callable[[S], bool]
    then: Callable[[S], bool]
    under: tuple[Fairness[L], ...] = ()


class Graph(Generic[S, L]):
    """The edges between the states that an exploration has reached."""

    def __init__(self, model: Model[S, L], exploration: Exploration[S, L]) -> None:
        index = exploration.index
        self.exploration = exploration
        self.states = list(index)
        self.edges: list[list[tuple[L, int]]] = [
            [(label, index[target]) for label, target in model.moves(state)]
            for state in self.states
        ]


def lasso(graph: Graph[S, L], goal: Eventually[S, L]) -> Trace[S, L] | None:
    """A fair way to go on for ever without `then` after `when`; None if there is no such way."""
    waiting = [not goal.then(state) for state in graph.states]
    starts = [at for at, state in enumerate(graph.states) if waiting[at] and goal.when(state)]
    reached = _reachable(graph, starts, waiting)
    best: Trace[S, L] | None = None
    for component in _components(graph, reached):
        if _is_fair(graph, component, goal.under):
            trace = _trace(graph, starts, waiting, component, goal.under)
            if best is None or len(trace) < len(best):
                best = trace
    return best


def _reachable(graph: Graph[S, L], starts: Iterable[int], allowed: Sequence[bool]) -> set[int]:
    seen = set(starts)
    queue = deque(seen)
    while queue:
        for _, target in graph.edges[queue.popleft()]:
            if allowed[target] and target not in seen:
                seen.add(target)
                queue.append(target)
    return seen


def _components(graph: Graph[S, L], within: set[int]) -> list[set[int]]:
    """Tarjan's strongly connected components, without recursion."""
    number: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    components: list[set[int]] = []
    for root in within:
        if root in number:
            continue
        work = [(root, iter(graph.edges[root]))]
        number[root] = low[root] = len(number)
        stack.append(root)
        on_stack.add(root)
        while work:
            at, edges = work[-1]
            for _, target in edges:
                if target not in within:
                    continue
                if target not in number:
                    number[target] = low[target] = len(number)
                    stack.append(target)
                    on_stack.add(target)
                    work.append((target, iter(graph.edges[target])))
                    break
                if target in on_stack:
                    low[at] = min(low[at], number[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[at])
                if low[at] == number[at]:
                    component = set()
                    while at not in component:
                        top = stack.pop()
                        on_stack.discard(top)
                        component.add(top)
                    components.append(component)
    return components


def _is_fair(graph: Graph[S, L], component: set[int], under: Sequence[Fairness[L]]) -> bool:
    return all(_stop(graph, component, fair) is not None for fair in under)


def _stop(
    graph: Graph[S, L], component: set[int], fair: Fairness[L]
) -> tuple[int, L | None, int] | None:
    """Where a cycle through the component is fair: a state without the move, or the move itself."""
    for at in component:
        if not any(fair.takes(label) for label, _ in graph.edges[at]):
            return at, None, at
    for at in component:
        for label, target in graph.edges[at]:
            if target in component and fair.takes(label):
                return at, label, target
    return None


def _trace(
    graph: Graph[S, L],
    starts: Sequence[int],
    waiting: Sequence[bool],
    component: set[int],
    under: Sequence[Fairness[L]],
) -> Trace[S, L]:
    """The way to a `when` state, from there into the component, and round it fairly."""
    begin, lead = _nearest(graph, starts, component, waiting)
    entry = lead[-1][1] if lead else begin
    loop: list[tuple[L, int]] = []
    at = entry
    inside = [False] * len(graph.states)
    for state in component:
        inside[state] = True
    for fair in under:
        stop = _stop(graph, component, fair)
        if stop is None:
            continue
        source, label, target = stop
        loop += _nearest(graph, [at], {source}, inside)[1]
        if label is not None:
            loop.append((label, target))
        at = target
    loop += _nearest(graph, [at], {entry}, inside)[1]
    trace = graph.exploration.trace_to(graph.states[begin])
    steps = [*lead, *loop]
    return Trace(
        (*trace.states, *(graph.states[at] for _, at in steps)),
        (*trace.labels, *(label for label, _ in steps)),
        len(trace.labels) + len(lead),
    )


def _nearest(
    graph: Graph[S, L], starts: Sequence[int], goals: set[int], allowed: Sequence[bool]
) -> tuple[int, list[tuple[L, int]]]:
    """A shortest path from one of `starts` to one of `goals`: where it begins, and its steps."""
    came: dict[int, tuple[int, L] | None] = dict.fromkeys(starts)
    queue = deque(starts)
    while queue:
        at = queue.popleft()
        if at in goals:
            steps: list[tuple[L, int]] = []
            while (step := came[at]) is not None:
                steps.append((step[1], at))
                at = step[0]
            return at, steps[::-1]
        for label, target in graph.edges[at]:
            if allowed[target] and target not in came:
                came[target] = (at, label)
                queue.append(target)
    raise LookupError("no path: the goals are not in the component of the start")
