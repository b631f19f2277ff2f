"""`counterfoil judge FILE`: judge a recorded history, from a test or from production.

A file says what was asked and answered; what it cannot say are the limits of the ledger, whether
others used it too, and whether it was empty at first. What is not told here is not taken for
granted, so a history judged with no options is only held to what is true of any ledger. A line that
could not be read may have been any call: from then on the history no longer counts as complete.
The line format is in `docs/histories.md`, its schema beside the oracle (`line.schema.json`).
"""

import argparse
import json
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from counterfoil_conformance.errors import UsageError
from counterfoil_conformance.oracle.findings import describe
from counterfoil_conformance.oracle.history import Call, History, load_history, save_history
from counterfoil_conformance.oracle.judge import Accusation, Judgement, Setting
from counterfoil_conformance.oracle.minimise import minimise
from counterfoil_conformance.oracle.thorough import judge_thoroughly
from counterfoil_conformance.report.verdicts import Docket
from counterfoil_conformance.run import DEFAULT_TOLERANCE_MS
from counterfoil_conformance.wire.target import load_target
from counterfoil_spec.clauses import CLAUSES

__all__ = ["add_arguments", "run"]

_WIDTH: Final = 80
_SHOWN_CALLS: Final = 12
_EXIT_MEANING: Final = {
    0: "nothing that was seen breaks a clause",
    1: "a clause is broken",
    4: "inconclusive: not all was read, decided, or there to be judged",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `judge`."""
    add = parser.add_argument
    add("file", type=Path, metavar="FILE", help="the history: JSON lines, one call each")
    add("--target", type=Path, metavar="FILE", help="take the limits from a target file (TOML)")
    add("--max-queue", type=int, metavar="N", help="async_max_queue of the ledger")
    add("--job-ttl-ms", type=int, metavar="MS", help="async_job_ttl of the ledger")
    add("--max-completed", type=int, metavar="N", help="async_max_completed of the ledger")
    add("--ledger", action="store_true", help="the calls were made in the ledger's own process")
    add(
        "--every-call",
        action="store_true",
        help="the file holds every call made meanwhile: nobody else used the ledger",
    )
    add("--fresh", action="store_true", help="the ledger was empty when the history begins")
    add(
        "--every-transition",
        action="store_true",
        help="start, finish, fail and timeout are all in the file, and nothing else ends a job",
    )
    add(
        "--tolerance-ms",
        type=float,
        metavar="MS",
        help=f"what 'at once' may take (default: {DEFAULT_TOLERANCE_MS:g})",
    )
    add("--strict", action="store_true", help="a broken SHOULD fails too")
    add("--json", type=Path, metavar="FILE", help="write the judgement as JSON")
    add("--minimal", type=Path, metavar="FILE", help="write the first failure's calls there")


def run(args: argparse.Namespace) -> int:
    """Judge the history, report, and return the exit code."""
    if args.tolerance_ms is not None and not 0 <= args.tolerance_ms < 60_000:
        raise UsageError(f"--tolerance-ms {args.tolerance_ms}: allowed are 0 to 60000")
    for option, path in (("--json", args.json), ("--minimal", args.minimal)):
        if path is not None and not path.absolute().parent.is_dir():
            raise UsageError(f"{option} {path}: its folder does not exist")
    history = load_history(args.file)
    if history.bad_lines and not history.calls:
        bad = history.bad_lines[0]
        raise UsageError(f"{args.file}: no line of it is a call (line {bad.number}: {bad.why})")
    setting = _setting(args, complete=not history.bad_lines)
    judgement = judge_thoroughly(history.calls, setting)
    shown = _first_of_each(judgement.accusations)
    small = [_minimal(history, setting, accusation) for accusation in shown]
    code = _exit_code(history, judgement, strict=args.strict)
    for line in _report(args.file.name, history, setting, judgement):
        print(line)
    for accusation, calls in zip(shown, small, strict=True):
        print("\n".join(("", *_proof(accusation, calls))))
    print("\n".join(("", *_summary(judgement), f"exit {code}: {_EXIT_MEANING[code]}")))
    if args.json:
        _write_json(args, history, setting, judgement, code)
    if args.minimal and small:
        save_history(args.minimal, small[0])
    return code


def _setting(args: argparse.Namespace, *, complete: bool) -> Setting:
    limits = load_target(args.target).limits if args.target else None
    given = {"max_queue": args.max_queue, "job_ttl_ms": args.job_ttl_ms}
    given["max_completed"] = args.max_completed
    known = {
        key: getattr(limits, key) if value is None and limits else value
        for key, value in given.items()
    }
    return Setting(
        **known,
        wire=not args.ledger,
        exclusive=args.every_call and complete,
        visible=args.every_transition and complete,
        ended_before=0 if args.fresh and args.every_call else None,
        tolerance_ms=DEFAULT_TOLERANCE_MS if args.tolerance_ms is None else args.tolerance_ms,
    )


def _first_of_each(accusations: Iterable[Accusation]) -> list[Accusation]:
    """The first accusation of every clause: the others tell the same story again."""
    first: dict[str, Accusation] = {}
    for accusation in accusations:
        first.setdefault(accusation.clause, accusation)
    return list(first.values())


def _minimal(history: History, setting: Setting, accusation: Accusation) -> tuple[Call, ...]:
    if len(accusation.calls) <= _SHOWN_CALLS:
        return accusation.calls
    return minimise(history.calls, setting, accusation)[0]


def _exit_code(history: History, judgement: Judgement, *, strict: bool) -> int:
    """1 broken; 4 nothing was broken, but not all was read, decided, or there to be judged."""
    broken = [CLAUSES[id_].level == "MUST" for id_ in _broken(judgement, should=False)]
    if any(broken) or (strict and judgement.accusations):
        return 1
    open_ends = history.bad_lines or judgement.undecided or not judgement.witnesses
    return 4 if open_ends else 0


def _broken(judgement: Judgement, *, should: bool) -> set[str]:
    found: set[str] = set()
    for accusation in judgement.accusations:
        if accusation.should == should:
            found |= {accusation.clause, *accusation.also}
    return found


# For people


def _report(name: str, history: History, setting: Setting, judgement: Judgement) -> Iterator[str]:
    clients = {call.client for call in history.calls}
    clocks = {call.clock_id for call in history.calls}
    yield (
        f"{name}: {len(history.calls)} calls, {len(clients)} clients, "
        f"{len(clocks)} clock{'s' if len(clocks) != 1 else ''}"
    )
    yield from _wrapped("taken for granted: ", _granted(setting))
    if history.bad_lines:
        yield f"{len(history.bad_lines)} lines are no calls and were left out:"
        for bad in history.bad_lines[:5]:
            yield from _wrapped(f"  line {bad.number}: ", bad.why)
    count = len(judgement.accusations) + sum(judgement.more.values())
    shown = len(_first_of_each(judgement.accusations))
    if count > shown:
        yield f"{count} accusations; the first of each clause:"


def _granted(setting: Setting) -> str:
    limits = (("max_queue", setting.max_queue), ("job_ttl_ms", setting.job_ttl_ms))
    told = [f"{key} {value}" for key, value in limits if value is not None]
    if setting.max_completed is not None:
        told.append(f"max_completed {setting.max_completed}")
    told.append("over the wire" if setting.wire else "in the ledger's process")
    told.append("every call" if setting.exclusive else "others may have used it")
    if setting.visible:
        told.append("every transition")
    return ", ".join(told)


def _proof(accusation: Accusation, calls: tuple[Call, ...]) -> Iterator[str]:
    also = f" (also {', '.join(accusation.also)})" if accusation.also else ""
    level = " SHOULD" if accusation.should else ""
    yield f"{accusation.clause}{level} broken{also}"
    yield from _wrapped("  ", CLAUSES[accusation.clause].sentence)
    for number, fact in enumerate(accusation.let):
        yield from _wrapped("  let   " if number == 0 else "  and   ", fact)
    yield from _wrapped("  then  ", accusation.why)
    told = set(accusation.let)
    more = [text for call in calls if (text := describe(call)) not in told]
    for number, text in enumerate(more[:_SHOWN_CALLS]):
        yield from _wrapped("  seen  " if number == 0 else "        ", text)
    if len(more) > _SHOWN_CALLS:
        yield f"        and {len(more) - _SHOWN_CALLS} more calls"


def _summary(judgement: Judgement) -> Iterator[str]:
    must, should = _broken(judgement, should=False), _broken(judgement, should=True)
    order = list(CLAUSES)
    for title, ids in (("broken: ", must), ("SHOULDs broken: ", should - must)):
        if ids:
            yield from _wrapped(title, " ".join(sorted(ids, key=order.index)))
    held = [
        f"{id_} {judgement.witnesses[id_]}"
        for id_ in order
        if id_ in judgement.witnesses and id_ not in must
    ]
    yield from _wrapped("held (times seen): ", ", ".join(held) or "nothing was exercised")
    for clause, why in judgement.undecided.items():
        yield from _wrapped(f"undecided: {clause}: ", why)


def _wrapped(head: str, text: str) -> list[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=head,
        subsequent_indent=" " * min(len(head), 20),
        break_on_hyphens=False,
    )


# For machines


def _write_json(
    args: argparse.Namespace,
    history: History,
    setting: Setting,
    judgement: Judgement,
    code: int,
) -> None:
    scope = [id_ for id_ in CLAUSES if id_ in {*judgement.witnesses, *judgement.undecided}]
    scope += [id_ for id_ in CLAUSES if id_ in judgement.clauses and id_ not in scope]
    docket = Docket(scope)
    judgement.publish(docket)
    known = {**asdict(setting), "known": sorted(setting.known)}
    document: dict[str, Any] = {
        "subject": str(args.file),
        "calls": len(history.calls),
        "setting": known,
        "bad_lines": [asdict(bad) for bad in history.bad_lines],
        "verdicts": [row.as_json() for row in docket.verdicts()],
        "accusations": [accusation.as_json() for accusation in judgement.accusations],
        "undecided": dict(judgement.undecided),
        "exit": code,
    }
    args.json.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
