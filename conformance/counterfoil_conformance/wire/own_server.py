"""`counterfoil conform` without a subject: start our own server and judge it as any other.

The server is a process of its own, started by its command line; nothing of it is imported. It is
started several times. First with the model it ships, for handwritten digits: ten real pictures go
in, and what comes back must name them. Then with the probe model, whose images are commands, with a
small queue, short limits, a token and a prefix: that one is judged clause by clause. For the few
clauses that speak of another configuration it is started again in that one.
"""

import asyncio
import base64
import json
import shlex
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any, Final

from counterfoil_conformance.errors import HarnessError
from counterfoil_conformance.report.events import CheckEnded, CheckStarted
from counterfoil_conformance.run import Publish, RunOptions
from counterfoil_conformance.wire.answer import now_us
from counterfoil_conformance.wire.process import TargetProcess
from counterfoil_conformance.wire.reading import at_pointer
from counterfoil_conformance.wire.session import CURRENT_CHECK, Session
from counterfoil_conformance.wire.target import Target, parse_target

__all__ = ["IN_FULL", "MAIN", "OTHERS", "SERVE", "Setup", "own_target", "reserved_port", "run"]

_TOKEN: Final = "counterfoil-checks-itself"
_PREFIX: Final = "/v1/models/probe"
_SLOW_MS, _GRACE_MS = 600, 5000
_PICTURES_CHECK: Final = "real_pictures_come_back_named"
_CLAUSES: Final = ("G1", "G4", "Q2", "S9")


SERVE: Final = (sys.executable, "-m", "counterfoil_conformance", "serve")


@dataclass(frozen=True, slots=True)
class Setup:
    """One configuration of our server, times in ms; `clauses`: those it is started for."""

    clauses: str = ""
    max_queue: int = 4
    workers: int = 2
    timeout_ms: int = 1500
    late_ms: int = 2200
    max_stuck: int = 64
    enabled: bool = True
    ttl_ms: int = 1500
    max_completed: int = 5


MAIN: Final = Setup()
# Clauses that speak of a configuration have a server in that configuration. The last one leaves no
# overdue run to itself: its only worker stays held, and the job behind it times out pending.
OTHERS: Final = (
    Setup("A4", max_queue=0),
    Setup("H6", enabled=False),
    Setup("T4", timeout_ms=0, late_ms=1200),
    Setup("T1", workers=1, timeout_ms=600, late_ms=1600, max_stuck=0),
)
# Those that take minutes: a job that nobody ends, for the waits of 30 and of 300 s.
IN_FULL: Final = (Setup("W5", timeout_ms=0, late_ms=1200),)


def run(
    options: RunOptions, publish: Publish, judge: Callable[[Target, RunOptions, Publish], None]
) -> None:
    """Start it and judge it: `judge` is the run against any target.

    Raises:
        HarnessError: it could not be started, or does not know its digits.
    """
    if not options.only or options.only & set(_CLAUSES):
        with reserved_port() as port:
            asyncio.run(_pictures(port, options, publish))
    elsewhere = frozenset(clause for setup in OTHERS for clause in setup.clauses.split())
    if not options.only or options.only - elsewhere:
        with reserved_port() as port:
            judge(own_target(port, MAIN), options, publish)
    for setup in (*OTHERS, *(IN_FULL if options.profile == "full" else ())):
        clauses = frozenset(setup.clauses.split())
        if not options.only or options.only & clauses:
            with reserved_port() as port:
                judge(own_target(port, setup), replace(options, only=clauses), publish)


def own_target(port: int, setup: Setup = MAIN, serve: Sequence[str] = SERVE) -> Target:
    """Our own server with the probe model, as a target file would describe it.

    `serve` are the words that start it, before its flags.
    """
    return parse_target(
        {
            "base_url": f"http://127.0.0.1:{port}",
            "prefix": _PREFIX,
            "token": _TOKEN,
            "limits": {
                "max_queue": setup.max_queue,
                "job_ttl_ms": setup.ttl_ms,
                "max_completed": setup.max_completed,
                "timeout_ms": setup.timeout_ms,
                "workers": setup.workers,
                "max_body": 1 << 20,
                "max_connections": 2000,
                "async_enabled": setup.enabled,
            },
            "bodies": dict(_bodies(setup)),
            "dialect": {"public": ["/healthz", "/ready", "/openapi.json"]},
            "process": {"start": _command(port, setup, serve), "grace_ms": _GRACE_MS},
        }
    )


