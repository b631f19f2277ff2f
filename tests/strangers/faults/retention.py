"""R: evicted too early, too late, too many, too few, or not for good."""

import random
import time
from collections import deque

from strangers.answers import Answers
from strangers.app import App
from strangers.book import LIVE, Book, now_ms
from strangers.faults import also, fault
from strangers.messages import Response


@fault("r1-age-takes-live-jobs", "R1 R7 A10 S5 S9 W7 R9", job_ttl_ms=700)
class _(Book):
    """Eviction by age counts from admission and asks nobody's state."""

    def sweep_by_age(self):
        for job in list(self.table.values()):
            if now_ms() - job.admitted_ms > self.config.job_ttl_ms:
                self.drop(job)


@fault("r1-count-takes-live-jobs", "R1 R9 A10 S5 R7 W7 R4", max_completed=1)
class _(Book):
    """Eviction by count takes the oldest jobs, live ones too."""

    def victims(self, count):
        return sorted(self.table.values(), key=lambda job: job.admitted_ms)[:count]


@fault("r1-running-counts-as-old", "R1 A10 S5 R7 R9")
class _(Book):
    """A job that has run for 400 ms is evicted by the next submit."""

    def sweep(self):
        super().sweep()
        for job in self.live():
            if job.state == "running" and now_ms() - job.admitted_ms > 400:
                self.table.pop(job.id)


class _Ageless(Book):
    """Eviction by age of some jobs only."""

    def spares(self, job):
        return True

    def expired(self, job):
        return super().expired(job) and not self.spares(job)


@fault("r3-off", "R3")
class _(_Ageless):
    """Nothing is evicted by age."""


@fault("r3-spares-failed", "R3")
class _(_Ageless):
    """Failed jobs are not evicted by age."""

    def spares(self, job):
        return job.state == "failed"


@fault("r3-spares-timeouts", "R3")
class _(_Ageless):
    """Timed-out jobs are not evicted by age."""

    def spares(self, job):
        return job.state == "timeout"


@fault("r3-spares-done", "R3")
class _(_Ageless):
    """Done jobs are not evicted by age."""

    def spares(self, job):
        return job.state == "done"


@fault("r3-doubled", "R3")
class _(Book):
    """Jobs are retained for twice the time."""

    def expired(self, job):
        return now_ms() - job.completed_ms > 2 * self.config.job_ttl_ms


@fault("r3-half-as-long-again", "R3", full=True)
class _(Book):
    """Jobs are retained for 1.5 times the time."""

    def expired(self, job):
        return now_ms() - job.completed_ms > 1.5 * self.config.job_ttl_ms


@fault("r3-slides", "R3")
class _(Book):
    """The retention time begins anew at every read."""

    def expired(self, job):
        return now_ms() - job.used_ms > self.config.job_ttl_ms


@fault("r3-only-over-count", "R3")
class _(Book):
    """Eviction by age happens only when there are too many."""

    def sweep_by_age(self):
        if self.excess():
            super().sweep_by_age()


@fault("r3-sweeps-before-admission", "R3 R4")
class _(Book):
    """The sweep takes place only at every fourth submit."""

    submits = 0

    def sweep(self):
        self.submits += 1
        if self.submits % 4 == 0:
            super().sweep()


@fault("r3-only-when-idle", "R3", full=True)
class _(Book):
    """Eviction by age waits until nothing else is live."""

    def sweep_by_age(self):
        if self.depth <= 1:
            super().sweep_by_age()


@fault("r4-off", "R4")
class _(Book):
    """Nothing is evicted by count."""

    def excess(self):
        return 0


@fault("r4-one-more", "R4")
class _(Book):
    """One job too many is retained."""

    def excess(self):
        return max(0, super().excess() - 1)


class _Uncounted(Book):
    """Some jobs are never evicted by count."""

    ignored = ""

    def sweep_by_count(self):
        counted = [job for job in self.finished if job.state != self.ignored]
        for job in counted[: max(0, len(counted) - self.config.max_completed)]:
            self.drop(job)


