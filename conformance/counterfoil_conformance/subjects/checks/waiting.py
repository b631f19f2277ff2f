"""Waiting in real time: woken by the end, never by a start, never asleep past it (W).

Budgets are either short and meant to run out, or so long that a wait which reaches them has slept
through its wake-up. Lateness is judged against the tolerance, the round trip and what else was slow
at that moment (see `oracle/waiting`); a wait that is not answered at all is told here.
"""

from typing import Final

from counterfoil_conformance.errors import Violation
from counterfoil_conformance.subjects.books import NEVER_MS, Posted
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


@check("W1")
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


@check("W4")
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


@check("W7")
def a_wait_on_an_unknown_id_returns_at_once(ctx: Context) -> None:
    books = ctx.books(Limits(8, NEVER_MS, 0))
    gone = books.admit()
    books.finish(gone)
    books.admit()
    for job in (gone, "no-such-job"):
        books.snapshot(job)
        wait = books.post(None, "wait", job=job, budget_ms=_LONG_MS)
        why = "the id was unknown before the wait"
        if wait.reply(_LONG_MS / 1000 + _PATIENCE_S) is None:
            ctx.subject.restart()
            raise Violation("W7", f"{why}, and it was never answered")
        if _took_s(wait) * 1000 > ctx.tolerance_ms:
            raise Violation("W7", f"{why}, and it was answered after {_took_s(wait):.3f} s")
        ctx.ok("W7")


@check("W2 W6", needs=("lanes",))
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


@check("W2 W6", needs=("lanes",))
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


@check("W4", needs=("lanes",))
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


@check("W7", needs=("lanes",))
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
