"""Which scopes are searched, and how many states each must have.

The counts are pins: a change of the law, of the key or of the search that changes one of them is
either a mistake or something to be said out loud. The counts of the full detail are found a second
time in the tests by an encoding that shares nothing with the spec.

`FULL` is in full detail, for an atomic submit (submitters 0) and for `admit` and `sweep` apart, one
or two submits in flight. `TAGGED` has one job in detail and the others as counts of ages.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from counterfoil_spec.model import Scope

__all__ = ["DEEP_FULL", "DEEP_GATE", "DEEP_TAGGED", "FULL", "LIVENESS", "TAGGED", "pinned"]

_SMALL: Final = range(3)
_QUEUE_0: Final = (1,) * 9

# Distinct states by (submitters, max_queue); then by max_completed and ttl, the ttl the fastest.
_FULL: Final[Mapping[tuple[int, int], tuple[int, ...]]] = MappingProxyType(
    {
        (0, 0): _QUEUE_0,
        (0, 1): (17, 23, 29, 173, 311, 485, 1109, 2975, 5885),
        (0, 2): (183, 321, 495, 1599, 3525, 6495, 10095, 31245, 70215),
        (1, 0): _QUEUE_0,
        (1, 1): (189, 333, 513, 1641, 3645, 6729, 10353, 32229, 72609),
        (1, 2): (1781, 3845, 6989, 14213, 37289, 79229, 88805, 312545, 787925),
    }
)
_MORE_FULL: Final[Mapping[Scope, int]] = MappingProxyType(
    {
        Scope(1, 0, 0, 2): 1658,
        Scope(1, 0, 1, 2): 3668,
        Scope(1, 0, 2, 2): 6758,
        Scope(1, 1, 0, 2): 13046,
        Scope(1, 1, 1, 2): 35060,
        Scope(2, 0, 0, 2): 14396,
        Scope(2, 0, 1, 2): 37610,
        Scope(2, 1, 2, 2): 812060,
        Scope(3, 2, 2, 0): 724691,
    }
)
_TAGGED: Final[Mapping[Scope, int]] = MappingProxyType(
    {
        Scope(1, 1, 3, 1): 1604,
        Scope(1, 2, 3, 1): 5146,
        Scope(1, 3, 1, 1): 2876,
        Scope(1, 3, 2, 1): 6700,
        Scope(1, 3, 3, 1): 13378,
        Scope(2, 1, 3, 1): 5636,
        Scope(2, 2, 3, 1): 15384,
        Scope(2, 3, 1, 1): 6748,
        Scope(2, 3, 2, 1): 16850,
        Scope(2, 3, 3, 1): 36022,
        Scope(3, 1, 1, 1): 4032,
        Scope(3, 1, 2, 1): 8472,
        Scope(3, 1, 3, 1): 15940,
        Scope(3, 2, 1, 1): 7780,
        Scope(3, 2, 2, 1): 18480,
        Scope(3, 2, 3, 1): 38406,
        Scope(3, 3, 1, 1): 13416,
        Scope(3, 3, 2, 1): 35972,
        Scope(3, 3, 3, 1): 82438,
        Scope(2, 2, 2, 2): 19938,
        Scope(3, 3, 3, 2): 192376,
    }
)
# The tagged model with a waiter; the last number of a scope is the job budget, where it has one.
_LIVENESS: Final[Mapping[Scope, int]] = MappingProxyType(
    {
        Scope(1, 0, 0, 1, timeout_ms=1): 320,
        Scope(1, 1, 1, 1, timeout_ms=2): 1792,
        Scope(2, 1, 1, 0): 1379,
        Scope(2, 1, 1, 1, timeout_ms=2): 5496,
        Scope(2, 1, 1, 2): 12212,
        Scope(2, 2, 1, 1): 10396,
    }
)
# Scenarios of the protocol, by form: queued, table_first.
_PROTOCOL: Final[Mapping[str, tuple[int, int]]] = MappingProxyType(
    {
        "admission": (8757, 3602),
        "ending": (464, 792),
        "starting": (581, 863),
        "waiting": (68, 108),
        "two_waiters": (81, 127),
        "waiting_in_budget": (152, 234),
        "place": (46, 61),
        "overlap": (114, 87),
        "retention": (13695, 7406),
        "late_ending": (54, 56),
        "gauge": (93, 93),
    }
)

FULL: Final = (
    *(
        Scope(max_queue, max_completed, ttl_ms, submitters)
        for submitters, max_queue in _FULL
        for max_completed in _SMALL
        for ttl_ms in _SMALL
    ),
    *(scope for scope, states in _MORE_FULL.items() if states < 100_000),
)
DEEP_FULL: Final = tuple(scope for scope, states in _MORE_FULL.items() if states > 100_000)
TAGGED: Final = (Scope(3, 1, 1), Scope(3, 2, 2))
DEEP_TAGGED: Final = tuple(_TAGGED)
LIVENESS: Final = tuple(_LIVENESS)
DEEP_GATE: Final = (Scope(2, 1, 1, 1), Scope(2, 1, 1, 2), Scope(2, 2, 2, 1))
GATE: Final = tuple(scope for scope in FULL if scope.submitters == 1)


def pinned(kind: str, subject: Scope | str, form: str = "queued") -> int | None:
    """How many states the search must have; None where that is not pinned.

    `kind` is full, tagged, liveness (scopes) or protocol (scenarios, in a form).
    """
    if isinstance(subject, str):
        counts = _PROTOCOL.get(subject)
        return None if counts is None else counts[form != "queued"]
    if kind == "full" and (subject.submitters, subject.max_queue) in _FULL:
        row = _FULL[subject.submitters, subject.max_queue]
        if subject.max_completed in _SMALL and subject.job_ttl_ms in _SMALL:
            return row[subject.max_completed * 3 + subject.job_ttl_ms]
    tables = {"full": _MORE_FULL, "tagged": _TAGGED, "liveness": _LIVENESS}
    return tables[kind].get(subject)
