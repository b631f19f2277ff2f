"""The whole history before the oracle, and what it says as findings of the run.

An accusation is a proof over several calls; each becomes a finding with the curl lines of the
answers it rests on. The first one of each clause is made small before it is shown: calls are
dropped from the record while what is left still proves it, for as long as there is time.
"""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from counterfoil_conformance.oracle.findings import Accusation
from counterfoil_conformance.oracle.history import Call
from counterfoil_conformance.oracle.judge import judge
from counterfoil_conformance.oracle.minimise import minimise
from counterfoil_conformance.oracle.setting import Setting
from counterfoil_conformance.report.events import Undecided, Witnessed
from counterfoil_conformance.run import Publish
from counterfoil_conformance.wire.orders import order_faults
from counterfoil_conformance.wire.session import Session
from counterfoil_conformance.wire.workers import worker_faults

__all__ = ["hear", "setting_of", "smallest"]

# In all: judging a long history takes a noticeable part of a second.
MINIMISE_S: Final = 2.0
SURELY_LATE_US: Final = 1_000_000
OFTEN: Final = 3


def setting_of(session: Session) -> Setting:
    """What the judge may take for granted about this run."""
    limits = session.target.limits
    kept = limits.max_completed
    bound = session.max_queue
    earlier = None
    if kept is not None and bound is not None:
        # What others left: at most this many, and what ended since their last submit.
        earlier = 0 if session.is_fresh else max(kept, 0) + max(bound, 0)
    return Setting(
        max_queue=bound,
        job_ttl_ms=limits.job_ttl_ms,
        max_completed=kept,
        exclusive=session.target.exclusive,
        ended_before=earlier,
        gone_by_us=_strangers_gone_by(session),
        known=frozenset(session.forgotten),
        tolerance_ms=session.tolerance_ms,
        rtt_ms=(session.worst_trip_us + session.lag.worst_us(0)) / 1000,
    )


def _strangers_gone_by(session: Session) -> float | None:
    """When the terminal jobs of before the run had been evicted by count, if that can be told.

    They ended, were submitted and were last used before any of ours. So where the oldest go first
    (R5; nothing seen speaks against it), a submit that was admitted after as many of ours had ended
    as are retained leaves none of them.
    """
    kept = session.target.limits.max_completed
    if kept is None or not session.target.exclusive or session.odd_order:
        return None
    ended = sorted(job.ended_us for job in session.jobs.values() if job.ended_us is not None)
    kept = max(kept, 0)
    if len(ended) < kept:
        return None
    since_us = ended[kept - 1] if kept else 0
    later = [job.return_us for job in session.jobs.values() if job.call_us > since_us]
    return min(later, default=None)


def hear(session: Session, publish: Publish) -> None:
    """Judge the history and publish what comes of it."""
    for fault, answers in (*order_faults(session), *worker_faults(session)):
        session.find(
            fault.clause, fault.why, allowed=fault.allowed, answers=answers, should=fault.should
        )
    _witness_ends(session)
    session.flush()
    setting = setting_of(session)
    judgement = judge(session.history, setting)
    for clause, count in judgement.witnesses.items():
        publish(Witnessed(clause, count))
    for clause, why in judgement.undecided.items():
        publish(Undecided(clause, why))
    until_s, told = time.monotonic() + MINIMISE_S, set[str]()
    for accusation in _proved(judgement.accusations):
        shown, left = accusation, ""
        if accusation.clause not in told:
            shown, left = smallest(session.history, setting, accusation, until_s)
        told.add(accusation.clause)
        _publish(session, shown, left)


def _witness_ends(session: Session) -> None:
    """S9 of every job that was seen ended, T5 of those that had to fail and did."""
    ended = [job for job in session.jobs.values() if job.ended_us is not None]
    session.ok("S9", len(ended))
    fell = [job for job in ended if job.kind in ("failing", "crashing") and job.state == "failed"]
    session.ok("T5", len(fell))


def _proved(accusations: Sequence[Accusation]) -> Iterator[Accusation]:
    """All but those of an answer that was a little too late once or twice: the machine's, maybe."""
    late = [one for one in accusations if one.beyond_us is not None]
    often = Counter(one.clause for one in late)
    for one in accusations:
        little = one.beyond_us is not None and one.beyond_us < SURELY_LATE_US
        if not little or often[one.clause] >= OFTEN:
            yield one


def smallest(
    history: Sequence[Call], setting: Setting, accusation: Accusation, until_s: float
) -> tuple[Accusation, str]:
    """The same accusation, made of as little of the history as can be found until then.

    Args:
        history: the whole of it.
        setting: that under which it was judged.
        accusation: what it was accused of.
        until_s: a moment of the monotonic clock.

    Returns:
        The accusation to show, and a sentence about what was left out. The original and nothing,
        where what is left no longer proves it.
    """
    small, where = minimise(history, setting, accusation, lambda: time.monotonic() > until_s)
    if len(small) == len(history):
        return accusation, ""
    found = judge(small, where).accusations
    same = (one for one in found if (one.clause, one.job) == (accusation.clause, accusation.job))
    again = next(same, None)
    if again is None:
        return accusation, ""
    return again, f"\n({len(small)} of the {len(history)} recorded calls suffice to show it)"


def _publish(session: Session, accusation: Accusation, left: str) -> None:
    asked = {id(call): answer for call, answer in session.answers}
    answers = [asked[id(call)] for call in accusation.calls if id(call) in asked]
    for clause in (accusation.clause, *accusation.also):
        session.find(
            clause,
            accusation.text() + left,
            answers=answers[-4:],
            should=accusation.should,
        )
