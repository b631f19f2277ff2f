"""`POST /infer` (H11): the same request, the same workers, and the answer at once.

That it takes no place in the queue is seen where places are counted. Here: its envelope, its
failures, and its budget.
"""

import asyncio
import json
from typing import Any, Final

from counterfoil_conformance.wire.answer import Answer
from counterfoil_conformance.wire.checks.odd_content import judge_infer_failure
from counterfoil_conformance.wire.laws import retry_after_fault
from counterfoil_conformance.wire.probing import has_infer
from counterfoil_conformance.wire.reading import unwrapped
from counterfoil_conformance.wire.registry import ALL, CLOSED, DISABLED, Context, check
from counterfoil_conformance.wire.session import Job
from counterfoil_conformance.wire.steps import ended, submitted

__all__ = ["infer_has_the_budget_of_a_job"]

GRAIN_MS: Final = 20
# Once a worker may be late to its work by the machine's doing.
_TRIES: Final = 3


@check("H11 H13 E5", needs=("bodies.quick",), even=(DISABLED,))
async def infer_answers_with_the_envelope(ctx: Context) -> None:
    """A good request is 200 with the standard envelope, and names the request."""
    if not await has_infer(ctx):
        ctx.untestable("H11", "the target has no POST /infer")
        return
    body, task_id = ctx.session.compose("quick")
    answer = await ctx.session.infer(body)
    if _was_busy(ctx, answer):
        return
    said = f"a good request: {answer.say()[:100]}"
    if answer.status == 202:
        ctx.fail("H13", f"/infer, {said}", allowed="200 with the envelope", answers=(answer,))
    if not ctx.expect(answer.status == 200, "H11", said, allowed="200", answers=(answer,)):
        return
    envelope = unwrapped(answer.json, ctx.target.adapter)
    wrong = envelope_faults(envelope, images=len(json.loads(body)["images"]))
    if isinstance(envelope, dict) and envelope.get("task_id") != task_id:
        wrong.append(f"task_id = {envelope.get('task_id')!r:.60}, not the req_id {task_id!r}")
    if isinstance(envelope, dict) and envelope.get("status") != 0:
        wrong.append(f"status = {envelope.get('status')!r:.40} though every item is fine")
    for fault in wrong:
        said = f"the envelope of /infer: {fault}"
        ctx.fail("H13", said, allowed="the standard envelope", answers=(answer,))
    if not wrong:
        ctx.ok("H13")


def envelope_faults(envelope: Any, *, images: int) -> list[str]:
    """What is missing in a standard envelope; nothing is said of fields it may have besides."""
    if not isinstance(envelope, dict):
        return ["it is no JSON object"]
    number = (int, float)
    wanted: dict[str, Any] = {
        "status": int,
        "status_str": str,
        "task_id": str,
        "model": dict,
        "results": list,
        "server_time_ms": number,
        "partial": bool,
    }
    wrong = [f"no `{name}`" for name in wanted if name not in envelope]
    for name, kind in wanted.items():
        value = envelope.get(name)
        flag = isinstance(value, bool) and kind is not bool
        if name in envelope and (flag or not isinstance(value, kind)):
            wrong.append(f"{name} = {value!r:.60}")
    if wrong:
        return wrong
    wrong += [
        f"the model has no `{key}`" for key in ("name", "version") if key not in envelope["model"]
    ]
    items = envelope["results"]
    if len(items) != images:
        wrong.append(f"{len(items)} results for {images} images")
    for item in items:
        if not isinstance(item, dict) or "status" not in item or "data" not in item:
            wrong.append(f"an item is {item!r:.80}")
    return wrong


def _was_busy(ctx: Context, answer: Answer) -> bool:
    """429 and 504 are right for a server that is busy with other checks' jobs."""
    if answer.ok and answer.status == 429:
        fault = retry_after_fault(answer, "H11")
        if fault is not None:
            ctx.session.report((fault,), answer)
    return not answer.ok or answer.status in (429, 504)


@check("H11 E5", needs=("bodies.failing",), even=(DISABLED,))
async def infer_says_when_every_item_failed(ctx: Context) -> None:
    """200 with a `status` other than 0, or 500 with the envelope."""
    if not await has_infer(ctx):
        return
    body, _ = ctx.session.compose("failing")
    answer = await ctx.session.infer(body)
    _judge_failed(ctx, "a failing request", answer)


@check("H11 E5", needs=("bodies.crashing",), places=1, even=(DISABLED, CLOSED))
async def infer_survives_a_crash(ctx: Context) -> None:
    """A crash of the run costs its request only."""
    if not await has_infer(ctx):
        return
    body, _ = ctx.session.compose("crashing")
    answer = await ctx.session.infer(body)
    _judge_failed(ctx, "a crashing request", answer)


def _judge_failed(ctx: Context, name: str, answer: Answer) -> None:
    if _was_busy(ctx, answer):
        return
    if answer.status == 500:
        judge_infer_failure(ctx, "H11", f"/infer, {name}", answer)
        return
    envelope = unwrapped(answer.json, ctx.target.adapter)
    status = envelope.get("status") if isinstance(envelope, dict) else None
    ctx.expect(
        answer.status == 200 and isinstance(status, int) and status != 0,
        "H11",
        f"{name}: {answer.say()[:120]}",
        allowed="200 with a `status` other than 0, or 500 with the envelope",
        answers=(answer,),
    )


