"""What a body may say: from bytes to `Work`, or to a refusal with pointers."""

import json
from dataclasses import dataclass
from typing import Any, NamedTuple

from strangers.config import Config
from strangers.model import Work, decoded

__all__ = ["Intake", "Order", "Refusal"]

_KNOWN = {"images", "req_id", "params", "options"}


class Order(NamedTuple):
    """A valid body: the client's task id ("" when absent) and the work."""

    req_id: str
    work: Work


@dataclass
class Refusal(Exception):
    """Why a body is refused: status, a sentence, and (pointer, message) pairs."""

    status: int
    why: str
    faults: list[tuple[str, str]]


class Intake:
    """Reads submit and infer bodies alike."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def read(self, body: bytes) -> Order:
        """The order in `body`.

        Raises:
            Refusal: 400 when it is no JSON object, 422 (or 400) when its content is wrong.
        """
        value = self.parse(body)
        if not isinstance(value, dict):
            raise Refusal(400, "the body is not a JSON object", [("", "must be an object")])
        faults = self.faults(value)
        if faults:
            raise Refusal(self.config.bad_images_status, "the body is not valid", faults)
        params = value.get("params", {})
        return Order(value.get("req_id", ""), Work(tuple(value["images"]), params))

    def parse(self, body: bytes) -> Any:
        try:
            return json.loads(body.decode("utf-8"), parse_constant=self.constant)
        except (ValueError, RecursionError) as error:
            raise Refusal(400, "the body is not JSON", [("", "must be JSON")]) from error

    def constant(self, name: str) -> Any:
        raise ValueError(f"{name} is not JSON")

    def faults(self, value: dict[str, Any]) -> list[tuple[str, str]]:
        return (
            self.image_faults(value)
            + self.req_id_faults(value)
            + self.object_faults(value)
            + self.unknown_faults(value)
        )

    def image_faults(self, value: dict[str, Any]) -> list[tuple[str, str]]:
        images = value.get("images")
        if not isinstance(images, list):
            return [("/images", "must be a list of base64 strings")]
        if not images:
            return [("/images", "must not be empty")]
        return [
            (f"/images/{index}", "must be a base64 string")
            for index, image in enumerate(images)
            if not self.image_fits(image)
        ]

    def image_fits(self, image: Any) -> bool:
        if not isinstance(image, str):
            return False
        return self.config.bad_image == "item" or bool(decoded(image))

    def req_id_faults(self, value: dict[str, Any]) -> list[tuple[str, str]]:
        if "req_id" not in value:
            return []
        req_id = value["req_id"]
        if not isinstance(req_id, str):
            return [("/req_id", "must be a string")]
        if self.is_surrogate(req_id):
            return [("/req_id", "must be Unicode text")]
        if self.config.odd_req_id == "422" and not self.is_plain(req_id):
            return [("/req_id", "must be printable ASCII")]
        return []

    def is_surrogate(self, text: str) -> bool:
        return any("\ud800" <= char <= "\udfff" for char in text)

    def is_plain(self, text: str) -> bool:
        return all(" " <= char <= "~" for char in text)

    def object_faults(self, value: dict[str, Any]) -> list[tuple[str, str]]:
        return [
            (f"/{name}", "must be an object")
            for name in ("params", "options")
            if not isinstance(value.get(name, {}), dict)
        ]

    def unknown_faults(self, value: dict[str, Any]) -> list[tuple[str, str]]:
        return [
            ("/" + name.replace("~", "~0").replace("/", "~1"), "is not a known field")
            for name in value
            if name not in _KNOWN
        ]
