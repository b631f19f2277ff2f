"""The front end of ledger subjects: every check, in order, and what stayed undecided.

`SCOPE` are the clauses that calling a ledger can show, and C1 and C2, which a sanitizer inside the
driver can show. A check that the driver's capabilities do not allow makes its clauses UNTESTABLE,
unless another check exercises them. `CORE` are the core clauses of the contract (MUSTs of S, A, R,
W and G that are seen at the wire) as far as a ledger shows them: a driver that leaves one of them
open ends inconclusive (exit 4).
"""

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from counterfoil_conformance.errors import Violation
from counterfoil_conformance.report.events import CheckEnded, CheckStarted, NotRun, Untestable
from counterfoil_conformance.run import Publish, RunOptions
from counterfoil_conformance.subjects import checks, open_subject
from counterfoil_conformance.subjects.base import Subject, UnsupportedOp, now_us
from counterfoil_conformance.subjects.books import Rejected
from counterfoil_conformance.subjects.checks.races import LATENESS
from counterfoil_conformance.subjects.checks.vectors import load_vectors, vectors_cover_the_law
from counterfoil_conformance.subjects.python import PythonSubject
from counterfoil_conformance.subjects.registry import CHECKS, Check, Context, Stop
from counterfoil_spec.clauses import CLAUSES

__all__ = ["CORE", "SCOPE", "VectorsAlone", "run", "run_check", "run_checks", "run_subject"]

assert checks, "importing the package fills the table of checks"

# How often waits may be found a little late before it is the subject that makes them so.
_LOOKS: Final = 3
_LITTLE_MS: Final = 1_000.0
_SANITIZED: Final = ("C1", "C2")
SCOPE: Final[tuple[str, ...]] = (
    *(clause.id for clause in CLAUSES.values() if clause.at_ledger),
    *_SANITIZED,
)
CORE: Final[frozenset[str]] = frozenset(
    clause.id for clause in CLAUSES.values() if clause.at_ledger and clause.core
)


class VectorsAlone:
    """What a run by a file of sequences reports, and must decide: the clauses its steps name.

    Raises:
        UsageError: the file cannot be read, or is in no format that we know.
    """

    def __init__(self, path: str) -> None:
        document = load_vectors(Path(path))
        steps = [step for sequence in document["sequences"] for step in sequence["steps"]]
        named = {clause for step in steps for clause in step.get("clauses", [])}
        [whole] = [check for check in CHECKS if check.function is vectors_cover_the_law]
        self.SCOPE = tuple(id_ for id_ in SCOPE if id_ in named or id_ in whole.clauses)
        self.CORE = CORE & named


def run(subject: str, options: RunOptions, publish: Publish) -> None:
    """Check the ledger that `subject` names.

    Raises:
        UsageError: the text names no subject.
        HarnessError: the driver failed; what was found before has been published.
    """
    with open_subject(subject) as opened:
        run_subject(opened, options, publish)
        opened.close()
        opened.verify()


def run_subject(subject: Subject, options: RunOptions, publish: Publish) -> None:
    """Check an open subject; with `options.vectors` by those sequences alone."""
    chosen = [c for c in CHECKS if not options.vectors or c.function is vectors_cover_the_law]
    run_checks(chosen, subject, options, publish)


def run_checks(
    chosen: Iterable[Check], subject: Subject, options: RunOptions, publish: Publish
) -> None:
    """Check an open subject by some of the checks."""
    context = Context(subject, options, publish)
    context.rtt_ms = _round_trip_ms(subject)
    try:
        for check in chosen:
            if not options.only or not options.only.isdisjoint(check.clauses):
                run_check(check, context)
    finally:
        context.pulse.stop()


def run_check(check: Check, context: Context) -> None:
    """Run one check, have its ledgers judged, and publish what came of it."""
    subject, publish = context.subject, context.publish
    if why_not := _no_time_for(check, context):
        for clause in check.clauses:
            publish(NotRun(clause, why_not))
        return
    if lacking := check.lacks(subject):
        for clause in check.clauses:
            publish(Untestable(clause, f"needs a driver with: {', '.join(lacking)}"))
        return
    started = time.monotonic()
    publish(CheckStarted(check.name, check.clauses))
    context.check = check.name
    context.pulse.reset()
    looks = _LOOKS if check.second_look else 1
    while not _perform(check, context) and looks > 1 and _a_little_late(context):
        context.opened.clear()
        looks -= 1
    for books in context.opened:
        judgement = books.judged(context.tolerance_ms)
        judgement.publish(publish, check.name, books.repro() if judgement.clauses else "")
    context.opened.clear()
    publish(CheckEnded(check.name, check.clauses, time.monotonic() - started))


def _perform(check: Check, context: Context) -> bool:
    """Make a check, its histories aside; whether it found something by itself."""
    try:
        check.function(context)
    except Rejected as rejected:
        context.reject(rejected)
    except Violation as violation:
        context.fail(violation.clause, violation.why)
    except UnsupportedOp as error:
        for clause in check.clauses:
            context.publish(Untestable(clause, str(error)))
    except Stop:
        return False
    else:
        return False
    return True


def _a_little_late(context: Context) -> bool:
    """Whether waits came late, though none so late that it lost its wake-up, and no more is wrong.

    A starved machine keeps a thread from its core for some tenths of a second now and then.
    """
    patient_ms = context.tolerance_ms + _LITTLE_MS
    strict = [books.judged(context.tolerance_ms).clauses for books in context.opened]
    patient = [books.judged(patient_ms).clauses for books in context.opened]
    return any(strict) and not any(patient) and LATENESS.issuperset(*strict)


def _no_time_for(check: Check, context: Context) -> str:
    """Why the profile leaves this check out, or nothing."""
    if context.is_full:
        return ""
    if check.only_full:
        return "only --profile full has time for it"
    if check.slow_over_a_pipe and not isinstance(context.subject, PythonSubject):
        return "only --profile full has time for it over a pipe"
    return ""


def _round_trip_ms(subject: Subject) -> float:
    """The slowest of a few calls that do next to nothing."""
    slowest = 0
    for _ in range(20):
        began = now_us()
        try:
            subject.call("depth")
        except UnsupportedOp:
            return 0.0
        slowest = max(slowest, now_us() - began)
    return slowest / 1000
