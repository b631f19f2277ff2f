"""What a batch of large images leaves behind, with the arena's shrink option and without it.

ONNX Runtime keeps the memory of its largest run. The server asks it, run by run, to give back what
is not in use. Here a small network with large pictures between its layers is run once as the server
runs it, and once with the option taken away, each in a process of its own.

    python -m benchmarks.arena [shrink|keep]
"""

import base64
import io
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnxruntime
import psutil
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

from counterfoil_server.models import Model, Stop, load_model
from counterfoil_server.tasks import InferenceTask

__all__ = ["Footprint", "footprints"]

SIDE = 512
IMAGES = 16
CHANNELS = 16
CARD = f"""
[input]
width = {SIDE}
height = {SIDE}
channels = 3
[output]
labels = ["a", "b"]
"""


class Footprint(NamedTuple):
    """MiB of resident memory: of the loaded model, at the peak of a large batch, and after it."""

    loaded: float
    peak: float
    after: float
    run_s: float


def footprints() -> dict[str, Footprint]:
    """With the option as shipped (`shrink`) and without it (`keep`)."""
    return {word: _measured(word) for word in ("shrink", "keep")}


def _measured(word: str) -> Footprint:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.arena", word],
        capture_output=True,
        text=True,
        check=True,
    )
    return Footprint(**json.loads(done.stdout))


def network(path: Path) -> Path:
    """Two convolutions with large pictures between them, then a mean: an image classifier."""
    seed = np.random.default_rng(1)
    first = seed.normal(size=(CHANNELS, 3, 3, 3)).astype(np.float32)
    second = seed.normal(size=(CHANNELS, CHANNELS, 1, 1)).astype(np.float32)
    last = seed.normal(size=(CHANNELS, 2)).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "first"], ["wide"], pads=[1, 1, 1, 1]),
        helper.make_node("Conv", ["wide", "second"], ["again"]),
        helper.make_node("GlobalAveragePool", ["again"], ["mean"]),
        helper.make_node("Flatten", ["mean"], ["flat"]),
        helper.make_node("MatMul", ["flat", "last"], ["y"]),
    ]
    weights = {"first": first, "second": second, "last": last}
    graph = helper.make_graph(
        nodes,
        "wide",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, SIDE, SIDE])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 2])],
        [numpy_helper.from_array(values, name) for name, values in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.save(model, path)
    path.with_suffix(".toml").write_text(CARD)
    return path


def batch() -> InferenceTask:
    """Photographs as a camera makes them: far larger than what the network looks at."""
    file = io.BytesIO()
    Image.effect_noise((3000, 2000), 50).convert("RGB").save(file, "JPEG")
    return InferenceTask((base64.b64encode(file.getvalue()).decode(),) * IMAGES)


def weigh(model: Model, task: InferenceTask) -> Footprint:
    """Run the batch on a thread, as a worker does, and watch the process meanwhile."""
    process = psutil.Process()
    loaded = peak = _mib(process)
    worker = threading.Thread(target=model.run, args=(task, Stop()))
    began = time.perf_counter()
    worker.start()
    while worker.is_alive():
        peak = max(peak, _mib(process))
        worker.join(0.005)
    spent = time.perf_counter() - began
    return Footprint(loaded, peak, _mib(process), spent)


def _mib(process: psutil.Process) -> float:
    return float(process.memory_info().rss) / 2**20


def keep_the_arena() -> None:
    """Take the option away that the server sets."""

    class Forgetful(onnxruntime.RunOptions):  # type: ignore[misc]
        def add_run_config_entry(self, key: str, value: str) -> None: ...

    onnxruntime.RunOptions = Forgetful


def main(word: str) -> None:
    if word == "keep":
        keep_the_arena()
    task = batch()
    with tempfile.TemporaryDirectory() as folder:
        model: Any = load_model(str(network(Path(folder) / "wide.onnx")), None, 10**8)
    print(json.dumps(weigh(model, task)._asdict()))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        for name, one in footprints().items():
            print(f"{name}: {one}")