@fault("r4-failed-uncounted", "R4")
class _(_Uncounted):
    """Failed jobs do not count as retained."""

    ignored = "failed"


@fault("r4-timeouts-uncounted", "R4", job_ttl_ms=6000, timeout_ms=900, max_completed=2)
class _(_Uncounted):
    """Timed-out jobs are not counted."""

    ignored = "timeout"


@fault("r4-orphans", "R4 R5", job_ttl_ms=20_000)
class _(Book):
    """D5: a job that was running when it was the oldest is never evicted by count again."""

    def record(self, task_id, work):
        job = super().record(task_id, work)
        self.__dict__.setdefault("order", deque()).append(job)
        return job

    def sweep_by_count(self):
        while self.order and len(self.order) > self.config.max_completed + self.depth:
            job = self.order.popleft()
            if job.state not in LIVE:
                self.drop(job)

    def sweep_by_age(self):
        super().sweep_by_age()
        self.order = deque(job for job in self.order if job.id in self.table)


@fault("r4-stops-at-the-oldest-live", "R4 R5", max_completed=1)
class _(Book):
    """Eviction by count goes by submission, and stops at the oldest job that is still live."""

    def sweep_by_count(self):
        excess = self.excess()
        for job in list(self.table.values())[:excess]:
            if job.state in LIVE:
                return
            self.drop(job)


@fault("r4-wears-off", "R4", job_ttl_ms=20_000)
class _(Book):
    """After fifteen evictions there are no more."""

    dropped = 0

    def sweep_by_count(self):
        if self.dropped < 15:
            before = len(self.finished)
            super().sweep_by_count()
            self.dropped += before - len(self.finished)


@fault("r4-one-at-a-time", "R4", workers=4, max_queue=6, max_completed=2)
class _(Book):
    """A submit evicts one job at most, however many are too many."""

    def excess(self):
        return min(1, super().excess())


@fault("r4-afterwards", "R4 R3")
class _(Book):
    """The sweep comes 400 ms after the submit has returned."""

    def sweep(self):
        self.alarm.at(now_ms() + 400, self.swept)

    def swept(self):
        with self.lock:
            super().sweep()


@also("r4-afterwards")
class _(App):
    """Lends the book the alarm."""

    def submit(self, order, request):
        self.book.alarm = self.pool.alarm
        return super().submit(order, request)


@fault("r5-newest-first", "R5 R9", should=True, job_ttl_ms=20_000)
class _(Book):
    """By count, the newest go first."""

    def seniority(self, job):
        return -super().seniority(job)


@fault("r5-random", "R5", should=True, job_ttl_ms=20_000)
class _(Book):
    """By count, any go."""

    def seniority(self, job):
        return random.random()


@fault("r5-failed-first", "R5", should=True, job_ttl_ms=20_000)
class _(Book):
    """By count, failed jobs go before all others."""

    def seniority(self, job):
        return super().seniority(job) - (1e9 if job.state == "failed" else 0)


class _Counting(Answers):
    """Knows how often a job's result was read."""

    def reads(self, view):
        counts = self.__dict__.setdefault("counts", {})
        counts[view.id] = counts.get(view.id, 0) + 1
        return counts[view.id]


@fault("r6-result-read-once", "R6 R7 G1 G2 S6 S5 R9 G3 A10")
class _(_Counting):
    """The result is handed out once, then it is 404."""

    def result(self, view):
        if view.state == "done" and self.reads(view) > 1:
            return self.unknown_job(view.id)
        return super().result(view)


@fault("r6-result-read-thrice", "R6 G1 G2 S6 S5 R9 G3 A10")
class _(_Counting):
    """The result is handed out three times, then it is 409."""

    def result(self, view):
        if view.state == "done" and self.reads(view) > 3:
            return self.not_done(view)
        return super().result(view)


@fault("r6-result-read-ten-times", "R6 R7 G1 G2 S6 S5 R9 G3 A10")
class _(_Counting):
    """The result is handed out ten times, then it is 404."""

    def result(self, view):
        if view.state == "done" and self.reads(view) > 10:
            return self.unknown_job(view.id)
        return super().result(view)


