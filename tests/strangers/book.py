"""The book: every job that was promised, behind one monitor.

One lock guards everything, which is slow and easy to believe. Who waits leaves a callback, called
once, under the lock, at the terminal transition (or at once). Jobs of `/infer` are errands: they
have the same life, but they are in no table, take no place and are never retained.
"""

import secrets
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from strangers.config import Config

__all__ = ["LIVE", "Book", "Job", "View", "now_ms"]

LIVE = ("pending", "running")


def now_ms() -> float:
    return time.monotonic() * 1000


class View(NamedTuple):
    """What one read of a job shows; `elapsed_ms` is counted from admission."""

    id: str
    task_id: str
    state: str
    error: str | None
    result: dict[str, Any] | None
    elapsed_ms: int


class Job:
    """One promise; every field is guarded by the book's lock."""

    def __init__(self, id_: str, task_id: str, work: Any, counted: bool) -> None:
        self.id = id_
        self.task_id = task_id
        self.work = work
        self.counted = counted
        self.state = "pending"
        self.error: str | None = None
        self.result: dict[str, Any] | None = None
        self.admitted_ms = now_ms()
        self.completed_ms: float | None = None
        self.used_ms = self.admitted_ms
        self.watchers: list[Callable[[], None]] = []
        self.cancelled = threading.Event()
        self.worker: Any = None


class Book:
    """The table of jobs, the places in the queue and the retained ones, oldest completion first."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.lock = threading.RLock()
        self.table: dict[str, Job] = {}
        self.finished: list[Job] = []
        self.depth = 0
        self.errands = 0
        self.tally: Counter[str] = Counter()

    # -- admission

    def admit(self, task_id: str, work: Any) -> Job | None:
        """A new job with a place in the queue, or None when there is none."""
        with self.lock:
            if not self.has_room():
                if self.config.refused_sweeps:
                    self.sweep()
                return None
            self.depth += 1
            job = self.record(task_id, work)
            self.sweep()
            return job

    def has_room(self) -> bool:
        return self.depth < self.config.max_queue

    def record(self, task_id: str, work: Any) -> Job:
        job = Job(self.new_id(), task_id, work, counted=True)
        self.table[job.id] = job
        self.tally["submitted"] += 1
        return job

    def new_id(self) -> str:
        return str(uuid.uuid4()) if self.config.ids == "uuid" else "job_" + secrets.token_hex(16)

    def errand(self, task_id: str, work: Any) -> Job | None:
        with self.lock:
            if self.errands >= self.config.infer_bound:
                return None
            self.errands += 1
            return Job(self.new_id(), task_id, work, counted=False)

    # -- transitions

    def begin(self, job: Job) -> bool:
        """pending -> running; false when the job has left pending."""
        with self.lock:
            if job.state != "pending":
                return False
            job.state = "running"
            return True

    def end(
        self, job: Job, state: str, error: str | None = None, result: dict[str, Any] | None = None
    ) -> bool:
        """The terminal transition; false, and nothing changed, when there was one before."""
        with self.lock:
            if job.state not in LIVE:
                return self.end_again(job, state, error, result)
            self.publish(job, state, error, result)
            if job.counted:
                self.tally[state] += 1
                self.release(job)
                self.retain(job)
            else:
                self.errands -= 1
            self.wake(job)
            return True

    def end_again(
        self, job: Job, state: str, error: str | None, result: dict[str, Any] | None
    ) -> bool:
        return False

    def publish(
        self, job: Job, state: str, error: str | None, result: dict[str, Any] | None
    ) -> None:
        job.completed_ms = now_ms()
        job.used_ms = job.completed_ms
        job.error, job.result, job.state = error, result, state

    def release(self, job: Job) -> None:
        self.depth -= 1

    def retain(self, job: Job) -> None:
        self.finished.append(job)

    def wake(self, job: Job) -> None:
        watchers, job.watchers = job.watchers, []
        for watcher in watchers:
            watcher()

    # -- reading

    def find(self, id_: str) -> Job | None:
        with self.lock:
            return self.table.get(id_)

    def look(self, id_: str) -> View | None:
        """One consistent read, or None for an id the book does not know."""
        with self.lock:
            job = self.find(id_)
            if job is None:
                return None
            job.used_ms = now_ms()
            return self.view(job)

    def view(self, job: Job) -> View:
        with self.lock:
            return View(
                job.id, job.task_id, job.state, job.error, job.result, int(self.elapsed_ms(job))
            )

    def elapsed_ms(self, job: Job) -> float:
        stops = self.config.elapsed == "stops" and job.completed_ms is not None
        return (job.completed_ms if stops else now_ms()) - job.admitted_ms  # type: ignore[operator]

    def watch(self, job: Job, watcher: Callable[[], None]) -> None:
        """Call `watcher` once: at the terminal transition, or now when that has been."""
        with self.lock:
            if job.state in LIVE:
                job.watchers.append(watcher)
                return
        watcher()

    def unwatch(self, job: Job, watcher: Callable[[], None]) -> None:
        with self.lock:
            if watcher in job.watchers:
                job.watchers.remove(watcher)

    # -- retention

    def sweep(self) -> None:
        """By age, then by count; only under the lock."""
        self.sweep_by_age()
        self.sweep_by_count()

    def sweep_by_age(self) -> None:
        with self.lock:
            for job in [job for job in self.finished if self.expired(job)]:
                self.drop(job)

    def expired(self, job: Job) -> bool:
        return now_ms() - (job.completed_ms or 0.0) > self.config.job_ttl_ms

    def sweep_by_count(self) -> None:
        for job in self.victims(self.excess()):
            self.drop(job)

    def excess(self) -> int:
        return max(0, len(self.finished) - max(0, self.config.max_completed))

    def victims(self, count: int) -> list[Job]:
        return sorted(self.finished, key=self.seniority)[:count]

    def seniority(self, job: Job) -> float:
        match self.config.eviction:
            case "submission":
                return job.admitted_ms
            case "use":
                return job.used_ms
            case _:
                return job.completed_ms or 0.0

    def drop(self, job: Job) -> None:
        self.table.pop(job.id, None)
        if job in self.finished:
            self.finished.remove(job)

    # -- the end

    def live(self) -> list[Job]:
        with self.lock:
            return [job for job in self.table.values() if job.state in LIVE]
