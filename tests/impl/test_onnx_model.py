"""Any ONNX classifier with its description: what is served, and what is refused in one line."""

import base64
import io
import threading

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

from counterfoil_server.models import ModelError, Stop, load_model
from counterfoil_server.tasks import InferenceTask

CARD = """
name = "tones"
version = "7"
[input]
width = 2
height = 2
channels = {channels}
{input}
[output]
labels = ["dark", "bright"]
{output}
"""


def write(tmp_path, nodes, inputs, outputs, weights=(), opset=17):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(weights))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 8
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    return path


def tones(tmp_path, *, shape=("n", 1, 2, 2), kind=TensorProto.FLOAT, answers=2):
    """Scores that add up the pixels: [-sum, sum, ...]."""
    flat = int(np.prod(shape[1:]))
    weights = np.tile(np.array([[-1.0, 1.0, 0.0][:answers]], np.float32), (flat, 1))
    nodes = [
        helper.make_node("Cast", ["x"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Flatten", ["f"], ["flat"]),
        helper.make_node("MatMul", ["flat", "w"], ["y"]),
    ]
    return write(
        tmp_path,
        nodes,
        [helper.make_tensor_value_info("x", kind, list(shape))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [shape[0], answers])],
        [numpy_helper.from_array(weights, "w")],
    )


def described(path, *, channels=1, given="", output=""):
    path.with_suffix(".toml").write_text(CARD.format(channels=channels, input=given, output=output))
    return path


def served(path):
    return load_model(str(path), None, 10**6)


def grey(tone, mode="L"):
    file = io.BytesIO()
    Image.new(mode, (4, 4), tone).save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()


def scores(model, *images):
    items = model.run(InferenceTask(images), Stop())
    return [{one["label"]: one["score"] for one in item.data["top"]} for item in items]


def test_pixels_are_scaled_shifted_and_divided_as_described(tmp_path):
    path = described(tones(tmp_path), given="scale = 0.5\nmean = [10.0]\nstd = [2.0]")
    model = served(path)
    assert model.name == ("tones", "7")
    (answer,) = scores(model, grey(100))
    assert answer == {"bright": 4 * (100 * 0.5 - 10) / 2, "dark": -4 * (100 * 0.5 - 10) / 2}


def test_images_go_through_the_model_in_one_batch_and_keep_their_order(tmp_path):
    answers = scores(served(described(tones(tmp_path))), grey(0), grey(255), grey(1))
    assert [answer["bright"] for answer in answers] == [0, 1020, 4]


def test_a_model_of_batch_one_gets_its_images_one_by_one(tmp_path):
    path = described(tones(tmp_path, shape=(1, 1, 2, 2)))
    assert [answer["bright"] for answer in scores(served(path), grey(1), grey(2))] == [4, 8]


def test_colours_last_and_bytes_are_possible(tmp_path):
    path = tones(tmp_path, shape=("n", 2, 2, 3), kind=TensorProto.UINT8)
    described(path, channels=3, given='layout = "NHWC"\ndtype = "uint8"')
    (answer,) = scores(served(path), grey((1, 2, 3), "RGB"))
    assert answer["bright"] == 4 * (1 + 2 + 3)


def test_softmax_and_top_k(tmp_path):
    path = described(tones(tmp_path), output="softmax = true\ntop_k = 1")
    (answer,) = scores(served(path), grey(255))
    assert answer == {"bright": 1.0}


def test_a_score_that_is_no_number_fails_the_item(tmp_path):
    path = tmp_path / "model.onnx"
    write(
        tmp_path,
        [
            helper.make_node("ReduceSum", ["x", "axes"], ["s"], keepdims=0),
            helper.make_node("Log", ["minus"], ["nan"]),
            helper.make_node("Add", ["s", "nan"], ["one"]),
            helper.make_node("Unsqueeze", ["one", "last"], ["col"]),
            helper.make_node("Concat", ["col", "col"], ["y"], axis=1),
        ],
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 1, 2, 2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 2])],
        [
            numpy_helper.from_array(np.array([1, 2, 3], np.int64), "axes"),
            numpy_helper.from_array(np.array([1], np.int64), "last"),
            numpy_helper.from_array(np.array(-1, np.float32), "minus"),
        ],
    )
    model = served(described(path))
    (item,) = model.run(InferenceTask((grey(1),)), Stop())
    assert item.data is None and "not a number" in item.error


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"given": "colour = 1"}, ("input.colour", "is not known", "layout")),
        ({"given": 'layout = "CHW"'}, ("input.layout", "'CHW'", "NCHW or NHWC")),
        ({"given": "mean = [1.0, 2.0]"}, ("input.mean", "1 numbers")),
        ({"given": "std = [0.0]"}, ("input.std", "other than 0")),
        ({"given": "scale = 'x'"}, ("input.scale", "'x'", "a number")),
        ({"output": "top_k = 0"}, ("output.top_k", "0", "1 or more")),
        ({"output": "softmax = 1"}, ("output.softmax", "true or false")),
        ({"channels": 2}, ("input.channels", "1 or 3")),
        ({"channels": 3}, ("does not run as described", "Got: 3 Expected: 1")),
        ({"given": 'layout = "NHWC"'}, ("does not run as described",)),
        ({"given": 'dtype = "uint8"'}, ("does not run as described",)),
        ({"given": 'name = "z"'}, ("does not run as described",)),
        ({"output": 'name = "z"'}, ("does not run as described",)),
    ],
)
def test_a_description_that_does_not_fit_is_one_line(tmp_path, options, words):
    path = described(tones(tmp_path), **options)
    with pytest.raises(ModelError) as caught:
        served(path)
    line = str(caught.value)
    assert "\n" not in line and all(word in line for word in words), line


