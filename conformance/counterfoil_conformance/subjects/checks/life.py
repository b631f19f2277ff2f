"""The life of one job, call by call: what is accepted, what is refused, what is seen (S, Q, G)."""

from itertools import product
from typing import Final

from counterfoil_conformance.subjects.books import NEVER_MS, Books
from counterfoil_conformance.subjects.registry import Context, check
from counterfoil_spec.ledger import Limits

_ROOMY: Final = Limits(8, NEVER_MS, 50)
_ENDS: Final = ("finish", "fail", "timeout")


@check("S1 S2 S3 S4 S5 S6 S8 S9 R6 G1 G2 A10")
def every_end_from_every_live_state_is_final(ctx: Context) -> None:
    """Each terminal call on a pending and on a running job, then every call that must bounce."""
    books = ctx.books(_ROOMY)
    for begin, how in product((False, True), _ENDS):
        job = books.admit()
        books.read_all(job)
        if begin:
            books.start(job)
            books.read_all(job)
            books.start(job)
            books.read_all(job)
        books.end(job, how)
        books.read_all(job)
        for again in (*_ENDS, "start"):
            if again == "start":
                books.start(job)
            else:
                books.do(again, job=job, **_LATE[again])
            books.read_all(job)
        books.wait(job, 1_000)


_LATE: Final = {
    "finish": {"result": "too late"},
    "fail": {"error": "too late"},
    "timeout": {"error": "too late"},
}


@check("S8 G3")
def an_unknown_id_is_refused_everywhere(ctx: Context) -> None:
    """Ids that were never issued, beside one that was and must not notice."""
    books = ctx.books(_ROOMY)
    job = books.admit()
    for stranger in (
        "",
        "no-such-job",
        job + "0",
        job[:-1],
        "job_0",
        "\u00e9\U0001f600",
        "a" * 2000,
    ):
        if stranger == job:
            continue
        books.start(stranger)
        for how in _ENDS:
            books.end(stranger, how)
        books.take(stranger)
        books.read_all(stranger, job)
    books.start(job)
    books.finish(job)
    books.read_all(job)


@check("Q1 Q2 G1")
def the_payload_is_handed_out_once_and_the_task_id_stays(ctx: Context) -> None:
    """Takes at every point of a job's life; jobs with the same task id; odd texts."""
    books = ctx.books(_ROOMY)
    texts = ("plain", 'quo"te\\', "\u4efb\u52a1 \U0001f600", "line\nbreak\ttab", "x" * 300)
    for number, text in enumerate(texts):
        job, twin = books.admit(text, f"payload {number}"), books.admit(text, f"twin {number}")
        if number % 2:
            books.start(job)
        if number != 3:
            _expect_take(ctx, books, job, text, f"payload {number}")
        _expect_take(ctx, books, job, text, f"payload {number}" if number == 3 else None)
        books.finish(job, text)
        books.result(job)
        _expect_take(ctx, books, job, text, None)
        _expect_take(ctx, books, twin, text, f"twin {number}")
        books.finish(twin, f"twin of {text}")
        books.result(twin)
        books.result(job)


def _expect_take(ctx: Context, books: Books, job: str, task_id: str, payload: str | None) -> None:
    reply = books.take(job)
    if reply.get("unknown"):
        return  # told by the judges
    if reply["payload"] != payload:
        why = (
            "the payload was handed out before: a second take gets none"
            if payload is None
            else "the first take hands out the payload that was submitted"
        )
        ctx.fail("Q1", why, allowed=repr(payload), actual=repr(reply["payload"]))
    elif reply["task_id"] == task_id:
        ctx.ok("Q1 Q2")


@check("Q1 Q2")
def a_large_payload_and_a_large_result_pass_whole(ctx: Context) -> None:
    """A megabyte each way."""
    books = ctx.books(_ROOMY)
    large = "0123456789abcdef" * 65_536
    job = books.admit("large", large)
    _expect_take(ctx, books, job, "large", large)
    books.finish(job, large)
    books.result(job)


@check("S7", needs=("completed_at",))
def the_completion_time_is_set_at_the_end_and_stays(ctx: Context) -> None:
    """Jobs that end in another order than they came, on a clock that moves between the calls."""
    books = ctx.books(_ROOMY)
    driven = ctx.subject.can("clock")

    def tick() -> None:
        if driven:
            books.advance(7)
        else:
            books.pause(0.003)

    jobs = []
    for _ in range(4):
        jobs.append(books.admit())
        tick()
    books.start(jobs[0])
    tick()
    for job, how in zip((jobs[2], jobs[0], jobs[3], jobs[1]), (*_ENDS, "finish"), strict=True):
        books.snapshot(job)
        books.end(job, how)
        books.snapshot(job)
        tick()
        for again in _ENDS:
            books.end(job, again)
        books.snapshot(job)
        jobs.append(books.admit())
        books.snapshot(jobs[-1])
        tick()
    for job in jobs:
        books.snapshot(job)


@check("Q3", needs=("payload_refs",))
def the_ledger_lets_go_of_a_payload_it_has_handed_out(ctx: Context) -> None:
    """A weak reference tells whether anything still holds it."""
    books = ctx.books(_ROOMY)
    job = books.admit()
    held = ctx.subject.call("holds_payload", job=job)["held"]
    books.take(job)
    if not held:
        ctx.undecided("Q3", "the payload was not held even before it was taken")
    elif ctx.subject.call("holds_payload", job=job)["held"]:
        ctx.fail("Q3", "the ledger still refers to the payload after it was taken")
    else:
        ctx.ok("Q3")
