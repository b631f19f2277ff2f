"""An event log that can be judged: every call to the ledger, as a line of JSON.

    {"client": "140213", "op": "finish", "job": "job_1f", "call": 10442, "return": 10451,
     "clock_id": "a41c", "args": {"result": "9b74"}, "reply": {"accepted": true}}

`call` and `return` are µs of this process's monotonic clock, stamped outside of the call; a client
is a thread, or one wait. Pictures and results are not written, only digests of results, so that
two readings can be compared. `counterfoil judge` reads such a file and says whether what happened
was allowed. The lines are written by a thread of their own, in batches.
"""

import hashlib
import itertools
import json
import logging
import queue
import secrets
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

from counterfoil_server.ledger import JobLedger, NotDone, Ready, Snapshot, TakenRequest
from counterfoil_server.tasks import InferenceResult
from counterfoil_server.waiting import Waiters

__all__ = ["EventLog", "RecordingLedger", "RecordingWaiters"]

Answer = TypeVar("Answer")
_BATCH: Final = 1000
_log = logging.getLogger(__name__)


class EventLog:
    """Appends lines to a file; close it, or the last lines are lost."""

    def __init__(self, path: Path) -> None:
        """OSError if the file cannot be opened for appending."""
        self._file = path.open("a", encoding="utf-8")
        self._broken = False
        self._clock_id = secrets.token_hex(8)
        self._lines: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._writer = threading.Thread(target=self._write, name="counterfoil-log", daemon=True)
        self._writer.start()

    def recorded(
        self,
        op: str,
        job_id: str | None,
        args: dict[str, Any],
        call: Callable[[], Answer],
        reply: Callable[[Answer], dict[str, Any]],
    ) -> Answer:
        """Make a call and note when it was made, when it returned, and what it said."""
        called_us = now_us()
        answer = call()
        self.note(str(threading.get_ident()), op, job_id, called_us, args, reply(answer))
        return answer

    def note(  # noqa: PLR0913, PLR0917 (the fields of a line)
        self,
        client: str,
        op: str,
        job_id: str | None,
        called_us: int,
        args: dict[str, Any],
        reply: dict[str, Any],
    ) -> None:
        """Note a call that has just returned."""
        line = {
            "client": client,
            "op": op,
            "job": job_id,
            "call": called_us,
            "return": now_us(),
            "clock_id": self._clock_id,
            "args": args,
            "reply": reply,
        }
        if not self._broken:
            self._lines.put(line)

    def close(self) -> None:
        """Write what is left."""
        self._lines.put(None)
        self._writer.join()

    def _write(self) -> None:
        """The life of the thread; when the disk is full the log ends, and the server goes on."""
        try:
            with self._file:
                self._write_lines()
        except OSError as error:
            self._broken = True
            _log.error("the event log ends here: %s", error.strerror)

    def _write_lines(self) -> None:
        while (line := self._lines.get()) is not None:
            batch = [line]
            while len(batch) < _BATCH and not self._lines.empty():
                another = self._lines.get()
                if another is None:
                    self._lines.put(None)
                    break
                batch.append(another)
            self._file.write("".join(json.dumps(one) + "\n" for one in batch))
            self._file.flush()


class RecordingLedger(JobLedger):
    """The ledger, with every call written down; what it does is not changed."""

    def __init__(self, *words: Any, log: EventLog, **options: Any) -> None:
        super().__init__(*words, **options)
        self._log = log

    def submit(self, task_id: str, payload: object) -> str | None:
        return self._log.recorded(
            "submit",
            None,
            {"task_id": task_id},
            lambda: super(RecordingLedger, self).submit(task_id, payload),
            lambda job_id: {"refused": True} if job_id is None else {"job": job_id},
        )

    def start(self, job_id: str) -> bool:
        call = super().start
        return self._log.recorded("start", job_id, {}, lambda: call(job_id), _accepted)

    def finish(self, job_id: str, result: object) -> bool:
        call, args = super().finish, {"result": _digest(result)}
        return self._log.recorded("finish", job_id, args, lambda: call(job_id, result), _accepted)

    def fail(self, job_id: str, error: str) -> bool:
        call, args = super().fail, {"error": error}
        return self._log.recorded("fail", job_id, args, lambda: call(job_id, error), _accepted)

    def time_out(self, job_id: str, error: str) -> bool:
        call, args = super().time_out, {"error": error}
        return self._log.recorded("timeout", job_id, args, lambda: call(job_id, error), _accepted)

    def take_request(self, job_id: str) -> TakenRequest | None:
        call = super().take_request
        return self._log.recorded("take_request", job_id, {}, lambda: call(job_id), _taken)

    def snapshot(self, job_id: str) -> Snapshot | None:
        call = super().snapshot
        return self._log.recorded("snapshot", job_id, {}, lambda: call(job_id), _seen)

    def result(self, job_id: str) -> Ready | NotDone | None:
        """As one call, although the ledger's own takes a snapshot for it."""
        return self._log.recorded("result", job_id, {}, lambda: self._result(job_id), _result)

    def _result(self, job_id: str) -> Ready | NotDone | None:
        job = self._find(job_id)
        return None if job is None else self._outcome(job.seen)


class RecordingWaiters(Waiters):
    """The waiters, with every wait written down."""

    def __init__(self, *words: Any, log: EventLog) -> None:
        super().__init__(*words)
        self._log = log
        self._numbers = itertools.count(1)

    async def wait(self, job_id: str, budget_ms: int) -> Snapshot | None:
        client, called_us = f"wait-{next(self._numbers)}", now_us()
        seen = await super().wait(job_id, budget_ms)
        self._log.note(client, "wait", job_id, called_us, {"budget_ms": budget_ms}, _seen(seen))
        return seen


def now_us() -> int:
    """Whole microseconds of the monotonic clock."""
    return time.monotonic_ns() // 1000


def _accepted(accepted: bool) -> dict[str, Any]:
    return {"accepted": accepted}


def _taken(taken: TakenRequest | None) -> dict[str, Any]:
    if taken is None:
        return {"unknown": True}
    return {"task_id": taken.task_id, "payload": None if taken.payload is None else "(taken)"}


def _seen(seen: Snapshot | None) -> dict[str, Any]:
    if seen is None:
        return {"unknown": True}
    return {
        "state": seen.state,
        "error": seen.error,
        "submitted_at": seen.submitted_at,
        "completed_at": seen.completed_at,
    }


def _result(answer: Ready | NotDone | None) -> dict[str, Any]:
    match answer:
        case Ready(task_id, result):
            return {"status": "ready", "task_id": task_id, "result": _digest(result)}
        case NotDone(state):
            return {"status": "not_done", "state": state}
        case None:
            return {"status": "not_found"}


def _digest(result: object) -> str:
    content = result.encoded if isinstance(result, InferenceResult) else repr(result).encode()
    return hashlib.sha256(content).hexdigest()[:16]