def test_the_wrong_number_of_labels_is_one_line(tmp_path):
    with pytest.raises(ModelError, match=r"names 2 classes; the model answers \(3,\)"):
        served(described(tones(tmp_path, answers=3)))


def test_a_file_that_is_missing_or_no_model_or_of_the_future_is_one_line(tmp_path):
    with pytest.raises(ModelError, match="no such file"):
        served(tmp_path / "none.onnx")
    path = tmp_path / "model.onnx"
    path.write_bytes(b"not a model")
    with pytest.raises(ModelError, match=r"model\.toml: cannot be read"):
        served(path)
    described(path)
    with pytest.raises(ModelError, match="is not a model that can be run"):
        served(path)
    node = helper.make_node("NoSuchOperator", ["x"], ["y"])
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 2]) for name in "xy"]
    write(tmp_path, [node], info[:1], info[1:])
    with pytest.raises(ModelError, match="NoSuchOperator"):
        served(path)


def test_a_run_that_is_asked_to_stop_ends_between_two_operators(tmp_path):
    """A loop of a thousand small steps is left early; the thread comes back by itself."""
    size = 400
    steps = [helper.make_node("MatMul", [f"m{n}", "w"], [f"m{n + 1}"]) for n in range(400)]
    nodes = [
        helper.make_node("Flatten", ["x"], ["flat"]),
        helper.make_node("MatMul", ["flat", "first"], ["m0"]),
        *steps,
        helper.make_node("MatMul", [f"m{len(steps)}", "last"], ["y"]),
    ]
    weights = [
        numpy_helper.from_array(np.ones((4, size), np.float32), "first"),
        numpy_helper.from_array(np.eye(size, dtype=np.float32), "w"),
        numpy_helper.from_array(np.ones((size, 2), np.float32), "last"),
    ]
    path = write(
        tmp_path,
        nodes,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 1, 2, 2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 2])],
        weights,
    )
    model = served(described(path))
    stop, outcome = Stop(), []

    def run():
        try:
            model.run(InferenceTask((grey(1),) * 3000), stop)
        except Exception as error:
            outcome.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    stop.set()
    thread.join(120)
    assert not thread.is_alive()
    assert len(outcome) == 1 and "terminate" in str(outcome[0]).lower()


def test_memory_is_given_back_after_a_large_batch(tmp_path):
    """Each run asks the arena to shrink; the options that say so are the ones in use."""
    asked = []
    shipped = onnxruntime.RunOptions

    class Spy(shipped):
        def add_run_config_entry(self, key, value):
            asked.append((key, value))
            super().add_run_config_entry(key, value)

    patch = pytest.MonkeyPatch()
    patch.setattr(onnxruntime, "RunOptions", Spy)
    try:
        scores(served(described(tones(tmp_path))), grey(1))
    finally:
        patch.undo()
    assert ("memory.enable_memory_arena_shrinkage", "cpu:0") in asked
