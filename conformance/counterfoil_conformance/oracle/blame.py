"""Which clause forbids an answer, given the ledger as it certainly is.

One function per kind of call. Each asks the law what the answer should be, and if the one that came
is another it names the clause, says why, and says what is allowed. Only what the contract says is
compared: unknown fields, the wording of errors and absolute times are free.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from counterfoil_spec import ledger as law
from counterfoil_spec.ledger import Job, Ledger, Outcome, State, Step

__all__ = ["UNTOLD", "Rejection", "blame_answer", "canonical"]

Reply: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Rejection:
    """An answer that the contract does not allow: the clause, why, and what would have been right.

    `also` are further clauses that the same answer breaks.
    """

    clause: str
    why: str
    allowed: tuple[str, ...] = ()
    also: tuple[str, ...] = ()


Blame: TypeAlias = Rejection | None


# In place of a payload or result of which the record does not tell the content.
UNTOLD: Final = "?"


def canonical(value: Any) -> str:
    """A value as text that is equal exactly where the JSON is."""
    return json.dumps(value, sort_keys=True, default=repr)


def blame_answer(
    ledger: Ledger, op: str, number: int, args: Mapping[str, Any], reply: Reply
) -> Blame:
    """Compare an answer with what the law says of this ledger.

    Args:
        ledger: the ledger just before the call took effect.
        op: as in a history, or `admit`.
        number: the id of the job in `ledger`, or one that is not there.
        args, reply: as in a history.
    """
    if reply.keys() == {"error"} or op not in _JUDGES:
        return None
    return _JUDGES[op](ledger, op, number, args, reply)


def _submit(ledger: Ledger, op: str, number: int, args: Mapping[str, Any], reply: Reply) -> Blame:
    del op, number
    bound, step = ledger.limits.max_queue, law.admit(ledger)
    if reply.get("rejected") is True:
        return None
    if reply.get("refused") is True:
        if step.accepted and args.get("valid") is not False:
            return Rejection("A3", f"refused at depth {ledger.depth} of {bound}", ("admitted",))
        return None
    if not step.accepted:
        return _full(bound, f"admitted at depth {ledger.depth} of {bound}")
    return None


def _full(bound: int, why: str) -> Blame:
    return Rejection("A4" if bound <= 0 else "A3", why, ("refused",))


def _transition(
    ledger: Ledger, op: str, number: int, args: Mapping[str, Any], reply: Reply
) -> Blame:
    act: Callable[..., Step] = _TRANSITIONS[op]
    step = act(ledger, number)
    accepted = reply.get("accepted") is True
    if accepted == step.accepted or (not accepted and "fence" in args):
        return None
    job = ledger.find(number)
    if not accepted:
        state = job.state if job else "unknown"
        clause = "S2" if op == "start" else "S3"
        return Rejection(clause, f"{op} refused while {state}", ("accepted",))
    if job is None:
        return Rejection("S8", f"{op} accepted for an unknown id", ("refused",))
    clause = "S2" if job.state is State.RUNNING else "S4"
    return Rejection(clause, f"{op} accepted while {job.state}", ("refused",))


def _take(ledger: Ledger, op: str, number: int, args: Mapping[str, Any], reply: Reply) -> Blame:
    del op, args
    step = law.take_request(ledger, number)
    job = step.reply.job
    if job is None or reply.get("unknown") is True:
        return _presence(job, found=reply.get("unknown") is not True)
    handed = reply.get("payload") is not None
    if handed != (step.reply.outcome is Outcome.PAYLOAD):
        how = "again" if handed else "not, the first time"
        return Rejection("Q1", f"the payload was handed out {how}", (_told(step.reply.outcome),))
    if handed and job.payload not in (UNTOLD, canonical(reply["payload"])):
        return Rejection("Q1", "the payload is not the one submitted", (str(job.payload),))
    return _task_id(job, reply)


def _snapshot(ledger: Ledger, op: str, number: int, args: Mapping[str, Any], reply: Reply) -> Blame:
    del op, args
    job = ledger.find(number)
    if job is None or reply.get("unknown") is True:
        return _presence(job, found=reply.get("unknown") is not True)
    state = reply.get("state")
    if state != str(job.state):
        known = state in {str(one) for one in State}
        return Rejection("S5" if known else "S1", f"{state} while {job.state}", (str(job.state),))
    if bool(reply.get("error")) != (job.error is not None):
        had = "with" if reply.get("error") else "without"
        return Rejection("S6", f"{job.state} {had} an error", (str(job.error),))
    return _stamps(job, reply)


def _stamps(job: Job, reply: Reply) -> Blame:
    if "completed_at" not in reply:
        return None
    born, ended = reply.get("submitted_at"), reply["completed_at"]
    if (ended is not None) != job.state.terminal:
        had = "without" if ended is None else "with"
        return Rejection("S7", f"{job.state} {had} a completion time", ("exactly when terminal",))
    if ended is not None and born is not None and ended < born:
        return Rejection("S7", f"completed at {ended}, submitted at {born}", ("not before",))
    return None


def _result(ledger: Ledger, op: str, number: int, args: Mapping[str, Any], reply: Reply) -> Blame:
    del op, args
    job, status = ledger.find(number), reply.get("status")
    if job is None or status == "not_found":
        return _presence(job, found=status != "not_found", absent="G3")
    return _not_done(job, reply) if status == "not_done" else _ready(job, reply)


def _not_done(job: Job, reply: Reply) -> Blame:
    state = reply.get("state")
    if job.state is State.DONE:
        return Rejection("G1", f"refused as {state} while done", ("ready",))
    if state != str(job.state):
        return Rejection("G2", f"refused as {state} while {job.state}", (str(job.state),))
    return None


def _ready(job: Job, reply: Reply) -> Blame:
    if job.state is not State.DONE:
        return Rejection("G2", f"a result while {job.state}", (f"not_done, {job.state}",))
    if "result" in reply and job.result not in (UNTOLD, canonical(reply["result"])):
        why = "the result is not the one the job was finished with"
        return Rejection("G1", why, (str(job.result),))
    return _task_id(job, reply)


def _wait(ledger: Ledger, op: str, number: int, args: Mapping[str, Any], reply: Reply) -> Blame:
    return _snapshot(ledger, op, number, args, reply)


def _depth(ledger: Ledger, op: str, number: int, args: Mapping[str, Any], reply: Reply) -> Blame:
    del op, number, args
    depth = reply.get("depth")
    if depth == ledger.depth:
        return None
    outside = not isinstance(depth, int) or not 0 <= depth <= max(ledger.limits.max_queue, 0)
    why = f"depth {depth} while {ledger.depth} jobs are pending or running"
    return Rejection("A2" if outside else "A1", why, (str(ledger.depth),))


def _presence(job: Job | None, *, found: bool, absent: str = "S8") -> Blame:
    """Whether the id is known. Which clause of retention it is, only the caller can tell."""
    if job is None:
        if not found:
            return None
        return Rejection(absent, "found though the id is unknown", ("unknown",))
    clause = "R9" if job.state.terminal else "R1"
    why = f"unknown though the job is {job.state} and cannot be gone"
    return Rejection(clause, why, (str(job.state),))


def _task_id(job: Job, reply: Reply) -> Blame:
    told = reply.get("task_id", job.task_id)
    if job.task_id and told != job.task_id:
        return Rejection("Q2", f"task id {told!r}", (repr(job.task_id),))
    return None


def _told(outcome: Outcome) -> str:
    return str(outcome).replace("_", " ")


_TRANSITIONS: Final[Mapping[str, Callable[..., Step]]] = {
    "start": law.start,
    "finish": law.finish,
    "fail": law.fail,
    "timeout": law.time_out,
}
_Judge: TypeAlias = Callable[[Ledger, str, int, Mapping[str, Any], Reply], Blame]
_JUDGES: Final[Mapping[str, _Judge]] = {
    "submit": _submit,
    "admit": _submit,
    "start": _transition,
    "finish": _transition,
    "fail": _transition,
    "timeout": _transition,
    "take_request": _take,
    "snapshot": _snapshot,
    "result": _result,
    "wait": _wait,
    "depth": _depth,
}
