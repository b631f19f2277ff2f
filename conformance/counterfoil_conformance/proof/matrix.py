"""The table lemma x defect: which lemma refutes which seeded defect, and with which call.

It is pinned in `refutations.json`, written by `counterfoil prove --defects --every-pair --json`.
Every cell holds the arguments that the solver found, so that the whole table can be gone through
again in a moment by plain calls: with the defect seeded they break what the cell says, and without
it they break nothing. `quickest` names the pairs with which the solver itself is put to the test.
"""

import importlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from counterfoil_conformance.errors import HarnessError
from counterfoil_conformance.proof.verdict import Proof
from counterfoil_spec.lemmas import Lemma

__all__ = [
    "PINNED",
    "Cell",
    "Table",
    "arguments_of",
    "as_text",
    "load",
    "quickest",
    "save",
    "table_of",
]

PINNED: Final = Path(__file__).with_name("refutations.json")


class Cell(NamedTuple):
    """One refutation: the call's arguments as Python text, what it breaks, the paths it took."""

    arguments: str
    broken: tuple[str, ...]
    paths: int


Table: TypeAlias = dict[str, dict[str, Cell]]


def table_of(proofs: Iterable[Proof]) -> Table:
    """The refutations among these attempts, by lemma and by defect."""
    table: Table = {}
    for proof in sorted(proofs, key=lambda proof: (proof.lemma, proof.defect)):
        row = table.setdefault(proof.lemma, {})
        if proof.broken and proof.counterexample is not None:
            row[proof.defect] = Cell(repr(proof.counterexample), proof.broken, proof.paths)
    return table


def load(path: Path = PINNED) -> Table:
    """The pinned table.

    Raises:
        HarnessError: the file is not such a table.
    """
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        return {
            lemma: {
                defect: Cell(cell["arguments"], tuple(cell["broken"]), cell["paths"])
                for defect, cell in row.items()
            }
            for lemma, row in raw.items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise HarnessError(f"{path}: {error!r}") from None


def save(table: Table, path: Path) -> None:
    """Write a table in the pinned form."""
    raw = {n: {d: cell._asdict() for d, cell in row.items()} for n, row in table.items()}
    path.write_text(json.dumps(raw, indent=1) + "\n", encoding="utf-8")


def quickest(table: Table, lemmas: Mapping[str, Lemma]) -> list[tuple[str, str]]:
    """For each lemma the defect that it refutes after the fewest paths."""
    rows = {name: table.get(name, {}) for name in lemmas}
    return [(n, min(row, key=lambda d: row[d].paths)) for n, row in rows.items() if row]


def arguments_of(lemma: Lemma, cell: Cell) -> tuple[object, ...]:
    """The arguments of a cell as values. The text is our own: it comes with the kit."""
    names: dict[str, Any] = {}
    for module in ("ledger", "lemmas.shown", "lemmas.summary", "lemmas.any_number"):
        names |= vars(importlib.import_module(f"counterfoil_spec.{module}"))
    arguments = eval(cell.arguments, {**names, **lemma.function.__globals__})  # noqa: S307
    assert isinstance(arguments, tuple)
    return arguments


def as_text(table: Table, lemmas: Iterable[str]) -> str:
    """For each lemma the defects that it refutes, for people."""
    lines = []
    for name in lemmas:
        row = table.get(name, {})
        lines.append(f"{name} refutes {len(row)}:")
        lines += [f"    {defect} ({' '.join(cell.broken)})" for defect, cell in row.items()]
    return "\n".join(lines)
