"""`counterfoil prove`: confirm the lemmas for all integers, or try them on seeded defects.

Exit codes: 0 every lemma is CONFIRMED (with `--defects`: every lemma refutes a seeded defect); 1 a
lemma is REFUTED (with `--defects`: a lemma finds nothing); 2 usage; 3 the harness failed; 4 nothing
is refuted, but something is UNKNOWN.
"""

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.console import Console

from counterfoil_conformance.errors import UsageError
from counterfoil_conformance.proof import engine, matrix, record, runner
from counterfoil_conformance.proof.verdict import Proof, Status
from counterfoil_spec.lemmas import Lemma

__all__ = ["add_arguments", "run"]

_COLOURS = {Status.CONFIRMED: "green", Status.REFUTED: "red", Status.UNKNOWN: "yellow"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `prove`."""
    add = parser.add_argument
    add("--only", action="append", default=[], metavar="NAME", help="lemmas with NAME in the name")
    add("--list", action="store_true", help="say what the lemmas are, and prove nothing")
    add("--defects", action="store_true", help="show that each lemma refutes a seeded defect")
    add("--every-pair", action="store_true", help="with --defects: try every defect (minutes)")
    add("--json", metavar="FILE", type=Path, help="write the verdicts as JSON")
    add("--record", action="store_true", help="write down the path counts (in the kit's source)")
    add("--seconds", type=float, help="processor time for one search (default 120, on a defect 10)")
    add("--jobs", type=int, default=0, help="how many at once (default: the number of cores)")


def run(args: argparse.Namespace) -> int:
    """Prove, try on defects, or list."""
    lemmas = runner.chosen(args.only)
    if args.record and args.only:
        raise UsageError("--record writes the counts of all lemmas: leave --only out")
    if args.list:
        return _list(lemmas.values())
    if args.defects:
        return _try_defects(args, lemmas)
    return _prove(args, lemmas)


def _list(lemmas: Iterable[Lemma]) -> int:
    for lemma in lemmas:
        print(f"{lemma.name}\n    {lemma.sentence}\n    about {', '.join(lemma.about)}")
        print(f"    clauses {' '.join(lemma.clauses)}")
    return 0


def _prove(args: argparse.Namespace, lemmas: dict[str, Lemma]) -> int:
    began, proofs = time.monotonic(), []
    console = Console(highlight=False, soft_wrap=True)
    for proof in runner.prove_all(
        lemmas, cpu_s=args.seconds or engine.DEFAULT_CPU_S, at_once=args.jobs
    ):
        proofs.append(proof)
        _show(console, proof)
    counts = Counter(proof.status for proof in proofs)
    verdict = 1 if counts[Status.REFUTED] else 4 if counts[Status.UNKNOWN] else 0
    said = ", ".join(f"{counts[status]} {status}" for status in Status if counts[status])
    cpu_s = sum(proof.cpu_s for proof in proofs)
    console.print(f"{said} in {time.monotonic() - began:.0f} s ({cpu_s:.0f} s of processor time)")
    for change in record.changes(record.load(), proofs):
        console.print(f"look at {change}", markup=False)
    if args.record:
        record.save(proofs)
    _write(args.json, proofs, verdict)
    return verdict


def _show(console: Console, proof: Proof) -> None:
    style = _COLOURS[proof.status]
    console.print(
        f"[{style}]{proof.status:<9}[/] {proof.lemma:<46}"
        f"{proof.confirmed_paths:>4} of {proof.paths:>4} paths  {proof.cpu_s:5.1f} s"
    )
    if proof.status is not Status.CONFIRMED:
        console.print(f"          {proof.why}", markup=False)
    if proof.status is Status.REFUTED:
        console.print(f"          breaks {' '.join(proof.broken)}; see for yourself:", markup=False)
        console.print(f"          {sys.executable} -c {proof.program!r}", markup=False)


def _try_defects(args: argparse.Namespace, lemmas: dict[str, Lemma]) -> int:
    pinned = matrix.load()
    tried = runner.pairs(lemmas) if args.every_pair else matrix.quickest(pinned, lemmas)
    proofs = []
    console = Console(highlight=False, soft_wrap=True)
    for proof in runner.refute_all(
        tried, cpu_s=args.seconds or runner.DEFECT_CPU_S, at_once=args.jobs
    ):
        proofs.append(proof)
        found = f"breaks {' '.join(proof.broken)}" if proof.broken else "finds nothing"
        console.print(f"{proof.lemma:<46} {proof.defect:<40} {proof.cpu_s:4.1f} s  {found}")
    table = matrix.table_of(proofs) if args.every_pair else pinned
    console.print(matrix.as_text(table, lemmas), markup=False)
    blind = [name for name in lemmas if not any(p.broken for p in proofs if p.lemma == name)]
    for name in blind:
        console.print(f"{name} refutes no seeded defect")
    if args.json and args.every_pair:
        matrix.save(table, args.json)
    elif args.json:
        _write(args.json, proofs, int(bool(blind)))
    return int(bool(blind))


def _write(path: Path | None, proofs: list[Proof], verdict: int) -> None:
    if path is None:
        return
    report: dict[str, Any] = {
        "lemmas": [proof.as_json() for proof in sorted(proofs, key=lambda p: p.lemma)],
        "exit": verdict,
    }
    path.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
