"""The judge of long and concurrent histories: it reasons with intervals and never guesses.

A concurrent history does not tell in which order its calls took effect, and trying the orders
explodes (k jobs that end unseen have k! completion orders). So this judge tries none. For every job
it bounds, from intervals alone, when it was admitted, when it ended and when it was gone, and looks
for facts that no order at all can explain. Its rules are one module each:

- `records`: what one record says, and that all reads of it agree (S1 S6 S7 G1 G2 Q1 Q2 A8);
- `lifeline`: the order of what one job went through (S2 S3 S4 S5 R7 A10);
- `admission`: depth, from certainly and possibly live jobs (A1 to A6, A11);
- `retention`: who was gone too early, who was found too late (R1 R2 R3 R4 R9 A10);
- `waiting`: which waits were answered too late or too early (W1 W2 W3 W4 W6 W7);
- `elapsed`: what a job's age is said to be (H8).

A job that contradicts itself is accused of that, and its word is not used against others.
What it accuses of is proved; what it does not accuse of may still be wrong: `linearizability`
searches short histories whole. The cost is O(n log n) for each clock.
"""

from collections.abc import Iterable

from counterfoil_conformance.oracle.admission import judge_admission
from counterfoil_conformance.oracle.elapsed import judge_elapsed
from counterfoil_conformance.oracle.evidence import Evidence, collect
from counterfoil_conformance.oracle.findings import Accusation, Bench, Judgement, describe
from counterfoil_conformance.oracle.history import Call
from counterfoil_conformance.oracle.lifeline import judge_lifelines, judge_transitions
from counterfoil_conformance.oracle.records import judge_records
from counterfoil_conformance.oracle.retention import judge_retention
from counterfoil_conformance.oracle.setting import Setting
from counterfoil_conformance.oracle.waiting import judge_waits

__all__ = ["Accusation", "Judgement", "Setting", "judge"]


def judge(calls: Iterable[Call], setting: Setting | None = None) -> Judgement:
    """Judge a history.

    Args:
        calls: in any order.
        setting: what is known of the ledger and of the recording; by default a whole history over
            HTTP of a ledger that was empty at first and whose limits are unknown.
    """
    evidence = collect(calls, setting or Setting())
    bench = Bench()
    judge_records(evidence, bench)
    judge_transitions(evidence, bench)
    _judge_strangers(evidence, bench)
    for clock in evidence.clocks:
        lives = evidence.lives(clock)
        judge_lifelines(lives, bench)
        lives = evidence.careful(lives, bench.contradicted)
        judge_admission(evidence, lives, clock, bench)
        judge_retention(evidence, lives, clock, bench)
        judge_waits(evidence, lives, clock, bench)
        judge_elapsed(lives, bench)
    return bench.judgement()


def _judge_strangers(evidence: Evidence, bench: Bench) -> None:
    """S8: an id that nobody can have been issued is unknown to every call."""
    setting = evidence.setting
    fresh = setting.live_before == 0 and setting.ended_before == 0 and not setting.known
    closed = setting.exclusive and fresh and not evidence.lost
    for story in evidence.stories.values():
        if story.submits or story.known:
            continue
        found = next((sight for sight in story.sights if sight.found), None)
        if found is None:
            bench.witness("S8", len(story.sights))
            bench.witness("G3", sum(sight.call.op == "result" for sight in story.sights))
        elif closed:
            bench.accuse(
                "S8",
                "no submit of the history issued this id, and it was found",
                let=(describe(found.call),),
                calls=(found.call,),
                also=("G3",) if found.call.op == "result" else (),
                job=story.job,
            )
