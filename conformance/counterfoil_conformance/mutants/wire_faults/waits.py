"""Faults of waiting in the shipped server: who is woken, when, and for how long one sleeps."""

import asyncio
import re
import time

from counterfoil_conformance.mutants.wire import also, wire_fault
from counterfoil_server import rules
from counterfoil_server.answers import refusal
from counterfoil_server.job_routes import JobRoutes
from counterfoil_server.ledger import JobLedger, State, Watch
from counterfoil_server.runners import JobRunner
from counterfoil_server.waiting import Waiters


@wire_fault("lost-wake-up", "W2 W6 H7 W7")
class _LostWakeUp(JobLedger):
    """D4: a waiter looks at the state, and 60 ms later registers without another look."""

    def _watch(self, job, callback):
        watch = Watch(job)
        with job.mutex:
            job.watches[watch] = callback
        return watch


@also("lost-wake-up")
class _NoSecondLook(Waiters):
    async def wait(self, job_id, budget_ms):
        seen = self._ledger.snapshot(job_id)
        if seen is None or seen.state.terminal:
            return seen
        await asyncio.sleep(0.06)
        woken = asyncio.get_running_loop().create_future()
        watch = self._ledger.watch(job_id, lambda _: self._ring(woken))
        if watch is None:
            return seen
        try:
            await asyncio.wait([woken], timeout=budget_ms / 1000)
        finally:
            watch.cancel()
        return watch.snapshot()


@wire_fault("start-wakes-waiters", "W3 W4")
class _StartWakes(JobLedger):
    """The start of a run wakes the waiters."""

    def _start(self, job):
        started = super()._start(job)
        if started:
            with job.mutex:
                self._wake(job)
        return started


@wire_fault("timeout-wakes-nobody", "W2 W6 H7 T6 T1")
class _TimeoutSilent(JobLedger):
    """A timeout wakes no waiter."""

    def _wake(self, job):
        if job.seen.state is not State.TIMEOUT:
            super()._wake(job)


@wire_fault("failure-wakes-nobody", "W2 W6 H7 T5")
class _FailureSilent(JobLedger):
    """A failure wakes no waiter."""

    def _wake(self, job):
        if job.seen.state is not State.FAILED:
            super()._wake(job)


@wire_fault("first-waiter-only", "W6 H7 W2")
class _FirstOnly(JobLedger):
    """Only the first waiter is woken."""

    def _wake(self, job):
        for watch in list(job.watches)[1:]:
            del job.watches[watch]
        super()._wake(job)


class _Polls(Waiters):
    period_s = 1.0

    async def wait(self, job_id, budget_ms):
        watch = self._ledger.watch(job_id, lambda _: None)
        if watch is None:
            return None
        until = time.monotonic() + budget_ms / 1000
        while not watch.snapshot().state.terminal and time.monotonic() < until:
            await asyncio.sleep(min(self.period_s, max(0.0, until - time.monotonic())))
        return watch.snapshot()


@wire_fault("waits-poll", "W2 W6 H7 W7", of=Waiters)
class _PollsSlowly(_Polls):
    """Waiters look once a second."""


@wire_fault("terminal-wait-sleeps", "W1 W2")
class _TerminalSleeps(Waiters):
    """A wait on a job that has ended sleeps for a second."""

    async def wait(self, job_id, budget_ms):
        seen = self._ledger.snapshot(job_id)
        if seen is not None and seen.state.terminal:
            await asyncio.sleep(min(1.0, budget_ms / 1000))
        return await super().wait(job_id, budget_ms)


@wire_fault("wakes-late", "W2 W6 H7")
class _WakesLate(Waiters):
    """A woken waiter is told 800 ms later."""

    def _ring(self, woken):
        self._mailbox.post(self._later, woken)

    def _later(self, woken):
        asyncio.get_running_loop().call_later(
            0.8, lambda: woken.done() or woken.set_result(time.perf_counter())
        )


@wire_fault("woken-answer-is-old", "W2 W4 W6 H7 W3 S5")
class _OldAnswer(Waiters):
    """A woken waiter answers the state that it saw when it began to wait."""

    async def wait(self, job_id, budget_ms):
        before = self._ledger.snapshot(job_id)
        after = await super().wait(job_id, budget_ms)
        return before if after is not None else None


