"""Pictures, from the same tables as everything else: `.svg` or `.dot`, by the name of the file.

Three kinds: a *graph* (the states of a job, or all ledgers of a small scope), a *sequence* (a
counterexample with a column per thread), and the *lock discipline* (the protocol's programs with
the mutexes held beside each instruction). The SVG is written by hand, a few shapes and no library:
laid out in columns, which is all these graphs need.
"""

import html
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from counterfoil_conformance.errors import UsageError
from counterfoil_conformance.modelling.runs import LAW_DEFECTS, Task, perform
from counterfoil_conformance.modelling.stories import Story
from counterfoil_spec.checker import explore
from counterfoil_spec.ledger import ACTIONS, Job, Ledger, Limits, State
from counterfoil_spec.model import Key, Scope
from counterfoil_spec.model_footprints import LedgerModel
from counterfoil_spec.protocol import INSTRUCTIONS
from counterfoil_spec.protocol_programs import CORRECT, Programs

__all__ = [
    "Edge",
    "Node",
    "Picture",
    "dot",
    "draw",
    "held_mutexes",
    "job_picture",
    "lock_svg",
    "sequence_svg",
    "svg",
]

MOST_STATES: Final = 300
_FONT: Final = "font-family='ui-monospace, Menlo, Consolas, monospace' font-size='12'"
_SHOWN: Final = ("submit", "start", "end", "read", "poll", "wait", "wait in budget")
_HELD: Final = {"table": "#c97b12", "job": "#2b6cb0", "bell": "#805ad5"}


@dataclass(frozen=True, slots=True)
class Node:
    """A box: its lines of text, and its place in the grid."""

    name: str
    lines: tuple[str, ...]
    column: int
    row: int
    final: bool = False


@dataclass(frozen=True, slots=True)
class Edge:
    """An arrow with what is written on it."""

    source: str
    target: str
    text: str


@dataclass(frozen=True, slots=True)
class Picture:
    """A graph laid out in columns."""

    title: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]


def draw(path: str, what: str | None, defect: str | None, scope: Scope | None) -> str:
    """The text of a picture for a file of this name.

    Raises:
        UsageError: the name ends in neither .svg nor .dot, or the picture would be too large.
    """
    if not path.endswith((".svg", ".dot")):
        raise UsageError(f"--graph {path}: a name that ends in .svg or .dot is needed")
    as_dot = path.endswith(".dot")
    if defect:
        kind = "law" if defect in LAW_DEFECTS else "defect"
        outcome = perform(Task(kind, name=defect))
        story = outcome.broken[outcome.expected[0]]
        return dot(_as_chain(defect, story)) if as_dot else sequence_svg(defect, story)
    if what == "protocol":
        programs = CORRECT["queued"]
        return dot(_as_programs(programs)) if as_dot else lock_svg(programs)
    picture = job_picture() if scope is None else _ledger_picture(scope)
    return dot(picture) if as_dot else svg(picture)


# What to draw


def job_picture() -> Picture:
    """The states of a job, found by asking the law which action leads from where to where."""
    arrows: dict[tuple[State, State], list[str]] = defaultdict(list)
    for state in State:
        job = Job(0, state, "task", "payload", 0, 0 if state.terminal else None)
        live, retained = ((), (job,)) if state.terminal else ((job,), ())
        ledger = Ledger(Limits(1, 0, 1), live, retained, len(live), 1)
        for name in ("start", "finish", "fail", "time_out"):
            after = ACTIONS[name].apply(ledger, 0).ledger.find(0)
            if after is not None and after.state is not state:
                arrows[state, after.state].append(name)
    rows = {State.PENDING: 1, State.RUNNING: 3, State.DONE: 0, State.FAILED: 1, State.TIMEOUT: 2}
    nodes = [Node(s, (str(s),), s.rank, rows[s], final=s.terminal) for s in State]
    edges = [Edge(a, b, ", ".join(names)) for (a, b), names in arrows.items()]
    return Picture("The states of a job", tuple(nodes), tuple(edges))


def _ledger_picture(scope: Scope) -> Picture:
    model = LedgerModel(scope)
    found = explore(model, limit=MOST_STATES)
    if not found.complete:
        raise UsageError(f"--graph: {scope} has more than {MOST_STATES} states; take a smaller one")
    names = {code: str(number) for number, code in enumerate(found.index)}
    depth = {code: len(found.trace_to(code)) for code in found.index}
    rows: dict[int, int] = defaultdict(int)
    nodes, edges = [], []
    for code in found.index:
        column = depth[code]
        nodes.append(Node(names[code], _key_lines(model.decode(code)), column, rows[column]))
        rows[column] += 1
        targets: dict[str, list[str]] = defaultdict(list)
        for label, target in model.moves(code):
            targets[names[target]].append(label.action)
        edges += [Edge(names[code], to, ", ".join(texts)) for to, texts in targets.items()]
    return Picture(f"All ledgers of {scope}", tuple(nodes), tuple(edges))


