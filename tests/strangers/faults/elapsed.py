"""H8 to H10: elapsed time, headers of every answer, URLs behind a prefix."""

import time

from strangers.answers import Answers
from strangers.app import App
from strangers.book import LIVE, Book, now_ms
from strangers.faults import fault
from strangers.faults.surface import OddAdmission


class _Elapsed(Answers):
    """Changes `elapsed_ms`."""

    def changed(self, view):
        return view.elapsed_ms

    def status(self, view):
        response = super().status(view)
        response.payload["elapsed_ms"] = self.changed(view)
        return response


@fault("h8-seconds", "H8")
class _(_Elapsed):
    """`elapsed_ms` is in seconds."""

    def changed(self, view):
        return view.elapsed_ms // 1000


@fault("h8-float", "H8")
class _(_Elapsed):
    """`elapsed_ms` has a fraction."""

    def changed(self, view):
        return view.elapsed_ms + 0.25


@fault("h8-text", "H8")
class _(_Elapsed):
    """`elapsed_ms` is a string."""

    def changed(self, view):
        return str(view.elapsed_ms)


@fault("h8-negative", "H8")
class _(_Elapsed):
    """`elapsed_ms` is negative."""

    def changed(self, view):
        return -view.elapsed_ms - 1


@fault("h8-null-at-the-end", "H8")
class _(_Elapsed):
    """A terminal job has no `elapsed_ms`."""

    def changed(self, view):
        return view.elapsed_ms if view.state in LIVE else None


@fault("h8-time-left", "H8")
class _(_Elapsed):
    """`elapsed_ms` is the time left."""

    def changed(self, view):
        return max(0, self.config.timeout_ms - view.elapsed_ms)


@fault("h8-microseconds", "H8")
class _(_Elapsed):
    """`elapsed_ms` is in microseconds."""

    def changed(self, view):
        return view.elapsed_ms * 1000


@fault("h8-always-zero", "H8")
class _(_Elapsed):
    """`elapsed_ms` is 0."""

    def changed(self, view):
        return 0


@fault("h8-wall-clock", "H8")
class _(_Elapsed):
    """`elapsed_ms` is the time of day."""

    def changed(self, view):
        return int(time.time() * 1000)


@fault("h8-from-start", "H8 S5")
class _(Book):
    """`elapsed_ms` begins anew when the job starts to run."""

    def begin(self, job):
        begun = super().begin(job)
        job.began_ms = now_ms()
        return begun

    def elapsed_ms(self, job):
        began_ms = getattr(job, "began_ms", job.admitted_ms)
        return (job.completed_ms or now_ms()) - began_ms


@fault("h8-run-time-at-the-end", "H8 S5")
class _(Book):
    """At the end `elapsed_ms` is the time that the run took."""

    def begin(self, job):
        begun = super().begin(job)
        job.began_ms = now_ms()
        return begun

    def elapsed_ms(self, job):
        if job.completed_ms:
            return job.completed_ms - getattr(job, "began_ms", job.admitted_ms)
        return super().elapsed_ms(job)


@fault("h9-no-request-id", "H9", should=True)
class _(App):
    """Answers have no `X-Request-ID`."""

    def finish(self, response):
        super().finish(response)
        response.headers.pop("X-Request-ID", None)
        return response


@fault("h9-refusals-are-cacheable", "H9", should=True)
class _(App):
    """Refusals have no `Cache-Control`."""

    def finish(self, response):
        super().finish(response)
        if response.status >= 400:
            response.headers.pop("Cache-Control", None)
        return response


@fault("h9-public-cache", "H9", should=True)
class _(App):
    """The result may be cached."""

    def on_result(self, request, route):
        response = super().on_result(request, route)
        response.headers["Cache-Control"] = "public, max-age=60"
        return response


PREFIX = "/v1/models/demo"


@fault("h10-bare-location", "H10 H3", prefix=PREFIX)
class _(OddAdmission):
    """`Location` lacks the prefix."""

    def changed(self, response, job):
        response.headers["Location"] = f"/jobs/{job.id}"


@fault("h10-bare-poll-url", "H10 H3", prefix=PREFIX)
class _(OddAdmission):
    """`poll_url` lacks the prefix."""

    def changed(self, response, job):
        response.payload["poll_url"] = f"/jobs/{job.id}"


@fault("h10-bare-result-url", "H10 H3", prefix=PREFIX)
class _(OddAdmission):
    """`result_url` lacks the prefix."""

    def changed(self, response, job):
        response.payload["result_url"] = f"/jobs/{job.id}/result"


@fault("h10-prefix-twice", "H10 H3", prefix=PREFIX)
class _(OddAdmission):
    """`Location` has the prefix twice."""

    def changed(self, response, job):
        response.headers["Location"] = PREFIX + response.headers["Location"]


@fault("h10-relative", "H10 H3")
class _(Answers):
    """The URLs are relative, without a slash."""

    def url(self, job, action):
        return super().url(job, action).lstrip("/")


@fault("h10-absolute-with-host", "H10 H3")
class _(OddAdmission):
    """`Location` is a whole URL, of an inner host."""

    def changed(self, response, job):
        response.headers["Location"] = f"http://backend:8080/jobs/{job.id}"


@fault("h10-whole-urls", "H10")
class _(OddAdmission):
    """`poll_url` is a whole URL, where the contract has a path."""

    def changed(self, response, job):
        host = f"http://{self.config.host}:{self.config.port}"
        response.payload["poll_url"] = f"{host}/jobs/{job.id}"
