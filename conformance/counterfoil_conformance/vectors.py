"""Test vectors: short sequences from the law's state graph, with the answers the law allows.

The law is walked breadth-first for a few small limits. Every edge is an action on a state; edges
fall into classes (what the ledger and the job looked like, the action, the outcome), and the
vectors are a small set of sequences that meets every class that can be reached. They are data, so
that a team can run them in its own test suite, in any language, without this kit.

The contract leaves two choices open, and a vector must not take sides: which jobs go first by count
(completion, submission, last use), and whether a refused submit evicts. So the walk takes no step
at which the orders disagree, and ends a sequence where a refusal might have evicted. That no class
is lost by this is a test.

The trap is a read in the middle: it is a *use*, and orders by last use would differ from ours from
there on. Reads and refused calls change nothing in the law, so they are put at the end.
"""

import json
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final, NamedTuple, TypeAlias

from counterfoil_spec.ledger import (
    Job,
    Ledger,
    Limits,
    Outcome,
    Reply,
    State,
    Step,
    admit,
    advance,
    empty_ledger,
    fail,
    finish,
    has_expired,
    result,
    snapshot,
    start,
    survivors,
    sweep,
    take_request,
    time_out,
    wait,
)

__all__ = ["FORMAT", "SCOPES", "Covered", "generate", "load_shipped", "reachable", "render"]

FORMAT: Final = "counterfoil-vectors/1"
# max_queue, job_ttl_ms, max_completed: small, and each limit also at its edge.
SCOPES: Final = (
    Limits(2, 1, 1),
    Limits(1, 1, 0),
    Limits(1, 0, 2),
    Limits(0, 1, 1),
    Limits(-1, 1, 1),
    Limits(1, 2, -1),
)
_NOBODY: Final = -1
_ABOUT: Final = (
    "Run each sequence on a fresh ledger with its limits. `job` and `expect` name jobs by "
    "`$label`: the id that the submit with `as` returned. `advance` moves the ledger's clock. "
    "An answer is right if it has all fields of one of `expect`; it may have more."
)

Covered: TypeAlias = tuple[str, ...]
Json: TypeAlias = dict[str, Any]


class _Edge(NamedTuple):
    """An action on a state: its name, the job it names (`_NOBODY`: an id never issued)."""

    action: str
    job: int | None = None


@dataclass(frozen=True, slots=True)
class _Node:
    """A state, how it was reached, and when each job was last used, and read."""

    ledger: Ledger
    path: tuple[_Edge, ...] = ()
    used: tuple[int, ...] = ()
    read: tuple[int, ...] = ()

    def key(self, *, orders: bool) -> tuple[Any, ...]:
        """What the future depends on: no clock, no ids; with `orders`, who came and was used first.

        Without them two jobs that differ only in that are one: enough to find every class.
        """
        ledger, limits = self.ledger, self.ledger.limits
        live = tuple((job.state, job.payload is None) for job in ledger.live)
        retained = tuple(
            (job.state, job.payload is None, _age(job, ledger, limits)) for job in ledger.retained
        )
        ids = [job.id for job in (*ledger.live, *ledger.retained)]
        gone = min(ledger.issued - len(ids), 1)
        if not orders:
            return tuple(sorted(live)), tuple(sorted(retained)), gone
        by_use = tuple(sorted(range(len(ids)), key=lambda k: self.used[ids[k]]))
        by_id = tuple(sorted(range(len(ids)), key=lambda k: ids[k]))
        by_read = tuple(sorted(range(len(ids)), key=lambda k: self.read[ids[k]]))
        return live, retained, by_use, by_read, by_id, gone


def _age(job: Job, ledger: Ledger, limits: Limits) -> int:
    return min(ledger.now - (job.completed_at or 0), limits.job_ttl_ms + 1)


# The actions as edges


