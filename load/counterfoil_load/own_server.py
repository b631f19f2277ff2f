"""Our own server for a run without a URL: a process of its own, jobs executed by our runners."""

import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from counterfoil_conformance.errors import HarnessError

__all__ = ["SERVE", "OwnServer", "own_server"]

SERVE: Final = (sys.executable, "-m", "counterfoil_conformance", "serve")

# The historic profile: more submitters than places, more jobs than are retained.
MAX_QUEUE: Final = 32
MAX_COMPLETED: Final = 500
JOB_TTL_MS: Final = 60_000
STOP_WITHIN_S: Final = 15.0
_READY: Final = "listening on "

_TARGET: Final = """\
exclusive = true
[limits]
max_queue = {max_queue}
max_completed = {max_completed}
job_ttl_ms = {job_ttl_ms}
timeout_ms = 0
async_enabled = true
"""


class OwnServer(NamedTuple):
    """A server that runs: where it is, how it is configured, what opens its runner surface."""

    url: str
    target_file: Path
    runner_token: str


@contextmanager
def own_server(
    serve: Sequence[str] = SERVE,
    *,
    max_queue: int = MAX_QUEUE,
    max_completed: int = MAX_COMPLETED,
    job_ttl_ms: int = JOB_TTL_MS,
    runner: str = "external",
) -> Iterator[OwnServer]:
    """Start the server, and stop it at the end.

    `serve` are the words before its flags. Its jobs are run by our runners (`external`), or by its
    own workers (`internal`).

    Raises:
        HarnessError: it ended before it listened.
    """
    token = secrets.token_hex(16)
    limits = {"max_queue": max_queue, "max_completed": max_completed, "job_ttl_ms": job_ttl_ms}
    command = [*serve, *_flags(token, limits, runner)]
    with tempfile.TemporaryDirectory(prefix="counterfoil-load-") as folder:
        target_file = Path(folder) / "target.toml"
        target_file.write_text(_TARGET.format_map(limits), encoding="utf-8")
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                yield OwnServer(_url_of(process), target_file, token)
            finally:
                process.terminate()
                try:
                    process.wait(STOP_WITHIN_S)
                except subprocess.TimeoutExpired:
                    process.kill()


def _flags(token: str, limits: dict[str, int], runner: str) -> list[str]:
    flags = {
        "model": "probe",
        "port": 0,
        "runner": runner,
        "runner-token": token,
        "async-enabled": "true",
        "async-timeout": 0,
        "async-max-queue": limits["max_queue"],
        "async-max-completed": limits["max_completed"],
        "async-job-ttl": limits["job_ttl_ms"],
        "log-level": "warning",
    }
    return [word for name, value in flags.items() for word in (f"--{name}", str(value))]


def _url_of(process: "subprocess.Popen[str]") -> str:
    """Where the server listens: it says so in a line, once it does."""
    assert process.stdout is not None
    for line in process.stdout:
        if _READY in line:
            return line.split(_READY, 1)[1].split()[0]
    raise HarnessError(f"our own server ended with exit code {process.wait()} before it listened")
