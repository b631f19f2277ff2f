"""S: states that are none, go back, change after the end, tear, or never end."""

import time

from strangers.answers import Answers
from strangers.book import LIVE, Book, Job, View, now_ms
from strangers.conversation import Conversation
from strangers.faults import also, fault
from strangers.messages import Response
from strangers.workers import Pool


@fault("s1-born-running", "S1 H3")
class _(Answers):
    """The 202 says `running`."""

    def admitted(self, job):
        response = super().admitted(job)
        response.payload["state"] = "running"
        return response


class _Renaming(Answers):
    names: dict[str, str] = {}

    def renamed(self, view):
        return view._replace(state=self.names.get(view.state, view.state))

    def status(self, view):
        return super().status(self.renamed(view))

    def not_done(self, view):
        return super().not_done(self.renamed(view))


@fault("s1-queued", "S1 G2 H2 W4")
class _(_Renaming):
    """Pending is called `queued`."""

    names = {"pending": "queued"}


@fault("s1-success", "S1 S6")
class _(_Renaming):
    """Done is called `success`."""

    names = {"done": "success"}


@fault("s1-upper-case", "S1 G2 H2 W4")
class _(_Renaming):
    """Running is called `RUNNING`."""

    names = {"running": "RUNNING"}


@fault("s1-error-state", "S1 T5 S5")
class _(_Renaming):
    """A crashed job is in a state of its own, `error`."""

    def renamed(self, view):
        crashed = (view.error or "").startswith("crashed")
        return view._replace(state="error") if crashed else view


@fault("s1-cancelled", "S1 T1 T6 S5")
class _(_Renaming):
    """A job past its budget is `cancelled`."""

    names = {"timeout": "cancelled"}


@fault("s4-late-result-wins", "S4 T2 S5 R6 T6")
class _(Book):
    """A result that arrives after the timeout makes the job done."""

    def end_again(self, job, state, error, result):
        job.error, job.result, job.state = error, result, state
        return False


@fault("s4-late-failure-wins", "S4 T2 S5 R6 T6")
class _(Book):
    """A failure that arrives after the timeout makes the job failed; a late success is dropped."""

    def end_again(self, job, state, error, result):
        if state == "failed":
            job.error, job.state = error, state
        return False


@fault("s4-late-error-text", "S4 T2 S5 R6")
class _(Book):
    """A late failure replaces the error text of the timeout."""

    def end_again(self, job, state, error, result):
        job.error = error or job.error
        return False


@fault("s4-late-renews-retention", "S4 R3 T2 H8", full=True)
class _(Book):
    """A late end sets the completion time again, so the job is retained for longer."""

    def end_again(self, job, state, error, result):
        job.completed_ms = now_ms()
        return False


@fault("s4-timeout-after-done", "S4 S5 R6 G1 G2 S6")
class _(Pool):
    """The budget's alarm turns a done job into a timeout: nobody asks whether it ended."""

    def expire(self, job):
        if job.counted and job.state == "done":
            job.state, job.error, job.result = "timeout", "too late", None
        super().expire(job)


@fault("s5-stale-copy", "S5 S6 G1 G2 W1 W2 W6 A5 R6 H2 H8 A10")
class _(Book):
    """Every third read is served from a copy that may be 150 ms old."""

    copies: dict = {}
    reads = 0

    def look(self, id_):
        with self.lock:
            self.reads += 1
            made, view = self.copies.get(id_, (0, None))
            if view is not None and self.reads % 3 == 0 and now_ms() - made < 150:
                return view
            view = super().look(id_)
            self.copies[id_] = (now_ms(), view)
            return view


@fault("s5-flickers", "S5 W4 G2")
class _(Book):
    """While a job runs, every fourth read says that it is pending."""

    reads = 0

    def look(self, id_):
        view = super().look(id_)
        self.reads += 1
        if view and view.state == "running" and self.reads % 4 == 0:
            return view._replace(state="pending")
        return view


@fault("s5-terminal-disagrees", "S5 S4 R6 T1 T6 G2 S1 W6")
class _(Book):
    """Reads of a timed-out job say `timeout` and `failed` in turn."""

    reads = 0

    def view(self, job):
        view = super().view(job)
        self.reads += view.state == "timeout"
        odd = view.state == "timeout" and self.reads % 2
        return view._replace(state="failed") if odd else view


@fault("s5-reads-lag", "S5 A5 G2 W1 W2 G1 S6 H7 W6")
class _(Book):
    """For 80 ms after its end a job is still read as running, though waiters were told."""

    def look(self, id_):
        view = super().look(id_)
        job = self.find(id_)
        if job and job.completed_ms and now_ms() - job.completed_ms < 80:
            return view._replace(state="running", error=None, result=None)
        return view


