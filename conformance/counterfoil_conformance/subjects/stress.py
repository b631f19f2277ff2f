"""`stress`: submitters, runners, pollers and waiters on one Python ledger, every call recorded.

Submitters submit and hand the id to the runners; a runner starts the job, takes the request,
works for `runner_ms` and ends it: most are finished, some fail, some time out, and some are ended
a second time, which must be refused. Pollers read jobs, old and new, and the depth; waiters wait
for jobs that are on their way. When `ms` are over the submitters stop, the runners empty the queue
and the others leave: the ledger is at rest, with nothing pending or running, when the op answers.

The trap is volume: threads that spin would write more than can be judged. Reads are paced, and
once `max_calls` are recorded the submitters stop early.
"""

import queue
import random
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from counterfoil_conformance.subjects.host import Host, Json
from counterfoil_conformance.subjects.recording import record

__all__ = ["stress"]

_PACE_S: Final = 0.0005
_WAIT_BUDGET_MS: Final = 1_000
_RECENT: Final = 64
_HANG_S: Final = 12.0


def stress(host: Host, message: Mapping[str, Any]) -> Json:
    """Run the crew for `ms`; one history of all it did."""
    stage = _Stage(host, message)
    roles: list[tuple[str, Callable[[str, random.Random], None]]] = []
    roles += [(f"submitter-{k}", stage.submit) for k in range(int(message.get("submitters", 4)))]
    roles += [(f"runner-{k}", stage.run) for k in range(int(message.get("runners", 2)))]
    roles += [(f"poller-{k}", stage.poll) for k in range(int(message.get("pollers", 3)))]
    roles += [(f"waiter-{k}", stage.wait) for k in range(int(message.get("waiters", 2)))]
    threads = {
        name: threading.Thread(target=role, args=(name, random.Random(name)), daemon=True)
        for name, role in roles
    }
    for thread in threads.values():
        thread.start()
    time.sleep(float(message["ms"]) / 1000)
    stage.over = True
    until = time.monotonic() + _HANG_S
    for role in ("submitter", "runner", "poller", "waiter"):
        crew = [thread for name, thread in threads.items() if name.startswith(role)]
        if role == "runner":
            for _ in crew:
                stage.work.put(None)
        for thread in crew:
            thread.join(max(until - time.monotonic(), 0.01))
        stage.idle = role != "submitter"
    reply: Json = {"histories": [{"count": 1, "calls": stage.calls()}]}
    if any(thread.is_alive() for thread in threads.values()):
        reply["hung"] = True
    return reply


class _Stage:
    """What the threads of one stress share."""

    def __init__(self, host: Host, message: Mapping[str, Any]) -> None:
        self.over = False
        self.idle = False
        self.work: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._host = host
        self._runner_s = float(message.get("runner_ms", 1)) / 1000
        self._max_calls = int(message.get("max_calls", 60_000))
        self._recent: list[str] = []
        self._lists: dict[str, list[Json]] = {}

    def calls(self) -> list[Json]:
        """Everything recorded, in order of call."""
        everything = [call for calls in self._lists.values() for call in calls]
        return sorted(everything, key=lambda call: float(call["call"]))

    def submit(self, name: str, dice: random.Random) -> None:
        """Submit without pause while there is room."""
        say = self._voice(name)
        count = 0
        while not self.over:
            count += 1
            job = say("submit", task_id=f"{name}/{count}", payload=f"payload {name}/{count}")
            if job.get("job") is None:
                time.sleep(_PACE_S)
                continue
            self._recent = [*self._recent[1 - _RECENT :], job["job"]]
            self.work.put(job["job"])
            if sum(map(len, self._lists.values())) > self._max_calls:
                return
            if dice.random() < 0.1:
                time.sleep(_PACE_S)

    def run(self, name: str, dice: random.Random) -> None:
        """Start, take, work, end."""
        say = self._voice(name)
        while (job := self.work.get()) is not None:
            say("start", job)
            say("take_request", job)
            if self._runner_s:
                time.sleep(self._runner_s)
            lot = dice.random()
            if lot < 0.8:
                say("finish", job, result=f"result of {job}")
            elif lot < 0.9:
                say("fail", job, error=f"error of {job}")
            else:
                say("timeout", job, error=f"timeout of {job}")
            if lot < 0.1:
                say("timeout", job, error=f"late timeout of {job}")

    def poll(self, name: str, dice: random.Random) -> None:
        """Read, twice over, what may be changing."""
        say = self._voice(name)
        while not self.idle:
            say("depth")
            recent = self._recent
            if recent:
                job = dice.choice(recent)
                say("snapshot", job)
                say("result", job)
            time.sleep(_PACE_S)

    def wait(self, name: str, dice: random.Random) -> None:
        """Wait for jobs that are still on their way, or have just ended."""
        say = self._voice(name)
        while not self.idle:
            recent = self._recent
            if recent:
                say("wait", dice.choice(recent[-4:]), budget_ms=_WAIT_BUDGET_MS)
            time.sleep(_PACE_S)

    def _voice(self, name: str) -> Callable[..., Json]:
        calls = self._lists.setdefault(name, [])

        def say(op: str, job: str | None = None, **args: Any) -> Json:
            message = {"op": op, **args} if job is None else {"op": op, "job": job, **args}
            return record(self._host, name, message, calls)

        return say
