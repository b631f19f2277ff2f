"""Which jobs the users of one process know of, and which of them may still be live.

Pollers and waiters act on jobs that others submitted, also in other processes: the master hands
every admitted id on. Only jobs of this run are here, so what an earlier run left behind never
counts. Jobs that are known to run are asked about often: few run at a time, and what goes back, or
ends without waking anybody, shows there. Ended jobs are kept for a while, since reads after the end
are what shows a state that goes back, a result that changes and an eviction that comes too early.
"""

import random
from collections import OrderedDict
from typing import Any

__all__ = ["TERMINAL", "KnownJobs", "ended_by", "job_in", "running_in"]

TERMINAL = frozenset({"done", "failed", "timeout"})
ENDED_KEPT = 2000


def job_in(line: dict[str, Any]) -> str | None:
    """The id a history line admits, if it is an admitted submit."""
    reply = line["reply"]
    return reply.get("job") if line["op"] == "submit" and reply else None


def ended_by(line: dict[str, Any]) -> str | None:
    """The id of the job that a history line shows terminal or gone, if it does."""
    reply = line["reply"] or {}
    shown = reply.get("state") in TERMINAL or reply.get("status") in ("ready", "not_found")
    return line["job"] if shown or reply.get("unknown") else None


def running_in(line: dict[str, Any]) -> str | None:
    """The id of the job that a history line shows running, if it does."""
    reply = line["reply"] or {}
    started = line["op"] == "start" and reply.get("accepted")
    return line["job"] if started or reply.get("state") == "running" else None


class KnownJobs:
    """Live and ended job ids; choices are made with `rng`."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._live: OrderedDict[str, None] = OrderedDict()
        self._running: OrderedDict[str, None] = OrderedDict()
        self._ended: OrderedDict[str, None] = OrderedDict()

    @property
    def live_count(self) -> int:
        """How many jobs have not been seen terminal."""
        return len(self._live)

    def learn(self, line: dict[str, Any]) -> None:
        """Learn from one history line of this run."""
        admitted = job_in(line)
        if admitted is not None:
            self.admit(admitted)
        running = running_in(line)
        if running is not None and running in self._live:
            self._running[running] = None
        ended = ended_by(line)
        if ended is not None:
            self.end(ended)

    def admit(self, job: str) -> None:
        """A job was admitted, here or elsewhere."""
        if job not in self._ended:
            self._live[job] = None

    def end(self, job: str) -> None:
        """A job was seen terminal or gone."""
        self._live.pop(job, None)
        self._running.pop(job, None)
        self._ended[job] = None
        while len(self._ended) > ENDED_KEPT:
            self._ended.popitem(last=False)

    def live_jobs(self) -> list[str]:
        """The jobs that have not been seen terminal, the oldest first."""
        return list(self._live)

    def any_live(self) -> str | None:
        """Some job that may be live; half of the time one that runs, whose end is near."""
        pool = self._running if self._running and self._rng.random() < 0.5 else self._live
        return self._pick(pool)

    def oldest_live(self) -> str | None:
        """The job that has been live for longest: the one to ask about when closing."""
        return next(iter(self._live), None)

    def any_job(self) -> str | None:
        """Some job, live or ended; recent ones more often than their number would make them."""
        if self._live and self._rng.random() < 0.6:
            return self.any_live()
        return self._pick(self._ended) or self._pick(self._live)

    def _pick(self, pool: OrderedDict[str, None]) -> str | None:
        if not pool:
            return None
        reach = min(len(pool), 64)
        steps = self._rng.randrange(reach)
        for job in reversed(pool):
            if steps == 0:
                return job
            steps -= 1
        return None
