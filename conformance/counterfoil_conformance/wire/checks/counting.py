"""Metrics against the ledger (M1): at rest, submitted = done + failed + timeout + depth.

Counters may lag behind the answers they count by a moment, so a sum that is not right yet is read
again until tolerance is over. Between two readings at rest the differences must be what this run
has done itself; requests that were refused count for nothing.
"""

import asyncio
import re
from collections import Counter

from counterfoil_conformance.wire.answer import Answer, now_us
from counterfoil_conformance.wire.metrics import (
    DEFAULT_NAMES,
    Counters,
    counters,
    parse_metrics,
)
from counterfoil_conformance.wire.registry import ALL, Context, check

__all__ = ["Tally", "at_rest", "read_counters"]


async def read_counters(ctx: Context) -> tuple[Counters | str, Answer]:
    """The target's five numbers, or which of them is not there."""
    told = ctx.target.metrics
    names = {key: getattr(told, key) or default for key, default in DEFAULT_NAMES.items()}
    answer = await ctx.session.send("GET", told.path or "/metrics", prefix=False, json_route=False)
    if answer.status != 200:
        return f"GET {told.path or '/metrics'} is answered {answer.say()[:60]}", answer
    text = answer.body.decode("utf-8", "replace")
    found = counters(parse_metrics(text), names)
    if isinstance(found, str):
        found = f"`[metrics]` in the target file: there is no sample {found}"
    return found, answer


async def at_rest(ctx: Context) -> tuple[Counters | str, Answer]:
    """The numbers once they add up, or as they are when tolerance is over."""
    deadline_us = now_us() + int(ctx.tolerance_s * 2e6) + 500_000
    while True:
        found, answer = await read_counters(ctx)
        if isinstance(found, str) or (found.balanced() and found.depth == 0):
            return found, answer
        if now_us() > deadline_us:
            return found, answer
        await asyncio.sleep(0.05)


class Tally:
    """Two readings at rest, and the jobs of this run that lie between them."""

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self.before: Counters | str = "not read yet"
        self._known: frozenset[str] = frozenset()

    async def open(self) -> bool:
        """Take the first reading; False if the target does not offer the five numbers."""
        self.before, answer = await at_rest(self.ctx)
        self._known = frozenset(self.ctx.session.jobs)
        if isinstance(self.before, str):
            return False
        _judge_sum(self.ctx, self.before, answer)
        return True

    async def close(self) -> None:
        """Take the second, and hold the differences against what was done."""
        after, answer = await at_rest(self.ctx)
        if isinstance(after, str) or isinstance(self.before, str):
            return
        _judge_sum(self.ctx, after, answer)
        known = self.ctx.session.jobs
        jobs = [job for id_, job in known.items() if id_ not in self._known]
        expected = {"submitted": len(jobs)}
        if all(job.ended_us is not None for job in jobs):
            done = Counter(job.state for job in jobs)
            expected |= {state: done[state] for state in ("done", "failed", "timeout")}
        for name, count in expected.items():
            grown = getattr(after, name) - getattr(self.before, name)
            if grown == count:
                self.ctx.ok("M1")
            else:
                said = f"`{name}` grew by {grown:g}, by what this run did {count}"
                self.ctx.warn("M1", said, allowed=f"by {count}", answers=(answer,))


@check("M1", needs=("bodies.quick",), places=ALL, order=60)
async def counters_agree_with_the_ledger(ctx: Context) -> None:
    """At rest the counters add up, and between two rests they count what was done."""
    if not await ctx.session.settle():
        return
    tally = Tally(ctx)
    if not await tally.open():
        await _say_why(ctx, str(tally.before))
        return
    await _do_some(ctx)
    await tally.close()


async def _say_why(ctx: Context, lack: str) -> None:
    """Names that are in the text and have no number are the target's; others are not known."""
    answer = await ctx.session.send(
        "GET", ctx.target.metrics.path or "/metrics", prefix=False, json_route=False
    )
    told = [getattr(ctx.target.metrics, key) for key in DEFAULT_NAMES]
    names = [re.escape(name) for name in told if name]
    text = answer.body.decode("utf-8", "replace")
    worded = rf"^(?:{'|'.join(names)})[ \t]+(?![-+.\d]|Inf|NaN)"
    if names and answer.status == 200 and re.search(worded, text, re.MULTILINE):
        ctx.warn("M1", f"a counter is no number ({lack})", allowed="numbers", answers=(answer,))
    else:
        ctx.untestable("M1", lack)


def _judge_sum(ctx: Context, found: Counters, answer: Answer) -> None:
    if found.balanced() and found.depth == 0:
        ctx.ok("M1")
    else:
        allowed = "submitted = done + failed + timeout + depth, and depth 0"
        ctx.warn("M1", f"at rest: {found.say()}", allowed=allowed, answers=(answer,))


async def _do_some(ctx: Context) -> None:
    """A few jobs, good and bad, and requests that are none."""
    bad = [kind for kind in ("failing", "crashing") if ctx.target.has(f"bodies.{kind}")]
    for kind in ("quick", "quick", *bad):
        sent = await ctx.session.submit(kind)
        if sent.job is not None:
            await ctx.session.until_terminal(sent.job, ctx.session.patience_s())
    for body in (b"nope", b"{}"):
        await ctx.session.send("POST", "/jobs", body=body)
