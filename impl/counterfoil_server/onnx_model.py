"""Any image classifier in ONNX, on the CPU.

The session is made once, single-threaded inside, because the server's parallelism is its workers
and ONNX Runtime lets go of the interpreter while it computes. It is tried with an empty picture
before the server says that it is ready: a wrong shape, an unknown operator or a wrong number of
labels is one line at the start and not a failed job at night.

Memory: the arena keeps its high-water mark, so each run asks it to shrink afterwards.

A run is asked to end through `RunOptions.terminate`, which is looked at between two operators; one
long operator runs on, and its worker stays busy until it has come back.
"""

from pathlib import Path
from typing import Any, Final

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from counterfoil_server.images import BadImage, read_image
from counterfoil_server.model_card import ModelCard, read_card
from counterfoil_server.models import ModelError, Stop
from counterfoil_server.tasks import InferenceTask, Item, ModelName

__all__ = ["OnnxModel", "load_onnx"]

_DTYPES: Final[dict[str, Any]] = {
    "float32": np.float32,
    "float16": np.float16,
    "uint8": np.uint8,
}


def load_onnx(path: Path, description: Path, max_pixels: int) -> "OnnxModel":
    """Load and try a model; ModelError, in one line, if it cannot be served."""
    if not path.is_file():
        raise ModelError(f"{path}: there is no such file; allowed: digits, probe, or an ONNX file")
    card = read_card(description)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:
        raise ModelError(f"{path}: is not a model that can be run: {_one_line(error)}") from None
    model = OnnxModel(session, card, max_pixels)
    model.rehearse(path)
    return model


class OnnxModel:
    """A session and its description."""

    def __init__(self, session: Any, card: ModelCard, max_pixels: int) -> None:
        self.name = ModelName(card.name, card.version)
        self._session = session
        self._card = card
        self._max_pixels = max_pixels
        self._input = card.input_name or session.get_inputs()[0].name
        self._output = card.output_name or session.get_outputs()[0].name
        first = (session.get_inputs()[0].shape or ["batch"])[0]
        self._one_by_one = first == 1

    def run(self, task: InferenceTask, stop: Stop) -> list[Item]:
        """Classify every image that can be read; the others fail alone (G4, G5)."""
        items: list[Item | None] = []
        readable = []
        for image in task.images:
            try:
                readable.append(self._read(image))
                items.append(None)
            except BadImage as error:
                items.append(Item(error=str(error)))
        answers = iter(self._infer(readable, stop) if readable else [])
        return [self._item(next(answers)) if item is None else item for item in items]

    def rehearse(self, path: Path) -> None:
        """Run an empty picture; ModelError if the model and its description do not fit."""
        card = self._card
        empty = self._prepared(np.zeros((card.height, card.width, card.channels), np.uint8))
        try:
            answers = self._infer([empty, empty], Stop())
        except Exception as error:
            raise ModelError(f"{path}: does not run as described: {_one_line(error)}") from None
        if answers[0].shape != (len(card.labels),):
            raise ModelError(
                f"{path}: output.labels names {len(card.labels)} classes; "
                f"the model answers {answers[0].shape}"
            )

    def _read(self, image: str) -> NDArray[Any]:
        card = self._card
        pixels = read_image(
            image,
            width=card.width,
            height=card.height,
            channels=card.channels,
            max_pixels=self._max_pixels,
        )
        return self._prepared(pixels)

    def _prepared(self, pixels: NDArray[Any]) -> NDArray[Any]:
        card = self._card
        if card.dtype != "uint8":
            values: Any = pixels.astype(np.float32) * np.float32(card.scale)
            values = (values - np.array(card.mean, np.float32)) / np.array(card.std, np.float32)
            pixels = values.astype(_DTYPES[card.dtype])
        return pixels.transpose(2, 0, 1) if card.layout == "NCHW" else pixels

    def _infer(self, pictures: list[NDArray[Any]], stop: Stop) -> list[NDArray[Any]]:
        batches = [[one] for one in pictures] if self._one_by_one else [pictures]
        options = onnxruntime.RunOptions()
        options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
        stop.then(lambda: setattr(options, "terminate", True))
        answers: list[NDArray[Any]] = []
        for batch in batches:
            (scores,) = self._session.run([self._output], {self._input: np.stack(batch)}, options)
            answers.extend(np.asarray(scores, np.float64))
        return answers

    def _item(self, scores: Any) -> Item:
        if self._card.softmax:
            scores = _softmax(scores)
        if not np.isfinite(scores).all():
            return Item(error="the model answered something that is not a number")
        best = np.argsort(-scores, kind="stable")[: self._card.top_k]
        top = [{"label": self._card.labels[n], "score": round(float(scores[n]), 6)} for n in best]
        return Item({"label": top[0]["label"], "score": top[0]["score"], "top": top})


def _softmax(scores: NDArray[Any]) -> NDArray[Any]:
    powers = np.exp(scores - scores.max())
    return np.asarray(powers / powers.sum())


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
