"""One connection, told as a generator: what to read, what to send, whom to wait for.

The generator yields commands and is resumed with their results, so one telling serves threads and a
loop alike. The traps are the refusals sent before the body was read: the rest of the body must be
read away, or the connection closed without a reset that would take the answer with it.
"""

import random
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from strangers.app import App
from strangers.config import Config
from strangers.messages import Head, Malformed, Parked, Request, Response, Writer, parse_head

__all__ = ["Conversation", "Drop", "Gone", "HalfClose", "Pause", "Read", "Send"]

_MAX_HEAD = 64 * 1024
_MAX_DRAIN = 64 << 20
_IDLE_S, _STALL_S, _LINGER_S = 60.0, 10.0, 2.0


@dataclass(frozen=True)
class Read:
    """Resume with some bytes, b"" at the end of the stream, None after `seconds`."""

    seconds: float


@dataclass(frozen=True)
class Send:
    """Write the bytes."""

    raw: bytes


@dataclass(frozen=True)
class Pause:
    """Resume after `seconds`."""

    seconds: float


@dataclass(frozen=True)
class Gone:
    """Resume with whether the client has closed (at least) its half."""


@dataclass(frozen=True)
class HalfClose:
    """Say that no more will be sent."""


@dataclass(frozen=True)
class Drop:
    """Cut the connection with a reset (only faults do that)."""


Talk = Generator[Any, Any, Any]


class Conversation:
    """The requests of one connection, one after the other."""

    def __init__(self, config: Config, app: App, writer: Writer) -> None:
        self.config, self.app, self.writer = config, app, writer
        self.buffer = b""

    def talk(self) -> Talk:
        keep = True
        while keep:
            try:
                head = yield from self.read_head()
            except Malformed as bad:
                yield from self.send(self.app.malformed(bad), None, close=True)
                break
            if head is None:
                return
            keep = yield from self.exchange(head)
        yield from self.linger()

    def exchange(self, head: Head) -> Talk:
        """One request and its answer; true when the connection goes on."""
        early = self.app.before_body(head)
        if early is not None:
            return (yield from self.refuse_early(early, head))
        try:
            body = yield from self.read_body(head)
        except Malformed as bad:
            yield from self.send(self.app.malformed(bad), head, close=True)
            return False
        if body is None:
            return False
        yield from self.dawdle()
        answer = self.app.answer(Request(head, body))
        if isinstance(answer, Parked):
            yield answer
            answer = answer.answer()
        if self.config.half_close == "gone" and (yield Gone()):
            return False
        return (yield from self.send(answer, head, close=self.closes(answer, head)))

    def closes(self, answer: Response, head: Head) -> bool:
        refused = answer.status >= 400 and self.config.close_after_refusal
        return answer.close or refused or not self.config.keep_alive or not head.persistent

    def refuse_early(self, early: Response, head: Head) -> Talk:
        """Answer before the body was read, and leave no byte of it to the next request."""
        close = self.closes(early, head)
        unread = head.has_body
        if unread and (self.config.early == "close" or head.expects_continue):
            close = True
        yield from self.send(early, head, close=close)
        if unread and not close:
            try:
                drained = yield from self.read_body(head, keep=False)
            except Malformed:
                return False
            return drained is not None
        return not close

    def send(self, response: Response, head: Head | None, close: bool) -> Talk:
        yield from self.dawdle()
        raw = self.writer.render(response, head, close)
        if self.config.packets == "split":
            for start in range(0, min(60, len(raw)), 20):
                yield Send(raw[start : start + 20])
                yield Pause(0.001)
            raw = raw[60:]
        yield Send(raw)
        return not close

    def dawdle(self) -> Talk:
        """Half of the jitter before the work, half after."""
        if self.config.jitter_ms:
            yield Pause(random.uniform(0, self.config.jitter_ms / 2000))

    def linger(self) -> Talk:
        """Close so that a client that is still sending can read the answer."""
        yield HalfClose()
        for _ in range(_MAX_DRAIN // 65_536):
            if not (yield Read(_LINGER_S)):
                return

    # -- reading

    def read_head(self) -> Talk:
        while True:
            self.buffer = self.buffer.lstrip(b"\r\n")
            line_length = self.buffer.find(b"\r\n")
            if (line_length if line_length >= 0 else len(self.buffer)) > self.config.max_line:
                raise Malformed(414, "request line too long")
            if b"\r\n\r\n" in self.buffer:
                break
            if len(self.buffer) > self.config.max_line + _MAX_HEAD:
                raise Malformed(431, "header too large")
            more = yield Read(_STALL_S if self.buffer else _IDLE_S)
            if not more:
                if more is None and self.buffer:
                    raise Malformed(408, "the head did not come")
                return None
            self.buffer += more
        raw, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
        if len(raw) > self.config.max_line + _MAX_HEAD:
            raise Malformed(431, "header too large")
        return parse_head(raw)

    def read_body(self, head: Head, keep: bool = True) -> Talk:
        """The whole body, None when the client left; without `keep` it is only read away."""
        limit = self.config.max_body if keep else _MAX_DRAIN
        if keep and head.has_body and head.expects_continue:
            yield Send(b"HTTP/1.1 100 Continue\r\n\r\n")
        if not head.chunked:
            if head.length > limit:
                raise Malformed(413, "body too large")
            return (yield from self.take(head.length))
        parts: list[bytes] = []
        size = 0
        while True:
            line = yield from self.take_line()
            if line is None:
                return None
            length = self.chunk_length(line)
            size += length
            if size > limit:
                raise Malformed(413, "body too large")
            chunk = yield from self.take(length)
            end = (yield from self.take_line()) if length else (yield from self.trailers())
            if chunk is None or end is None:
                return None
            if end:
                raise Malformed(400, "bad chunk")
            if not length:
                return b"".join(parts)
            parts.append(chunk if keep else b"")

    def chunk_length(self, line: bytes) -> int:
        digits = line.partition(b";")[0].strip()
        if not digits or len(digits) > 8 or digits.strip(b"0123456789abcdefABCDEF"):
            raise Malformed(400, "bad chunk length")
        return int(digits, 16)

    def trailers(self) -> Talk:
        line = yield from self.take_line()
        while line:
            line = yield from self.take_line()
        return line

    def take(self, length: int) -> Talk:
        """Exactly `length` bytes, None when the client left first."""
        parts = [self.buffer[:length]]
        self.buffer, missing = self.buffer[length:], length - len(parts[0])
        while missing:
            more = yield Read(_STALL_S)
            if more is None:
                raise Malformed(408, "the body did not come")
            if not more:
                return None
            parts.append(more[:missing])
            self.buffer = more[missing:]
            missing -= len(parts[-1])
        return b"".join(parts)

    def take_line(self) -> Talk:
        while b"\r\n" not in self.buffer:
            if len(self.buffer) > _MAX_HEAD:
                raise Malformed(400, "bad chunk")
            more = yield Read(_STALL_S)
            if more is None:
                raise Malformed(408, "the body did not come")
            if not more:
                return None
            self.buffer += more
        line, _, self.buffer = self.buffer.partition(b"\r\n")
        return line
