"""H5 and H12: wrong methods, unknown paths, HEAD and OPTIONS, and the order of refusals."""

from strangers.answers import Answers
from strangers.app import App, Route
from strangers.conversation import Conversation, Pause
from strangers.faults import fault
from strangers.intake import Refusal
from strangers.messages import Response, Writer


class _Methods(App):
    """Another answer to some methods."""

    def odd(self, head, route):
        return None

    def refuse_method(self, head, route):
        return self.odd(head, route) or super().refuse_method(head, route)


@fault("h5-delete-deletes", "H5 R9 R1 A10 S5 R6 R7 G3")
class _(_Methods):
    """DELETE removes the job."""

    def odd(self, head, route):
        if head.method == "DELETE" and route.kind == "status":
            job = self.book.find(route.job_id)
            if job:
                with self.book.lock:
                    self.book.drop(job)
                return Response(200, {"deleted": job.id})
        return None


@fault("h5-any-method-reads", "H5")
class _(_Methods):
    """Any method on a job reads its status."""

    def odd(self, head, route):
        if head.method not in ("GET", "HEAD") and route.kind == "status":
            view = self.book.look(route.job_id)
            return self.answers.status(view) if view else None
        return None


@fault("h5-put-is-500", "H5 E5")
class _(_Methods):
    """PUT on a job is a 500."""

    def odd(self, head, route):
        odd = head.method == "PUT" and route.kind in ("status", "submit")
        return self.answers.error(500, "no handler", "no handler") if odd else None


@fault("h5-patch-is-501", "H5 E5")
class _(_Methods):
    """PATCH on a job is a 501."""

    def odd(self, head, route):
        odd = head.method == "PATCH"
        return self.answers.error(501, "not implemented", "not implemented") if odd else None


@fault("h5-405-of-unknown", "H5 H12 S8")
class _(_Methods):
    """A wrong method on an unknown id is a 405."""

    def odd(self, head, route):
        if route.kind == "status" and head.method not in ("GET", "HEAD", "OPTIONS"):
            return self.answers.wrong_method("GET")
        return None


@fault("h5-404-of-known", "H5")
class _(_Methods):
    """A wrong method on a known job is a 404."""

    def odd(self, head, route):
        if route.kind == "status" and head.method not in ("GET", "HEAD", "OPTIONS"):
            return self.answers.unknown_job(route.job_id)
        return None


@fault("h5-get-jobs-lists", "H5")
class _(_Methods):
    """GET on `/jobs` lists all jobs."""

    def odd(self, head, route):
        if route.kind == "submit" and head.method == "GET":
            return Response(200, {"jobs": [job.id for job in self.book.live()]})
        return None


@fault("h5-get-jobs-is-500", "H5 E5")
class _(_Methods):
    """GET on `/jobs` is a 500."""

    def odd(self, head, route):
        if route.kind == "submit" and head.method == "GET":
            return self.answers.error(500, "no body", "no body")
        return None


@fault("h5-post-result-is-400", "H5")
class _(_Methods):
    """POST on `/result` is a 400."""

    def odd(self, head, route):
        if route.kind in ("result", "wait") and head.method == "POST":
            return self.answers.error(400, "bad request", "bad request")
        return None


@fault("h5-unknown-path-is-200", "H5")
class _(App):
    """An unknown path is a 200 with an empty object."""

    def refuse_path(self, head, route):
        return None if route.kind else Response(200, {})


@fault("h5-unknown-path-is-400", "H5")
class _(App):
    """An unknown path is a 400."""

    def refuse_path(self, head, route):
        if not route.kind:
            return self.answers.error(400, "bad path", "bad path")
        return super().refuse_path(head, route)


@fault("h5-any-action-is-status", "H5")
class _(App):
    """An unknown action of a job is its status."""

    def route_below(self, parts):
        route = super().route_below(parts)
        if not route.kind and len(parts) == 3 and parts[0] == "jobs":
            return Route("status", parts[1])
        return route


@fault("h5-below-an-action", "H5")
class _(App):
    """What stands below `/result` or `/wait` of a job is taken for it."""

    def route_below(self, parts):
        if len(parts) == 4 and parts[0] == "jobs" and parts[2] in ("result", "wait"):
            return super().route_below(parts[:3])
        return super().route_below(parts)


@fault("h5-action-prefix", "H5", full=True)
class _(App):
    """`/resultx` is taken for `/result`."""

    def route_below(self, parts):
        if len(parts) == 3 and parts[2].startswith("result"):
            parts = [*parts[:2], "result"]
        return super().route_below(parts)


@fault("h5-no-allow", "H5", should=True)
class _(Answers):
    """A 405 has no `Allow`."""

    def allowing(self, response, allowed):
        return response


@fault("h5-head-has-a-body", "H5 E8")
class _(Writer):
    """HEAD gets a body."""

    def render(self, response, head, close):
        if head is not None and head.method == "HEAD":
            return super().render(response, None, close)
        return super().render(response, head, close)


