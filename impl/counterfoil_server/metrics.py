"""What an operator sees: counters, gauges and histograms in the Prometheus format.

The counters of jobs are moved by the ledger's listener, inside the ledger's own steps. So they are
never behind what a client has seen, and at rest they agree with the ledger (M1):
submitted = done + failed + timeout + depth.
"""

from collections.abc import Callable
from typing import Final

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from counterfoil_server.ledger import Eviction, Listener, Snapshot, State

__all__ = ["METRICS_TYPE", "Metrics"]

METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

_SECONDS: Final = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300)
_WAKE_SECONDS: Final = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.25, 1)

prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]


class Metrics(Listener):
    """All metrics of one server, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._submitted = self._counter("jobs_submitted", "jobs admitted")
        self._refused = self._counter("jobs_refused", "submits that found the queue full")
        self._started = self._counter("jobs_started", "jobs that began to run")
        completed = self._counter("jobs_completed", "jobs that ended, by state", "state")
        ends = (State.DONE, State.FAILED, State.TIMEOUT)
        self._completed = {state: completed.labels(state.value) for state in ends}
        evicted = self._counter("jobs_evicted", "ended jobs that were forgotten", "cause")
        self._evicted = {cause: evicted.labels(cause.value) for cause in Eviction}
        self.leases_lapsed = self._counter("leases_lapsed", "jobs whose external runner was silent")
        self.violations = self._counter("invariant_violations", "must be 0", "clause")
        self.violations.labels("any").inc(0)
        self._job_seconds = self._histogram("job_seconds", "from admission to the end of a job")
        self.run_seconds = self._histogram("run_seconds", "what a model took for one task")
        self.wake_seconds = self._histogram(
            "wake_seconds", "from the end of a job to the waiter's answer", _WAKE_SECONDS
        )
        self._responses = self._counter("http_responses", "answers by route", "route", "status")

    def render(self) -> bytes:
        """The text that Prometheus scrapes."""
        return generate_latest(self.registry)

    def gauge(self, name: str, text: str, read: Callable[[], float]) -> None:
        """Show what `read` answers at each scrape."""
        gauge = Gauge(f"counterfoil_{name}", text, registry=self.registry)
        gauge.set_function(read)

    def responses(self, route: str) -> Callable[[int], None]:
        """What counts the answers of one route, by status."""
        counters: dict[int, Counter] = {}

        def count(status: int) -> None:
            counter = counters.get(status)
            if counter is None:
                counter = counters[status] = self._responses.labels(route, str(status))
            counter.inc()

        return count

    # What the ledger tells

    def admitted(self, snapshot: Snapshot) -> None:  # noqa: ARG002
        self._submitted.inc()

    def refused(self) -> None:
        self._refused.inc()

    def started(self, snapshot: Snapshot) -> None:  # noqa: ARG002
        self._started.inc()

    def ended(self, snapshot: Snapshot) -> None:
        self._completed[snapshot.state].inc()
        if snapshot.completed_at is not None:
            self._job_seconds.observe((snapshot.completed_at - snapshot.submitted_at) / 1000)

    def evicted(self, snapshot: Snapshot, cause: Eviction) -> None:  # noqa: ARG002
        self._evicted[cause].inc()

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"counterfoil_{name}", text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...] = _SECONDS) -> Histogram:
        return Histogram(f"counterfoil_{name}", text, buckets=buckets, registry=self.registry)
