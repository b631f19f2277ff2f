"""From a body to a task, or to the list of everything that is wrong with it (E1, E2, E7).

A refusal names each fault by a JSON pointer. Nothing of the body is quoted back, so that no content
can make a refusal large or unsafe.
"""

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from counterfoil_server import strict_json
from counterfoil_server.tasks import InferenceTask

__all__ = ["Accepted", "Fault", "Refused", "read_task"]


class Fault(NamedTuple):
    """One thing that is wrong, and where."""

    pointer: str
    message: str


class Refused(NamedTuple):
    """The body is refused: 400 when it is not a JSON object, 422 when its content is wrong."""

    status: int
    faults: list[Fault]


class Accepted(NamedTuple):
    """The task, and the client's `req_id` ("" when absent)."""

    task: InferenceTask
    req_id: str


_FIELDS: Final = frozenset({"images", "req_id", "params", "options"})
_OBJECTS: Final = frozenset({"params", "options"})
_NOTHING: Final[Mapping[str, Any]] = {}
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f]")


def read_task(body: bytes, max_images: int) -> Accepted | Refused:
    """Parse and check a request body."""
    try:
        value = strict_json.loads(body)
    except strict_json.BadJson as error:
        return Refused(400, [Fault("", f"the body is not strict JSON: {error}")])
    if not isinstance(value, dict):
        return Refused(400, [Fault("", "the body must be a JSON object")])
    faults: list[Fault] = []
    _check_images(value, max_images, faults)
    _check_rest(value, faults)
    if b"\\" in body:  # without an escape there is no lone surrogate
        faults.extend(_not_text(value, ""))
    if faults:
        return Refused(422, faults[:100])
    params, options = value.get("params", _NOTHING), value.get("options", _NOTHING)
    task = InferenceTask(tuple(value["images"]), params, options)
    return Accepted(task, value.get("req_id", ""))


def _check_images(value: dict[str, Any], max_images: int, faults: list[Fault]) -> None:
    images = value.get("images")
    if "images" not in value:
        faults.append(Fault("/images", "is required"))
    elif not isinstance(images, list) or not images:
        faults.append(Fault("/images", "must be a non-empty array of base64 strings"))
    elif len(images) > max_images:
        most = f"holds {len(images)} images, at most {max_images} are allowed"
        faults.append(Fault("/images", most))
    else:
        for n, image in enumerate(images):
            if not isinstance(image, str):
                faults.append(Fault(f"/images/{n}", "must be a base64 string"))


def _check_rest(value: dict[str, Any], faults: list[Fault]) -> None:
    req_id = value.get("req_id", "")
    if not isinstance(req_id, str):
        faults.append(Fault("/req_id", "must be a string"))
    elif not req_id.isprintable() and _CONTROL.search(req_id):
        faults.append(Fault("/req_id", "must not contain control characters"))
    if not _OBJECTS.isdisjoint(value):
        faults += [
            Fault(f"/{name}", "must be an object")
            for name in sorted(_OBJECTS & value.keys())
            if not isinstance(value[name], dict)
        ]
    if not value.keys() <= _FIELDS:
        known = ", ".join(sorted(_FIELDS))
        unknown = (name for name in value if name not in _FIELDS)
        faults += [
            Fault(_pointer("", name), f"is not known; known are {known}") for name in unknown
        ]


def _not_text(value: Any, pointer: str) -> list[Fault]:
    """Where a string holds a lone surrogate: it is not Unicode text (Q2, E9)."""
    if isinstance(value, str):
        return [] if strict_json.is_text(value) else [Fault(pointer, "is not Unicode text")]
    faults = []
    if isinstance(value, dict):
        for name, part in value.items():
            if not strict_json.is_text(name):
                faults.append(Fault(pointer, "has a key that is not Unicode text"))
            faults.extend(_not_text(part, _pointer(pointer, name)))
    elif isinstance(value, list):
        for n, part in enumerate(value):
            faults.extend(_not_text(part, f"{pointer}/{n}"))
    return faults


def _pointer(parent: str, name: str) -> str:
    """The JSON pointer of a member, kept short and printable."""
    safe = name[:64].encode("ascii", "replace").decode()
    return f"{parent}/{safe.replace('~', '~0').replace('/', '~1')}"
