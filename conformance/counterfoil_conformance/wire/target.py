"""The target file: what a user tells the kit about the server it is to judge.

Every key is optional; what is absent makes the clauses that need it UNTESTABLE, by that key's name.
Every key is checked, and an unknown one is refused: a misspelt `max_quue` that was silently ignored
would turn clauses UNTESTABLE and nobody would know why.

The dataclasses below are the format: a section is a dataclass, a key is a field, and the type of
the field is what is allowed. `[adapter]` is for servers that wrap their bodies or stand behind a
gateway; it changes how answers are read, never what is demanded of them.
"""

import json
import tomllib
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from counterfoil_conformance.errors import UsageError

__all__ = [
    "Adapter",
    "Bodies",
    "Dialect",
    "Metrics",
    "Process",
    "Target",
    "TargetLimits",
    "Tolerance",
    "load_target",
    "parse_target",
]

_PUBLIC: Final = ("/healthz", "/ready", "/openapi.json")


@dataclass(frozen=True, slots=True)
class TargetLimits:
    """`[limits]`: what the target is configured with; ms, bytes, counts; None where untold."""

    max_queue: int | None = None
    job_ttl_ms: int | None = None
    max_completed: int | None = None
    timeout_ms: int | None = None
    workers: int | None = None
    max_body: int | None = None
    max_connections: int | None = None
    async_enabled: bool | None = None


@dataclass(frozen=True, slots=True)
class Bodies:
    """`[bodies]`: bodies for `POST /jobs` as JSON text, and what they do, in ms."""

    quick: str | None = None
    slow: str | None = None
    slow_ms: int | None = None
    failing: str | None = None
    crashing: str | None = None
    hanging: str | None = None
    late: str | None = None
    late_ms: int | None = None
    late_failing: str | None = None
    echo: str | None = None
    echo_pointer: str | None = None


@dataclass(frozen=True, slots=True)
class Dialect:
    """`[dialect]`: documented deviations, reported as declared."""

    running_budget: bool = True
    public: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Metrics:
    """`[metrics]`: names of the counters and of the depth gauge, with labels if any."""

    submitted: str | None = None
    done: str | None = None
    failed: str | None = None
    timeout: str | None = None
    depth: str | None = None
    path: str | None = None


@dataclass(frozen=True, slots=True)
class Process:
    """`[process]`: shell commands; `start` stays in the foreground."""

    start: str = ""
    stop: str = ""
    kill: str = ""
    grace_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Tolerance:
    """`[tolerance]`: what "at once" and "not long after" mean, before the round trip is added."""

    ms: float | None = None


@dataclass(frozen=True, slots=True)
class Adapter:
    """`[adapter]`: how to reach the target and how to read its answers.

    `headers` go with every request. `ca_file` is a PEM bundle to trust. `body` is a JSON pointer to
    the contract's body inside a wrapping one (`/data`). `fields` and `states` map the contract's
    names to the target's (`job_id = "id"`, `done = "succeeded"`). `rewritten_urls`: a gateway
    rewrites `Location`, `poll_url` and `result_url` (another host or prefix), so they are reported
    as declared and their last path segments are followed under the prefix.
    """

    headers: Mapping[str, str] = field(default_factory=dict)
    ca_file: str = ""
    body: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)
    states: Mapping[str, str] = field(default_factory=dict)
    rewritten_urls: bool = False


@dataclass(frozen=True, slots=True)
class Target:
    """A server to judge, as its target file describes it.

    `file` and `subject` are not in it: where it was read from, and the URL that was asked for (its
    path is part of `prefix` here).
    """

    base_url: str = ""
    prefix: str = ""
    token: str = ""
    exclusive: bool = True
    limits: TargetLimits = TargetLimits()
    bodies: Bodies = Bodies()
    dialect: Dialect = Dialect()
    metrics: Metrics = Metrics()
    process: Process = Process()
    tolerance: Tolerance = Tolerance()
    adapter: Adapter = Adapter()
    file: str = ""
    subject: str = ""

    @property
    def host(self) -> str:
        """Where to connect."""
        return urlsplit(self.base_url).hostname or ""

    @property
    def port(self) -> int:
        """Where to connect."""
        parts = urlsplit(self.base_url)
        return parts.port or (443 if parts.scheme == "https" else 80)

    @property
    def is_tls(self) -> bool:
        """Whether `base_url` is https."""
        return urlsplit(self.base_url).scheme == "https"

    def has(self, key: str) -> bool:
        """Whether a dotted key (`bodies.slow`, `token`) says something."""
        value: Any = self
        for name in key.split("."):
            value = getattr(value, name)
        return value not in (None, "", ())

    def missing(self, needs: typing.Iterable[str]) -> tuple[str, ...]:
        """Those of the dotted keys that are absent."""
        return tuple(key for key in needs if not self.has(key))


def load_target(path: str | Path | None, url: str | None = None) -> Target:
    """Read a target file; `url` on the command line wins over its `base_url`.

    Raises:
        UsageError: the file cannot be read or is not TOML; a key, its value and what is allowed.
    """
    data: dict[str, Any] = {}
    if path is not None:
        try:
            data = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise UsageError(f"target file {path}: {error.strerror}") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise UsageError(f"target file {path} is not TOML: {error}") from error
    if url is not None:
        data = {**data, "base_url": url}
    return parse_target(data, str(path or ""))


def parse_target(data: Mapping[str, Any], source: str = "") -> Target:
    """Check every key of a target file's content.

    Raises:
        UsageError: names the file, the key, the value and what is allowed.
    """
    where = f"target file {source}: " if source else "target: "
    target: Target = _section(Target, data, "", where)
    target = _with_clean_urls(target, where)
    _check_numbers(target, where)
    _check_bodies(target, where)
    return replace(target, file=source)


