"""`counterfoil model`: search the ledger and the protocol exhaustively, or show a defect.

Without arguments: every scope 0..2 of the ledger, an atomic submit and `admit`/`sweep` apart; the
gate of the reduction; what must happen eventually; both correct forms of the protocol; all defects.

Exit codes: 0 everything is as it must be; 1 a counterexample, a defect that was not refuted, a
count that is not the pinned one, or a property that nothing has tried; 2 usage; 4 a search was cut
off by `--limit`.
"""

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from counterfoil_conformance.errors import UsageError
from counterfoil_conformance.modelling.graph import draw
from counterfoil_conformance.modelling.runs import LAW_DEFECTS, Outcome, Task, perform
from counterfoil_conformance.modelling.tables import console, print_outcomes, print_story
from counterfoil_spec.invariants import JOB, LEDGER, MOVE
from counterfoil_spec.model import Scope
from counterfoil_spec.model_scopes import (
    DEEP_FULL,
    DEEP_GATE,
    DEEP_TAGGED,
    FULL,
    GATE,
    LIVENESS,
    TAGGED,
)
from counterfoil_spec.protocol_programs import CORRECT, SCENARIOS, VARIANTS

__all__ = ["add_arguments", "run", "tasks_for"]

SCHEMA: Final = "counterfoil-model/1"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `model`."""
    parser.add_argument("what", nargs="?", choices=("ledger", "protocol"), help="only this half")
    parser.add_argument("--defect", metavar="NAME", choices=sorted(VARIANTS), help="show a defect")
    parser.add_argument(
        "--scope", action="append", metavar="Q/C/T", help="max_queue/max_completed/ttl (repeatable)"
    )
    parser.add_argument(
        "--submitters", type=int, metavar="N", help="submits in flight (0: atomic; with --scope)"
    )
    parser.add_argument("--deep", action="store_true", help="3/2/2 in full, 3/3/3 by one job")
    parser.add_argument("--limit", type=int, metavar="N", help="cut every search off at N states")
    parser.add_argument("--jobs", type=int, metavar="N", help="processes (default: all cores)")
    parser.add_argument("--json", metavar="FILE", help="write the outcome as JSON (-: print it)")
    parser.add_argument("--graph", metavar="FILE", help="draw it as .svg or .dot")


def run(args: argparse.Namespace) -> int:
    """Search, report, and judge."""
    tasks = tasks_for(args)
    if args.graph:
        Path(args.graph).write_text(
            draw(args.graph, args.what, args.defect, args.scope and tasks[0].scope)
        )
        print(f"{args.graph}: written")
        return 0
    began = time.perf_counter()
    outcomes = sorted(_performed(tasks, args.jobs), key=lambda outcome: tasks.index(outcome.task))
    seconds = time.perf_counter() - began
    idle = _idle(outcomes) if not (args.scope or args.what or args.defect or args.deep) else []
    code = _exit_code(outcomes, idle)
    document = _document(outcomes, idle, seconds, code)
    if args.json == "-":
        print(json.dumps(document, indent=2))
        return code
    if args.json:
        Path(args.json).write_text(json.dumps(document, indent=2) + "\n")
    _print(args, outcomes, idle, seconds)
    return code


def tasks_for(args: argparse.Namespace) -> list[Task]:
    """The searches that the arguments ask for.

    Raises:
        UsageError: a scope that is none, or arguments that exclude each other.
    """
    if args.defect:
        return list(_defect_tasks([args.defect], args.limit))
    if args.scope:
        if args.what == "protocol":
            raise UsageError("--scope is about the ledger; the protocol has scenarios")
        submitters = 1 if args.submitters is None else args.submitters
        scopes = [_scope(text, submitters) for text in args.scope]
        return [Task("ledger", scope, limit=args.limit) for scope in scopes]
    if args.submitters is not None:
        raise UsageError("--submitters goes with --scope")
    tasks: list[Task] = []
    if args.deep:
        tasks += [Task("ledger", scope, limit=args.limit) for scope in DEEP_FULL]
        tasks += [Task("tagged", scope, limit=args.limit) for scope in DEEP_TAGGED]
        tasks += [Task("gate", scope, limit=args.limit or 3_000) for scope in DEEP_GATE]
        return tasks
    if args.what != "protocol":
        tasks += [Task("ledger", scope, limit=args.limit) for scope in FULL]
        tasks += [Task("tagged", scope, limit=args.limit) for scope in TAGGED]
        tasks += [Task("gate", scope, limit=args.limit) for scope in GATE]
        tasks += [Task("ids", Scope(2, 1, 1, 2), limit=args.limit)]
        tasks += [Task("liveness", scope, limit=args.limit) for scope in LIVENESS]
    if args.what != "ledger":
        tasks += [
            Task("protocol", name=name, form=form, limit=args.limit)
            for form in CORRECT
            for name in SCENARIOS
        ]
        tasks += _defect_tasks(list(VARIANTS), args.limit)
    return tasks


def _defect_tasks(names: list[str], limit: int | None) -> Iterator[Task]:
    for name in names:
        if name in LAW_DEFECTS:
            yield Task("law", name=name, limit=limit)
        yield Task("defect", name=name, limit=limit)


def _scope(text: str, submitters: int) -> Scope:
    try:
        numbers = [int(part) for part in text.split("/")]
        max_queue, max_completed, ttl_ms = numbers
    except ValueError:
        raise UsageError(f"--scope {text}: three numbers like 2/1/2 are needed") from None
    if submitters < 0:
        raise UsageError("--submitters: 0 or more")
    return Scope(max_queue, max_completed, ttl_ms, submitters)


def _performed(tasks: list[Task], processes: int | None) -> Iterator[Outcome]:
    """Run the tasks, the largest first, each in a process of its own (its memory is its own)."""
    largest_first = sorted(tasks, key=_size, reverse=True)
    count = min(processes or os.cpu_count() or 1, len(tasks))
    if count <= 1 and len(tasks) <= 1:
        yield from map(perform, tasks)
        return
    forks = "fork" in multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("fork" if forks else None)
    with context.Pool(max(count, 1), maxtasksperchild=1) as pool:
        for outcome in pool.imap_unordered(perform, largest_first, chunksize=1):
            if sys.stderr.isatty():
                print(
                    f"\r{outcome.task.kind} {outcome.task.subject}\x1b[K", end="", file=sys.stderr
                )
            yield outcome
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr)


def _size(task: Task) -> float:
    """A guess at how long a task takes, to begin with the longest."""
    if task.scope is None:
        return 100.0
    scope = task.scope
    size = 10.0 ** (scope.max_queue + scope.max_completed + scope.submitters) * (
        scope.job_ttl_ms + 1
    )
    return size * (scope.max_queue > 0) * {"ledger": 1.0, "gate": 1.0}.get(task.kind, 0.05)


def _idle(outcomes: list[Outcome]) -> list[str]:
    """Properties that nothing has tried: they hold of nothing."""
    bites: Counter[str] = Counter()
    searched = False
    for outcome in outcomes:
        bites.update(outcome.bites)
        searched = searched or outcome.task.kind == "ledger"
    names = [*JOB, *LEDGER, *MOVE] if searched else []
    names += [name for o in outcomes if o.task.kind == "liveness" for name in o.bites]
    names = list(dict.fromkeys(names))
    return [name for name in names if not bites[name]]


def _exit_code(outcomes: list[Outcome], idle: list[str]) -> int:
    verdicts = {outcome.verdict for outcome in outcomes}
    if idle or verdicts & {"FOUND", "MISSED", "COUNT"}:
        return 1
    return 4 if "UNKNOWN" in verdicts else 0


def _document(
    outcomes: list[Outcome], idle: list[str], seconds: float, code: int
) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "searches": [outcome.as_json() for outcome in outcomes],
        "untried": idle,
        "seconds": round(seconds, 3),
        "exit": code,
    }


def _print(
    args: argparse.Namespace, outcomes: list[Outcome], idle: list[str], seconds: float
) -> None:
    out = console()
    if args.defect:
        variant = VARIANTS[args.defect]
        out.print(f"{variant.name}: {variant.title}")
        out.print(f"What a user sees: {variant.seen}")
    print_outcomes(out, outcomes)
    for outcome in outcomes:
        for name, story in outcome.broken.items():
            shown = outcome.expected[:1] if args.defect else ()
            if name in shown or name not in outcome.expected:
                print_story(out, name, story)
    out.print()
    for name in idle:
        out.print(f"untried: {name}")
    states = sum(outcome.states for outcome in outcomes)
    bad = [outcome for outcome in outcomes if outcome.verdict != "ok"]
    told = "all as it must be" if not bad and not idle else f"{len(bad)} not as it must be"
    out.print(f"{len(outcomes)} searches, {states:,} states, {seconds:.1f} s: {told}")
