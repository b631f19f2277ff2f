"""Ledgers under test, in any language: `exec:COMMAND` and `python:MODULE:FACTORY`."""

from counterfoil_conformance.errors import UsageError
from counterfoil_conformance.subjects.base import Answer, Hello, Subject, Ticket, UnsupportedOp
from counterfoil_conformance.subjects.exec import ExecSubject
from counterfoil_conformance.subjects.python import PythonSubject

__all__ = [
    "Answer",
    "ExecSubject",
    "Hello",
    "PythonSubject",
    "Subject",
    "Ticket",
    "UnsupportedOp",
    "open_subject",
]


def open_subject(text: str) -> Subject:
    """The subject that a command line names.

    Raises:
        UsageError: the text is neither form, or the factory cannot be imported.
        HarnessError: the driver does not start, or does not say hello.
    """
    kind, _, rest = text.partition(":")
    if kind == "exec" and rest.strip():
        return ExecSubject(rest)
    if kind == "python" and rest.count(":") == 1:
        return PythonSubject.load(rest)
    raise UsageError(f"not a ledger subject: {text!r} (exec:COMMAND or python:MODULE:FACTORY)")
