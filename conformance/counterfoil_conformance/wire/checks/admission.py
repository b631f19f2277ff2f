"""A2 A3 A5 A6 A11 T5 Q4: the bound, and who takes and gives back a place.

One filling of the queue serves many questions. First, jobs of every kind of ending, one after
another and more of each than there are places, beside a slow one: a place that is not given back
refuses the next (A5, T5), one given back twice is free too often later. Then a burst of more
submits than there are places, their last bytes together, so that a check and an increment that are
two steps let one through too many (A2, A3). While the queue is full and its first jobs run (a place
released at the start instead of the end would be free now), more submits are refused. Then, each
time a read shows a job terminal, the next submit is admitted (A5), and the one after it refused
again; and no job stays pending while a worker is idle (Q4, T5).

The certain numbers come from intervals: a job is live for certain from the return of its submit to
the call of the last read that saw it live.
"""

import asyncio
from typing import Final

from counterfoil_conformance.wire.answer import Answer, now_us
from counterfoil_conformance.wire.census import census
from counterfoil_conformance.wire.checks.waiting import judge_waiters
from counterfoil_conformance.wire.client import Connection
from counterfoil_conformance.wire.idle import IdleWatch
from counterfoil_conformance.wire.reading import Reading
from counterfoil_conformance.wire.registry import ALL, Context, check
from counterfoil_conformance.wire.session import Job, Submitted
from counterfoil_conformance.wire.steps import admit, ended, submitted, waited

__all__ = ["too_few"]

_READ_AT_ONCE: Final = 24
_ENDINGS: Final = ("quick", "failing", "crashing", "echo")


