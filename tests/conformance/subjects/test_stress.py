"""A crew of threads: what is late once is the machine's, what is late again is the ledger's."""

import itertools
import threading
import time

from counterfoil_conformance.report.events import Finding
from counterfoil_conformance.run import RunOptions
from counterfoil_conformance.subjects.checks.races import RACES, play
from counterfoil_conformance.subjects.checks.stress import a_crew_of_threads_on_one_ledger
from counterfoil_conformance.subjects.python import PythonSubject
from counterfoil_conformance.subjects.registry import Context
from counterfoil_server.ledger import JobLedger

STALL_S = 1.5


class Stalling(JobLedger):
    """A correct ledger on a machine that keeps the first few waiters from their core."""

    stalls_left = 1
    turn = threading.Lock()

    def wait(self, job_id, budget_ms):  # type: ignore[no-untyped-def]
        seen = super().wait(job_id, budget_ms)
        with self.turn:
            stalled = seen is not None and type(self).stalls_left > 0
            type(self).stalls_left -= stalled
        if stalled:
            time.sleep(STALL_S)
        return seen


def accused(ledger: type[JobLedger]) -> set[str]:
    """The clauses that the stress finds broken."""
    events: list[object] = []
    with PythonSubject(ledger) as subject:
        context = Context(subject, RunOptions(profile="quick", seed=1), events.append)
        try:
            a_crew_of_threads_on_one_ledger(context)
        finally:
            context.pulse.stop()
    return {event.clause for event in events if isinstance(event, Finding)}


def test_a_wait_that_is_late_once_is_laid_at_the_machines_door() -> None:
    class Once(Stalling):
        pass

    assert accused(Once) == set()


def raced(ledger: type[JobLedger]) -> set[str]:
    """The clauses that one race of an end and a wait finds broken."""
    events: list[object] = []
    [race] = [race for race in RACES if race.name == "a finish and a wait"]
    with PythonSubject(ledger) as subject:
        context = Context(subject, RunOptions(profile="quick", seed=1), events.append)
        try:
            play(context, race)
        finally:
            context.pulse.stop()
    return {event.clause for event in events if isinstance(event, Finding)}


def test_a_race_forgives_one_late_wait_and_no_wake_up_that_gets_lost_again() -> None:
    class Once(Stalling):
        stalls_left = 1

    class Loses(JobLedger):
        """Every third wait is answered as it should be, when its budget is over."""

        waits = itertools.count(1)

        def wait(self, job_id, budget_ms):  # type: ignore[no-untyped-def]
            seen = super().wait(job_id, budget_ms)
            if next(self.waits) % 3 == 0:
                time.sleep(budget_ms / 1000)
            return seen

    assert raced(Once) == set()
    assert raced(Loses) & {"W1", "W2"}


def test_waits_that_are_late_again_and_again_are_the_ledgers() -> None:
    class Always(Stalling):
        stalls_left = 10_000

    assert accused(Always) & {"W1", "W2"}