def _bodies(setup: Setup) -> Iterator[tuple[str, str | int]]:
    commands = {
        "quick": "quick",
        "slow": f"delay:{_SLOW_MS}",
        "failing": "fail:as told",
        "crashing": "crash",
        "hanging": "hang",
        "late": f"delay:{setup.late_ms}",
        "late_failing": f"delay:{setup.late_ms};fail:late",
    }
    for kind, text in commands.items():
        yield kind, json.dumps({"images": [base64.b64encode(text.encode()).decode()]})
    yield "slow_ms", _SLOW_MS
    yield "late_ms", setup.late_ms
    yield "echo", '{"images": ["{nonce}"]}'
    yield "echo_pointer", "/results/0/data/echo"


def _command(port: int, setup: Setup | None, serve: Sequence[str] = SERVE) -> str:
    """The command line that starts it: without a setup, with the model that it ships."""
    flags: dict[str, str | int] = {"port": port, "async-enabled": "true", "log-level": "warning"}
    if setup is not None:
        flags |= {
            "model": "probe",
            "prefix": _PREFIX,
            "token": _TOKEN,
            "workers": setup.workers,
            "max-stuck": setup.max_stuck,
            "max-body": 1 << 20,
            "max-connections": 2000,
            "async-enabled": str(setup.enabled).lower(),
            "async-max-queue": setup.max_queue,
            "async-job-ttl": setup.ttl_ms,
            "async-max-completed": setup.max_completed,
            "async-timeout": setup.timeout_ms,
            "grace": _GRACE_MS,
        }
    words = [*serve]
    words += [word for name, value in flags.items() for word in (f"--{name}", str(value))]
    return shlex.join(words)


@contextmanager
def reserved_port() -> Iterator[int]:
    """A port for a server on 127.0.0.1 that the system gives to nobody else meanwhile.

    A port that was merely free may be another's before the server is up: of another run beside, or
    of one of its many connections. So it stays bound here, without listening, which does not hinder
    a server that sets SO_REUSEADDR (every one does, to be restarted at once).
    """
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        yield int(held.getsockname()[1])


@contextmanager
def _as_check(publish: Publish) -> Iterator[None]:
    """The pictures are a check like any other."""
    CURRENT_CHECK.set(_PICTURES_CHECK)
    publish(CheckStarted(_PICTURES_CHECK, _CLAUSES))
    started_us = now_us()
    yield
    publish(CheckEnded(_PICTURES_CHECK, _CLAUSES, (now_us() - started_us) / 1e6))


async def _pictures(port: int, options: RunOptions, publish: Publish) -> None:
    """Ten real pictures in, ten names out."""
    target = parse_target(
        {
            "base_url": f"http://127.0.0.1:{port}",
            "process": {"start": _command(port, None)},
        }
    )
    process = TargetProcess(target)
    await process.start()
    session = Session(target, options, publish)
    try:
        with _as_check(publish):
            await _name_them(session)
    finally:
        session.flush()
        await session.aclose()
        await process.abandon()


async def _name_them(session: Session) -> None:
    pictures = json.loads(
        resources.files(__package__).joinpath("digits.json").read_text(encoding="ascii")
    )
    body = json.dumps({"images": list(pictures.values()), "req_id": "ten digits"}).encode()
    sent = await session.submit(body=body)
    if sent.job is None:
        raise HarnessError(f"our own server refused ten digits: {sent.answer.say()}")
    await session.wait(sent.job, 10_000)
    reading = await session.result(sent.job)
    named = [at_pointer(reading.body, f"/results/{n}/data/label") for n in range(len(pictures))]
    right = sum(str(one) == digit for one, digit in zip(named, pictures, strict=True))
    if right < len(pictures) - 1:
        raise HarnessError(f"our own server names {list(pictures)} {named}: {_shown(reading.body)}")
    for clause in _CLAUSES:
        session.ok(clause)


def _shown(body: Any) -> str:
    return json.dumps(body)[:300]
