"""The order of what one job went through: S2 S4 S5 R7 A10, and who may have ended it.

Every sight of a job says how far along it was at some instant inside its interval. If one call
returned before another began, what the first proves must still hold in the second: ranks never
fall. That is the whole of real-time order for a single job, and it is decided by one pass over the
sights by call with the best proof among those that had returned.

Which clause a fall breaks depends on who fell: a read that goes back is S5 (and G2 where it was a
result refused with a state long left), a transition accepted too late is S2 or S4.
"""

from collections.abc import Iterator, Sequence

from counterfoil_conformance.oracle.evidence import Evidence, Life, Sight, Story
from counterfoil_conformance.oracle.findings import Bench, describe
from counterfoil_conformance.oracle.history import READS, Call

__all__ = ["judge_lifelines", "judge_transitions"]

_RANKS = ("pending", "running", "terminal")
_ENDS = frozenset({"finish", "fail", "timeout"})


def judge_lifelines(lives: Sequence[Life], bench: Bench) -> None:
    """Judge the order of the sights of every job, on one clock."""
    for life in lives:
        _judge_order(life, bench)
        _judge_birth(life, bench)
        _judge_return(life, bench)


def _judge_order(life: Life, bench: Bench) -> None:
    job, compared = life.story.job, 0
    for earlier, later in _pairs(life):
        compared += 1
        if later.was is None or earlier.then is None or earlier.then <= later.was:
            continue
        clause, also = _clause_of_fall(earlier, later)
        bench.accuse(
            clause,
            f"the job went back from {_RANKS[earlier.then]} to {_RANKS[later.was]}: "
            "the first call returned before the second began",
            let=(describe(earlier.call), describe(later.call)),
            calls=(life.story.submit, earlier.call, later.call),
            also=also,
            job=job,
        )
    bench.witness("S5", compared)


def _pairs(life: Life) -> Iterator[tuple[Sight, Sight]]:
    """Each sight with the one that proves the highest rank among those that returned before it."""
    by_call = sorted(life.sights, key=lambda sight: sight.call.call_us)
    proofs = [sight for sight in by_call if _proves(sight, life)]
    proofs.sort(key=lambda sight: sight.call.until_us)
    best: Sight | None = None
    taken = 0
    for later in by_call:
        while taken < len(proofs) and proofs[taken].call.until_us < later.call.call_us:
            if best is None or (proofs[taken].then or 0) > (best.then or 0):
                best = proofs[taken]
            taken += 1
        if best is not None and later.was is not None:
            yield best, later


def _proves(sight: Sight, life: Life) -> bool:
    """Whether the sight proves a rank: a refusal may only mean that the id was not issued yet."""
    issued = sight.found is True or sight.call.call_us > life.admitted_by
    return sight.then is not None and issued


def _clause_of_fall(earlier: Sight, later: Sight) -> tuple[str, tuple[str, ...]]:
    if later.call.op == "result":
        return "S5", ("G2",) if earlier.ended else ()
    if later.call.op in READS:
        return "S5", ()
    if earlier.ended:
        return "S4", ()
    return "S2", ()


def _judge_birth(life: Life, bench: Bench) -> None:
    """An id that was seen before the submit that issued it was called is not new (A8)."""
    for sight in life.sights:
        if sight.found and sight.call.until_us < life.admitted_from:
            bench.accuse(
                "A8",
                "the id was in use before the submit that issued it was called",
                let=(describe(sight.call), _told(life.story.submit)),
                calls=(sight.call, life.story.submit),
                job=life.story.job,
            )
            return


def _judge_return(life: Life, bench: Bench) -> None:
    """An id that was unknown once is unknown for ever (R7); one just issued is found (A10)."""
    gone, found = life.first_gone, life.last_found
    if gone is None or found is None or life.found_until <= life.gone_by:
        return
    before = any(s.found and s.call.until_us < gone.call_us for s in life.sights)
    also: tuple[str, ...] = () if found.op in READS else ("S8",)
    if before and life.ended_by < gone.call_us:
        also += ("R6",)  # evicted, and back again (R7), or never evicted, and not readable
    bench.accuse(
        "R7" if before else "A10",
        "the id was unknown, and found again later"
        if before
        else "the id was unknown after its submit had returned, and found later",
        let=(describe(gone), describe(found)),
        calls=(life.story.submit, gone, found),
        also=also,
        job=life.story.job,
    )


def _told(call: Call | None) -> str:
    return "" if call is None else describe(call)


