"""Q4: no pending job stays pending while a worker is idle."""

from collections.abc import Iterable

from counterfoil_conformance.wire.answer import now_us
from counterfoil_conformance.wire.jobs import Job
from counterfoil_conformance.wire.session import Session

__all__ = ["IdleWatch"]


class IdleWatch:
    """Q4: says when a job stays pending although fewer jobs run than there are workers.

    `look` goes by what the last reads of each job showed. The jobs looked at must be all there are,
    and no blocking call may hold a worker.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.workers = session.target.limits.workers or 1
        self.since_us: int | None = None
        self.idle_us = 0
        self.said = False

    def look(self, jobs: Iterable[Job]) -> None:
        """Judge by the states last read; call it after every round of reads."""
        known = list(jobs)
        live = [job for job in known if not job.terminal]
        pending = [job for job in live if job.state == "pending"]
        # A run past its budget may hold its worker until it returns.
        held = sum(job.state == "timeout" for job in known)
        running = len(live) - len(pending) + held
        idle = bool(pending) and running < self.workers
        if live and not idle:
            self.session.ok("Q4")
        at_us = now_us()
        if idle and self.since_us is not None:
            self.idle_us += at_us - self.since_us
        self.since_us = at_us if idle else None
        # A starved thread of a correct server may be late to its work now and then.
        if self.idle_us > self.session.slack_us() + 600_000 and not self.said and pending:
            self.said = True
            self.session.find(
                "Q4",
                f"{len(pending)} jobs stay pending while {running} of {self.workers} workers run, "
                f"for {self.idle_us // 1000} ms in all",
                allowed="no job pending while a worker is idle",
                answers=(pending[0].answer,),
            )
