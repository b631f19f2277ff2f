"""One execution of a scenario, recorded as a history.

The stamps of the history are the numbers of the `TIME` steps: an operation that returned before
another was called has the smaller stamp, and nothing else can be told from them. So executions that
no client could tell apart have equal histories, and the judge sees each distinct one once.
"""

from collections.abc import Iterator
from typing import Any, Final

from counterfoil_conformance.oracle.history import Call
from counterfoil_conformance.run import DEFAULT_TOLERANCE_MS
from counterfoil_conformance.schedules.scenarios import Op, Scenario
from counterfoil_conformance.schedules.scheduler import TIME, Scheduler, VirtualThread
from counterfoil_conformance.subjects.host import Host

__all__ = ["ScenarioRun"]

_TERMINAL: Final = ("done", "failed", "timeout")


class ScenarioRun:
    """A fresh ledger of `host`, driven through one execution of `scenario`."""

    def __init__(self, scenario: Scenario, host: Host) -> None:
        self.calls: list[Call] = []
        self.stuck_in: list[str] = []
        self.misjudged: list[tuple[str, str]] = []
        self.raised: list[str] = []
        self._scenario = scenario
        self._host = host
        self._scheduler = Scheduler()
        self._jobs: dict[str, str | None] = {}
        self._now = 0
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
        thread = self._scheduler.current
        if thread is not None:
            thread.slept_s, thread.timer_rang = 0.0, False
        try:
            reply = self._host.perform(message)
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {error}"}
            self.raised.append(f"{client}: {message['op']} raised {reply['error']}")
        self._scheduler.point(TIME, changes=True, label=f"return from {message['op']}")
        if label is not None:
            self._jobs[label] = reply.get("job")
        self.calls.append(self._recorded(client, message, call_us, reply))
        if message["op"] == "wait" and thread is not None:
            self.misjudged += [
                (clause, f"{client}: {why}")
                for clause, why in _faults_of_sleep(
                    thread, message["budget_ms"], reply, thread.number in self._late
                )
            ]

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


def _faults_of_sleep(
    thread: VirtualThread, budget_ms: int, reply: dict[str, Any], late: bool
) -> Iterator[tuple[str, str]]:
    """What is wrong with how long a wait that has just been answered had slept.

    `late`: its timer went off when nothing else could happen, so nobody would have woken it.
    """
    slept_ms = thread.slept_s * 1000
    if slept_ms > budget_ms + DEFAULT_TOLERANCE_MS:
        yield "W4", f"a wait of {budget_ms} ms was made to sleep {slept_ms:g} ms"
    if late and thread.timer_rang and reply.get("state") in _TERMINAL:
        yield "W2", "slept until its budget was over although the job was terminal"
    if late and thread.timer_rang and reply.get("unknown"):
        yield "W7", "slept until its budget was over although the job was unknown"
    if budget_ms > 0 and not slept_ms and reply.get("state") not in (*_TERMINAL, None):
        yield "W4", f"a wait of {budget_ms} ms on a live job was answered at once"
