"""A7 to A11: invalid requests that take places, ids that come again or hide, leaks."""

import hashlib
import itertools
import secrets
import time

from strangers.app import App
from strangers.book import Book, now_ms
from strangers.conversation import Conversation, Gone
from strangers.faults import also, fault
from strangers.faults.admission import LeakyBook
from strangers.intake import Intake, Refusal


class _Invalid(App):
    """Refused bodies take a place, for a while or for good."""

    status, for_ms = 0, 0.0

    def finish(self, response):
        if response.status == self.status:
            with self.book.lock:
                self.book.depth += 1
            if self.for_ms:
                self.pool.alarm.at(now_ms() + self.for_ms, self.give_back)
        return super().finish(response)

    def give_back(self):
        with self.book.lock:
            self.book.depth -= 1


@fault("a7-400-takes-a-place", "A7 A11 A3 A5 H12 E1")
class _(_Invalid):
    """A body that is not JSON takes a place for good."""

    status = 400


@fault("a7-422-takes-a-place", "A7 A11 A3 A5 H12 A2")
class _(_Invalid):
    """A body that is not valid takes a place for 500 ms."""

    status, for_ms = 422, 500.0


@fault("a7-413-takes-a-place", "A7 A11 A3 A5 H12")
class _(_Invalid):
    """A body that is too large takes a place for good."""

    status = 413


@fault("a7-415-takes-a-place", "A7 A11 A3 A5 H12 A2")
class _(_Invalid):
    """A wrong media type takes a place for 500 ms."""

    status, for_ms = 415, 500.0


@fault("a7-401-takes-a-place", "A7 A11 A3 A5 K1 H12", token="s3cret")
class _(_Invalid):
    """A submit without the token takes a place for good."""

    status = 401


class _BadField(Intake):
    """Refuses as usual, and lets the app know what for."""

    pointer = ""

    def faults(self, value):
        faults = super().faults(value)
        if any(pointer == self.pointer for pointer, _ in faults):
            raise Refusal(422, "takes a place", faults)
        return faults


class _ForOneField(_Invalid):
    """A 422 for one field alone takes a place for 300 ms."""

    for_ms = 300.0

    def finish(self, response):
        said = response.payload.get("error") if isinstance(response.payload, dict) else ""
        self.status = response.status if said == "takes a place" else 0
        return super().finish(response)


@fault("a7-req-id-takes-a-place", "A7 A11 A3 A5 A2")
class _(_BadField):
    """A `req_id` that is no string takes a place for 300 ms."""

    pointer = "/req_id"


@also("a7-req-id-takes-a-place")
class _(_ForOneField):
    """...then it is given back."""


@fault("a7-options-take-a-place", "A7 A11 A3 A5 A2")
class _(_BadField):
    """`options` that are no object take a place for 300 ms."""

    pointer = "/options"


@also("a7-options-take-a-place")
class _(_ForOneField):
    """...then it is given back."""


@fault("a7-401-takes-a-place-for-a-while", "A7 A11 A3 A5 A2 K1", token="s3cret")
class _(_Invalid):
    """A submit without the token takes a place for 150 ms."""

    status, for_ms = 401, 150.0


@fault("a7-413-takes-a-place-for-a-while", "A7 A11 A3 A5 A2")
class _(_Invalid):
    """A body over the limit takes a place for 200 ms."""

    status, for_ms = 413, 200.0


@fault("a7-reserves-first", "A7 A11 A3 A5 A2", full=True)
class _(App):
    """A place is reserved before the body is read, and given back if it is refused."""

    def on_submit(self, request, route):
        with self.book.lock:
            if not self.book.has_room():
                return self.answers.full()
            self.book.depth += 1
        try:
            time.sleep(0.01)
            self.intake.read(request.body)
        except Refusal as refusal:
            return self.answers.refusal(refusal)
        finally:
            with self.book.lock:
                self.book.depth -= 1
        return super().on_submit(request, route)


@fault("a8-evicted-id-again", "A8 R7")
class _(Book):
    """The id of an evicted job is given to a later one."""

    def drop(self, job):
        super().drop(job)
        self.__dict__.setdefault("free", []).append(job.id)

    def new_id(self):
        free = self.__dict__.get("free", [])
        return free.pop(0) if len(free) > 2 else super().new_id()


