"""Q: task ids lost, changed or mixed up; jobs forgotten in the line, or taken out of turn."""

import json
import time

from strangers.app import App
from strangers.book import Book
from strangers.faults import fault
from strangers.intake import Intake
from strangers.workers import Pool


class _Named(App):
    """Changes the client's task id."""

    def changed(self, req_id):
        return req_id

    def task_id(self, order):
        return self.changed(order.req_id) if order.req_id else super().task_id(order)


@fault("q2-lost-after-take", "Q2 G1 H13 H11")
class _(Pool):
    """The task id goes with the payload: the result has null."""

    def envelope(self, job, items, took_ms):
        return {**super().envelope(job, items, took_ms), "task_id": None}


@fault("q2-ignored", "Q2")
class _(_Named):
    """The client's `req_id` is ignored; the server makes its own."""

    def changed(self, req_id):
        return "task-0815"


@fault("q2-cut", "Q2")
class _(_Named):
    """The task id is cut at 16 characters."""

    def changed(self, req_id):
        return req_id[:16]


@fault("q2-lower-case", "Q2")
class _(_Named):
    """The task id is put in lower case."""

    def changed(self, req_id):
        return req_id.lower()


@fault("q2-trimmed", "Q2", full=True)
class _(_Named):
    """Blanks around the task id are trimmed."""

    def changed(self, req_id):
        return req_id.strip()


@fault("q2-number", "Q2", full=True)
class _(_Named):
    """A task id of digits comes back as a number."""

    def changed(self, req_id):
        return int(req_id) if req_id.isdecimal() else req_id


@fault("q2-empty-is-kept", "Q2 G1")
class _(App):
    """An empty `req_id` is echoed as empty."""

    def submit(self, order, request):
        self.empty = b'"req_id"' in request.body and not order.req_id
        return super().submit(order, request)

    def task_id(self, order):
        return "" if self.__dict__.get("empty") else super().task_id(order)


@fault("q2-none-made", "Q2 G1 H13 H11")
class _(App):
    """Without a `req_id` the task id is empty."""

    def task_id(self, order):
        return order.req_id


@fault("q2-surrogate-accepted", "Q2 E9 E7")
class _(Intake):
    """A `req_id` that is no Unicode text is accepted."""

    def is_surrogate(self, text):
        return False

    def is_plain(self, text):
        return super().is_plain("".join(c for c in text if not "\ud800" <= c <= "\udfff"))


@fault("q2-latest-wins", "Q2 G4 G1 R6")
class _(Book):
    """The result echoes the latest task id, not the job's own."""

    latest = ""

    def record(self, task_id, work):
        self.latest = task_id
        return super().record(task_id, work)

    def view(self, job):
        view = super().view(job)
        result = view.result and {**view.result, "task_id": self.latest}
        return view._replace(result=result)


@fault("q2-mixed-up-when-busy", "Q2 G4 G1")
class _(Pool):
    """A run's task id is read from a shared variable that a concurrent run may have changed."""

    def execute(self, job):
        self.current = job.task_id
        super().execute(job)

    def envelope(self, job, items, took_ms):
        return {**super().envelope(job, items, took_ms), "task_id": self.current}


@fault("q2-escaped-twice", "Q2")
class _(_Named):
    """Quotes and backslashes of the task id are escaped twice."""

    def changed(self, req_id):
        return json.dumps(req_id)[1:-1]


@fault("q4-last-first", "Q4", should=True)
class _(Pool):
    """Idle workers take the youngest pending job."""

    def pick(self):
        return self.line.pop()


@fault("q4-short-first", "Q4", should=True, full=True)
class _(Pool):
    """Idle workers take the job with the shortest images."""

    def pick(self):
        job = min(self.line, key=lambda job: len(str(job.work.images)))
        self.line.remove(job)
        return job


@fault("q4-no-call-when-busy", "Q4 W9 H11 T1 S9")
class _(Pool):
    """Only a submit that finds nobody running calls a worker."""

    def put(self, job):
        budget_ms = self.budget_ms(job)
        if budget_ms > 0:
            self.alarm.at(self.deadline_ms(job, budget_ms), lambda: self.expire(job))
        with self.filled:
            if self.book.depth + self.book.errands <= 1:
                self.filled.notify()
            self.enqueue(job)

    def take(self):
        time.sleep(0.02)
        return super().take()


@fault("q4-one-worker-sleeps", "Q4 W9 T3 T1")
class _(Pool):
    """One of the workers never works."""

    def open(self):
        for _ in range(self.config.workers - 1):
            self.hire()


@fault("q4-rests-after-a-run", "Q4 H11 T3 T5 T1 W9")
class _(Pool):
    """A worker rests for 900 ms after each run."""

    def serve(self, job, worker):
        super().serve(job, worker)
        time.sleep(0.9)


@fault("q4-seventh-waits", "Q4 S9 T1 T6 A11 W2")
class _(Pool):
    """Every seventh job is started only when another comes."""

    puts, delayed = 0, None

    def enqueue(self, job):
        self.puts += 1
        delayed, self.delayed = self.delayed, None
        if delayed is not None:
            self.line.append(delayed)
            self.filled.notify()
        if self.puts % 7 == 0:
            self.delayed = job
        else:
            self.line.append(job)


class PollingPool(Pool):
    """Workers look for work again and again instead of being called."""

    period_s = 1.0

    def take(self):
        while True:
            with self.filled:
                if self.line:
                    return self.pick()
            time.sleep(self.period_s)


@fault("q4-looks-once-a-second", "Q4 W9 H11 T3 T5")
class _(PollingPool):
    """Workers look for work once a second."""


@fault("q4-large-forgotten", "Q4 S9 T6 T1", full=True)
class _(Pool):
    """A job with more than eight images is never started."""

    def enqueue(self, job):
        if len(job.work.images) <= 8:
            super().enqueue(job)


@fault("q4-stops-after-twenty", "Q4 S9 T1 T6 H11 A11")
class _(Pool):
    """A worker leaves after twenty runs and nobody comes in its place."""

    def serve(self, job, worker):
        worker.runs = getattr(worker, "runs", 0) + 1
        super().serve(job, worker)
        worker.abandoned = worker.abandoned or worker.runs >= 20
