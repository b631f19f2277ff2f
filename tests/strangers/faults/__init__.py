"""Seeded faults: each breaks one thing of the correct stranger, and says which clauses that is.

A fault is a subclass of one part of the server with a method or two overridden, so what it breaks
can be read next to what is right. `clauses` are all those under which it may be reported without
being unjust; `should` marks faults that break only a SHOULD, where a warning is the right verdict.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from strangers.config import Config
from strangers.server import PARTS, Server

__all__ = ["FAULTS", "Fault", "also", "fault", "fault_named"]

FAMILIES = (
    "states", "admission", "identity", "retention", "handout", "waiting", "waits", "waiters",
    "getting", "items", "budget", "surface", "routes", "elapsed", "texts", "methods", "bodies",
    "contents", "connections", "steps", "keys", "upkeep", "tempo",
)  # fmt: skip


@dataclass(frozen=True)
class Fault:
    """One fault: `parts` maps a class of the server to the faulty subclass."""

    name: str
    sentence: str
    clauses: tuple[str, ...]
    should: bool
    full: bool
    process: bool
    settings: dict[str, Any]
    parts: dict[type, type] = field(default_factory=dict)

    @property
    def config(self) -> Config:
        """The configuration in which it shows."""
        return Config(**{**self.settings, "fault": self.name})


FAULTS: dict[str, Fault] = {}


def _base(part: type) -> type:
    return next(base for base in part.__mro__ if base in (*PARTS, Server))


def fault(
    name: str,
    clauses: str,
    *,
    should: bool = False,
    full: bool = False,
    process: bool = False,
    **settings: Any,
) -> Callable[[type], type]:
    """Seed the decorated subclass; its docstring is the sentence.

    Args:
        name: family and clause first, as in `r4-off`.
        clauses: ids under which it may be reported.
        should: it breaks only a SHOULD.
        full: the quick profile need not find it.
        process: it shows only to who can stop and start the server.
        settings: the configuration in which it shows.
    """

    def register(part: type) -> type:
        assert name not in FAULTS, name
        sentence = " ".join((part.__doc__ or "").split())
        assert sentence, name
        ids = tuple(clauses.split())
        parts = {_base(part): part}
        FAULTS[name] = Fault(name, sentence, ids, should, full, process, settings, parts)
        return part

    return register


def also(name: str) -> Callable[[type], type]:
    """A second part that the fault `name` needs."""

    def register(part: type) -> type:
        FAULTS[name].parts[_base(part)] = part
        return part

    return register


def fault_named(name: str) -> Fault:
    """The fault of that name."""
    return FAULTS[name]


for _family in FAMILIES:
    import_module(f"strangers.faults.{_family}")
