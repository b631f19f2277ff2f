"""Faults of time and workers once more: other windows and periods, other ways to lose a worker."""

import threading
import time

from strangers.app import App
from strangers.book import LIVE, Book, now_ms
from strangers.faults import fault
from strangers.faults.handout import PollingPool
from strangers.faults.waiting import LostWakeUp, Polling
from strangers.fronts import ThreadedFront
from strangers.workers import Pool


@fault("w2-polls-each-400-ms", "W2 W6 H7 W7")
class _(Polling):
    """Waiters look every 400 ms."""

    period_s = 0.4


@fault("w2-polls-each-350-ms", "W2 W6 H7 W7", full=True)
class _(Polling):
    """Waiters look every 350 ms."""

    period_s = 0.35


@fault("w2-a-clock-wakes", "W2 W6 H7 W7")
class _(Book):
    """A clock that ticks every 700 ms wakes those whose jobs have ended."""

    def wake(self, job):
        watchers, job.watchers = job.watchers, []
        if not job.counted:
            for watcher in watchers:
                watcher()
            return
        delay_s = 0.7 - time.monotonic() % 0.7

        def tick():
            for watcher in watchers:
                watcher()

        threading.Timer(delay_s, tick).start()


@fault("w2-lost-wake-up-5-ms", "W2 W6 H7 W7")
class _(LostWakeUp):
    """D4: looks at the state, and 5 ms later begins to watch."""

    window_s = 0.005


@fault("w2-lost-wake-up-60-ms", "W2 W6 H7 W7")
class _(LostWakeUp):
    """D4: looks at the state, and 60 ms later begins to watch."""

    window_s = 0.06


@fault("w2-crash-wakes-nobody", "W2 W6 H7 T5")
class _(Book):
    """A crash wakes nobody; a failure that was reported does."""

    def wake(self, job):
        if not (job.counted and (job.error or "").startswith("crashed")):
            super().wake(job)


@fault("w6-second-waiter-replaces", "W6 W2 H7")
class _(Book):
    """Waiters beyond the second take the place of the second."""

    def watch(self, job, watcher):
        with self.lock:
            if job.counted:
                del job.watchers[1:]
            super().watch(job, watcher)


@fault("w9-a-thread-for-each-of-32", "W9 W2 W6 W4 H7")
class _(App):
    """No more than 32 waiters wait; the others are answered as if their budget were over."""

    def park(self, job, budget_ms, answer):
        if job.counted and len(job.watchers) >= 32:
            return answer()
        return super().park(job, budget_ms, answer)


@fault("w9-submit-waits-for-waiters", "W9")
class _(Book):
    """A submit is 600 ms late while more than a hundred wait."""

    def admit(self, task_id, work):
        if sum(len(job.watchers) for job in self.live()) > 100:
            time.sleep(0.6)
        return super().admit(task_id, work)


@fault("q4-notify-before-the-line", "Q4 W9 H11 T1 S9")
class _(Pool):
    """A worker is called before the job is in the line, and half the calls are lost."""

    calls = 0

    def put(self, job):
        budget_ms = self.budget_ms(job)
        if budget_ms > 0:
            self.alarm.at(self.deadline_ms(job, budget_ms), lambda: self.expire(job))
        with self.filled:
            self.calls += 1
            if self.calls % 2:
                self.filled.notify()
            self.enqueue(job)


@fault("q4-looks-each-400-ms", "Q4 W9 H11 T3 T5")
class _(PollingPool):
    """Workers look for work every 400 ms."""

    period_s = 0.4


@fault("q4-failures-cost-a-worker", "Q4 T5 T3 A11")
class _(Pool):
    """A worker whose run failed leaves, and nobody comes in its place, down to one."""

    lost = 0

    def serve(self, job, worker):
        super().serve(job, worker)
        if job.state == "failed" and self.lost < self.config.workers - 1:
            self.lost += 1
            worker.abandoned = True


