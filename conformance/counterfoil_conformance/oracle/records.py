"""What a record says of itself: S1 S6 S7, that reads of it agree, and whose data it holds.

No order is needed here. A terminal job has one state, one error, one result, one completion time;
whoever reads them, whenever, on whatever clock, reads the same (S5 R6 W6 G1). A record also has to
make sense alone: an error exactly where the job failed or timed out, a completion time exactly
where it is terminal.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from counterfoil_conformance.oracle.evidence import Evidence, Sight, Story
from counterfoil_conformance.oracle.findings import Bench, describe
from counterfoil_conformance.oracle.history import READS, Call
from counterfoil_spec.ledger import State

__all__ = ["judge_records"]

_OP_OF = {State.DONE: "finish", State.FAILED: "fail", State.TIMEOUT: "timeout"}


def judge_records(evidence: Evidence, bench: Bench) -> None:
    """Judge what the reads of every job show, and that they agree with each other."""
    owners = _owners(evidence)
    for story in evidence.stories.values():
        _judge_ids(story, bench)
        for sight in story.sights:
            if sight.call.op in READS and sight.found:
                _judge_form(story, sight, bench)
        _judge_agreement(story, bench)
        _judge_outcome(story, owners, bench)
        _judge_requests(story, bench)
    _judge_clock(evidence, bench)


def _judge_ids(story: Story, bench: Bench) -> None:
    if len(story.submits) > 1 or (story.submits and story.known):
        bench.accuse(
            "A8",
            "one id was issued more than once",
            let=[describe(call) for call in story.submits[:4]],
            calls=story.submits,
            job=story.job,
        )
    bench.witness("A8", len(story.submits))


def _judge_form(story: Story, sight: Sight, bench: Bench) -> None:
    """One read alone: a state of the five, and no torn mix."""
    call, reply = sight.call, sight.call.reply or {}
    if sight.state is None:
        # A refusal of the result has to name the state (G2); elsewhere the state itself is wrong.
        clause = "G2" if call.op == "result" else "S1"
        _accuse(story, call, clause, f"{reply.get('state')!r} is not a state", bench)
        return
    bench.witness("S1")
    if call.op == "result":
        if reply.get("status") == "not_done" and sight.state is State.DONE:
            _accuse(story, call, "G1", "a done job's result is refused", bench)
        bench.witness("G2" if reply.get("status") == "not_done" else "G1")
        return
    error, fallen = reply.get("error"), sight.state in (State.FAILED, State.TIMEOUT)
    if fallen and not error:
        _accuse(story, call, "S6", f"the job is {sight.state} without an error", bench)
    elif error and not fallen:
        _accuse(story, call, "S6", f"the job is {sight.state} with an error", bench)
    bench.witness("S6")
    _judge_stamps(story, sight, bench)


def _judge_stamps(story: Story, sight: Sight, bench: Bench) -> None:
    reply = sight.call.reply or {}
    if "completed_at" not in reply or sight.state is None:
        return
    born, ended = reply.get("submitted_at"), reply["completed_at"]
    if (ended is not None) != sight.state.terminal:
        had = "no" if ended is None else "a"
        _accuse(story, sight.call, "S7", f"{sight.state} with {had} completion time", bench)
    elif ended is not None and born is not None and ended < born:
        _accuse(story, sight.call, "S7", "it completed before it was submitted", bench)
    bench.witness("S7")


def _accuse(story: Story, call: Call, clause: str, why: str, bench: Bench) -> None:
    bench.accuse(clause, why, let=(describe(call),), calls=(story.submit, call), job=story.job)


# Agreement


def _judge_agreement(story: Story, bench: Bench) -> None:
    ended = [s for s in story.sights if s.call.op in READS and s.state and s.state.terminal]
    _agree(story, ended, "state", [str(s.state) for s in ended], bench)
    snapshots = [s for s in ended if s.call.op != "result"]
    for key in ("error", "completed_at", "submitted_at"):
        told = [s for s in snapshots if key in (s.call.reply or {})]
        _agree(story, told, key, [(s.call.reply or {})[key] or None for s in told], bench)
    ready = [s for s in ended if _is_ready(s.call) and "result" in (s.call.reply or {})]
    results = [_canonical((s.call.reply or {}).get("result")) for s in ready]
    _agree(story, ready, "result", results, bench)
    bench.witness("S5 R6", max(len(ended) - 1, 0))
    bench.witness("G1", max(len(ready) - 1, 0))
    bench.witness("W6", max(sum(s.call.op == "wait" for s in ended) - 1, 0))


def _agree(
    story: Story, sights: Sequence[Sight], what: str, values: Sequence[Any], bench: Bench
) -> None:
    """All `values` are equal, or the first that differs is shown beside the first."""
    for sight, value in zip(sights, values, strict=True):
        if value == values[0]:
            continue
        first = sights[0]
        waits = first.call.op == sight.call.op == "wait"
        also = ["R6"]
        if "result" in (first.call.op, sight.call.op) and what == "state":
            also.append("G2")
        if waits:
            also.append("W6")
        if any((call.reply or {}).get("accepted") is False for call in story.attempts):
            # Calls came too late, were refused, and yet something changed.
            also.append("S4")
        bench.accuse(
            "G1" if what == "result" else "S5",
            f"two reads of the terminal job disagree about its {what}: it never changes",
            let=(describe(first.call), describe(sight.call)),
            calls=(story.submit, first.call, sight.call),
            also=also,
            job=story.job,
        )
        return


def _is_ready(call: Call) -> bool:
    return (call.reply or {}).get("status") == "ready"


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=repr)


# Whose result, whose request


def _owners(evidence: Evidence) -> dict[str, set[str]]:
    """Which jobs were finished with which result, where the history tells."""
    owners: dict[str, set[str]] = {}
    for story in evidence.stories.values():
        for call in story.attempts:
            if call.op == "finish" and "result" in call.args:
                owners.setdefault(_canonical(call.args["result"]), set()).add(story.job)
    return owners


def _judge_outcome(story: Story, owners: dict[str, set[str]], bench: Bench) -> None:
    """The outcome is that of the accepted call: the first writer wins."""
    winners = [c for c in story.attempts if (c.reply or {}).get("accepted") is True]
    winners = [call for call in winners if call.op != "start"]
    if len(winners) != 1:
        return
    for sight in story.sights:
        if sight.call.op not in READS or sight.state is None or not sight.state.terminal:
            continue
        wrong = _unlike(sight, winners[0], story, owners)
        if wrong is not None:
            clause, why = wrong
            bench.accuse(
                clause,
                why,
                let=(describe(winners[0]), describe(sight.call)),
                calls=(story.submit, *story.attempts, sight.call),
                job=story.job,
            )
            return
        bench.witness("S4")


def _unlike(
    sight: Sight, winner: Call, story: Story, owners: dict[str, set[str]]
) -> tuple[str, str] | None:
    """The clause and how what is read differs from what the accepted call wrote, or None."""
    reply, state = sight.call.reply or {}, sight.state
    if state is None or _OP_OF[state] != winner.op:
        return "S4", f"the job is {state} though the call that was accepted is a {winner.op}"
    if _is_ready(sight.call) and "result" in winner.args and "result" in reply:
        told = _canonical(reply["result"])
        own = _canonical(winner.args["result"])
        return None if told == own else _whose(owners.get(told, set()), story)
    losers = {
        c.args.get("error")
        for c in story.attempts
        if c is not winner and c.op in ("fail", "timeout")
    }
    error = reply.get("error")
    if error and "error" in winner.args and error != winner.args["error"] and error in losers:
        return "S4", "the error is that of a call that was refused"
    return None


def _whose(owners: set[str], story: Story) -> tuple[str, str]:
    if story.job in owners:
        return "S4", "the result is that of a call that was refused"
    if owners:
        return "G4", f"the result is that of another job, {min(owners)}"
    return "G1", "the result is not the one the job was finished with"


def _judge_requests(story: Story, bench: Bench) -> None:
    """The payload is handed out once (Q1), the task id stays (Q2)."""
    takes = [s.call for s in story.sights if s.call.op == "take_request" and s.found]
    handed = [call for call in takes if (call.reply or {}).get("payload") is not None]
    if len(handed) > 1:
        bench.accuse(
            "Q1",
            "the payload was handed out more than once",
            let=[describe(call) for call in handed[:3]],
            calls=(story.submit, *handed),
            job=story.job,
        )
    bench.witness("Q1", len(takes))
    given = story.submit.args.get("task_id") if story.submit else None
    told = [*takes, *(s.call for s in story.sights if _is_ready(s.call))]
    told = [call for call in told if "task_id" in (call.reply or {})]
    expected = given or ((told[0].reply or {})["task_id"] if told else None)
    for call in told:
        if (call.reply or {})["task_id"] != expected:
            bench.accuse(
                "Q2",
                f"the job's task id is {expected!r}",
                let=(describe(call),),
                calls=(story.submit, call),
                job=story.job,
            )
    bench.witness("Q2", len(told))


# The ledger's own clock


def _judge_clock(evidence: Evidence, bench: Bench) -> None:
    """Readings of a monotonic clock do not fall: taken in calls that were apart, they are ordered.

    A submission time was read inside its submit, a completion time inside the accepted terminal
    call; the unit does not matter.
    """
    for clock in evidence.clocks:
        readings = [r for story in evidence.stories.values() for r in _readings(story, clock)]
        by_call = sorted(readings, key=lambda r: r[0].call_us)
        by_return = sorted(readings, key=lambda r: r[0].until_us)
        best: tuple[Call, Any, Call] | None = None
        taken = 0
        for reading in by_call:
            while by_return[taken][0].until_us < reading[0].call_us:
                if best is None or by_return[taken][1] > best[1]:
                    best = by_return[taken]
                taken += 1
            if best is not None and best[1] > reading[1]:
                bench.accuse(
                    "S7",
                    f"the ledger's clock read {best[1]} in the first call and {reading[1]} in the "
                    "later one: it went back",
                    let=(describe(best[0]), describe(reading[0])),
                    calls=(best[0], best[2], reading[0], reading[2]),
                    job=reading[0].job,
                )
        bench.witness("S7", max(len(readings) - 1, 0))


def _readings(story: Story, clock: str) -> Iterable[tuple[Call, Any, Call]]:
    """The readings of the clock that snapshots tell of: (taken in which call, value, snapshot)."""
    snapshots = [s.call for s in story.sights if "submitted_at" in (s.call.reply or {})]
    if not snapshots:
        return
    submit = story.submit
    if submit is not None and submit.clock_id == clock:
        yield submit, (snapshots[0].reply or {})["submitted_at"], snapshots[0]
    done = [c for c in snapshots if (c.reply or {}).get("completed_at") is not None]
    for call in story.attempts:
        accepted = call.op != "start" and (call.reply or {}).get("accepted") is True
        if accepted and done and call.clock_id == clock:
            yield call, (done[0].reply or {})["completed_at"], done[0]
            return
