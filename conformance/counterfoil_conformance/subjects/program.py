"""A program of calls that another run can repeat: jobs by label, not by the id they once had.

The messages a failure was found with name jobs by the ids of that run. A fresh ledger issues
others, so sent as they are they would speak of nobody. Here each submit says what its job is
called (`"as": "job0"`) and later calls name that (`"job": "$job0"`); `counterfoil replay SUBJECT
--program '[...]'` (see `rerun`) runs it on a fresh ledger.
"""

import json
import shlex
from collections.abc import Iterable, Sequence
from typing import Any, Final

from counterfoil_conformance.oracle.history import Call
from counterfoil_conformance.subjects.base import Subject

__all__ = ["command_of_program", "labelled"]

Json = dict[str, Any]

_SPELLED: Final = ("exec:", "python:")


def labelled(messages: Iterable[Json], calls: Sequence[Call]) -> tuple[Json, ...]:
    """The messages, with labels in the place of the ids that these calls were answered with."""
    submits = iter([call for call in calls if call.op == "submit"])
    ids: dict[str, str] = {}
    told: list[Json] = []
    for message in messages:
        call = next(submits, None) if message["op"] == "submit" else None
        job = None if call is None else (call.reply or {}).get("job")
        if job is not None:
            told.append({**message, "as": ids.setdefault(job, f"job{len(ids)}")})
        elif message.get("job") in ids:
            told.append({**message, "job": "$" + ids[message["job"]]})
        else:
            told.append(message)
    return tuple(told)


def command_of_program(subject: Subject, program: Sequence[Json]) -> str:
    """One command that runs a labelled program on a fresh subject and judges the answers.

    Lines that name no job need no kit: they are told as lines for the driver itself.
    """
    plain = all("as" not in message and message["op"] != "pause" for message in program)
    if plain or not subject.name.startswith(_SPELLED):
        return subject.repro([message for message in program if message["op"] != "pause"])
    text = json.dumps(program)
    return f"counterfoil replay {shlex.quote(subject.name)} --program {shlex.quote(text)}"
