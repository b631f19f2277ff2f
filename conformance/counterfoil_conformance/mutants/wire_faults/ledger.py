"""Faults of the shipped ledger that show over HTTP: places, retention, ids, transitions."""

import asyncio
import itertools
import time
from collections import deque

from counterfoil_conformance.mutants.wire import also, wire_fault
from counterfoil_conformance.wire.own_server import Setup
from counterfoil_server import rules
from counterfoil_server.job_routes import JobRoutes
from counterfoil_server.leases import Leases
from counterfoil_server.ledger import JobLedger, Ready, Snapshot, State, monotonic_ms
from counterfoil_server.tasks import InferenceResult, ModelName

# Admission


@wire_fault("one-place-too-many", "A2 A3 H4")
class _OneTooMany(JobLedger):
    """There is one place more than configured."""

    def _admit(self):
        with self._turnstile:
            if self._depth > self.limits.max_queue:
                return False
            self._depth += 1
            return True


@wire_fault("one-place-too-few", "A3 H4 A11")
class _OneTooFew(JobLedger):
    """One place is never given away."""

    def _admit(self):
        with self._turnstile:
            if self._depth >= self.limits.max_queue - 1:
                return False
            self._depth += 1
            return True


@wire_fault("zero-queue-is-unlimited", "A4 A2 A3 H4", setup=Setup(max_queue=0), of=rules.has_place)
def has_place(depth, max_queue):
    """A bound of 0 is none."""
    return max_queue <= 0 or depth < max_queue


@wire_fault("place-released-at-start", "A2 A3 A5 H4")
class _ReleasedAtStart(JobLedger):
    """A job gives its place back when it starts to run."""

    def _start(self, job):
        started = super()._start(job)
        with self._turnstile:
            self._depth -= started
        return started

    def _close(self, job, state, result, error):
        ran = job.seen.state is State.RUNNING
        super()._close(job, state, result, error)
        with self._turnstile:
            self._depth += ran


@wire_fault("timeout-keeps-its-place", "A5 A11 A3 T2 T6 M1")
class _TimeoutLeaks(JobLedger):
    """A timed-out job keeps its place."""

    def _close(self, job, state, result, error):
        super()._close(job, state, result, error)
        with self._turnstile:
            self._depth += state is State.TIMEOUT


@wire_fault("failure-keeps-its-place", "A5 A11 A3 T5 M1")
class _FailureLeaks(JobLedger):
    """A failed job keeps its place."""

    def _close(self, job, state, result, error):
        super()._close(job, state, result, error)
        with self._turnstile:
            self._depth += state is State.FAILED


@wire_fault("late-end-releases-again", "T2 A2 A3 A11 M1 A5")
class _ReleasedTwice(JobLedger):
    """An end that comes too late gives the place back again."""

    def _end(self, job_id, state, *, result=None, error=None):
        ended = super()._end(job_id, state, result=result, error=error)
        if not ended and self._find(job_id):
            with self._turnstile:
                self._depth -= 1
        return ended


@wire_fault("refusal-takes-a-place", "A6 A11 A3 A5 M1")
class _RefusalLeaks(JobLedger):
    """A refused submit is counted for good."""

    def _admit(self):
        admitted = super()._admit()
        with self._turnstile:
            self._depth += not admitted
        return admitted


@wire_fault("ids-come-again", "A8 R7")
class _IdsAgain(JobLedger):
    """The id of an evicted job is given to a later one."""

    def _evict(self, cause):
        self.__dict__.setdefault("free", deque()).append(self._ended[0].seen.job_id)
        super()._evict(cause)

    def _record(self, task_id, payload):
        free, new_id = self.__dict__.get("free", ()), self._new_id
        if len(free) > 2:
            self._new_id = lambda: free.popleft()
        try:
            return super()._record(task_id, payload)
        finally:
            self._new_id = new_id


@wire_fault("ids-in-a-row", "A9", should=True)
class _IdsInARow(JobLedger):
    """Ids are numbers in a row."""

    def _record(self, task_id, payload):
        numbers = self.__dict__.setdefault("numbers", itertools.count())
        self._new_id = lambda: f"job_{next(numbers):032x}"
        return super()._record(task_id, payload)


@wire_fault("same-req-id-same-job", "A8 A3 A2 A11 Q2")
class _Idempotent(JobLedger):
    """A repeated `req_id` is answered with the job that it made before."""

    def submit(self, task_id, payload):
        known = self.__dict__.setdefault("known_tasks", {})
        if self.snapshot(known.get(task_id, "")) is None:
            known[task_id] = super().submit(task_id, payload)
        return known[task_id]


# Retention


@wire_fault("age-takes-running-jobs", "R1 R7 R9 A10 S5 W7", setup=Setup(ttl_ms=700))
class _AgeTakesLive(JobLedger):
    """Eviction by age counts from admission and asks nobody's state."""

    def _sweep(self):
        super()._sweep()
        now = self._clock()
        with self._table:
            for job in list(self._jobs.values()):
                seen = job.seen
                if not seen.state.terminal and now - seen.submitted_at > self.limits.job_ttl_ms:
                    del self._jobs[seen.job_id]

    def _evict(self, cause):
        known = self._ended[0].seen.job_id in self._jobs
        if known:
            super()._evict(cause)
        else:
            self._ended.popleft()


