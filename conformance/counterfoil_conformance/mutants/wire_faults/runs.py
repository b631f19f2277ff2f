"""Faults of running in the shipped server: budgets, workers, crashes, items."""

import json
import os
import time

from counterfoil_conformance.mutants.wire import wire_fault
from counterfoil_conformance.wire.own_server import Setup
from counterfoil_server import rules
from counterfoil_server.ledger import JobLedger, State
from counterfoil_server.probe_model import ProbeModel
from counterfoil_server.runners import CallWork, Failure, JobRunner, JobWork, NoAnswer
from counterfoil_server.tasks import InferenceResult, Item
from counterfoil_server.workers import WorkerPool

HELD = Setup(workers=1, timeout_ms=600, late_ms=1600, max_stuck=0)


@wire_fault("worker-lost-per-timeout", "T3 Q4 T1 A11 S9")
class _WorkerLost(WorkerPool):
    """A timed-out run's worker is not replaced, and its thread ends when it comes back."""

    def give_up(self, work):
        with self._changed:
            self._queue.pop(work, None)
            if work in self._running:
                self._stuck.add(self._running.pop(work))
        work.stop.set()


@wire_fault("last-come-first-served", "Q4", should=True)
class _Lifo(WorkerPool):
    """Idle workers take the youngest work."""

    def _next(self):
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._closed)
            self._queue = type(self._queue)(reversed(self._queue.items()))
        return super()._next()


@wire_fault("one-worker-missing", "Q4 W9 T3 T1")
class _OneMissing(WorkerPool):
    """One worker fewer than configured works."""

    def __init__(self, size, max_stuck):
        super().__init__(max(1, size - 1), max_stuck)


@wire_fault("seventh-job-forgotten", "Q4 S9 T1 T6 A11 W2")
class _Seventh(WorkerPool):
    """Every seventh piece of work waits until another comes."""

    def put(self, work):
        self.puts = self.__dict__.get("puts", 0) + 1
        held = self.__dict__.pop("held", None)
        if held is not None:
            super().put(held)
        if self.puts % 7 == 0:
            self.held = work
        else:
            super().put(work)


@wire_fault("crash-kills-the-worker", "T5 Q4 A11 T1 S9")
class _CrashKills(JobRunner):
    """A crash ends the job and the thread that ran it."""

    def run_job(self, work):
        super().run_job(work)
        seen = self._ledger.snapshot(work.job_id)
        if seen is not None and "crashed" in (seen.error or ""):
            time.sleep(3600)


@wire_fault("crash-leaves-it-running", "T5 S9 T6")
class _CrashSilent(JobRunner):
    """A crashed job stays running until its budget ends it."""

    def _settle_job(self, job_id, outcome):
        if not (isinstance(outcome, Failure) and "crashed" in outcome):
            super()._settle_job(job_id, outcome)


@wire_fault("failure-is-timeout", "T5 G5")
class _FailureIsTimeout(JobRunner):
    """A model error makes the job `timeout`."""

    def _settle_job(self, job_id, outcome):
        if isinstance(outcome, InferenceResult) and outcome.failed:
            self._ledger.time_out(job_id, outcome.reason)
        else:
            super()._settle_job(job_id, outcome)


@wire_fault("all-failed-is-done", "G5 T5 S6")
class _AllFailedDone(JobRunner):
    """A job none of whose items succeeded is done."""

    def _settle_job(self, job_id, outcome):
        if isinstance(outcome, InferenceResult):
            self._ledger.finish(job_id, outcome)
        else:
            super()._settle_job(job_id, outcome)


@wire_fault("pending-has-no-budget", "T1", setup=HELD)
class _PendingFree(JobRunner):
    """The budget does not end a job that is still pending."""

    def _time_out_job(self, work):
        seen = self._ledger.snapshot(work.job_id)
        if seen is None or seen.state is not State.PENDING:
            super()._time_out_job(work)


@wire_fault("running-has-no-budget", "T6 S9 T2")
class _RunningFree(JobRunner):
    """The budget does not end a job that runs."""

    def _time_out_job(self, work):
        seen = self._ledger.snapshot(work.job_id)
        if seen is None or seen.state is not State.RUNNING:
            super()._time_out_job(work)


@wire_fault("budget-makes-failed", "T6 T1 S1 T2")
class _BudgetFails(JobLedger):
    """A job past its budget is `failed`."""

    def time_out(self, job_id, error):
        return self.fail(job_id, error)


@wire_fault("budget-late", "T6 T1", of=rules.is_overdue)
def overdue_late(submitted_at, now, timeout_ms):
    """A budget is 900 ms longer than configured."""
    return timeout_ms > 0 and now - submitted_at >= timeout_ms + 900


