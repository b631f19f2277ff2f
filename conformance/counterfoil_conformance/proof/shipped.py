"""Lemmas about the shipped server: each of its decisions is the law's, for all integers.

The server decides with pure functions in one module of its own (`counterfoil_server.rules`); its
ledger and its routes call them. Here each is set beside the function of the law that it must agree
with. The server is loaded by name, as data to be judged: nothing of the kit is built on it, and
where it is not installed there are no such lemmas.

Texts are the solver's hard case: of the parser of a wait budget it confirms what any character of
Unicode does in a short text, and the tests go through all short texts.
"""

import importlib
from typing import Any, Final

from counterfoil_spec import ledger as law
from counterfoil_spec.ledger import Job, Limits, Outcome, State
from counterfoil_spec.lemmas.table import Broken, broken, lemma

__all__ = ["RULES"]

RULES: Final[Any] = importlib.import_module("counterfoil_server.rules")


def _admits(depth: int, max_queue: int) -> bool:
    step = law.admit(law.empty_ledger(Limits(max_queue, 0, 0))._replace(depth=depth))
    return step.reply.outcome is Outcome.ADMITTED


@lemma("A3 A4", "rules.has_place", (3, 4), (4, 4), (0, -1))
def the_server_admits_as_the_law_does(depth: int, max_queue: int) -> Broken:
    """Whatever the depth and the bound, the server admits exactly when the law does.

    post: _ == ()
    """
    return broken(("A3", bool(RULES.has_place(depth, max_queue)) == _admits(depth, max_queue)))


@lemma("R3", "rules.has_expired", (10, 20, 10), (10, 21, 10))
def the_server_expires_as_the_law_does(completed_at: int, now: int, ttl_ms: int) -> Broken:
    """Whatever the times and the TTL, a job expires in the server exactly when the law says so.

    post: _ == ()
    """
    job = Job(0, State.DONE, "task", None, completed_at, completed_at, "result")
    expired = law.has_expired(job, Limits(1, ttl_ms, 1), now)
    return broken(("R3", bool(RULES.has_expired(completed_at, now, ttl_ms)) == expired))


def _retained(count: int) -> tuple[Job, ...]:
    return tuple(Job(n, State.DONE, "task", None, 0, 0, "result") for n in range(count))


@lemma("R4 R9", "rules.excess", (3, 2), (3, -2), (0, 0))
def the_server_counts_as_the_law_does(retained: int, max_completed: int) -> Broken:
    """The server evicts by count as many as the law: confirmed for up to four retained jobs.

    pre: 0 <= retained <= 4
    post: _ == ()
    """
    jobs = _retained(retained)
    left = law.survivors(jobs, Limits(1, 0, max_completed), 0)
    return broken(("R4", RULES.excess(retained, max_completed) == len(jobs) - len(left)))


@lemma("R4 R9", "rules.excess", (100_001, 100), (5, -2))
def the_server_evicts_just_the_excess(retained: int, max_completed: int) -> Broken:
    """After so many evictions the bound is met, and no job that fits within it is gone.

    pre: retained >= 0
    post: _ == ()
    """
    gone, cap = RULES.excess(retained, max_completed), max(max_completed, 0)
    return broken(
        ("R4", retained - gone <= cap),
        ("R9", 0 <= gone <= retained and (gone == 0 or retained - gone == cap)),
    )


@lemma("T1 T4 T6", "rules.is_overdue", (10, 15, 5, True), (10, 15, 0, False))
def the_server_ends_budgets_as_the_law_does(
    submitted_at: int, now: int, timeout_ms: int, running: bool
) -> Broken:
    """Whatever the times and the budget, a live job is overdue in the server as in the law.

    post: _ == ()
    """
    state = State.RUNNING if running else State.PENDING
    overdue = law.is_overdue(
        Job(0, state, "task", "", submitted_at), Limits(1, 1, 1, timeout_ms), now
    )
    return broken(("T1", bool(RULES.is_overdue(submitted_at, now, timeout_ms)) == overdue))


@lemma("H8", "rules.elapsed_ms", (10, 12, 30, 5, True), (10, 12, 30, 5, False))
def elapsed_time_never_decreases(
    submitted_at: int, completed_at: int, now: int, later_ms: int, ended: bool
) -> Broken:
    """From admission on it is never negative, never falls, and stands still once the job ended.

    pre: submitted_at <= completed_at <= now and later_ms >= 0
    post: _ == ()
    """
    end = completed_at if ended else None
    first = RULES.elapsed_ms(submitted_at, end, now)
    second = RULES.elapsed_ms(submitted_at, end, now + later_ms)
    before_its_end = RULES.elapsed_ms(submitted_at, None, completed_at)
    return broken(
        ("H8", 0 <= before_its_end <= first <= second),
        ("H8", first == second if ended else second - first == later_ms),
    )


@lemma("W5", "rules.capped_wait_ms", (150,), (300_001,), (0,), (10**30,))
def a_wait_budget_is_capped_and_never_wrapped(asked_ms: int) -> Broken:
    """Above 300 s means 300 s, 0 and below means 30 s, anything between means what it says.

    post: _ == ()
    """
    budget = RULES.capped_wait_ms(asked_ms)
    return broken(
        ("W5", asked_ms <= 300_000 or budget == 300_000),
        ("W5", asked_ms > 0 or budget == 30_000),
        ("W5", not 0 < asked_ms <= 300_000 or budget == asked_ms),
        ("W5", RULES.capped_wait_ms(None) == 30_000),
    )


def _parsed(text: str) -> int | None:
    """What the server reads; None where it refuses."""
    try:
        return int(RULES.parse_wait_ms(text))
    except ValueError:
        return None


def _digit(code: int) -> int | None:
    """The value of a decimal digit, None for any other character."""
    return code - ord("0") if ord("0") <= code <= ord("9") else None


@lemma(
    "W5 W10",
    "rules.parse_wait_ms",
    (ord("7"),),
    (ord("e"),),
    (ord("\N{ARABIC-INDIC DIGIT THREE}"),),
)
def a_wait_budget_is_never_read_in_part(code: int) -> Broken:
    """Any one character of Unicode, alone or after a digit, is a digit or the text is refused.

    pre: 0 <= code <= 0x10FFFF
    post: _ == ()
    """
    letter, digit = chr(code), _digit(code)
    return broken(
        ("W10", _parsed(letter) == digit),
        ("W10", _parsed("1" + letter) == (None if digit is None else 10 + digit)),
    )


@lemma("W5 W10", "rules.parse_wait_ms", (ord("-"),), (ord("+"),), (ord("3"),), (ord(" "),))
def only_a_sign_or_a_digit_begins_a_wait_budget(code: int) -> Broken:
    """Any one character of Unicode before a digit is a sign, or a digit, or the text is refused.

    pre: 0 <= code <= 0x10FFFF
    post: _ == ()
    """
    digit = _digit(code)
    meant = None if digit is None else digit * 10 + 7
    if code == ord("+"):
        meant = 7
    if code == ord("-"):
        meant = -7
    return broken(("W10", _parsed(chr(code) + "7") == meant))


@lemma("H4", "rules.retry_after_s", (4, 2, 800), (10**9, 0, 10**9))
def retry_after_is_between_a_second_and_a_minute(ahead: int, workers: int, run_ms: int) -> Broken:
    """Whatever the load, the advice to come back is between 1 and 60 seconds.

    pre: 0 <= workers <= 3
    post: _ == ()
    """
    return broken(("H4", 1 <= RULES.retry_after_s(ahead, workers, run_ms) <= 60))
