"""Virtual threads: one runs at a time, and hands over only where two threads could notice.

A virtual thread is a greenlet. Before each *step* that another thread could see or prevent (taking
a lock, loading or storing a shared field, sleeping, waking) it announces the step and hands over to
the scheduler, which resumes whichever thread it likes. An execution is therefore the list of its
choices, and the same list gives the same execution.

A step announces its *footprint*: which thing it touches, and whether it changes it. Two steps of
different threads commute unless they touch one thing and one of them changes it; the explorer
needs no more to leave out orders that cannot differ. Calling and returning from an operation are
steps on one thing called `TIME`, since the judge looks at which operation ended before which began.

Giving a lock back is part of the step before it: whoever wants the lock could not move in between,
and every other step commutes with it. (That is why trying a lock without blocking is refused: it
could tell the difference.)

Sleeping takes no time here. A wait with a timeout may end by its timer at any moment the explorer
chooses, so every budget is covered at once; how long it would have been is added up in `slept_s`.

The trap is what looks atomic: code between two announcements runs unseen. What is announced is
decided in `instrument`, and checked there.
"""

import threading as real_threading
from collections.abc import Callable
from enum import Enum, auto
from typing import Any, Final, NamedTuple, Self, TypeAlias

from greenlet import GreenletExit, getcurrent, greenlet

from counterfoil_conformance.errors import HarnessError

__all__ = [
    "TIME",
    "Choice",
    "FakeCondition",
    "FakeLock",
    "FakeThreading",
    "Footprint",
    "Scheduler",
    "VirtualThread",
]

Key: TypeAlias = tuple[int, str]
Footprint: TypeAlias = tuple[Key, bool]

TIME: Final[Key] = (-1, "time")


class Choice(NamedTuple):
    """Which thread takes the next step; `timer` when it is its wait's timer that goes off."""

    thread: int
    timer: bool = False

    def __str__(self) -> str:
        return f"{self.thread}{'t' if self.timer else ''}"


class _Pause(Enum):
    """What a thread needs before it can take its announced step."""

    NOTHING = auto()
    LOCK = auto()
    WAKE = auto()


class VirtualThread:
    """One thread of a scenario, paused before its next step."""

    __slots__ = (
        "footprint",
        "greenlet",
        "held",
        "label",
        "lock",
        "needs",
        "number",
        "quiet",
        "slept_s",
        "timed",
        "timer_rang",
        "woken",
    )

    def __init__(self, number: int, body: Callable[[], None]) -> None:
        self.number = number
        self.greenlet = greenlet(body)
        self.footprint: Footprint = (TIME, False)
        self.label = ""
        self.needs = _Pause.NOTHING
        self.lock: FakeLock | None = None
        self.timed = False
        self.woken = False
        self.timer_rang = False
        self.slept_s = 0.0
        self.quiet = 0
        self.held: list[int] = []


