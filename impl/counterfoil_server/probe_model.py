"""A model that does as it is told, for tests and load: its "images" are commands.

An image is the base64 of a text; the text is one or more commands with `;` between them:

    delay:MS        take MS milliseconds (the thread sleeps and cannot be stopped, as in a long
                    operator)
    fail:MESSAGE    this image fails
    crash           the code that runs the model is torn down by something that is no Exception
    hang            never come back
    anything else   nothing

The images of a task are done one after the other. What does not fail answers with a digest of the
whole image, which depends on it alone: `{"echo": sha256 in hex, "bytes": length}`.
"""

import base64
import binascii
import hashlib
import threading
import time

from counterfoil_server.models import Stop
from counterfoil_server.tasks import InferenceTask, Item, ModelName

__all__ = ["Crash", "ProbeModel"]

_LONGEST_DELAY_MS = 86_400_000


class Crash(BaseException):
    """Not an Exception, as whatever tears a worker down is not."""


class ProbeModel:
    """Obeys its images."""

    name = ModelName("probe", "1")

    def run(self, task: InferenceTask, stop: Stop) -> list[Item]:  # noqa: ARG002
        """Do as each image says, in order."""
        return [_obey(image) for image in task.images]


def _obey(image: str) -> Item:
    try:
        content = base64.b64decode(image, validate=True)
    except (binascii.Error, ValueError):
        return Item(error="is not valid base64")
    for command in content.decode("utf-8", "replace").split(";"):
        word, _, rest = command.strip().partition(":")
        if word == "delay" and rest.isascii() and rest.isdigit():
            time.sleep(min(int(rest[:9]), _LONGEST_DELAY_MS) / 1000)
        elif word == "fail":
            return Item(error=rest or "told to fail")
        elif word == "crash":
            raise Crash("told to crash")
        elif word == "hang":
            threading.Event().wait()
    return Item({"echo": hashlib.sha256(content).hexdigest(), "bytes": len(content)})
