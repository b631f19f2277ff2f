"""Waiting in real time: woken by the end, never by a start, never asleep past it (W).

Budgets are either short and meant to run out, or so long that a wait which reaches them has slept
through its wake-up. Lateness is judged against the tolerance, the round trip and what else was slow
at that moment (see `oracle/waiting`); a wait that is not answered at all is told here.
"""

import time
from typing import Final

from counterfoil_conformance.errors import Violation
from counterfoil_conformance.subjects.books import NEVER_MS, Books, Posted
from counterfoil_conformance.subjects.registry import Context, Stop, check
from counterfoil_spec.ledger import Limits

_ROOMY: Final = Limits(8, NEVER_MS, 50)
_ENDS: Final = ("finish", "fail", "timeout")
_LONG_MS: Final = 2_000
# How long past its due time we listen for an answer before the waiter counts as lost.
_PATIENCE_S: Final = 5.0


def _collect(ctx: Context, posted: list[Posted], due_s: float, clause: str, why: str) -> None:
    """Collect the answers of waits.

    Raises:
        Violation: one was not answered; the driver has been restarted.
        Stop: one was so late that to go on would only cost time.
    """
    late_s = max(
        _took_s(wait) if wait.reply(due_s + _PATIENCE_S) is not None else 0.0 for wait in posted
    )
    silent = sum(not wait.answered for wait in posted)
    if silent:
        ctx.subject.restart()
        raise Violation(clause, f"{why} ({silent} of {len(posted)} were never answered)")
    if late_s > due_s + 2 * ctx.tolerance_ms / 1000:
        raise Stop


def _took_s(wait: Posted) -> float:
    answer = wait.ticket.answer()
    return (answer.return_us - answer.call_us) / 1e6


@check("W1", second_look=True)
def a_wait_on_a_terminal_job_returns_at_once(ctx: Context) -> None:
    books = ctx.books(_ROOMY)
    for how in _ENDS:
        for begin in (False, True):
            job = books.admit()
            if begin:
                books.start(job)
            books.end(job, how)
            wait = books.post(None, "wait", job=job, budget_ms=_LONG_MS)
            _collect(ctx, [wait], 0.0, "W1", "the job was terminal before the wait")
            books.snapshot(job)


@check("W4", second_look=True)
def a_wait_whose_budget_runs_out_tells_the_current_state(ctx: Context) -> None:
    books = ctx.books(_ROOMY)
    for budget_ms, begin in ((1, False), (40, True), (300, False)):
        job = books.admit()
        if begin:
            books.start(job)
        wait = books.post(None, "wait", job=job, budget_ms=budget_ms)
        why = f"a budget of {budget_ms} ms ran out and the wait did not return"
        _collect(ctx, [wait], budget_ms / 1000, "W4", why)
        books.snapshot(job)
        books.finish(job)
        books.read_all(job)


@check("W7", second_look=True)
def a_wait_on_an_unknown_id_returns_at_once(ctx: Context) -> None:
    books = ctx.books(Limits(8, NEVER_MS, 0))
    gone = books.admit()
    books.finish(gone)
    books.admit()
    for job in (gone, "no-such-job"):
        books.snapshot(job)
        took_s = min(_unknown_wait_s(ctx, books, job) for _ in range(2))
        if took_s * 1000 > ctx.tolerance_ms:
            why = f"the id was unknown before the wait, and it was answered after {took_s:.3f} s"
            raise Violation("W7", why)
        ctx.ok("W7")


def _unknown_wait_s(ctx: Context, books: Books, job: str) -> float:
    """How long a wait on an unknown id takes."""
    wait = books.post(None, "wait", job=job, budget_ms=_LONG_MS)
    if wait.reply(_LONG_MS / 1000 + _PATIENCE_S) is None:
        ctx.subject.restart()
        raise Violation("W7", "the id was unknown before the wait, and it was never answered")
    return _took_s(wait)


