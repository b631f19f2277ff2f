"""From an admitted job to its end, and the blocking calls that share its workers.

The ledger keeps the state, the pool keeps the threads, the deadlines keep the time; here they
meet. A job and a call to `/infer` are both work for the same workers, in order of arrival: that is
how the resource is shared (H11). Whatever ends first - the run, its failure, the budget - is what
the ledger accepts; the others come too late and change nothing (T2).
"""

import asyncio
import itertools
import logging
import time
from collections.abc import Callable
from enum import Enum
from typing import TypeAlias

from counterfoil_server.deadlines import Deadlines
from counterfoil_server.ledger import JobLedger
from counterfoil_server.models import Model, Stop
from counterfoil_server.origins import NOWHERE, Origin
from counterfoil_server.tasks import InferenceResult, InferenceTask
from counterfoil_server.waiting import Mailbox
from counterfoil_server.workers import Work, WorkerPool

__all__ = ["CallOutcome", "Failure", "JobRunner", "JobWork", "NoAnswer"]

_log = logging.getLogger(__name__)


class NoAnswer(Enum):
    """Why a blocking call has no result."""

    FULL = "full"
    TIMEOUT = "timeout"


class Failure(str):
    """Why the model failed, in one line for the client."""

    __slots__ = ()


CallOutcome: TypeAlias = InferenceResult | Failure | NoAnswer


class JobWork:
    """An admitted job that waits for a worker, or runs."""

    __slots__ = ("_runner", "job_id", "origin", "stop")

    def __init__(self, runner: "JobRunner", job_id: str, origin: Origin) -> None:
        self.job_id = job_id
        self.origin = origin
        self.stop = Stop()
        self._runner = runner

    def run(self) -> None:
        self._runner.run_job(self)


class CallWork:
    """A blocking call that waits for a worker, or runs."""

    __slots__ = ("_runner", "stop", "task", "tell")

    def __init__(
        self, runner: "JobRunner", task: InferenceTask, tell: Callable[[CallOutcome], None]
    ) -> None:
        self.task = task
        self.tell = tell
        self.stop = Stop()
        self._runner = runner

    def run(self) -> None:
        self._runner.run_call(self)


