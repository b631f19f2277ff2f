"""JSON as the standard has it, in both directions (E1, E9).

Python's parser is generous: it takes NaN, keeps the last of two equal keys, and answers deep
nesting with a RecursionError. Here each of these is a `BadJson`. It also turns `"\\ud800"` into a
string that is not text, which `is_text` finds. What is written holds no NaN and no lone surrogates.
"""

import json
import re
from collections.abc import Callable
from typing import Any, Final, NoReturn

__all__ = ["DEEPEST", "BadJson", "dumps", "is_text", "loads"]

DEEPEST: Final = 64

_BRACKETS: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"|[\[{]|[\]}]', re.DOTALL)
_BLANKS: Final = " \t\n\r"
_LONE: Final = re.compile("[\ud800-\udfff]")


class BadJson(ValueError):
    """The text is not strict JSON; the message says why, and quotes nothing of it."""


def loads(text: bytes) -> Any:
    """Parse UTF-8 JSON. Strings may still hold lone surrogates: see `is_text`."""
    if not _is_shallow(text):
        raise BadJson(f"nested deeper than {DEEPEST}")
    try:
        words = text.decode("utf-8").strip(_BLANKS)
        value, end = _scan(words, 0)
    except UnicodeDecodeError:
        raise BadJson("not UTF-8") from None
    except StopIteration:
        raise BadJson("a value is missing") from None
    except json.JSONDecodeError as error:
        raise BadJson(f"{error.msg} at character {error.pos}") from None
    except BadJson:
        raise
    except (ValueError, RecursionError):
        raise BadJson("a number with too many digits") from None
    if end != len(words):
        raise BadJson("something follows the value")
    return value


def dumps(value: Any) -> bytes:
    """Write strict JSON in UTF-8: ValueError for NaN and infinity; a lone surrogate becomes `?`."""
    return _ENCODER.encode(value).encode("utf-8", "replace")


def is_text(value: str) -> bool:
    """Whether a string is Unicode text, which a lone surrogate is not (Q2)."""
    return value.isascii() or _LONE.search(value) is None


def _is_shallow(text: bytes) -> bool:
    if text.count(b"[") + text.count(b"{") <= DEEPEST:
        return True
    depth = 0
    for match in _BRACKETS.finditer(text):
        bracket = match.group()
        if bracket in (b"[", b"{"):
            depth += 1
            if depth > DEEPEST:
                return False
        elif bracket in (b"]", b"}"):
            depth -= 1
    return True


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise BadJson("an object repeats a key")
    return value


def _no_constant(_: str) -> NoReturn:
    raise BadJson("NaN and Infinity are not JSON")


# The scanner alone: the decoder around it only skips white space, with regular expressions.
_decoder: Final[Any] = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant)
_scan: Final[Callable[[str, int], tuple[Any, int]]] = _decoder.scan_once
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
