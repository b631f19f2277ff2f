"""Retention: who is gone after a submit, and who must still be there (R).

By count the contract leaves the order open (completion, submission, last use), so the checks below
provoke, and the judges, who know every order, decide. Where jobs are submitted, completed and never
read again in one order, all orders agree, and the answer is exact.
"""

from typing import Final

from counterfoil_conformance.subjects.books import NEVER_MS, Books
from counterfoil_conformance.subjects.registry import Context, check
from counterfoil_spec.ledger import Limits

_ENDS: Final = ("finish", "fail", "timeout")


@check("R4 R6 R7 R9 R5 S8")
def by_count_the_most_recent_stay(ctx: Context) -> None:
    """One order of submission, completion and use; then nobody but the excess is gone."""
    for keep in (0, 1, 3, -1):
        books = ctx.books(Limits(8, NEVER_MS, keep))
        jobs = []
        for number in range(8):
            jobs.append(books.admit(f"task {number}"))
            books.start(jobs[-1])
            books.end(jobs[-1], _ENDS[number % 3])
        books.read_all(*jobs)
        books.admit()
        books.read_all(*jobs)
        books.admit()
        books.read_all(*jobs)
        for job in jobs:
            books.start(job)
            books.end(job, "finish")
            books.take(job)
        books.read_all(*jobs)


@check("R4 R9")
def by_count_the_default_bound_is_kept_whole(ctx: Context) -> None:
    """As many jobs as `async_max_completed` is by default, and some more: no smaller cap hides."""
    keep = 100
    books = ctx.books(Limits(4, NEVER_MS, keep))
    books.sequential = None  # too many choices of victims to follow each
    jobs: list[str] = []
    for more in (keep, 5):
        for number in range(more):
            jobs.append(books.admit(f"task {number}"))
            books.end(jobs[-1], _ENDS[number % 3])
        books.admit("sweeps")
        for job in jobs:
            books.snapshot(job)


@check("R4 R9 R5")
def by_count_holds_for_every_order_of_completion(ctx: Context) -> None:
    """Jobs complete in orders unlike that of their submission."""
    orders = ((4, 3, 2, 1, 0), (2, 0, 4, 1, 3), (1, 2, 3, 4, 0))
    for keep, order in ((2, orders[0]), (2, orders[1]), (3, orders[2]), (1, orders[0])):
        books = ctx.books(Limits(8, NEVER_MS, keep))
        jobs = [books.admit(f"task {number}") for number in range(5)]
        for index in order:
            books.end(jobs[index], _ENDS[index % 3])
        for _ in range(2):
            books.admit()
            books.read_all(*jobs)
        _expect_an_order(ctx, books)


def _expect_an_order(ctx: Context, books: Books) -> None:
    """R5: what was evicted so far follows one of the orders."""
    if books.sequential is None:
        return
    for warning in books.sequential.warnings:
        ctx.fail(warning.clause, warning.why, should=True)
    if not books.sequential.warnings:
        ctx.ok("R5")


@check("R1 R4")
def a_job_that_was_running_when_it_was_the_oldest_is_evicted_in_its_turn(ctx: Context) -> None:
    """Completions overtake a long job, sweeps pass it by, and then it ends (D5)."""
    for keep in (0, 1, 2):
        books = ctx.books(Limits(2, NEVER_MS, keep))
        for _ in range(4):
            old = books.admit("old")
            books.start(old)
            for number in range(keep + 2):
                job = books.admit(f"young {number}")
                books.finish(job)
                books.snapshot(old)
            books.finish(old)
            jobs = []
            for number in range(keep + 2):
                jobs.append(books.admit(f"later {number}"))
                books.finish(jobs[-1])
                books.read_all(old, *jobs)


@check("R1 R4 R9")
def retention_does_not_wear_off(ctx: Context) -> None:
    """Hundreds of rounds in random order; the retained stay within the bound."""
    dice = ctx.dice
    books = ctx.books(Limits(3, NEVER_MS, 2))
    live: list[str] = []
    recent: list[str] = []
    for _ in range(300 if ctx.is_full else 80):
        while len(live) < 3:
            live.append(books.admit())
        for job in recent:
            books.snapshot(job)
        for _ in range(dice.randint(1, 3)):
            job = live.pop(dice.randrange(len(live)))
            if dice.random() < 0.5:
                books.start(job)
            books.end(job, dice.choice(_ENDS))
            recent.append(job)
        recent = recent[-6:]
        for job in live:
            books.snapshot(job)