class _Budget(Waiters):
    def budget_ms(self, asked_ms):
        return asked_ms

    async def wait(self, job_id, budget_ms):
        return await super().wait(job_id, self.budget_ms(budget_ms))


@wire_fault("wait-ends-early", "W4 W5", of=Waiters)
class _Early(_Budget):
    """A wait ends after four fifths of its budget."""

    def budget_ms(self, asked_ms):
        return asked_ms * 0.8


@wire_fault("wait-ends-late", "W4 W5", of=Waiters)
class _Late(_Budget):
    """A wait ends 900 ms after its budget."""

    def budget_ms(self, asked_ms):
        return asked_ms + 900


@wire_fault("wait-in-seconds", "W5 W4", of=rules.capped_wait_ms)
def in_seconds(asked_ms):
    """The timeout of a wait is taken for seconds."""
    return 30_000 if asked_ms is None or asked_ms <= 0 else min(asked_ms * 1000, 300_000)


@wire_fault("wait-wraps", "W5 W4 W2", of=rules.capped_wait_ms)
def wrapped(asked_ms):
    """The timeout of a wait wraps at 32 bits."""
    if asked_ms is None or asked_ms <= 0:
        return 30_000
    return min(asked_ms % 2**32, 300_000)


@wire_fault("absent-timeout-is-now", "W5 W4 W2", of=rules.capped_wait_ms)
def absent_is_now(asked_ms):
    """Without a timeout the answer comes at once."""
    return 1 if asked_ms is None else 30_000 if asked_ms <= 0 else min(asked_ms, 300_000)


@wire_fault("timeout-read-in-part", "W10 W4 W5", should=True, of=rules.parse_wait_ms)
def in_part(text):
    """`150ms` is read as 150."""
    match = re.match(r"[+-]?[0-9]{1,18}", text)
    if match is None:
        raise ValueError("not a whole number of milliseconds")
    return int(match[0])


@wire_fault("huge-timeout-is-500", "W5 E5", of=rules.parse_wait_ms)
def unbounded(text):
    """A timeout with thousands of digits is a 500."""
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        raise ValueError("not a whole number of milliseconds")
    if len(text) > 4300:
        raise OverflowError("too many digits")
    return int(text)


@wire_fault("expired-wait-is-504", "W4 E5")
class _Expired504(JobRoutes):
    """A wait whose budget runs out is a 504."""

    async def wait(self, request, job_id):
        response = await super().wait(request, job_id)
        if b'"state":"pending"' in response.body or b'"state":"running"' in response.body:
            return refusal(504, f"{job_id} is pending or running")
        return response


@wire_fault("expired-wait-ends-the-job", "W4 S4 S5 W6 G1 G2 W2 T6")
class _ExpiredEnds(JobRoutes):
    """A wait whose budget runs out ends the job."""

    async def wait(self, request, job_id):
        response = await super().wait(request, job_id)
        if b'"state":"running"' in response.body and request.method == "GET":
            self._core.ledger.time_out(job_id, "waited too long")
            return await super().status(request, job_id)
        return response


@wire_fault("unknown-wait-sleeps", "W7")
class _UnknownSleeps(JobRoutes):
    """A wait on an unknown id sleeps for a second before it says so."""

    async def wait(self, request, job_id):
        if self._core.ledger.snapshot(job_id) is None:
            await asyncio.sleep(1.0)
        return await super().wait(request, job_id)


@wire_fault("second-waiter-refused", "W6 H7 W4 W9")
class _OneWaiter(JobRoutes):
    """A second waiter of a job is a 409."""

    async def wait(self, request, job_id):
        waited = self.__dict__.setdefault("waited", set())
        if job_id in waited:
            return refusal(409, f"{job_id} is running and being waited for")
        waited.add(job_id)
        try:
            return await super().wait(request, job_id)
        finally:
            waited.discard(job_id)


@wire_fault("waiters-block-the-loop", "W9 W2 H1")
class _Blocks(JobRunner):
    """Every submit walks over all waiters of all jobs, and that takes its time."""

    def submit(self, *words, **more):
        waiting = sum(len(job.watches) for job in self._ledger._jobs.values())
        time.sleep(min(2.0, 0.005 * waiting))
        return super().submit(*words, **more)
