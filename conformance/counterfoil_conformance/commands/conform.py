"""`counterfoil conform [SUBJECT]`: judge a server or a ledger, clause by clause.

The kind of subject is in its spelling: `http://...` a server, `exec:COMMAND` a driver in any
language, `python:module:factory` a ledger in this process; no subject is our own server, started
for the run. All kinds publish the same events, so reporting and exit codes are the same.
"""

import argparse
import importlib
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

from rich.console import Console

from counterfoil_conformance.errors import HarnessError, UsageError
from counterfoil_conformance.report.baseline import accepted, read_baseline, stale_entries
from counterfoil_conformance.report.events import Event, HarnessFault, RunEnded, RunStarted
from counterfoil_conformance.report.html import HtmlReporter
from counterfoil_conformance.report.json_report import JsonReporter
from counterfoil_conformance.report.junit import JunitReporter
from counterfoil_conformance.report.terminal import TerminalReporter
from counterfoil_conformance.report.verdicts import Docket, exit_code
from counterfoil_conformance.run import DEFAULT_TOLERANCE_MS, Publish, RunOptions
from counterfoil_spec.clauses import CLAUSES, FAMILIES

__all__ = ["add_arguments", "parse_only", "run"]

LEDGER_KINDS: Final = ("exec:", "python:")


