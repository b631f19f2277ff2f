"""G1 to G3: results that change, lack something, or stand where none may be."""

import random
import uuid

from strangers.answers import Answers
from strangers.app import App
from strangers.book import LIVE, now_ms
from strangers.faults import fault
from strangers.messages import Response


class _Envelope(Answers):
    """Changes the envelope at each read."""

    def changed(self, envelope):
        return envelope

    def result(self, view):
        response = super().result(view)
        if response.status == 200:
            response.payload = self.changed(dict(response.payload))
        return response


@fault("g1-no-model", "G1 H13")
class _(_Envelope):
    """The envelope has no `model`."""

    def changed(self, envelope):
        del envelope["model"]
        return envelope


@fault("g1-no-partial", "G1 H13 G5")
class _(_Envelope):
    """The envelope has no `partial`."""

    def changed(self, envelope):
        del envelope["partial"]
        return envelope


@fault("g1-no-status-str", "G1 H13")
class _(_Envelope):
    """The envelope has no `status_str`."""

    def changed(self, envelope):
        del envelope["status_str"]
        return envelope


@fault("g1-time-is-text", "G1 H13")
class _(_Envelope):
    """`server_time_ms` is a string."""

    def changed(self, envelope):
        return {**envelope, "server_time_ms": f"{envelope['server_time_ms']} ms"}


@fault("g1-bare-results", "G1 H13 G4")
class _(_Envelope):
    """The result is the bare list, without the envelope."""

    def changed(self, envelope):
        return {"results": envelope["results"]}


@fault("g1-status-nonzero", "G1 H13 S6")
class _(_Envelope):
    """A done job's envelope has status 1."""

    def changed(self, envelope):
        return {**envelope, "status": 1}


@fault("g1-fresh-field", "G1 R6")
class _(_Envelope):
    """Each read has another `read_id`."""

    def changed(self, envelope):
        return {**envelope, "read_id": str(uuid.uuid4())}


@fault("g1-noisy-number", "G1 R6")
class _(_Envelope):
    """A number of the data differs in its last digits from read to read."""

    def changed(self, envelope):
        results = [
            {
                **item,
                "data": item["data"] and {**item["data"], "score": 0.9 + random.random() / 1e9},
            }
            for item in envelope["results"]
        ]
        return {**envelope, "results": results}


@fault("g1-task-id-changes", "G1 R6 Q2")
class _(_Envelope):
    """From the second read on the task id is another."""

    reads = 0

    def changed(self, envelope):
        self.reads += 1
        odd = self.reads % 2 == 0
        return {**envelope, "task_id": envelope["task_id"] + "'"} if odd else envelope


@fault("g1-201", "G1 H13")
class _(Answers):
    """The result is a 201."""

    def result(self, view):
        response = super().result(view)
        if response.status == 200:
            response.status = 201
        return response


class _NotDone(Answers):
    """Another answer where no result is."""

    states: tuple[str, ...] = ()

    def instead(self, view):
        return Response(200, {})

    def not_done(self, view):
        return self.instead(view) if view.state in self.states else super().not_done(view)


@fault("g2-200-for-failed", "G2 S6 G5 T5")
class _(_NotDone):
    """A failed job has a result: the envelope with a status."""

    states = ("failed",)

    def instead(self, view):
        envelope = {
            "status": 2,
            "status_str": view.error,
            "task_id": view.task_id,
            "model": {"name": "stranger", "version": "7"},
            "results": [{"status": 4, "data": None}],
            "server_time_ms": 1,
            "partial": False,
        }
        return Response(200, envelope)


@fault("g2-200-for-timeout", "G2 S6 T2 T6")
class _(_NotDone):
    """A timed-out job's result is a 200 with an error."""

    states = ("timeout",)

    def instead(self, view):
        return Response(200, {"status": 9, "status_str": view.error})


