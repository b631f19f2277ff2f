"""E3, E4, E7: large bodies, odd ids, header injection."""

import re
import time
from urllib.parse import unquote

from strangers.answers import Answers
from strangers.app import App
from strangers.conversation import Conversation, Drop
from strangers.faults import also, fault
from strangers.intake import Intake
from strangers.messages import Head, Response, Writer


@fault("e3-no-limit", "E3")
class _(App):
    """There is no limit to a body."""

    def refuse_length(self, head, route):
        return None


@also("e3-no-limit")
class _(Conversation):
    """...nowhere."""

    def read_body(self, head, keep=True):
        if head.chunked:
            return (yield from super().read_body(head, keep))
        return (yield from self.take(head.length))


@fault("e3-chunked-has-no-limit", "E3", full=True)
class _(Conversation):
    """A chunked body has no limit."""

    def read_body(self, head, keep=True):
        if not head.chunked:
            return (yield from super().read_body(head, keep))
        parts = []
        while True:
            length = self.chunk_length((yield from self.take_line()) or b"x")
            if not length:
                yield from self.trailers()
                return b"".join(parts)
            parts.append((yield from self.take(length)) or b"")
            yield from self.take_line()


@fault("e3-too-large-is-400", "E3 H12")
class _(Answers):
    """A body over the limit is a 400."""

    def too_large(self):
        return self.refused(400, "too large", [("", "too large")])


@fault("e3-too-large-is-500", "E3 E5")
class _(Answers):
    """A body over the limit is a 500."""

    def too_large(self):
        return self.error(500, "MemoryError", "no")


@fault("e3-reset", "E3 E5 E8", should=True)
class _(Conversation):
    """A body over the limit is cut off with a reset, so that the 413 is lost."""

    def refuse_early(self, early, head):
        if early.status == 413:
            yield from self.send(early, head, close=True)
            yield Drop()
        return (yield from super().refuse_early(early, head))


@fault("e3-closes-unread", "E3 E8 E5", should=True)
class _(Conversation):
    """After a 413 the connection is closed at once, with bytes unread."""

    def refuse_early(self, early, head):
        if early.status == 413:
            yield from self.send(early, head, close=True)
            self.closed = True
            return False
        return (yield from super().refuse_early(early, head))

    def linger(self):
        if not getattr(self, "closed", False):
            yield from super().linger()


@fault("e3-silent-close", "E3 E5 E8")
class _(Conversation):
    """A body over the limit is answered by closing the connection."""

    def refuse_early(self, early, head):
        if early.status == 413:
            return False
        return (yield from super().refuse_early(early, head))


@fault("e3-half-the-limit", "E3")
class _(App):
    """A body of half the limit is refused."""

    def refuse_length(self, head, route):
        return self.answers.too_large() if head.length > self.config.max_body / 2 else None


@fault("e3-any-media", "E3", should=True)
class _(App):
    """The media type is not looked at."""

    def refuse_media(self, head, route):
        return None


@fault("e3-charset-is-415", "E3", should=True)
class _(App):
    """A content type with parameters is a 415."""

    def refuse_media(self, head, route):
        if head.method == "POST" and ";" in (head.header("content-type") or ""):
            return self.answers.wrong_media()
        return super().refuse_media(head, route)


@fault("e3-media-is-case-sensitive", "E3", should=True, full=True)
class _(App):
    """`Application/JSON` is a 415."""

    def refuse_media(self, head, route):
        if head.method == "POST" and "A" in (head.header("content-type") or ""):
            return self.answers.wrong_media()
        return super().refuse_media(head, route)


@fault("e3-media-is-500", "E3 E5")
class _(Answers):
    """A wrong media type is a 500."""

    def wrong_media(self):
        return self.error(500, "no reader", "no reader")


class _OddIds(App):
    """Some ids that were never issued are treated otherwise."""

    def odd(self, id_):
        return False

    def instead(self, route):
        return self.answers.error(500, "internal error", "internal error")

    def unknown(self, route):
        return self.instead(route) if self.odd(route.job_id) else super().unknown(route)


@fault("e4-long-is-500", "E4 E5")
class _(_OddIds):
    """A long id is a 500."""

    def odd(self, id_):
        return len(id_) > 4000


@fault("e4-percent-is-500", "E4 E5")
class _(_OddIds):
    """An id whose percent-encoding is no UTF-8 is a 500."""

    def odd(self, id_):
        try:
            unquote(id_, errors="strict")
        except UnicodeDecodeError:
            return True
        return bool(re.search(r"%(?![0-9A-Fa-f]{2})", id_))


