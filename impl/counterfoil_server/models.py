"""What a model is to the server, and which one it serves.

A model turns the images of one task into items, on a worker's thread. It may be slow, fail, crash
or never come back: that is the runner's business. What a model must do is answer one item per
image, and, if it can, end early once its `Stop` is set.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from counterfoil_server.tasks import InferenceTask, Item, ModelName

__all__ = ["Model", "ModelError", "Stop", "load_model"]


class ModelError(Exception):
    """The model cannot be served; one line that says which file and why."""


class Stop:
    """Asks one run to end. Set once, from any thread.

    Each side writes its own field before it reads the other's, so at least one of them sees both;
    the callback may therefore be called twice, and must not mind.
    """

    __slots__ = ("_callback", "_stopped")

    def __init__(self) -> None:
        self._stopped = False
        self._callback: Callable[[], None] = _nothing

    def set(self) -> None:
        """Ask."""
        self._stopped = True
        self._callback()

    def then(self, callback: Callable[[], None]) -> None:
        """Have `callback` called when the stop is set; at once if it is."""
        self._callback = callback
        if self._stopped:
            callback()


class Model(Protocol):
    """Something that answers images."""

    name: ModelName

    def run(self, task: InferenceTask, stop: Stop) -> list[Item]:
        """One item per image, in order. What it raises fails the whole task."""


def load_model(word: str, description: Path | None, max_pixels: int) -> Model:
    """`digits`, `probe`, or the path of an ONNX file; ModelError if it cannot be served."""
    if word == "probe":
        from counterfoil_server.probe_model import ProbeModel  # noqa: PLC0415

        return ProbeModel()
    from counterfoil_server.onnx_model import load_onnx  # noqa: PLC0415 (a slow import)

    if word == "digits":
        shipped = Path(__file__).parent / "data" / "digits.onnx"
        return load_onnx(shipped, shipped.with_suffix(".toml"), max_pixels)
    path = Path(word)
    return load_onnx(path, description or path.with_suffix(".toml"), max_pixels)


def _nothing() -> None: ...
