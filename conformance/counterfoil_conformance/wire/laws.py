"""Laws: what holds of every answer whatever was asked, beyond its being an answer at all.

The session calls `broken_laws` on each answer of a run, so that a refusal without an `error` is
found on the one path in fifty that forgot it. Laws that need to know what the request was made of
(did this header come from that `req_id`?) are functions here too, and the checks that send such
requests call them.

The trap is the layer in front. A head that cannot be parsed is refused by a framework or a gateway
before the application is reached; nothing is asked of the body of such a refusal. Checks that send
one say so and the laws are not applied.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

from counterfoil_conformance.wire.answer import Answer
from counterfoil_conformance.wire.reading import Fault, unwrapped
from counterfoil_conformance.wire.target import Target

__all__ = ["broken_laws", "errors_of", "is_pointer", "raw_in_head", "retry_after_fault"]

# What our probes try to smuggle into an answer's head.
INJECTED: Final = "x-injected"
_BODY_REFUSALS: Final = (400, 413, 415, 422)


def broken_laws(answer: Answer, target: Target) -> Iterator[Fault]:
    """What is wrong with one whole answer taken alone, on a route of the contract."""
    request = answer.request
    if not answer.ok or request.method == "HEAD":
        return
    path = request.path.split("?")[0]
    if answer.status == 202 and request.method == "POST" and path == f"{target.prefix}/jobs":
        yield from _url_faults(answer, target)
    if answer.status < 400:
        return
    if answer.status == 401 and not _offers_bearer(answer):
        said = f"401 with WWW-Authenticate {answer.header('www-authenticate')!r}"
        yield Fault("K1", said, "WWW-Authenticate: Bearer")
    if answer.status == 405 and not answer.header("allow"):
        yield Fault("H5", f"405 on {request.method} without Allow", "Allow", should=True)
    yield from _text_faults(answer, target)
    posts = (f"{target.prefix}/jobs", f"{target.prefix}/infer")
    if request.method == "POST" and path in posts and answer.status in _BODY_REFUSALS:
        yield from _errors_faults(answer, target)


def _url_faults(answer: Answer, target: Target) -> Iterator[Fault]:
    """H10: the three URLs of a 202 are absolute paths that carry the prefix."""
    if target.adapter.rewritten_urls:
        return
    body = unwrapped(answer.json, target.adapter)
    found: dict[str, Any] = {"Location": answer.header("location")}
    if isinstance(body, dict):
        found |= {name: body.get(name) for name in ("poll_url", "result_url")}
    allowed = f"an absolute path under {target.prefix}/" if target.prefix else "an absolute path"
    for name, url in found.items():
        if url is None:
            continue  # its absence is H3's
        fine = isinstance(url, str) and url.startswith(f"{target.prefix}/")
        if not fine or url.startswith("//"):
            yield Fault("H10", f"{name} of a 202 is {url!r:.200}", allowed)


def _offers_bearer(answer: Answer) -> bool:
    offers = [value for name, value in answer.headers if name.lower() == "www-authenticate"]
    return any(re.match(r"(?i)(.*,\s*)?bearer\b", offer) for offer in offers)


def _text_faults(answer: Answer, target: Target) -> Iterator[Fault]:
    """Every refusal says in words what is wrong."""
    if not answer.body and answer.status not in (400, 414, 431):
        yield Fault("H13", f"{answer.status} without a body", "a JSON body with an `error`")
    if not answer.body or not _is_json(answer):
        return  # the content type is the surface's law
    body = unwrapped(answer.json, target.adapter)
    texts = [body.get(key) for key in ("error", "status_str")] if isinstance(body, dict) else []
    if not any(isinstance(text, str) and text.strip() for text in texts):
        allowed = "a human-readable `error` or `status_str`"
        yield Fault("H13", f"{answer.status} without an `error` or `status_str`", allowed)


def _errors_faults(answer: Answer, target: Target) -> Iterator[Fault]:
    """Refusals of the body list what is wrong with it, each with a pointer and a message."""
    if not _is_json(answer):
        return
    clause, should = ("E2", False) if answer.status == 422 else ("H13", answer.status == 413)
    allowed = '`errors`: [{"pointer", "message"}, ...]'
    errors = errors_of(answer, target)
    if not errors:
        yield Fault(clause, f"{answer.status} without `errors`", allowed, should)
    for error in errors or ():
        fine = isinstance(error, dict) and is_pointer(error.get("pointer"))
        message = error.get("message") if isinstance(error, dict) else None
        if not fine or not isinstance(message, str) or not message.strip():
            said = f"an entry of `errors` of the {answer.status} is {error!r:.200}"
            yield Fault(clause, said, "a JSON pointer and a message", should)


def errors_of(answer: Answer, target: Target) -> list[Any] | None:
    """The list of `errors` of a refusal, or None if there is none."""
    body = unwrapped(answer.json, target.adapter)
    errors = body.get("errors") if isinstance(body, dict) else None
    return errors if isinstance(errors, list) else None


def is_pointer(value: Any) -> bool:
    """Whether it is a JSON pointer (RFC 6901), as a string or as a URI fragment.

    How it escapes `/` and `~` is not looked at: only a field that nobody knows has them.
    """
    return isinstance(value, str) and (value == "" or value.removeprefix("#").startswith("/"))


def _is_json(answer: Answer) -> bool:
    return "json" in (answer.header("content-type") or "").lower()


def retry_after_fault(answer: Answer, clause: str) -> Fault | None:
    """`Retry-After`, where it SHOULD be, is 1 to 60 whole seconds."""
    value = answer.header("retry-after")
    text = (value or "").strip()
    if text.isascii() and text.isdigit() and 1 <= int(text) <= 60:
        return None
    said = f"{answer.status} with Retry-After {value!r}"
    return Fault(clause, said, "Retry-After: 1..60", should=True)


def raw_in_head(answer: Answer, clause: str) -> Fault | None:
    """What a client sent has reached the head of an answer as it was (E4, E7).

    To be asked only of answers to requests that carry such characters.
    """
    if any(name.lower() == INJECTED for name, _ in answer.headers):
        return Fault(clause, "a header of the client's making is in the answer", "no such header")
    head = answer.head.split(b"\r\n\r\n")[0]
    if b"x-injected:" in head.lower().replace(b"%0d%0a", b""):
        lines = head.lower().replace(b"\r", b"\n").split(b"\n")
        if any(line.startswith(b"x-injected:") for line in lines):
            return Fault(clause, "a header line of the client's making is in the answer", "none")
    for line in head.split(b"\r\n")[1:]:
        bad = sorted({byte for byte in line if (byte < 0x20 and byte != 9) or byte >= 0x7F})
        if bad:
            said = f"the header {line[:160]!r} holds raw bytes {bytes(bad)[:8]!r}"
            return Fault(clause, said, "printable ASCII in headers")
    return None
