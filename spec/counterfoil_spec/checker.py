"""An explicit-state model checker: every state that can be reached, the nearest first.

A *model* says where it begins and which moves each state allows; a move is a label and the state
it leads to. `explore` visits all of them breadth-first, so that the first counterexample it meets
is one of the shortest. It answers for safety:

- `Always`: of every state; `OnStep`: of every move; both broken by one example;
- `Sometimes`: a state that must be reachable, and how many are, so that nothing holds vacuously;
- deadlock: a state without moves that is not a proper end;
- `refines`: every step of a fine model is a step of a coarse one, or a stutter.

`liveness` in `checker_liveness` answers for what must happen *eventually*, on the graph found here.

Symmetry: a model may be searched by *keys* instead of states (`Reduced`): a key stands for all the
states it is the key of, and one representative of them is moved on. That is sound when all states
of one key have the same moves, up to keys. `unlike` decides it, on a sample or on all states: it
looks for a state that differs from its representative in its set of (label, key of successor). Run
it before believing in a reduction.

The trap is the bound. A search that was cut off has found nothing *so far*: `complete` is False,
and whoever reports it must not call it a pass.
"""

from array import array
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Generic, Protocol, TypeVar

__all__ = [
    "DEADLOCK",
    "Always",
    "Exploration",
    "Judge",
    "Model",
    "OnStep",
    "Reduced",
    "Sometimes",
    "Trace",
    "explore",
    "refines",
    "unlike",
    "wandered",
]

DEADLOCK = "deadlock"

S = TypeVar("S", bound=Hashable)
L = TypeVar("L", bound=Hashable)
K = TypeVar("K", bound=Hashable)
S_contra = TypeVar("S_contra", bound=Hashable, contravariant=True)
L_contra = TypeVar("L_contra", bound=Hashable, contravariant=True)
L_co = TypeVar("L_co", bound=Hashable, covariant=True)


class Model(Protocol[S, L_co]):
    """Where to begin, and how to go on. `moves` must be a function of the state alone."""

    def initial(self) -> Iterable[S]:
        """The states it may begin in."""

    def moves(self, state: S) -> Iterable[tuple[L_co, S]]:
        """The moves that the state allows."""


@dataclass(frozen=True, slots=True)
class Always(Generic[S]):
    """`holds` in every reachable state."""

    name: str
    clauses: tuple[str, ...]
    holds: Callable[[S], bool]


@dataclass(frozen=True, slots=True)
class OnStep(Generic[S, L]):
    """`holds(before, label, after)` of every move of a reachable state."""

    name: str
    clauses: tuple[str, ...]
    holds: Callable[[S, L, S], bool]


@dataclass(frozen=True, slots=True)
class Sometimes(Generic[S]):
    """A reachable state in which it is `seen` must exist."""

    name: str
    clauses: tuple[str, ...]
    seen: Callable[[S], bool]


class Judge(Protocol[S_contra, L_contra]):
    """Properties decided by the model itself, which may know how to decide many at once."""

    def of_state(self, state: S_contra) -> Sequence[str]:
        """Names of the properties that the state breaks."""

    def of_label(self, label: L_contra) -> Sequence[str]:
        """Names of the properties that every move with this label breaks."""


@dataclass(frozen=True, slots=True)
class Trace(Generic[S, L]):
    """A path from an initial state: `len(states) == len(labels) + 1`.

    `loop_from` is the index of the state the last one goes back to: a counterexample to liveness
    that goes round for ever. None: the path ends there.
    """

    states: tuple[S, ...]
    labels: tuple[L, ...]
    loop_from: int | None = None

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(slots=True)
class Exploration(Generic[S, L]):
    """What a search has found.

    `found` has one shortest trace per broken property; `witnesses` counts states per `Sometimes`.
    `complete` is False when the search was cut off: then nothing follows from an empty `found`.
    """

    index: dict[S, int] = field(default_factory=dict)
    parents: "array[int]" = field(default_factory=lambda: array("q"))
    via: list[L | None] = field(default_factory=list)
    transitions: int = 0
    complete: bool = True
    found: dict[str, Trace[S, L]] = field(default_factory=dict)
    witnesses: Counter[str] = field(default_factory=Counter)

    @property
    def states(self) -> int:
        """How many distinct states were reached."""
        return len(self.index)

    @property
    def depth(self) -> int:
        """How many moves the farthest state is away."""
        return len(self._line(len(self.parents) - 1)) - 1 if self.parents else 0

    def trace_to(self, state: S, *more: tuple[L, S]) -> Trace[S, L]:
        """A shortest path to a state that was reached, and on by the moves given."""
        line = self._line(self.index[state])
        everything = list(self.index)
        labels = [label for at in line if (label := self.via[at]) is not None]
        return Trace(
            (*(everything[at] for at in line), *(after for _, after in more)),
            (*labels, *(label for label, _ in more)),
        )

    def _line(self, at: int) -> list[int]:
        line = [at]
        while (at := self.parents[at]) >= 0:
            line.append(at)
        return line[::-1]


