"""Faults of the shipped server's way with bodies: what gets in, what breaks it, what comes back."""

import json
import urllib.parse

from counterfoil_conformance.mutants.wire import also, wire_fault
from counterfoil_server import bodies, intake
from counterfoil_server.answers import Reply, answer, refusal
from counterfoil_server.doors import Doorkeeper
from counterfoil_server.intake import Accepted, Fault, Refused
from counterfoil_server.job_routes import JobRoutes
from counterfoil_server.tasks import InferenceTask

_read_task = intake.read_task


def _value(body):
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


@wire_fault("empty-images-admitted", "E2 A7", of=intake.read_task)
def empty_admitted(body, max_images):
    """An empty list of images is admitted."""
    value = _value(body)
    if isinstance(value, dict) and value.get("images") == []:
        return Accepted(InferenceTask(("eA==",)), "")
    return _read_task(body, max_images)


@wire_fault("not-json-is-422", "E1", of=intake.read_task)
def not_json_422(body, max_images):
    """A body that is no JSON is a 422."""
    read = _read_task(body, max_images)
    return read._replace(status=422) if isinstance(read, Refused) else read


@wire_fault("array-is-500", "E1 E5", of=intake.read_task)
def array_500(body, max_images):
    """A body that is an array breaks the handler."""
    if isinstance(_value(body), list):
        raise AttributeError("'list' object has no attribute 'get'")
    return _read_task(body, max_images)


@wire_fault("deep-is-500", "E5 E1", of=intake.read_task)
def deep_500(body, max_images):
    """Deep nesting breaks the handler."""
    if body.count(b"[") > 500:
        raise RecursionError
    return _read_task(body, max_images)


@wire_fault("first-fault-only", "E2", should=True, of=intake.read_task)
def first_fault(body, max_images):
    """Only the first fault of a body is told."""
    read = _read_task(body, max_images)
    return read._replace(faults=read.faults[:1]) if isinstance(read, Refused) else read


@wire_fault("unknown-fields-ignored", "E2", should=True, of=intake.read_task)
def unknown_ignored(body, max_images):
    """Unknown fields of a body are ignored."""
    value = _value(body)
    if isinstance(value, dict):
        known = {
            key: value[key] for key in value if key in ("images", "req_id", "params", "options")
        }
        if len(known) < len(value):
            body = json.dumps(known).encode()
    return _read_task(body, max_images)


@wire_fault("surrogate-admitted", "Q2 E9 E7", of=intake.read_task)
def surrogate_admitted(body, max_images):
    """A `req_id` that is no Unicode text is admitted."""
    read = _read_task(body, max_images)
    if isinstance(read, Refused) and read.faults == [Fault("/req_id", "is not Unicode text")]:
        value = json.loads(body)
        return Accepted(InferenceTask(tuple(value["images"])), value["req_id"])
    return read


class _Raw(Reply):
    """An answer whose headers go out as they are."""

    @property
    def processed_headers(self):
        self.headers.setdefault("content-type", self.content_type)
        return ((name.encode(), str(value).encode()) for name, value in self.headers.items())


@wire_fault("req-id-splits-the-head", "E7 E8 Q2", of=intake.read_task)
def control_admitted(body, max_images):
    """The `req_id` is repeated raw in a header of the 202: CR LF ends it."""
    read = _read_task(body, max_images)
    if isinstance(read, Refused) and [f.pointer for f in read.faults] == ["/req_id"]:
        value = json.loads(body)
        if isinstance(value["req_id"], str):
            return Accepted(InferenceTask(tuple(value["images"])), value["req_id"])
    return read


@also("req-id-splits-the-head")
class _Splits(JobRoutes):
    async def submit(self, request):
        accepted = None
        intake_ = super()._intake

        async def remember(request):
            nonlocal accepted
            accepted = await intake_(request)
            return accepted

        self._intake = remember
        response = await super().submit(request)
        if response.status == 202 and accepted.req_id:
            text = accepted.req_id.encode("utf-8", "replace").decode()
            return _Raw(response.body, 202, {**response.headers, "x-task-id": text})
        return response


@wire_fault("no-size-limit", "E3", of=bodies.read_body)
async def unlimited(request, max_bytes, timeout_s):
    """There is no limit to a body."""
    return await _read_body(request, 1 << 40, timeout_s)


_read_body = bodies.read_body


@wire_fault("too-large-is-400", "E3 H12", of=bodies.read_body)
async def too_large_400(request, max_bytes, timeout_s):
    """A body over the limit is a 400."""
    body = await _read_body(request, max_bytes, timeout_s)
    if isinstance(body, bodies.TooLarge):
        return refusal(400, "too large", [Fault("", "too large")])
    return body


@wire_fault("too-large-is-reset", "E3 E5 E8")
class _Reset(Doorkeeper):
    """A body over the limit is cut off with a reset."""

    def door(self, resource):
        enter = super().door(resource)

        async def door(request, **words):
            if int(request.headers.get("content-length") or 0) > 2**20:
                request.transport.abort()
                return answer(413, b"{}")
            return await enter(request, **words)

        return door


@wire_fault("half-the-limit", "E3", of=bodies.read_body)
async def half(request, max_bytes, timeout_s):
    """A body of half the limit is refused."""
    return await _read_body(request, max_bytes // 2, timeout_s)


@wire_fault("any-media-type", "E3", should=True, of=bodies.is_json)
def any_media(request):
    """The media type is not looked at."""
    return True


@wire_fault("charset-is-415", "E3", should=True, of=bodies.is_json)
def no_parameters(request):
    """A media type with parameters is a 415."""
    return request.headers.getone("content-type", "application/json") == "application/json"


class _OddIds(JobRoutes):
    def odd(self, job_id):
        return False

    async def status(self, request, job_id):
        if self.odd(job_id):
            return refusal(500, "internal error")
        return await super().status(request, job_id)


@wire_fault("long-id-is-500", "E4 E5", of=JobRoutes)
class _Long500(_OddIds):
    """A long id is a 500."""

    def odd(self, job_id):
        return len(job_id) > 4000


@wire_fault("non-ascii-id-is-500", "E4 E5", of=JobRoutes)
class _NonAscii500(_OddIds):
    """An id with characters beyond ASCII is a 500."""

    def odd(self, job_id):
        return not urllib.parse.unquote(job_id).isascii()


@wire_fault("id-in-a-header", "E4 E7")
class _IdInHeader(JobRoutes):
    """A 404 repeats the decoded id raw in a header."""

    async def status(self, request, job_id):
        response = await super().status(request, job_id)
        if response.status == 404:
            text = urllib.parse.unquote(job_id)[:500].encode("utf-8", "replace").decode()
            return _Raw(response.body, 404, {**response.headers, "x-job-id": text})
        return response


@wire_fault("body-left-after-404", "E8")
class _LeftAfter404(Doorkeeper):
    """After a 404 the unread body is taken for the next request."""

    def door(self, resource):
        enter = super().door(resource)

        async def door(request, **words):
            response = await enter(request, **words)
            if response is not None and response.status in (404, 405):
                request.stream.request_body = None
            return response

        return door


@wire_fault("full-and-invalid-is-202", "H12 A7 E1 E2 H4 A2")
class _FullInvalid(JobRoutes):
    """When the queue is full an invalid body is answered 202."""

    async def submit(self, request):
        response = await super().submit(request)
        full = self._core.ledger.depth() >= self._core.settings.async_max_queue
        if full and response.status in (400, 422):
            return answer(202, b'{"job_id":"job_0","state":"pending"}')
        return response
