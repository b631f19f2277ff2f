"""Start a stranger as a process of its own, and write the target file that describes it."""

import base64
import contextlib
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from strangers.config import Config, arguments_of

__all__ = ["Running", "body", "command", "running", "target_text", "write_target"]

_TESTS = Path(__file__).resolve().parent.parent
_SLOW_MS, _LATE_MS = 600, 700


@dataclass(frozen=True)
class Running:
    """A started stranger."""

    config: Config
    process: subprocess.Popen[str]

    @property
    def url(self) -> str:
        return f"http://{self.config.host}:{self.config.port}"


def image(words: str) -> str:
    """A base64 image that tells the model what to do."""
    return base64.b64encode(words.encode()).decode()


def body(*words: str, **fields: Any) -> str:
    """A request body of one image for each of `words`, and other fields."""
    return json.dumps({"images": [image(each) for each in words], **fields})


def command(config: Config) -> list[str]:
    """The command line that starts it in the foreground."""
    path = f"PYTHONPATH={_TESTS}"
    return ["env", path, sys.executable, "-m", "strangers", *arguments_of(config)]


@contextlib.contextmanager
def running(config: Config) -> Iterator[Running]:
    """Start it (on a port of the system's choice unless `config.port` names one) and stop it."""
    env = {**os.environ, "PYTHONPATH": str(_TESTS)}
    words = [sys.executable, "-m", "strangers", *arguments_of(config)]
    with subprocess.Popen(words, env=env, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("listening"), f"the stranger did not start: {line!r}"
            yield Running(replace(config, port=int(line.split()[-1])), process)
        finally:
            process.kill()


def target_text(config: Config, *, with_process: bool = False) -> str:
    """The TOML that tells the kit how this stranger is configured."""
    late_ms = config.timeout_ms + _LATE_MS if config.timeout_ms else 2000
    echo = body("echo", params={"nonce": "{nonce}"})
    bodies: dict[str, Any] = {
        "quick": body("quick"),
        "slow": body(f"sleep {_SLOW_MS}"),
        "slow_ms": _SLOW_MS,
        "failing": body("fail as told"),
        "crashing": body("crash"),
        "hanging": body("hang"),
        "late": body(f"late {late_ms}"),
        "late_ms": late_ms,
        "late_failing": body(f"latefail {late_ms}"),
        "echo": echo,
        "echo_pointer": "/results/0/data/echo",
    }
    limits = {
        name: getattr(config, name)
        for name in (
            "max_queue", "job_ttl_ms", "max_completed", "timeout_ms", "workers", "max_body",
            "async_enabled",
        )
    }  # fmt: skip
    if not config.timeout_ms:
        for name in ("late", "late_ms", "late_failing", *(() if with_process else ("hanging",))):
            del bodies[name]
    metrics = {
        "depth": "stranger_jobs_depth",
        **{n: f"stranger_jobs_{n}_total" for n in ("submitted", "done", "failed", "timeout")},
    }
    top = {
        "base_url": f"http://{config.host}:{config.port}",
        "prefix": config.prefix,
        "token": config.token,
        "exclusive": True,
    }
    tables: dict[str, dict[str, Any]] = {
        "limits": {**limits, "max_connections": 1000},
        "bodies": bodies,
        "dialect": {
            "running_budget": config.running_budget,
            "public": ["/healthz", "/ready", "/openapi.json"],
        },
        "metrics": metrics,
    }
    if with_process:
        tables["process"] = {"start": shlex.join(command(config)), "grace_ms": config.grace_ms}
    lines = [f"{key} = {json.dumps(value)}" for key, value in top.items()]
    for table, pairs in tables.items():
        lines += ["", f"[{table}]"]
        lines += [f"{key} = {json.dumps(value)}" for key, value in pairs.items()]
    return "\n".join(lines) + "\n"


def write_target(config: Config, path: Path, *, with_process: bool = False) -> Path:
    """Write the target file and return its path."""
    path.write_text(target_text(config, with_process=with_process), encoding="utf-8")
    return path
