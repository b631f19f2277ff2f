"""What the README tells people to type works, as it stands."""

import os
import re
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from counterfoil_conformance.cli import COMMANDS
from counterfoil_conformance.wire.target import parse_target

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def test_the_walk_through_runs_as_it_stands(tmp_path):
    walk = re.search(r"<!-- walk -->\n```sh\n(.*?)```", README, re.DOTALL).group(1)
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    script = f"set -eu\n{walk}".replace("8000", str(free_port()))
    run = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "202 Accepted" in run.stdout
    assert '"state":"done"' in run.stdout.replace(" ", "")
    assert '"label":"7"' in run.stdout.replace(" ", "")
    assert '"task_id":"my-seven"' in run.stdout.replace(" ", "")
    assert "job not found: job_unknown" in run.stdout
    assert "counterfoil_jobs_submitted_total 1.0" in run.stdout


def test_the_target_file_shown_is_one():
    text = re.search(r"```toml\n(base_url.*?)```", README, re.DOTALL).group(1)
    target = parse_target(tomllib.loads(text))
    assert target.limits.max_queue == 4
    assert target.has("bodies.late_failing")


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)#:]+)\)", README))))
def test_every_link_leads_somewhere(link):
    assert (ROOT / link).exists()


def test_every_subcommand_that_is_mentioned_exists():
    mentioned = set(re.findall(r"(?:^|`)counterfoil ([a-z]+)", README, re.MULTILINE))
    assert mentioned <= {command.name for command in COMMANDS}
