"""What a run of the profile is told, through Locust's own command line.

`counterfoil load` and a plain `locust -f` take the same options, because they are options of the
locustfile: Locust shows them in its web form too. Times are seconds where a person types them.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ROLES", "USERS_PER_SCALE", "Settings", "add_options", "settings_from"]

# The mix: how many users of each role one unit of scale has.
ROLES = {"Submitter": 4, "Runner": 2, "Poller": 3, "Waiter": 2}
USERS_PER_SCALE = sum(ROLES.values())

DEFAULT_RUN_S = 30
DEFAULT_MIN_JOBS = 50
DEFAULT_MAX_CALLS = 500_000


@dataclass(frozen=True, slots=True)
class Settings:
    """One run's settings.

    `runner_token` opens the target's runner surface (empty: its own workers are the runners);
    `submit_rate` is submits/s over all submitters (0: each submits as soon as it is answered);
    `min_jobs` is how many must end for a verdict; `max_calls` bounds the recorded history.
    """

    target_file: Path | None
    runner_token: str
    submit_rate: float
    min_jobs: int
    max_calls: int
    drain_s: float
    seed: int
    json_file: Path | None
    html_file: Path | None
    history_file: Path | None


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the profile's options to Locust's parser."""
    add = parser.add_argument
    add("--target-file", default="", metavar="FILE", help="what the target is configured with")
    add(
        "--runner-token",
        default="",
        metavar="TOKEN",
        is_secret=True,
        env_var="COUNTERFOIL_RUNNER_TOKEN",
        help="opens the runner surface",
    )
    add(
        "--submit-rate",
        type=float,
        default=0.0,
        metavar="PER_S",
        help="submits per second over all submitters, open loop; 0: closed loop",
    )
    add(
        "--min-jobs",
        type=int,
        default=DEFAULT_MIN_JOBS,
        help="fewer ended jobs than this are no verdict (exit 4)",
    )
    add("--max-calls", type=int, default=DEFAULT_MAX_CALLS, help="how many calls are recorded")
    add("--drain-s", type=float, default=20.0, help="how long jobs may take to end at the close")
    add("--load-seed", type=int, default=0, help="seeds the users' choices")
    add("--verdict-json", default="", metavar="FILE", help="write the verdict as JSON")
    add("--verdict-html", default="", metavar="FILE", help="write the verdict and plots as HTML")
    add("--history", default="", metavar="FILE", help="write every recorded call (JSONL)")


def settings_from(options: argparse.Namespace) -> Settings:
    """The settings that Locust's parsed options hold."""
    return Settings(
        target_file=_path(options.target_file),
        runner_token=options.runner_token or "",
        submit_rate=options.submit_rate,
        min_jobs=options.min_jobs,
        max_calls=options.max_calls,
        drain_s=options.drain_s,
        seed=options.load_seed,
        json_file=_path(options.verdict_json),
        html_file=_path(options.verdict_html),
        history_file=_path(options.history),
    )


def _path(text: str) -> Path | None:
    return Path(text) if text else None