@check("R3 R9 R2 R6", needs=("clock",))
def by_age_strictly_and_only_inside_a_submit(ctx: Context) -> None:
    """Each side of the TTL, counted from completion; nothing goes by time or by reads alone."""
    for ttl in (0, 1, 10):
        books = ctx.books(Limits(8, ttl, 50))
        for how in _ENDS:
            job, kept = books.admit(), books.admit()
            books.advance(5)
            books.start(job)
            books.advance(5)
            books.end(job, how)
            books.admit()
            books.read_all(job)
            books.advance(ttl)
            books.admit()
            books.read_all(job, kept)
            books.advance(1)
            books.read_all(job, kept)
            last = books.admit()
            books.read_all(job, kept, last)
            for live in _live(books):
                books.end(live, how)
                books.snapshot(live)
            books.advance(2 * ttl + 2)
            books.read_all(kept, last)
            ctx.ok("R2 R9")
            books.admit()
            books.read_all(kept, last)
            ctx.ok("R3")


def _live(books: Books) -> list[str]:
    """Jobs that were admitted and not ended, as the calls tell."""
    ended = {call.job for call in books.calls if call.op in _ENDS}
    issued = [(call.reply or {}).get("job") for call in books.calls if call.op == "submit"]
    return [job for job in issued if isinstance(job, str) and job not in ended]


@check("R1 R3 R9", needs=("clock",))
def by_age_whatever_the_clock_reads(ctx: Context) -> None:
    """A month and a year of milliseconds: 32 bits are too few for either."""
    for months in (1, 12):
        books = ctx.books(Limits(4, 10, 50))
        running, old = books.admit(), books.admit()
        books.finish(old)
        for _ in range(3 * months):
            books.advance(10**9)
        books.admit()
        books.read_all(old, running)
        young = books.admit()
        books.finish(young)
        books.advance(10)
        books.admit()
        books.read_all(young, running)


@check("R1 R2 R3 R9")
def by_age_in_real_time(ctx: Context) -> None:
    """For ledgers that keep their own clock: well before and well after a short TTL."""
    if ctx.subject.can("clock"):
        return
    books = ctx.books(Limits(8, 400, 50))
    running, old, young = books.admit(), books.admit(), books.admit()
    books.start(running)
    books.finish(old)
    books.admit()
    books.read_all(old)
    books.pause(0.5)
    if books.snapshot(old).get("unknown"):
        ctx.fail("R2", "a job past its TTL was gone though nothing had been submitted since")
    else:
        ctx.ok("R2")
    books.fail(young)
    books.admit()
    books.read_all(old, young, running)
    books.pause(0.5)
    books.admit()
    books.read_all(old, young, running)


@check("R9 R2 A6")
def a_refused_submit_evicts_nothing_that_may_stay(ctx: Context) -> None:
    """A full queue, retained jobs within the bound, refusals: nobody is gone."""
    books = ctx.books(Limits(2, NEVER_MS, 3))
    kept = [books.admit(f"kept {number}") for number in range(2)]
    for job in kept:
        books.finish(job)
    live = [books.admit(f"live {number}") for number in range(2)]
    for _ in range(4):
        books.submit("refused")
        books.read_all(*kept, *live)
    books.start(live[0])
    books.fail(live[0])
    books.submit("admitted")
    books.submit("refused")
    books.read_all(*kept, *live)


@check("R7 A8")
def an_evicted_id_never_comes_back(ctx: Context) -> None:
    """Every transition on ids that are gone, and many new jobs after them."""
    books = ctx.books(Limits(4, NEVER_MS, 0))
    gone = []
    for number in range(30):
        job = books.admit()
        books.finish(job)
        gone.append(job)
        if number % 3 == 0:
            for old in gone[-4:-1]:
                books.start(old)
                books.end(old, _ENDS[number % 3])
                books.take(old)
                books.read_all(old)
    books.admit()
    books.read_all(*gone)