@wire_fault("count-evicts-one-too-many", "R9 R6 A10")
class _OneMore(JobLedger):
    """Eviction by count takes one more than the excess."""

    def _sweep(self):
        before = len(self._ended) > self.limits.max_completed
        super()._sweep()
        if before and self._ended:
            with self._table:
                self._evict("count")

    def _tell(self, callback, *words):
        if "count" not in words:
            super()._tell(callback, *words)


@wire_fault("count-keeps-one-more", "R4", of=rules.excess)
def excess_but_one(retained, max_completed):
    """One job too many is retained."""
    return max(retained - max(max_completed, 0) - 1, 0)


@wire_fault("count-off", "R4", of=rules.excess)
def no_excess(retained, max_completed):
    """Nothing is evicted by count."""
    return 0


@wire_fault("age-off", "R3", of=rules.has_expired)
def never_expired(completed_at, now, ttl_ms):
    """Nothing is evicted by age."""
    return False


@wire_fault("age-doubled", "R3", of=rules.has_expired)
def expired_late(completed_at, now, ttl_ms):
    """Jobs are retained for twice the time."""
    return now - completed_at > 2 * ttl_ms


@wire_fault("age-halved", "R9 R6 A10", of=rules.has_expired)
def expired_early(completed_at, now, ttl_ms):
    """Jobs are retained for half the time."""
    return now - completed_at > ttl_ms / 2


@wire_fault(
    "age-from-admission", "R9 R6 A10 R1", setup=Setup(ttl_ms=900, timeout_ms=2500, late_ms=3200)
)
class _AgeFromAdmission(JobLedger):
    """The age of a job is counted from its admission."""

    def _expired(self, job, now):
        return rules.has_expired(job.seen.submitted_at, now, self.limits.job_ttl_ms)


@wire_fault("orphans-of-the-order", "R4 R5", setup=Setup(ttl_ms=20_000))
class _Orphans(JobLedger):
    """D5: a job that was running when it was the oldest is never evicted by count again."""

    def _record(self, task_id, payload):
        job_id = super()._record(task_id, payload)
        self.__dict__.setdefault("order", deque()).append(job_id)
        return job_id

    def _sweep(self):
        with self._table:
            while len(self.order) > self.limits.max_completed + self._depth:
                job = self._jobs.get(self.order.popleft())
                if job is not None and job.seen.state.terminal:
                    del self._jobs[job.seen.job_id]
                    self._ended.remove(job)


@wire_fault("newest-evicted-first", "R5 R9", should=True, setup=Setup(ttl_ms=20_000))
class _NewestFirst(JobLedger):
    """By count, the newest go first."""

    def _sweep(self):
        self._ended.reverse()
        super()._sweep()
        self._ended.reverse()


@wire_fault("late-end-revives", "R7 T2 S8 S4 R3 R4 G3", setup=Setup(max_completed=1))
class _Revives(JobLedger):
    """A late end puts the evicted job back."""

    def _evict(self, cause):
        job = self._ended[0]
        self.__dict__.setdefault("gone", {})[job.seen.job_id] = job
        super()._evict(cause)

    def _end(self, job_id, state, *, result=None, error=None):
        ended = super()._end(job_id, state, result=result, error=error)
        gone = self.__dict__.get("gone", {})
        if not ended and job_id in gone:
            with self._table:
                self._jobs[job_id] = gone[job_id]
                self._ended.append(gone.pop(job_id))
        return ended


# States


@wire_fault("late-result-wins", "T2 S4 S5 R6 T6")
class _LateWins(JobLedger):
    """A result that arrives after the timeout makes the job done."""

    def _end(self, job_id, state, *, result=None, error=None):
        ended = super()._end(job_id, state, result=result, error=error)
        job = self._find(job_id)
        if not ended and job is not None and state is State.DONE:
            with job.mutex:
                job.seen = job.seen._replace(state=state, result=result, error=None)
        return ended


@wire_fault("second-finish-accepted", "S4 T2 S5 R6 G1 T6")
class _SecondWins(JobLedger):
    """A job may be finished twice: the second result is accepted, and stays."""

    def _end(self, job_id, state, *, result=None, error=None):
        ended = super()._end(job_id, state, result=result, error=error)
        job = self._find(job_id)
        if ended or job is None or state is not State.DONE:
            return ended
        with job.mutex:
            job.seen = job.seen._replace(state=state, result=result, error=None)
        return True


@also("second-finish-accepted")
class _ClaimsStay(Leases):
    def _close(self, claim, accepted):
        super()._close(claim, accepted)
        self._claims[claim.job_id] = claim
        return accepted


