"""What the users of one process share, and how the processes of one run are kept together.

A run has three phases: *stress*, all users act; *drain*, nothing is submitted any more and the rest
see the jobs to their end, so that "depth is back to zero" can be judged; *closed*, users rest and
the last of the history goes to the master. The load shape on the master moves the phase.

With `--processes`, the stage on a worker sends its history lines to the master once a second; the
master hands the ids of admitted and ended jobs on to the other workers, so that a poller can ask
about a job that another process submitted. Everything rides on Locust's own messages.
"""

import random
from enum import StrEnum
from typing import Any, Final

import gevent
from locust.env import Environment
from locust.runners import LocalRunner, MasterRunner, WorkerRunner

from counterfoil_conformance.wire.target import Target, load_target
from counterfoil_load.known import KnownJobs, ended_by, job_in
from counterfoil_load.recorder import Recorder
from counterfoil_load.settings import Settings
from counterfoil_load.verdict import LoadVerdict

__all__ = ["Phase", "Stage", "stage_of"]

_REPORT_PERIOD_S: Final = 1.0


class Phase(StrEnum):
    """How far the run is."""

    STRESS = "stress"
    DRAIN = "drain"
    CLOSED = "closed"


class Stage:
    """One process's share of the run; on the master (or alone) it gathers the whole history."""

    def __init__(self, environment: Environment, settings: Settings) -> None:
        self.settings = settings
        self.environment = environment
        self.target: Target = load_target(settings.target_file, environment.host or None)
        self.reset()
        runner = environment.runner
        if isinstance(runner, MasterRunner):
            runner.register_message("counterfoil_lines", self._on_lines)
        elif isinstance(runner, WorkerRunner):
            runner.register_message("counterfoil_phase", self._on_phase)
            runner.register_message("counterfoil_jobs", self._on_jobs)
            gevent.spawn(self._report_for_ever)

    def reset(self) -> None:
        """Begin a run: nothing of an earlier one counts."""
        self.phase = Phase.STRESS
        self.rng = random.Random(self.settings.seed or None)
        self.known = KnownJobs(self.rng)
        self.recorder = Recorder(self.settings.max_calls)
        self.history: list[dict[str, Any]] = []
        self.acted: dict[str, int] = {}
        self.users: dict[str, int] = {}
        self.dropped = 0
        self.verdict: LoadVerdict | None = None
        self._closed_workers: set[str] = set()

    @property
    def has_runner_surface(self) -> bool:
        """Whether the runner users execute jobs, or only fetch results."""
        return bool(self.settings.runner_token)

    def note_action(self, role: str) -> None:
        """A user of `role` acted."""
        self.acted[role] = self.acted.get(role, 0) + 1

    def count_users(self) -> None:
        """Note how many users of each role there are, in all processes; the most at any time."""
        runner = self.environment.runner
        local = isinstance(runner, LocalRunner)
        counts = runner.user_classes_count if local else runner.reported_user_classes_count
        if sum(counts.values()) >= sum(self.users.values()):
            self.users = {role: int(count) for role, count in counts.items()}

    def move_to(self, phase: Phase) -> None:
        """Move the run to `phase`, in every process."""
        if self.phase is phase:
            return
        self.phase = phase
        runner = self.environment.runner
        if isinstance(runner, MasterRunner):
            runner.send_message("counterfoil_phase", {"phase": str(phase)})

    def gather(self) -> list[dict[str, Any]]:
        """The history so far, as the master (or the only process) has it."""
        self.history += self.recorder.drain()
        if isinstance(self.environment.runner, LocalRunner):
            self.dropped = self.recorder.dropped
        return self.history

    def all_closed(self) -> bool:
        """Whether every process has handed over the last of its history."""
        runner = self.environment.runner
        if not isinstance(runner, MasterRunner):
            return True
        return len(self._closed_workers) >= int(runner.worker_count)

    # Messages

    def _report_for_ever(self) -> None:
        while True:
            gevent.sleep(_REPORT_PERIOD_S)
            self._report()

    def _report(self) -> None:
        runner = self.environment.runner
        lines = self.recorder.drain()
        if isinstance(runner, WorkerRunner) and (lines or self.phase is Phase.CLOSED):
            data = {
                "lines": lines,
                "acted": self.acted,
                "dropped": self.recorder.dropped,
                "closed": self.phase is Phase.CLOSED,
            }
            runner.send_message("counterfoil_lines", data)
            self.acted = {}

    def _on_lines(self, environment: Environment, msg: Any, **_: Any) -> None:
        lines = msg.data["lines"]
        self.history += lines
        self.dropped += msg.data["dropped"]
        for role, count in msg.data["acted"].items():
            self.acted[role] = self.acted.get(role, 0) + count
        if msg.data["closed"]:
            self._closed_workers.add(msg.node_id)
        admitted = [job for line in lines if (job := job_in(line))]
        ended = [job for line in lines if (job := ended_by(line))]
        for line in lines:
            self.known.learn(line)
        if admitted or ended:
            jobs = {"admitted": admitted, "ended": ended}
            environment.runner.send_message("counterfoil_jobs", jobs)

    def _on_phase(self, environment: Environment, msg: Any, **_: Any) -> None:  # noqa: ARG002
        self.phase = Phase(msg.data["phase"])

    def _on_jobs(self, environment: Environment, msg: Any, **_: Any) -> None:  # noqa: ARG002
        for job in msg.data["admitted"]:
            self.known.admit(job)
        for job in msg.data["ended"]:
            self.known.end(job)


def stage_of(environment: Environment) -> Stage:
    """The stage of this process."""
    stage = getattr(environment, "counterfoil_stage", None)
    assert isinstance(stage, Stage), "the profile sets the stage when Locust is ready"
    return stage
