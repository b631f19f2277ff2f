"""T: budgets that do not bind, bind too early, or take a worker or the server with them."""

import os
import sys
import time
import traceback

from strangers.answers import Answers
from strangers.book import Book, now_ms
from strangers.faults import also, fault
from strangers.messages import Response
from strangers.workers import Pool

HELD = {"late_worker": "held", "hang_ms": 2600}


@fault("t1-pending-is-free", "T1", **HELD)
class _(Pool):
    """The budget does not end a job that is still pending."""

    def expire(self, job):
        if job.state != "pending":
            super().expire(job)


@fault("t1-pending-fails", "T1 S1", **HELD)
class _(Pool):
    """A job still pending at the end of its budget is `failed`."""

    def expire(self, job):
        if job.state == "pending" and job.counted:
            self.book.end(job, "failed", "no worker came")
        else:
            super().expire(job)


@fault("t1-no-error", "T1 S6", **HELD)
class _(Pool):
    """A job that timed out while pending has no error."""

    def timeout_error(self, job):
        return None if job.worker is None else super().timeout_error(job)


@fault("t1-late", "T1 T6", **HELD)
class _(Pool):
    """A pending job's budget is 900 ms longer."""

    def expire(self, job):
        if job.state == "pending" and not hasattr(job, "spared"):
            job.spared = True
            self.alarm.at(now_ms() + 900, lambda: self.expire(job))
        else:
            super().expire(job)


@fault("t1-runs-all-the-same", "T1 T2 S4 S5 R6 G2", **HELD)
class _(Book):
    """A job that timed out while pending is run all the same, and its result counts."""

    def begin(self, job):
        if job.state == "timeout" and job.counted:
            job.state = "running"
            self.depth += 1
            self.finished = [other for other in self.finished if other is not job]
            return True
        return super().begin(job)


@also("t1-runs-all-the-same")
class _(Pool):
    """...as it stays in the line."""

    def expire(self, job):
        if job.state == "pending" and job.counted:
            self.book.end(job, "timeout", self.timeout_error(job))
        else:
            super().expire(job)


@fault("t2-place-released-twice", "T2 A2 A3 A11 M1 A5")
class _(Book):
    """A late end gives the place back again."""

    def end_again(self, job, state, error, result):
        self.release(job)
        return False


@fault("t2-late-result-readable", "T2 G2 S6 R6")
class _(Book):
    """A late result can be fetched, though the state stays timeout."""

    def end_again(self, job, state, error, result):
        job.result = result
        return False


@also("t2-late-result-readable")
class _(Answers):
    """Whoever has a result may read it."""

    def result(self, view):
        return Response(200, view.result) if view.result else super().result(view)


@fault("t2-late-failure-releases", "T2 A2 A3 A11 M1 A5", full=True)
class _(Book):
    """A late failure gives the place back again; a late success does not."""

    def end_again(self, job, state, error, result):
        if state == "failed":
            self.release(job)
        return False


@fault("t3-worker-lost", "T3 Q4 T1 A11 S9")
class _(Pool):
    """A timed-out run's worker leaves and nobody comes in its place."""

    def replace(self, worker):
        worker.abandoned = True


@fault("t3-second-worker-lost", "T3 Q4 T1 A11")
class _(Pool):
    """Every second timed-out run costs a worker."""

    strikes = 0

    def replace(self, worker):
        self.strikes += 1
        if self.strikes % 2:
            super().replace(worker)
        else:
            worker.abandoned = True


@fault("t3-worker-stuck", "T3 Q4 T1 A11 H11", late_worker="held", hang_ms=2600)
class _(Pool):
    """A worker whose run timed out waits for 8 s before it takes the next job."""

    def serve(self, job, worker):
        super().serve(job, worker)
        if job.state == "timeout" and job.counted:
            time.sleep(8)


@fault("t4-zero-is-now", "T4 T5 T6 H2", timeout_ms=0)
class _(Pool):
    """A budget of 0 ends every job at once."""

    def put(self, job):
        if job.counted:
            self.book.end(job, "timeout", self.timeout_error(job))
        super().put(job)


