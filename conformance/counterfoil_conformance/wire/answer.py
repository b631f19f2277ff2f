"""What came back, as a value: an answer, or in which way there was none.

Nothing that a target can do is an exception here. A target that hangs, resets, sends garbage or a
hundred megabytes gives an `Answer` whose `trouble` says so; the checks decide which clause that
breaks. Times are integer microseconds of this process's monotonic clock.
"""

import json
import math
import re
import shlex
import time
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

__all__ = ["NOT_JSON", "Answer", "NotJson", "Request", "now_us", "strict_json"]


class NotJson:
    """The sentinel for a body that is not strict JSON; false, and never equal to a JSON value."""

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "<not JSON>"


NOT_JSON: Final = NotJson()
_SHOWN_BYTES: Final = 400
# A body made of one part, many times over.
_REPEATED: Final = re.compile(rb"(.{20,400}?)\1{2,}", re.DOTALL)


def now_us() -> int:
    """Microseconds of the monotonic clock that all times of a run are on."""
    return time.monotonic_ns() // 1000


@dataclass(frozen=True, slots=True)
class Request:
    """What was sent: `path` exactly as on the wire; `raw` where the bytes were written by hand."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    base_url: str = ""
    raw: bytes | None = None
    secret: str = ""

    def curl(self) -> str:
        """One line that sends it again; a configured token is shown as `$TOKEN`."""
        if self.raw is not None:
            shown = repr(self.raw[:200])[2:-1].replace("'", r"'\''")
            host = self.base_url.split("//")[-1].replace(":", " ")
            return f"printf '{shown}' | nc {host}"
        source, data = _body_words(self.body)
        words = [f"{source}curl -i", "--path-as-is"]
        if self.method == "HEAD":
            words.append("-I")
        elif self.method != ("POST" if self.body is not None else "GET"):
            words.append(f"-X {self.method}")
        for name, value in self.headers:
            if name.lower() in ("host", "content-length", "connection"):
                continue
            text = value.replace(self.secret, "$TOKEN") if self.secret else value
            words.append(f'-H "{name}: {text}"')
        if data:
            words.append(f"--data-binary {data}")
        words.append(f"'{self.base_url}{self.path}'")
        return " ".join(words)


def _body_words(body: bytes | None) -> tuple[str, str]:
    """What makes a body on the command line: something to pipe from, and curl's argument.

    A long run of spaces (how the kit makes bodies large) is made by `printf`: no shell takes a
    megabyte as an argument.
    """
    if body is None:
        return "", ""
    repeated = len(body) > _SHOWN_BYTES and _REPEATED.search(body)
    if repeated and not repeated[1].isspace():
        unit, count = repeated[1], len(repeated[0]) // len(repeated[1])
        start, end = body[: repeated.start()], body[repeated.end() :]
        if max(len(start), len(unit), len(end)) <= _SHOWN_BYTES:
            program = (
                f"import sys; sys.stdout.buffer.write({start!r} + {unit!r} * {count} + {end!r})"
            )
            return f"python3 -c {shlex.quote(program)} | ", "@-"
    run = max(re.findall(rb" {200,}", body), key=len, default=b"")
    before, _, after = body.partition(run) if run else (body, b"", b"")
    if run and len(before) + len(after) <= _SHOWN_BYTES:
        made = f"printf '%s%*s%s' {_quoted(before)} {len(run)} '' {_quoted(after)} | "
        return made, "@-"
    return "", _quoted(body)


def _quoted(body: bytes) -> str:
    text = body.decode("utf-8", "backslashreplace")
    odd = any(ord(char) < 32 for char in text) or text.encode("utf-8", "replace") != body
    if odd and len(body) <= _SHOWN_BYTES:
        # Bash's own quotes: what is a line end on the wire is none in the command.
        return (
            "$'"
            + body.decode("latin-1").encode("unicode_escape").decode().replace("'", r"\'")
            + "'"
        )
    text = text.replace("'", r"'\''")
    if len(text) > _SHOWN_BYTES:
        text = f"{text[:_SHOWN_BYTES]}... ({len(body)} bytes)"
    return f"'{text}'"


@dataclass(frozen=True)
class Answer:
    """One answer to one request, or the `trouble` that came in its place.

    `trouble` is empty, or one of: `refused` (no connection), `timeout`, `reset`, `closed` (no byte
    came), `truncated` (cut off midway), `garbage` (not HTTP), `too big`. `call_us` is taken before
    the last byte of the request went out, `return_us` after the last byte of the answer came in (or
    when the trouble was noticed). `closed`: the connection cannot be used again; `reused`: it had
    carried an answer before.
    """

    request: Request
    call_us: int
    return_us: int
    status: int = 0
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    trouble: str = ""
    detail: str = ""
    head: bytes = b""
    informational: tuple[int, ...] = ()
    closed: bool = False
    conn: str = ""
    reused: bool = False

    @property
    def closed_idle(self) -> bool:
        """Whether a kept connection ended before a byte came: every server may close those."""
        return self.reused and self.trouble in ("closed", "reset") and not self.head

    @property
    def ok(self) -> bool:
        """Whether a whole answer came (of any status)."""
        return not self.trouble

    @property
    def trip_us(self) -> int:
        """From call to return."""
        return self.return_us - self.call_us

    def header(self, name: str) -> str | None:
        """The first header of that name, in any case, or None."""
        wanted = name.lower()
        return next((value for key, value in self.headers if key.lower() == wanted), None)

    @cached_property
    def json(self) -> Any:
        """The body as strict JSON, or `NOT_JSON`."""
        return strict_json(self.body)[0]

    def field(self, name: str) -> Any:
        """A field of the body's object, or None."""
        return self.json.get(name) if isinstance(self.json, dict) else None

    def say(self) -> str:
        """One line for a report: status and the beginning of the body, or the trouble."""
        if self.trouble:
            return f"{self.trouble} ({self.detail})" if self.detail else self.trouble
        text = self.body[:300].decode("utf-8", "backslashreplace")
        text = " ".join(text.split())
        text = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)
        return f"{self.status} {text}{'...' if len(self.body) > 300 else ''}".rstrip()


def strict_json(body: bytes) -> tuple[Any, str]:
    """The value of a strict JSON text (E9) and "", or `NOT_JSON` and why it is not one."""
    try:
        value = json.loads(body.decode("utf-8"), parse_constant=_no_constant, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        return NOT_JSON, str(error) or type(error).__name__
    if b"\\u" in body and _has_lone_surrogate(value):
        return NOT_JSON, "a lone surrogate"
    return value, ""


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    # 1e999 is legal JSON text; readers differ on it, so it is not held against the target.
    return value if math.isfinite(value) else 0.0


def _has_lone_surrogate(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False
