"""A run against a server over HTTP, from the first connection to the last verdict.

Preflight, then every check where it may run (`schedule`), then the closing storm, then the whole
recorded history goes to the judge. Findings, witnesses and what could not be looked at are
published as events; verdicts are the docket's.

The order matters in one respect: a target that dies midway must still get the verdicts of what was
seen before, so its end is a `HarnessFault` for the clauses that are still open, and no exception.
"""

import asyncio
import importlib
import pkgutil
from collections.abc import Iterable
from typing import Final

import counterfoil_conformance.wire.checks as checks_package
from counterfoil_conformance.report.events import HarnessFault, NotRun, Untestable
from counterfoil_conformance.run import Publish, RunOptions
from counterfoil_conformance.wire.gone import blame_the_gone
from counterfoil_conformance.wire.hearing import hear
from counterfoil_conformance.wire.preflight import learn_bound, reach
from counterfoil_conformance.wire.registry import ALL, CHECKS, Check, Context
from counterfoil_conformance.wire.schedule import first_things, later_things, run_checks
from counterfoil_conformance.wire.session import Session, TargetGone
from counterfoil_conformance.wire.target import Target
from counterfoil_spec.clauses import CLAUSES, SeenAt
from counterfoil_spec.clauses import Clause as _Clause

__all__ = ["CORE", "SCOPE", "all_checks", "run", "run_own_server"]


def _in_scope(clause: _Clause) -> bool:
    return clause.at_wire or (clause.seen_at is SeenAt.PROCESS and clause.id in ("X1", "X4"))


SCOPE: Final[tuple[str, ...]] = tuple(id_ for id_, c in CLAUSES.items() if _in_scope(c))
CORE: Final[frozenset[str]] = frozenset(id_ for id_, c in CLAUSES.items() if c.core)


def all_checks() -> dict[str, Check]:
    """Every registered check, by name: the modules of `checks` register theirs on import."""
    for module in pkgutil.iter_modules(checks_package.__path__):
        importlib.import_module(f"{checks_package.__name__}.{module.name}")
    return CHECKS


def run(target: Target, options: RunOptions, publish: Publish) -> None:
    """Judge the server that `target` describes.

    Raises:
        HarnessError: it cannot be reached, or is not the one that the file describes.
        UsageError: the target file cannot be used.
    """
    asyncio.run(_run(target, options, publish))


def run_own_server(options: RunOptions, publish: Publish) -> None:
    """Start our own server as a process of its own and judge it."""
    own_server = importlib.import_module("counterfoil_conformance.wire.own_server")
    own_server.run(options, publish, run)


async def _run(target: Target, options: RunOptions, publish: Publish) -> None:
    session = Session(target, options, publish)
    lag = asyncio.create_task(session.lag.measure())
    chosen = _choose(all_checks().values(), target, options, publish)
    try:
        await _start_if_needed(session)
        await reach(session)
        learned = await learn_bound(session)
        session.max_queue = learned.max_queue
        ctx = Context(session, options, publish)
        for part in (first_things(chosen), later_things(chosen)):
            await run_checks(part, ctx, publish, session.settle)
    except TargetGone as gone:
        await blame_the_gone(session)
        why = f"the target is gone: {gone}"
        publish(HarnessFault(why, tuple(c for c in SCOPE if not options.only or c in options.only)))
    finally:
        lag.cancel()
        session.flush()
        await session.aclose()
        await _stop_if_ours(session)
    hear(session, publish)


def _choose(
    checks: Iterable[Check], target: Target, options: RunOptions, publish: Publish
) -> list[Check]:
    """The checks to run; the clauses of the others are told why not."""
    chosen = []
    for check in checks:
        if options.only and not options.only & set(check.clauses):
            continue
        if check.unless and not target.missing(check.unless):
            continue
        missing = target.missing(check.needs)
        pointless = check.pointless(target)
        if pointless:
            for clause in check.clauses:
                publish(NotRun(clause, pointless, applies=False))
        elif check.profile == "full" and options.profile != "full":
            _tell(check, publish, NotRun, "`--profile full` has time for it")
        elif missing:
            named = ", ".join(f"`{key}`" for key in missing)
            _tell(check, publish, Untestable, f"needs {named} in the target file")
        elif check.places == ALL and not target.exclusive:
            _tell(check, publish, Untestable, "`exclusive = false`: others use the target too")
        else:
            chosen.append(check)
    return chosen


def _tell(check: Check, publish: Publish, kind: type[NotRun] | type[Untestable], why: str) -> None:
    for clause in check.clauses:
        publish(kind(clause, why))


async def _start_if_needed(session: Session) -> None:
    """Start the target by its `[process].start` if nothing answers and that is given."""
    if not session.target.process.start:
        return
    process = importlib.import_module("counterfoil_conformance.wire.process")
    session.process = process.TargetProcess(session.target)
    if not await session.process.listening():
        await session.process.start()
        session.is_fresh = True


async def _stop_if_ours(session: Session) -> None:
    if session.process is not None and session.process.ours:
        await session.process.abandon()
