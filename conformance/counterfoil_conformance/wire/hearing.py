"""The whole history before the oracle, and what it says as findings of the run.

An accusation is a proof over several calls; each becomes a finding with the curl lines of the
answers it rests on.
"""

from counterfoil_conformance.oracle.findings import Accusation
from counterfoil_conformance.oracle.judge import judge
from counterfoil_conformance.oracle.setting import Setting
from counterfoil_conformance.report.events import Undecided, Witnessed
from counterfoil_conformance.run import Publish
from counterfoil_conformance.wire.orders import order_faults
from counterfoil_conformance.wire.session import Session
from counterfoil_conformance.wire.workers import worker_faults

__all__ = ["hear", "setting_of"]


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
    session.flush()
    judgement = judge(session.history, setting_of(session))
    for clause, count in judgement.witnesses.items():
        publish(Witnessed(clause, count))
    for clause, why in judgement.undecided.items():
        publish(Undecided(clause, why))
    for accusation in judgement.accusations:
        _publish(session, accusation)


def _publish(session: Session, accusation: Accusation) -> None:
    asked = {id(call): answer for call, answer in session.answers}
    answers = [asked[id(call)] for call in accusation.calls if id(call) in asked]
    for clause in (accusation.clause, *accusation.also):
        session.find(
            clause,
            accusation.text(),
            answers=answers[-4:],
            should=accusation.should,
        )
