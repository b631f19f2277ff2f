"""Scheduling points in the code that ships, put there from outside.

The classes of the ledger's module are changed in place while an exploration lasts: their module's
`threading` becomes the scheduler's, and their *shared fields* become descriptors that announce
each load and store. No line of the ledger is copied or rewritten, so what is explored is what runs
in production.

Which fields need a point? Not those that never change once their object is constructed, and not
those whose every access happens under one and the same lock: nobody can come between there who
could not come before the lock was taken. So an exploration begins with no points at fields at all
and watches the locks held at each access (the lockset rule of Eraser). The first access, by a
second thread, to a field that changes and that no one lock protects makes that field *shared* and
starts the exploration over. What is a point is thereby found, not declared; whatever a faulty
ledger leaves unprotected gets its points. Loading a container counts as changing it, since what
follows may.
"""

import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from types import FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

from counterfoil_conformance.schedules.scheduler import (
    FakeCondition,
    FakeLock,
    FakeThreading,
    Scheduler,
)

__all__ = ["Instruments", "NewSharedField"]

_CONTAINERS = (dict, list, set, deque, bytearray)
# Never stored to outside a constructor, and not worth watching.
_CONSTANTS = (FakeLock, FakeCondition, FunctionType, MethodType)


class NewSharedField(BaseException):
    """A field turned out to be shared; what was explored without a point there does not count.

    Not an `Exception`: no handler in the code under test may swallow it.
    """


class Instruments:
    """The points of one ledger class; `scheduler` is the one of the current execution."""

    def __init__(self) -> None:
        self.scheduler = Scheduler()
        self.shared: set[str] = set()

    @contextmanager
    def installed(self, ledger_class: type) -> Iterator[None]:
        """Instrument the ledger's class and its helpers, and take it all back at the end."""
        undo: list[Callable[[], None]] = []
        try:
            for module in _modules_of(ledger_class):
                _replace(module, "threading", FakeThreading(lambda: self.scheduler), undo)
                for cls in _own_classes(module):
                    self._instrument(cls, undo)
            yield
        finally:
            for step in reversed(undo):
                step()

    def _instrument(self, cls: type, undo: list[Callable[[], None]]) -> None:
        for name, slot in list(vars(cls).items()):
            if isinstance(slot, MemberDescriptorType):
                _replace(cls, name, _Field(self, name, slot), undo)
        if "__init__" in vars(cls):
            _replace(cls, "__init__", self._constructor(cls, undo), undo)

    def _constructor(self, cls: type, undo: list[Callable[[], None]]) -> Callable[..., None]:
        """`__init__` without points (nobody else has the object), then points for its fields."""
        original = vars(cls)["__init__"]

        def construct(instance: Any, *args: Any, **kwargs: Any) -> None:
            thread = self.scheduler.current
            if thread is not None:
                thread.quiet += 1
            try:
                original(instance, *args, **kwargs)
            finally:
                if thread is not None:
                    thread.quiet -= 1
            cls = type(instance)
            for name in getattr(instance, "__dict__", ()):
                if type(getattr(cls, name, None)) is not _Field:
                    _replace(cls, name, _Field(self, name, None), undo)

        return construct


class _Field:
    """A field whose loads and stores are scheduling points."""

    __slots__ = ("_instruments", "_name", "_slot")

    def __init__(self, instruments: Instruments, name: str, slot: Any) -> None:
        self._instruments = instruments
        self._name = name
        self._slot = slot

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        value = self._load(instance)
        thread = self._instruments.scheduler.current
        if thread is None or thread.quiet or isinstance(value, _CONSTANTS):
            return value
        self._touch(instance, isinstance(value, _CONTAINERS), "load")
        return self._load(instance)

    def __set__(self, instance: Any, value: Any) -> None:
        thread = self._instruments.scheduler.current
        if thread is not None and not thread.quiet:
            self._touch(instance, True, "store")
        if self._slot is not None:
            self._slot.__set__(instance, value)
        else:
            instance.__dict__[self._name] = value

    def _touch(self, instance: Any, changes: bool, what: str) -> None:
        """Make the access a step of its own if the field is shared; find out whether it is."""
        instruments, name = self._instruments, self._name
        scheduler = instruments.scheduler
        key = (scheduler.number_of(instance), name)
        if name in instruments.shared:
            scheduler.point(key, changes, f"{what} {name}")
        elif not scheduler.is_protected(key, changes):
            instruments.shared.add(name)
            raise NewSharedField(name)

    def _load(self, instance: Any) -> Any:
        if self._slot is not None:
            return self._slot.__get__(instance)
        try:
            return instance.__dict__[self._name]
        except KeyError:
            raise AttributeError(self._name) from None


def _modules_of(ledger_class: type) -> list[ModuleType]:
    """The modules of the class and of the classes it inherits from."""
    names = dict.fromkeys(c.__module__ for c in ledger_class.__mro__ if c is not object)
    modules = [sys.modules[name] for name in names if name not in ("builtins", "abc", "typing")]
    return [m for m in modules if getattr(m, "threading", threading) is threading]


def _own_classes(module: ModuleType) -> list[type]:
    """The classes that a module defines and whose objects can change."""
    return [
        value
        for value in vars(module).values()
        if isinstance(value, type)
        and value.__module__ == module.__name__
        and not issubclass(value, (tuple, Enum, BaseException))
    ]


def _replace(holder: Any, name: str, new: Any, undo: list[Callable[[], None]]) -> None:
    missing = object()
    old = vars(holder).get(name, missing)
    setattr(holder, name, new)
    undo.append(lambda: delattr(holder, name) if old is missing else setattr(holder, name, old))
