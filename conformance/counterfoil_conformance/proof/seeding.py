"""Seeding a defect: a function of the law (or of the shipped code) is replaced by a faulty one.

The replacement is made wherever the original is bound, because a module that imported the name has
a binding of its own. It lasts for the life of the process: seed only in a child that is thrown
away, or inside `seeded`.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final, TypeAlias

from counterfoil_conformance.errors import HarnessError

__all__ = ["DEFECTS", "SeededDefect", "defect", "reaches", "seed", "seeded"]

Function: TypeAlias = Callable[..., Any]

_OURS = "counterfoil_"
_FAULTY = "counterfoil_conformance.proof.defects"


@dataclass(frozen=True, slots=True)
class SeededDefect:
    """A faulty function, and the one it stands in for."""

    name: str
    original: Function
    faulty: Function

    @property
    def of(self) -> str:
        """The name of the function that it breaks."""
        return self.original.__name__

    @property
    def sentence(self) -> str:
        """What is wrong with it."""
        return " ".join((self.faulty.__doc__ or "").split())


DEFECTS: Final[dict[str, SeededDefect]] = {}


def defect(original: Function) -> Callable[[Function], Function]:
    """Enter a faulty function into the table of seeded defects."""

    def enter(faulty: Function) -> Function:
        name = faulty.__name__
        assert name not in DEFECTS
        DEFECTS[name] = SeededDefect(name, original, faulty)
        return faulty

    return enter


def seed(chosen: SeededDefect) -> None:
    """Replace the function for the rest of this process."""
    _rebind(chosen.original, chosen.faulty)


@contextmanager
def seeded(chosen: SeededDefect) -> Iterator[None]:
    """Replace the function for a while."""
    places = _rebind(chosen.original, chosen.faulty)
    try:
        yield
    finally:
        for module, name in places:
            setattr(module, name, chosen.original)


def _rebind(original: Function, new: Function) -> list[tuple[ModuleType, str]]:
    places = [
        (module, name)
        for key, module in list(sys.modules.items())
        # The faulty functions themselves go on calling the original.
        if key.startswith(_OURS) and not key.startswith(_FAULTY) and key != new.__module__
        for name, value in list(vars(module).items())
        if value is original
    ]
    if not places:
        raise HarnessError(f"{original.__name__} is bound nowhere")
    for module, name in places:
        setattr(module, name, new)
    return places


def reaches(start: Function, target: Function) -> bool:
    """Whether calling `start` may come to call `target`, judged by the names in their code."""
    seen: set[Function] = set()
    queue = [start]
    while queue:
        function = queue.pop()
        if function is target:
            return True
        if function not in seen and isinstance(function, FunctionType):
            seen.add(function)
            queue += _named_in(function.__code__, function.__globals__)
    return False


def _named_in(code: CodeType, scope: dict[str, Any]) -> list[Function]:
    """Our functions that a code object names, itself or through a module it names."""
    modules = [scope[name] for name in code.co_names if isinstance(scope.get(name), ModuleType)]
    found = [
        vars(space).get(name) if isinstance(space, ModuleType) else space.get(name)
        for name in code.co_names
        for space in (scope, *modules)
    ]
    functions: list[Function] = [
        one for one in found if isinstance(one, FunctionType) and one.__module__.startswith(_OURS)
    ]
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            functions += _named_in(constant, scope)
    return functions
