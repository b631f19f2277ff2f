"""`counterfoil replay FILE`: run what failed in a report again, and say what became of it.

FILE is what `conform --json` wrote. Every finding in it carries the command that reproduces it; the
clauses that failed are run again by that command, with the same seed and profile, and each is
reported beside what it was. The exit code is 0 when nothing fails any more, 1 when something still
does; else it is that of the run.

`counterfoil replay python:MODULE:FACTORY --scenario NAME --schedule '0 1 1t @seen'` runs one
interleaving of threads again, exactly, and tells it call by call. `counterfoil replay SUBJECT
--program '[{"op": "configure", ...}, ...]'` does the same with a program of calls on one ledger.
"""

import argparse
import json
import shlex
import tempfile
from pathlib import Path
from typing import Any

from counterfoil_conformance.cli import main
from counterfoil_conformance.errors import UsageError
from counterfoil_conformance.report.verdicts import Verdict
from counterfoil_conformance.run import DEFAULT_TOLERANCE_MS
from counterfoil_conformance.schedules.check import replay_schedule
from counterfoil_conformance.subjects import open_subject
from counterfoil_conformance.subjects.python import load_factory
from counterfoil_conformance.subjects.rerun import read_program, run_program
from counterfoil_spec.clauses import CLAUSES

__all__ = ["add_arguments", "command_of", "run"]

_AGAIN = (Verdict.FAIL, Verdict.WARN)


_PYTHON = "python:"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `replay`."""
    parser.add_argument(
        "what", metavar="FILE", help="a report of `conform --json`; or a ledger subject"
    )
    parser.add_argument("--scenario", metavar="NAME", help="the race a schedule is of")
    parser.add_argument("--schedule", metavar="STEPS", help="one interleaving, as it was reported")
    parser.add_argument("--program", metavar="JSON", help="calls on one ledger, as reported")
    parser.add_argument("--target", type=Path, metavar="FILE", help="another target file")
    parser.add_argument("--subject", help="another subject, where the server has moved")
    parser.add_argument("--warnings", action="store_true", help="run the warnings again too")


def run(args: argparse.Namespace) -> int:
    """Run the failures of a report, one schedule or one program again."""
    if args.program is not None:
        return _run_program(args.what, args.program)
    if args.schedule is not None or args.scenario is not None:
        return _run_schedule(args)
    path = Path(args.what)
    report = _load(path)
    wanted = _AGAIN if args.warnings else (Verdict.FAIL,)
    rows = [row for row in report["verdicts"] if row["verdict"] in wanted]
    if not rows:
        print(f"{path}: nothing failed, so there is nothing to run again")
        return 0
    words = command_of(report, rows, args.subject, args.target)
    print(f"$ counterfoil {shlex.join(words)}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        again = Path(folder) / "again.json"
        code = main([*words, "--json", str(again)])
        if not again.exists():
            return code
        now = {row["clause"]: row["verdict"] for row in _load(again)["verdicts"]}
    for row in rows:
        print(f"{row['clause']}: {row['verdict']} then, {now.get(row['clause'], '?')} now")
    still = any(now.get(row["clause"]) in wanted for row in rows)
    decided = all(now.get(row["clause"]) in (*_AGAIN, Verdict.PASS) for row in rows)
    return 1 if still else 0 if decided else code


def command_of(
    report: dict[str, Any],
    rows: list[dict[str, Any]],
    subject: str | None = None,
    target: Path | None = None,
) -> list[str]:
    """The words of the `conform` command that runs these rows of a report again."""
    clauses = ",".join(row["clause"] for row in rows)
    words = shlex.split(next((row["repro"] for row in rows if row["repro"]), ""))
    told = words[words.index("--target") + 1] if "--target" in words[:-1] else None
    known = report["subject"] if ":" in report["subject"] else None
    chosen = subject or known
    command = ["conform", *([chosen] if chosen else [])]
    file = str(target) if target else told
    command += ["--target", file] if file else []
    command += ["--profile", report["profile"], "--seed", str(report["seed"]), "--only", clauses]
    return command


def _load(path: Path) -> dict[str, Any]:
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read the report {path}: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(
            f"{path} is no report of `conform --json` (a recorded history is for `judge`): {error}"
        ) from error
    keys = {"subject", "profile", "seed", "verdicts"}
    if not isinstance(report, dict) or not keys <= report.keys():
        raise UsageError(f"{path} is no report of `conform --json`: it lacks {', '.join(keys)}")
    return report


def _run_program(subject: str, text: str) -> int:
    """Run one program of calls again; 1 if it breaks a clause."""
    program = read_program(text)
    broken = False
    with open_subject(subject) as opened:
        for line in run_program(opened, program, DEFAULT_TOLERANCE_MS):
            print(line)
            broken |= line.split(":")[0] in CLAUSES
    return int(broken)


def _run_schedule(args: argparse.Namespace) -> int:
    """Run one interleaving again; 1 if it breaks a clause."""
    if args.schedule is None or args.scenario is None or not args.what.startswith(_PYTHON):
        raise UsageError("a schedule takes python:MODULE:FACTORY, --scenario and --schedule")
    factory = load_factory(args.what.removeprefix(_PYTHON))
    broken = False
    for line in replay_schedule(factory, args.scenario, args.schedule):
        print(line)
        broken |= line.split(":")[0] in CLAUSES
    return int(broken)
