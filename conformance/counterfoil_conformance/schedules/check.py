"""Walk every scenario on a ledger and judge every distinct history that came out.

A violation is reported with its scenario and its schedule, the list of choices that leads to it,
and replays: `counterfoil replay` runs exactly that execution again and shows it step by step.
"""

import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from counterfoil_conformance.errors import UsageError
from counterfoil_conformance.oracle.history import Call
from counterfoil_conformance.oracle.setting import Setting
from counterfoil_conformance.oracle.thorough import judge_thoroughly
from counterfoil_conformance.report.events import Finding, Undecided, Witnessed
from counterfoil_conformance.run import Publish
from counterfoil_conformance.schedules.explore import Exploration, explore, replay
from counterfoil_conformance.schedules.instrument import Instruments
from counterfoil_conformance.schedules.run import ScenarioRun
from counterfoil_conformance.schedules.scenarios import SCENARIOS, Scenario
from counterfoil_conformance.schedules.scheduler import Choice
from counterfoil_conformance.subjects.host import Factory, Host
from counterfoil_spec.clauses import CLAUSES

__all__ = [
    "Explored",
    "Fault",
    "check_schedules",
    "explore_scenario",
    "outcome",
    "replay_schedule",
    "seek",
]

# How long one scenario may take before what is left of it is UNKNOWN.
SCENARIO_S: Final = 30.0
# A broken ledger may have far more interleavings than a sound one.
_GLANCE_S: Final = 0.5
_LOOK_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Fault:
    """A schedule that breaks a clause, and why."""

    clause: str
    why: str
    schedule: str


@dataclass(slots=True)
class Explored:
    """What walking one scenario showed; `histories` are the distinct ones, by their first."""

    scenario: Scenario
    report: Exploration = field(default_factory=Exploration)
    histories: dict[tuple[Any, ...], tuple[Call, ...]] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    witnesses: dict[str, int] = field(default_factory=dict)


def explore_scenario(
    factory: Factory,
    scenario: Scenario,
    *,
    reduced: bool = True,
    seconds: float = SCENARIO_S,
    stop_at: Collection[str] = (),
) -> Explored:
    """Run every execution of one scenario on fresh ledgers of `factory`.

    With `stop_at`, only until one of these clauses is broken.
    """
    host, instruments = Host(factory), Instruments()
    found = Explored(scenario)
    with instruments.installed(type(host.ledger)):
        executions = explore(
            lambda: ScenarioRun(scenario, host),
            instruments,
            found.report,
            reduced=reduced,
            lazy_timers=scenario.lazy_timers,
            seconds=seconds,
        )
        for choices, run in executions:
            assert isinstance(run, ScenarioRun)
            _look_at(found, _spelled(choices, instruments.shared), run)
            if any(fault.clause in stop_at for fault in found.faults):
                break
    return found


def seek(factory: Factory, clauses: Collection[str]) -> Iterator[Explored]:
    """Explore until one of these clauses is broken, which the last one yielded shows.

    What is quickly seen is looked at first, everywhere; only what is left over gets its time.
    """
    left: Iterable[Scenario] = SCENARIOS
    for seconds in (_GLANCE_S, _LOOK_S):
        unfinished = []
        for scenario in left:
            explored = explore_scenario(factory, scenario, stop_at=clauses, seconds=seconds)
            yield explored
            if any(fault.clause in clauses for fault in explored.faults):
                return
            if not explored.report.exhausted:
                unfinished.append(scenario)
        left = unfinished


def check_schedules(
    factory: Factory,
    publish: Publish,
    subject: str,
    scenarios: Iterable[Scenario] = SCENARIOS,
) -> None:
    """Walk the scenarios and publish what they show about the ledger called `subject`."""
    for scenario in scenarios:
        found = explore_scenario(factory, scenario)
        for clause, count in found.witnesses.items():
            publish(Witnessed(clause, count))
        for fault in found.faults:
            repro = f"counterfoil replay {subject} --scenario '{scenario.name}'"
            publish(
                Finding(
                    fault.clause,
                    f"{fault.why}\nscenario: {scenario.name}\nschedule: {fault.schedule}",
                    repro=f"{repro} --schedule '{fault.schedule}'",
                    check="schedules",
                )
            )
        if not found.report.exhausted:
            why = f"{scenario.name}: not exhausted in {SCENARIO_S:g} s"
            for clause in ("A3", "S4", "W2"):
                publish(Undecided(clause, why))


