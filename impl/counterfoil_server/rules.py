"""The server's decisions, as functions of plain integers and text.

Every "is there room, is it time, how many" of the server is decided here and nowhere else: no clock
is read, nothing is locked, nothing is logged. So each decision can be compared, for all integers,
with what the contract says it must be. All times are ms of one monotonic clock.
"""

from typing import Final

__all__ = [
    "LONGEST_WAIT_MS",
    "USUAL_WAIT_MS",
    "capped_wait_ms",
    "elapsed_ms",
    "excess",
    "has_expired",
    "has_place",
    "is_overdue",
    "parse_wait_ms",
    "retry_after_s",
]

USUAL_WAIT_MS: Final = 30_000
LONGEST_WAIT_MS: Final = 300_000
_BEYOND_ANY_CAP: Final = 10**18


def has_place(depth: int, max_queue: int) -> bool:
    """Whether a submit is admitted at this depth (A3, A4)."""
    return depth < max_queue


def has_expired(completed_at: int, now: int, ttl_ms: int) -> bool:
    """Whether a job completed strictly more than its TTL ago (R3)."""
    return now - completed_at > ttl_ms


def excess(retained: int, max_completed: int) -> int:
    """How many retained jobs must go by count; a bound below 0 counts as 0 (R4, R9)."""
    return max(retained - max(max_completed, 0), 0)


def is_overdue(submitted_at: int, now: int, timeout_ms: int) -> bool:
    """Whether a live job has used up its budget; at or below 0 there is none (T1, T4)."""
    return timeout_ms > 0 and now - submitted_at >= timeout_ms


def elapsed_ms(submitted_at: int, completed_at: int | None, now: int) -> int:
    """How long a job has been known; it stops growing at completion (H8)."""
    return (now if completed_at is None else completed_at) - submitted_at


def capped_wait_ms(asked_ms: int | None) -> int:
    """How long a wait may block: absent, 0 and below mean 30 s, and 300 s is the most (W5)."""
    if asked_ms is None or asked_ms <= 0:
        return USUAL_WAIT_MS
    return min(asked_ms, LONGEST_WAIT_MS)


def parse_wait_ms(text: str) -> int:
    """An optionally signed decimal integer of any length (W5); ValueError for all else (W10)."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()):
        raise ValueError("not a whole number of milliseconds")
    size = int(digits) if len(digits.lstrip("0")) <= 18 else _BEYOND_ANY_CAP
    return -size if text[0] == "-" else size


def retry_after_s(places_ahead: int, workers: int, usual_run_ms: int) -> int:
    """When a place is likely to be free, in whole seconds from 1 to 60 (H4)."""
    rounds = -(-max(places_ahead, 1) // max(workers, 1))
    return min(max(-(-rounds * usual_run_ms // 1000), 1), 60)
