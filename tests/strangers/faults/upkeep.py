"""M and X: counters that do not add up, memories that outlive a restart, and bad ends."""

import json
import os
import tempfile
import time
from pathlib import Path

from strangers.answers import Answers
from strangers.app import App
from strangers.book import Book, Job, now_ms
from strangers.faults import also, fault
from strangers.messages import Response
from strangers.server import Server


class _Miscounting(App):
    """Changes the numbers of `/metrics`."""

    def changed(self, numbers):
        return numbers

    def numbers(self):
        return self.changed(super().numbers())


@fault("m1-failed-uncounted", "M1", should=True)
class _(_Miscounting):
    """Failed jobs are not counted."""

    def changed(self, numbers):
        return {**numbers, "failed_total": 0}


@fault("m1-timeout-counted-twice", "M1", should=True)
class _(_Miscounting):
    """Timed-out jobs count as failed too."""

    def changed(self, numbers):
        both = numbers["failed_total"] + numbers["timeout_total"]
        return {**numbers, "failed_total": both}


@fault("m1-refused-counted", "M1", should=True)
class _(Book):
    """Refused submits count as submitted."""

    def has_room(self):
        room = super().has_room()
        self.tally["submitted"] += not room
        return room


@fault("m1-invalid-counted", "M1", should=True)
class _(App):
    """Invalid submits count as submitted."""

    def finish(self, response):
        self.book.tally["submitted"] += response.status == 422
        return super().finish(response)


@fault("m1-late-end-counted", "M1", should=True)
class _(Book):
    """A late end is counted again."""

    def end_again(self, job, state, error, result):
        self.tally[state] += job.counted
        return False


@fault("m1-infer-counted", "M1", should=True)
class _(Book):
    """Blocking calls count as done jobs."""

    def end(self, job, state, error=None, result=None):
        ended = super().end(job, state, error, result)
        self.tally[state] += ended and not job.counted
        return ended


@fault("m1-crash-uncounted", "M1", should=True)
class _(Book):
    """Crashed jobs are not counted."""

    def publish(self, job, state, error, result):
        super().publish(job, state, error, result)
        self.tally[state] -= job.counted and (error or "").startswith("crashed")


@fault("m1-depth-high-water", "M1", should=True)
class _(_Miscounting):
    """The depth shown is the highest there was."""

    highest = 0

    def changed(self, numbers):
        self.highest = max(self.highest, numbers["depth"])
        return {**numbers, "depth": self.highest}

    def on_submit(self, request, route):
        response = super().on_submit(request, route)
        self.highest = max(self.highest, self.book.depth)
        return response


@fault("m1-depth-is-retained", "M1", should=True)
class _(_Miscounting):
    """The depth shown is the number of retained jobs."""

    def changed(self, numbers):
        return {**numbers, "depth": len(self.book.finished)}


@fault("m1-no-numbers", "M1 K1", should=True)
class _(App):
    """The counters are words."""

    def on_metrics(self, request, route):
        return Response(200, "stranger_jobs_submitted_total many\n")


def _memory(config):
    return Path(tempfile.gettempdir()) / f"stranger-{config.port}.json"


@fault("x1-jobs-survive", "X1", process=True, full=True)
class _(Book):
    """Done jobs are written to disk and are there again after a restart."""

    def __init__(self, config):
        super().__init__(config)
        memory = _memory(config)
        for id_ in json.loads(memory.read_text()) if memory.exists() else []:
            job = Job(id_, "", None, counted=True)
            job.state, job.completed_ms = "failed", now_ms()
            job.error = "restarted"
            self.table[id_] = job
        memory.unlink(missing_ok=True)

    def retain(self, job):
        super().retain(job)
        _memory(self.config).write_text(json.dumps([job.id for job in self.finished]))


@fault("x1-depth-survives", "X1 A11 A3 H4", process=True, full=True)
class _(Book):
    """The depth is kept on disk, so places taken at a kill are lost."""

    def __init__(self, config):
        super().__init__(config)
        memory = _memory(config)
        self.depth = json.loads(memory.read_text()) if memory.exists() else 0
        memory.unlink(missing_ok=True)

    def record(self, task_id, work):
        job = super().record(task_id, work)
        _memory(self.config).write_text(str(self.depth))
        return job

    def release(self, job):
        super().release(job)
        _memory(self.config).write_text(str(self.depth))


