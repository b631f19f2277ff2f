"""Compile the locked requirements: every version and hash, and no index address.

A lock that names an index sends everybody to that index, so the address is left to each
machine's own configuration of pip and uv. `requirements.lock` is universal (all platforms and
Python versions that `pyproject.toml` allows); the bootstrap file pins only uv, which installs the
rest in seconds.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OPTIONS = (
    "--universal",
    "--python-version=3.11",
    "--generate-hashes",
    "--no-header",
    "--no-emit-index-url",
    "--no-annotate",
)


def compile_lock(source: str, lock: str, *options: str, text: str | None = None) -> None:
    """Write `lock` from `source` (a file, or `-` for `text`)."""
    uv = str(Path(sys.executable).parent / "uv")
    command = [uv, "pip", "compile", source, *options, *OPTIONS, "--output-file", lock]
    subprocess.run(command, cwd=ROOT, input=text, text=True, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    version = subprocess.run(
        [str(Path(sys.executable).parent / "uv"), "--version"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()[1]
    compile_lock("-", "requirements-bootstrap.lock", text=f"uv=={version}\n")
    compile_lock("pyproject.toml", "requirements.lock", "--extra=dev")
