"""Ledgers in C++ under the kit: each seeded fault is found, no correct ledger is accused."""

import pytest

from counterfoil_conformance.report.events import Finding
from counterfoil_conformance.report.verdicts import Docket, Verdict, exit_code
from counterfoil_conformance.run import RunOptions
from counterfoil_conformance.subjects import open_subject
from counterfoil_conformance.subjects import run as ledgers
from counterfoil_conformance.subjects.checks.races import RACES as SCENARIOS
from counterfoil_conformance.subjects.checks.races import play
from counterfoil_conformance.subjects.registry import CHECKS, Context

LIFE = "every end from every live state is final"
UNKNOWN = "an unknown id is refused everywhere"
HANDOUT = "the payload is handed out once and the task id stays"
STAMPS = "the completion time is set at the end and stays"
BOUND = "exactly the bound is admitted"
ZERO = "a bound of zero or less admits nothing"
PLACE = "a place comes back once"
RECENT = "by count the most recent stay"
ORDERS = "by count holds for every order of completion"
OLDEST = "a job that was running when it was the oldest is evicted in its turn"
REFUSED = "a refused submit evicts nothing that may stay"
AGE = "by age strictly and only inside a submit"
BUDGET = "a wait whose budget runs out tells the current state"
TERMINAL = "a wait on a terminal job returns at once"
NOBODY = "a wait on an unknown id returns at once"
WOKEN = "all waiters are woken by the end and by nothing else"
EVICTED = "a job evicted under its waiters does not hang them"
RACES = "races that a barrier starts"
CREW = "a crew of threads on one ledger"
SANITIZER = "the sanitizer reports no race"

# fault: the check that is enough to find it, and a clause that it must name.
DETERMINISTIC = {
    "refused-leaves-depth": (BOUND, "A2"),
    "refused-evicts-all": (REFUSED, "R9"),
    "id-wraps": (BOUND, "A8"),
    "id-is-task": (HANDOUT, "A8"),
    "id-reused": (RECENT, "A8"),
    "id-late": (LIFE, "A10"),
    "d5": (OLDEST, "R4"),
    "unknown-accepted": (UNKNOWN, "S8"),
    "restart": (LIFE, "S2"),
    "start-revives": (LIFE, "S4"),
    "end-needs-running": (LIFE, "S3"),
    "revive-evicted": (RECENT, "R4"),
    "double-decrement": (PLACE, "A1"),
    "error-overwritten": (LIFE, "R6"),
    "result-overwritten": (LIFE, "S4"),
    "completed-rewritten": (STAMPS, "R6"),
    "last-writer-wins": (LIFE, "S4"),
    "end-twice-accepted": (LIFE, "S4"),
    "evict-at-end": (RECENT, "R9"),
    "evict-by-read": (RECENT, "R9"),
    "payload-twice": (HANDOUT, "Q1"),
    "task-id-lost": (HANDOUT, "Q2"),
    "task-id-moved": (HANDOUT, "Q2"),
    "result-of-failed": (LIFE, "G2"),
    "result-not-done-first": (LIFE, "G1"),
    "result-consumed": (LIFE, "G1"),
    "result-gone-after-read": (LIFE, "R9"),
    "result-of-last": (HANDOUT, "G1"),
    "result-without-task": (LIFE, "Q2"),
    "depth-counts-retained": (PLACE, "A2"),
    "admit-one-more": (BOUND, "A3"),
    "admit-one-less": (BOUND, "A3"),
    "zero-is-unbounded": (ZERO, "A4"),
    "completed-early": (STAMPS, "S7"),
    "completed-before": (STAMPS, "S7"),
    "completed-unset": (STAMPS, "S7"),
    "error-empty-on-timeout": (LIFE, "S6"),
    "error-on-done": (LIFE, "S6"),
    "failed-is-done": (LIFE, "S3"),
    "forget-failed": (RECENT, "R4"),
    "forget-pending": (ORDERS, "R4"),
    "leak-on-timeout": (PLACE, "A1"),
    "leak-on-fail": (PLACE, "A1"),
    "leak-when-pending": (PLACE, "A1"),
    "state-unknown-word": (LIFE, "S1"),
    "born-running": (LIFE, "S2"),
    "no-ttl": (AGE, "R3"),
    "ttl-from-submission": (AGE, "R9"),
    "ttl-inclusive": (AGE, "R9"),
    "ttl-one-late": (AGE, "R3"),
    "ttl-evicts-live": (AGE, "R9"),
    "keep-one-more": (RECENT, "R4"),
    "keep-one-less": (RECENT, "R9"),
    "zero-keeps-all": (RECENT, "R4"),
    "no-count": (RECENT, "R4"),
    "evict-live": (BOUND, "R1"),
    "evict-newest": (ORDERS, "R5"),
    "evict-second": (ORDERS, "R5"),
    "evict-one-per-submit": (ORDERS, "R4"),
    "evict-all-at-once": (RECENT, "R9"),
    "wake-on-start": (WOKEN, "W4"),
    "wait-misses-terminal": (TERMINAL, "W1"),
    "wait-unknown-blocks": (NOBODY, "W7"),
    "wait-looks-up-again": (EVICTED, "W2"),
    "wait-polls": (WOKEN, "W2"),
    "wait-budget-tenfold": (BUDGET, "W4"),
    "wait-budget-half": (BUDGET, "W4"),
    "wait-fails-the-job": (BUDGET, "S3"),
    "wait-tells-pending": (BUDGET, "S5"),
    "wake-one": (WOKEN, "W2"),
    "wake-none-on-timeout": (WOKEN, "W2"),
    "wake-none-when-pending": (WOKEN, "W2"),
}
ALL_BUT_RACES = {check.name for check in CHECKS} - {RACES}