@fault("e4-emoji-is-500", "E4 E5")
class _(_OddIds):
    """An id with characters beyond ASCII is a 500."""

    def odd(self, id_):
        return not unquote(id_).isascii()


@fault("e4-nul-is-500", "E4 E5")
class _(_OddIds):
    """An id with control characters is a 500."""

    def odd(self, id_):
        return any(char < " " for char in unquote(id_))


@fault("e4-odd-is-200", "E4 G3 S8 H13")
class _(_OddIds):
    """An id that cannot be one is a 200 with nothing in it."""

    def odd(self, id_):
        return not re.fullmatch(r"[A-Za-z0-9_-]{1,128}", id_)

    def instead(self, route):
        return Response(200, {})


@fault("e4-long-hangs", "E4 E5")
class _(_OddIds):
    """A long id is matched for 20 s."""

    def odd(self, id_):
        return len(id_) > 4000

    def instead(self, route):
        time.sleep(20)
        return self.answers.unknown_job("long")


@fault("e4-traversal", "E4 H5")
class _(App):
    """Paths are decoded and normalised, so that an id with dots leads elsewhere."""

    def route(self, head):
        path = re.sub(r"/jobs/(\.\.|[^/]*/\.\.)/", "/", unquote(head.path))
        path = re.sub(r"/jobs/[^/]*/\.\./\.\./", "/", path)
        return super().route(Head(head.method, path, head.version, head.headers))


@fault("e4-id-in-header", "E4 E7")
class _(App):
    """A 404 repeats the decoded id in a header, raw."""

    def unknown(self, route):
        response = super().unknown(route)
        response.headers["X-Job-Id"] = unquote(route.job_id)[:500]
        return response


class _RawWriter(Writer):
    def line(self, name, value):
        return f"{name}: {value}\r\n".encode("utf-8", "replace")


@also("e4-id-in-header")
class _(_RawWriter):
    """...whatever is in it."""


@fault("e4-query-is-500", "E5 E4", full=True)
class _(App):
    """A query with a stray percent sign is a 500."""

    def on_status(self, request, route):
        if re.search(r"%(?![0-9A-Fa-f]{2})", request.head.query):
            return self.answers.error(500, "internal error", "internal error")
        return super().on_status(request, route)


class _Echoing(App):
    """Repeats the task id in a header of the 202."""

    def submit(self, order, request):
        response = super().submit(order, request)
        if response.status == 202 and order.req_id:
            response.headers["X-Task-Id"] = order.req_id
        return response


class _Accepting(Intake):
    def is_plain(self, text):
        return True


@fault("e7-splits", "E7 E8")
class _(_Echoing):
    """The `req_id` is repeated raw in a header of the 202: CR LF ends it."""


@also("e7-splits")
class _(_RawWriter):
    """...raw."""


@also("e7-splits")
class _(_Accepting):
    """...and any is accepted."""


@fault("e7-splits-result", "E7 E8", odd_req_id="safe")
class _(App):
    """The task id is repeated raw in a header of the result: CR LF ends it."""

    def on_result(self, request, route):
        response = super().on_result(request, route)
        if response.status == 200:
            response.headers["X-Task-Id"] = response.payload["task_id"]
        return response


@also("e7-splits-result")
class _(_RawWriter):
    """...raw."""


@fault("e7-latin-1-header", "E7", odd_req_id="safe")
class _(_Echoing):
    """The `req_id` is repeated in a header; only CR and LF are taken out."""


@also("e7-latin-1-header")
class _(Writer):
    """...the rest is raw."""

    def line(self, name, value):
        one_line = re.sub(r"[\r\n]", "", value)
        return f"{name}: {one_line}\r\n".encode("utf-8", "replace")


@fault("e7-refusal-quotes", "E7 E8")
class _(App):
    """The refusal of a `req_id` repeats it raw in a header."""

    def on_submit(self, request, route):
        response = super().on_submit(request, route)
        if response.status == 422:
            match = re.search(rb'"req_id":\s*"((?:[^"\\]|\\.)*)"', request.body)
            if match:
                raw = match[1].decode("utf-8", "replace")
                text = raw.encode().decode("unicode_escape", "replace")
                response.headers["X-Bad-Req-Id"] = text
        return response


@also("e7-refusal-quotes")
class _(_RawWriter):
    """...whatever is in it."""


@fault("e7-request-id-splits", "E7 H9", full=True)
class _(App):
    """A percent-encoded `X-Request-ID` is decoded and repeated raw."""

    def before_body(self, head):
        response = super().before_body(head)
        if response and head.header("x-request-id"):
            response.headers["X-Request-ID"] = unquote(head.header("x-request-id"))
        return response


@also("e7-request-id-splits")
class _(_RawWriter):
    """...raw."""