def _names(kind: type) -> list[str]:
    return [f.name for f in fields(kind) if f.name not in ("file", "subject")]


def _refuse(where: str, key: str, value: object, allowed: str) -> UsageError:
    return UsageError(f"{where}{key} = {json.dumps(value, default=str)}: allowed: {allowed}")


def _section(kind: Any, data: Mapping[str, Any], path: str, where: str) -> Any:
    """Build the dataclass `kind` from a TOML table, key by key."""
    hints = typing.get_type_hints(kind)
    values = {}
    for key, value in data.items():
        dotted = f"{path}{key}"
        if key not in _names(kind):
            raise _refuse(where, dotted, value, f"one of {', '.join(_names(kind))}")
        hint = hints[key]
        if is_dataclass(hint):
            if not isinstance(value, Mapping):
                raise _refuse(where, dotted, value, f"a table [{dotted}]")
            values[key] = _section(hint, value, f"{dotted}.", where)
        else:
            values[key] = _value(hint, value, dotted, where)
    return kind(**values)


def _value(hint: Any, value: Any, key: str, where: str) -> Any:
    kinds = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    for kind in kinds:
        if kind is bool and isinstance(value, bool):
            return value
        if kind is int and isinstance(value, int) and not isinstance(value, bool):
            return value
        if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        if kind is str and isinstance(value, str):
            return value
        origin = typing.get_origin(kind)
        if origin is tuple and _all_str(value, list):
            return tuple(value)
        if origin is Mapping and isinstance(value, dict) and _all_str(list(value.values()), list):
            return dict(value)
    raise _refuse(where, key, value, " or ".join(_said(k) for k in kinds if k is not type(None)))


def _all_str(value: Any, kind: type) -> bool:
    return isinstance(value, kind) and all(isinstance(item, str) for item in value)  # type: ignore[attr-defined]


def _said(kind: Any) -> str:
    origin = typing.get_origin(kind)
    if origin is tuple:
        return "a list of strings"
    if origin is Mapping:
        return "a table of strings"
    said = {bool: "true or false", int: "an integer", float: "a number", str: "a string"}
    return said[kind]


def _with_clean_urls(target: Target, where: str) -> Target:
    parts = urlsplit(target.base_url)
    try:
        port_ok = parts.port != 0
    except ValueError:
        port_ok = False
    if target.base_url and (parts.scheme not in ("http", "https") or not parts.hostname):
        port_ok = False
    if not port_ok:
        raise _refuse(where, "base_url", target.base_url, "http://HOST[:PORT] or https://...")
    if parts.query or parts.fragment or parts.username:
        raise _refuse(where, "base_url", target.base_url, "no query, fragment or user")
    if target.prefix and not target.prefix.startswith("/"):
        raise _refuse(where, "prefix", target.prefix, 'empty, or a path such as "/v1/models/m"')
    if any(ord(c) <= 32 or ord(c) > 126 for c in target.prefix + target.base_url + target.token):
        raise UsageError(f"{where}base_url, prefix and token: allowed: printable ASCII, no spaces")
    prefix = parts.path.rstrip("/") + target.prefix.rstrip("/")
    base = f"{parts.scheme}://{parts.netloc}" if target.base_url else ""
    subject = base + parts.path.rstrip("/")
    return replace(target, prefix=prefix, base_url=base, subject=subject)


def _check_numbers(target: Target, where: str) -> None:
    least: dict[str, int | float | None] = {
        "limits.job_ttl_ms": target.limits.job_ttl_ms,
        "limits.timeout_ms": target.limits.timeout_ms,
        "bodies.slow_ms": target.bodies.slow_ms,
        "bodies.late_ms": target.bodies.late_ms,
        "process.grace_ms": target.process.grace_ms,
        "tolerance.ms": target.tolerance.ms,
    }
    for key, value in least.items():
        if value is not None and not 0 <= value <= 10**9:
            raise _refuse(where, key, value, "0 to 1000000000 ms")
    positive = {
        "limits.workers": target.limits.workers,
        "limits.max_body": target.limits.max_body,
        "limits.max_connections": target.limits.max_connections,
    }
    for key, count in positive.items():
        if count is not None and count < 1:
            raise _refuse(where, key, count, "1 or more")


def _check_bodies(target: Target, where: str) -> None:
    for f in fields(Bodies):
        text = getattr(target.bodies, f.name)
        if not isinstance(text, str) or f.name == "echo_pointer":
            continue
        try:
            body = json.loads(text)
        except ValueError as error:
            raise _refuse(where, f"bodies.{f.name}", text, f"a JSON object ({error})") from error
        if not isinstance(body, dict):
            raise _refuse(where, f"bodies.{f.name}", text, "a JSON object")
    pointer = target.bodies.echo_pointer
    if pointer is not None and not pointer.startswith("/"):
        raise _refuse(where, "bodies.echo_pointer", pointer, "a JSON pointer such as /results/0")
    echo = target.bodies.echo
    if echo is not None and "{nonce}" not in echo:
        raise _refuse(where, "bodies.echo", echo, "a JSON object that contains {nonce}")
    if target.adapter.body and not target.adapter.body.startswith("/"):
        raise _refuse(where, "adapter.body", target.adapter.body, "a JSON pointer such as /data")
    public = target.dialect.public
    if public is not None and not all(path.startswith("/") for path in public):
        raise _refuse(where, "dialect.public", list(public), "paths that begin with /")
