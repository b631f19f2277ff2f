"""E5, E6, E9: contents that break the server, or come back as no JSON."""

import json
import math
import time
import traceback

from strangers.answers import Answers
from strangers.app import App
from strangers.faults import also, fault
from strangers.faults.bodies import OddIntake
from strangers.intake import Intake, Refusal
from strangers.messages import Response, Writer
from strangers.model import Item, Model, decoded
from strangers.workers import Pool


@fault("e5-deep-is-500", "E5 E1")
class _(OddIntake):
    """Deep nesting is a 500."""

    def odd(self, body):
        return self.crash() if b"[" * 500 in body or b'{"a":' * 500 in body else None


@fault("e5-huge-number-is-500", "E5 E1")
class _(OddIntake):
    """A number of thousands of digits is a 500."""

    def odd(self, body):
        return self.crash() if b"9" * 4400 in body or b"1" * 4400 in body else None


@fault("e5-params-list-is-500", "E5 E2")
class _(Intake):
    """`params` that are no object are a 500."""

    def object_faults(self, value):
        if not isinstance(value.get("params", {}), dict):
            raise Refusal(500, "internal error", [("", "internal error")])
        return super().object_faults(value)


@fault("e5-options-list-is-500", "E5 E2", full=True)
class _(Intake):
    """`options` that are no object are a 500."""

    def object_faults(self, value):
        if not isinstance(value.get("options", {}), dict):
            raise Refusal(500, "internal error", [("", "internal error")])
        return super().object_faults(value)


@fault("e5-trace-in-refusal", "E5")
class _(Answers):
    """A refusal shows the stack trace."""

    def refusal(self, refusal):
        response = super().refusal(refusal)
        response.payload["detail"] = "".join(traceback.format_exception(refusal))
        return response


@fault("e5-surrogate-is-500", "E5 Q2")
class _(Intake):
    """A lone surrogate in `req_id` is a 500."""

    def is_surrogate(self, text):
        if super().is_surrogate(text):
            raise Refusal(500, "surrogates not allowed", [("", "internal error")])
        return False


@fault("e5-surrogate-in-image-is-500", "E5 E6", full=True)
class _(Intake):
    """A lone surrogate in an image is a 500."""

    def image_fits(self, image):
        if isinstance(image, str) and self.is_surrogate(image):
            raise Refusal(500, "surrogates not allowed", [("", "internal error")])
        return super().image_fits(image)


@fault("e5-bad-utf-8-is-500", "E5 E1")
class _(Intake):
    """Bytes that are no UTF-8 are a 500."""

    def parse(self, body):
        try:
            body.decode()
        except UnicodeDecodeError as error:
            raise Refusal(500, str(error), [("", "internal error")]) from error
        return super().parse(body)


@fault("e5-nul-is-500", "E5 E7 Q2")
class _(Intake):
    """NUL in a `req_id` is a 500."""

    def is_plain(self, text):
        if "\0" in text:
            raise Refusal(500, "embedded null", [("", "internal error")])
        return super().is_plain(text)


@fault("e5-many-images-hang", "E5", full=True)
class _(Intake):
    """A body of 2000 images and more is looked at for 20 s."""

    def image_faults(self, value):
        if isinstance(value.get("images"), list) and len(value["images"]) >= 2000:
            time.sleep(20)
        return super().image_faults(value)


@fault("e6-bad-base64-is-500", "E6 E5")
class _(Intake):
    """An image that is no base64 is a 500."""

    def image_fits(self, image):
        if isinstance(image, str) and decoded(image) is None:
            raise Refusal(500, "incorrect padding", [("", "internal error")])
        return super().image_fits(image)


@fault("e6-bad-base64-is-fine", "E6 G5 G4")
class _(Model):
    """An image that is no base64 is read as far as it goes, and succeeds."""

    def item(self, job, image):
        if decoded(image) is None:
            return Item(0, {"length": 0})
        return super().item(job, image)


@fault("e6-bad-base64-never-ends", "E6 S9 T5 T6")
class _(Pool):
    """A job with an image that is no base64 runs until its budget ends."""

    def execute(self, job):
        if any(decoded(image) is None for image in job.work.images):
            time.sleep(3600)
        super().execute(job)