_ON_JOBS: Final[dict[str, Callable[[Ledger, int], Step]]] = {
    "start": start,
    "finish": lambda ledger, job: finish(ledger, job, f"result {job}"),
    "fail": lambda ledger, job: fail(ledger, job, f"failed {job}"),
    "timeout": lambda ledger, job: time_out(ledger, job, f"timed out {job}"),
    "take_request": take_request,
    "snapshot": snapshot,
    "result": result,
    "wait": lambda ledger, job: wait(ledger, job, 1, 1),
}


def _apply(ledger: Ledger, edge: _Edge) -> Step:
    if edge.action == "submit":
        step = admit(ledger, f"task {ledger.issued}", f"payload {ledger.issued}")
        return step._replace(ledger=sweep(step.ledger).ledger) if step.accepted else step
    if edge.action == "advance":
        return advance(ledger, 1)
    assert edge.job is not None
    return _ON_JOBS[edge.action](ledger, edge.job)


def _edges(ledger: Ledger) -> Iterator[_Edge]:
    yield _Edge("submit")
    yield _Edge("advance")
    known = [job.id for job in (*ledger.live, *ledger.retained)]
    gone = [job for job in range(ledger.issued) if job not in known]
    for job in (*known, *gone[-1:], _NOBODY):
        for action in _ON_JOBS:
            yield _Edge(action, job)


def _class_of(ledger: Ledger, edge: _Edge, reply: Reply) -> Covered:
    """The class of an edge: what the ledger and the job look like, the action, the outcome."""
    limits = ledger.limits
    old = any(has_expired(job, limits, ledger.now) for job in ledger.retained)
    excess = len(ledger.retained) - max(limits.max_completed, 0)
    room = "closed" if limits.max_queue <= 0 else "full"
    if ledger.depth < limits.max_queue:
        room = "room"
    crowd = f"{'over' if excess > 0 else 'at' if excess == 0 else 'below'} the count"
    about: tuple[str, ...] = (room, crowd, "some old" if old else "none old")
    if edge.job is not None:
        about = (room, *_class_of_job(ledger, edge.job))
    return (*about, edge.action, str(reply.outcome))


def _class_of_job(ledger: Ledger, job_id: int) -> tuple[str, ...]:
    job = ledger.find(job_id)
    if job is None:
        return ("never issued" if job_id == _NOBODY else "evicted",)
    old = has_expired(job, ledger.limits, ledger.now)
    return (
        str(job.state),
        "taken" if job.payload is None else "untaken",
        "old" if old else "young",
    )


# Walking


def _walk(limits: Limits, *, careful: bool) -> Iterator[tuple[_Node, _Edge, Covered, _Node | None]]:
    """Every (state, edge, class, next state); the next is None where nothing changes.

    `careful` leaves out what the contract leaves open.
    """
    first = _Node(empty_ledger(limits))
    seen, frontier = {first.key(orders=careful)}, deque([first])
    while frontier:
        node = frontier.popleft()
        for edge in _edges(node.ledger):
            step = _apply(node.ledger, edge)
            class_ = _class_of(node.ledger, edge, step.reply)
            after = _next(node, edge, step)
            if careful and after is not None and not _agreed(node, step):
                continue
            yield node, edge, class_, after
            if after is not None and (key := after.key(orders=careful)) not in seen:
                seen.add(key)
                frontier.append(after)


def _next(node: _Node, edge: _Edge, step: Step) -> _Node | None:
    if step.ledger == node.ledger:
        return None
    used, read, when = list(node.used), list(node.read), len(node.path) + 1
    if edge.action == "submit":
        used.append(when)
        read.append(when)
    elif edge.job is not None:
        used[edge.job] = when
        if edge.action == "take_request":
            read[edge.job] = when
    return _Node(step.ledger, (*node.path, edge), tuple(used), tuple(read))


