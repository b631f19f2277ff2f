"""The eleven users: 4 submitters, 2 runners, 3 pollers, 2 waiters, and the shape that keeps them.

The counts are exact whatever number of users is asked for: it is rounded to a multiple of eleven,
and the weights below are the mix. Each role does one thing as fast as it is answered (a closed
loop: a slow target is asked less often; `--submit-rate` opens the loop for submits). A runner makes
mistakes on purpose: it finishes twice, and late, and expects to be refused.
"""

from typing import Any, ClassVar

import gevent
from locust import FastHttpUser, LoadTestShape, task

from counterfoil_load.bodies import Request, make_request, runner_results
from counterfoil_load.calls import Calls
from counterfoil_load.settings import DEFAULT_RUN_S, ROLES, USERS_PER_SCALE
from counterfoil_load.stage import Phase, Stage, stage_of
from counterfoil_spec.ledger import State

__all__ = ["Poller", "Runner", "StressShape", "Submitter", "Waiter"]

# A wait may be held for 300 s; the client must not be the one that hangs up.
NETWORK_TIMEOUT_S = 330.0
# How long a job runs: next to nothing for most, and for some long enough to be seen running.
RUN_S = (0.0, 0.0, 0.001, 0.001, 0.001, 0.005, 0.005, 0.01, 0.03, 0.08)
# How long a user rests when there is nothing for it to do.
IDLE_S = 0.02


class JobsUser(FastHttpUser):
    """A user with the contract's calls; `network_timeout` is above the cap of a wait."""

    abstract = True
    network_timeout = NETWORK_TIMEOUT_S
    connection_timeout = 10.0
    _count: ClassVar[int] = 0

    def on_start(self) -> None:
        """Take a name and a set of calls."""
        JobsUser._count += 1
        self.stage: Stage = stage_of(self.environment)
        self.role = type(self).__name__
        runner = self.environment.runner
        index = getattr(runner, "worker_index", 0)
        target = self.stage.target
        self.calls = Calls(
            self.client,
            name=f"{self.role.lower()}-{index}-{JobsUser._count}",
            recorder=self.stage.recorder,
            prefix=target.prefix,
            token=target.token,
            runner_token=self.stage.settings.runner_token,
            learn=self.stage.known.learn,
        )

    @task
    def turn(self) -> None:
        """One turn: act, or rest when there is nothing to do."""
        if self.stage.phase is not Phase.CLOSED and self.act():
            self.stage.note_action(self.role)
        else:
            gevent.sleep(IDLE_S)

    def act(self) -> bool:
        """Do the role's work once; False if there was none."""
        raise NotImplementedError


class Submitter(JobsUser):
    """Submits; rests while the run drains."""

    weight = ROLES["Submitter"]

    def wait_time(self) -> float:
        """Seconds between submits: none in a closed loop, the rate's period otherwise."""
        rate = self.stage.settings.submit_rate
        if not rate:
            return float(self.stage.rng.uniform(0.002, 0.01))
        submitters = ROLES["Submitter"] * StressShape.scale(self.environment)
        return float(self._paced(submitters / rate))

    def _paced(self, period_s: float) -> float:
        """The rest of a period that began with the turn before: a slow answer takes none off."""
        now = gevent.get_hub().loop.now()
        self._due = max(getattr(self, "_due", now), now - 10 * period_s) + period_s
        return float(max(0.0, self._due - now))

    def act(self) -> bool:
        """Submit one request; now and then read the job at once, before others know of it."""
        stage = self.stage
        if stage.phase is not Phase.STRESS:
            return False
        request: Request = make_request(stage.target.bodies, stage.rng)
        job = self.calls.submit(request.body, request.task_id, request.nonce)
        if job is not None and stage.rng.random() < 0.3:
            self.calls.poll(job)
        return True


class Runner(JobsUser):
    """Executes jobs over the runner surface; fetches results where there is none."""

    weight = ROLES["Runner"]

    def act(self) -> bool:
        """Claim and end one job, or fetch one result."""
        if not self.stage.has_runner_surface:
            job = self.stage.known.any_job()
            return job is not None and self.calls.result(job) is not None
        claim = self.calls.claim(wait_ms=100)
        if claim is not None:
            self._execute(claim)
        return claim is not None

    def _execute(self, claim: dict[str, Any]) -> None:
        """Run for a millisecond or so and end the job, sometimes wrongly."""
        rng = self.stage.rng
        gevent.sleep(rng.choice(RUN_S))
        results = runner_results(claim)
        chance = rng.random()
        if chance < 0.06:
            self.calls.end(claim, "fail", error="failed on purpose")
        elif chance < 0.12:
            self.calls.end(claim, "timeout", error="timed out on purpose")
            self.calls.end(claim, "finish", results=results)  # late: must be refused
        else:
            self.calls.end(claim, "finish", results=results)
            if chance < 0.20:
                self.calls.end(claim, "finish", results=results)  # twice: must be refused


class Poller(JobsUser):
    """Reads state and result of known jobs, live and ended."""

    weight = ROLES["Poller"]

    def act(self) -> bool:
        """A few reads of one job right after each other: its state, often its result, its state."""
        known = self.stage.known
        closing = self.stage.phase is Phase.DRAIN
        job = (known.oldest_live() if closing else None) or known.any_job()
        if job is None:
            return False
        rng = self.stage.rng
        reply = self.calls.poll(job)
        if reply is not None and rng.random() < 0.5:
            self.calls.result(job)
        if reply is not None and reply.get("state") == State.RUNNING:
            self.calls.poll(job)
        gevent.sleep(rng.uniform(0.0, 0.004))
        return True


class Waiter(JobsUser):
    """Waits for live jobs with short and long budgets, for ended ones now and then."""

    weight = ROLES["Waiter"]

    def act(self) -> bool:
        """One wait."""
        rng = self.stage.rng
        known = self.stage.known
        job = known.any_live() if rng.random() < 0.9 else known.any_job()
        if job is None:
            return False
        budget_ms = rng.choice((1, 20, 100, 500, 2000, 5000))
        reply = self.calls.wait(job, budget_ms)
        if reply is not None and reply.get("state") == State.DONE:
            self.calls.result(job)
        return True


class StressShape(LoadTestShape):
    """Keeps the mix for the run's time, then lets the jobs drain, then ends the run."""

    use_common_options = True

    @staticmethod
    def scale(environment: Any) -> int:
        """How many times eleven users the run has: the number asked for, rounded."""
        asked = getattr(environment.parsed_options, "num_users", None) or USERS_PER_SCALE
        return max(1, round(asked / USERS_PER_SCALE))

    def tick(self) -> tuple[int, float] | None:
        """How many users, and how many of them per second; None ends the run."""
        environment = self.runner.environment
        stage = stage_of(environment)
        users = USERS_PER_SCALE * self.scale(environment)
        run_s = environment.parsed_options.run_time or DEFAULT_RUN_S
        overtime_s = self.get_run_time() - run_s
        stage.gather()
        stage.count_users()
        if overtime_s >= 0:
            stage.move_to(Phase.DRAIN if stage.phase is Phase.STRESS else stage.phase)
            drained = stage.known.live_count == 0 and overtime_s >= 1
            if drained or overtime_s >= stage.settings.drain_s:
                stage.move_to(Phase.CLOSED)
        if stage.phase is Phase.CLOSED and (stage.all_closed() or overtime_s > 60):
            return None
        return users, min(users, 100)