@fault("r6-error-read-once", "R6 S6 S5 S4 W6 T5")
class _(_Counting):
    """The error of a failed job is told once."""

    def status(self, view):
        if view.error and self.reads(view) > 1:
            view = view._replace(error=None)
        return super().status(view)


@fault("r6-result-ends-the-job", "R6 R9 A10 G1 S5 G3 R7 S6")
class _(App):
    """Fetching the result removes the job."""

    def on_result(self, request, route):
        response = super().on_result(request, route)
        job = self.book.find(route.job_id)
        if job and response.status == 200:
            with self.book.lock:
                self.book.drop(job)
        return response


@fault("r6-data-fades", "R6 G1 G4")
class _(Book):
    """Half a second after its end a result's data is dropped to save memory."""

    def view(self, job):
        if job.result and now_ms() - job.completed_ms > 500:
            for item in job.result["results"]:
                item["data"] = None
        return super().view(job)


@fault("r6-error-says-when", "R6 S5 S4 W6")
class _(Answers):
    """The error text of a failed job tells how long ago that was."""

    def status(self, view):
        if view.error:
            view = view._replace(error=f"{view.error} ({time.monotonic():.3f})")
        return super().status(view)


@fault("r7-late-end-revives", "R7 T2 S8 S4 R3 R4 G3", max_completed=1)
class _(Book):
    """A late end puts the evicted job back into the table."""

    def end_again(self, job, state, error, result):
        if job.id not in self.table:
            self.table[job.id] = job
            self.finished.append(job)
        return False


@fault("r7-result-outlives", "R7 G3 R3 R4 S8 H13")
class _(App):
    """The result of an evicted job can still be read."""

    def on_result(self, request, route):
        kept = self.__dict__.setdefault("kept", {})
        response = super().on_result(request, route)
        if response.status == 200:
            kept[route.job_id] = response.payload
        if response.status == 404 and route.job_id in kept:
            return Response(200, kept[route.job_id])
        return response


@fault("r7-wait-outlives", "R7 W7 G3 R3 R4 S8")
class _(Book):
    """A wait still finds an evicted job."""

    def drop(self, job):
        super().drop(job)
        self.__dict__.setdefault("dropped", {})[job.id] = job


@also("r7-wait-outlives")
class _(App):
    """Looks among the dropped ones."""

    def on_wait(self, request, route):
        job = self.book.__dict__.get("dropped", {}).get(route.job_id)
        if job:
            return self.answers.status(self.book.view(job))
        return super().on_wait(request, route)


@fault("r7-comes-back", "R7 R3 R4 G3 S8")
class _(Book):
    """An evicted job is found again 300 ms later."""

    def drop(self, job):
        super().drop(job)
        self.__dict__.setdefault("dropped", {})[job.id] = (now_ms(), job)

    def look(self, id_):
        view = super().look(id_)
        dropped_ms, job = self.__dict__.get("dropped", {}).get(id_, (0, None))
        if view is None and job and now_ms() - dropped_ms > 300:
            return self.view(job)
        return view


@fault("r7-gone-is-410", "R7 G3 H13 S8 W7 R3 R4")
class _(Book):
    """Remembers every id it dropped."""

    def drop(self, job):
        super().drop(job)
        self.__dict__.setdefault("dropped", set()).add(job.id)


@also("r7-gone-is-410")
class _(App):
    """An evicted id is 410, not 404."""

    def unknown(self, route):
        if route.job_id in self.book.__dict__.get("dropped", ()):
            return self.answers.error(410, f"gone: {route.job_id}", f"gone: {route.job_id}")
        return super().unknown(route)


@fault("r9-one-too-many", "R9 R6 A10")
class _(Book):
    """Eviction by count takes one more than the excess."""

    def excess(self):
        excess = super().excess()
        return excess + 1 if excess else 0


@fault("r9-one-fewer-retained", "R9 R6 A10")
class _(Book):
    """One job fewer is retained than configured."""

    def excess(self):
        return max(0, len(self.finished) - self.config.max_completed + 1)


