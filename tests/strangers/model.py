"""The model: its images are words, so that a test says what a run shall do.

`sleep MS`, `fail WORDS`, `crash`, `hang`, `late MS` and `latefail MS` (counted from admission); any
other image succeeds at once. Each item's data tells the length and a digest of the image and, where
the request's params hold a nonce, the nonce's digest: something nobody else's request gives.
"""

import base64
import binascii
import hashlib
import time
from typing import Any, NamedTuple

from strangers.book import Job, now_ms
from strangers.config import Config

__all__ = ["Crash", "Item", "Model", "Work", "decoded"]


class Crash(Exception):
    """The code that runs the model breaks, as opposed to the model refusing an image."""


class Work(NamedTuple):
    """What a valid body asks for: the images as they came, base64."""

    images: tuple[str, ...]
    params: dict[str, Any]


class Item(NamedTuple):
    """The outcome of one image: status 0 is fine, else `data` is None and `message` says why."""

    status: int
    data: Any
    message: str = ""


def decoded(image: str) -> bytes | None:
    """The bytes of a base64 image, None when it is not base64."""
    try:
        return base64.b64decode(image.encode("ascii"), validate=True)
    except (ValueError, binascii.Error):
        return None


class Model:
    """Runs the images of a job one after the other, on the worker's thread."""

    name, version = "stranger", "7"

    def __init__(self, config: Config) -> None:
        self.config = config

    def run(self, job: Job) -> list[Item]:
        return [self.item(job, image) for image in job.work.images]

    def item(self, job: Job, image: str) -> Item:
        raw = decoded(image)
        if not raw:
            return Item(3, None, "image is not valid base64" if raw is None else "image is empty")
        verb, _, rest = raw.decode("latin-1").partition(" ")
        return self.obey(job, verb, rest) or Item(0, self.data(job, raw))

    def obey(self, job: Job, verb: str, rest: str) -> Item | None:
        """Do as the word says; None means that the image is fine."""
        match verb:
            case "sleep":
                self.rest(job, float(rest or 0))
            case "fail":
                return Item(4, None, rest or "no")
            case "crash":
                raise Crash(rest or "the runner broke")
            case "hang":
                self.rest(job, self.config.hang_ms)
            case "late":
                self.rest(job, job.admitted_ms + float(rest) - now_ms())
            case "latefail":
                self.rest(job, job.admitted_ms + float(rest) - now_ms())
                return Item(4, None, "failed late")
        return None

    def rest(self, job: Job, for_ms: float) -> None:
        time.sleep(max(0.0, for_ms) / 1000)

    def data(self, job: Job, raw: bytes) -> Any:
        data: dict[str, Any] = {"length": len(raw), "digest": _digest(raw)}
        if "nonce" in job.work.params:
            nonce = str(job.work.params["nonce"])
            data["echo"] = _digest(nonce.encode("utf-8", "replace"))
        return data


def _digest(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()[:24]