class Scheduler:
    """Runs the virtual threads of one execution, step by step."""

    def __init__(self) -> None:
        self.threads: list[VirtualThread] = []
        self.current: VirtualThread | None = None
        self._main = getcurrent()
        self._numbers: dict[int, int] = {}
        self._kept: list[object] = []
        self._accesses: dict[Key, _Accesses] = {}
        self.is_over = False

    def spawn(self, body: Callable[[], None]) -> None:
        """Add a thread and run it up to its first step."""
        thread = VirtualThread(len(self.threads), body)
        self.threads.append(thread)
        self._resume(thread)

    def enabled(self) -> list[tuple[Choice, Footprint]]:
        """The steps that can be taken now, by thread; a timer only of one that still sleeps."""
        found = []
        for thread in self.threads:
            if thread.greenlet.dead:
                continue
            needs = thread.needs
            if needs is _Pause.NOTHING or (needs is _Pause.LOCK and _is_free(thread)):
                found.append((Choice(thread.number), thread.footprint))
            elif needs is _Pause.WAKE:
                if thread.woken:
                    found.append((Choice(thread.number), thread.footprint))
                elif thread.timed:
                    found.append((Choice(thread.number, timer=True), thread.footprint))
        return found

    def step(self, choice: Choice) -> None:
        """Let one thread take its announced step and run to the next."""
        thread = self.threads[choice.thread]
        if choice.timer:
            thread.timer_rang = True
        self._resume(thread)

    def unfinished(self) -> list[VirtualThread]:
        """The threads that have not ended."""
        return [thread for thread in self.threads if not thread.greenlet.dead]

    def abandon(self) -> None:
        """End every thread where it stands."""
        self.current = None
        self.is_over = True
        for thread in self.unfinished():
            thread.greenlet.throw(GreenletExit)

    # Called from inside virtual threads

    def point(self, key: Key, changes: bool, label: str = "") -> None:
        """Announce a step and hand over; returns when it is this thread's turn."""
        thread = self.current
        if thread is None or thread.quiet:
            return
        self._pause(thread, (key, changes), _Pause.NOTHING, label)

    def is_protected(self, key: Key, changes: bool) -> bool:
        """Note an access; whether one lock has been held at all accesses of the thing so far."""
        thread = self.current
        assert thread is not None
        seen = self._accesses.get(key)
        if seen is None:
            self._accesses[key] = _Accesses(thread.number, set(thread.held), changes)
            return True
        seen.locks.intersection_update(thread.held)
        seen.by_many |= thread.number != seen.first
        seen.changed |= changes
        return bool(seen.locks) or not (seen.by_many and seen.changed)

    def number_of(self, thing: object) -> int:
        """A number for an object: the same in every execution that begins with the same steps."""
        number = self._numbers.get(id(thing))
        if number is None:
            number = self._numbers[id(thing)] = len(self._numbers)
            self._kept.append(thing)
        return number

    def pause_for_lock(self, lock: "FakeLock") -> None:
        """Announce taking a lock; returns when it is free and it is this thread's turn."""
        thread = self.current
        if thread is None:
            if lock.holder is not None:
                raise HarnessError("a lock is still held after every thread has ended")
            return
        thread.lock = lock
        self._pause(thread, (lock.key, True), _Pause.LOCK, f"take {lock.name}")

    def sleep(self, key: Key, timeout_s: float | None, label: str) -> bool:
        """Sleep until woken, or until the timer goes off; whether it was a wake-up."""
        thread = self.current
        if thread is None:
            return False
        thread.woken = thread.timer_rang = False
        thread.timed = timeout_s is not None
        self._pause(thread, (key, True), _Pause.WAKE, label)
        if thread.timer_rang:
            thread.slept_s += timeout_s or 0.0
        return not thread.timer_rang

    def _pause(
        self, thread: VirtualThread, footprint: Footprint, needs: _Pause, label: str
    ) -> None:
        thread.footprint, thread.needs, thread.label = footprint, needs, label
        self._main.switch()

    def _resume(self, thread: VirtualThread) -> None:
        self.current = thread
        thread.greenlet.switch()
        self.current = None


class _Accesses:
    """Who has touched a thing, and which locks were held every time."""

    __slots__ = ("by_many", "changed", "first", "locks")

    def __init__(self, first: int, locks: set[int], changed: bool) -> None:
        self.first = first
        self.locks = locks
        self.changed = changed
        self.by_many = False


def _is_free(thread: VirtualThread) -> bool:
    lock = thread.lock
    return lock is not None and (lock.holder is None or lock.reenters(thread))


