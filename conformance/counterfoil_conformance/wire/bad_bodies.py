"""Requests that are wrong in exactly one way, as a table.

Each row is a body for `POST /jobs` or `POST /infer`, the clause it is about, and the statuses that
the contract allows. Rows marked `should` may be admitted by a correct server that does not follow a
SHOULD; rows with `free` say nothing but that the answer is no 5xx (E5). `pointers` are the JSON
pointers of which one must be named among the `errors` of the refusal.

The trap is a body that is wrong in two ways: a server may then complain of either. So every row
starts from a body that the target is known to take (`bodies.quick`) and changes one thing.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

__all__ = ["BadBody", "bad_bodies", "image_bodies", "lenient_bodies", "req_id_bodies"]

NOT_JSON_STATUSES: Final = (400,)
BODY_STATUSES: Final = (422, 400)


class BadBody(NamedTuple):
    """One wrong body. `allowed` are statuses; empty means anything but a 5xx."""

    name: str
    body: bytes
    clause: str
    allowed: tuple[int, ...]
    pointers: tuple[str, ...] = ()
    should: bool = False


def bad_bodies(quick: Mapping[str, Any]) -> tuple[BadBody, ...]:
    """Bodies that no correct server admits (E1, E2)."""
    return (*_not_json(quick), *_not_an_object(quick), *_wrong_images(quick))


def _text(value: object) -> bytes:
    return json.dumps(value).encode()


def _with(quick: Mapping[str, Any], raw_member: str) -> bytes:
    """The quick body with one more member, written by hand."""
    return _text(dict(quick))[:-1] + b", " + raw_member.encode() + b"}"


def _not_json(quick: Mapping[str, Any]) -> Iterator[BadBody]:
    good = _text(dict(quick))
    rest = {k: v for k, v in quick.items() if k != "req_id"}
    texts: tuple[tuple[str, bytes], ...] = (
        ("an empty body", b""),
        ("only white space", b" \r\n "),
        ("a bare word", b"nope"),
        ("an unclosed object", b"{"),
        ("a truncated body", good[:-1]),
        ("a body cut within a string", b'{"images": ["'),
        ("single quotes", b"{'images': []}"),
        ("a trailing comma", good[:-1] + b",}"),
        ("text after the object", good + b" trailing"),
        ("two objects", good + good),
        ("a NUL after the object", good + b"\x00"),
        ("a raw line feed in a string", _with(rest, '"req_id": "a\nb"')),
        ("NaN", b"NaN"),
        ("NaN in params", _with(rest, '"params": {"x": NaN}')),
        ("Infinity in params", _with(rest, '"params": {"x": -Infinity}')),
        ("a number with a leading zero", _with(rest, '"params": {"x": 012}')),
        ("5000 brackets never closed", b'{"params": ' + b"[" * 5000),
        ("form fields", b"images=abc&req_id=1"),
    )
    for name, body in texts:
        yield BadBody(name, body, "E1", NOT_JSON_STATUSES)
    # Wrong in two ways at once: a lenient reader of numbers or of UTF-8 complains of the value.
    for name, body in (
        ("NaN as an image", b'{"images": [NaN]}'),
        ("bytes that are not UTF-8", _with(rest, '"req_id": "@"').replace(b"@", b"\xff\xfe")),
        ("params that are not UTF-8", _with(rest, '"params": {"x": "@"}').replace(b"@", b"\xff")),
    ):
        yield BadBody(name, body, "E1", BODY_STATUSES)


def _not_an_object(quick: Mapping[str, Any]) -> Iterator[BadBody]:
    for value in ([], [dict(quick)], "text", 42, 1.5, True, False, None):
        name = f"JSON that is no object: {json.dumps(value)[:20]}"
        yield BadBody(name, _text(value), "E1", NOT_JSON_STATUSES)


def _wrong_images(quick: Mapping[str, Any]) -> Iterator[BadBody]:
    without = {k: v for k, v in quick.items() if k != "images"}
    top = ("/images",)
    yield BadBody("no `images`", _text(without), "E2", BODY_STATUSES, ("/images", "", "/"))
    yield BadBody("an empty object", b"{}", "E2", BODY_STATUSES, ("/images", "", "/"))
    values: tuple[Any, ...] = ([], None, "text", "", 5, 0, True, False, {}, {"0": "x"}, 1.5)
    for value in values:
        name = f"images = {json.dumps(value)}"
        yield BadBody(name, _text({**without, "images": value}), "E2", BODY_STATUSES, top)
    good = quick.get("images") or [""]
    items: tuple[Any, ...] = (None, 5, True, [], {}, ["x"], 1.5)
    for wrong in items:
        name = f"images = [{json.dumps(wrong)}]"
        body = _text({**without, "images": [wrong]})
        yield BadBody(name, body, "E2", BODY_STATUSES, ("/images/0", "/images"))
    body = _text({**without, "images": [0] * 2500})
    yield BadBody("2500 numbers as images", body, "E2", BODY_STATUSES, ("/images/0", "/images"))
    body = _text({**without, "images": [good[0], 5]})
    yield BadBody("a number as second image", body, "E2", BODY_STATUSES, ("/images/1", "/images"))


def lenient_bodies(quick: Mapping[str, Any]) -> tuple[BadBody, ...]:
    """Bodies that SHOULD be refused, or of which the contract says nothing: 202 may come."""
    rest = {k: v for k, v in quick.items() if k != "req_id"}
    rows = [
        BadBody(
            "an unknown field",
            _text({**rest, "zz_unknown": 1}),
            "E2",
            BODY_STATUSES,
            ("/zz_unknown",),
            should=True,
        ),
        BadBody(
            "an unknown field that a pointer must escape",
            _text({**rest, "zz/a~b": 1}),
            "E2",
            BODY_STATUSES,
            ("/zz~1a~0b",),
            should=True,
        ),
    ]
    values: tuple[Any, ...] = (5, 0, None, True, [], ["x"], {}, 1.5)
    for value in values:
        name = f"req_id = {json.dumps(value)}"
        body = _text({**rest, "req_id": value})
        rows.append(BadBody(name, body, "E2", BODY_STATUSES, ("/req_id",), should=True))
    for key in ("params", "options"):
        for value in (5, None, "text", [], True, {"": None}):
            name = f"{key} = {json.dumps(value)}"
            rows.append(BadBody(name, _text({**rest, key: value}), "E5", ()))
    free = (
        ("1e999 in params", _with(rest, '"params": {"x": 1e999}')),
        ("1e999 as an image", b'{"images": [1e999]}'),
        ("an integer of 5000 digits", _with(rest, f'"params": {{"x": {"9" * 5000}}}')),
        ("a float of 400 digits", _with(rest, f'"params": {{"x": {"9" * 400}.5}}')),
        ("duplicate keys", _with(rest, '"images": []')),
        ("nesting 2000 deep", _with(rest, f'"params": {{"x": {"[" * 2000}{"]" * 2000}}}')),
        ("nesting 50000 deep", _with(rest, f'"params": {{"x": {"[" * 50000}{"]" * 50000}}}')),
        ("a key with a lone surrogate", _with(rest, '"\\ud800": 1')),
        ("a lone surrogate in an image", _text({**rest, "images": ["\ud800"]})),
        ("a lone surrogate in params", _with(rest, '"params": {"x": "\\udfff"}')),
        ("a byte order mark", b"\xef\xbb\xbf" + _text(rest)),
        ("UTF-16", json.dumps(rest).encode("utf-16")),
        ("the key __proto__", _with(rest, '"__proto__": {"x": 1}')),
        ("an empty key", _with(rest, '"": 1')),
        ("a control character in a key", _with(rest, '"a\\r\\nX-Injected: 1": 1')),
    )
    rows += [BadBody(name, body, "E5", ()) for name, body in free]
    return tuple(rows)


def req_id_bodies(quick: Mapping[str, Any]) -> tuple[BadBody, ...]:
    """Bodies whose `req_id` must not reach a header as it is (E7)."""
    rest = {k: v for k, v in quick.items() if k != "req_id"}
    texts = (
        ("CR LF and a header", "a\r\nX-Injected: yes"),
        ("CR LF CR LF and a body", "a\r\n\r\nHTTP/1.1 200 OK\r\nX-Injected: yes\r\n\r\n"),
        ("a lone LF and a header", "a\nX-Injected: yes"),
        ("a lone CR and a header", "a\rX-Injected: yes"),
        ("NUL", "a\x00b"),
        ("ESC and BEL", "a\x1b[31m\x07"),
        ("DEL", "a\x7fb"),
        ("C1 controls", "a\x85b\x9b"),
        ("a Latin-1 letter", "caf\u00e9"),
        ("Chinese", "\u4efb\u52a1"),
        ("an emoji", "job-\U0001f600"),
        ("line separators", "a\u2028b\u2029"),
        ("a right-to-left mark", "a\u202eb"),
    )
    rows = [
        BadBody(f"req_id with {name}", _text({**rest, "req_id": text}), "E7", ())
        for name, text in texts
    ]
    raw = json.dumps({**rest, "req_id": "r-\u4efb\U0001f600"}, ensure_ascii=False).encode()
    rows.append(BadBody("req_id with raw UTF-8", raw, "E7", ()))
    for half in ("\\ud83d", "\\ude00", "\\ude00\\ud83d"):
        body = _with(rest, f'"req_id": "x{half}"')
        rows.append(BadBody(f"req_id with the lone surrogate {half}", body, "E7", ()))
    return tuple(rows)


def image_bodies(quick: Mapping[str, Any]) -> tuple[BadBody, ...]:
    """Bodies whose first image is no base64, whatever the reader (E6); the rest is as usual."""
    rest = {k: v for k, v in quick.items() if k != "images"}
    wrong = ("!!!not base64!!!", "*", "\u4efb\u52a1", "\U0001f600", "<svg/>", "%00%ff")
    return tuple(
        BadBody(f"an image that is {text!r}", _text({**rest, "images": [text]}), "E6", ())
        for text in wrong
    )