def _key_lines(key: Key) -> tuple[str, ...]:
    def told(job: Job) -> str:
        age = "" if job.completed_at is None else f" {-job.completed_at} ms"
        return f"{job.state}{age}{'' if job.payload else ' taken'}"

    lines = [*map(told, key.live), *map(told, key.retained)] or ["empty"]
    return (*lines, "sweep owed") if key.sweeps_owed else tuple(lines)


def _as_chain(name: str, story: Story) -> Picture:
    nodes = [Node("0", story.begins, 0, 0)]
    edges = []
    for at, line in enumerate(story.lines):
        nodes.append(Node(str(at + 1), line.changes or ("nothing changes",), 0, at + 1))
        edges.append(Edge(str(at), str(at + 1), f"{line.who}: {line.does}"))
    return Picture(name, tuple(nodes), tuple(edges))


def _as_programs(programs: Programs) -> Picture:
    nodes, edges = [], []
    for column, (name, program) in enumerate(dict(programs).items()):
        for row, instruction in enumerate(program):
            nodes.append(Node(f"{name}:{row}", (instruction,), column, row))
            if row:
                edges.append(Edge(f"{name}:{row - 1}", f"{name}:{row}", ""))
    return Picture("The programs of the protocol", tuple(nodes), tuple(edges))


# How to write it


def dot(picture: Picture) -> str:
    """Graphviz source."""

    def quoted(text: str) -> str:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'

    lines = [f"digraph {quoted(picture.title)} {{", "  rankdir=LR; node [shape=box];"]
    for node in picture.nodes:
        shape = " peripheries=2" if node.final else ""
        lines.append(f"  {quoted(node.name)} [label={quoted(chr(10).join(node.lines))}{shape}];")
    lines += [
        f"  {quoted(edge.source)} -> {quoted(edge.target)} [label={quoted(edge.text)}];"
        for edge in picture.edges
    ]
    return "\n".join([*lines, "}", ""])


