"""`counterfoil load [URL]`: run the stress profile, headless or with Locust's web UI.

Locust patches the process that imports it, so it always runs as a process of its own: this module
only puts its command line together. Without a URL our own server is started for the run, as a
separate process too, with the runner surface open to the profile's runners.
"""

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

from counterfoil_conformance.errors import UsageError
from counterfoil_conformance.wire.target import load_target
from counterfoil_load.own_server import own_server
from counterfoil_load.reach import require_answers
from counterfoil_load.settings import DEFAULT_MIN_JOBS, USERS_PER_SCALE

__all__ = ["add_arguments", "run"]

PROFILE: Final = Path(__file__).with_name("profile.py")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `load`."""
    add = parser.add_argument
    add("url", nargs="?", metavar="URL", help="the server; none: our own, started for the run")
    add("--target", type=Path, metavar="FILE", help="what the server is configured with (TOML)")
    add("--runner-token", default="", metavar="TOKEN", help="opens the server's runner surface")
    add("--ui", action="store_true", help="open Locust's web UI instead of running headless")
    add("--ui-port", type=int, default=8089, metavar="PORT", help="of the web UI (default: 8089)")
    add("--time", default="30s", metavar="TIME", help="how long to stress: 30s, 5m (default: 30s)")
    add("--scale", type=int, default=1, metavar="N", help="N times 4+2+3+2 users (default: 1)")
    add("--processes", type=int, default=0, metavar="N", help="spread the users over N processes")
    add(
        "--submit-rate",
        type=float,
        default=0.0,
        metavar="PER_S",
        help="submit at this constant rate instead of as fast as answered",
    )
    add(
        "--min-jobs",
        type=int,
        default=DEFAULT_MIN_JOBS,
        metavar="N",
        help=f"fewer ended jobs are no verdict (default: {DEFAULT_MIN_JOBS})",
    )
    add("--seed", type=int, default=0, help="repeat the users' choices")
    add("--json", type=Path, metavar="FILE", help="write the verdict as JSON")
    add("--html", type=Path, metavar="FILE", help="write the verdict with plots as HTML")
    add("--history", type=Path, metavar="FILE", help="write every call (JSONL, for `judge`)")


def run(args: argparse.Namespace) -> int:
    """Run the profile and return its exit code: 0 held, 1 violated, 4 too little exercised.

    Raises:
        UsageError: an argument makes no sense.
        HarnessError: the target is not there, or refuses a token.
    """
    if not re.fullmatch(r"\d+[smh]?|(\d+h)?(\d+m)?(\d+s)?", args.time) or not args.time:
        raise UsageError(f"--time {args.time!r}: allowed are 30s, 5m, 1h30m")
    for option, value in (("--scale", args.scale), ("--processes", args.processes + 1)):
        if value < 1:
            raise UsageError(f"{option}: must be at least 1")
    if args.url is None and args.target is None:
        with own_server() as server:
            return _locust(args, server.url, server.target_file, server.runner_token)
    target = load_target(args.target, args.url)
    require_answers(target, args.runner_token)
    return _locust(args, target.base_url, args.target, args.runner_token)


def _locust(args: argparse.Namespace, url: str, target_file: Path | None, token: str) -> int:
    """Run Locust as a process of its own and wait for it."""
    command = [sys.executable, "-m", "locust", "-f", str(PROFILE), "--host", url]
    command += ["--users", str(args.scale * USERS_PER_SCALE), "--run-time", args.time]
    command += ["--submit-rate", str(args.submit_rate), "--min-jobs", str(args.min_jobs)]
    command += ["--load-seed", str(args.seed), "--loglevel", "WARNING"]
    if args.ui:
        command += ["--web-port", str(args.ui_port), "--web-host", "127.0.0.1"]
        print(f"Locust's web UI: http://127.0.0.1:{args.ui_port} (Ctrl-C ends it)", flush=True)
    else:
        command += ["--headless", "--only-summary"]
    if args.processes > 1:
        command += ["--processes", str(args.processes)]
    files = {
        "--target-file": target_file,
        "--verdict-json": args.json,
        "--verdict-html": args.html,
        "--history": args.history,
    }
    for option, path in files.items():
        command += [option, str(path)] if path else []
    environment = {**os.environ, "COUNTERFOIL_RUNNER_TOKEN": token}
    return subprocess.run(command, env=environment, check=False).returncode