def _agreed(node: _Node, step: Step) -> bool:
    """Whether every order of eviction the contract allows takes the same victims."""
    if step.reply.outcome is not Outcome.ADMITTED:
        return True
    ledger, limits = node.ledger, node.ledger.limits
    left = {job.id for job in survivors(ledger.retained, limits, ledger.now)}
    young = [job.id for job in ledger.retained if not has_expired(job, limits, ledger.now)]
    most = max(limits.max_completed, 0)
    orders = (
        young,
        sorted(young),
        sorted(young, key=lambda job: node.used[job]),
        sorted(young, key=lambda job: node.read[job]),
    )
    return all(set(order[max(len(order) - most, 0) :]) == left for order in orders)


def reachable(limits: Limits) -> frozenset[Covered]:
    """Every class of edges that the law can reach, with nothing left out."""
    return frozenset(class_ for _, _, class_, _ in _walk(limits, careful=False))


# Choosing and writing sequences


def _may_have_swept(node: _Node) -> bool:
    """Whether a refused submit in this state may evict, so that reads after it are open."""
    ledger = node.ledger
    return survivors(ledger.retained, ledger.limits, ledger.now) != ledger.retained


def _plans(limits: Limits) -> list[tuple[_Node, list[_Edge]]]:
    """States to go to, and what to do there that changes nothing; together they meet all."""
    where: dict[Covered, tuple[_Node, _Edge, _Node | None]] = {}
    missing = set(reachable(limits))
    for node, edge, class_, after in _walk(limits, careful=True):
        if class_ in missing:
            missing.discard(class_)
            where[class_] = (node, edge, after)
            if not missing:
                break
    wanted: dict[tuple[_Edge, ...], tuple[_Node, list[_Edge]]] = {}
    for node, edge, after in where.values():
        goal = node if after is None else after
        _, leaves = wanted.setdefault(goal.path, (goal, []))
        if after is None:
            leaves.append(edge)
    bare = [path for path, (_, leaves) in wanted.items() if not leaves]
    for path in bare:
        if any(other[: len(path)] == path for other in wanted if other != path):
            del wanted[path]
    return [wanted[path] for path in sorted(wanted, key=lambda path: (len(path), path))]


def _sequences(limits: Limits) -> Iterator[Json]:
    for number, (node, leaves) in enumerate(_plans(limits), 1):
        ledger, steps = empty_ledger(limits), []
        # A refused submit that may evict comes last: reads after it would be open.
        last = [edge for edge in leaves if edge.action == "submit" and _may_have_swept(node)]
        tail = [edge for edge in leaves if edge not in last]
        told = {(edge.action, edge.job) for edge in tail}
        for job in range(ledger.issued, node.ledger.issued):
            tail += [_Edge(op, job) for op in ("snapshot", "result") if (op, job) not in told]
        for edge in (*node.path, *tail):
            steps.append(_written(ledger, edge))
            ledger = _apply(ledger, edge).ledger
        steps.append({"op": "depth", "expect": [{"depth": ledger.depth}], "clauses": ["A1", "A2"]})
        steps += [_written(ledger, edge) for edge in last]
        name = f"q{limits.max_queue} t{limits.job_ttl_ms} c{limits.max_completed} #{number}"
        yield {"name": name, "limits": _limits_as_json(limits), "steps": steps}


def _limits_as_json(limits: Limits) -> Json:
    return {
        "max_queue": limits.max_queue,
        "job_ttl_ms": limits.job_ttl_ms,
        "max_completed": limits.max_completed,
    }


def _label(job: int) -> str:
    return "no-such-job" if job == _NOBODY else f"$job{job}"


def _written(ledger: Ledger, edge: _Edge) -> Json:
    """An edge as a step of a sequence, in the words of the exec protocol."""
    step = _apply(ledger, edge)
    if edge.action == "advance":
        return {"op": "advance", "ms": 1}
    written: Json = {"op": edge.action}
    if edge.action == "submit":
        number = ledger.issued
        written |= {"task_id": f"task {number}", "payload": f"payload {number}"}
        if step.accepted:
            written["as"] = f"job{number}"
    else:
        assert edge.job is not None
        written["job"] = _label(edge.job)
        if edge.action in _WORDS:
            written |= _WORDS[edge.action](edge.job)
    found = ledger.find(edge.job) if edge.job is not None else None
    if edge.action == "wait":
        written["budget_ms"] = 1_000 if found is None or found.state.terminal else 1
    written["expect"] = [_reply(edge, step.reply)]
    written["clauses"] = _clauses(edge, step, found)
    return written