@fault("s5-connection-remembers", "S5 W1 W2 G2 G1 A5 S6 R7 R3 R4 H8 G3 H2 R6 A10")
class _(Conversation):
    """A connection answers the same GET from memory for 400 ms."""

    def exchange(self, head):
        memory = self.__dict__.setdefault("memory", {})
        made, answer = memory.get(head.target, (0, None))
        if head.method == "GET" and answer and now_ms() - made < 400:
            return (yield from super().send(answer, head, close=self.closes(answer, head)))
        return (yield from super().exchange(head))

    def send(self, response, head, close):
        if head and head.method == "GET" and "/jobs/" in head.path and "/wait" not in head.path:
            self.__dict__.setdefault("memory", {})[head.target] = (now_ms(), response)
        return (yield from super().send(response, head, close))


@fault("s6-error-on-done", "S6")
class _(Answers):
    """A done job has the error `none`."""

    def status(self, view):
        return super().status(view._replace(error="none") if view.state == "done" else view)


@fault("s6-error-while-live", "S6 W4")
class _(Answers):
    """A live job has the error `not finished`."""

    def status(self, view):
        return super().status(view._replace(error="not finished") if view.state in LIVE else view)


@fault("s6-silent-failure", "S6 T5 G5")
class _(Book):
    """A failed job has no error."""

    def publish(self, job, state, error, result):
        super().publish(job, state, None if state == "failed" else error, result)


@fault("s6-silent-timeout", "S6 T1 T6 T2")
class _(Book):
    """A timed-out job has an empty error."""

    def publish(self, job, state, error, result):
        super().publish(job, state, "" if state == "timeout" else error, result)


class _Torn(Book):
    """Reads take no lock, so what is published in two steps is seen in two steps."""

    def look(self, id_):
        job = self.table.get(id_)
        return job and self.unlocked(job)

    def view(self, job):
        return self.unlocked(job)

    def unlocked(self, job):
        elapsed_ms = int(self.elapsed_ms(job))
        return View(job.id, job.task_id, job.state, job.error, job.result, elapsed_ms)


@fault("s6-torn-error", "S6 S5 R6 T5 T1 T6 W6 W2 S4")
class _(_Torn):
    """State first, error 6 ms later, and reads take no lock."""

    def publish(self, job, state, error, result):
        job.completed_ms = now_ms()
        job.result, job.state = result, state
        time.sleep(0.006)
        job.error = error


@fault("s6-torn-result", "S6 S5 R6 G1 G2 G4 H13 E5")
class _(_Torn):
    """State first, result 6 ms later, and reads take no lock."""

    def publish(self, job, state, error, result):
        job.completed_ms = now_ms()
        job.error, job.state = error, state
        time.sleep(0.006)
        job.result = result


@fault("s6-result-before-state", "S6 S5 G2 R6 H2 W2 A5")
class _(_Torn):
    """The result can be fetched 40 ms before the status says done."""

    def publish(self, job, state, error, result):
        job.result = result
        time.sleep(0.04)
        super().publish(job, state, error, result)


@also("s6-result-before-state")
class _(Answers):
    """Whoever has a result may read it."""

    def result(self, view):
        return Response(200, view.result) if view.result else super().result(view)


@fault("s8-unknown-is-pending", "S8 G3 H13 H5 R7 A10 W7 R3 R4")
class _(Book):
    """A read of an unknown `job_` id finds a pending job."""

    def look(self, id_):
        view = super().look(id_)
        if view is None and id_.startswith("job_"):
            return View(id_, "", "pending", None, None, 0)
        return view


@fault("s8-unknown-is-created", "S8 G3 R7 A10 A11 W7 A2 H13 R3 R4")
class _(Book):
    """A read of an unknown id makes the record it did not find."""

    def find(self, id_):
        with self.lock:
            if id_ not in self.table and id_.startswith("job_"):
                self.table[id_] = Job(id_, "", None, counted=True)
            return super().find(id_)


@fault("s9-ninth-never-ends", "S9 A11 A5 W2 T1 T6 T5 Q4")
class _(Pool):
    """Every ninth run's outcome is lost, and its budget too."""

    runs = 0

    def execute(self, job):
        self.runs += 1
        if self.runs % 9 == 0:
            job.lost = True
            return
        super().execute(job)

    def expire(self, job):
        if not getattr(job, "lost", False):
            super().expire(job)


@fault("s9-failure-not-reported", "S9 T5 G5 A5 W2 A11")
class _(Pool):
    """A failed run is not reported: only the budget ends the job."""

    def report(self, job, items, took_ms):
        if self.succeeded(items) or not job.counted:
            super().report(job, items, took_ms)
