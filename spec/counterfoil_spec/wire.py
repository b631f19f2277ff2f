"""What each answer of the ledger looks like over HTTP: allowed status, headers and body, as data.

The law (`ledger`) says how an action may be answered; this table says how that answer is spelled
on the wire. A route and an outcome lead to the one `Form` that is allowed. Every demand in a form
names the clause it comes from, so that whoever reads an answer with this table knows what to say
when it is not met; SHOULD parts are marked.

The trap: a form says nothing of fields it does not list. Clients ignore unknown fields, and so
does every judge of an answer.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from counterfoil_spec.ledger import Outcome

__all__ = ["FORMS", "REFUSALS", "Field", "Form", "Header", "Kind", "Route", "forms_of"]


class Route(StrEnum):
    """The four routes of the job ledger, and the blocking one beside it."""

    SUBMIT = "POST /jobs"
    STATUS = "GET /jobs/{id}"
    WAIT = "GET /jobs/{id}/wait"
    RESULT = "GET /jobs/{id}/result"
    INFER = "POST /infer"


class Kind(StrEnum):
    """What a field holds."""

    TEXT = "a non-empty string"
    PATH = "an absolute path"
    STATE = "one of pending, running, done, failed, timeout"
    PENDING = '"pending"'
    COUNT = "a non-negative integer"
    NUMBER = "a number"
    FLAG = "true or false"
    LIST = "an array"
    OBJECT = "an object"
    ID = "the id that was asked for"
    SPEAKS = "a text that contains the id, state or bound it speaks of"


@dataclass(frozen=True, slots=True)
class Field:
    """A field that a body must have: its name, what it holds, the clause that asks for it."""

    name: str
    kind: Kind
    clause: str
    should: bool = False


@dataclass(frozen=True, slots=True)
class Header:
    """A header that an answer must carry."""

    name: str
    clause: str
    should: bool = False


@dataclass(frozen=True, slots=True)
class Form:
    """An allowed answer: status, the fields of its JSON body, its headers."""

    status: int
    fields: tuple[Field, ...] = ()
    headers: tuple[Header, ...] = ()


_ADMITTED: Final = Form(
    202,
    (
        Field("job_id", Kind.TEXT, "H3"),
        Field("state", Kind.PENDING, "S1"),
        Field("poll_url", Kind.PATH, "H10"),
        Field("result_url", Kind.PATH, "H10"),
    ),
    (Header("Location", "H3"),),
)
_QUEUE_FULL: Final = Form(
    429,
    (Field("error", Kind.SPEAKS, "H4"),),
    (Header("Retry-After", "H4", should=True),),
)
_FOUND: Final = Form(
    200,
    (
        Field("job_id", Kind.ID, "H13"),
        Field("state", Kind.STATE, "S1"),
        Field("elapsed_ms", Kind.COUNT, "H8"),
    ),
)
_ENVELOPE: Final = Form(
    200,
    (
        Field("status", Kind.NUMBER, "H13"),
        Field("status_str", Kind.TEXT, "H13"),
        Field("task_id", Kind.TEXT, "Q2"),
        Field("model", Kind.OBJECT, "H13"),
        Field("results", Kind.LIST, "G4"),
        Field("server_time_ms", Kind.NUMBER, "H13"),
        Field("partial", Kind.FLAG, "G5"),
    ),
)
_NOT_FOUND: Final = Form(404, (Field("error", Kind.SPEAKS, "H13"),))
_NOT_DONE: Final = Form(409, (Field("error", Kind.SPEAKS, "G2"),))

FORMS: Final[Mapping[tuple[Route, Outcome], Form]] = MappingProxyType(
    {
        (Route.SUBMIT, Outcome.ADMITTED): _ADMITTED,
        (Route.SUBMIT, Outcome.QUEUE_FULL): _QUEUE_FULL,
        (Route.STATUS, Outcome.FOUND): _FOUND,
        (Route.STATUS, Outcome.NOT_FOUND): _NOT_FOUND,
        (Route.WAIT, Outcome.FOUND): _FOUND,
        (Route.WAIT, Outcome.EXPIRED): _FOUND,
        (Route.WAIT, Outcome.NOT_FOUND): _NOT_FOUND,
        (Route.RESULT, Outcome.READY): _ENVELOPE,
        (Route.RESULT, Outcome.NOT_DONE): _NOT_DONE,
        (Route.RESULT, Outcome.NOT_FOUND): _NOT_FOUND,
        (Route.INFER, Outcome.READY): _ENVELOPE,
    }
)

# How a request that never reached the ledger may be refused; with `errors` where the body is the
# reason.
REFUSALS: Final[Mapping[int, tuple[Field, ...]]] = MappingProxyType(
    {
        400: (Field("errors", Kind.LIST, "E2"),),
        401: (),
        404: (),
        405: (),
        413: (Field("errors", Kind.LIST, "E3"),),
        415: (Field("errors", Kind.LIST, "E3"),),
        422: (Field("errors", Kind.LIST, "E2"),),
    }
)


def forms_of(route: Route) -> Mapping[int, tuple[Outcome, Form]]:
    """By status, what an answer on this route may mean; where two share one, the first in time."""
    found: dict[int, tuple[Outcome, Form]] = {}
    for (where, outcome), form in FORMS.items():
        if where is route:
            found.setdefault(form.status, (outcome, form))
    return found