@check(
    "A2 A3 A5 A6 A11 S9 T5 W3 Q4",
    needs=("bodies.slow", "bodies.quick"),
    places=ALL,
    order=60,
    limit_s=180,
)
async def a_full_queue_is_full_and_a_free_place_is_free(ctx: Context) -> None:
    """Jobs of every ending, then a burst over the bound, then every place that comes free."""
    bound = ctx.session.max_queue
    if bound is None or bound < 1:
        return
    holder = (await ctx.session.submit("slow")).job if bound > 1 else None
    for kind in _ENDINGS:
        if ctx.target.has(f"bodies.{kind}"):
            beside = int(holder is not None)
            if not await _one_after_another(ctx, kind, min(bound, 24) + 2, beside):
                break  # nothing runs at all: the others would show the same
    held = holder is not None and not (await ctx.session.status(holder)).terminal
    sent = await ctx.session.burst("slow", bound + max(4, bound // 2))
    jobs = [one.job for one in sent if one.job is not None]
    if held and holder is not None:
        jobs.append(holder)
    await asyncio.gather(*(ctx.session.status(job) for job in jobs))
    _judge_burst(ctx, bound, sent, jobs)
    # Two of each: a start may wake one of several waiters.
    waits = [(job, asyncio.create_task(waited(ctx, job, 20_000))) for job in jobs for _ in "ab"]
    await asyncio.sleep(0.12)  # the first of them run by now
    await census(ctx)
    await _stays_full(ctx, jobs, bound)
    await census(ctx)
    await _places_come_free(ctx, jobs, bound)
    await _pending_waiters(ctx, waits)


def _judge_burst(ctx: Context, bound: int, sent: list[Submitted], jobs: list[Job]) -> None:
    """As many live jobs as places: more is A3 (and A5), fewer a place that never came back."""
    live = [job for job in jobs if not job.terminal]
    answers = [one.answer for one in sent]
    if len(live) > bound:
        for clause in ("A3", "A5"):
            ctx.fail(
                clause,
                f"{len(live)} jobs are live in a queue of {bound}: the check and the increment "
                "are two steps, or an earlier end released a place twice",
                allowed=f"{bound} live, the others 429",
                answers=[one.answer for one in sent if one.job is not None][-2:],
            )
    elif len(jobs) >= bound:
        for clause in ("A2", "A3", "A5", "A11"):
            ctx.ok(clause)
    elif all(answer.ok for answer in answers) and ctx.target.exclusive:
        too_few(ctx, len(jobs), bound, [one.answer for one in sent if one.refused][:1])
    for one in sent:
        if one.refused and one.answer.field("job_id") is not None:
            ctx.fail("A6", "a 429 carries a job_id", allowed="no id", answers=(one.answer,))
        elif one.refused:
            ctx.ok("A6")


def too_few(ctx: Context, admitted: int, bound: int, answers: list[Answer]) -> None:
    """An idle queue has fewer places than it should: an end or a refusal kept some."""
    for clause in ("A5", "A11"):
        ctx.fail(
            clause,
            f"only {admitted} of {bound} places of an idle queue could be taken",
            allowed=f"{bound} admitted",
            answers=answers,
        )


async def _stays_full(ctx: Context, jobs: list[Job], bound: int) -> None:
    """While all places are taken, running jobs included, nobody else gets in."""
    for _ in range(3):
        sent = await ctx.session.submit("slow")
        readings = await asyncio.gather(*(ctx.session.status(job) for job in jobs))
        certain = sum(_live_after(r, sent.answer) for r in readings)
        if sent.job is not None:
            if certain >= bound:
                states = ", ".join(str(r.state) for r in readings)
                ctx.fail(
                    "A3",
                    f"a submit was admitted while {certain} jobs were live ({states}) in a queue "
                    f"of {bound}",
                    allowed="429",
                    answers=(sent.answer,),
                )
            jobs.append(sent.job)
            return
        if sent.refused and certain >= bound:
            ctx.ok("A3")


def _live_after(reading: Reading, answer: Answer) -> bool:
    """Whether a read that began after an answer shows its job live."""
    return reading.state in ("pending", "running") and reading.answer.call_us >= answer.return_us


async def _places_come_free(ctx: Context, jobs: list[Job], bound: int) -> None:
    """Each time a read shows an end: one submit is admitted at once, and the next one refused.

    The judge decides on each answer with all intervals in view; here the moments are made. Slow
    jobs replace the first two that end (to see a place released twice), quick ones the others.
    """
    first, known, idle = set(jobs), list(jobs), IdleWatch(ctx.session)
    deadline_us = now_us() + int(ctx.session.patience_s() * 1e6)
    over: set[Job] = set()
    while not first <= over and now_us() < deadline_us:
        live = [job for job in known if job not in over]
        await asyncio.gather(*(ctx.session.status(job) for job in live[:_READ_AT_ONCE]))
        for job in (job for job in live if job.terminal):
            over.add(job)
            kind = "slow" if len(over) <= 2 else "quick"
            sent = await ctx.session.submit(kind)
            if sent.job is not None:
                ctx.ok("A5")
                known.append(sent.job)
                again = await ctx.session.submit(kind)
                known += [again.job] if again.job is not None else []
            elif sent.refused and ctx.target.exclusive:
                _refused_wrongly(ctx, job, sent, bound)
        if len(live) <= _READ_AT_ONCE:  # else some were not read, and only seem to be pending
            idle.look(known)
        await asyncio.sleep(0.01)


def _refused_wrongly(ctx: Context, job: Job, sent: Submitted, bound: int) -> None:
    """A 429 after a terminal read: wrong if even all that may be live leaves a place."""
    possible = {j.id for j in ctx.session.jobs.values() if not j.terminal or _ended_in(j, sent)}
    if len(possible) < bound:
        # Up to here every end gave its place back; since then some submits were refused.
        for clause in ("A5", "A6"):
            ctx.fail(
                clause,
                f"a submit was refused after a read had shown a job `{job.state}`: at most "
                f"{len(possible)} of {bound} places were taken by jobs",
                allowed="202",
                answers=(sent.answer,),
            )


def _ended_in(job: Job, sent: Submitted) -> bool:
    """Whether the job may still have been live when the submit was called."""
    seen_us = job.ended_us if job.ended_us is not None else job.gone_us
    return seen_us is not None and seen_us >= sent.answer.call_us


async def _pending_waiters(ctx: Context, waits: list[tuple[Job, asyncio.Task[Reading]]]) -> None:
    """W2, and W3: waits that were issued while their jobs were pending saw no `running`."""
    for job, task in waits:
        reading = await task
        if judge_waiters(ctx, job, [reading], "W2") and reading.terminal:
            ctx.ok("W3")


async def _one_after_another(ctx: Context, kind: str, count: int, beside: int) -> bool:
    """Each is admitted on the place that the one before it gave back; False where none runs."""
    timeouts, box = 0, ctx.box(3.0)
    for number in range(count):
        if box.is_over and number > 1 + (timeouts == number):
            break  # the burst that follows counts the places that came back
        sent = await ctx.session.submit(kind)
        if sent.job is None:
            if sent.refused:
                ctx.fail(
                    "A5",
                    f"after {number} `{kind}` jobs had ended one by one, the next is "
                    "refused: their places are not given back",
                    allowed="202",
                    answers=(sent.answer,),
                )
            elif kind == "crashing":
                ctx.fail(
                    "T5",
                    f"after {number} crashes: {sent.answer.say()}",
                    allowed="the server lives on",
                    answers=(sent.answer,),
                )
            break
        state = await ended(ctx, sent.job, period_s=0.004)
        _judge_idle(ctx, kind, sent.job, beside)
        if state == "":
            _never_ended(ctx, kind, number, sent.job)
            break
        ctx.ok("S9")
        # One timeout may be the machine's; when every one of them times out the error was lost.
        timeouts += state == "timeout"
        lost = timeouts > 2 and timeouts == number + 1 and ctx.tolerance_s < 1
        if lost and kind in ("quick", "echo"):
            return False
        if kind in ("failing", "crashing") and (state == "done" or lost):
            ctx.fail(
                "T5",
                f"a `{kind}` body ended `{state}`",
                allowed="`failed` with an error",
                answers=(sent.answer,),
            )
        elif kind in ("failing", "crashing") and state == "failed":
            ctx.ok("T5")
    return True


def _judge_idle(ctx: Context, kind: str, job: Job, beside: int) -> None:
    """Q4: alone, or beside one slow job, it is not left pending."""
    if (ctx.target.limits.workers or 1) <= beside:
        return
    waited_us = job.pending_us - job.return_us
    if waited_us > ctx.session.slack_us(job.return_us) + 500_000:
        ctx.fail(
            "Q4",
            f"a `{kind}` job was pending for {waited_us // 1000} ms while a worker was idle",
            allowed="started at once",
            answers=(job.answer,),
        )


def _never_ended(ctx: Context, kind: str, number: int, job: Job) -> None:
    clause = "T5" if kind in ("failing", "crashing") or number else "S9"
    ctx.fail(
        clause,
        f"`{kind}` job number {number + 1} on an idle target did not end: it is `{job.state}`",
        allowed="a terminal state",
        answers=(job.answer,),
    )


@check("A8 Q2", needs=("bodies.quick",), places=1)
async def a_repeated_request_gets_a_new_id(ctx: Context) -> None:
    """The same body with the same `req_id`, again and again, side by side and in turn."""
    body, task_id = ctx.session.compose("quick")
    ids: list[str] = []
    for number in range(4):
        sent = await admit(ctx, body=body)
        if sent.job is not None:
            sent.job.task_id = task_id
            ids.append(sent.job.id)
            if number % 2:
                await ended(ctx, sent.job, period_s=0.005)
    if len(ids) > 1:
        ctx.expect(
            len(set(ids)) == len(ids),
            "A8",
            f"one req_id got the ids {ids}",
            allowed="a new id each time",
        )
    else:
        ctx.undecided("A8", "a repeated `req_id` was not admitted twice: no place came free")


@check("A10 H2", needs=("bodies.quick",), places=1)
async def an_id_is_found_as_soon_as_it_is_issued(ctx: Context) -> None:
    """Status, result and wait on warm connections, in the instant after the 202."""
    conns = [await ctx.session.client.connect() for _ in range(3)]
    if any(isinstance(conn, str) for conn in conns):
        return
    retained = ctx.target.limits.max_completed
    for _ in range(ctx.times(8, 30)):
        for conn in conns:
            if isinstance(conn, Connection) and conn.alive:
                await ctx.session.status("job_" + ctx.session.nonce(20), conn=conn)
        sent = await ctx.session.submit("quick")
        if sent.job is None:
            await asyncio.sleep(0.02)
            continue
        one, two, three = (c if isinstance(c, Connection) and c.alive else None for c in conns)
        readings = await asyncio.gather(
            ctx.session.status(sent.job, conn=one),
            ctx.session.result(sent.job, conn=two),
            ctx.session.wait(sent.job, 1, conn=three),
        )
        lost = [r for r in readings if r.answer.ok and r.answer.status == 404]
        if not lost:
            ctx.ok("A10")
        elif retained is None or retained > 3:
            # With so few others about, nothing can have evicted it yet; the judge says the same.
            pass
        await ended(ctx, sent.job, period_s=0.005)
    for conn in conns:
        conn.close()  # type: ignore[union-attr]


@check("A4")
async def a_bound_of_nothing_admits_nothing(ctx: Context) -> None:
    """With `max_queue` at or below 0 every submit is refused with 429."""
    bound = ctx.session.max_queue
    if bound is None:
        ctx.untestable("A4", "limits.max_queue")
        return
    if bound > 0:
        ctx.does_not_apply("A4", "`limits.max_queue` is above 0")
        return
    for kind in ("quick", "slow"):
        if not ctx.target.has(f"bodies.{kind}"):
            continue
        for _ in range(3):
            sent = await ctx.session.submit(kind)
            ctx.expect(
                sent.refused,
                "A4",
                f"a submit is answered {sent.answer.say()}",
                allowed="429",
                answers=(sent.answer,),
            )


@check("A9", needs=("bodies.quick",), places=1, order=90)
async def ids_cannot_be_guessed(ctx: Context) -> None:
    """The ids of the whole run: the prefix, and how many bits can vary."""
    for _ in range(16 - len(ctx.session.jobs)):
        job = await submitted(ctx, "quick")
        if job is not None:
            await ended(ctx, job, period_s=0.005)
    ids = list(ctx.session.jobs)
    if len(ids) < 16:
        return
    strange = next((id_ for id_ in ids if not id_.startswith("job_")), None)
    if strange is not None:
        ctx.warn("A9", f"the id {strange} does not begin with job_", allowed="job_...")
    bits = guessable_bits(ids)
    if bits < 96:
        ctx.warn(
            "A9",
            f"about {bits} bits of the ids vary, as in {ids[-2]} and {ids[-1]}",
            allowed=">= 96 bits of randomness",
        )
    elif strange is None:
        ctx.ok("A9", len(ids))


def guessable_bits(ids: list[str]) -> int:
    """An upper estimate of the random bits: varying positions, times bits per character."""
    width = min(len(id_) for id_ in ids)
    tails = [id_[-width:] for id_ in ids]
    enough = min(8, len(ids) // 3)
    varying = [k for k in range(width) if len({tail[k] for tail in tails}) >= enough]
    used = {tail[k] for tail in tails for k in varying}
    if used <= set("0123456789"):
        per_character = 3.33
    elif used <= set("0123456789abcdef") or used <= set("0123456789ABCDEF"):
        per_character = 4.0
    elif len({c.lower() for c in used}) == len(used):
        per_character = 5.0
    else:
        per_character = 5.95
    return int(len(varying) * per_character)
