"""The locustfile: `locust -f .../profile.py`, or `counterfoil load`, which starts that.

It only wires the parts together: options, stage, users, verdict, page. The verdict is made when the
run has ended, by the process that has the whole history (the master, or the only one); headless,
its exit code is Locust's.
"""

from typing import Any

from locust import events
from locust.env import Environment
from locust.runners import WorkerRunner

from counterfoil_load.closing import conclude
from counterfoil_load.settings import add_options, settings_from
from counterfoil_load.stage import Stage, stage_of
from counterfoil_load.ui import add_ledger_tab
from counterfoil_load.users import Poller, Runner, StressShape, Submitter, Waiter

__all__ = ["Poller", "Runner", "StressShape", "Submitter", "Waiter"]


@events.init_command_line_parser.add_listener
def _options(parser: Any) -> None:
    add_options(parser)


@events.init.add_listener
def _ready(environment: Environment, **_: Any) -> None:
    stage = Stage(environment, settings_from(environment.parsed_options))
    environment.counterfoil_stage = stage
    if environment.web_ui:
        add_ledger_tab(environment, stage)


@events.test_start.add_listener
def _begin(environment: Environment, **_: Any) -> None:
    stage_of(environment).reset()


@events.test_stop.add_listener
def _end(environment: Environment, **_: Any) -> None:
    if not isinstance(environment.runner, WorkerRunner):
        environment.process_exit_code = conclude(stage_of(environment))
