"""`pip install .[server]` into an empty environment gives a working `counterfoil` command."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("counterfoil_spec", "counterfoil_conformance", "counterfoil_server", "counterfoil_load")


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder), cwd=ROOT)
    return next(folder.glob("*.whl"))


def test_the_wheel_holds_the_four_packages_and_every_file_in_them(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    tracked = run("git", "ls-files", "spec", "conformance", "impl", "load", cwd=ROOT).split()
    for path in tracked:
        inside = path.split("/", 1)[1]
        if inside.split("/")[0] in PACKAGES:
            assert inside in names


def test_the_installed_command_works_away_from_the_sources(wheel, tmp_path):
    uv = str(Path(sys.executable).parent / "uv")
    home = tmp_path / "env"
    run(uv, "venv", "--quiet", "--python", sys.executable, str(home))
    python = str(home / "bin" / "python")
    command = [uv, "pip", "install", "--quiet", "--python", python, f"{wheel}[server]"]
    run(*command, "--constraint", str(ROOT / "requirements.lock"))
    counterfoil = str(home / "bin" / "counterfoil")
    clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    listed = json.loads(run(counterfoil, "list", "--json", cwd=tmp_path, env=clean))
    assert {"S1", "W2", "X5"} <= {row["id"] for row in listed}
    shown = run(counterfoil, "serve", "--check", cwd=tmp_path, env=clean)
    assert "async_max_queue" in shown