@fault("h5-head-is-500", "H5 E5")
class _(_Methods):
    """HEAD is a 500."""

    def odd(self, head, route):
        return self.answers.error(500, "no", "no") if head.method == "HEAD" else None


@fault("h5-head-is-never-answered", "H5 E5 E8")
class _(Conversation):
    """HEAD is never answered."""

    def send(self, response, head, close):
        if head is not None and head.method == "HEAD":
            yield Pause(20)
            return False
        return (yield from super().send(response, head, close))


@fault("h5-options-is-500", "H5 E5")
class _(_Methods):
    """OPTIONS is a 500."""

    def odd(self, head, route):
        return self.answers.error(500, "no", "no") if head.method == "OPTIONS" else None


@fault("h5-options-leaves-bytes", "H5 E8")
class _(Writer):
    """The 204 to OPTIONS is followed by a body."""

    def render(self, response, head, close):
        raw = super().render(response, head, close)
        return raw + b"{}" if head is not None and head.method == "OPTIONS" else raw


@fault("h5-options-is-400", "H5")
class _(_Methods):
    """OPTIONS is a 400."""

    def odd(self, head, route):
        return self.answers.error(400, "no", "no") if head.method == "OPTIONS" else None


class _Order(App):
    """The checks in another order."""

    order: tuple[str, ...] = ()

    def early_checks(self):
        return tuple(getattr(self, "refuse_" + name) for name in self.order)


@fault("h12-404-before-401", "H12 K1", token="s3cret")
class _(_Order):
    """Unknown paths are 404 before the token is asked for."""

    order = ("path", "stranger", "method", "draining", "media", "length")


@fault("h12-405-before-401", "H12 K1", token="s3cret")
class _(_Order):
    """A wrong method is refused before the token is asked for."""

    order = ("path", "method", "stranger", "draining", "media", "length")


@fault("h12-413-before-401", "H12 K1", token="s3cret")
class _(_Order):
    """A large body is refused before the token is asked for."""

    order = ("length", "stranger", "path", "method", "draining", "media")


@fault("h12-415-before-401", "H12 K1", token="s3cret")
class _(_Order):
    """A wrong media type is refused before the token is asked for."""

    order = ("media", "stranger", "path", "method", "draining", "length")


@fault("h12-415-before-404", "H12 H5")
class _(_Order):
    """A wrong media type is refused before the path is looked at."""

    order = ("stranger", "media", "path", "method", "draining", "length")


@fault("h12-413-before-405", "H12 H5 E3", should=True)
class _(_Order):
    """A large body is refused before the path and the method."""

    order = ("stranger", "length", "path", "method", "draining", "media")


@fault("h12-401-after-the-body", "H12 K1 A7", token="s3cret")
class _(App):
    """The token is asked for after the body was found valid."""

    def refuse_stranger(self, head, route):
        return None if route.kind in ("submit", "infer") else super().refuse_stranger(head, route)

    def answer(self, request):
        route = self.route(request.head)
        if route.kind in ("submit", "infer") and not self.authorised(request.head):
            try:
                self.intake.read(request.body)
            except Refusal as refusal:
                return self.finish(self.answers.refusal(refusal))
            return self.finish(self.answers.unauthorised())
        return super().answer(request)


@fault("h12-400-before-404", "H12 H5")
class _(App):
    """POST on an unknown path reads the body first."""

    def refuse_path(self, head, route):
        return None if head.method == "POST" else super().refuse_path(head, route)

    def on_(self, request, route):
        try:
            self.intake.read(request.body)
        except Refusal as refusal:
            return self.answers.refusal(refusal)
        return self.answers.no_path()


@fault("h12-full-admits-the-invalid", "H12 A7 E1 E2 H4 A2")
class _(App):
    """When the queue is full an invalid body is answered 202."""

    def on_submit(self, request, route):
        if not self.book.has_room():
            try:
                self.intake.read(request.body)
            except Refusal:
                return Response(202, {"job_id": "job_0", "state": "pending"})
        return super().on_submit(request, route)


@fault("h12-full-leaks-by-the-invalid", "H12 A7 A11 A3 A5")
class _(App):
    """When the queue is full an invalid body takes a place for good."""

    def on_submit(self, request, route):
        if not self.book.has_room():
            try:
                self.intake.read(request.body)
            except Refusal:
                with self.book.lock:
                    self.book.depth += 1
        return super().on_submit(request, route)


@fault("h12-full-and-invalid-is-500", "H12 E5")
class _(App):
    """When the queue is full an invalid body is a 500."""

    def on_submit(self, request, route):
        if not self.book.has_room():
            try:
                self.intake.read(request.body)
            except Refusal as refusal:
                return self.answers.error(500, str(refusal), "no")
        return super().on_submit(request, route)