def findings(subject, *names, profile="quick", **options):
    """What these checks find."""
    events = []
    context = Context(subject, RunOptions(profile=profile, seed=1, **options), events.append)
    try:
        for check in CHECKS:
            if check.name in names:
                ledgers.run_check(check, context)
    finally:
        context.pulse.stop()
    return [event for event in events if isinstance(event, Finding)]


@pytest.mark.parametrize("fault", DETERMINISTIC)
def test_a_deterministic_fault_is_found_by_one_check(cpp_ledger, fault):
    check, clause = DETERMINISTIC[fault]
    with open_subject(f"exec:{cpp_ledger} {fault}") as subject:
        found = findings(subject, check)
    assert clause in {finding.clause for finding in found}
    assert all(finding.repro for finding in found)


def test_a_wait_that_never_returns_is_the_ledgers_fault_and_the_run_goes_on(cpp_ledger):
    with open_subject(f"exec:{cpp_ledger} wait-ignores-budget") as subject:
        found = findings(subject, BUDGET, LIFE)
    assert {finding.clause for finding in found} == {"W4"}
    assert "never answered" in found[0].why


# Enough for a machine that runs two threads at once only now and then.
PATIENCE = 20


@pytest.mark.parametrize(
    ("fault", "clauses"),
    [
        ("d1", {"S5", "S6", "S7", "R6", "G1"}),
        ("d2", {"A1", "A2", "A3", "A11"}),
        ("d3", {"A2", "A3"}),
        ("d4", {"W1", "W2"}),
        ("start-check-then-act", {"S2"}),
        ("end-check-then-act", {"S4", "S9"}),
        ("take-unlocked", {"Q1"}),
        ("increment-then-check", {"A2", "A3"}),
    ],
)
def test_a_race_is_found_behind_the_barrier(cpp_ledger, fault, clauses):
    events = []
    with open_subject(f"exec:{cpp_ledger} {fault}") as subject:
        context = Context(subject, RunOptions(seed=1), events.append)
        for race in SCENARIOS * PATIENCE:
            play(context, race)
            found = {event.clause for event in events if isinstance(event, Finding)}
            if found & clauses:
                break
        context.pulse.stop()
    assert found & clauses


@pytest.mark.parametrize("name", ["ok-refused-sweeps", "ok-submission-order", "ok-last-use"])
def test_a_ledger_that_is_correct_in_another_way_is_not_accused(cpp_ledger, name):
    with open_subject(f"exec:{cpp_ledger} {name}") as subject:
        assert findings(subject, *ALL_BUT_RACES) == []


@pytest.mark.parametrize("name", ["correct", "ok-own-clock"])
def test_a_correct_ledger_is_not_accused(cpp_ledger, name):
    docket = Docket(ledgers.SCOPE)
    ledgers.run(f"exec:{cpp_ledger} {name}", RunOptions(seed=2), docket)
    assert docket.findings == []
    assert exit_code(docket.verdicts(), ledgers.CORE) == 0


def test_the_sanitizer_alarms_for_the_racy_control_and_not_for_the_correct_ledger(
    cpp_ledger_under_tsan,
):
    verdicts = {}
    for name in ("correct", "d1"):
        docket = Docket(("C1", "C2"))
        with open_subject(f"exec:{cpp_ledger_under_tsan} {name}") as subject:
            assert subject.can("tsan")
            for check in CHECKS:
                if check.name in (RACES, SANITIZER):
                    run_with(docket, check, subject)
        verdicts[name] = [row.verdict for row in docket.verdicts()]
    assert verdicts["correct"] == [Verdict.PASS, Verdict.PASS]
    assert verdicts["d1"] == [Verdict.FAIL, Verdict.FAIL]


def run_with(publish, check, subject):
    context = Context(subject, RunOptions(seed=1), publish)
    try:
        ledgers.run_check(check, context)
    finally:
        context.pulse.stop()
