"""The kill matrix as a page: survivors first, then every fault with who found it and how fast.

It is written by `make mutants`, which shows every fault to every layer and takes a while; it is no
part of `make docs`, since it says what was measured and not what a table holds.
"""

from collections.abc import Sequence

from counterfoil_conformance.mutants.layers import LAYERS, Layer
from counterfoil_conformance.mutants.row import Row

__all__ = ["matrix_page"]


def matrix_page(rows: Sequence[Row], layers: Sequence[Layer]) -> str:
    """The page, in Markdown."""
    return "\n".join(
        [
            "# The kill matrix of the ledger",
            "",
            "*Written by `make mutants`. Each seeded fault is a small override of the shipped",
            "`JobLedger`, bound to the clauses it may be reported under, and is shown to the",
            "layers. A time says that the layer found it, and in how many seconds (of computing",
            "for the deterministic layers, by the clock for the others); `·` that it reported",
            "nothing; clauses in parentheses that it reported only others. Model and lemmas look",
            "at the fault's twin.*",
            "",
            *_survivors(rows, layers),
            "",
            "## Layers",
            "",
            *_layers(rows, layers),
            "",
            "## Faults",
            "",
            *_faults(rows, layers),
            "",
        ]
    )


def _survivors(rows: Sequence[Row], layers: Sequence[Layer]) -> list[str]:
    survivors = [row for row in rows if not row.killers]
    certain = {layer.name for layer in layers if layer.deterministic}
    by_luck = [row for row in rows if row.killers and not certain & set(row.killers)]
    return [
        f"**{len(rows)} faults; {len(survivors)} survive**{_named(survivors)}",
        "",
        f"Found by no deterministic layer: {len(by_luck)}{_named(by_luck)}",
        *_not_run(rows),
    ]


def _not_run(rows: Sequence[Row]) -> list[str]:
    """Say what the page does not cover, where it was made from a matrix that was cut short."""
    lacking = sum(layer.name not in row.found for row in rows for layer in LAYERS)
    if not lacking:
        return []
    return [
        "",
        f"{lacking} of {len(rows) * len(LAYERS)} pairs of fault and layer were not run.",
    ]


def _named(rows: Sequence[Row]) -> str:
    return ": " + ", ".join(f"`{row.fault.name}`" for row in rows) + "." if rows else "."


def _layers(rows: Sequence[Row], layers: Sequence[Layer]) -> list[str]:
    lines = [
        "| layer | looks at | deterministic | finds | is the cheapest for | alone finds |",
        "|---|---|---|---|---|---|",
    ]
    for layer in layers:
        found = [row for row in rows if layer.name in row.killers]
        first = sum(row.killers[0] == layer.name for row in found)
        alone = ", ".join(f"`{row.fault.name}`" for row in found if len(row.killers) == 1)
        certain = "yes" if layer.deterministic else "no"
        told = len(found) or "**nothing**"
        lines.append(
            f"| {layer.name} | {layer.sentence} | {certain} | {told} | {first} | {alone or '-'} |"
        )
    return lines


def _faults(rows: Sequence[Row], layers: Sequence[Layer]) -> list[str]:
    names = " | ".join(layer.name for layer in layers)
    lines = [f"| fault | clauses | {names} |", "|---|---|" + "---|" * len(layers)]
    for row in sorted(rows, key=lambda row: (bool(row.killers), row.fault.name)):
        cells = " | ".join(_cell(row, layer) for layer in layers)
        sentence = f"**{row.fault.name}**: {row.fault.sentence}"
        lines.append(f"| {sentence} | {' '.join(row.fault.clauses)} | {cells} |")
    return lines


def _cell(row: Row, layer: Layer) -> str:
    found = row.found.get(layer.name)
    if found is None or found.failed:
        return "error" if found else "not run"
    if layer.name in row.killers:
        return "yes" if layer.twin else f"{found.seconds:.1f} s"
    return f"({' '.join(sorted(found.clauses))})" if found.clauses else "·"
