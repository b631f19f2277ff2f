"""The run as it can be seen while it goes on: a fold over history lines, cheap enough for each one.

It keeps counts, a timeline per second, wake latencies, and the invariants that two lines can break
between them, in whatever order they arrive. It never replaces the verdict: the oracle judges the
whole history when the run has ended, in intervals. What is shown as broken here is broken; the
depth is only what the users know of, so its bound is drawn and not judged.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any, Final

from counterfoil_load.known import TERMINAL

__all__ = ["INVARIANTS", "JobTrack", "LiveLedger", "percentile"]

# What is watched live, by clause; the final verdict covers all clauses.
INVARIANTS: Final = {
    "A8": "every 202 is a new id",
    "S5": "no job goes back",
    "S4": "a terminal state stays, and one ending is accepted",
    "R6": "a result does not change",
    "G4": "no job shows another's result",
}

_ENDINGS: Final = {"finish": "done", "fail": "failed", "timeout": "timeout"}
_READS: Final = ("snapshot", "wait", "result")
_RANK: Final = {"pending": 0, "running": 1}


@dataclass(slots=True)
class JobTrack:
    """What has been seen of one job; times are µs of the machine's clock."""

    nonce: str = ""
    admitted_us: int | None = None
    rank: int = 0
    rank_seen_us: int = 0
    terminal: str = ""
    terminal_seen_us: int | None = None
    ending: tuple[int, int] | None = None
    waits: list[tuple[int, int]] = field(default_factory=list)
    result: Any = None


class LiveLedger:
    """Folds history lines."""

    def __init__(self) -> None:
        self.jobs: dict[str, JobTrack] = {}
        self.calls: Counter[str] = Counter()
        self.outcomes: Counter[str] = Counter()
        self.breaches: dict[str, list[str]] = defaultdict(list)
        self.latencies_us: dict[str, list[int]] = defaultdict(list)
        self.wakes_us: list[int] = []
        self.timeline: dict[int, Counter[str]] = defaultdict(Counter)
        self.started_us: int | None = None
        self.live = 0
        self.ended: Counter[str] = Counter()
        self._results: dict[str, str] = {}

    def learn(self, lines: list[dict[str, Any]]) -> None:
        """Fold lines in the order in which their calls returned."""
        for line in sorted(lines, key=lambda each: each["return"] or each["call"]):
            self._learn(line)

    def _learn(self, line: dict[str, Any]) -> None:
        op, reply = line["op"], line["reply"]
        self.calls[line["client"].split("-")[0]] += 1
        if self.started_us is None:
            self.started_us = line["call"]
        if reply is None:
            self._count(line, f"{op} unanswered")
            return
        outcome = _outcome(op, reply)
        self._count(line, f"{op} {outcome}")
        self.latencies_us[f"{op} {outcome}"].append(line["return"] - line["call"])
        if op == "submit":
            self._submitted(line, reply)
        elif op in _ENDINGS:
            self._ended_by_runner(line, reply)
        elif op in _READS and line["job"] in self.jobs:
            self._read(line, reply)
        bucket = self._bucket(line)
        bucket["depth"] = max(bucket["depth"], self.live)

    def _count(self, line: dict[str, Any], what: str) -> None:
        self.outcomes[what] += 1
        self._bucket(line)[what] += 1

    def _bucket(self, line: dict[str, Any]) -> Counter[str]:
        at_us = (line["return"] or line["call"]) - (self.started_us or 0)
        return self.timeline[max(at_us, 0) // 1_000_000]

    def _submitted(self, line: dict[str, Any], reply: dict[str, Any]) -> None:
        job = reply.get("job")
        if job is None:
            return
        if job in self.jobs and self.jobs[job].admitted_us is not None:
            self._breach("A8", f"{job} was issued twice")
        self.jobs[job] = JobTrack(nonce=line["args"].get("nonce", ""), admitted_us=line["return"])
        self.live += 1

    def _ended_by_runner(self, line: dict[str, Any], reply: dict[str, Any]) -> None:
        track = self.jobs.get(line["job"])
        if track is None or not reply.get("accepted"):
            return
        if track.ending is not None:
            self._breach("S4", f"{line['job']}: two endings were accepted")
        track.ending = (line["call"], line["return"])
        for waited in track.waits:
            self._woken(track, *waited)
        self._terminal(line, track, _ENDINGS[line["op"]])

    def _read(self, line: dict[str, Any], reply: dict[str, Any]) -> None:
        track = self.jobs[line["job"]]
        if reply.get("unknown") or reply.get("status") == "not_found":
            self._terminal(line, track, "")
            return
        state = "done" if reply.get("status") == "ready" else str(reply.get("state", ""))
        self._observe(line, track, state)
        if line["op"] == "wait" and state in TERMINAL:
            self._woken(track, line["call"], line["return"])
        if reply.get("status") == "ready":
            self._result(line, track, reply["result"])

    def _observe(self, line: dict[str, Any], track: JobTrack, state: str) -> None:
        rank = _RANK.get(state, 2)
        if track.rank > rank and track.rank_seen_us < line["call"]:
            self._breach("S5", f"{line['job']} went back to {state}")
        if rank > track.rank:
            track.rank, track.rank_seen_us = rank, line["return"]
        if state in TERMINAL:
            self._terminal(line, track, state)

    def _terminal(self, line: dict[str, Any], track: JobTrack, state: str) -> None:
        if track.terminal and state and track.terminal != state:
            self._breach("S4", f"{line['job']} was {track.terminal}, then {state}")
        if track.terminal_seen_us is None:
            track.terminal_seen_us = line["return"]
            self.live -= 1
            self.ended[state or "gone"] += 1
        track.terminal = track.terminal or state
        if track.rank < 2:
            track.rank, track.rank_seen_us = 2, line["return"]

    def _woken(self, track: JobTrack, call_us: int, return_us: int) -> None:
        """A wait that began before the runner's ending and returned after it: a wake-up."""
        if track.ending is None:
            track.waits.append((call_us, return_us))
        elif call_us < track.ending[0] <= return_us:
            self.wakes_us.append(return_us - track.ending[0])

    def _result(self, line: dict[str, Any], track: JobTrack, result: Any) -> None:
        shown = repr(result.get("results") if isinstance(result, dict) else result)
        if track.result is not None and track.result != shown:
            self._breach("R6", f"{line['job']}: its result changed")
        elif track.nonce and self._results.setdefault(shown, track.nonce) != track.nonce:
            self._breach("G4", f"{line['job']}: its result is another job's")
        track.result = shown

    def _breach(self, clause: str, why: str) -> None:
        self.breaches[clause].append(why)


def percentile(sorted_values: list[int], share: float) -> int:
    """The nearest-rank percentile (`share` in 0..1) of sorted values; 0 if there are none."""
    if not sorted_values:
        return 0
    return sorted_values[min(len(sorted_values) - 1, int(share * len(sorted_values)))]


def _outcome(op: str, reply: dict[str, Any]) -> str:
    """The outcome under which a call's latency is told."""
    if op == "submit":
        return "202" if "job" in reply else "429"
    if op == "wait" and "state" in reply:
        return "woken" if reply["state"] in TERMINAL else "expired"
    if "accepted" in reply:
        return "accepted" if reply["accepted"] else "refused"
    if reply.get("unknown"):
        return "404"
    return str(reply.get("status") or reply.get("state") or "answered")
