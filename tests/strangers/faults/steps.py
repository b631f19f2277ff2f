"""E8 and E5: connections out of step, answers cut, late or missing."""

import re
import time

from strangers.app import App
from strangers.book import now_ms
from strangers.conversation import Conversation, Pause, Read
from strangers.faults import fault
from strangers.messages import Malformed, Response, Writer


class _OutOfStep(Conversation):
    """Leaves the body of some refused requests to the next one."""

    status = 0

    def refuse_early(self, early, head):
        if early.status == self.status:
            yield from self.send(early, head, close=False)
            return True
        return (yield from super().refuse_early(early, head))


@fault("e8-401-leaves-the-body", "E8 K1", token="s3cret")
class _(_OutOfStep):
    """After a 401 the body is read as the next request."""

    status = 401


@fault("e8-404-leaves-the-body", "E8")
class _(_OutOfStep):
    """After a 404 the body is read as the next request."""

    status = 404


@fault("e8-405-leaves-the-body", "E8 H5")
class _(_OutOfStep):
    """After a 405 the body is read as the next request."""

    status = 405


@fault("e8-415-leaves-the-body", "E8 E3")
class _(_OutOfStep):
    """After a 415 the body is read as the next request."""

    status = 415


@fault("e8-413-leaves-the-body", "E8 E3 E5")
class _(_OutOfStep):
    """After a 413 the body is read as the next request."""

    status = 413


@fault("e8-chunked-left", "E8", full=True)
class _(Conversation):
    """After an early refusal a chunked body is read as the next request."""

    def refuse_early(self, early, head):
        if head.chunked:
            yield from self.send(early, head, close=False)
            return True
        return (yield from super().refuse_early(early, head))


@fault("e8-400-leaves-a-byte", "E8 E1 E5")
class _(Conversation):
    """After a body that is no JSON its last 16 bytes are read again, as the next request."""

    def send(self, response, head, close):
        if response.status == 400 and head and head.length > 16:
            self.buffer = b"BROKEN leftovers" + self.buffer
        return (yield from super().send(response, head, close))


@fault("e8-answers-twice", "E8 E5")
class _(Conversation):
    """A 422 is sent twice."""

    def send(self, response, head, close):
        keep = yield from super().send(response, head, close)
        if response.status == 422 and keep:
            yield from super().send(response, head, close)
        return keep


@fault("e8-429-then-deaf", "E8 E5 A3 H4")
class _(Conversation):
    """After a 429 the connection stays open and is not answered any more."""

    def send(self, response, head, close):
        keep = yield from super().send(response, head, close)
        if response.status == 429 and keep:
            yield Pause(30)
            return False
        return keep


@fault("e8-length-too-long", "E8 E5 H13")
class _(Writer):
    """A 404's `Content-Length` is too long by two."""

    def render(self, response, head, close):
        raw = super().render(response, head, close)
        if response.status != 404:
            return raw
        return re.sub(
            rb"Content-Length: (\d+)", lambda m: b"Content-Length: %d" % (int(m[1]) + 2), raw
        )


@fault("e8-length-too-short", "E8 E9 H13 E5")
class _(Writer):
    """A 409's `Content-Length` is too short by three."""

    def render(self, response, head, close):
        raw = super().render(response, head, close)
        if response.status != 409:
            return raw
        return re.sub(
            rb"Content-Length: (\d+)", lambda m: b"Content-Length: %d" % (int(m[1]) - 3), raw
        )


@fault("e5-expect-is-ignored", "E5", full=True)
class _(Conversation):
    """`Expect: 100-continue` is never continued: the body is awaited in silence."""

    def read_body(self, head, keep=True):
        if head.expects_continue and keep:
            head.headers.pop("expect")
            yield Pause(3)
        return (yield from super().read_body(head, keep))


@fault("e5-encoding-hangs", "E5", full=True)
class _(Conversation):
    """A `Content-Encoding` leads to a 500."""

    def exchange(self, head):
        if head.header("content-encoding"):
            yield from self.send(Response(500, {"error": "zlib.error"}), head, close=True)
            return False
        return (yield from super().exchange(head))


@fault("e5-no-length-hangs", "E5 E1")
class _(Conversation):
    """A POST without a length is read until the client closes."""

    def read_body(self, head, keep=True):
        if head.method == "POST" and not head.has_body and "content-length" not in head.headers:
            while (yield Read(20)):
                pass
            return b""
        return (yield from super().read_body(head, keep))


@fault("e5-bad-chunk-is-500", "E5", full=True)
class _(Conversation):
    """A bad chunk is a 500."""

    def chunk_length(self, line):
        try:
            return super().chunk_length(line)
        except Malformed as bad:
            raise Malformed(500, "ValueError: invalid literal for int()") from bad


@fault("e5-garbage-is-500", "E5", full=True)
class _(App):
    """Bytes that are no request are a 500."""

    def malformed(self, bad):
        return super().malformed(Malformed(500, str(bad)))


@fault("e5-no-answer-each-fortieth", "E5 E8 S8")
class _(Conversation):
    """Every fortieth answer is not sent; the connection is closed."""

    sent = 0

    def send(self, response, head, close):
        _count(self)
        if type(self).sent % 40 == 0:
            return False
        return (yield from super().send(response, head, close))


def _count(conversation):
    type(conversation).sent += 1


@fault("e5-500-each-thirtieth", "E5 H13")
class _(App):
    """Every thirtieth read is a 500."""

    reads = 0

    def on_status(self, request, route):
        self.reads += 1
        if self.reads % 30 == 0:
            return self.answers.error(500, "database is locked", "database is locked")
        return super().on_status(request, route)


@fault("e5-stalls", "E5 W1 W7 W2 H1", full=True)
class _(App):
    """Once in a while a read takes five seconds."""

    next_ms = 0.0

    def on_status(self, request, route):
        if now_ms() > self.next_ms:
            self.next_ms = now_ms() + 9000
            time.sleep(5)
        return super().on_status(request, route)