_WORDS: Final[dict[str, Callable[[int], Json]]] = {
    "finish": lambda job: {"result": f"result {job}"},
    "fail": lambda job: {"error": f"failed {job}"},
    "timeout": lambda job: {"error": f"timed out {job}"},
}


def _reply(edge: _Edge, reply: Reply) -> Json:  # noqa: PLR0911 - a table, row by row
    """What must be in the answer; it may hold more."""
    outcome, job = reply.outcome, reply.job
    if edge.action == "submit":
        return {"refused": True} if job is None else {"job": f"$job{job.id}"}
    if edge.action in ("start", "finish", "fail", "timeout"):
        return {"accepted": outcome is Outcome.ACCEPTED}
    if edge.action == "result":
        if job is None:
            return {"status": "not_found"}
        if outcome is Outcome.READY:
            return {"status": "ready", "task_id": job.task_id, "result": job.result}
        return {"status": "not_done", "state": str(job.state)}
    if job is None:
        return {"unknown": True}
    if edge.action == "take_request":
        return {"task_id": job.task_id, "payload": job.payload}
    return {"state": str(job.state), "error": job.error}


def _clauses(  # noqa: PLR0911 - a table, row by row
    edge: _Edge, step: Step, job: Job | None
) -> list[str]:
    """The clauses that a step shows, the one it shows best first."""
    if edge.action == "submit":
        closed = step.ledger.limits.max_queue <= 0
        if not step.accepted:
            return ["A4", "A6"] if closed else ["A3", "A2", "A6"]
        return ["A3", "S1", "A8"]
    if job is None:
        shown = {"result": ["G3", "S8"], "wait": ["W7"]}.get(edge.action, ["S8"])
        return [*shown, "R7"] if edge.job != _NOBODY else shown
    if edge.action in ("start", "finish", "fail", "timeout"):
        if edge.action == "start" and not job.state.terminal:
            return ["S2"]
        return ["S4"] if job.state.terminal else ["S3", "A5", "S9"]
    if edge.action == "take_request":
        return ["Q1", "Q2"]
    if edge.action == "wait":
        return ["W1"] if job.state.terminal else ["W4"]
    if edge.action == "result":
        return ["G1", "Q2", "R6"] if job.state is State.DONE else ["G2"]
    return ["S6", "R6", "S5"] if job.state.terminal else ["S6", "A10", "R1"]


def generate() -> Json:
    """The whole document; the same every time."""
    sequences = [sequence for limits in SCOPES for sequence in _sequences(limits)]
    return {
        "format": FORMAT,
        "about": _ABOUT,
        "sequences": sequences,
    }


def render(document: Json) -> str:
    """The document as text, a step per line, so that a change reads well in a diff."""
    lines = ["{"]
    lines += [f"  {json.dumps(key)}: {json.dumps(document[key])}," for key in ("format", "about")]
    lines.append('  "sequences": [')
    for number, sequence in enumerate(document["sequences"]):
        head = {key: value for key, value in sequence.items() if key != "steps"}
        lines.append(f'    {json.dumps(head)[:-1]}, "steps": [')
        steps = [f"      {json.dumps(step)}" for step in sequence["steps"]]
        lines.append(",\n".join(steps))
        lines.append("    ]}" + ("," if number + 1 < len(document["sequences"]) else ""))
    return "\n".join([*lines, "  ]", "}", ""])


def load_shipped() -> Json:
    """The vectors that come with the kit."""
    text = files("counterfoil_conformance").joinpath("vectors.json").read_text("utf-8")
    document: Json = json.loads(text)
    return document
