"""`counterfoil mutants`: which layer finds which seeded fault of the shipped ledger.

Every fault is shown to every chosen layer. The matrix lists survivors first, then each fault with
the layers that found it and how long they took; below it stand the layers with the faults that only
they find. Exit code 1 if a fault survives, or if a layer reports the ledger as it ships.
"""

import argparse
import fnmatch
import json
from collections.abc import Iterable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from counterfoil_conformance.errors import UsageError
from counterfoil_conformance.mutants.layers import LAYERS, SHIPPED, Found, Layer, look
from counterfoil_conformance.mutants.ledger import LedgerFault, all_ledger_faults
from counterfoil_conformance.mutants.page import matrix_page
from counterfoil_conformance.mutants.row import Row, examine

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `mutants`."""
    names = ", ".join(layer.name for layer in LAYERS)
    parser.add_argument("--layer", action="append", default=[], help=f"only these: {names}")
    parser.add_argument("--fault", action="append", default=[], metavar="GLOB", help="only these")
    parser.add_argument("--list", action="store_true", help="list the faults and end")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the matrix as JSON")
    parser.add_argument(
        "--resume",
        type=Path,
        metavar="FILE",
        help="keep the matrix in FILE as it grows; what is in there already is not run again",
    )
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the matrix as a page")


def run(args: argparse.Namespace) -> int:
    """Make the matrix, print it, and return the exit code."""
    console = Console()
    layers = _chosen_layers(args.layer)
    faults = _chosen_faults(args.fault)
    if args.list:
        for fault in faults:
            console.print(f"{fault.name}: {fault.sentence} ({' '.join(fault.clauses)})")
        return 0
    rows = _kept(args.resume)
    accused = _accusations_of_the_shipped(layers)
    for done, fault in enumerate(faults):
        with console.status(f"{done} of {len(faults)} faults done; now: {fault.name}"):
            rows[fault.name] = examine(fault, layers, rows.get(fault.name))
        if not console.is_terminal:
            print(f"{fault.name}: {' '.join(rows[fault.name].killers) or 'SURVIVES'}", flush=True)
        if args.resume:
            _write(args.resume, rows.values())
    shown = [rows[name] for name in sorted(rows)]
    layers = tuple(each for each in LAYERS if any(each.name in row.found for row in shown))
    _print(console, shown, layers, accused)
    if args.page:
        args.page.write_text(matrix_page(shown, layers), encoding="utf-8")
    if args.json:
        _write(args.json, shown)
    return int(bool(accused) or any(not row.killers for row in shown))


def _write(file: Path, rows: Iterable[Row]) -> None:
    document = [row.as_json() for row in rows]
    file.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def _kept(file: Path | None) -> dict[str, Row]:
    """The rows that a file holds, of faults that there still are."""
    if file is None or not file.exists():
        return {}
    faults = all_ledger_faults()
    try:
        written = json.loads(file.read_text(encoding="utf-8"))
        rows = [Row.of_json(faults[row["fault"]], row) for row in written if row["fault"] in faults]
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"--resume {file}: no matrix: {error!r}") from None
    return {row.fault.name: row for row in rows}


def _chosen_layers(names: list[str]) -> tuple[Layer, ...]:
    known = {layer.name: layer for layer in LAYERS}
    words = [word for name in names for word in name.split(",")]
    if unknown := [word for word in words if word not in known]:
        raise UsageError(f"--layer {unknown[0]!r}: allowed are {', '.join(known)}")
    return tuple(known[word] for word in words) or LAYERS


def _chosen_faults(globs: list[str]) -> list[LedgerFault]:
    faults = all_ledger_faults()
    chosen = [f for f in faults.values() if not globs or any(_fits(f, g) for g in globs)]
    if not chosen:
        raise UsageError(f"--fault {globs[0]!r}: no such fault; `counterfoil mutants --list`")
    return sorted(chosen, key=lambda fault: fault.name)


def _fits(fault: LedgerFault, glob: str) -> bool:
    return fnmatch.fnmatch(fault.name, glob)


def _accusations_of_the_shipped(layers: tuple[Layer, ...]) -> dict[str, Found]:
    """What the layers report of the ledger as it ships: nothing, or they are worth nothing."""
    looked = {layer.name: look(layer, SHIPPED) for layer in layers}
    return {name: found for name, found in looked.items() if found.clauses or found.failed}


def _print(
    console: Console, rows: list[Row], layers: tuple[Layer, ...], accused: dict[str, Found]
) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("fault", overflow="fold")
    table.add_column("clauses", overflow="fold")
    for layer in layers:
        table.add_column(layer.name, justify="right")
    for row in sorted(rows, key=lambda row: (bool(row.killers), row.fault.name)):
        cells = (_cell(row, layer.name) for layer in layers)
        table.add_row(row.fault.name, " ".join(row.fault.clauses), *cells)
    console.print(table)
    for layer in layers:
        alone = [row.fault.name for row in rows if row.killers == (layer.name,)]
        killed = sum(layer.name in row.killers for row in rows)
        told = f"; only it finds {', '.join(alone)}" if alone else ""
        console.print(f"{layer.name}: finds {killed} of {len(rows)}{told}")
    for name, found in accused.items():
        what = found.failed or " ".join(sorted(found.clauses))
        console.print(f"{name} reports the ledger as it ships: {what}", style="bold red")
    survivors = [row.fault.name for row in rows if not row.killers]
    console.print(f"{len(survivors)} survive: {', '.join(survivors) or 'none'}")


def _cell(row: Row, layer: str) -> str:
    found = row.found.get(layer)
    if found is None or found.failed:
        return "error" if found else ""
    mark = "" if layer in row.killers else "- "
    return f"{mark}{found.seconds:.1f} s"