class FakeLock:
    """`threading.Lock`, as steps of the scheduler."""

    reentrant = False

    def __init__(self, scheduler: Scheduler, name: str = "lock") -> None:
        self._scheduler = scheduler
        self.key: Key = (scheduler.number_of(self), "lock")
        self.name = f"{name} {self.key[0]}"
        self.holder: VirtualThread | str | None = None
        self._times = 0

    def reenters(self, thread: VirtualThread) -> bool:
        """Whether the thread that asks is the one that holds it, and may again."""
        return self.reentrant and self.holder is thread

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take the lock."""
        if not blocking or timeout != -1:
            raise HarnessError("taking a lock without blocking, or with a timeout, is not modelled")
        self._scheduler.pause_for_lock(self)
        me = self._scheduler.current
        self.holder = me or "outside"
        self._times += 1
        if me is not None:
            me.held.append(self.key[0])
        return True

    def release(self) -> None:
        """Give the lock back, within the current step."""
        if self._scheduler.is_over:
            return
        if self.holder is None:
            raise RuntimeError("release unlocked lock")
        if isinstance(self.holder, VirtualThread):
            self.holder.held.remove(self.key[0])
        self._times -= 1
        if self._times == 0:
            self.holder = None

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *exc: object) -> None:
        self.release()


class _RLock(FakeLock):
    """`threading.RLock`."""

    reentrant = True


class FakeCondition:
    """`threading.Condition`: its lock and its sleepers are one thing to the scheduler."""

    def __init__(self, scheduler: Scheduler, lock: FakeLock | None = None) -> None:
        self._scheduler = scheduler
        self._lock = lock or _RLock(scheduler, "condition")
        self._sleepers: list[VirtualThread] = []
        self.acquire = self._lock.acquire
        self.release = self._lock.release

    def __enter__(self) -> Self:
        self._lock.acquire()
        return self

    def __exit__(self, *exc: object) -> None:
        self._lock.release()

    def wait(self, timeout: float | None = None) -> bool:
        """Sleep; False when it was the timer that ended it."""
        me = self._scheduler.current
        if me is None:
            return False
        self._scheduler.point(self._lock.key, changes=True, label="fall asleep")
        self._sleepers.append(me)
        while self._lock.holder is me:
            self._lock.release()
        woken = self._scheduler.sleep(self._lock.key, timeout, "sleep")
        if me in self._sleepers:
            self._sleepers.remove(me)
        self._lock.acquire()
        return woken

    def wait_for(self, predicate: Callable[[], Any], timeout: float | None = None) -> Any:
        """Sleep until the predicate holds, or the timer goes off."""
        while not (held := predicate()):
            if not self.wait(timeout):
                return predicate()
        return held

    def notify(self, n: int = 1) -> None:
        """Wake up to `n` sleepers."""
        self._scheduler.point(self._lock.key, changes=True, label="notify")
        for sleeper in self._sleepers[:n]:
            sleeper.woken = True
        del self._sleepers[:n]

    def notify_all(self) -> None:
        """Wake all sleepers."""
        self.notify(len(self._sleepers) or 1)


class _Event:
    """`threading.Event`."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._condition = FakeCondition(scheduler)
        self._set = False

    def is_set(self) -> bool:
        """Whether it is set."""
        with self._condition:
            return self._set

    def set(self) -> None:
        """Set it, and wake all who wait."""
        with self._condition:
            self._set = True
            self._condition.notify_all()

    def clear(self) -> None:
        """Unset it."""
        with self._condition:
            self._set = False

    def wait(self, timeout: float | None = None) -> bool:
        """Sleep until it is set, or the timer goes off."""
        with self._condition:
            return bool(self._condition.wait_for(lambda: self._set, timeout))


class FakeThreading:
    """Stands in for the `threading` module where the code under test looks it up."""

    def __init__(self, scheduler_now: Callable[[], Scheduler]) -> None:
        self._now = scheduler_now

    def Lock(self) -> FakeLock:  # noqa: N802 - the names of `threading`
        return FakeLock(self._now())

    def RLock(self) -> _RLock:  # noqa: N802
        return _RLock(self._now())

    def Condition(self, lock: FakeLock | None = None) -> FakeCondition:  # noqa: N802
        return FakeCondition(self._now(), lock)

    def Event(self) -> _Event:  # noqa: N802
        return _Event(self._now())

    def __getattr__(self, name: str) -> Any:
        if name in ("Semaphore", "BoundedSemaphore", "Barrier", "Thread", "Timer"):
            raise HarnessError(f"threading.{name} is not modelled by the schedule explorer")
        return getattr(real_threading, name)