class JobRunner:
    """Runs everything that was admitted, within its budget."""

    def __init__(  # noqa: PLR0913 (the parts that meet here)
        self,
        ledger: JobLedger,
        model: Model,
        pool: WorkerPool,
        mailbox: Mailbox,
        *,
        timeout_ms: int,
        max_calls: int,
        clock: Callable[[], int],
        on_run: Callable[[float], None] = lambda _: None,
    ) -> None:
        """`on_run(seconds)` is told what each run took."""
        self._ledger = ledger
        self._model = model
        self._pool = pool
        self._mailbox = mailbox
        self._timeout_ms = timeout_ms
        self._max_calls = max_calls
        self._clock = clock
        self._on_run = on_run
        self._numbers = itertools.count(1)
        self._works: dict[str, JobWork] = {}
        self._deadlines: Deadlines[Work] = Deadlines(timeout_ms, clock, self._overdue)
        self._calls: set[CallWork] = set()
        self.on_waiting_job: Callable[[], None] = lambda: None
        self.usual_run_ms = 1000

    # On the loop

    @property
    def calls(self) -> int:
        """How many blocking calls wait or run."""
        return len(self._calls)

    def submit(self, req_id: str, task: InferenceTask, origin: Origin = NOWHERE) -> str | None:
        """Admit a job and queue it; None when the queue is full. Nothing is awaited between."""
        submitted_at = self._clock()
        job_id = self._ledger.submit(req_id or f"task_{next(self._numbers)}", task)
        if job_id is not None:
            work = self._works[job_id] = JobWork(self, job_id, origin)
            self._deadlines.add(work, submitted_at)
            self._pool.put(work)
            self.on_waiting_job()
        return job_id

    async def call(self, task: InferenceTask) -> CallOutcome:
        """Run a task on the same workers and wait for its outcome; takes no place in depth.

        A caller that goes away gives up its turn. If it had it already, the run is asked to stop,
        and keeps its worker until it has, or until its budget is used up: going away must not be a
        way to have more runs than there are workers.
        """
        if len(self._calls) >= self._max_calls:
            return NoAnswer.FULL
        answer: asyncio.Future[CallOutcome] = asyncio.get_running_loop().create_future()
        work = CallWork(self, task, lambda outcome: self._mailbox.post(_settle, answer, outcome))
        self._calls.add(work)
        self._deadlines.add(work, self._clock())
        self._pool.put(work)
        try:
            return await answer
        except asyncio.CancelledError:
            if self._pool.withdraw(work):
                self._deadlines.discard(work)
            work.stop.set()
            raise
        finally:
            self._calls.discard(work)

    def take(self) -> JobWork | None:
        """The oldest job that waits for a worker, for an external runner to run."""
        work = self._pool.take(lambda work: isinstance(work, JobWork))
        return work if isinstance(work, JobWork) else None

    def forget(self, job_id: str) -> None:
        """The job has ended: nothing is left to do for it. May be called from any thread."""
        work = self._works.pop(job_id, None)
        if work is not None:
            self._deadlines.discard(work)
            self._log_end(work)

    def fail_all(self, error: str) -> int:
        """End every job and call that is still live, at the end of the server's grace (X4)."""
        for call in self._calls:
            call.tell(Failure(error))
        failed = [self._ledger.fail(job_id, error) for job_id in list(self._works)]
        return sum(failed)

    def close(self) -> None:
        """Stop the timer and let the workers go."""
        self._deadlines.close()
        self._pool.close()

    # On a worker's thread

    def run_job(self, work: JobWork) -> None:
        """Start the job, run the model, end the job; refused steps mean that it has ended."""
        job_id = work.job_id
        if not self._ledger.start(job_id):
            return
        taken = self._ledger.take_request(job_id)
        if taken is None or not isinstance(taken.payload, InferenceTask):
            outcome: CallOutcome = Failure("the request was handed out before")
        else:
            outcome = self.run_model(taken.payload, work.stop)
        self._settle_job(job_id, outcome)
        self.forget(job_id)

    def run_call(self, work: CallWork) -> None:
        """Run the model for a blocking call and hand the outcome over."""
        outcome = self.run_model(work.task, work.stop)
        self._deadlines.discard(work)
        work.tell(outcome)

    def run_model(self, task: InferenceTask, stop: Stop) -> CallOutcome:
        """The model's items as a result, or why there are none; nothing is raised (T5)."""
        began = time.perf_counter()
        try:
            items = self._model.run(task, stop)
            seconds = time.perf_counter() - began
            outcome: CallOutcome = InferenceResult.of(items, self._model.name, int(seconds * 1000))
        except Exception as error:
            _log.warning("the model failed", exc_info=True)
            outcome = Failure(f"the model failed: {type(error).__name__}")
        except BaseException as crash:
            _log.error("the code that runs the model crashed", exc_info=True)
            outcome = Failure(f"the model crashed: {type(crash).__name__}")
        self.note_run(time.perf_counter() - began)
        return outcome

    def note_run(self, seconds: float) -> None:
        """Remember what a run took, here or elsewhere: it tells how soon a place may be free."""
        self.usual_run_ms += int((seconds * 1000 - self.usual_run_ms) / 8)
        self._on_run(seconds)

    def _settle_job(self, job_id: str, outcome: CallOutcome) -> None:
        if isinstance(outcome, InferenceResult) and not outcome.failed:
            self._ledger.finish(job_id, outcome)
        elif isinstance(outcome, InferenceResult):
            self._ledger.fail(job_id, outcome.reason)
        else:
            self._ledger.fail(job_id, str(outcome))

    # When a budget is used up

    def _overdue(self, work: Work) -> None:
        if isinstance(work, JobWork):
            self._time_out_job(work)
        elif isinstance(work, CallWork):
            work.tell(NoAnswer.TIMEOUT)
            self._pool.give_up(work)

    def _time_out_job(self, work: JobWork) -> None:
        """End the job (T1, T6), take its worker back (T3), let its payload go."""
        error = f"timed out after {self._timeout_ms} ms"
        if self._ledger.time_out(work.job_id, error):
            self._pool.give_up(work)
            self._ledger.take_request(work.job_id)
        self._works.pop(work.job_id, None)
        self._log_end(work)

    def _log_end(self, work: JobWork) -> None:
        """A line for a job that has ended: at `info` if it did not succeed."""
        if not _log.isEnabledFor(logging.INFO):
            return
        seen = self._ledger.snapshot(work.job_id)
        if seen is not None:
            level = logging.DEBUG if seen.error is None else logging.INFO
            fields = {"job_id": work.job_id, "error": seen.error, **work.origin.fields}
            _log.log(level, "job %s", seen.state, extra=fields)


def _settle(future: "asyncio.Future[CallOutcome]", outcome: CallOutcome) -> None:
    if not future.done():
        future.set_result(outcome)