@check(
    "H11",
    needs=("bodies.late", "bodies.late_ms", "limits.timeout_ms"),
    places=1,
    even=(DISABLED, CLOSED),
)
async def infer_has_its_budget_without_jobs(ctx: Context) -> None:
    """Where no job is admitted there is no long run to be a guest of."""
    limits = ctx.target.limits
    if limits.async_enabled is False or (limits.max_queue is not None and limits.max_queue <= 0):
        await infer_has_the_budget_of_a_job(ctx)


async def infer_has_the_budget_of_a_job(ctx: Context) -> None:
    """A run that overstays `async_timeout` is answered 504 when the budget ends.

    Takes as long as the budget, so it is a guest of the long run (`overtime`).
    """
    budget_ms, late_ms = ctx.target.limits.timeout_ms, ctx.target.bodies.late_ms
    assert budget_ms is not None and late_ms is not None
    if not await has_infer(ctx):
        return
    if budget_ms == 0:
        ctx.does_not_apply("H11", "`limits.timeout_ms = 0`: no budget")
        return
    if not ctx.target.dialect.running_budget:
        ctx.declared("H11", "`dialect.running_budget = false`: a run may overstay its budget")
        return
    body, _ = ctx.session.compose("late")
    answer = await ctx.session.infer(body, timeout_s=late_ms / 1000 + 10)
    if not answer.ok or answer.status == 429:
        return
    if answer.status == 500:
        judge_infer_failure(ctx, "H11", "/infer past its budget", answer)
    took_ms = answer.trip_us / 1000
    late_by_ms = budget_ms + ctx.tolerance_s * 1000
    if late_by_ms >= late_ms and answer.status != 504:
        return  # the run ends too near to the budget to tell
    said = f"after {took_ms:.0f} ms: {answer.status} (budget {budget_ms} ms, run {late_ms} ms)"
    in_time = budget_ms - GRAIN_MS <= took_ms <= late_by_ms
    ctx.expect(
        answer.status == 504 and in_time,
        "H11",
        said,
        allowed=f"504 between {budget_ms} and {late_by_ms:.0f} ms",
        answers=(answer,),
    )


@check("G4 H11", needs=("bodies.quick",), even=(DISABLED,))
async def blocking_calls_get_their_own_answers(ctx: Context) -> None:
    """Of several calls at once each gets the answer to its own request."""
    if not await has_infer(ctx):
        return
    kinds = [kind for kind in ("quick", "echo") if ctx.target.has(f"bodies.{kind}")]
    for _ in range(3):
        composed = [ctx.session.compose(kind) for kind in kinds * 3]
        answers = await asyncio.gather(*(ctx.session.infer(body) for body, _ in composed))
        for answer, (_, task_id) in zip(answers, composed, strict=True):
            envelope = unwrapped(answer.json, ctx.target.adapter)
            if answer.status != 200 or not isinstance(envelope, dict):
                continue
            found = envelope.get("task_id")
            said = f"/infer with the req_id {task_id!r} is answered for {found!r:.80}"
            fine = found == task_id
            ctx.expect(fine, "G4", said, allowed="its own answer", answers=(answer,))


@check(
    "Q4 H11",
    needs=("bodies.slow", "bodies.quick"),
    places=ALL,
    profile="full",
    order=70,
    limit_s=90,
)
async def a_job_starts_beside_a_blocking_call(ctx: Context) -> None:
    """Q4: a call holds one worker, and two jobs in turn are started by another at once."""
    if (ctx.target.limits.workers or 1) < 2 or not await has_infer(ctx):
        return
    late: list[tuple[int, Job]] = []
    for _ in range(_TRIES):
        body, _ = ctx.session.compose("slow")
        call = asyncio.create_task(ctx.session.infer(body))
        await asyncio.sleep(0.05 + ctx.session.trip_us() / 1e6)
        # The second one, for a worker that had been waiting is not one that comes back to wait.
        jobs = [job for _ in "ab" if (job := await _one_quick(ctx)) is not None]
        answer = await call
        if len(jobs) < 2 or not answer.ok:
            continue
        # Pending all through: from its 202 to the last read that saw it so, beside the call.
        spans = [(min(job.pending_us, answer.return_us) - job.return_us, job) for job in jobs]
        pending_us, job = max(spans, key=lambda pair: pair[0])
        if pending_us <= ctx.session.slack_us(job.return_us) + 100_000:
            ctx.ok("Q4")
            return
        late.append((pending_us, job))
    if len(late) == _TRIES:
        shortest_us, job = min(late, key=lambda pair: pair[0])
        ctx.fail(
            "Q4",
            f"{_TRIES} times a quick job was pending for {shortest_us // 1000} ms or more beside "
            f"one blocking call, with {ctx.target.limits.workers} workers",
            allowed="started at once by a worker that is idle",
            answers=(job.answer,),
        )


async def _one_quick(ctx: Context) -> Job | None:
    """A quick job, seen to its end."""
    job = await submitted(ctx, "quick")
    if job is not None:
        await ended(ctx, job, period_s=0.005)
    return job
