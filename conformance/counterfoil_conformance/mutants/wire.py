"""Seeded faults of the shipped server, as it is seen over HTTP.

Each fault is a small override of a shipped class, and says which clause it breaks. It is started
like the server itself, in a process of its own (`wire_serve`), with the override put wherever the
server names the class; then the kit judges it and must report the clause:

    python -m counterfoil_conformance.mutants.wire lost-wake-up --only W2

The trap is a fault that never shows: the catalogue is worth no more than the runs over it.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final

from counterfoil_conformance.report.verdicts import Docket, Verdict, exit_code
from counterfoil_conformance.run import RunOptions
from counterfoil_conformance.wire.own_server import MAIN, Setup, own_target, reserved_port
from counterfoil_conformance.wire.run import CORE, SCOPE, run

__all__ = ["NAMED", "WIRE_FAULTS", "Outcome", "WireFault", "also", "examine", "wire_fault"]

_FAMILIES: Final = ("ledger", "waits", "runs", "routes", "bodies")

# The ten that the first version of the kit was asked to find.
NAMED: Final = (
    "admission-in-two-steps",
    "lost-wake-up",
    "place-released-at-start",
    "result-of-failed-is-200",
    "late-result-wins",
    "age-takes-running-jobs",
    "404-window-after-submit",
    "start-wakes-waiters",
    "wait-in-seconds",
    "worker-lost-per-timeout",
)


@dataclass(frozen=True, slots=True)
class WireFault:
    """One fault: `parts` maps a shipped class or function to what stands in its place.

    `clauses` are those that it may be reported under; `should`: it breaks only a SHOULD; `full`:
    the quick profile need not find it; `setup`: the configuration in which it shows.
    """

    name: str
    sentence: str
    clauses: tuple[str, ...]
    should: bool = False
    full: bool = False
    setup: Setup = MAIN
    parts: dict[Any, Any] = field(default_factory=dict)

    def found(self, outcome: "Outcome") -> bool:
        """Whether a run reported it."""
        reported = set(outcome.fails) | (set(outcome.warns) if self.should else set())
        return bool(reported & set(self.clauses))


WIRE_FAULTS: dict[str, WireFault] = {}


def wire_fault(  # noqa: PLR0913 - one per field of `WireFault`
    name: str,
    clauses: str,
    *,
    should: bool = False,
    full: bool = False,
    setup: Setup = MAIN,
    of: Any = None,
) -> Callable[[Any], Any]:
    """Seed the decorated subclass in the place of its base, or a function in the place of `of`.

    The docstring is the sentence.
    """

    def register(part: Any) -> Any:
        sentence = " ".join((part.__doc__ or "").split())
        parts = {of or part.__mro__[1]: part}
        ids = tuple(clauses.split())
        WIRE_FAULTS[name] = WireFault(name, sentence, ids, should, full, setup, parts)
        return part

    return register


def also(name: str, *, of: Any = None) -> Callable[[Any], Any]:
    """A second part that the fault `name` needs."""

    def register(part: Any) -> Any:
        WIRE_FAULTS[name].parts[of or part.__mro__[1]] = part
        return part

    return register


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run said: why, by clause."""

    exit: int
    seconds: float
    fails: dict[str, str]
    warns: dict[str, str]


def examine(fault: WireFault, options: RunOptions) -> Outcome:
    """Start the faulty server, judge it, stop it.

    Raises:
        HarnessError: it could not be started.
    """
    serve = (sys.executable, "-m", f"{__package__}.wire_serve", fault.name)
    docket = Docket(SCOPE)
    began = time.monotonic()
    with reserved_port() as port:
        run(own_target(port, fault.setup, serve), options, docket)
    verdicts = docket.verdicts()

    def whys(verdict: Verdict) -> dict[str, str]:
        return {row.clause: row.why for row in verdicts if row.verdict is verdict}

    code = exit_code(verdicts, CORE)
    seconds = time.monotonic() - began
    return Outcome(code, seconds, whys(Verdict.FAIL), whys(Verdict.WARN))


def load_faults() -> None:
    """Fill the catalogue: importing a family registers its faults."""
    for family in _FAMILIES:
        import_module(f"{__package__}.wire_faults.{family}")


def main(words: Iterable[str] | None = None) -> int:
    """Examine faults by name; 1 when one was not found."""
    load_faults()
    parser = argparse.ArgumentParser(prog="counterfoil_conformance.mutants.wire")
    parser.add_argument("name", nargs="*", help="none: the ten that the first kit was asked for")
    parser.add_argument("--profile", choices=("quick", "full"), default="quick")
    parser.add_argument("--only", default="", help="clauses to decide, with commas")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="one JSON line per fault")
    arguments = parser.parse_args(list(words) if words is not None else None)
    only = frozenset(id_ for id_ in arguments.only.split(",") if id_)
    strange = set(arguments.name) - WIRE_FAULTS.keys()
    if strange:
        parser.error(f"no such fault: {' '.join(sorted(strange))}")
    missed = 0
    for name in arguments.name or NAMED:
        fault = WIRE_FAULTS[name]
        outcome = examine(fault, RunOptions(arguments.profile, only, arguments.seed))
        missed += not fault.found(outcome)
        if arguments.json:
            line = {"name": name, "exit": outcome.exit, "FAIL": outcome.fails}
            print(json.dumps(line | {"WARN": outcome.warns}), flush=True)
        else:
            word = "found " if fault.found(outcome) else "MISSED"
            print(f"{word} {name}: {' '.join(outcome.fails) or '-'}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    # One catalogue, however this module was started.
    sys.exit(import_module("counterfoil_conformance.mutants.wire").main())
