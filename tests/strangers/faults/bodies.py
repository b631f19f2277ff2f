"""E1 and E2: bodies that are not what they must be."""

import json
import math

from strangers.answers import Answers
from strangers.faults import fault
from strangers.intake import Intake, Order, Refusal
from strangers.messages import Response
from strangers.model import Work


class OddIntake(Intake):
    """Reads some bodies in another way; a `Refusal` of 500 is an uncaught exception."""

    def odd(self, body):
        return None

    def read(self, body):
        return self.odd(body) or super().read(body)

    def value(self, body):
        try:
            return json.loads(body)
        except (ValueError, RecursionError):
            return None

    def crash(self):
        raise Refusal(500, "internal error", [("", "internal error")])


NOTHING = Order("", Work(("eA==",), {}))


@fault("e1-array-is-500", "E1 E5")
class _(OddIntake):
    """A body that is an array is a 500."""

    def odd(self, body):
        return self.crash() if isinstance(self.value(body), list) else None


@fault("e1-scalar-is-500", "E1 E5")
class _(OddIntake):
    """A body that is a string, a number or null is a 500."""

    def odd(self, body):
        scalar = body.strip()[:1] not in (b"{", b"[", b"") and self.value(body) is not None
        return self.crash() if scalar or body.strip() == b"null" else None


@fault("e1-array-is-422", "E1")
class _(OddIntake):
    """A body that is no object is a 422."""

    def odd(self, body):
        value = self.value(body)
        if value is not None and not isinstance(value, dict):
            raise Refusal(422, "must be an object", [("", "must be an object")])


@fault("e1-not-json-is-422", "E1")
class _(Intake):
    """A body that is no JSON is a 422."""

    def parse(self, body):
        try:
            return super().parse(body)
        except Refusal as refusal:
            raise Refusal(422, refusal.why, refusal.faults) from refusal


@fault("e1-not-json-is-admitted", "E1 A7")
class _(OddIntake):
    """A body that is no JSON is taken for an empty request, and admitted."""

    def odd(self, body):
        return NOTHING if body and self.value(body) is None and body.strip() != b"null" else None


@fault("e1-empty-is-500", "E1 E5")
class _(OddIntake):
    """An empty body is a 500."""

    def odd(self, body):
        return None if body else self.crash()


@fault("e1-empty-is-admitted", "E1 A7")
class _(OddIntake):
    """An empty body is admitted."""

    def odd(self, body):
        return None if body else NOTHING


@fault("e1-trailing-garbage", "E1 A7", full=True)
class _(Intake):
    """What follows the first JSON value is ignored."""

    def parse(self, body):
        try:
            return json.JSONDecoder().raw_decode(body.decode())[0]
        except (ValueError, RecursionError):
            return super().parse(body)


@fault("e1-nan-admitted", "E1 A7", full=True)
class _(Intake):
    """NaN passes for JSON."""

    def constant(self, name):
        return math.nan


@fault("e1-bad-utf-8", "E1 A7", full=True)
class _(Intake):
    """Bytes that are no UTF-8 are replaced, not refused."""

    def parse(self, body):
        return super().parse(body.decode("utf-8", "replace").encode())


@fault("e1-no-errors", "E1 H13 E2")
class _(Answers):
    """Refusals of the body carry no `errors`."""

    def refused(self, status, why, faults):
        return Response(status, {"error": why})


class _Images(Intake):
    """Another view of `images`."""

    def odd(self, images):
        return None

    def image_faults(self, value):
        odd = self.odd(value.get("images", ...))
        return super().image_faults(value) if odd is None else odd

    def crash(self):
        raise Refusal(500, "internal error", [("", "internal error")])


@fault("e2-empty-admitted", "E2 A7")
class _(_Images):
    """An empty list of images is admitted."""

    def odd(self, images):
        return [] if images == [] else None


@fault("e2-missing-is-500", "E2 E5")
class _(_Images):
    """A body without images is a 500."""

    def odd(self, images):
        return self.crash() if images is ... else None


@fault("e2-string-admitted", "E2 A7 E5 E6")
class _(_Images):
    """A string in place of the list is admitted, letter by letter."""

    def odd(self, images):
        return [] if isinstance(images, str) else None


@fault("e2-number-is-500", "E2 E5")
class _(_Images):
    """A number among the images is a 500."""

    def odd(self, images):
        numbers = isinstance(images, list) and any(isinstance(each, int) for each in images)
        return self.crash() if numbers else None


@fault("e2-null-image-admitted", "E2 A7 E6", full=True)
class _(Intake):
    """A null among the images is admitted and fails as an item."""

    def image_faults(self, value):
        images = value.get("images")
        if isinstance(images, list) and None in images:
            value["images"] = ["?" if image is None else image for image in images]
        return super().image_faults(value)


@fault("e2-object-is-500", "E2 E5")
class _(_Images):
    """An object in place of the list is a 500."""

    def odd(self, images):
        return self.crash() if isinstance(images, dict) else None


@fault("e2-no-pointer", "E2 H13")
class _(Answers):
    """The faults of a body have no pointer."""

    def refused(self, status, why, faults):
        response = super().refused(status, why, faults)
        if status == 422:
            response.payload["errors"] = [{"message": message} for _, message in faults]
        return response


@fault("e2-dotted-pointer", "E2 H13")
class _(Answers):
    """The faults of a body are pointed to with dots, not as a JSON pointer."""

    def refused(self, status, why, faults):
        dotted = [
            (pointer.strip("/").replace("/", ".") or "body", text) for pointer, text in faults
        ]
        return super().refused(status, why, dotted if status == 422 else faults)


@fault("e2-first-fault-only", "E2", should=True)
class _(Answers):
    """Only the first fault of a body is told."""

    def refused(self, status, why, faults):
        return super().refused(status, why, faults[:1])


@fault("e2-wrong-pointer", "E2")
class _(Answers):
    """Every fault points to `/images`."""

    def refused(self, status, why, faults):
        if status == 422:
            faults = [("/images/0", message) for _, message in faults]
        return super().refused(status, why, faults)


@fault("e2-no-message", "E2 H13")
class _(Answers):
    """The faults of a body have an empty message."""

    def refused(self, status, why, faults):
        return super().refused(status, why, [(pointer, "") for pointer, _ in faults])


@fault("e2-unknown-field", "E2", should=True)
class _(Intake):
    """Unknown fields are ignored."""

    def unknown_faults(self, value):
        return []


@fault("e2-number-req-id", "E2 Q2", should=True)
class _(Intake):
    """A `req_id` that is a number becomes text."""

    def req_id_faults(self, value):
        if isinstance(value.get("req_id"), int):
            value["req_id"] = str(value["req_id"])
        return super().req_id_faults(value)


@fault("e2-null-req-id", "E2 Q2", should=True)
class _(Intake):
    """A `req_id` of null counts as absent."""

    def req_id_faults(self, value):
        if value.get("req_id", "") is None:
            del value["req_id"]
        return super().req_id_faults(value)


@fault("e2-req-id-object-is-500", "E2 E5 Q2")
class _(Intake):
    """A `req_id` that is an object is a 500."""

    def req_id_faults(self, value):
        if isinstance(value.get("req_id"), dict | list):
            raise Refusal(500, "unhashable type", [("", "internal error")])
        return super().req_id_faults(value)
