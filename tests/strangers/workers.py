"""Workers and deadlines: jobs in the order of admission, budgets counted from admission.

A worker thread cannot be interrupted. With `late_worker=replaced` the budget sends a fresh thread
in its place and the old one leaves when its run returns; with `held` it is busy until then.
"""

import contextlib
import heapq
import itertools
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from strangers.book import Book, Job, now_ms
from strangers.config import Config
from strangers.model import Item, Model

__all__ = ["Alarm", "Pool", "Worker"]


class Alarm:
    """Calls functions at their time (ms of `now_ms`), one after the other, on one thread."""

    def __init__(self) -> None:
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, daemon=True, name="alarm")

    def at(self, when_ms: float, call: Callable[[], None]) -> None:
        with self._changed:
            heapq.heappush(self._due, (when_ms, next(self._order), call))
            self._changed.notify()
            if not self._thread.is_alive():
                self._thread.start()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._due or self._due[0][0] > now_ms():
                    self._changed.wait((self._due[0][0] - now_ms()) / 1000 if self._due else None)
                _, _, call = heapq.heappop(self._due)
            call()


class Worker:
    """A seat for one run at a time; `abandoned` once another sits in its place."""

    def __init__(self) -> None:
        self.abandoned = False


class Pool:
    """The line of pending jobs and the workers that take from it."""

    def __init__(self, config: Config, book: Book, model: Model, alarm: Alarm) -> None:
        self.config, self.book, self.model, self.alarm = config, book, model, alarm
        self.line: deque[Job] = deque()
        self.filled = threading.Condition()

    def open(self) -> None:
        for _ in range(self.config.workers):
            self.hire()

    def hire(self) -> None:
        threading.Thread(target=self.work, args=(Worker(),), daemon=True, name="worker").start()

    def put(self, job: Job) -> None:
        """Queue a job and set its deadline."""
        budget_ms = self.budget_ms(job)
        if budget_ms > 0:
            self.alarm.at(self.deadline_ms(job, budget_ms), lambda: self.expire(job))
        with self.filled:
            self.enqueue(job)
            self.filled.notify()

    def enqueue(self, job: Job) -> None:
        self.line.append(job)

    def budget_ms(self, job: Job) -> float:
        return self.config.timeout_ms

    def deadline_ms(self, job: Job, budget_ms: float) -> float:
        return job.admitted_ms + budget_ms

    def expire(self, job: Job) -> None:
        """The budget ran out."""
        if job.counted and not self.config.running_budget and job.state == "running":
            return
        if not self.book.end(job, "timeout", self.timeout_error(job)):
            return
        with contextlib.suppress(ValueError), self.filled:
            self.line.remove(job)
        with self.filled:
            worker = job.worker
            if worker is not None and self.config.late_worker == "replaced":
                self.replace(worker)

    def timeout_error(self, job: Job) -> str:
        return f"no result within {self.config.timeout_ms} ms"

    def replace(self, worker: Worker) -> None:
        worker.abandoned = True
        self.hire()

    def work(self, worker: Worker) -> None:
        while not worker.abandoned:
            self.serve(self.take(), worker)

    def take(self) -> Job:
        with self.filled:
            while not self.line:
                self.filled.wait()
            job = self.pick()
        if self.config.pickup_ms:
            threading.Event().wait(self.config.pickup_ms / 1000)
        return job

    def pick(self) -> Job:
        return self.line.popleft()

    def serve(self, job: Job, worker: Worker) -> None:
        job.worker = worker
        if self.book.begin(job):
            self.execute(job)
        with self.filled:
            job.worker = None

    def execute(self, job: Job) -> None:
        began_ms = now_ms()
        try:
            items = self.model.run(job)
        except Exception as error:
            self.crashed(job, error)
        else:
            self.report(job, items, now_ms() - began_ms)

    def crashed(self, job: Job, error: Exception) -> None:
        items = [Item(5, None, "the run broke off")] * len(job.work.images)
        self.book.end(
            job, "failed", f"crashed: {error}", self.kept(job, self.envelope(job, items, 0.0))
        )

    def report(self, job: Job, items: list[Item], took_ms: float) -> None:
        envelope = self.envelope(job, items, took_ms)
        if self.succeeded(items):
            self.book.end(job, "done", None, envelope)
        else:
            self.book.end(job, "failed", self.failure(items), self.kept(job, envelope))

    def kept(self, job: Job, envelope: dict[str, Any]) -> dict[str, Any] | None:
        """A failed job has no result, but the blocking call answers with its envelope."""
        return None if job.counted else envelope

    def succeeded(self, items: list[Item]) -> bool:
        return any(item.status == 0 for item in items)

    def failure(self, items: list[Item]) -> str:
        return "; ".join(sorted({item.message for item in items})) or "failed"

    def envelope(self, job: Job, items: list[Item], took_ms: float) -> dict[str, Any]:
        """The standard envelope of a finished run."""
        good = self.succeeded(items)
        envelope: dict[str, Any] = {
            "status": 0 if good else 2,
            "status_str": "OK" if good else "no item succeeded",
            "task_id": job.task_id,
            "model": {"name": self.model.name, "version": self.model.version},
            "results": [{"status": item.status, "data": item.data} for item in items],
            "server_time_ms": round(took_ms, 3),
            "partial": self.partial(items),
        }
        errors = [
            {"pointer": f"/images/{index}", "message": item.message}
            for index, item in enumerate(items)
            if item.status
        ]
        if errors:
            envelope["errors"] = errors
        return envelope

    def partial(self, items: list[Item]) -> bool:
        return len({item.status == 0 for item in items}) == 2
