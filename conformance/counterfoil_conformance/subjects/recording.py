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


def record(host: Host, client: str, message: Mapping[str, Any]) -> Json:
    """Perform one operation and write it down as a line of a history."""
    called = time.perf_counter_ns()
    try:
        reply = host.perform(message)
    except Exception as error:
        reply = {"error": f"{type(error).__name__}: {error}"}
    returned = time.perf_counter_ns()
    line = {
        "client": client,
        "op": message["op"],
        "args": {k: v for k, v in message.items() if k not in _NOT_ARGS},
        "call": called / 1000,
        "return": returned / 1000,
        "clock_id": "driver",
        "reply": reply,
    }
    if "job" in message:
        line["job"] = message["job"]
    return line


@contextmanager
def eager_switching() -> Iterator[None]:
    """Have the interpreter switch threads as often as it can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_S)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
