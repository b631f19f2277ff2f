"""H1 to H4: the 202, the 429, and what they promise."""

import time
from dataclasses import replace

from strangers.answers import Answers
from strangers.app import App
from strangers.book import LIVE, Book
from strangers.faults import fault
from strangers.messages import Response


class _LateAdmission(App):
    """The 202 is sent when something has happened."""

    def ready(self, job):
        return True

    def submit(self, order, request):
        response = super().submit(order, request)
        if response.status != 202:
            return response
        job = self.book.find(response.payload["job_id"])
        until = time.monotonic() + 5
        while not self.ready(job) and time.monotonic() < until:
            time.sleep(0.005)
        return response


@fault("h1-after-the-run", "H1 H2 H4 A3")
class _(_LateAdmission):
    """The 202 is sent when the run is over."""

    def ready(self, job):
        return job.state not in LIVE


@fault("h1-after-the-start", "H1 H4 A3")
class _(_LateAdmission):
    """The 202 is sent when a worker has taken the job."""

    def ready(self, job):
        return job.state != "pending"


@fault("h1-decodes-first", "H1")
class _(App):
    """The 202 of a slow job is 500 ms late."""

    def submit(self, order, request):
        response = super().submit(order, request)
        if any("c2xlZXA" in image for image in order.work.images):
            time.sleep(0.5)
        return response


@fault("h1-late-while-busy", "H1 H4")
class _(App):
    """The 202 is 500 ms late when a job runs already."""

    def submit(self, order, request):
        with self.book.lock:
            busy = any(job.state == "running" for job in self.book.table.values())
        if busy:
            time.sleep(0.5)
        return super().submit(order, request)


@fault("h3-known-name-is-200", "H3 A8")
class _(App):
    """A second submit with a `req_id` that was seen before is answered 200."""

    def submit(self, order, request):
        response = super().submit(order, request)
        names = self.__dict__.setdefault("names", set())
        if response.status == 202 and order.req_id in names:
            response = replace(response, status=200)
        names.add(order.req_id)
        return response


@fault("a3-every-ninth-is-422", "A3")
class _(App):
    """Every ninth good request is refused as if its images were bad."""

    def submit(self, order, request):
        with self.book.lock:
            self.count = self.__dict__.setdefault("count", 0) + 1
            if self.count % 9 == 0:
                return self.answers.refused(422, "no images", [("/images", "no images")])
        return super().submit(order, request)


@fault("h2-done-at-once", "H2 S6 G2 S5 W1 W2 W4 A5 A2 H4 T5 T6")
class _(Answers):
    """A running job is said to be done."""

    def status(self, view):
        return super().status(view._replace(state="done") if view.state == "running" else view)


@fault("h2-result-empty", "H2 G2 A10")
class _(Answers):
    """A running job's result is a 200 without items."""

    def not_done(self, view):
        if view.state == "running":
            return Response(200, {"status": 0, "status_str": "OK", "results": []})
        return super().not_done(view)


class OddAdmission(Answers):
    """Changes the 202."""

    def changed(self, response, job):
        return response

    def admitted(self, job):
        response = super().admitted(job)
        self.changed(response, job)
        return response


@fault("h3-200", "H3 H1")
class _(OddAdmission):
    """An admitted submit is a 200."""

    def changed(self, response, job):
        response.status = 200


@fault("h3-201", "H3 H1")
class _(OddAdmission):
    """An admitted submit is a 201."""

    def changed(self, response, job):
        response.status = 201


@fault("h3-no-location", "H3 H10")
class _(OddAdmission):
    """The 202 has no `Location`."""

    def changed(self, response, job):
        del response.headers["Location"]


@fault("h3-previous-location", "H3 H10")
class _(OddAdmission):
    """`Location` is that of the submit before."""

    last = "/jobs/job_0"

    def changed(self, response, job):
        response.headers["Location"], self.last = self.last, response.headers["Location"]