def explore(  # noqa: C901, PLR0912, PLR0913 - one hot loop, kept in one piece
    model: Model[S, L],
    *,
    always: Sequence[Always[S]] = (),
    step: Sequence[OnStep[S, L]] = (),
    sometimes: Sequence[Sometimes[S]] = (),
    may_end: Callable[[S], bool] | None = None,
    judge: Judge[S, L] | None = None,
    limit: int | None = None,
    stop_early: bool = False,
    watch: Callable[[Exploration[S, L]], None] | None = None,
    every: int = 100_000,
) -> Exploration[S, L]:
    """Visit every reachable state, the nearest first.

    Args:
        model: what to search.
        always: properties of states.
        step: properties of moves.
        sometimes: states to count.
        may_end: whether a state without moves is a proper end; without it no deadlock is sought.
        judge: decides further properties of states and labels, all at once.
        limit: stop after this many states; the exploration is then not complete.
        stop_early: stop at the first counterexample; the exploration is then not complete.
        watch: called with the exploration so far after every `every` states.
        every: see `watch`.
    """
    result: Exploration[S, L] = Exploration()
    index, parents, via, found = result.index, result.parents, result.via, result.found
    queue: list[S] = []

    def reach(state: S, parent: int, label: L | None) -> None:
        index[state] = len(queue)
        queue.append(state)
        parents.append(parent)
        via.append(label)
        for prop in always:
            if prop.name not in found and not prop.holds(state):
                found[prop.name] = result.trace_to(state)
        if judge is not None:
            for name in judge.of_state(state):
                if name not in found:
                    found[name] = result.trace_to(state)
        for sight in sometimes:
            if sight.seen(state):
                result.witnesses[sight.name] += 1

    for state in model.initial():
        if state not in index:
            reach(state, -1, None)

    at = 0
    while at < len(queue):
        if found and stop_early:
            result.complete = False
            break
        if limit is not None and len(queue) > limit:
            result.complete = False
            break
        state = queue[at]
        count = 0
        for label, target in model.moves(state):
            count += 1
            if target not in index:
                reach(target, at, label)
            if judge is not None:
                for name in judge.of_label(label):
                    if name not in found:
                        found[name] = result.trace_to(state, (label, target))
            for rule in step:
                if rule.name not in found and not rule.holds(state, label, target):
                    found[rule.name] = result.trace_to(state, (label, target))
        result.transitions += count
        if not count and may_end is not None and DEADLOCK not in found and not may_end(state):
            found[DEADLOCK] = result.trace_to(state)
        at += 1
        if watch is not None and at % every == 0:
            watch(result)
    return result


class Reduced(Generic[K, S, L]):
    """A model searched by key: representative -> move -> key."""

    def __init__(
        self,
        model: Model[S, L],
        key: Callable[[S], K],
        representative: Callable[[K], S],
    ) -> None:
        self._model, self._key, self._representative = model, key, representative

    def initial(self) -> Iterator[K]:
        """The keys of the initial states."""
        for state in self._model.initial():
            yield self._key(state)

    def moves(self, key: K) -> Iterator[tuple[L, K]]:
        """The moves of the representative, up to keys."""
        for label, target in self._model.moves(self._representative(key)):
            yield label, self._key(target)


def unlike(
    model: Model[S, L],
    states: Iterable[S],
    key: Callable[[S], K],
    representative: Callable[[K], S],
) -> tuple[S, S, set[tuple[L, K]]] | None:
    """A state whose (label, key of successor) differ from those of its key's representative.

    Answers with the representative, the state, and what they do not have in common; None if there
    is no such state: then all `states` of one key move alike, and, if they are closed under the
    moves, searching by `key` is sound (a bisimulation).
    """

    def moves_of(state: S) -> frozenset[tuple[L, K]]:
        return frozenset((label, key(target)) for label, target in model.moves(state))

    known: dict[K, tuple[S, frozenset[tuple[L, K]]]] = {}
    for state in states:
        name = key(state)
        if name not in known:
            stand_in = representative(name)
            known[name] = stand_in, moves_of(stand_in)
        stand_in, expected = known[name]
        if moves_of(state) != expected:
            return stand_in, state, set(moves_of(state) ^ expected)
    return None


def wandered(model: Model[S, L], rng: Random, walks: int, length: int) -> list[S]:
    """States met on random walks: far ones, of a model too large to be searched."""
    met = []
    for _ in range(walks):
        state = rng.choice(list(model.initial()))
        for _ in range(length):
            targets = [target for _, target in model.moves(state)]
            if not targets:
                break
            state = rng.choice(targets)
            met.append(state)
    return met


def refines(
    name: str,
    clauses: tuple[str, ...],
    coarse: Model[K, Hashable],
    view: Callable[[S], K],
) -> OnStep[S, L]:
    """Every step of the fine model, seen through `view`, is a step of `coarse` or a stutter."""
    known: dict[K, frozenset[K]] = {}

    def holds(before: S, _: L, after: S) -> bool:
        old, new = view(before), view(after)
        if old == new:
            return True
        if old not in known:
            known[old] = frozenset(target for _, target in coarse.moves(old))
        return new in known[old]

    return OnStep(name, clauses, holds)