@fault("e6-bad-base64-kills-the-worker", "E6 T5 Q4 S9")
class _(Pool):
    """An image that is no base64 ends the worker's thread without a word."""

    def execute(self, job):
        if any(decoded(image) is None for image in job.work.images):
            raise SystemExit
        super().execute(job)


@fault("e6-bad-base64-is-400-later", "E6 T5 G2")
class _(Answers):
    """The result of a job with an unreadable image is a 400."""

    def not_done(self, view):
        if "base64" in (view.error or "") or "empty" in (view.error or ""):
            return self.error(400, view.error, view.error)
        return super().not_done(view)


@fault("e6-empty-image-is-500", "E6 E5 E2", full=True)
class _(Intake):
    """An image that is an empty string is a 500."""

    def image_fits(self, image):
        if image == "":
            raise Refusal(500, "no data", [("", "internal error")])
        return super().image_fits(image)


class _Results(Pool):
    """Something in a result that is not JSON."""

    def data(self, item):
        return item["data"]

    def envelope(self, job, items, took_ms):
        envelope = super().envelope(job, items, took_ms)
        results = [{**item, "data": self.data(item)} for item in envelope["results"]]
        return {**envelope, "results": results}


class _Lax(Writer):
    def json(self, payload):
        return json.dumps(payload).encode()


@fault("e9-nan", "E9 G1 H13")
class _(_Results):
    """A result holds NaN."""

    def data(self, item):
        return item["data"] and {**item["data"], "score": math.nan}


@also("e9-nan")
class _(_Lax):
    """...and the writer lets it pass."""


@fault("e9-nan-when-partial", "E9 G1 H13 G5")
class _(_Results):
    """A partly failed job's result holds NaN."""

    def envelope(self, job, items, took_ms):
        envelope = super().envelope(job, items, took_ms)
        return {**envelope, "score": math.nan} if envelope["partial"] else envelope


@also("e9-nan-when-partial")
class _(_Lax):
    """...and the writer lets it pass."""


@fault("e9-infinity-of-infer", "E9 H11 H13")
class _(Answers):
    """A blocking call's envelope holds Infinity."""

    def inferred(self, view):
        response = super().inferred(view)
        return Response(response.status, {**response.payload, "throughput": math.inf})


@also("e9-infinity-of-infer")
class _(_Lax):
    """...and the writer lets it pass."""


@fault("e9-surrogate-echo", "E9 Q2", full=True)
class _(Intake):
    """The refusal of a `req_id` with a lone surrogate quotes it as it is."""

    def req_id_faults(self, value):
        faults = super().req_id_faults(value)
        req_id = value.get("req_id")
        return [(pointer, f"{text}: {req_id}") for pointer, text in faults]


@also("e9-surrogate-echo")
class _(_Lax):
    """...and the writer lets it pass."""


@fault("e9-bytes-are-no-utf-8", "E9 H13 E4")
class _(App):
    """The 404 of an odd id quotes it byte by byte."""

    def unknown(self, route):
        response = super().unknown(route)
        if response.status == 404:
            raw = b'{"error":"job not found: %s \xff"}' % route.job_id.encode("latin-1", "replace")
            response.payload = raw
        return response


@fault("e9-python-repr", "E9 H13 H5")
class _(Answers):
    """A 405 is written with single quotes."""

    def wrong_method(self, allowed):
        response = super().wrong_method(allowed)
        response.payload = repr(response.payload).encode()
        return response


@fault("e9-trailing-comma", "E9 H13 G2 H2")
class _(Answers):
    """A 409 has a comma too many."""

    def not_done(self, view):
        response = super().not_done(view)
        response.payload = b'{"error":"job not finished (state: %s)",}' % view.state.encode()
        return response


@fault("g2-empty-409", "H13 G2 H2")
class _(Answers):
    """A 409 has no body."""

    def not_done(self, view):
        return Response(409)


@fault("e9-truncated-status", "E9 H13 H8 E5 S1")
class _(Writer):
    """A status body lacks its last brace."""

    def body(self, response):
        raw = super().body(response)
        return raw[:-1] if b"elapsed_ms" in raw else raw
