"""`counterfoil list [clauses|defects|checks]`: the tables the kit works from."""

import argparse
import json

from rich.console import Console
from rich.table import Table

from counterfoil_spec.clauses import CLAUSES, DEFECTS

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `list`."""
    parser.add_argument("what", nargs="?", choices=("clauses", "defects"), default="clauses")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Print the table that was asked for."""
    rows = _clauses() if args.what == "clauses" else _defects()
    if args.json:
        print(json.dumps(rows, indent=2, ensure_ascii=False))
        return 0
    table = Table(box=None, pad_edge=False, show_edge=False)
    for column in rows[0]:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(str(value) for value in row.values()))
    Console().print(table, markup=False)
    return 0


def _clauses() -> list[dict[str, str]]:
    return [
        {
            "id": clause.id,
            "level": str(clause.level) + (" core" if clause.core else ""),
            "seen at": str(clause.seen_at),
            "clause": clause.sentence,
        }
        for clause in CLAUSES.values()
    ]


def _defects() -> list[dict[str, str]]:
    return [
        {
            "id": defect.id,
            "title": defect.title,
            "breaks": " ".join(defect.breaks),
            "shows as": " ".join(defect.shows_as),
            "story": defect.story,
        }
        for defect in DEFECTS.values()
    ]
