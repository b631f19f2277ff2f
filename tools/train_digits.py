"""Train the digit classifier that the server ships, and write it as ONNX.

    .venv/bin/python tools/train_digits.py

The data are the 1 797 handwritten digits (8 x 8 pixels) that come with scikit-learn. Every fourth
picture is held out; a test of the server sends those as PNG files and asserts the accuracy. The
graph takes grey pixels from 0 to 255 as they come out of a picture, and answers probabilities: the
scaling and the softmax are inside, so that nobody outside can get them wrong.
"""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

TARGET = Path(__file__).parent.parent / "impl/counterfoil_server/data/digits.onnx"
HIDDEN = 64
Floats = NDArray[Any]


def as_pixels(pictures: Floats) -> Floats:
    """From the data set's 0..16 to the 0..255 of a PNG, as floats in 0..1."""
    return np.rint(pictures.reshape(len(pictures), -1) * 255 / 16) / 255


def jittered(pictures: Floats, labels: Floats) -> tuple[Floats, Floats]:
    """The training pictures, each also moved by one pixel to every side: a little robustness."""
    moves = [(0, 0), (0, 1), (0, -1), (1, 0), (-1, 0)]
    moved = [np.roll(pictures, move, axis=(1, 2)) for move in moves]
    return np.concatenate(moved), np.tile(labels, len(moves))


def train() -> tuple[MLPClassifier, float]:
    """The trained network and its accuracy on the held-out quarter."""
    digits = load_digits()
    held_out = np.arange(len(digits.images)) % 4 == 0
    pictures, labels = jittered(digits.images[~held_out], digits.target[~held_out])
    network = MLPClassifier((HIDDEN,), alpha=1e-3, max_iter=400, random_state=7)
    network.fit(as_pixels(pictures), labels)
    accuracy = network.score(as_pixels(digits.images[held_out]), digits.target[held_out])
    return network, float(accuracy)


def to_onnx(network: MLPClassifier) -> onnx.ModelProto:
    """pixels -> /255 -> flatten -> dense, relu -> dense -> softmax."""
    weights = {
        "full": np.array(255, np.float32),
        "w0": network.coefs_[0].astype(np.float32),
        "b0": network.intercepts_[0].astype(np.float32),
        "w1": network.coefs_[1].astype(np.float32),
        "b1": network.intercepts_[1].astype(np.float32),
    }
    nodes = [
        helper.make_node("Div", ["image", "full"], ["scaled"]),
        helper.make_node("Flatten", ["scaled"], ["flat"]),
        helper.make_node("Gemm", ["flat", "w0", "b0"], ["h0"]),
        helper.make_node("Relu", ["h0"], ["h1"]),
        helper.make_node("Gemm", ["h1", "w1", "b1"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["probabilities"], axis=1),
    ]
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 1, 8, 8])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["batch", 10])],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.checker.check_model(model, full_check=True)
    return model


def main() -> None:
    network, accuracy = train()
    onnx.save(to_onnx(network), TARGET)
    print(f"{TARGET.name}: {TARGET.stat().st_size} bytes, {accuracy:.4f} of the held-out right")


if __name__ == "__main__":
    main()