def judge_transitions(evidence: Evidence, bench: Bench) -> None:
    """Judge which transitions were accepted: once each, and no more than were asked for."""
    for story in evidence.stories.values():
        _judge_accepted(story, "start", frozenset({"start"}), "S2", bench)
        _judge_accepted(story, "terminal call", _ENDS, "S4", bench)
        if evidence.setting.visible:
            _judge_refused(story, bench)
            _judge_phantoms(story, bench)


def _accepted(story: Story, ops: frozenset[str]) -> list[Call]:
    return [
        call
        for call in story.attempts
        if call.op in ops and (call.reply or {}).get("accepted") is True
    ]


def _judge_accepted(
    story: Story, what: str, ops: frozenset[str], clause: str, bench: Bench
) -> None:
    accepted = _accepted(story, ops)
    if len(accepted) > 1:
        bench.accuse(
            clause,
            f"{len(accepted)} calls were accepted, and a {what} is accepted once",
            let=[describe(call) for call in accepted[:4]],
            calls=(story.submit, *accepted),
            also=("S9",) if clause == "S4" else (),
            job=story.job,
        )
    elif accepted:
        tried = sum(call.op in ops for call in story.attempts)
        bench.witness(clause, tried - 1)
        bench.witness("S9" if clause == "S4" else "S2")


def _judge_refused(story: Story, bench: Bench) -> None:
    """A refusal needs a reason: another call that may have come first."""
    if story.submit is None:
        return
    for call in story.attempts:
        refused = (call.reply or {}).get("accepted") is False and "fence" not in call.args
        if not refused or not _surely_issued(story, call):
            continue
        rivals = [other for other in story.attempts if _may_have_won(other, call)]
        if call.op != "start" and not any(rival.op in _ENDS for rival in rivals):
            _accuse_refusal(story, call, "S4" if _crowded(story, call) else "S3", bench)
        elif call.op == "start" and not rivals:
            _accuse_refusal(story, call, "S2", bench)
        else:
            bench.witness("S3" if call.op == "start" else "S4")


def _surely_issued(story: Story, call: Call) -> bool:
    """Whether the id was known to the ledger before the call began."""
    proofs = [sight.call for sight in story.sights if sight.found]
    return any(_surely_before(proof, call) for proof in (*story.submits, *proofs))


def _may_have_won(rival: Call, refused: Call) -> bool:
    """Whether `rival` may have taken effect before `refused` did."""
    if rival is refused or (rival.reply or {}).get("accepted") is False:
        return False
    return not _surely_before(refused, rival)


def _surely_before(first: Call, second: Call) -> bool:
    return first.clock_id == second.clock_id and first.until_us < second.call_us


def _crowded(story: Story, call: Call) -> bool:
    """Whether another terminal call was in flight at the same time."""
    return any(
        other is not call
        and other.op in _ENDS
        and not _surely_before(other, call)
        and not _surely_before(call, other)
        for other in story.attempts
    )


def _accuse_refusal(story: Story, call: Call, clause: str, bench: Bench) -> None:
    before = "terminal" if call.op != "start" else "running or terminal"
    bench.accuse(
        clause,
        f"the {call.op} was refused though nothing can have made the job {before} before it: of "
        "concurrent calls one is accepted",
        let=(_told(story.submit), describe(call), "no accepted or unanswered rival began in time"),
        calls=(story.submit, call),
        job=story.job,
    )


def _judge_phantoms(story: Story, bench: Bench) -> None:
    """A state needs a cause: a call that may have brought the job there."""
    if story.submit is None:
        return
    for sight in story.sights:
        if sight.state is None or sight.state.rank == 0:
            continue
        ops = {str(_OP_OF[sight.state])} if sight.state.terminal else {"start"}
        causes = [call for call in story.attempts if call.op in ops]
        if any(_may_have_won(call, sight.call) for call in causes):
            continue
        refused = any((call.reply or {}).get("accepted") is False for call in causes)
        bench.accuse(
            "S4" if refused and sight.state.terminal else _PHANTOM[sight.state.rank],
            f"the job is {sight.state} though no {'/'.join(sorted(ops))} of it was accepted before",
            let=(describe(sight.call), *(describe(call) for call in causes[:3])),
            calls=(story.submit, sight.call, *causes),
            also=("G2",) if sight.call.op == "result" and sight.state.terminal else (),
            job=story.job,
        )
        return


_OP_OF = {"done": "finish", "failed": "fail", "timeout": "timeout"}
_PHANTOM = ("S1", "S2", "S3")