@fault("t1-a-second-early", "T1", late_worker="held", hang_ms=2600)
class _(Pool):
    """A job that is still pending ends half a second before its budget."""

    def put(self, job):
        super().put(job)

        def early():
            if job.state == "pending":
                self.expire(job)

        self.alarm.at(job.admitted_ms + self.config.timeout_ms - 500, early)


@fault("t1-ends-with-the-next-look", "T1 T6", late_worker="held", hang_ms=2600)
class _(Pool):
    """A pending job's budget is looked at when a worker takes it from the line."""

    def expire(self, job):
        if job.state != "pending":
            super().expire(job)

    def serve(self, job, worker):
        if now_ms() > job.admitted_ms + self.config.timeout_ms:
            self.book.end(job, "timeout", self.timeout_error(job))
            return
        super().serve(job, worker)


@fault("t3-one-replacement", "T3 Q4 T1 A11 S9")
class _(Pool):
    """Only two workers are ever hired in place of those whose runs timed out."""

    hired = 0

    def replace(self, worker):
        worker.abandoned = True
        self.hired += 1
        if self.hired <= 2:
            self.hire()


@fault("t3-worker-sleeps-it-off", "T3 Q4 T1 A11 H11")
class _(Pool):
    """The worker in place of one whose run timed out begins 6 s later."""

    def replace(self, worker):
        worker.abandoned = True
        threading.Timer(6.0, self.hire).start()


@fault("t6-watch-each-two-seconds", "T6 T1")
class _(Pool):
    """Budgets are looked at every two seconds."""

    def deadline_ms(self, job, budget_ms):
        due_ms = super().deadline_ms(job, budget_ms)
        return due_ms + 2000 - due_ms % 2000


@fault("t6-timeout-keeps-running-state", "T6 S9 T1 W2")
class _(Pool):
    """A run past its budget ends as `timeout` only when it is over by itself."""

    def expire(self, job):
        if job.state == "running" and job.counted:
            job.overdue = True
        else:
            super().expire(job)

    def report(self, job, items, took_ms):
        if getattr(job, "overdue", False):
            self.book.end(job, "timeout", self.timeout_error(job))
        else:
            super().report(job, items, took_ms)


@fault("s9-done-forgotten-under-load", "S9 A5 A11 T6 T5 Q4")
class _(Pool):
    """While the queue is full the end of a run is forgotten; only the budget ends the job."""

    def report(self, job, items, took_ms):
        if job.counted and self.book.depth >= self.config.max_queue:
            return
        super().report(job, items, took_ms)


@fault("g2-result-waits-a-second", "G2 H2 G1 W9 A10 E5")
class _(App):
    """The result of a live job is refused after a second."""

    def on_result(self, request, route):
        job = self.book.find(route.job_id)
        if job is not None and job.state in LIVE:
            time.sleep(1.0)
        return super().on_result(request, route)


@fault("h4-refuses-late", "H4 H1 A3 W9", full=True)
class _(App):
    """A refusal for a full queue takes 600 ms."""

    def on_submit(self, request, route):
        response = super().on_submit(request, route)
        if response.status == 429:
            time.sleep(0.6)
        return response


class _LateFor(ThreadedFront):
    """Waiters of jobs that end in one way are told 700 ms later."""

    state = ""

    def park(self, parked):
        began_ms = now_ms()
        super().park(parked)
        if parked.job.state == self.state and now_ms() - began_ms > 100:
            time.sleep(0.7)


@fault("w2-failed-late", "W2 W6 H7")
class _(_LateFor):
    """Waiters of a job that fails are told 700 ms later."""

    state = "failed"


@fault("w2-timeout-late", "W2 W6 H7")
class _(_LateFor):
    """Waiters of a job that times out are told 700 ms later."""

    state = "timeout"


@fault("w2-only-patient", "W2 W6 H7 W4")
class _(App):
    """Who asks for less than two seconds is not woken, and sleeps through the budget."""

    def park(self, job, budget_ms, answer):
        if budget_ms is not None and 0 < budget_ms < 2000 and job.state in LIVE:
            time.sleep(budget_ms / 1000)
            return answer()
        return super().park(job, budget_ms, answer)