@fault("r9-all-at-once", "R9 R6 A10")
class _(Book):
    """When there are too many, all go."""

    def excess(self):
        return len(self.finished) if super().excess() else 0


@fault("r9-half-the-time", "R9 R6 A10")
class _(Book):
    """Jobs are retained for half the time."""

    def expired(self, job):
        return now_ms() - job.completed_ms > self.config.job_ttl_ms / 2


@fault("r9-age-from-admission", "R9 R6 A10 R1", job_ttl_ms=1000, timeout_ms=3000)
class _(Book):
    """The age is counted from admission, so slow jobs go early."""

    def expired(self, job):
        return now_ms() - job.admitted_ms > self.config.job_ttl_ms


@fault("r9-age-from-birth", "R9 R6 A10 R1")
class _(Book):
    """The age is counted from admission; few are retained, and slow jobs go early."""

    def expired(self, job):
        return now_ms() - job.admitted_ms > self.config.job_ttl_ms


@fault("r9-age-from-start", "R9 R6 A10 R1")
class _(Book):
    """The age is counted from the start of the run."""

    def begin(self, job):
        job.started_ms = now_ms()
        return super().begin(job)

    def expired(self, job):
        since_ms = getattr(job, "started_ms", job.admitted_ms)
        return now_ms() - since_ms > self.config.job_ttl_ms


@fault("r9-three-quarters-of-the-time", "R9 R6 A10")
class _(Book):
    """Jobs are retained for three quarters of their time."""

    def expired(self, job):
        return now_ms() - job.completed_ms > 0.75 * self.config.job_ttl_ms


@fault("r9-timeouts-at-once", "R9 R6 A10 R1")
class _(Book):
    """The next submit drops jobs that timed out, however young and few."""

    def expired(self, job):
        return job.state == "timeout" or super().expired(job)


@fault("r9-crashed-at-once", "R9 R6 A10")
class _(Book):
    """The next submit drops crashed jobs, however young and few."""

    def expired(self, job):
        crashed = (job.error or "").startswith("crashed")
        return crashed or super().expired(job)


@fault("r3-spares-crashed", "R3")
class _(_Ageless):
    """Crashed jobs are not evicted by age."""

    def spares(self, job):
        return (job.error or "").startswith("crashed")


@fault("r9-refusal-clears", "R9 R6 A10")
class _(Book):
    """A refused submit makes room by dropping every retained job."""

    def admit(self, task_id, work):
        job = super().admit(task_id, work)
        if job is None:
            self.finished_at_refusal()
        return job

    def has_room(self):
        room = super().has_room()
        if not room:
            self.finished_at_refusal()
        return room

    def finished_at_refusal(self):
        with self.lock:
            for job in list(self.finished):
                self.drop(job)


@fault("r9-failed-at-once", "R9 R6 A10")
class _(Book):
    """The next submit drops failed jobs, however young and few."""

    def expired(self, job):
        return job.state == "failed" or super().expired(job)


@fault("r9-live-jobs-count", "R9 R6 A10")
class _(Book):
    """Live jobs count towards the bound on retained ones."""

    def excess(self):
        return max(0, len(self.finished) + self.depth - 1 - self.config.max_completed)


@fault("r9-read-too-late", "R9 R6 A10 R3")
class _(Book):
    """A read finds no job older than 60 % of its retention."""

    def find(self, id_):
        job = super().find(id_)
        old = (
            job and job.completed_ms and now_ms() - job.completed_ms > 0.6 * self.config.job_ttl_ms
        )
        return None if old else job


@fault("r9-late-end-counts-twice", "R9 T2 S4 R6 A10 R4", job_ttl_ms=8000)
class _(Book):
    """A late end is retained again, so that two entries stand for one job."""

    def end_again(self, job, state, error, result):
        if job.id in self.table:
            self.finished.append(job)
        return False


@fault("r9-seconds", "R9 R6 A10", job_ttl_ms=1500)
class _(Book):
    """The retention time is taken for microseconds: everything is old at once."""

    def expired(self, job):
        return now_ms() - job.completed_ms > self.config.job_ttl_ms / 1000
