"""Threads against one Python ledger: `race` and `stress`, recorded call by call.

`race` repeats a tiny scenario many times: a fresh ledger, `setup` operations in sequence, then
every thread at once from behind a barrier, then `after` operations in sequence. Histories that
differ only in job names or in absolute time are the same; each distinct one is kept once, with how
often it came up. `stress` lets submitters, runners, pollers and waiters loose on the current
ledger for a while and keeps everything.

A call is recorded as a history line (`call` and `return` in us, fractions kept: the order of two
calls must survive). In a race the interpreter is told to switch threads as often as it can.

The trap is the observer: recording must not order the calls. Each thread writes to a list of its
own, and the lists are merged after the threads have ended.
"""

import json
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from counterfoil_conformance.subjects.host import Host, Json
from counterfoil_conformance.subjects.recording import eager_switching, record
from counterfoil_conformance.subjects.stress import stress

__all__ = ["CONCURRENT_OPS", "race"]

_HANG_S: Final = 12.0
_LONG_US: Final = 500_000.0


def race(host: Host, message: Mapping[str, Any]) -> Json:
    """Run `threads` against each other `repeat` times; the distinct histories.

    Where threads are stuck the last history shows in what, and `hung` is true.
    """
    scenario = _Scenario(message.get("setup"), message["threads"], message.get("after", []))
    kept: dict[str, Json] = {}
    crew = _Crew(len(scenario.threads))
    hung = False
    until = time.monotonic() + float(message.get("ms", 600_000)) / 1000
    with eager_switching():
        for turn in range(int(message.get("repeat", 1))):
            calls, hung = scenario.play(host, crew, turn)
            _keep(kept, calls, int(message.get("limit", 200)))
            if hung or time.monotonic() > until:
                break
    crew.dismiss()
    reply = {"histories": list(kept.values())}
    return {"hung": True, **reply} if hung else reply


class _Scenario(NamedTuple):
    """What to do before, at once, and after; without a `setup` the current ledger stays."""

    setup: list[Json] | None
    threads: list[list[Json]]
    after: list[Json]

    def play(self, host: Host, crew: "_Crew", turn: int) -> tuple[list[Json], bool]:
        """One repetition: its calls, and whether its threads are stuck."""
        if self.setup is not None:
            host.configure(host.limits)
        names: dict[str, str | None] = {}
        calls: list[Json] = []
        _run_ops(host, self.setup or [], "setup", names, calls)
        lists: list[list[Json]] = [[] for _ in self.threads]

        def part(index: int) -> Callable[[], None]:
            def work() -> None:
                for _ in range((turn * (index + 3)) % 7 * 10):
                    pass  # let the threads overlap differently each time
                _run_ops(host, self.threads[index], f"thread-{index}", names, lists[index])

            return work

        ended = crew.perform([part(index) for index in range(len(self.threads))])
        calls += [call for of_thread in lists for call in of_thread]
        if ended:
            _run_ops(host, self.after, "after", names, calls)
        return calls, not ended


def _run_ops(
    host: Host,
    ops: list[Json],
    client: str,
    names: dict[str, str | None],
    into: list[Json],
) -> None:
    """Perform operations in turn; `"job": "$x"` is the job of the submit that said `"as": "x"`."""
    for op in ops:
        message, job = op, op.get("job")
        if isinstance(job, str) and job.startswith("$"):
            job = names.get(job[1:])
            if job is None:
                continue
            message = {**op, "job": job}
        reply = record(host, client, message, into)
        if "as" in op:
            names[op["as"]] = reply.get("job")


def _keep(kept: dict[str, Json], calls: list[Json], limit: int) -> None:
    """Count a history; keep it if it is new and there is room."""
    key = _pattern(calls)
    if key in kept:
        kept[key]["count"] += 1
    elif len(kept) < limit:
        kept[key] = {"count": 1, "calls": calls}


def _pattern(calls: list[Json]) -> str:
    """What makes two histories the same: the replies, the order of calls and returns, the long.

    A wait that lost its wake-up is answered like any other, only late.
    """
    names: dict[str, str] = {}
    for call in calls:
        for job in (call.get("job"), (call["reply"] or {}).get("job")):
            if job is not None:
                names.setdefault(job, f"#{len(names)}")
    ends = [(call["call"], 0, i) for i, call in enumerate(calls)]
    ends += [(call["return"] or 0, 1, i) for i, call in enumerate(calls)]
    order = [(kind, i) for _, kind, i in sorted(ends)]
    said = [(names.get(call.get("job", ""), ""), call["reply"]) for call in calls]
    long = [i for i, call in enumerate(calls) if (call["return"] or 0) - call["call"] > _LONG_US]
    text = json.dumps([said, order, long], sort_keys=True)
    for job, name in names.items():
        text = text.replace(json.dumps(job), json.dumps(name))
    return text


class _Crew:
    """Threads that live as long as the race and do one part each per turn."""

    def __init__(self, size: int) -> None:
        self._parts: list[Callable[[], None]] = []
        self._dismissed = False
        self._begin = threading.Barrier(size + 1)
        self._end = threading.Barrier(size + 1)
        for index in range(size):
            threading.Thread(target=self._serve, args=(index,), daemon=True).start()

    def perform(self, parts: list[Callable[[], None]]) -> bool:
        """All parts at once, each on its thread; whether all have ended in time."""
        self._parts = parts
        try:
            self._begin.wait(_HANG_S)
            self._end.wait(_HANG_S)
        except threading.BrokenBarrierError:
            return False
        return True

    def dismiss(self) -> None:
        """Send the threads home."""
        self._dismissed = True
        self._end.abort()
        try:
            self._begin.wait(0.5)
        except threading.BrokenBarrierError:
            pass

    def _serve(self, index: int) -> None:
        try:
            while True:
                self._begin.wait()
                if self._dismissed:
                    return
                self._parts[index]()
                self._end.wait()
        except threading.BrokenBarrierError:
            return


CONCURRENT_OPS: Final[dict[str, Callable[[Host, Mapping[str, Any]], Json]]] = {
    "race": race,
    "stress": stress,
}
