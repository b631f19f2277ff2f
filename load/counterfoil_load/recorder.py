"""The recorded history of one process: every client call with its real-time interval.

A call is recorded when it is over, as one history line (integer microseconds of the machine's
monotonic clock, which all processes of one machine share, and so may be compared under one
`clock_id`). Memory is bounded: past `limit` calls the record is closed and says so; what came
before is complete, and a complete prefix can be judged.
"""

import time
from pathlib import Path
from typing import Any

__all__ = ["Recorder", "machine_clock_id", "now_us"]

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def now_us() -> int:
    """Microseconds of the monotonic clock."""
    return time.monotonic_ns() // 1000


def machine_clock_id() -> str:
    """Names the monotonic clock: the same in every process of one boot of one machine."""
    if _BOOT_ID.exists():
        return f"boot-{_BOOT_ID.read_text().strip()}"
    return f"process-{time.monotonic_ns()}"


class Recorder:
    """Collects history lines until they are drained; `dropped` counts those past the limit."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._clock_id = machine_clock_id()
        self._lines: list[dict[str, Any]] = []
        self.recorded = 0
        self.dropped = 0

    def record(  # noqa: PLR0913, PLR0917 - the fields of a history line
        self,
        client: str,
        op: str,
        job: str | None,
        call_us: int,
        return_us: int | None,
        args: dict[str, Any],
        reply: dict[str, Any] | None,
    ) -> None:
        """Add one call; `return_us` and `reply` are None when no answer came."""
        if self.recorded >= self._limit:
            self.dropped += 1
            return
        self.recorded += 1
        self._lines.append(
            {
                "client": client,
                "op": op,
                "job": job,
                "call": call_us,
                "return": return_us,
                "clock_id": self._clock_id,
                "args": args,
                "reply": reply,
            }
        )

    def drain(self) -> list[dict[str, Any]]:
        """Take what was recorded since the last drain."""
        lines, self._lines = self._lines, []
        return lines
