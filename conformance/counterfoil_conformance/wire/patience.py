"""How long to go on waiting for what may never come.

A job that does not end, a wait that is not answered: each is a finding, and once it is one there is
nothing more to wait for. A faulty target must not hold a run for minutes, and a slow correct one
must get the time that it may take. So patience ends at the moment at which the contract has
certainly been broken: a job is given up when its budget is over and some seconds more, a wait when
its job was seen ended, or its budget was over, longer ago than any slack explains. Only where there
is no such moment does it end by a guess with ample room, and that guess accuses nobody.
"""

from typing import Final

from counterfoil_conformance.run import Publish, RunOptions
from counterfoil_conformance.wire.answer import now_us
from counterfoil_conformance.wire.jobs import Job
from counterfoil_conformance.wire.pace import Pace
from counterfoil_conformance.wire.target import Target

__all__ = ["Patience"]

SURELY_US: Final = 2_000_000
WAIT_SURELY_US: Final = 1_300_000


class Patience(Pace):
    """Knows the jobs, and those that were given up."""

    def __init__(self, target: Target, options: RunOptions, publish: Publish) -> None:
        super().__init__(target, options, publish)
        self.jobs: dict[str, Job] = {}
        self.max_queue: int | None = target.limits.max_queue
        self.clogged = False
        self._stuck: set[str] = set()
        self._begun_us = now_us()

    def usual_s(self) -> float:
        """How long a quick run takes, roughly, against a prompt target with such bodies."""
        bodies, budget_ms = self.target.bodies, self.target.limits.timeout_ms
        long_ms = max(bodies.late_ms or 0, budget_ms or 0)
        return 10 + (12 * (bodies.slow_ms or 0) + 3 * min(long_ms, 10_000)) / 1000

    @property
    def age_s(self) -> float:
        """How long the run has taken so far."""
        return (now_us() - self._begun_us) / 1e6

    @property
    def is_late_already(self) -> bool:
        """Whether that is longer than usual: then nothing is repeated for long."""
        return self.age_s > self.usual_s()

    @property
    def has_stuck(self) -> bool:
        """Whether several jobs never ended: then no more patience is wasted on others."""
        return len(self._stuck) >= 2

    @property
    def is_full_of_stuck(self) -> bool:
        """Whether jobs that never ended hold every place: none will come free."""
        stuck = sum(not self.jobs[id_].terminal for id_ in self._stuck if id_ in self.jobs)
        return 0 < (self.max_queue or 0) <= stuck

    def patience_s(self) -> float:
        """How long at most a full queue may take to empty, with room to spare."""
        limits, bodies = self.target.limits, self.target.bodies
        one_ms = max(bodies.slow_ms or 0, bodies.late_ms or 0, limits.timeout_ms or 0, 1000)
        depth = min(max(self.max_queue or 1, 1), 64)
        if self.has_stuck or self.clogged:
            return 1.0 + one_ms / 1000
        return 5.0 + 2 * one_ms / 1000 * max(1, depth / (limits.workers or 1))

    def answer_patience_s(self) -> float:
        """How long a blocking call may take: its turn, its budget, and some seconds."""
        budget_ms = self.target.limits.timeout_ms or 0
        if not budget_ms or not self.target.dialect.running_budget:
            return self.patience_s()
        depth = min(max(self.max_queue or 1, 1), 64)
        turn_ms = 2 * (self.target.bodies.slow_ms or 0) * depth / (self.target.limits.workers or 1)
        spent_s = (budget_ms + turn_ms) / 1000 + (self.slack_us() + 2 * SURELY_US) / 1e6
        return min(self.patience_s(), spent_s)

    def is_overdue(self, job: Job) -> bool:
        """Whether the last read showed a job live so long after its budget that it is a finding."""
        budget_ms = self.target.limits.timeout_ms or 0
        if not budget_ms or not self.target.dialect.running_budget or job.terminal:
            return False
        lived_us = job.live_us - job.return_us
        return lived_us > budget_ms * 1000 + self.slack_us() + SURELY_US

    def give_up(self, job: Job) -> None:
        """Wait for a job no longer, nor ever again; with a budget that was overspent it is S9."""
        if job.id in self._stuck:
            return
        self._stuck.add(job.id)
        if self.is_overdue(job):
            self.find(
                "S9",
                f"a job is `{job.state}` {(job.live_us - job.return_us) // 1000} ms after its "
                "admission",
                allowed="terminal, at the latest by the budget of "
                f"{self.target.limits.timeout_ms} ms",
                answers=(job.answer,),
            )

    def is_given_up(self, job: Job) -> bool:
        """Whether nobody waits for it any more."""
        return job.id in self._stuck

    def wait_limit_s(self, budget_ms: int | None) -> float:
        """How long to listen to a wait of that budget, the job live all the while."""
        spent_s = (budget_ms or 30_000) / 1000 + max(2.0, self.slack_us() / 1e6 + 1.5)
        return min(spent_s, self.patience_s() + 5)

    def is_unwoken(self, job: Job, call_us: int) -> bool:
        """Whether a wait issued at `call_us` is still silent, though its job ended long ago."""
        seen = [at for at in (job.ended_us, job.gone_us) if at is not None]
        if not seen:
            return False
        due_us = max(min(seen), call_us)
        return now_us() > due_us + self.slack_us(call_us) + WAIT_SURELY_US
