"""H11, H13, H14: `/infer`, the words of refusals, public pages."""

import threading

from strangers.answers import Answers
from strangers.app import PUBLIC, App
from strangers.book import Book, now_ms
from strangers.faults import fault
from strangers.messages import Parked, Response, Writer
from strangers.workers import Pool, Worker


@fault("h11-takes-a-place", "H11 A3 A2 A11 H4")
class _(Book):
    """A blocking call takes a place in the queue while it runs."""

    def has_room(self):
        return self.depth + self.errands < self.config.max_queue


@fault("h11-refused-when-full", "H11")
class _(App):
    """A blocking call is refused when the job queue is full."""

    def on_infer(self, request, route):
        if not self.book.has_room():
            return self.answers.busy()
        return super().on_infer(request, route)


@fault("h11-workers-of-its-own", "H11", should=True, full=True)
class _(Pool):
    """Blocking calls run on threads of their own, beside the workers."""

    def put(self, job):
        if job.counted:
            super().put(job)
        else:
            self.line.appendleft(job)
            self.hire_for_one()

    def hire_for_one(self):
        def run():
            worker = Worker()
            with self.filled:
                job = next((each for each in self.line if not each.counted), None)
                if job:
                    self.line.remove(job)
            if job:
                self.serve(job, worker)

        threading.Thread(target=run, daemon=True).start()


@fault("h11-no-budget", "H11 T6 E5", should=True)
class _(Pool):
    """A blocking call has no budget."""

    def budget_ms(self, job):
        return super().budget_ms(job) if job.counted else 0


class _Inferred(Answers):
    """Changes the answer of `/infer`."""

    def changed(self, response, view):
        return response

    def inferred(self, view):
        return self.changed(super().inferred(view), view)


@fault("h11-failure-is-ok", "H11 G5", should=True)
class _(_Inferred):
    """A blocking call all of whose items failed is a 200 with status 0."""

    def changed(self, response, view):
        if response.status == 200:
            response.payload = {**response.payload, "status": 0}
        return response


@fault("h11-failure-is-422", "H11", should=True)
class _(_Inferred):
    """A blocking call all of whose items failed is a 422."""

    def changed(self, response, view):
        if view.state == "failed":
            return self.refused(422, "no item succeeded", [("/images/0", "failed")])
        return response


@fault("h11-timeout-is-200", "H11 T6", should=True)
class _(_Inferred):
    """A blocking call past its budget is a 200 with status 5."""

    def changed(self, response, view):
        if view.state == "timeout":
            return Response(200, {"status": 5, "status_str": view.error})
        return response


@fault("h11-timeout-is-500", "H11 E5 T6", should=True)
class _(_Inferred):
    """A blocking call past its budget is a 500."""

    def changed(self, response, view):
        if response.status == 504:
            response.status = 500
        return response


@fault("h11-no-envelope", "H11 G1 H13 G4")
class _(_Inferred):
    """A blocking call answers the bare results."""

    def changed(self, response, view):
        if view.state == "done":
            response.payload = {"results": response.payload["results"]}
        return response


@fault("h11-is-a-job", "H11 A6 H13 G1 E5")
class _(App):
    """`/infer` answers 202 with a job."""

    def on_infer(self, request, route):
        return self.on_submit(request, route)


@fault("h11-mixes-answers", "H11 G4 Q2")
class _(App):
    """Of two blocking calls at once one gets the other's answer."""

    def on_infer(self, request, route):
        parked = super().on_infer(request, route)
        if not isinstance(parked, Parked):
            return parked

        def answer():
            other, self.other = self.__dict__.get("other"), parked.job
            recent = other is not None and other.result and now_ms() - other.completed_ms < 200
            return self.answers.inferred(self.book.view(other if recent else parked.job))

        return Parked(parked.job, None, answer)


@fault("h13-text-plain", "H13 E9")
class _(Writer):
    """Bodies are JSON but say that they are plain text."""

    def content_type(self, response):
        return "text/plain; charset=utf-8"


@fault("h13-html-404", "H13 E4 H5")
class _(Writer):
    """A 404 is a page for people."""

    def body(self, response):
        html = b"<html><body><h1>404 Not Found</h1></body></html>"
        return html if response.status == 404 else super().body(response)

    def content_type(self, response):
        return "text/html" if response.status == 404 else super().content_type(response)


@fault("h13-latin-1", "H13 E9", should=True, full=True)
class _(Writer):
    """The content type says ISO-8859-1."""

    def content_type(self, response):
        return super().content_type(response).replace("utf-8", "iso-8859-1")


class _NotFound(Answers):
    """Another 404 for a job."""

    def text(self, id_):
        return ""

    def unknown_job(self, id_):
        return self.error(404, self.text(id_), self.text(id_))


@fault("h13-404-without-id", "H13")
class _(_NotFound):
    """The 404 of a job does not name it."""

    def text(self, id_):
        return "job not found"


@fault("h13-404-of-another", "H13")
class _(_NotFound):
    """The 404 of a job names the one that was looked for before."""

    last = "job_0"

    def text(self, id_):
        last, self.last = self.last, id_
        return f"job not found: {last}"


@fault("h13-404-cuts-the-id", "H13")
class _(_NotFound):
    """The 404 of a job names its first 12 characters."""

    def text(self, id_):
        return f"job not found: {id_[:12]}"


@fault("h13-empty-404", "H13 E4")
class _(Answers):
    """The 404 of a job has no body."""

    def unknown_job(self, id_):
        return Response(404)


@fault("h13-error-is-an-object", "H13 H4")
class _(Answers):
    """`error` is an object."""

    def error(self, status, ours, other):
        return Response(status, {"error": {"message": ours, "code": status}})


@fault("h13-other-field", "H13 H4")
class _(Answers):
    """Refusals say `message` where the contract has `error`."""

    def error(self, status, ours, other):
        return Response(status, {"message": ours})


@fault("h13-wait-404-is-bare", "H13 W7")
class _(App):
    """The 404 of a wait does not name the job."""

    def on_wait(self, request, route):
        if self.book.find(route.job_id) is None:
            return self.answers.no_path()
        return super().on_wait(request, route)


class _Health(App):
    """Something is wrong with a public page."""

    page, status = "", 200

    def answer(self, request):
        if self.route(request.head).kind == self.page:
            return self.finish(self.answers.error(self.status, self.page, self.page))
        return super().answer(request)


@fault("h14-not-ready", "H14 X4")
class _(_Health):
    """`/ready` is 503 on a healthy server."""

    page, status = "ready", 503


@fault("h14-sick", "H14 E5")
class _(_Health):
    """`/healthz` is 500."""

    page, status = "healthz", 500


@fault("h14-no-openapi", "H14")
class _(_Health):
    """`/openapi.json` is 404."""

    page, status = "openapi", 404


@fault("h14-openapi-is-no-json", "H14 E9 H13")
class _(App):
    """`/openapi.json` is YAML."""

    def on_openapi(self, request, route):
        return Response(200, b"openapi: 3.1.0\npaths: {}\n")


@fault("h14-needs-a-token", "H14 K1", token="s3cret")
class _(App):
    """`/healthz` asks for the token."""

    def refuse_stranger(self, head, route):
        if route.kind in PUBLIC and not self.authorised(head):
            return self.answers.unauthorised() if route.kind == "healthz" else None
        return super().refuse_stranger(head, route)