def _document(title: str, width: int, height: int, body: Iterable[str]) -> str:
    size = f"width='{width}' height='{height}' viewBox='0 0 {width} {height}'"
    tip = "viewBox='0 0 8 8' refX='7' refY='4' markerWidth='8' markerHeight='8' orient='auto'"
    lines = [
        f"<svg xmlns='http://www.w3.org/2000/svg' {size} {_FONT}>",
        f"<title>{html.escape(title)}</title>",
        f"<defs><marker id='tip' {tip}><path d='M0 0 L8 4 L0 8 z' fill='#444'/></marker></defs>",
        f"<rect width='{width}' height='{height}' fill='#fff'/>",
        *body,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _text(x: float, y: float, text: str, more: str = "") -> str:
    return f"<text x='{x:g}' y='{y:g}' {more}>{html.escape(text)}</text>"


def svg(picture: Picture) -> str:
    """A graph, its columns from left to right."""
    tall = max(len(node.lines) for node in picture.nodes) * 16 + 14
    wide = max(len(line) for node in picture.nodes for line in node.lines) * 8 + 20
    gap = max((len(edge.text) for edge in picture.edges), default=0) * 7 + 50
    gap = min(gap, 240)

    def corner(node: Node) -> tuple[int, int]:
        return 20 + node.column * (wide + gap), 40 + node.row * (tall + 36)

    at = {node.name: corner(node) for node in picture.nodes}
    body = [_text(20, 24, picture.title, "font-weight='bold'")]
    body += [_arrow(at[e.source], at[e.target], wide, tall, e.text) for e in picture.edges]
    for node in picture.nodes:
        x, y = at[node.name]
        width = 3 if node.final else 1
        body.append(
            f"<rect x='{x}' y='{y}' width='{wide}' height='{tall}' rx='6' fill='#f7fafc' "
            f"stroke='#444' stroke-width='{width}'/>"
        )
        body += [_text(x + 10, y + 20 + 16 * i, line) for i, line in enumerate(node.lines)]
    right = max(x for x, _ in at.values()) + wide + 20
    bottom = max(y for _, y in at.values()) + tall + 40
    return _document(picture.title, right, bottom, body)


def _arrow(start: tuple[int, int], end: tuple[int, int], wide: int, tall: int, text: str) -> str:
    """From box to box: to the right from side to side, else in a bow below."""
    (x1, y1), (x2, y2) = start, end
    if x2 > x1:
        x1, y1, x2, y2 = x1 + wide, y1 + tall // 2, x2 - 2, y2 + tall // 2
        middle = (x1 + x2) / 2
        path = f"M{x1} {y1} C{middle:g} {y1} {middle:g} {y2} {x2} {y2}"
        label = (x1 + (x2 - x1) * 0.36, y1 + (y2 - y1) * 0.3 - 4)
    else:
        x1, y1, x2, y2 = x1 + wide // 2, y1 + tall, x2 + wide // 2, y2 + tall
        path = f"M{x1} {y1} C{x1} {y1 + 30} {x2} {y2 + 30} {x2 + 8} {y2 + 2}"
        label = ((x1 + x2) / 2, max(y1, y2) + 26.0)
    line = f"<path d='{path}' fill='none' stroke='#444' marker-end='url(#tip)'/>"
    return line + _text(*label, text, "fill='#444' font-size='11'")


def sequence_svg(name: str, story: Story) -> str:
    """A counterexample: a column per thread, time going down."""
    roles = list(dict.fromkeys(line.who for line in story.lines))
    column = {role: 60 + 170 * at for at, role in enumerate(roles)}
    notes = 60 + 170 * len(roles)
    body = [_text(20, 24, f"{name}: {'; '.join(story.begins)}", "font-weight='bold'")]
    y = 60
    body += [_text(column[role], y, role, "font-weight='bold'") for role in roles]
    top, y = y + 8, y + 30
    for at, line in enumerate(story.lines):
        x = column[line.who]
        body.append(f"<circle cx='{x - 10}' cy='{y - 4}' r='4' fill='#2b6cb0'/>")
        body.append(_text(x, y, line.does))
        body.append(_text(20, y, str(at + 1), "fill='#888'"))
        for change in line.changes or ("",):
            body.append(_text(notes, y, change, "fill='#744210'"))
            y += 17
        y += 5
    if story.loop_from is not None:
        stays = story.loop_from >= len(story.lines)
        told = "stays there for ever" if stays else f"again from step {story.loop_from + 1}"
        body.append(_text(20, y + 6, f"... {told}", "fill='#c53030'"))
        y += 22
    body += [
        f"<line x1='{x - 10}' y1='{top}' x2='{x - 10}' y2='{y}' stroke='#ccc'/>"
        for x in column.values()
    ]
    longest = max((len(c) for line in story.lines for c in line.changes), default=0)
    return _document(name, notes + longest * 8 + 20, y + 10, body)


def lock_svg(programs: Programs) -> str:
    """The programs side by side, with a bar for as long as a mutex is held."""
    shown = {name: programs[name] for name in _SHOWN} | {
        "end (the other way)": CORRECT["table_first"]["end"]
    }
    body = [
        _text(20, 24, "The protocol's programs and the mutexes they hold", "font-weight='bold'")
    ]
    x0, y, bottom = 20, 70, 0
    for at, mutex in enumerate(("table", "job")):
        body.append(
            f"<rect x='{20 + at * 130}' y='36' width='10' height='12' fill='{_HELD[mutex]}'/>"
        )
        body.append(_text(36 + at * 130, 47, f"{mutex} mutex"))
    for name, program in shown.items():
        if x0 > 900:
            x0, y, bottom = 20, bottom + 40, 0
        body.append(_text(x0 + 30, y, name, "font-weight='bold'"))
        for row, (instruction, held) in enumerate(held_mutexes(program)):
            line = y + 22 + 18 * row
            for mutex in held:
                left, colour = x0 + 10 * list(_HELD).index(mutex), _HELD[mutex]
                last = INSTRUCTIONS[instruction].frees == mutex
                first = INSTRUCTIONS[instruction].takes == mutex
                top, height = line - 13 + 5 * first, 18 - 5 * first - 5 * last
                place = f"x='{left}' y='{top}' width='8' height='{height}'"
                body.append(f"<rect {place} fill='{colour}'/>")
            body.append(_text(x0 + 30, line, instruction))
            bottom = max(bottom, line + 20)
        x0 += 270
    return _document("The lock discipline", 1120, bottom + 10, body)


def held_mutexes(program: Sequence[str]) -> list[tuple[str, tuple[str, ...]]]:
    """Each instruction with the mutexes that are held while it is executed, in order of taking."""
    held: list[str] = []
    rows = []
    for name in program:
        instruction = INSTRUCTIONS[name]
        if instruction.takes:
            held.append(instruction.takes)
        rows.append((name, tuple(held)))
        if instruction.frees in held:
            held.remove(instruction.frees)
    return rows
