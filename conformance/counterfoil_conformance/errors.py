"""Whose fault is it? Three exceptions, so that nobody is blamed for another's mistake.

`SpecError`: the contract's own data is inconsistent, our fault. `HarnessError`: the kit, its
configuration or the way to the subject failed; reported as ERROR with exit code 3, never as the
subject's FAIL. `UsageError`: the user asked for something that cannot be; exit code 2.
`Violation`: the subject broke a clause.
"""

__all__ = ["HarnessError", "SpecError", "UsageError", "Violation"]


class SpecError(Exception):
    """The spec contradicts itself."""


class HarnessError(Exception):
    """The kit could not do its work; says nothing about the subject."""


class UsageError(Exception):
    """Bad input to the kit: the message names what, where and what is allowed."""


class Violation(Exception):
    """The subject did something that a clause forbids."""

    def __init__(self, clause: str, why: str) -> None:
        super().__init__(f"{clause}: {why}")
        self.clause = clause
        self.why = why