@fault("t4-zero-is-400-ms", "T4", timeout_ms=0)
class _(Pool):
    """A budget of 0 is taken for 400 ms."""

    def budget_ms(self, job):
        return 400


@fault("t5-crash-kills-the-worker", "T5 Q4 A11 T1 S9")
class _(Pool):
    """A crash ends the job, and the thread that ran it."""

    def crashed(self, job, error):
        super().crashed(job, error)
        sys.exit()


@fault("t5-crash-kills-the-server", "T5 E5 S9 A11")
class _(Pool):
    """A crash of the runner ends the process."""

    def crashed(self, job, error):
        os._exit(3)


@fault("t5-crash-is-silent", "T5 S9 T6")
class _(Pool):
    """A crash leaves the job running until the budget ends it."""

    def crashed(self, job, error):
        if not job.counted:
            super().crashed(job, error)


@fault("t5-crash-is-done", "T5 G5 S6 G1")
class _(Pool):
    """A crashed job is done, with no results."""

    def crashed(self, job, error):
        envelope = self.envelope(job, [], 0.0)
        self.book.end(job, "done", None, {**envelope, "status": 0})


@fault("t5-crash-is-timeout", "T5 S1")
class _(Pool):
    """A crashed job is `timeout`."""

    def crashed(self, job, error):
        if job.counted:
            self.book.end(job, "timeout", "crashed")
        else:
            super().crashed(job, error)


@fault("t5-failure-is-timeout", "T5 G5")
class _(Pool):
    """A model error makes the job `timeout`."""

    def report(self, job, items, took_ms):
        if self.succeeded(items) or not job.counted:
            super().report(job, items, took_ms)
        else:
            self.book.end(job, "timeout", self.failure(items))


@fault("t5-crash-costs-three-seconds", "T5 Q4 T1 T6 H11")
class _(Pool):
    """After a crash the worker needs 3 s to come back."""

    def crashed(self, job, error):
        super().crashed(job, error)
        time.sleep(3)


@fault("t5-crash-stops-the-line", "T5 Q4 T1 A11 T6 S9")
class _(Pool):
    """A crash happens with the line locked and the lock is kept."""

    def crashed(self, job, error):
        super().crashed(job, error)
        time.sleep(0.05)
        self.filled.acquire()
        time.sleep(3600)


@fault("t5-traceback", "E5 T5")
class _(Pool):
    """A crashed job's error is the stack trace."""

    def crashed(self, job, error):
        text = "".join(traceback.format_exception(error))
        if job.counted:
            self.book.end(job, "failed", text)
        else:
            super().crashed(job, error)


@fault("t6-running-is-free", "T6 S9 T2")
class _(Pool):
    """The budget does not end a running job."""

    def expire(self, job):
        if job.state != "running" or not job.counted:
            super().expire(job)


@fault("t6-late", "T6 T1")
class _(Pool):
    """A running job's budget is 900 ms longer."""

    def expire(self, job):
        if job.state == "running" and job.counted and not hasattr(job, "spared"):
            job.spared = True
            self.alarm.at(now_ms() + 900, lambda: self.expire(job))
        else:
            super().expire(job)


@fault("t6-counted-from-start", "T6 T1", full=True)
class _(Pool):
    """The budget is counted from the start of the run."""

    def execute(self, job):
        job.began_ms = now_ms()
        super().execute(job)

    def expire(self, job):
        due_ms = getattr(job, "began_ms", job.admitted_ms) + self.config.timeout_ms
        if job.counted and due_ms - now_ms() > 20:
            self.alarm.at(due_ms, lambda: self.expire(job))
        else:
            super().expire(job)


@fault("t6-failed", "T6 T1 S1 T2")
class _(Book):
    """A job past its budget is `failed`."""

    def end(self, job, state, error=None, result=None):
        state = "failed" if state == "timeout" and job.counted else state
        return super().end(job, state, error, result)


@fault("t6-half", "T6 T1 T4")
class _(Pool):
    """The budget is half of what is configured."""

    def budget_ms(self, job):
        return self.config.timeout_ms / 2


@fault("t6-seconds", "T6 T1 T2 S9")
class _(Pool):
    """The budget is taken for seconds."""

    def budget_ms(self, job):
        return self.config.timeout_ms * 1000
