"""A Python ledger behind the exec protocol: operations in, replies out, no pipes.

`Host` is the engine of both the `python:` subject, which calls it directly, and `driver.py`, which
puts it on stdin and stdout. What it drives is whatever a *factory* returns:

    factory(limits, *, clock) -> ledger

`limits` has `max_queue`, `job_ttl_ms` and `max_completed`; `clock()` is an int, monotonic ms, and
moves only when the kit says so. The ledger has one method per operation:

    submit(task_id, payload)  -> the new job's id (str), or None when refused
    start(job)  finish(job, result)  fail(job, error)  time_out(job, error)  -> bool
    take_request(job)         -> task_id, payload (None once taken); None for an unknown job
    snapshot(job)             -> state, error, submitted_at, completed_at; None for an unknown job
    result(job)               -> task_id, result when done; otherwise state; None for an unknown job
    wait(job, budget_ms)      -> as snapshot; blocks for at most budget_ms of real time
    depth()                   -> int

Composite answers are mappings with these keys, or objects with these attributes. The shipped
`JobLedger` is such a factory as it stands: `python:counterfoil_server.ledger:JobLedger`.

The trap is the clock: `wait` lives in real time, everything else in the driven clock.
"""

import threading
import weakref
from collections.abc import Callable, Mapping
from queue import SimpleQueue
from typing import Any, Final, TypeAlias

from counterfoil_spec.ledger import Limits

__all__ = ["CAPABILITIES", "OPS", "DrivenClock", "Factory", "Host", "Json", "Lanes"]

Json: TypeAlias = dict[str, Any]
Factory: TypeAlias = Callable[..., Any]

CAPABILITIES: Final = (
    "clock",
    "completed_at",
    "lanes",
    "payload_refs",
    "race",
    "race_setup",
    "stress",
)


class DrivenClock:
    """A clock (ms) that stands still until `advance`; callable from any thread."""

    def __init__(self, now_ms: int = 1_000) -> None:
        self.now_ms = now_ms

    def __call__(self) -> int:
        return self.now_ms

    def advance(self, ms: int) -> None:
        """Let `ms` milliseconds pass."""
        self.now_ms += ms


class _Payload(str):  # noqa: SLOT000 - slots would forbid the weak reference
    """A payload that can be watched: Q3 asks whether the ledger lets go of it."""


class Host:
    """One ledger at a time, made by `configure`, and the operations on it."""

    def __init__(self, factory: Factory) -> None:
        self._factory = factory
        self._payloads: dict[str, weakref.ref[_Payload]] = {}
        self.configure(Limits(16, 300_000, 100))

    def configure(self, limits: Limits) -> None:
        """A fresh ledger with a clock of its own."""
        self.limits = limits
        self.clock = DrivenClock()
        self.ledger = self._factory(limits, clock=self.clock)
        self._payloads.clear()

    def perform(self, message: Mapping[str, Any]) -> Json:
        """One operation on the current ledger; `{"error": text}` for one that is unknown."""
        operation = OPS.get(message.get("op", ""))
        if operation is None:
            return {"error": f"no such operation: {message.get('op')!r}"}
        return operation(self, message)

    def watch_payload(self, job: str, payload: "_Payload") -> None:
        """Remember, weakly, what a job was submitted with."""
        self._payloads[job] = weakref.ref(payload)

    def holds_payload(self, job: str) -> bool:
        """Whether anything still refers to the payload of a job."""
        reference = self._payloads.get(job)
        return reference is not None and reference() is not None


def _configure(host: Host, message: Mapping[str, Any]) -> Json:
    host.configure(Limits(message["max_queue"], message["job_ttl_ms"], message["max_completed"]))
    return {"ok": True}


def _submit(host: Host, message: Mapping[str, Any]) -> Json:
    payload = _Payload(message.get("payload", ""))
    job = host.ledger.submit(message.get("task_id", ""), payload)
    if job is None:
        return {"refused": True}
    host.watch_payload(job, payload)
    return {"job": job}


def _transition(name: str, *words: str) -> Callable[[Host, Mapping[str, Any]], Json]:
    def perform(host: Host, message: Mapping[str, Any]) -> Json:
        method = getattr(host.ledger, name)
        return {"accepted": method(message["job"], *(message[word] for word in words))}

    return perform


def _take(host: Host, message: Mapping[str, Any]) -> Json:
    taken = host.ledger.take_request(message["job"])
    if taken is None:
        return {"unknown": True}
    payload = _part(taken, "payload")
    return {
        "task_id": _part(taken, "task_id"),
        "payload": payload if payload is None else str(payload),
    }


def _snapshot(host: Host, message: Mapping[str, Any]) -> Json:
    return _seen(host.ledger.snapshot(message["job"]))


def _wait(host: Host, message: Mapping[str, Any]) -> Json:
    return _seen(host.ledger.wait(message["job"], message["budget_ms"]))


def _result(host: Host, message: Mapping[str, Any]) -> Json:
    found = host.ledger.result(message["job"])
    if found is None:
        return {"status": "not_found"}
    if isinstance(found, Mapping):
        return dict(found)
    if hasattr(found, "result"):
        return {"status": "ready", "task_id": found.task_id, "result": found.result}
    return {"status": "not_done", "state": str(found.state)}


def _depth(host: Host, message: Mapping[str, Any]) -> Json:
    del message
    return {"depth": host.ledger.depth()}


def _advance(host: Host, message: Mapping[str, Any]) -> Json:
    host.clock.advance(message["ms"])
    return {"ok": True}


def _holds_payload(host: Host, message: Mapping[str, Any]) -> Json:
    return {"held": host.holds_payload(message["job"])}


OPS: Final[dict[str, Callable[[Host, Mapping[str, Any]], Json]]] = {
    "configure": _configure,
    "submit": _submit,
    "start": _transition("start"),
    "finish": _transition("finish", "result"),
    "fail": _transition("fail", "error"),
    "timeout": _transition("time_out", "error"),
    "take_request": _take,
    "snapshot": _snapshot,
    "result": _result,
    "wait": _wait,
    "depth": _depth,
    "advance": _advance,
    "holds_payload": _holds_payload,
}

_SNAPSHOT_PARTS: Final = ("state", "error", "submitted_at", "completed_at")


def _seen(snapshot: Any) -> Json:
    if snapshot is None:
        return {"unknown": True}
    reply = {part: _part(snapshot, part) for part in _SNAPSHOT_PARTS}
    reply["state"] = str(reply["state"])
    return reply


def _part(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name)


_Work: TypeAlias = SimpleQueue[Callable[[], None] | None]


class Lanes:
    """Threads, one per lane, each doing its operations in turn."""

    def __init__(self) -> None:
        self._queues: dict[int, _Work] = {}

    def run(self, lane: int, work: Callable[[], None]) -> None:
        """Have `work` done on that lane's thread, after what it was given before."""
        if lane not in self._queues:
            work_of_lane = self._queues[lane] = SimpleQueue()
            threading.Thread(target=_serve_lane, args=(work_of_lane,), daemon=True).start()
        self._queues[lane].put(work)

    def close(self) -> None:
        """Let every lane end once it has done what it was given."""
        for queue in self._queues.values():
            queue.put(None)


def _serve_lane(queue: _Work) -> None:
    while (work := queue.get()) is not None:
        work()
