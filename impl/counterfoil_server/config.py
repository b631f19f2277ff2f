"""What the server can be told, where it is told, and what is refused.

Every key is one row of `KEYS`: its default, its check, and the words for what is allowed. A value
is looked for in four places, and the first that has it wins:

    a flag (`--async-max-queue 4`)
    the environment (`COUNTERFOIL_ASYNC_MAX_QUEUE=4`)
    the file given with `--config` (TOML: `async_max_queue = 4`)
    the default

A wrong value is one line that names the key, the value, the place and what is allowed. The five
`async_*` keys keep the names, units (ms) and defaults that they have always had.
"""

import difflib
import ipaddress
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, NamedTuple

from counterfoil_server.ledger import Limits

__all__ = ["KEYS", "ConfigError", "Key", "Settings", "load_settings", "read_file"]

ENVIRONMENT_PREFIX: Final = "COUNTERFOIL_"


class ConfigError(Exception):
    """A wrong value: one line for the operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The effective configuration. `KEYS` says what each value means."""

    host: str = "127.0.0.1"
    port: int = 8000
    port_file: str = ""
    prefix: str = ""
    token: str = ""
    processes: int = 1
    model: str = "digits"
    model_card: str = ""
    workers: int = 2
    max_stuck: int = 64
    async_enabled: bool = False
    async_timeout: int = 300_000
    async_max_queue: int = 16
    async_job_ttl: int = 300_000
    async_max_completed: int = 100
    infer_max_pending: int = 64
    max_body: int = 16 * 2**20
    max_images: int = 64
    max_pixels: int = 50_000_000
    max_connections: int = 20_000
    head_timeout: int = 10_000
    body_timeout: int = 30_000
    keep_alive: int = 120_000
    grace: int = 30_000
    runner: str = "internal"
    runner_token: str = ""
    runner_lease: int = 30_000
    event_log: str = ""
    log_level: str = "info"
    log_format: str = "text"

    @property
    def limits(self) -> Limits:
        """What the ledger is configured with."""
        return Limits(self.async_max_queue, self.async_job_ttl, self.async_max_completed)


class Key(NamedTuple):
    """A row of the table. `secret` values are never shown."""

    name: str
    kind: type
    fits: Callable[[Any], bool]
    allowed: str
    help: str
    secret: bool = False

    @property
    def flag(self) -> str:
        """How it is spelled on the command line."""
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        """How it is spelled in the environment."""
        return ENVIRONMENT_PREFIX + self.name.upper()


def _any(_: Any) -> bool:
    return True


def _within(low: int, high: int) -> Callable[[Any], bool]:
    return lambda value: low <= value <= high


def _matches(pattern: str) -> Callable[[Any], bool]:
    return lambda value: re.fullmatch(pattern, value) is not None


def _span(name: str, low: int, high: int, text: str) -> Key:
    return Key(name, int, _within(low, high), f"a whole number from {low} to {high}", text)


def _choice(name: str, words: tuple[str, ...], text: str) -> Key:
    return Key(name, str, words.__contains__, ", ".join(words), text)


_DAY: Final = 86_400_000
_NO_SPACE: Final = r"[!-~]*"
_WORD: Final = "printable ASCII without spaces"
_SAFE_PATH: Final = r"(/(?!\.{1,2}(/|$))[A-Za-z0-9._~-]+)*"  # clients resolve /. and /.. themselves

