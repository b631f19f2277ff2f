"""The front end of ledger subjects: every check, in order, and what stayed undecided.

`SCOPE` are the clauses that calling a ledger can show, and C1 and C2, which a sanitizer inside the
driver can show. A check that the driver's capabilities do not allow makes its clauses UNTESTABLE,
unless another check exercises them; no clause is spared for that reason, so a driver that can do
little ends inconclusive (exit 4).
"""

import time
from collections.abc import Iterable
from typing import Final

from counterfoil_conformance.errors import Violation
from counterfoil_conformance.report.events import CheckEnded, CheckStarted, NotRun, Untestable
from counterfoil_conformance.run import Publish, RunOptions
from counterfoil_conformance.subjects import checks, open_subject
from counterfoil_conformance.subjects.base import Subject, UnsupportedOp, now_us
from counterfoil_conformance.subjects.books import Rejected
from counterfoil_conformance.subjects.checks.vectors import vectors_cover_the_law
from counterfoil_conformance.subjects.registry import CHECKS, Check, Context, Stop
from counterfoil_spec.clauses import CLAUSES, Level

__all__ = ["CORE", "SCOPE", "run", "run_check", "run_checks", "run_subject"]

assert checks, "importing the package fills the table of checks"

_SANITIZED: Final = ("C1", "C2")
SCOPE: Final[tuple[str, ...]] = (
    *(clause.id for clause in CLAUSES.values() if clause.at_ledger),
    *_SANITIZED,
)
CORE: Final[frozenset[str]] = frozenset(
    clause.id for clause in CLAUSES.values() if clause.at_ledger and clause.level is Level.MUST
)


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
    if check.only_full and not context.is_full:
        for clause in check.clauses:
            publish(NotRun(clause, "only --profile full has time for it"))
        return
    if lacking := check.lacks(subject):
        for clause in check.clauses:
            publish(Untestable(clause, f"needs a driver with: {', '.join(lacking)}"))
        return
    started = time.monotonic()
    publish(CheckStarted(check.name, check.clauses))
    context.check = check.name
    context.pulse.reset()
    try:
        check.function(context)
    except Rejected as rejected:
        context.reject(rejected)
    except Violation as violation:
        context.fail(violation.clause, violation.why)
    except Stop:
        pass
    except UnsupportedOp as error:
        for clause in check.clauses:
            publish(Untestable(clause, str(error)))
    finally:
        for books in context.opened:
            judgement = books.judged(context.tolerance_ms)
            judgement.publish(publish, check.name, books.repro() if judgement.clauses else "")
        context.opened.clear()
    publish(CheckEnded(check.name, check.clauses, time.monotonic() - started))


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