class FrontEnd(Protocol):
    """What checks one kind of subject: the clauses it reports, those it must decide, the run."""

    SCOPE: tuple[str, ...]
    CORE: frozenset[str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `conform`."""
    add = parser.add_argument
    add(
        "subject",
        nargs="?",
        metavar="SUBJECT",
        help="http://HOST:PORT, exec:COMMAND or python:MODULE:FACTORY; none: our own server",
    )
    add("--target", type=Path, metavar="FILE", help="what the server is configured with (TOML)")
    add(
        "--profile",
        choices=("quick", "full"),
        default="quick",
        help="quick: within 20 s; full: minutes (default: quick)",
    )
    add(
        "--only",
        action="append",
        default=[],
        metavar="CLAUSE,...",
        help="decide only these clauses (W2) or families (W)",
    )
    add("--seed", type=int, help="repeat a run's choices (default: a new one, printed)")
    add(
        "--tolerance-ms",
        type=float,
        metavar="MS",
        help=f"what 'at once' may take beyond the round trip (default: {DEFAULT_TOLERANCE_MS:g})",
    )
    add("--vectors", metavar="FILE", help="run these sequences on a ledger subject")
    add("--json", type=Path, metavar="FILE", help="write the report as JSON")
    add("--junit", type=Path, metavar="FILE", help="write a JUnit report, one case per clause")
    add("--html", type=Path, metavar="FILE", help="write a self-contained HTML report")
    add("--baseline", type=Path, metavar="FILE", help="accept the failures listed there (TOML)")
    add("--strict", action="store_true", help="a broken SHOULD fails the run")
    add(
        "--allow-untestable",
        action="store_true",
        help="a core clause that the target offers no way to provoke is no reason for exit 4",
    )


def parse_only(words: list[str]) -> frozenset[str]:
    """The clause ids meant by `--only` words: ids and family letters, split at commas.

    Raises:
        UsageError: a word is neither.
    """
    chosen: set[str] = set()
    for word in (part.strip().upper() for text in words for part in text.split(",")):
        if word in CLAUSES:
            chosen.add(word)
        elif word in FAMILIES:
            chosen |= {id_ for id_ in CLAUSES if id_.startswith(word)}
        else:
            raise UsageError(
                f"--only {word!r}: allowed are clause ids (W2) and families "
                f"({' '.join(FAMILIES)}); see `counterfoil list`"
            )
    return frozenset(chosen)


def run(args: argparse.Namespace) -> int:
    """Judge the subject, report, and return the exit code."""
    if args.tolerance_ms is not None and not 0 <= args.tolerance_ms < 60_000:
        raise UsageError(f"--tolerance-ms {args.tolerance_ms}: allowed are 0 to 60000")
    for option, path in (("--json", args.json), ("--junit", args.junit), ("--html", args.html)):
        if path is not None and not path.absolute().parent.is_dir():
            raise UsageError(f"{option} {path}: its folder does not exist")
    seed = random.SystemRandom().randrange(1, 10**6) if args.seed is None else args.seed
    options = RunOptions(
        profile=args.profile,
        only=parse_only(args.only),
        seed=seed,
        tolerance_ms=args.tolerance_ms,
        vectors=args.vectors,
    )
    baseline = read_baseline(args.baseline) if args.baseline else ()
    name, front_end, work = _front_end(args, options)
    scope = tuple(id_ for id_ in front_end.SCOPE if not options.only or id_ in options.only)
    core = front_end.CORE & set(scope)
    docket = Docket(scope)
    publish = _fan_out(docket, _reporters(args, docket, core))
    started = time.monotonic()
    publish(RunStarted(name, options.profile, seed, options.tolerance_ms or DEFAULT_TOLERANCE_MS))
    fault = _guarded(work, publish)
    rows = docket.verdicts()
    stale = stale_entries(baseline, rows, scope)
    code = exit_code(
        rows,
        core,
        strict=args.strict,
        allow_untestable=args.allow_untestable,
        expected=accepted(baseline),
    )
    if fault and code != 1:
        code = 3
    publish(RunEnded(code or int(bool(stale)), time.monotonic() - started, stale))
    return code or int(bool(stale))


def _front_end(
    args: argparse.Namespace, options: RunOptions
) -> tuple[str, FrontEnd, Callable[[Publish], None]]:
    """The subject's name, who checks it, and the run as a function of `publish`."""
    subject: str | None = args.subject
    if subject and subject.startswith(LEDGER_KINDS):
        if args.target:
            raise UsageError("--target describes a server; a ledger subject takes none")
        ledgers = importlib.import_module("counterfoil_conformance.subjects.run")
        front_end = ledgers.VectorsAlone(options.vectors) if options.vectors else ledgers
        return subject, front_end, lambda publish: ledgers.run(subject, options, publish)
    if subject and not subject.startswith(("http://", "https://")):
        raise UsageError(
            f"subject {subject!r}: allowed are http://HOST:PORT, https://HOST:PORT, "
            "exec:COMMAND and python:MODULE:FACTORY"
        )
    if options.vectors:
        raise UsageError("--vectors is for ledger subjects (exec:, python:)")
    wire = importlib.import_module("counterfoil_conformance.wire.run")
    if subject is None and args.target is None:
        return "our own server", wire, lambda publish: wire.run_own_server(options, publish)
    load_target = importlib.import_module("counterfoil_conformance.wire.target").load_target
    target = load_target(args.target, subject)
    return target.subject, wire, lambda publish: wire.run(target, options, publish)


def _reporters(
    args: argparse.Namespace, docket: Docket, core: frozenset[str]
) -> list[Callable[[Event], None]]:
    reporters: list[Callable[[Event], None]] = [TerminalReporter(docket, core, Console())]
    if args.json:
        reporters.append(JsonReporter(docket, args.json))
    if args.junit:
        reporters.append(JunitReporter(docket, args.junit))
    if args.html:
        reporters.append(HtmlReporter(docket, core, args.html))
    return reporters


def _fan_out(docket: Docket, reporters: list[Callable[[Event], None]]) -> Publish:
    def publish(event: Event) -> None:
        docket(event)
        for reporter in reporters:
            reporter(event)

    return publish


def _guarded(work: Callable[[Publish], None], publish: Publish) -> bool:
    """Do the run; a fault of the harness ends it with what was found so far."""
    try:
        work(publish)
    except HarnessError as error:
        publish(HarnessFault(str(error)))
        return True
    return False
