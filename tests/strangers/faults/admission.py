"""A: too many or too few places, places lost or given twice, ids that come again."""

import time

from strangers.answers import Answers
from strangers.app import App
from strangers.book import Book, now_ms
from strangers.faults import also, fault
from strangers.fronts import ThreadedFront
from strangers.intake import Refusal
from strangers.workers import Pool


@fault("a2-one-more", "A2 A3 H4")
class _(Book):
    """Compares with <=, so there is one place too many."""

    def has_room(self):
        return self.depth <= self.config.max_queue


class _TwoSteps(Book):
    """Looks for room, then takes the place."""

    window_s = 0.0

    def admit(self, task_id, work):
        if not self.has_room():
            return None
        time.sleep(self.window_s)
        with self.lock:
            self.depth += 1
            job = self.record(task_id, work)
            self.sweep()
            return job


class _Unguarded(App):
    def submit(self, order, request):
        job = self.book.admit(self.task_id(order), order.work)
        if job is None:
            return self.answers.full()
        self.pool.put(job)
        return self.answers.admitted(job)


@fault("a2-check-then-act", "A2 A3")
class _(_TwoSteps):
    """Check and increment are two steps, 2 ms apart."""

    window_s = 0.002


@also("a2-check-then-act")
class _(_Unguarded):
    """No lock around the two."""


@fault("a2-check-then-act-tight", "A2 A3")
class _(_TwoSteps):
    """Check and increment are two steps, next to each other."""

    window_s = 0.0001


@also("a2-check-then-act-tight")
class _(_Unguarded):
    """No lock around the two."""


@fault("a3-one-less", "A3 H4 A11 A2")
class _(Book):
    """One place is never given away."""

    def has_room(self):
        return self.depth < self.config.max_queue - 1


@fault("a3-busy-lock-refuses", "A3 A11")
class _(Book):
    """A submit that finds the book locked is refused, room or not."""

    def admit(self, task_id, work):
        if not self.lock.acquire(blocking=False):
            return None
        try:
            time.sleep(0.001)
            return super().admit(task_id, work)
        finally:
            self.lock.release()


@also("a3-busy-lock-refuses")
class _(_Unguarded):
    """The app takes no lock either."""


@fault("a3-waiters-take-places", "A3 W9 A11 H4")
class _(Book):
    """Whoever waits takes a place."""

    def has_room(self):
        waiting = sum(len(job.watchers) for job in self.live())
        return self.depth + waiting < self.config.max_queue


@fault("a3-retained-take-places", "A3 A5 A11 Q4")
class _(Book):
    """A job keeps its place for 400 ms after its end."""

    def has_room(self):
        fresh = [job for job in self.finished if now_ms() - job.completed_ms < 400]
        return self.depth + len(fresh) < self.config.max_queue


@fault("a3-sulks", "A3 A5 A11")
class _(Book):
    """After a refusal every submit is refused for 700 ms."""

    until_ms = 0.0

    def admit(self, task_id, work):
        job = None if now_ms() < self.until_ms else super().admit(task_id, work)
        if job is None:
            self.until_ms = max(self.until_ms, now_ms() + 700 if self.depth else 0)
        return job


@fault("a4-zero-is-unlimited", "A4 A2 A3 H4", max_queue=0)
class _(Book):
    """A bound of 0 is taken for none."""

    def has_room(self):
        return self.config.max_queue == 0 or super().has_room()


@fault("a4-negative-is-unlimited", "A4 A2 A3 H4", max_queue=-3)
class _(Book):
    """A negative bound is taken for none."""

    def has_room(self):
        return self.config.max_queue < 0 or super().has_room()


@fault("a4-zero-admits-one", "A4 A2 A3 H4", max_queue=0)
class _(Book):
    """A bound of 0 counts as 1."""

    def has_room(self):
        return self.depth < max(1, self.config.max_queue)


@fault("a5-released-at-start", "A2 A3 A5 H4 W9")
class _(Book):
    """A job gives its place back when it starts to run."""

    def begin(self, job):
        begun = super().begin(job)
        if begun and job.counted:
            with self.lock:
                self.depth -= 1
                job.released = True
        return begun

    def release(self, job):
        if not getattr(job, "released", False):
            super().release(job)


@fault("a5-released-late", "A5 A3 A11")
class _(Pool):
    """A place comes free 700 ms after the job's end."""

    def put(self, job):
        if job.counted:
            self.book.alarm = self.alarm
        super().put(job)


