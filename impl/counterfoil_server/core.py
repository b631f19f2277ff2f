"""The parts of a running server, put together once and shared by all routes."""

import asyncio
import functools
import itertools
import logging
import os
from collections.abc import Callable
from pathlib import Path

from counterfoil_server.audit import Violation, audit
from counterfoil_server.config import Settings
from counterfoil_server.event_log import EventLog, RecordingLedger, RecordingWaiters
from counterfoil_server.leases import Leases
from counterfoil_server.ledger import JobLedger, monotonic_ms
from counterfoil_server.metrics import Metrics
from counterfoil_server.models import Model
from counterfoil_server.runners import JobRunner
from counterfoil_server.waiting import Mailbox, Waiters
from counterfoil_server.workers import WorkerPool

__all__ = ["Core"]

_log = logging.getLogger(__name__)


class Core:
    """One ledger, one pool, one model: what there is exactly one of per server."""

    def __init__(
        self,
        settings: Settings,
        model: Model,
        *,
        clock: Callable[[], int] = monotonic_ms,
        ledger: Callable[..., JobLedger] = JobLedger,
    ) -> None:
        """Nothing runs before `open`; `ledger` is called like `JobLedger`."""
        self._process = os.getpid()
        self.settings = settings
        self.model = model
        self.clock = clock
        self.metrics = Metrics()
        self.log = EventLog(Path(settings.event_log)) if settings.event_log else None
        if self.log is not None:
            ledger = functools.partial(RecordingLedger, log=self.log)
        self.ledger = ledger(settings.limits, clock=clock, listener=self.metrics)
        self.ready = False
        self.draining = False
        self._numbers = itertools.count(1)

    def open(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start the workers; the server can be asked from now on.

        RuntimeError in a process that is not the one this core was made in: each copy would be a
        ledger of its own, and a client would meet one or another (X5).
        """
        if os.getpid() != self._process:
            raise RuntimeError("one ledger in memory cannot be served by several processes (X5)")
        settings = self.settings
        size = 0 if settings.runner == "external" else settings.workers
        mailbox = Mailbox(loop)
        self.pool = WorkerPool(size, settings.max_stuck)
        self.runner = JobRunner(
            self.ledger,
            self.model,
            self.pool,
            mailbox,
            timeout_ms=settings.async_timeout,
            max_calls=settings.infer_max_pending,
            clock=self.clock,
            on_run=self.metrics.run_seconds.observe,
        )
        self.leases = Leases(
            self.ledger,
            self.runner,
            settings.runner_lease,
            self.clock,
            self.metrics.leases_lapsed.inc,
        )
        waiters = functools.partial(RecordingWaiters, log=self.log) if self.log else Waiters
        self.waiters = waiters(self.ledger, mailbox, self.metrics.wake_seconds.observe)
        self._show_gauges()
        self.ready = True

    def new_task_id(self) -> str:
        """A task id for a call that brought none (Q2)."""
        return f"call_{next(self._numbers)}"

    async def drain(self, grace_s: float) -> int:
        """Admit nothing more, let what was admitted end; how many had to be failed (X4)."""
        self.draining = True
        self.leases.turns.end()  # who waits now has found no job, and none will come
        loop = asyncio.get_running_loop()
        deadline = loop.time() + grace_s
        while (self.ledger.depth() or self.runner.calls) and loop.time() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(0.02)  # a server that stops has the time to look
        return self.runner.fail_all("the server stopped before the job ended")

    def look(self) -> list[Violation]:
        """Compare the ledger with its invariants; what does not hold is counted and logged."""
        violations = audit(self.ledger)
        for clause, why in violations:
            self.metrics.violations.labels(clause).inc()
            _log.error("an invariant does not hold: %s: %s", clause, why)
        return violations

    def close(self) -> None:
        """Let the workers go."""
        self.ready = False
        self.runner.close()
        self.leases.close()
        if self.log is not None:
            self.log.close()

    def _show_gauges(self) -> None:
        gauge, turns = self.metrics.gauge, self.leases.turns
        gauge("queue_depth", "jobs pending or running", self.ledger.depth)
        gauge("jobs_known", "jobs that are not forgotten", self.ledger.known)
        gauge("waiters", "waits that are blocked", lambda: self.waiters.blocked)
        gauge("claims", "jobs in the hands of external runners", lambda: len(self.leases))
        gauge("claims_waiting", "external runners that wait for a job", lambda: len(turns))
        gauge("calls", "calls to /infer pending or running", lambda: self.runner.calls)
        gauge("workers", "tasks that can run at once", lambda: self.pool.size)
        gauge("workers_busy", "workers that run something", lambda: self.pool.busy)
        gauge("workers_stuck", "threads left to a run past its budget", lambda: self.pool.stuck)