@fault("a8-req-id-is-idempotent", "A8 A3")
class _(Book):
    """A repeated `req_id` is answered with the job it made the first time."""

    def record(self, task_id, work):
        known = self.__dict__.setdefault("known", {})
        old = known.get(task_id)
        if old is not None and old.id in self.table:
            self.depth -= 1
            return old
        known[task_id] = super().record(task_id, work)
        return known[task_id]


@fault("a8-clock-ids", "A8 A9 G4 A2 A3 A11")
class _(Book):
    """The id is the time in ms, so two submits of one ms share it."""

    def new_id(self):
        return f"job_{time.time_ns() // 1_000_000:032x}"


@fault("a8-ids-wrap", "A8 A9 R7 S5")
class _(Book):
    """The id is a number that wraps after 24."""

    numbers = itertools.count()

    def new_id(self):
        return f"job_{hashlib.sha256(b'%d' % (next(self.numbers) % 24)).hexdigest()}"


@fault("a8-content-hash", "A8 A9 A2 A3 A11 G4")
class _(Book):
    """The id is a hash of the images, so equal requests share it."""

    def record(self, task_id, work):
        self.digest = hashlib.sha256(repr(work).encode()).hexdigest()
        return super().record(task_id, work)

    def new_id(self):
        return f"job_{getattr(self, 'digest', '0')}"


@fault("a9-sequential", "A9", should=True)
class _(Book):
    """Ids are numbers in a row."""

    numbers = itertools.count(1)

    def new_id(self):
        return f"job_{next(self.numbers):08d}"


@fault("a9-short", "A9", should=True)
class _(Book):
    """Ids have 40 random bits."""

    def new_id(self):
        return "job_" + secrets.token_hex(5)


@fault("a9-counter-behind-constant", "A9", should=True)
class _(Book):
    """Ids are long, but only their end changes, by one."""

    numbers = itertools.count(secrets.randbits(40))

    def new_id(self):
        return f"job_5e0f1c9ab37744d2a1{next(self.numbers):014x}"


@fault("a9-no-prefix", "A9", should=True)
class _(Book):
    """Ids do not begin with `job_`."""

    def new_id(self):
        return "task-" + secrets.token_hex(16)


class _Hidden(App):
    """Some routes do not find a job just after it was admitted."""

    hidden_ms, kinds = 30.0, ("status", "wait", "result")

    def hides(self, job):
        return now_ms() - job.admitted_ms < self.hidden_ms

    def answer(self, request):
        route = self.route(request.head)
        job = self.book.find(route.job_id)
        if job and route.kind in self.kinds and self.hides(job):
            return self.finish(self.unknown(route))
        return super().answer(request)


@fault("a10-window", "A10 R1 S5 R9 R7 S8 G3 H3")
class _(_Hidden):
    """For 30 ms after the 202 the job is not found."""


@fault("a10-window-of-result", "A10 R1 S5 G2 H2 R9 R7 H3")
class _(_Hidden):
    """For 30 ms after the 202 `/result` is 404."""

    kinds = ("result",)


@fault("a10-window-of-wait", "A10 R1 S5 W7 R9 R7 W2 W4")
class _(_Hidden):
    """For 30 ms after the 202 `/wait` is 404."""

    kinds = ("wait",)


@fault("a10-window-tight", "A10 R1 S5 R9 R7 S8 G3 H3 H2")
class _(_Hidden):
    """For 3 ms after the 202 the job is not found."""

    hidden_ms = 3.0


@fault("a10-pending-is-unknown", "A10 R1 S5 R9 R7 H2 T1")
class _(_Hidden):
    """A job is found only once it has started."""

    def hides(self, job):
        return job.state == "pending"


@fault("a10-moves-between-tables", "A10 R1 S5 R9 R7 W2 W7 G3 S6 G1")
class _(Book):
    """At its end a job is for 15 ms in no table."""

    def end(self, job, state, error=None, result=None):
        found = self.table.pop(job.id, None)
        if found:
            time.sleep(0.015)
            self.table[job.id] = found
        return super().end(job, state, error, result)


@fault("a11-tenth-keeps-its-place", "A11 A5 A3 M1 Q4")
class _(LeakyBook):
    """Every tenth job keeps its place."""

    ended = 0

    def leaks(self, job):
        self.ended += 1
        return self.ended % 10 == 0


@fault("a11-abort-leaks", "A11 A5 A3 M1 W8")
class _(Conversation):
    """Whoever leaves before the answer takes a place for good."""

    def send(self, response, head, close):
        if head and "/jobs" in head.path and (yield Gone()):
            with self.app.book.lock:
                self.app.book.depth += 1
        return (yield from super().send(response, head, close))
