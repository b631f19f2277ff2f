"""`elapsed_ms` over the wire: a whole number, counted from admission, never going back (H8).

Admission took place inside the submit's interval, the number was read inside the read's, so it is
at most the time from the submit's call to the read's return. While the job is live it is at least
the time from the submit's return to the read's call; once it has ended it may stand still. A grain
for coarse clocks and a share for drift are allowed on both sides.
"""

from collections.abc import Sequence
from typing import Final

from counterfoil_conformance.oracle.counting import NEVER
from counterfoil_conformance.oracle.evidence import Life, Sight
from counterfoil_conformance.oracle.findings import Bench, describe

__all__ = ["judge_elapsed"]

_GRAIN_MS: Final = 20.0
_DRIFT: Final = 1e-3


def judge_elapsed(lives: Sequence[Life], bench: Bench) -> None:
    """Judge every `elapsed_ms` that a read told, on one clock."""
    for life in lives:
        told = [sight for sight in life.sights if _value(sight) is not None]
        told.sort(key=lambda sight: sight.call.call_us)
        for sight in told:
            _judge_bounds(life, sight, bench)
        _judge_order(life, told, bench)
        bench.witness("H8", len(told))


def _value(sight: Sight) -> int | None:
    value = (sight.call.reply or {}).get("elapsed_ms")
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _judge_bounds(life: Life, sight: Sight, bench: Bench) -> None:
    value, call = _value(sight), sight.call
    if value is None or life.admitted_from == -NEVER or life.admitted_by == NEVER:
        return
    most = (call.until_us - life.admitted_from) / 1000 * (1 + _DRIFT) + _GRAIN_MS
    least = (call.call_us - life.admitted_by) / 1000 * (1 - _DRIFT) - _GRAIN_MS
    if value < 0 or value > most:
        why = f"at most {most:.0f} ms can have passed since admission, and elapsed_ms is {value}"
    elif sight.live and value < least:
        why = f"{least:.0f} ms have passed since admission, and elapsed_ms is {value}"
    else:
        return
    bench.accuse(
        "H8",
        why,
        let=[describe(each) for each in (life.story.submit, call) if each is not None],
        calls=(life.story.submit, call),
        job=life.story.job,
    )


def _judge_order(life: Life, told: Sequence[Sight], bench: Bench) -> None:
    """No read tells less than one that had returned before it began."""
    returned = sorted(told, key=lambda sight: sight.call.until_us)
    best: Sight | None = None
    taken = 0
    for later in told:
        while returned[taken].call.until_us < later.call.call_us:
            if best is None or (_value(returned[taken]) or 0) > (_value(best) or 0):
                best = returned[taken]
            taken += 1
        if best is not None and (_value(later) or 0) < (_value(best) or 0):
            bench.accuse(
                "H8",
                f"elapsed_ms was {_value(best)} and is {_value(later)} later",
                let=(describe(best.call), describe(later.call)),
                calls=(life.story.submit, best.call, later.call),
                job=life.story.job,
            )
            return
