"""Searches and stories on a terminal: readable at 80 columns, plain where it is not a terminal."""

import os
from collections.abc import Iterable
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from counterfoil_conformance.modelling.runs import Outcome, clauses_of
from counterfoil_conformance.modelling.stories import Story
from counterfoil_spec.clauses import CLAUSES

__all__ = ["console", "how_it_ends", "print_outcomes", "print_story", "story_lines"]

_STYLES: Final = {"ok": "green", "FOUND": "bold red", "MISSED": "bold red", "COUNT": "bold red"}
_HEADINGS: Final = {
    "ledger": "The ledger in full detail, closed over any number of submits and any time",
    "tagged": "One job in detail, the others as counts of ages",
    "liveness": "What must happen eventually, one tagged job, under weak fairness",
    "gate": "The reduction: ledgers with ids and clock against what stands for them",
    "ids": "What is about ids, on the ledger that has them (bounded)",
    "protocol": "The concurrency protocol, every interleaving, refining the ledger",
    "defect": "The defects, each refuted by the property of the rule it breaks",
    "law": "Defects of the law, visible to a single caller",
}


def console() -> Console:
    """Standard output; 100 columns where it is not a terminal and says nothing else."""
    target = Console(highlight=False, soft_wrap=False)
    width = int(os.environ.get("COLUMNS", "100"))
    return target if target.is_terminal else Console(highlight=False, width=width)


def _table(*columns: tuple[str, bool]) -> Table:
    table = Table(box=None, pad_edge=False, show_edge=False, padding=(0, 2, 0, 0))
    for name, is_number in columns:
        table.add_column(name, justify="right" if is_number else "left", overflow="fold")
    return table


def print_outcomes(out: Console, outcomes: Iterable[Outcome]) -> None:
    """One table per kind of search."""
    outcomes = tuple(outcomes)
    for kind, heading in _HEADINGS.items():
        rows = [outcome for outcome in outcomes if outcome.task.kind == kind]
        if not rows:
            continue
        out.print()
        out.print(Text(heading, style="bold"))
        out.print(_defects(rows) if kind in ("defect", "law") else _searches(rows))
        for row in rows:
            if row.note:
                out.print(Text(f"  {row.task.subject}: {row.note}", style="red"))


def _searches(rows: Iterable[Outcome]) -> Table:
    table = _table(
        ("", False),
        ("states", True),
        ("moves", True),
        ("depth", True),
        ("per s", True),
        ("MB", True),
        ("", False),
    )
    for row in rows:
        rate = row.states / row.seconds if row.seconds else 0.0
        table.add_row(
            _subject(row),
            f"{row.states:,}",
            f"{row.transitions:,}",
            str(row.depth),
            f"{rate:,.0f}",
            str(row.peak_mb),
            _verdict(row),
        )
    return table


def _subject(row: Outcome) -> str:
    task = row.task
    if task.scope is None:
        return f"{task.subject} ({task.form})"
    submitters = task.scope.submitters
    how = "atomic submit" if submitters == 0 else f"{submitters} submitting"
    return f"{task.subject} {how}"


def _verdict(row: Outcome) -> Text:
    verdict = row.verdict
    told = verdict
    if verdict == "COUNT":
        told = f"COUNT: {row.pin:,} pinned"
    elif verdict == "UNKNOWN":
        told = "UNKNOWN: cut off"
    elif verdict == "FOUND":
        told = "FOUND " + ", ".join(row.broken)
    elif row.bounded and verdict == "ok":
        told = "ok, bounded"
    elif row.pin is not None:
        told = "ok, as pinned"
    return Text(told, style=_STYLES.get(verdict, "magenta"))


def _defects(rows: Iterable[Outcome]) -> Table:
    table = _table(
        ("", False), ("states", True), ("steps", True), ("refuted by", False), ("", False)
    )
    for row in rows:
        story = row.broken.get(row.expected[0]) if row.expected else None
        steps = "" if story is None else str(len(story.lines))
        by = row.expected[0] if row.expected else ""
        names = f"{by} ({' '.join(clauses_of(by))})"
        verdict = Text("ok" if row.verdict == "ok" else row.verdict, _STYLES.get(row.verdict, ""))
        table.add_row(row.task.name, f"{row.states:,}", steps, names, verdict)
    return table


def story_lines(story: Story) -> list[tuple[str, str, str, str]]:
    """The rows of a story: number, who, does, what changes."""
    rows = []
    for at, line in enumerate(story.lines):
        mark = ">" if story.loop_from == at else ""
        rows.append((f"{mark}{at + 1}", line.who, line.does, "\n".join(line.changes)))
    return rows


def print_story(out: Console, name: str, story: Story) -> None:
    """A counterexample: which property, in the contract's words, and the steps."""
    ids = clauses_of(name)
    out.print()
    out.print(Text(f"{name.replace('_', ' ')} ({' '.join(ids)})", style="bold red"))
    for id_ in ids[:1]:
        out.print(Text(f"{id_} {CLAUSES[id_].level}: {CLAUSES[id_].sentence}", style="dim"))
    out.print(Text("begins with: " + "; ".join(story.begins)))
    table = _table(("", True), ("who", False), ("does", False), ("changes", False))
    for row in story_lines(story):
        table.add_row(*row)
    out.print(table)
    ending = how_it_ends(story)
    if ending:
        out.print(Text(ending))


def how_it_ends(story: Story) -> str:
    """What a lasso does for ever; empty for a story that ends."""
    if story.loop_from is None:
        return ""
    if story.loop_from >= len(story.lines):
        return "... and there it stays for ever."
    return f"... and again from step {story.loop_from + 1}, for ever."