@fault("g2-202-for-live", "G2 H2 A10")
class _(_NotDone):
    """A live job's result is a 202."""

    states = LIVE

    def instead(self, view):
        return Response(202, {"state": view.state, "error": view.state})


@fault("g2-204-for-running", "G2 H2 A10 H13")
class _(_NotDone):
    """A running job's result is a 204."""

    states = ("running",)

    def instead(self, view):
        return Response(204)


@fault("g2-404-for-live", "G2 H2 A10 S8 R1 R9 S5 R7")
class _(_NotDone):
    """A live job's result is a 404."""

    states = LIVE

    def instead(self, view):
        return self.unknown_job(view.id)


@fault("g2-404-for-failed", "G2 A10 R9 R6 S5 R7 T5")
class _(_NotDone):
    """A failed job's result is a 404."""

    states = ("failed",)

    def instead(self, view):
        return self.unknown_job(view.id)


@fault("g2-410-for-timeout", "G2 H13 T2 T6")
class _(_NotDone):
    """A timed-out job's result is a 410."""

    states = ("timeout",)

    def instead(self, view):
        return self.error(410, f"{view.state}", f"{view.state}")


@fault("g2-500-for-failed", "G2 E5 T5")
class _(_NotDone):
    """A failed job's result is a 500."""

    states = ("failed",)

    def instead(self, view):
        return self.error(500, view.error, view.error)


@fault("g2-unnamed-state", "G2 H13 H2")
class _(Answers):
    """The 409 does not name the state."""

    def not_done(self, view):
        return self.error(409, "job not finished", "not finished")


@fault("g2-wrong-state", "G2 H13 S5 H2")
class _(Answers):
    """The 409 of every job names `pending`."""

    def not_done(self, view):
        return super().not_done(view._replace(state="pending"))


@fault("g2-409-after-done", "G2 G1 S5 S6 R6 A5")
class _(Answers):
    """For 200 ms after the end the result of a done job is a 409 that says running."""

    ended: dict = {}

    def result(self, view):
        since = self.ended.setdefault(view.id, now_ms()) if view.state == "done" else now_ms()
        if view.state == "done" and now_ms() - since < 200:
            return self.not_done(view._replace(state="running"))
        return super().result(view)


@fault("g2-result-blocks", "G2 H2 G1 W9 A10 E5")
class _(App):
    """The result of a live job blocks until it is done."""

    def on_result(self, request, route):
        job = self.book.find(route.job_id)
        if job is None or job.state not in LIVE:
            return super().on_result(request, route)
        return self.park(job, 5000, lambda: self.answers.result(self.book.view(job)))


class _Unknown(App):
    """Another answer for the result of an unknown id."""

    def instead(self, route):
        return Response(200, {})

    def on_result(self, request, route):
        if self.book.find(route.job_id) is None:
            return self.instead(route)
        return super().on_result(request, route)


@fault("g3-200", "G3 S8 R7 H13 R3 R4")
class _(_Unknown):
    """The result of an unknown id is an empty 200."""


@fault("g3-409", "G3 S8 R7 H13 R3 R4")
class _(_Unknown):
    """The result of an unknown id is a 409."""

    def instead(self, route):
        return self.answers.error(409, f"{route.job_id} pending", f"{route.job_id} pending")


@fault("g3-400", "G3 S8 R7 H13 R3 R4")
class _(_Unknown):
    """The result of an unknown id is a 400."""

    def instead(self, route):
        return self.answers.error(400, f"what is {route.job_id}?", route.job_id)


@fault("g3-500", "G3 S8 E5 E4 R7 H13 R3 R4")
class _(_Unknown):
    """The result of an unknown id is a 500."""

    def instead(self, route):
        return self.answers.error(500, f"KeyError: {route.job_id}", route.job_id)


@fault("g3-status-200-null", "G3 S8 R7 H13 R3 R4")
class _(App):
    """The status of an unknown id is `null`."""

    def on_status(self, request, route):
        response = super().on_status(request, route)
        return Response(200, b"null") if response.status == 404 else response