@wire_fault("late-failure-changes-error", "T2 S4 S5 R6")
class _LateError(JobLedger):
    """A failure after the timeout changes the error text."""

    def _end(self, job_id, state, *, result=None, error=None):
        ended = super()._end(job_id, state, result=result, error=error)
        job = self._find(job_id)
        if not ended and job is not None and error:
            with job.mutex:
                job.seen = job.seen._replace(error=error)
        return ended


@wire_fault("state-before-error", "S6 S5 R6 T5 T6 W6 S4")
class _Torn(JobLedger):
    """D1: the state is published 6 ms before the error."""

    def _close(self, job, state, result, error):
        super()._close(job, state, result, error)
        if error:
            whole, job.seen = job.seen, job.seen._replace(error=None)
            time.sleep(0.006)
            job.seen = whole


@wire_fault("error-on-done", "S6")
class _ErrorOnDone(JobLedger):
    """A done job has an error."""

    def _close(self, job, state, result, error):
        super()._close(job, state, result, error or "none")


@wire_fault("failure-without-error", "S6 T5 G5")
class _Silent(JobLedger):
    """A failed job has no error."""

    def _close(self, job, state, result, error):
        super()._close(job, state, result, None if state is State.FAILED else error)


@wire_fault("stale-reads", "S5 W1 W2 G1 G2 S6 A5 R6 H8 H2 A10 R7")
class _Stale(JobLedger):
    """Every third read is up to 150 ms old."""

    def snapshot(self, job_id):
        copies = self.__dict__.setdefault("copies", {})
        self.reads = self.__dict__.get("reads", 0) + 1
        made, seen = copies.get(job_id, (0, None))
        if seen is not None and self.reads % 3 == 0 and monotonic_ms() - made < 150:
            return seen
        seen = super().snapshot(job_id)
        copies[job_id] = (monotonic_ms(), seen)
        return seen


@wire_fault("unknown-is-pending", "S8 G3 R7 A10 W7 H5 H13 R3 R4")
class _UnknownPending(JobLedger):
    """A read of an unknown id that looks like one finds a pending job."""

    def snapshot(self, job_id):
        seen = super().snapshot(job_id)
        if seen is None and job_id.startswith("job_"):
            return Snapshot(job_id, State.PENDING, "", self._clock())
        return seen


@wire_fault("result-of-failed-is-200", "G2 S6 G5 T5 G1 H13")
class _FailedIsReady(JobLedger):
    """`/result` of a failed job is a 200."""

    def result(self, job_id):
        seen = self.snapshot(job_id)
        if seen is not None and seen.state is State.FAILED:
            failed = InferenceResult.failure(seen.error or "", ModelName("probe", "1"))
            return Ready(seen.task_id, failed)
        return super().result(job_id)


@wire_fault("results-mixed-up", "G4 G1 Q2")
class _MixedUp(JobLedger):
    """Every fourth job that is done shows the result of the one before."""

    def _close(self, job, state, result, error):
        if state is State.DONE:
            done, before = self.__dict__.get("done_before", (0, result))
            self.__dict__["done_before"] = (done + 1, result)
            result = before if done % 4 == 3 else result
        super()._close(job, state, result, error)


@wire_fault("result-read-once", "R6 G1 G2 S6 S5 G3 R9 A10")
class _OneShot(JobLedger):
    """A result is handed out once."""

    def result(self, job_id):
        read = self.__dict__.setdefault("read", set())
        outcome = super().result(job_id)
        seen = self.snapshot(job_id)
        if seen is not None and seen.state is State.DONE:
            if job_id in read:
                return None
            read.add(job_id)
        return outcome


@wire_fault("admission-in-two-steps", "A2 A3")
class _Forced(JobLedger):
    """D3: the check is one step, the increment another, with an await between them."""

    def _admit(self):
        with self._turnstile:
            self._depth += 1
            return True


@also("admission-in-two-steps")
class _TwoSteps(JobRoutes):
    async def _intake(self, request):
        accepted = await super()._intake(request)
        ledger = self._core.ledger
        if request.path.endswith("/jobs") and not hasattr(accepted, "status"):
            if not rules.has_place(ledger.depth(), ledger.limits.max_queue):
                return self._full()
            await asyncio.sleep(0.001)
        return accepted


@wire_fault("404-window-after-submit", "A10 R1 S5 R9 R7 S8 G3 H3 H2")
class _Window(JobLedger):
    """For 30 ms after the 202 the job is not found."""

    def snapshot(self, job_id):
        seen = super().snapshot(job_id)
        return None if seen is None or self._clock() - seen.submitted_at < 30 else seen


@wire_fault("running-looks-pending", "S5 W4 G2")
class _Flickers(JobLedger):
    """While a job runs, every fourth read says that it is pending."""

    def snapshot(self, job_id):
        seen = super().snapshot(job_id)
        self.reads = self.__dict__.get("reads", 0) + 1
        if seen is not None and seen.state is State.RUNNING and self.reads % 4 == 0:
            return seen._replace(state=State.PENDING)
        return seen
