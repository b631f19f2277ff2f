"""Writing calls on a Python ledger down, as the lines of a history."""

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from counterfoil_conformance.subjects.host import Host, Json

__all__ = ["eager_switching", "record"]

_SWITCH_S: Final = 1e-6
_NOT_ARGS: Final = frozenset({"op", "job", "as", "lane"})


def record(host: Host, client: str, message: Mapping[str, Any], into: list[Json]) -> Json:
    """Perform one operation and write it down as a line of a history; the reply.

    The line is there before the call is made: one that never comes back shows as such.
    """
    line: Json = {
        "client": client,
        "op": message["op"],
        "args": {k: v for k, v in message.items() if k not in _NOT_ARGS},
        "clock_id": "driver",
        "return": None,
        "reply": None,
    }
    if "job" in message:
        line["job"] = message["job"]
    into.append(line)
    called = time.perf_counter_ns()
    line["call"] = called / 1000
    try:
        reply = host.perform(message)
    except Exception as error:
        reply = {"error": f"{type(error).__name__}: {error}"}
    returned = time.perf_counter_ns()
    line["reply"] = reply
    line["return"] = returned / 1000
    return reply


@contextmanager
def eager_switching() -> Iterator[None]:
    """Have the interpreter switch threads as often as it can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_S)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
