"""W1 to W3: waiters that are not woken, woken for nothing, or woken late."""

import time

from strangers.app import App
from strangers.book import LIVE, Book, now_ms
from strangers.faults import also, fault
from strangers.fronts import ThreadedFront
from strangers.messages import Parked


@fault("w1-terminal-waits", "W1 W2")
class _(Book):
    """A wait on a terminal job sleeps through its budget."""

    def watch(self, job, watcher):
        with self.lock:
            job.watchers.append(watcher)
        if not job.counted:
            super().watch(job, watcher)


@fault("w1-failed-waits", "W1 W2")
class _(Book):
    """A wait on a failed job sleeps through its budget."""

    def watch(self, job, watcher):
        if job.state != "failed" or not job.counted:
            super().watch(job, watcher)


@fault("w1-timeout-waits", "W1 W2")
class _(Book):
    """A wait on a timed-out job sleeps through its budget."""

    def watch(self, job, watcher):
        if job.state != "timeout" or not job.counted:
            super().watch(job, watcher)


@fault("w1-slow", "W1 W2")
class _(ThreadedFront):
    """Every wait takes 700 ms at least."""

    def park(self, parked):
        began_ms = now_ms()
        super().park(parked)
        if parked.job.state not in LIVE:
            time.sleep(max(0.0, began_ms + 700 - now_ms()) / 1000)


class _Sleepers(Book):
    """Wakes only for some ends."""

    wakes: tuple[str, ...] = ()

    def wake(self, job):
        if job.state in self.wakes or not job.counted:
            super().wake(job)


@fault("w2-failure-wakes-nobody", "W2 W6 H7 T5")
class _(_Sleepers):
    """Only done and timeout wake the waiters."""

    wakes = ("done", "timeout")


@fault("w2-timeout-wakes-nobody", "W2 W6 H7 T6 T1")
class _(_Sleepers):
    """Only done and failed wake the waiters."""

    wakes = ("done", "failed")


@fault("w2-done-wakes-nobody", "W2 W6 H7")
class _(_Sleepers):
    """Done wakes nobody."""

    wakes = ("failed", "timeout")


class Polling(ThreadedFront):
    """Waiters look again and again instead of being woken."""

    period_s = 1.0

    def sleep(self, done, seconds):
        until = None if seconds is None else time.monotonic() + seconds
        while not done.is_set():
            left = self.period_s if until is None else until - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(self.period_s, left))
        return True


@fault("w2-polls-each-second", "W2 W6 H7 W7")
class _(Polling):
    """Waiters look once a second."""


@fault("w2-polls-each-600-ms", "W2 W6 H7 W7")
class _(Polling):
    """Waiters look every 600 ms."""

    period_s = 0.6


class LostWakeUp(Book):
    """Looks at the state, then begins to watch."""

    window_s = 0.0

    def watch(self, job, watcher):
        if job.state not in LIVE or not job.counted:
            super().watch(job, watcher)
            return
        time.sleep(self.window_s)
        with self.lock:
            job.watchers.append(watcher)


@fault("w2-lost-wake-up", "W2 W6 H7 W7")
class _(LostWakeUp):
    """D4: looks at the state, and 10 ms later begins to watch."""

    window_s = 0.01


@fault("w2-lost-wake-up-tight", "W2 W6 H7 W7", full=True)
class _(LostWakeUp):
    """D4: looks at the state, and 1 ms later begins to watch."""

    window_s = 0.001


@fault("w2-woken-before-the-end", "W2 W4 W6 S5 H7 W3")
class _(Book):
    """Waiters are woken 10 ms before the end is published, and answer what they see."""

    def end(self, job, state, error=None, result=None):
        if job.state in LIVE and job.counted:
            with self.lock:
                self.wake(job)
            time.sleep(0.01)
        return super().end(job, state, error, result)


@fault("w2-woken-late", "W2 W6 H7")
class _(ThreadedFront):
    """Waiters are told 800 ms after the end."""

    def sleep(self, done, seconds):
        woken = done.wait(seconds)
        if woken and seconds is not None and seconds > 0.01:
            time.sleep(0.8)
        return woken


@also("w2-woken-late")
class _(App):
    """...but a wait on a terminal job is answered at once."""

    def park(self, job, budget_ms, answer):
        return answer() if job.state not in LIVE else super().park(job, budget_ms, answer)


@fault("w2-answers-as-parked", "W2 W4 W6 H7 W3 S5")
class _(App):
    """A woken waiter answers the state it saw when it began to wait."""

    def park(self, job, budget_ms, answer):
        old = answer()
        return Parked(job, budget_ms, lambda: old)


@fault("w3-start-wakes", "W3 W4")
class _(Book):
    """The start of the run wakes the waiters."""

    def begin(self, job):
        begun = super().begin(job)
        if begun and job.counted:
            with self.lock:
                self.wake(job)
        return begun


@fault("w3-start-wakes-one-of-several", "W3 W4")
class _(Book):
    """The start of the run wakes one waiter, where there are several."""

    def begin(self, job):
        begun = super().begin(job)
        with self.lock:
            if begun and job.counted and len(job.watchers) > 1:
                job.watchers.pop()()
        return begun


@fault("w4-any-end-wakes", "W4 W3 W2")
class _(Book):
    """The end of any job wakes the waiters of all."""

    def wake(self, job):
        super().wake(job)
        for other in self.live():
            super().wake(other)


@fault("w4-submit-wakes", "W4 W3 W2")
class _(Book):
    """A submit wakes all waiters."""

    def record(self, task_id, work):
        for other in self.live():
            self.wake(other)
        return super().record(task_id, work)
