"""Running a program of labelled calls (see `program`) again, told call by call and judged anew.

The trap is time: what a program does not say it does not repeat. A pause is a message of its own;
how the calls of several lanes overlap is left to the run.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from counterfoil_conformance.errors import UsageError, Violation
from counterfoil_conformance.subjects.base import Subject, UnsupportedOp
from counterfoil_conformance.subjects.books import Books, Posted
from counterfoil_spec.ledger import Limits

__all__ = ["read_program", "run_program"]

Json = dict[str, Any]

# How much longer than its budget a wait may take before the next call is made.
_PATIENCE_S: Final = 10.0


def read_program(text: str) -> list[Json]:
    """The program that a command line tells.

    Raises:
        UsageError: it is not a list of messages that begins with `configure`.
    """
    try:
        program: list[Json] = json.loads(text)
    except ValueError as error:
        raise UsageError(f"--program: {error}") from error
    fits = isinstance(program, list) and all(
        isinstance(message, dict) and isinstance(message.get("op"), str) for message in program
    )
    if not fits or not program or program[0]["op"] != "configure":
        raise UsageError("--program: a JSON list of messages is wanted, `configure` first")
    return program


def run_program(subject: Subject, program: Sequence[Json], tolerance_ms: float) -> Iterator[str]:
    """Run a labelled program: a line per call, then one per broken clause, which it begins with."""
    first, *rest = program
    limits = Limits(first["max_queue"], first["job_ttl_ms"], first["max_completed"])
    books = Books(subject, limits)
    names: dict[str, str] = {}
    open_: list[Posted] = []
    try:
        for message in rest:
            yield _told(message, _step(books, message, names, open_))
        for posted in open_:
            posted.reply(_PATIENCE_S + posted.message.get("budget_ms", 0) / 1000)
    except (Violation, UnsupportedOp) as violation:
        yield str(violation)
    for accusation in books.judged(tolerance_ms).accusations:
        yield f"{accusation.clause}: {accusation.why}"


def _step(books: Books, message: Json, names: dict[str, str], open_: list[Posted]) -> Json | None:
    """Make one call; None where the answer comes later, or not at all."""
    args = {key: value for key, value in message.items() if key not in ("op", "as", "lane")}
    op, job = message["op"], args.get("job", "")
    if job.startswith("$"):
        args["job"] = names.get(job[1:], job)
    if op == "advance":
        books.advance(args["ms"])
        return {}
    if op == "pause":
        books.pause(args["ms"] / 1000)
        return {}
    if "lane" in message:
        open_.append(books.post(message["lane"], op, **args))
        return None
    if op == "wait":
        patience_s = _PATIENCE_S + args["budget_ms"] / 1000
        return books.wait(args["job"], args["budget_ms"], patience_s)
    reply = books.do(op, **args)
    if "as" in message and "job" in reply:
        names[message["as"]] = reply["job"]
    return reply


def _told(message: Json, reply: Json | None) -> str:
    told = "(later)" if reply is None else json.dumps(reply, ensure_ascii=False)
    return f"{json.dumps(message, ensure_ascii=False)} -> {told}"