@check("W2 W6", needs=("lanes",), second_look=True)
def all_waiters_are_woken_by_the_end_and_by_nothing_else(ctx: Context) -> None:
    """Four waiters on a pending job; it starts, it ends; waiters with short budgets beside them."""
    books = ctx.books(_ROOMY)
    for number, how in enumerate(_ENDS):
        job = books.admit()
        waits = [books.post(lane, "wait", job=job, budget_ms=_LONG_MS) for lane in range(1, 5)]
        short = books.post(5, "wait", job=job, budget_ms=60)
        books.pause(0.03)
        if number:
            books.start(job)
        books.pause(0.06)
        books.snapshot(job)
        books.end(job, how)
        books.read_all(job)
        why = "the job ended while they waited, and waiters never returned"
        _collect(ctx, [*waits, short], 0.1, "W2", why)


@check("W2 W6", needs=("lanes",), second_look=True)
def an_end_close_to_the_wait_is_not_missed(ctx: Context) -> None:
    """Wait and terminal call are sent together, again and again, at every small distance."""
    books = ctx.books(Limits(8, NEVER_MS, 500))
    for turn in range(150 if ctx.is_full else 40):
        job = books.admit()
        waits = [books.post(lane, "wait", job=job, budget_ms=_LONG_MS) for lane in (1, 2)]
        if turn % 4:
            books.pause(turn % 4 * 0.0004)
        books.end(job, _ENDS[turn % 3])
        books.snapshot(job)
        why = "the job ended while they waited, and waiters never returned"
        _collect(ctx, waits, 0.1, "W2", why)


@check("W4", needs=("lanes",), second_look=True)
def waiters_keep_their_own_budgets(ctx: Context) -> None:
    """Different budgets on one job: each returns at its own time, the others sleep on."""
    books = ctx.books(_ROOMY)
    job = books.admit()
    waits = [
        books.post(lane, "wait", job=job, budget_ms=budget)
        for lane, budget in ((1, 250), (2, 60), (3, 150), (4, _LONG_MS))
    ]
    books.start(job)
    _collect(ctx, waits[:3], 0.25, "W4", "budgets ran out and waits did not return")
    books.finish(job)
    books.snapshot(job)
    _collect(ctx, waits[3:], 0.3, "W2", "the job ended while it waited")


@check("W4", needs=("lanes",), second_look=True)
def the_ends_of_other_jobs_move_no_budget(ctx: Context) -> None:
    """Where all jobs share one wake-up, each end wakes all: the others sleep on, and no longer.

    The job starts in between: what is told when the budget is over is the state then.
    """
    books = ctx.books(_ROOMY)
    job = books.admit()
    short_ms, long_ms = 300, 6_000 if ctx.is_full else 1_500
    short = books.post(1, "wait", job=job, budget_ms=short_ms)
    long = books.post(2, "wait", job=job, budget_ms=long_ms)
    books.pause(0.02)
    books.start(job)
    until = time.monotonic() + (short_ms + 3 * ctx.tolerance_ms) / 1000
    while time.monotonic() < until:
        books.finish(books.admit())
        books.pause(0.03)
    _collect(ctx, [short], short_ms / 1000, "W4", "its budget ran out and it did not return")
    _collect(ctx, [long], long_ms / 1000, "W4", "its budget ran out and it did not return")
    books.snapshot(job)


@check("W7", needs=("lanes",), second_look=True)
def a_job_evicted_under_its_waiters_does_not_hang_them(ctx: Context) -> None:
    """Nothing is retained: the submit right after the end evicts the job they wait for."""
    books = ctx.books(Limits(8, NEVER_MS, 0))
    for turn in range(10):
        job = books.admit()
        waits = [books.post(lane, "wait", job=job, budget_ms=_LONG_MS) for lane in (1, 2, 3)]
        books.pause(0.005 * (turn % 3))
        books.finish(job)
        books.end(books.admit(), "fail")
        why = "the job was evicted right after its end, and waiters never returned"
        _collect(ctx, waits, 0.1, "W7", why)
        ctx.ok("W7")
