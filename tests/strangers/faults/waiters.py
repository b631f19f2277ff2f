"""W6, W7, W9: many waiters, waiters of nothing, and waiters in the way."""

import threading
import time

from strangers.app import App
from strangers.book import LIVE, Book, now_ms
from strangers.faults import also, fault
from strangers.fronts import ThreadedFront
from strangers.messages import Parked, Response
from strangers.workers import Pool


@fault("w6-first-only", "W6 H7 W2")
class _(Book):
    """Only the first waiter is woken."""

    def wake(self, job):
        job.watchers = job.watchers[:1]
        super().wake(job)


@fault("w6-last-only", "W6 H7 W2")
class _(Book):
    """There is one slot for a waiter: the latest takes it."""

    def watch(self, job, watcher):
        with self.lock:
            if job.counted:
                job.watchers.clear()
            super().watch(job, watcher)


@fault("w6-eight-only", "W6 W2 W9")
class _(Book):
    """Only eight waiters are woken."""

    def wake(self, job):
        job.watchers = job.watchers[:8]
        super().wake(job)


@fault("w6-second-is-409", "W6 H7 W4 W9")
class _(App):
    """A second waiter is refused."""

    def on_wait(self, request, route):
        job = self.book.find(route.job_id)
        if job and job.watchers:
            return self.answers.error(409, f"{job.id} is being waited for: {job.state}", job.id)
        return super().on_wait(request, route)


@fault("w6-others-see-running", "W6 H7 W2 S5 W4")
class _(Book):
    """One waiter is told the end, the others that the job runs."""

    def wake(self, job):
        job.told = False
        super().wake(job)


@also("w6-others-see-running")
class _(App):
    """Tells the first only."""

    def after_wait(self, job):
        if getattr(job, "told", None):
            view = self.book.view(job)._replace(state="running", error=None)
            return self.answers.status(view)
        job.told = True
        return super().after_wait(job)


@fault("w6-one-by-one", "W6 W2 H7")
class _(Book):
    """Waiters are woken one by one, 150 ms apart."""

    def wake(self, job):
        watchers, job.watchers = job.watchers, []

        def later():
            for index, watcher in enumerate(watchers):
                if index:
                    time.sleep(0.15)
                watcher()

        if watchers:
            threading.Thread(target=later, daemon=True).start()


@fault("w7-unknown-sleeps", "W7")
class _(App):
    """A wait on an unknown id sleeps before it says so."""

    def on_wait(self, request, route):
        if self.book.find(route.job_id) is None:
            time.sleep(1.2)
        return super().on_wait(request, route)


@fault("w7-unknown-is-pending", "W7 S8 G3 R7 H13 R3 R4")
class _(App):
    """A wait on an unknown id says `pending`."""

    def on_wait(self, request, route):
        if self.book.find(route.job_id) is None:
            body = {"job_id": route.job_id, "state": "pending", "elapsed_ms": 0}
            return Response(200, body)
        return super().on_wait(request, route)


@fault("w7-unknown-is-400", "W7 S8 G3 R7 H13 R3 R4 E4")
class _(App):
    """A wait on an unknown id is a 400."""

    def on_wait(self, request, route):
        if self.book.find(route.job_id) is None:
            return self.answers.error(400, f"cannot wait for {route.job_id}", route.job_id)
        return super().on_wait(request, route)


@fault("w7-evicted-hangs", "W7 W2 W6 W9", max_completed=0)
class _(App):
    """A waiter looks its job up; when it was evicted meanwhile, it sleeps on."""

    def park(self, job, budget_ms, answer):
        until_ms = now_ms() + budget_ms
        while now_ms() < until_ms:
            time.sleep(0.05)
            known = self.book.find(job.id)
            if known is not None and known.state not in LIVE:
                break
        return Parked(job, 0, answer)


@fault("w9-holds-a-worker", "W9 Q4 W2 T1 T6 W6 H7")
class _(Book):
    """Counts who waits."""

    def waiting(self):
        return sum(len(job.watchers) for job in self.live())


@also("w9-holds-a-worker")
class _(Pool):
    """Each waiter holds a worker, down to the last."""

    def take(self):
        while True:
            job = super().take()
            held = min(self.config.workers - 1, self.book.waiting())
            running = sum(other.state == "running" for other in self.book.live())
            if running < self.config.workers - held:
                return job
            with self.filled:
                self.line.appendleft(job)
            time.sleep(0.02)


@fault("w9-64-connections", "W9 W2 W6 W4 H7")
class _(ThreadedFront):
    """No more than 64 connections are served at a time."""

    seats = threading.BoundedSemaphore(64)

    def hold(self, conversation):
        with self.seats:
            super().hold(conversation)


@fault("w9-waiters-slow-submits", "W9")
class _(Book):
    """A submit walks over all waiters, 5 ms each."""

    def admit(self, task_id, work):
        time.sleep(0.005 * sum(len(job.watchers) for job in self.live()))
        return super().admit(task_id, work)
