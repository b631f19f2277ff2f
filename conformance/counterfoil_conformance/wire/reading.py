"""Reading an answer: from HTTP back to what the ledger said, and what is wrong with the spelling.

`read` takes an answer on one of the ledger's routes and the table of allowed forms (`spec.wire`)
and returns a `Reading`: the reply in the vocabulary of recorded histories, and the faults of the
answer taken alone (a missing field, a torn mix of state and error). Whether the reply contradicts
another one is not decided here: that is the oracle's, on the recorded history.

`Surface` faults hold for any answer whatever: 5xx and stack traces (E5), strict JSON (E9), content
type (H13), headers that every answer should carry (H9).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from counterfoil_conformance.wire.answer import NOT_JSON, Answer, strict_json
from counterfoil_conformance.wire.target import Adapter
from counterfoil_spec.ledger import Outcome, State
from counterfoil_spec.wire import Form, Kind, Route, forms_of

__all__ = ["Fault", "Reading", "at_pointer", "read", "surface_faults", "unwrapped"]

STATES: Final = frozenset(str(state) for state in State)
_TRACE: Final = re.compile(
    rb"Traceback \(most recent call last\)|^\s+File \"[^\"]+\", line \d+|"
    rb"^\s+at [\w.$<>]+\([\w.]+:\d+\)|^\s+at [^\n]{0,200}(?:\.\w{1,5}:\d+:\d+|:line \d+)|"
    rb"goroutine \d+ \[|panicked at |"
    rb"\.rb:\d+:in [`']|^#\d+ \S+\.php\(\d+\)",
    re.MULTILINE,
)


class Fault(NamedTuple):
    """Something an answer must (or should) not be: the clause, what, and what is allowed."""

    clause: str
    why: str
    allowed: str = ""
    should: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """What an answer means. `outcome` is None where it means nothing the ledger can say."""

    outcome: Outcome | None
    body: Any
    state: str | None
    reply: dict[str, Any] | None
    faults: tuple[Fault, ...]
    answer: Answer

    @property
    def terminal(self) -> bool:
        """Whether it shows the job ended."""
        return self.state in ("done", "failed", "timeout") or self.outcome is Outcome.READY


def read(route: Route, answer: Answer, job_id: str = "", adapter: Adapter | None = None) -> Reading:
    """Read one answer on `route`; `job_id` is the id that was asked for."""
    known = forms_of(route).get(answer.status) if answer.ok else None
    body = unwrapped(answer.json, adapter or Adapter())
    if known is None:
        return Reading(None, body, None, None, (), answer)
    outcome, form = known
    faults = list(_field_faults(form, body, job_id))
    faults += [
        Fault(h.clause, f"{answer.status} without a {h.name} header", h.name, h.should)
        for h in form.headers
        if answer.header(h.name) is None
    ]
    state = _state(outcome, body)
    if outcome is Outcome.FOUND:
        faults += _mix_faults(state, body)
    return Reading(outcome, body, state, _reply(outcome, body, state), tuple(faults), answer)


def unwrapped(value: Any, adapter: Adapter) -> Any:
    """The contract's body inside the target's, with the contract's names."""
    inner = at_pointer(value, adapter.body) if adapter.body else value
    if inner is NOT_JSON:
        inner = value
    if not isinstance(inner, dict) or not (adapter.fields or adapter.states):
        return inner
    names = {theirs: ours for ours, theirs in adapter.fields.items()}
    renamed = {names.get(key, key): val for key, val in inner.items()}
    states = {theirs: ours for ours, theirs in adapter.states.items()}
    if isinstance(renamed.get("state"), str):
        renamed["state"] = states.get(renamed["state"], renamed["state"])
    return renamed


def at_pointer(value: Any, pointer: str) -> Any:
    """The value at a JSON pointer, or `NOT_JSON` where it leads nowhere."""
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, Mapping) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isdigit() and int(name) < len(value):
            value = value[int(name)]
        else:
            return NOT_JSON
    return value


def _state(outcome: Outcome, body: Any) -> str | None:
    if not isinstance(body, dict):
        return None
    if outcome is Outcome.NOT_DONE:
        named = _named(body)
        return named[0] if len(named) == 1 else None
    state = body.get("state")
    return state if isinstance(state, str) and state in STATES else None


def _named(body: dict[str, Any]) -> list[str]:
    """The states that a refused result may mean: "not done, it is running" means the second."""
    text = str(body.get("error", "")) + " " + str(body.get("state", ""))
    named = [state for state in sorted(STATES) if re.search(rf"\b{state}\b", text)]
    return [state for state in named if state != "done"] or named