@also("a5-released-late")
class _(Book):
    """Hands the release to the alarm."""

    def release(self, job):
        self.alarm.at(now_ms() + 700, lambda: Book.release(self, job))


@fault("a5-released-on-read", "A5 A3 A11 T2 T5")
class _(Book):
    """A place comes free only when somebody reads that the job has ended."""

    def release(self, job):
        job.owes = True

    def view(self, job):
        with self.lock:
            if getattr(job, "owes", False):
                job.owes = False
                self.depth -= 1
            return super().view(job)


@also("a5-released-on-read")
class _(App):
    """...and a wait does not count as reading."""

    def after_wait(self, job):
        owes, job.owes = getattr(job, "owes", False), False
        response = super().after_wait(job)
        job.owes = owes
        return response


class LeakyBook(Book):
    """Keeps the place of some jobs."""

    def leaks(self, job):
        return False

    def release(self, job):
        if not self.leaks(job):
            super().release(job)


@fault("a5-timeout-leaks", "A5 A11 A3 T2 T6 M1 T1")
class _(LeakyBook):
    """A timed-out job keeps its place."""

    def leaks(self, job):
        return job.state == "timeout"


@fault("a5-crash-leaks", "A5 A11 A3 T5 M1")
class _(LeakyBook):
    """A crashed job keeps its place."""

    def leaks(self, job):
        return (job.error or "").startswith("crashed")


@fault("a5-failure-leaks", "A5 A11 A3 T5 M1")
class _(LeakyBook):
    """A job whose model refused keeps its place."""

    def leaks(self, job):
        return job.state == "failed" and not job.error.startswith("crashed")


@fault("a5-partial-leaks", "A5 A11 A3 G5 M1")
class _(LeakyBook):
    """A partly failed job keeps its place."""

    def leaks(self, job):
        return job.state == "done" and job.result["partial"]


@fault("a5-pending-timeout-leaks", "A5 A11 A3 T1 M1 T2", late_worker="held", hang_ms=2400)
class _(Pool):
    """A job whose budget ran out before it started keeps its place."""

    def expire(self, job):
        waiting = job.counted and job.state == "pending"
        super().expire(job)
        if waiting and job.state == "timeout":
            with self.book.lock:
                self.book.depth += 1


@fault("a5-wait-budget-leaks", "A5 A11 A3 W4 M1 W8")
class _(ThreadedFront):
    """A wait whose budget runs out takes a place for good."""

    def park(self, parked):
        super().park(parked)
        if parked.job.counted and parked.job.state == "running":
            with self.book.lock:
                self.book.depth += 1


@fault("a5-second-waiter-leaks", "A5 A11 A3 W6 M1")
class _(Book):
    """A job that two waited for keeps its place."""

    def release(self, job):
        if len(job.watchers) < 2:
            super().release(job)


@fault("a6-refusal-takes-a-place", "A6 A11 A3 A5")
class _(Book):
    """A refused submit is counted, for good."""

    def admit(self, task_id, work):
        job = super().admit(task_id, work)
        if job is None:
            self.depth += 1
        return job


@also("a6-refusal-takes-a-place")
class _(App):
    """Asks the book each time."""

    def on_submit(self, request, route):
        try:
            order = self.intake.read(request.body)
        except Refusal as refusal:
            return self.answers.refusal(refusal)
        return self.submit(order, request)


@fault("a6-refusal-names-a-job", "A6")
class _(Answers):
    """The 429 names a job, which can be read."""

    def full(self):
        response = super().full()
        job = self.book.record("refused", None)
        job.state = "failed"
        job.error, job.completed_ms = "refused", now_ms()
        response.payload["job_id"] = job.id
        response.headers["Location"] = self.url(job, "")
        return response


@also("a6-refusal-names-a-job")
class _(App):
    """Lets the answers reach the book."""

    def on_submit(self, request, route):
        self.answers.book = self.book
        return super().on_submit(request, route)


@fault("a6-refused-job-runs", "A6 A2 R9 M1 Q4 A3 A11 R4 R6")
class _(App):
    """A refused submit is run all the same, and retained when it ends."""

    def on_submit(self, request, route):
        response = super().on_submit(request, route)
        if response.status == 429 and b'"images"' in request.body:
            order = self.intake.read(request.body)
            with self.book.lock:
                self.book.depth += 1
                job = self.book.record("refused", order.work)
            self.pool.put(job)
        return response