@fault("h3-dead-poll-url", "H3 H10")
class _(OddAdmission):
    """`poll_url` leads nowhere."""

    def changed(self, response, job):
        response.payload["poll_url"] = f"/job/{job.id}"


@fault("h3-poll-url-of-result", "H3 H10")
class _(OddAdmission):
    """`poll_url` and `result_url` are exchanged."""

    def changed(self, response, job):
        body = response.payload
        body["poll_url"], body["result_url"] = body["result_url"], body["poll_url"]


@fault("h3-result-url-of-status", "H3 H10")
class _(OddAdmission):
    """`result_url` is the poll URL."""

    def changed(self, response, job):
        response.payload["result_url"] = response.payload["poll_url"]


@fault("h3-no-state", "H3 S1")
class _(OddAdmission):
    """The 202 has no state."""

    def changed(self, response, job):
        del response.payload["state"]


@fault("h3-no-urls", "H3 H10")
class _(OddAdmission):
    """The 202 has no URLs."""

    def changed(self, response, job):
        del response.payload["poll_url"], response.payload["result_url"]


@fault("h3-other-id", "H3 A10 G3 H13 S8")
class _(OddAdmission):
    """The 202 names the id in upper case."""

    def changed(self, response, job):
        response.payload["job_id"] = job.id.upper()


@fault("h3-double-slash", "H3 H10")
class _(Answers):
    """The URLs begin with two slashes, so they lead to another host."""

    def url(self, job, action):
        return "/" + super().url(job, action)


@fault("h3-status-without-id", "H3 H13 S1 G3")
class _(Answers):
    """The status does not name the job."""

    def status(self, view):
        response = super().status(view)
        del response.payload["job_id"]
        return response


class _Full(Answers):
    """Changes the 429."""

    def changed(self, response):
        return response

    def full(self):
        return self.changed(super().full())


@fault("h4-503", "H4 A3 E5")
class _(_Full):
    """A full queue is a 503."""

    def changed(self, response):
        response.status = 503
        return response


@fault("h4-409", "H4 A3")
class _(_Full):
    """A full queue is a 409."""

    def changed(self, response):
        response.status = 409
        return response


@fault("h4-no-bound", "H4 H13")
class _(_Full):
    """The 429 does not name the bound."""

    def changed(self, response):
        response.payload = {"error": "async queue full"}
        return response


@fault("h4-wrong-bound", "H4 H13 A3")
class _(_Full):
    """The 429 names a bound that is not the one."""

    def changed(self, response):
        response.payload = {"error": f"async queue full (max {self.config.max_queue + 1})"}
        return response


@fault("h4-empty", "H4 H13")
class _(_Full):
    """The 429 has no body."""

    def changed(self, response):
        response.payload = None
        return response


@fault("h4-blocks", "H4 H1 A3 W9")
class _(App):
    """A submit waits up to a second for a place before it is refused."""

    def on_submit(self, request, route):
        until = time.monotonic() + 1
        while not self.book.has_room() and time.monotonic() < until:
            time.sleep(0.01)
        return super().on_submit(request, route)


@fault("h4-serial", "H4 A2 A3", workers=1, max_queue=1)
class _(Book):
    """Only pending jobs count: with one place and one job running another is admitted."""

    def has_room(self):
        return sum(job.state == "pending" for job in self.live()) < self.config.max_queue


@fault("h4-no-retry-after", "H4", should=True)
class _(_Full):
    """The 429 has no `Retry-After`."""

    def changed(self, response):
        response.headers.pop("Retry-After", None)
        return response


@fault("h4-retry-in-an-hour", "H4", should=True)
class _(_Full):
    """`Retry-After` is an hour."""

    def changed(self, response):
        response.headers["Retry-After"] = "3600"
        return response


@fault("h4-retry-at-once", "H4", should=True)
class _(_Full):
    """`Retry-After` is 0."""

    def changed(self, response):
        response.headers["Retry-After"] = "0"
        return response