@wire_fault("zero-budget-is-short", "T4", setup=Setup(timeout_ms=0, late_ms=1200))
class _ZeroShort(JobRunner):
    """A budget of 0 is 300 ms."""

    def __init__(self, *words, **more):
        super().__init__(*words, **{**more, "timeout_ms": more.get("timeout_ms") or 300})


@wire_fault("task-id-lost", "Q2 G1 H13 H11 H3")
class _TaskIdLost(InferenceResult):
    """The result does not echo the task id."""

    __slots__ = ()

    def envelope(self, task_id):
        return super().envelope("")


class _Envelope(InferenceResult):
    __slots__ = ()

    def changed(self, envelope):
        return envelope

    def envelope(self, task_id):
        return json.dumps(self.changed(json.loads(super().envelope(task_id)))).encode()


@wire_fault("never-partial", "G5", of=InferenceResult)
class _NeverPartial(_Envelope):
    """`partial` is always false."""

    __slots__ = ()

    def changed(self, envelope):
        return {**envelope, "partial": False}


@wire_fault("items-reversed", "G4", of=InferenceResult)
class _Reversed(_Envelope):
    """The items are in reverse order."""

    __slots__ = ()

    def changed(self, envelope):
        return {**envelope, "results": envelope["results"][::-1]}


@wire_fault("last-item-missing", "G4 G5", of=InferenceResult)
class _LastMissing(_Envelope):
    """Of several items the last is missing."""

    __slots__ = ()

    def changed(self, envelope):
        items = envelope["results"]
        return {**envelope, "results": items[: max(1, len(items) - 1)]}


@wire_fault("result-not-the-same", "G1 R6", of=InferenceResult)
class _NotTheSame(_Envelope):
    """Something in the envelope is another at each read."""

    __slots__ = ()

    def changed(self, envelope):
        return {**envelope, "read_at": time.monotonic_ns()}


@wire_fault("no-model-in-envelope", "G1 H13 H11", of=InferenceResult)
class _NoModel(_Envelope):
    """The envelope does not name the model."""

    __slots__ = ()

    def changed(self, envelope):
        del envelope["model"]
        return envelope


@wire_fault("nan-in-result", "E9 G1 H13", of=InferenceResult)
class _Nan(_Envelope):
    """A result holds NaN."""

    __slots__ = ()

    def changed(self, envelope):
        return {**envelope, "score": float("nan")}


@wire_fault("shared-scratch", "G4")
class _Scratch(ProbeModel):
    """Concurrent runs share a variable for 5 ms."""

    def run(self, task, stop):
        self.items = super().run(task, stop)
        time.sleep(0.005)
        return self.items


@wire_fault("bad-base64-is-fine", "E6 G5 G4")
class _AnyBase64(ProbeModel):
    """An image that is no base64 succeeds."""

    def run(self, task, stop):
        items = super().run(task, stop)
        return [
            Item({"bytes": 0}) if item.error == "is not valid base64" else item for item in items
        ]


@wire_fault("call-takes-a-place", "H11 A3 A2 A11 H4")
class _CallCounts(JobRunner):
    """A blocking call takes a place in the queue."""

    async def call(self, task):
        with self._ledger._turnstile:
            self._ledger._depth += 1
        try:
            return await super().call(task)
        finally:
            with self._ledger._turnstile:
                self._ledger._depth -= 1


@wire_fault("call-refused-when-full", "H11")
class _CallRefused(JobRunner):
    """A blocking call is refused when the job queue is full."""

    async def call(self, task):
        if not rules.has_place(self._ledger.depth(), self._ledger.limits.max_queue):
            return NoAnswer.FULL
        return await super().call(task)


@wire_fault("call-has-no-budget", "H11 T6 E5", should=True)
class _CallUnbounded(JobRunner):
    """A blocking call has no budget."""

    def _overdue(self, work):
        if isinstance(work, JobWork):
            super()._overdue(work)


@wire_fault("crash-ends-the-process", "T5 E5 S9 A11")
class _CrashExits(JobRunner):
    """A crash of the model ends the process."""

    def run_model(self, task, stop):
        outcome = super().run_model(task, stop)
        if isinstance(outcome, Failure) and "crashed" in outcome:
            os._exit(3)
        return outcome


@wire_fault("starts-wait-for-calls", "Q4 H11", full=True)
class _CallsFirst(WorkerPool):
    """No job starts while a call runs."""

    def _next(self):
        while any(isinstance(work, CallWork) for work in list(self._running)):
            time.sleep(0.01)
        return super()._next()