def _reply(  # noqa: PLR0911 - a table of outcomes
    outcome: Outcome, body: Any, state: str | None
) -> dict[str, Any] | None:
    """The reply as recorded histories have it."""
    if not isinstance(body, dict) and outcome is not Outcome.NOT_FOUND:
        return None
    match outcome:
        case Outcome.ADMITTED:
            return {"job": body.get("job_id")}
        case Outcome.QUEUE_FULL:
            return {"refused": True}
        case Outcome.NOT_FOUND:
            return {"unknown": True}
        case Outcome.NOT_DONE if len(_named(body)) > 1:
            return None  # "job timeout failed" is not told apart, and not held against it
        case Outcome.NOT_DONE:
            return {"status": "not_done", "state": state}
        case Outcome.READY:
            kept = {k: v for k, v in body.items() if k != "server_time_ms"}
            return {"status": "ready", "task_id": body.get("task_id"), "result": kept}
        case _ if state is not None:
            reply = {"state": state, "error": body.get("error") or None}
            if isinstance(body.get("elapsed_ms"), int):
                reply["elapsed_ms"] = body["elapsed_ms"]
            return reply
    return None


def _field_faults(form: Form, body: Any, job_id: str) -> Iterator[Fault]:
    if not isinstance(body, dict):
        clause = form.fields[0].clause
        yield Fault(clause, f"the body of the {form.status} is not a JSON object", "an object")
        return
    for want in form.fields:
        if want.name not in body:
            said = f"the {form.status} has no `{want.name}`"
            yield Fault(want.clause, said, f"`{want.name}`: {want.kind}", want.should)
        elif not _holds(want.kind, body[want.name], job_id):
            said = f"`{want.name}` of the {form.status} is {body[want.name]!r:.120}"
            yield Fault(want.clause, said, str(want.kind), want.should)


def _holds(kind: Kind, value: Any, job_id: str) -> bool:  # noqa: PLR0911 - a table of kinds
    number = isinstance(value, int | float) and not isinstance(value, bool)
    match kind:
        case Kind.TEXT:
            return isinstance(value, str) and value != ""
        case Kind.SPEAKS:
            return isinstance(value, str) and value.strip() != ""
        case Kind.PATH:
            return isinstance(value, str) and value != ""
        case Kind.STATE:
            return isinstance(value, str) and value in STATES
        case Kind.PENDING:
            return bool(value == "pending")
        case Kind.COUNT:
            return number and isinstance(value, int) and value >= 0
        case Kind.NUMBER:
            return number
        case Kind.FLAG:
            return isinstance(value, bool)
        case Kind.LIST:
            return isinstance(value, list)
        case Kind.OBJECT:
            return isinstance(value, dict)
        case Kind.ID:
            return bool(value == job_id) if job_id else isinstance(value, str)


def _mix_faults(state: str | None, body: Any) -> Iterator[Fault]:
    """A read that mixes state, result and error (S6)."""
    if state is None:
        return
    error = body.get("error")
    if state in ("failed", "timeout"):
        if not error:
            yield Fault("S6", f"state `{state}` without an error", "a non-empty `error`")
        elif not isinstance(error, str):
            yield Fault("S6", f"the error of a `{state}` job is {error!r:.80}", "a string")
    elif error:
        allowed = "`error` absent, null or empty"
        yield Fault("S6", f"state `{state}` with the error {error!r:.80}", allowed)
    if body.get("result") not in (None, "") and state != "done":
        yield Fault("S6", f"state `{state}` with a result", "a result only when `done`")


def surface_faults(
    answer: Answer, *, json_route: bool = True, may_5xx: bool = False
) -> Iterator[Fault]:
    """What no answer may be, whatever was asked."""
    if answer.trouble == "refused" or answer.closed_idle:
        return
    if answer.trouble:
        yield Fault("E5", f"no whole answer: {answer.say()}", "an answer, complete and in time")
        return
    if answer.status >= 500 and not may_5xx:
        yield Fault("E5", f"{answer.status} on {answer.request.method}", "no 5xx")
    # Inside a JSON string a line end, a tab and a quote are two characters.
    text = answer.body.replace(b"\\n", b"\n").replace(b"\\t", b"\t").replace(b'\\"', b'"')
    if _TRACE.search(text):
        yield Fault("E5", "a stack trace in the body", "no stack trace in any body")
    if answer.ok and answer.status:
        yield from _header_faults(answer)
    if json_route and answer.ok and answer.body:
        yield from _json_faults(answer)


def _header_faults(answer: Answer) -> Iterator[Fault]:
    if answer.header("x-request-id") is None:
        yield Fault("H9", f"{answer.status} without X-Request-ID", "X-Request-ID", should=True)
    cache = answer.header("cache-control") or ""
    if "no-store" not in cache.lower():
        said = f"{answer.status} with Cache-Control {cache!r}"
        yield Fault("H9", said, "Cache-Control: no-store", should=True)


def _json_faults(answer: Answer) -> Iterator[Fault]:
    kind = re.sub(r"\s", "", answer.header("content-type") or "").lower().replace('"', "")
    # Frameworks answer a broken head (400, 414, 431) before the application is reached.
    if answer.status in (400, 414, 431) and not kind.startswith("application/json"):
        return
    if kind != "application/json;charset=utf-8":
        said = f"{answer.status} with content type {answer.header('content-type')!r}"
        # The charset is how the table spells it; JSON is UTF-8 without it.
        yield Fault("H13", said, "application/json; charset=utf-8", kind == "application/json")
    if kind.startswith("application/json"):
        value, why = strict_json(answer.body)
        if value is NOT_JSON:
            yield Fault("E9", f"the body of the {answer.status} is not strict JSON: {why}", "JSON")