KEYS: Final = (
    Key("host", str, _matches(r"[!-~]+"), "a host name or address", "where to listen"),
    _span("port", 0, 65535, "where to listen; 0 = a port that the system chooses"),
    Key("port_file", str, _any, "a path", "write the chosen port into this file once it is ready"),
    Key("prefix", str, _matches(_SAFE_PATH), "/segments of [A-Za-z0-9._~-]", "path before /jobs"),
    Key("token", str, _matches(_NO_SPACE), _WORD, "what clients must bear", True),
    Key(
        "processes",
        int,
        lambda value: value == 1,
        "1 (the ledger is in memory: several processes would each have their own)",
        "how many processes serve",
    ),
    Key("model", str, _matches(r".+"), "digits, probe, or a path", "what to serve"),
    Key("model_card", str, _any, "a path", "the model's description (default: FILE.toml)"),
    _span("workers", 1, 1024, "how many tasks run at once"),
    _span("max_stuck", 0, 10_000, "how many runs past their budget may be left to themselves"),
    Key("async_enabled", bool, _any, "true or false", "whether there are /jobs routes"),
    _span("async_timeout", 0, 365 * _DAY, "job budget in ms; 0 = none"),
    Key("async_max_queue", int, _any, "a whole number", "bound on jobs pending or running"),
    _span("async_job_ttl", 0, 365 * _DAY, "ms that an ended job is retained"),
    Key("async_max_completed", int, _any, "a whole number", "how many ended jobs are retained"),
    _span("infer_max_pending", 1, 100_000, "bound on /infer calls pending or running"),
    _span("max_body", 1, 2**30, "bytes of a request body"),
    _span("max_images", 1, 100_000, "images of one request"),
    _span("max_pixels", 1, 2**31, "pixels of one image"),
    _span("max_connections", 1, 1_000_000, "connections held at once"),
    _span("head_timeout", 100, _DAY, "ms for the head of a request to arrive"),
    _span("body_timeout", 100, _DAY, "ms for the body of a request to arrive"),
    _span("keep_alive", 100, _DAY, "ms that an idle connection is kept"),
    _span("grace", 0, _DAY, "ms that jobs may still take after SIGTERM"),
    _choice("runner", ("internal", "external", "both"), "who runs the jobs"),
    Key("runner_token", str, _matches(_NO_SPACE), _WORD, "what runners must bear", True),
    _span("runner_lease", 100, _DAY, "ms after which a silent external runner has lost its job"),
    Key("event_log", str, _any, "a path", "append every call to the ledger to this file (JSONL)"),
    _choice("log_level", ("debug", "info", "warning", "error"), "how much to log"),
    _choice("log_format", ("text", "json"), "how to log"),
)


def load_settings(
    flags: Mapping[str, Any], environment: Mapping[str, str], config: Path | None
) -> Settings:
    """The effective configuration; ConfigError, in one line, if any value is wrong."""
    _check_names(environment)
    values: dict[str, Any] = {"workers": os.cpu_count() or 2}
    in_file = read_file(config) if config else {}
    for key in KEYS:
        if flags.get(key.name) is not None:
            values[key.name] = _checked(key, flags[key.name], f"flag {key.flag}")
        elif key.variable in environment:
            place = f"environment {key.variable}"
            values[key.name] = _checked(key, environment[key.variable], place)
        elif key.name in in_file:
            values[key.name] = _checked(key, in_file[key.name], f"file {config}")
    settings = Settings(**values)
    _check_together(settings)
    return settings


def read_file(path: Path) -> dict[str, Any]:
    """The values of a TOML file, unchecked but for the names of the keys."""
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"config {path}: cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"config {path}: is not TOML: {error}") from None
    known = [field.name for field in fields(Settings)]
    for name in table:
        if name not in known:
            raise ConfigError(f"{name} (file {path}): no such key; allowed: {', '.join(known)}")
    return table


def _check_names(environment: Mapping[str, str]) -> None:
    """A variable that all but names a key is a slip of the pen; others are not our business."""
    known = [key.name.upper() for key in KEYS]
    for name in environment:
        word = name.removeprefix(ENVIRONMENT_PREFIX)
        if word not in {name, *known}:
            for meant in difflib.get_close_matches(word, known, 1, 0.85):
                allowed = f"{ENVIRONMENT_PREFIX}{meant}"
                raise ConfigError(f"{name} (environment): no such key; allowed: {allowed}")


def _checked(key: Key, value: Any, place: str) -> Any:
    """The value in its type; a flag's and the environment's are text, a file's are not."""
    typed = _typed(key.kind, value) if isinstance(value, str) else value
    if type(typed) is not key.kind or not key.fits(typed):
        shown = "(hidden)" if key.secret else repr(value)
        raise ConfigError(f"{key.name} = {shown} ({place}): allowed: {key.allowed}")
    return typed


def _typed(kind: type, text: str) -> Any:
    if kind is int and re.fullmatch(r"[+-]?\d{1,18}", text, re.ASCII):
        return int(text)
    if kind is bool:
        return {"true": True, "false": False}.get(text.lower(), text)
    return text


def _check_together(settings: Settings) -> None:
    """What a value allows another to be (K3)."""
    if not settings.token and not _is_loopback(settings.host):
        raise ConfigError(
            f"host = {settings.host!r}: allowed without a token: a loopback address "
            "(127.0.0.1, ::1, localhost); set token to listen anywhere else"
        )
    if settings.model_card and settings.model in ("digits", "probe"):
        raise ConfigError(
            f"model_card = {settings.model_card!r}: allowed with a model that is a file, "
            f"and model = {settings.model!r} brings its own"
        )
    if settings.runner != "internal" and not settings.runner_token:
        raise ConfigError(f"runner = {settings.runner!r}: allowed with runner_token set: any")
    if settings.runner_token and settings.runner_token == settings.token:
        raise ConfigError("runner_token = (hidden): allowed: anything but the value of token")


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
