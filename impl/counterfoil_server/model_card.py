"""The description of an ONNX image classifier: a small TOML file beside it.

    name = "flowers"            # default: the name of the file
    version = "3"               # default: "1"

    [input]
    width = 224                 # required, as are height and channels
    height = 224
    channels = 3                # 1 grey, 3 RGB
    name = "image"              # default: the model's first input
    layout = "NCHW"             # or "NHWC"
    dtype = "float32"           # or "uint8", "float16"
    scale = 0.00392156862745098 # a pixel is multiplied by this (default 1) ...
    mean = [0.485, 0.456, 0.406]    # ... then this is taken off (default 0) ...
    std = [0.229, 0.224, 0.225]     # ... and it is divided by this (default 1)

    [output]
    name = "logits"             # default: the model's first output
    labels = ["daisy", "rose"]  # required, one per class
    top_k = 5                   # default 5, at most the number of labels
    softmax = true              # default false: the model answers probabilities

Every mistake is one line that names the key, the value and what is allowed.
"""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from counterfoil_server.models import ModelError

__all__ = ["ModelCard", "read_card"]


@dataclass(frozen=True, slots=True)
class ModelCard:
    """What the server must know of a model besides its graph."""

    name: str
    version: str
    width: int
    height: int
    channels: int
    labels: tuple[str, ...]
    input_name: str = ""
    output_name: str = ""
    layout: str = "NCHW"
    dtype: str = "float32"
    scale: float = 1.0
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    top_k: int = 5
    softmax: bool = False


_MISSING: Final = object()
_KEYS: Final = {
    "": {"name", "version", "input", "output"},
    "input": {
        *("name", "width", "height", "channels", "layout", "dtype", "scale", "mean", "std"),
    },
    "output": {"name", "labels", "top_k", "softmax"},
}


def read_card(path: Path) -> ModelCard:
    """Read and check a description; ModelError with one line if anything is wrong."""
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ModelError(f"{path}: is not TOML: {error}") from None
    return _Reader(path, table).card()


class _Reader:
    """Takes the values out of the tables, each with its check."""

    def __init__(self, path: Path, table: Mapping[str, Any]) -> None:
        self._path = path
        self._table = table
        for section, known in _KEYS.items():
            for key in self._section(section):
                if key not in known:
                    self._refuse(section, key, "is not known", ", ".join(sorted(known)))

    def card(self) -> ModelCard:
        channels = self._value("input", "channels", lambda v: _whole(v) and v in (1, 3), "1 or 3")
        labels = self._value("output", "labels", _is_labels, "a list of strings")
        return ModelCard(
            name=self._value("", "name", _is_word, "a string", self._path.stem),
            version=self._value("", "version", _is_word, "a string", "1"),
            width=self._value("input", "width", _is_size, "1 to 4096"),
            height=self._value("input", "height", _is_size, "1 to 4096"),
            channels=channels,
            labels=tuple(labels),
            input_name=self._value("input", "name", _is_word, "a string", ""),
            output_name=self._value("output", "name", _is_word, "a string", ""),
            layout=self._one_of("layout", ("NCHW", "NHWC")),
            dtype=self._one_of("dtype", ("float32", "uint8", "float16")),
            scale=float(self._value("input", "scale", _is_number, "a number", 1.0)),
            mean=self._numbers("mean", channels, 0.0),
            std=self._numbers("std", channels, 1.0),
            top_k=min(
                self._value("output", "top_k", _is_size, "1 or more", 5),
                len(labels),
            ),
            softmax=self._value(
                "output", "softmax", lambda v: isinstance(v, bool), "true or false", False
            ),
        )

    def _numbers(self, key: str, channels: int, default: float) -> tuple[float, ...]:
        def fits(value: Any) -> bool:
            return (
                isinstance(value, list) and len(value) == channels and all(map(_is_number, value))
            )

        values = self._value("input", key, fits, f"{channels} numbers", [default] * channels)
        if key == "std" and 0 in values:
            self._refuse("input", key, f"is {values!r}", "numbers other than 0")
        return tuple(float(value) for value in values)

    def _one_of(self, key: str, words: tuple[str, ...]) -> str:
        return str(self._value("input", key, lambda v: v in words, " or ".join(words), words[0]))

    def _value(
        self,
        section: str,
        key: str,
        fits: Callable[[Any], bool],
        allowed: str,
        default: Any = _MISSING,
    ) -> Any:
        value = self._section(section).get(key, default)
        if value is _MISSING:
            self._refuse(section, key, "is missing", allowed)
        if not fits(value):
            self._refuse(section, key, f"is {value!r}", allowed)
        return value

    def _section(self, section: str) -> Mapping[str, Any]:
        value = self._table.get(section, {}) if section else self._table
        if not isinstance(value, Mapping):
            self._refuse("", section, "is not a table", f"[{section}]")
        return value

    def _refuse(self, section: str, key: str, what: str, allowed: str) -> None:
        name = f"{section}.{key}" if section else key
        raise ModelError(f"{self._path}: {name} {what}; allowed: {allowed}")


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_size(value: Any) -> bool:
    return _whole(value) and 1 <= value <= 4096


def _is_number(value: Any) -> bool:
    return _whole(value) or (isinstance(value, float) and abs(value) < 1e30)


def _is_word(value: Any) -> bool:
    return isinstance(value, str)


def _is_labels(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(v, str) for v in value)