def replay_schedule(factory: Factory, scenario_name: str, schedule: str) -> Iterator[str]:
    """Run one execution again and tell it, a call per line.

    Raises:
        UsageError: there is no such scenario, or the schedule is not a list of choices.
    """
    scenario = next((s for s in SCENARIOS if s.name == scenario_name), None)
    if scenario is None:
        names = "; ".join(s.name for s in SCENARIOS)
        raise UsageError(f"--scenario {scenario_name!r}: allowed are {names}")
    host, instruments = Host(factory), Instruments()
    choices, shared = _parse(schedule)
    instruments.shared |= shared
    with instruments.installed(type(host.ledger)):
        run = ScenarioRun(scenario, host)
        replay(run, instruments, choices, lazy_timers=scenario.lazy_timers)
    for call in run.calls:
        reply = json.dumps(call.reply)
        yield f"{call.call_us:>3} - {call.return_us:<3} {call.client}: {call.op} {reply}"
    found = Explored(scenario)
    _look_at(found, schedule, run)
    for fault in found.faults:
        yield f"{fault.clause}: {fault.why}"


def _spelled(choices: list[Choice], shared: set[str]) -> str:
    """A schedule as text: the choices, then the fields whose accesses are steps."""
    return " ".join([*map(str, choices), *(f"@{name}" for name in sorted(shared))])


def _parse(schedule: str) -> tuple[list[Choice], set[str]]:
    words = schedule.split()
    shared = {word[1:] for word in words if word.startswith("@")}
    steps = [word for word in words if not word.startswith("@")]
    try:
        return [Choice(int(w.removesuffix("t")), w.endswith("t")) for w in steps], shared
    except ValueError:
        raise UsageError(
            f"--schedule {schedule!r}: allowed are thread numbers, with a t for a timer, and "
            "fields with an @: '0 1 1t @seen'"
        ) from None


def _look_at(found: Explored, schedule: str, run: ScenarioRun) -> None:
    """Judge what one execution showed; a history that was seen before was judged then."""
    for why in run.raised:
        _blame(found, "S1", why, schedule)
    for clause, why in run.misjudged:
        _blame(found, clause, why, schedule)
    if run.stuck_in:
        stuck = f"nobody can go on: {', '.join(run.stuck_in)}"
        asleep = all("sleep" in where for where in run.stuck_in)
        _blame(found, "W2" if asleep else "C5", stuck, schedule)
        return
    key = outcome(run.calls)
    if key in found.histories:
        return
    found.histories[key] = tuple(run.calls)
    judgement = judge_thoroughly(run.calls, Setting.of_ledger(found.scenario.limits))
    for accusation in judgement.accusations:
        if not accusation.should:
            _blame(found, accusation.clause, accusation.text(), schedule)
    for clause, count in judgement.witnesses.items():
        found.witnesses[clause] = found.witnesses.get(clause, 0) + count


def _blame(found: Explored, clause: str, why: str, schedule: str) -> None:
    """Keep the first schedule of each clause: the shortest story is enough."""
    assert clause in CLAUSES
    if all(fault.clause != clause for fault in found.faults):
        found.faults.append(Fault(clause, why, schedule))


def outcome(calls: list[Call]) -> tuple[Any, ...]:
    """All that clients can tell from a history: who was answered what, and what came before what.

    For each call, in each client's order: the answer, and how many calls of every client had
    returned when it was made.
    """
    clients = sorted({call.client for call in calls})
    ordered = [[call for call in calls if call.client == client] for client in clients]
    return tuple(
        (call.op, repr(call.reply), tuple(_returned_before(theirs, call) for theirs in ordered))
        for mine in ordered
        for call in mine
    )


def _returned_before(calls: list[Call], later: Call) -> int:
    return sum(call.until_us < later.call_us for call in calls)
