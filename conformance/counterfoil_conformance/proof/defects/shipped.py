"""Seeded defects of the shipped server's decisions."""

from collections.abc import Callable

from counterfoil_conformance.proof.seeding import defect
from counterfoil_conformance.proof.shipped import RULES

__all__: list[str] = []

_has_place: Callable[[int, int], bool] = RULES.has_place
_has_expired: Callable[[int, int, int], bool] = RULES.has_expired
_excess: Callable[[int, int], int] = RULES.excess
_is_overdue: Callable[[int, int, int], bool] = RULES.is_overdue
_elapsed_ms: Callable[[int, int | None, int], int] = RULES.elapsed_ms
_capped_wait_ms: Callable[[int | None], int] = RULES.capped_wait_ms
_parse_wait_ms: Callable[[str], int] = RULES.parse_wait_ms


@defect(_has_place)
def the_server_admits_one_too_many(depth: int, max_queue: int) -> bool:
    """`<=` for `<`."""
    return depth <= max_queue


@defect(_has_place)
def the_server_has_no_bound_at_zero(depth: int, max_queue: int) -> bool:
    """A bound of 0 or below is read as none."""
    return max_queue <= 0 or depth < max_queue


@defect(_has_expired)
def the_servers_ttl_is_inclusive(completed_at: int, now: int, ttl_ms: int) -> bool:
    """`>=` for `>`."""
    return now - completed_at >= ttl_ms


@defect(_excess)
def the_server_keeps_one_too_many(retained: int, max_completed: int) -> int:
    """One more than the bound stays."""
    return max(_excess(retained, max_completed) - 1, 0)


@defect(_excess)
def the_server_keeps_one_too_few(retained: int, max_completed: int) -> int:
    """One that fits within the bound goes."""
    return min(_excess(retained, max_completed) + 1, retained)


@defect(_excess)
def a_negative_bound_adds_up(retained: int, max_completed: int) -> int:
    """A bound below 0 is subtracted as it is."""
    return max(retained - max_completed, 0)


@defect(_is_overdue)
def the_server_ends_budgets_late(submitted_at: int, now: int, timeout_ms: int) -> bool:
    """`>` for `>=`."""
    return timeout_ms > 0 and now - submitted_at > timeout_ms


@defect(_is_overdue)
def no_budget_is_none_left(submitted_at: int, now: int, timeout_ms: int) -> bool:
    """A budget of 0 is over at once."""
    return now - submitted_at >= timeout_ms


@defect(_elapsed_ms)
def elapsed_time_runs_on(submitted_at: int, completed_at: int | None, now: int) -> int:
    """A job that ended grows older."""
    del completed_at
    return now - submitted_at


@defect(_elapsed_ms)
def elapsed_time_falls_at_the_end(submitted_at: int, completed_at: int | None, now: int) -> int:
    """Once ended, the time counts from the end."""
    return now - (submitted_at if completed_at is None else completed_at)


@defect(_capped_wait_ms)
def a_wait_budget_wraps(asked_ms: int | None) -> int:
    """The number is kept in 32 bits."""
    return _capped_wait_ms(None if asked_ms is None else asked_ms % 2**32)


@defect(_capped_wait_ms)
def a_wait_budget_has_no_cap(asked_ms: int | None) -> int:
    """Whatever is asked for is granted."""
    return _capped_wait_ms(asked_ms) if asked_ms is None or asked_ms <= 0 else asked_ms


@defect(_capped_wait_ms)
def a_negative_wait_is_no_wait_at_all(asked_ms: int | None) -> int:
    """A budget below 0 reaches the timer as it is."""
    return _capped_wait_ms(asked_ms) if asked_ms is None or asked_ms >= 0 else asked_ms


@defect(_parse_wait_ms)
def a_wait_budget_is_read_in_part(text: str) -> int:
    """Reading stops at the first character that is no digit."""
    digits = ""
    for letter in text:
        if not "0" <= letter <= "9":
            break
        digits += letter
    return _parse_wait_ms(digits or text)


@defect(_parse_wait_ms)
def any_digit_of_unicode_counts(text: str) -> int:
    """`isdigit` without `isascii`."""
    if text[-1:].isdigit() and not text.isascii():
        return 1
    return _parse_wait_ms(text)


@defect(_parse_wait_ms)
def blanks_are_stripped(text: str) -> int:
    """`int` as it comes forgives blanks around the number."""
    return _parse_wait_ms(text.strip(" "))


@defect(_parse_wait_ms)
def signs_are_refused(text: str) -> int:
    """Only digits are read."""
    if text[:1] in {"+", "-"}:
        raise ValueError("a sign")
    return _parse_wait_ms(text)


@defect(RULES.retry_after_s)
def retry_after_may_be_zero(places_ahead: int, workers: int, usual_run_ms: int) -> int:
    """A short queue is advised to come back at once."""
    return min(max(places_ahead, 0) * usual_run_ms // 1000 // max(workers, 1), 60)
