"""One execution of a scenario, recorded as a history.

The stamps of the history are the numbers of the `TIME` steps: an operation that returned before
another was called has the smaller stamp, and nothing else can be told from them. So executions that
no client could tell apart have equal histories, and the judge sees each distinct one once.
"""

from typing import Any

from counterfoil_conformance.oracle.history import Call
from counterfoil_conformance.schedules.scenarios import Op, Scenario
from counterfoil_conformance.schedules.scheduler import TIME, Scheduler
from counterfoil_conformance.subjects.host import Host

__all__ = ["ScenarioRun"]


class ScenarioRun:
    """A fresh ledger of `host`, driven through one execution of `scenario`."""

    def __init__(self, scenario: Scenario, host: Host) -> None:
        self.calls: list[Call] = []
        self.stuck_in: list[str] = []
        self.overslept: list[Call] = []
        self.raised: list[str] = []
        self._scenario = scenario
        self._host = host
        self._scheduler = Scheduler()
        self._jobs: dict[str, str | None] = {}
        self._now = 0
        self._waiting: dict[int, str] = {}
        self._late: set[int] = set()

    def begin(self, scheduler: Scheduler) -> None:
        """Make a fresh ledger, do the setup, and spawn the threads."""
        self._scheduler = scheduler
        self._host.configure(self._scenario.limits)
        self._perform_all("setup", self._scenario.setup)
        for number, ops in enumerate(self._scenario.threads):
            scheduler.spawn(lambda n=number, o=ops: self._perform_all(f"thread-{n}", o))  # type: ignore[misc]

    def only_timers(self) -> None:
        """Whoever sleeps now sleeps until its budget is over."""
        self._late |= {thread.number for thread in self._scheduler.unfinished()}

    def end(self, stuck: bool) -> None:
        """Look at the ledger at rest, or say who is stuck where."""
        if stuck:
            waiting = self._scheduler.unfinished()
            self.stuck_in = [f"thread-{thread.number}: {thread.label}" for thread in waiting]
        else:
            self._perform_all("after", self._scenario.after)

    def _perform_all(self, client: str, ops: tuple[Op, ...]) -> None:
        for op in ops:
            message = self._resolved(op)
            if message is not None:
                self._perform(client, message, op.get("as"))

    def _perform(self, client: str, message: Op, label: str | None) -> None:
        self._scheduler.point(TIME, changes=False, label=f"call {message['op']}")
        call_us = self._tick()
        try:
            reply = self._host.perform(message)
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {error}"}
            self.raised.append(f"{client}: {message['op']} raised {reply['error']}")
        self._scheduler.point(TIME, changes=True, label=f"return from {message['op']}")
        if label is not None:
            self._jobs[label] = reply.get("job")
        call = self._recorded(client, message, call_us, reply)
        self.calls.append(call)
        if self._overslept(message, reply):
            self.overslept.append(call)

    def _recorded(self, client: str, message: Op, call_us: int, reply: dict[str, Any]) -> Call:
        job = message.get("job")
        args = {k: v for k, v in message.items() if k not in ("op", "job", "as")}
        if "budget_ms" in args:
            args["budget_ms"] = 0  # stamps are no time, so no budget can be held against them
        return Call(
            client=client,
            op=message["op"],
            job=job,
            call_us=call_us,
            return_us=self._tick(),
            clock_id="steps",
            args=args,
            reply=reply,
        )

    def _overslept(self, message: Op, reply: dict[str, Any]) -> bool:
        """Whether a wait slept to its budget's end although its job was terminal (W2)."""
        thread = self._scheduler.current
        if message["op"] != "wait" or thread is None or thread.number not in self._late:
            return False
        return thread.timer_rang and reply.get("state") in ("done", "failed", "timeout")

    def _resolved(self, op: Op) -> Op | None:
        """The operation with its job's id; None if that job was not admitted."""
        message = {key: value for key, value in op.items() if key != "as"}
        name = str(message.get("job", ""))
        if name.startswith("$"):
            message["job"] = self._jobs.get(name[1:])
            if message["job"] is None:
                return None
        return message

    def _tick(self) -> int:
        self._now += 1
        return self._now