@fault("x4-admits", "X4", process=True, full=True)
class _(App):
    """While it stops, the server admits new jobs."""

    def refuse_draining(self, head, route):
        return None

    def submit(self, order, request):
        draining, self.draining = self.draining, False
        try:
            return super().submit(order, request)
        finally:
            self.draining = draining


@fault("x4-429", "X4 H4", process=True, full=True)
class _(Answers):
    """While it stops, a submit is a 429."""

    def draining(self):
        response = super().draining()
        return self.full() if response.status == 503 else response


@also("x4-429")
class _(App):
    """...and `/ready` is 503."""

    def on_ready(self, request, route):
        return (
            Response(503, {"error": "draining"})
            if self.draining
            else super().on_ready(request, route)
        )


@fault("x4-stays-ready", "X4", process=True, full=True)
class _(App):
    """While it stops, `/ready` is 200."""

    def on_ready(self, request, route):
        return Response(200, {"status": "ready"})


@fault("x4-exit-1", "X4", process=True, full=True)
class _(Server):
    """The exit code after a good stop is 1."""

    def exit_code(self):
        return 1


@fault("x4-dies-at-once", "X4", process=True, full=True)
class _(Server):
    """SIGTERM ends the process where it stands."""

    def drain(self):
        os._exit(143)


@fault("x4-leaves-at-once", "X4", process=True, full=True)
class _(Server):
    """SIGTERM ends the process with code 0, and nobody is waited for."""

    def drain(self):
        os._exit(0)


@fault("x4-cuts-waiters", "X4", process=True, full=True)
class _(Server):
    """Live jobs finish, but the process leaves before their waiters are told."""

    def drain(self):
        self.stop_admitting()
        until = time.monotonic() + self.config.grace_ms / 1000
        end = self.book.wake
        self.book.wake = lambda job: None if job.counted else end(job)
        while self.book.live() and time.monotonic() < until:
            time.sleep(0.02)
        os._exit(0)


@fault("x4-fails-live-jobs", "X4", process=True, full=True)
class _(Server):
    """Live jobs fail at once, without a grace period."""

    def drain(self):
        self.stop_admitting()
        for job in self.book.live():
            self.book.end(job, "failed", "the server is stopping")
        time.sleep(1.0)
        self.stopped.set()


@fault("x4-drops-pending", "X4 S9", process=True, full=True, timeout_ms=2500)
class _(Server):
    """At the stop the line is emptied: what was pending there ends by its budget only."""

    def drain(self):
        with self.pool.filled:
            self.pool.line.clear()
        super().drain()


@fault("x4-never-ends", "X4", process=True, full=True, timeout_ms=0)
class _(Server):
    """What hangs is waited for without end."""

    def drain(self):
        self.stop_admitting()
        while self.book.live():
            time.sleep(0.02)
        self.stopped.set()


@fault("x4-rest-stays-running", "X4", process=True, full=True, timeout_ms=0)
class _(Server):
    """What is left after the grace period is not failed; its waiters are cut."""

    def drain(self):
        self.stop_admitting()
        until = time.monotonic() + self.config.grace_ms / 1000
        while self.book.live() and time.monotonic() < until:
            time.sleep(0.02)
        os._exit(0)


@fault("x4-rest-is-timeout", "X4 T4", process=True, full=True, timeout_ms=0)
class _(Server):
    """What is left after the grace period is `timeout`, not `failed`."""

    def drain(self):
        end = self.book.end

        def renamed(job, state, error=None, result=None):
            return end(
                job, "timeout" if error == "the server is stopping" else state, error, result
            )

        self.book.end = renamed
        super().drain()


@fault("x4-500", "X4 E5", process=True, full=True)
class _(Answers):
    """While it stops, a submit is a 500."""

    def draining(self):
        return self.error(500, "draining", "draining")


@also("x4-500")
class _(App):
    """...and `/ready` is 503."""

    def on_ready(self, request, route):
        return (
            Response(503, {"error": "draining"})
            if self.draining
            else super().on_ready(request, route)
        )


@fault("x4-forgets-pending", "X4", process=True, full=True)
class _(Server):
    """While it stops, pending jobs fail at once; only running ones may finish."""

    def stop_admitting(self):
        super().stop_admitting()
        for job in self.book.live():
            if job.state == "pending":
                self.book.end(job, "failed", "the server is stopping")


@fault("x4-reads-are-503", "X4", process=True, full=True)
class _(App):
    """While it stops, reads of jobs are 503."""

    def answer(self, request):
        route = self.route(request.head)
        if self.draining and route.kind in ("status", "wait", "result"):
            return self.finish(self.answers.draining())
        return super().answer(request)
