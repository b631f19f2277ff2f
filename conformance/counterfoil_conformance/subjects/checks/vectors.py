"""Vectors on a subject: each sequence on a fresh ledger, each answer against what is expected.

The same answers are judged by the oracle as well, so a file of somebody else's sequences, without
`expect`, is judged too. Without a driven clock the sequences that move it are left out.
"""

import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from counterfoil_conformance.errors import UsageError, Violation
from counterfoil_conformance.subjects.books import NEVER_MS, Books, Rejected
from counterfoil_conformance.subjects.registry import Context, check
from counterfoil_conformance.vectors import FORMAT, load_shipped
from counterfoil_spec.clauses import CLAUSES
from counterfoil_spec.ledger import Limits

__all__ = ["load_vectors", "run_sequence", "vectors_cover_the_law"]

Json = dict[str, Any]

_NOT_ARGS: Final = frozenset({"op", "as", "expect", "clauses"})
# One wait that sleeps on may be the machine's; as many sequences as these settle it.
_ENOUGH_SLEPT: Final = 4
_CLAUSES: Final = (
    "S1 S2 S3 S4 S5 S6 S8 S9 A1 A2 A3 A4 A5 A6 A8 A10 R1 R3 R4 R6 R7 R9 Q1 Q2 W1 W4 W7 G1 G2 G3"
)


@check(_CLAUSES)
def vectors_cover_the_law(ctx: Context) -> None:
    """Every class of (state, action, outcome) that the law can reach, or the user's own file."""
    path = ctx.options.vectors
    document = load_vectors(Path(path)) if path else load_shipped()
    broken: set[str] = set()
    slept = 0
    for sequence in document["sequences"]:
        try:
            slept += run_sequence(ctx, sequence, asleep=slept >= _ENOUGH_SLEPT)
        except Rejected as rejected:
            if rejected.clause not in broken:
                ctx.reject(rejected)
            broken.add(rejected.clause)
        except Violation as violation:
            if violation.clause not in broken:
                ctx.fail(violation.clause, violation.why)
            broken.add(violation.clause)


def load_vectors(path: Path) -> Json:
    """A file of sequences.

    Raises:
        UsageError: it cannot be read, or is in no format that we know.
    """
    try:
        document = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"--vectors {path}: {error}") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise UsageError(f"--vectors {path}: not a document of format {FORMAT!r}")
    faults = [_fault_of(sequence) for sequence in document.get("sequences") or [None]]
    if any(faults):
        raise UsageError(f"--vectors {path}: {next(fault for fault in faults if fault)}")
    return document


def _fault_of(sequence: Any) -> str:
    """What is wrong with a sequence of a file, or nothing."""
    if not isinstance(sequence, dict) or not isinstance(sequence.get("steps"), list):
        return f"a sequence needs `limits` and `steps`: {str(sequence)[:80]}"
    limits = sequence.get("limits")
    keys = ("max_queue", "job_ttl_ms", "max_completed")
    if not isinstance(limits, dict) or not all(isinstance(limits.get(k), int) for k in keys):
        return f"`limits` needs the integers {', '.join(keys)}: {str(limits)[:80]}"
    for step in sequence["steps"]:
        if not isinstance(step, dict) or not isinstance(step.get("op"), str):
            return f"a step needs an `op`: {str(step)[:80]}"
        if strange := [id_ for id_ in step.get("clauses", []) if id_ not in CLAUSES]:
            return f"no such clause: {strange[0]}"
    return ""


def run_sequence(ctx: Context, sequence: Json, *, asleep: bool = False) -> bool:
    """Run one sequence; whether a wait slept through what it need not have waited for.

    The judge tells that. Further such waits would only cost time: `asleep` leaves them out.

    Raises:
        Violation: an answer is none of those expected, or none the oracle allows.
    """
    driven = ctx.subject.can("clock")
    moves = any(step["op"] == "advance" for step in sequence["steps"])
    if moves and not driven:
        return False
    limits = Limits(**{key: sequence["limits"][key] for key in sequence["limits"]})
    walk = _Walk(ctx, ctx.books(limits if driven else limits._replace(job_ttl_ms=NEVER_MS)))
    for step in sequence["steps"]:
        if not (asleep and step["op"] == "wait" and step["budget_ms"] > 1):
            walk.take(step, str(sequence.get("name", "")))
    if walk.surprise:
        ctx.fail("R5", f"not the oldest was evicted: {walk.surprise}", should=True)
    return walk.slept


@dataclass(slots=True)
class _Walk:
    """A sequence under way.

    The vectors evict the oldest, which is no more than a SHOULD (R5). `surprise` is the answer, if
    any, that the law allows and the vector does not: from there on the oracle alone, which knows
    every choice of victims, judges the rest of the sequence.
    """

    ctx: Context
    books: Books
    names: dict[str, str] = field(default_factory=dict)
    surprise: str = ""
    slept: bool = False

    def take(self, step: Json, name: str) -> None:
        """Take one step.

        Raises:
            Violation: the answer is none of those expected, or none the oracle allows.
        """
        if step["op"] == "advance":
            self.books.advance(int(step["ms"]))
            return
        reply = self._answer(step, name)
        if self.surprise:
            return
        expected, clauses = step.get("expect", []), step.get("clauses", [])
        if expected and not any(_fits(reply, one, self.names) for one in expected):
            wanted = " or ".join(json.dumps(one) for one in expected)
            why = f"{name}: {step['op']} answered {json.dumps(reply)}, allowed: {wanted}"
            other_victim = _is_gone(reply) != any(_is_gone(one) for one in expected)
            if not other_victim or not self._judged_by_oracle:
                raise Violation(clauses[0] if clauses else "S1", why)
            self.surprise = why
        elif clauses:
            self.ctx.ok(" ".join(clauses))

    @property
    def _judged_by_oracle(self) -> bool:
        oracle = self.books.sequential
        return oracle is not None and not oracle.undecided

    def _answer(self, step: Json, name: str) -> Json:
        args = {key: value for key, value in step.items() if key not in _NOT_ARGS}
        if "job" in args:
            args["job"] = _named(args["job"], self.names)
        if step["op"] == "wait":
            began, budget_ms = time.monotonic(), args["budget_ms"]
            waited = self.books.wait(args["job"], budget_ms)
            self.slept |= budget_ms > 1 and time.monotonic() - began > 0.8 * budget_ms / 1000
            if waited is None:
                self.ctx.subject.restart()
                clause = "W1" if args["budget_ms"] > 1 else "W4"
                raise Violation(clause, f"{name}: the wait never returned")
            return waited
        reply = self.books.do(step["op"], **args)
        if "as" in step and "job" in reply:
            self.names[step["as"]] = reply["job"]
        return reply


def _is_gone(reply: Json) -> bool:
    return reply.get("unknown") is True or reply.get("status") == "not_found"


def _named(job: str, names: dict[str, str]) -> str:
    return names.get(job[1:], job) if job.startswith("$") else job


def _fits(reply: Json, expected: Json, names: dict[str, str]) -> bool:
    """Whether the reply has all fields of the expected one; empty errors are no errors."""
    if expected.get("accepted") is False and reply.get("unknown"):
        return True
    for key, value in expected.items():
        told = reply.get(key)
        if key == "job" and isinstance(value, str):
            if told is None or told != _named(value, names):
                return False
        elif key == "error" and not value:
            if told:
                return False
        elif told != value:
            return False
    return True
