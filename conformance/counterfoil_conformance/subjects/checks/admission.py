"""Admission: the bound, the place that comes back once, the id that is always new (A)."""

from itertools import product
from typing import Final

from counterfoil_conformance.subjects.books import NEVER_MS, Books
from counterfoil_conformance.subjects.registry import Context, check
from counterfoil_spec.ledger import Limits

_ENDS: Final = ("finish", "fail", "timeout")


def _fill(books: Books, extra: int = 2) -> list[str]:
    """Submit until the bound and beyond it; the ids that were admitted."""
    bound = max(books.limits.max_queue, 0)
    tries = (books.submit(f"fill {k}") for k in range(bound + extra))
    return [job for job in tries if job is not None]


@check("A1 A2 A3 A6 A11")
def exactly_the_bound_is_admitted(ctx: Context) -> None:
    """Fill, overflow, empty and fill again, for small bounds and the default one."""
    for bound in (1, 2, 3, 16):
        books = ctx.books(Limits(bound, NEVER_MS, 100))
        for how in (*_ENDS, "finish"):
            jobs = _fill(books, extra=0)
            books.depth()
            books.submit("one too many")
            books.submit("two too many")
            books.depth()
            for number, job in enumerate(jobs):
                if number % 2:
                    books.start(job)
                books.read_all(job)
            for job in jobs:
                books.end(job, how)
                books.depth()
            _expect_room(ctx, books)
        _fill(books)
        books.depth()


def _expect_room(ctx: Context, books: Books) -> None:
    """A11: nothing is pending or running, so the whole bound is free."""
    depth, bound = books.depth(), books.limits.max_queue
    jobs = _fill(books, extra=0)
    if depth == 0 and len(jobs) == bound:
        ctx.ok("A11")
    else:
        why = "every admitted job is terminal, so depth is 0 and the whole bound can be admitted"
        actual = f"depth {depth}, {len(jobs)} admitted"
        ctx.fail("A11", why, allowed=f"depth 0, {bound} admitted", actual=actual)
    for job in jobs:
        books.finish(job)


@check("A4 A6")
def a_bound_of_zero_or_less_admits_nothing(ctx: Context) -> None:
    for bound in (0, -1, -16):
        books = ctx.books(Limits(bound, NEVER_MS, 10))
        books.depth()
        for _ in range(3):
            books.submit()
            books.depth()


@check("A5 A1 S4")
def a_place_comes_back_once(ctx: Context) -> None:
    """Every pair of terminal calls on one job of a full queue, then exactly one more fits."""
    for first, second in product(_ENDS, _ENDS):
        books = ctx.books(Limits(3, NEVER_MS, 10))
        jobs = _fill(books, extra=1)
        if first != second:
            books.start(jobs[0])
        books.end(jobs[0], first)
        books.snapshot(jobs[0])
        books.depth()
        books.end(jobs[0], second)
        books.depth()
        books.end(jobs[0], first)
        books.start(jobs[0])
        books.depth()
        _fill(books, extra=0)
        books.depth()


@check("A5 A1 A11")
def neither_refusals_nor_evictions_nor_reads_move_the_depth(ctx: Context) -> None:
    """Long use at the bound, with eviction, strangers and refused calls in between."""
    books = ctx.books(Limits(2, NEVER_MS, 1))
    dice = ctx.dice
    gone: list[str] = ["no-such-job"]
    for turn in range(25):
        jobs = _fill(books, extra=2)
        books.depth()
        dice.shuffle(jobs)
        for job in jobs:
            if dice.random() < 0.5:
                books.start(job)
            books.end(dice.choice(gone), dice.choice(_ENDS))
            if turn % 3 == 0:
                books.take(job)
            books.end(job, dice.choice(_ENDS))
            books.end(job, dice.choice(_ENDS))
            books.depth()
        gone += jobs
        gone = gone[-6:]


@check("A8 A10")
def every_id_is_new(ctx: Context) -> None:
    """Many jobs under one task id, past eviction, so that a recycled slot or counter shows."""
    books = ctx.books(Limits(4, NEVER_MS, 0))
    for _ in range(400 if ctx.is_full else 100):
        for job in _fill(books, extra=1):
            books.snapshot(job)
            books.finish(job)
