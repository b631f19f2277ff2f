"""K: doors left open, keys that fit in part, and work done for strangers."""

import base64

from strangers.answers import Answers
from strangers.app import PUBLIC, App
from strangers.conversation import Conversation
from strangers.faults import fault
from strangers.messages import Malformed, Request, Response

TOKEN = "s3cret-Token-0123456789"


class _Open(App):
    """Some requests need no token."""

    def open(self, head, route):
        return False

    def refuse_stranger(self, head, route):
        return None if self.open(head, route) else super().refuse_stranger(head, route)


@fault("k1-status-open", "K1", token=TOKEN)
class _(_Open):
    """The status of a job needs no token."""

    def open(self, head, route):
        return route.kind == "status"


@fault("k1-wait-open", "K1", token=TOKEN)
class _(_Open):
    """A wait needs no token."""

    def open(self, head, route):
        return route.kind == "wait"


@fault("k1-result-open", "K1", token=TOKEN)
class _(_Open):
    """The result needs no token."""

    def open(self, head, route):
        return route.kind == "result"


@fault("k1-metrics-open", "K1", token=TOKEN)
class _(_Open):
    """The metrics need no token."""

    def open(self, head, route):
        return route.kind == "metrics"


@fault("k1-infer-open", "K1", token=TOKEN)
class _(_Open):
    """`/infer` needs no token."""

    def open(self, head, route):
        return route.kind == "infer"


@fault("k1-head-open", "K1", token=TOKEN)
class _(_Open):
    """HEAD needs no token."""

    def open(self, head, route):
        return head.method == "HEAD"


@fault("k1-options-open", "K1", token=TOKEN)
class _(_Open):
    """OPTIONS needs no token."""

    def open(self, head, route):
        return head.method == "OPTIONS"


@fault("k1-delete-open", "K1 H12", token=TOKEN)
class _(_Open):
    """Methods that no route has need no token: 405."""

    def open(self, head, route):
        return head.method not in ("GET", "POST", "HEAD", "OPTIONS")


@fault("k1-unknown-id-is-404", "K1 H12", token=TOKEN)
class _(_Open):
    """Without the token an unknown id is a 404, a known one a 401."""

    def open(self, head, route):
        return route.job_id and self.book.find(route.job_id) is None


@fault("k1-unknown-path-is-404", "K1 H12", token=TOKEN)
class _(_Open):
    """Without the token an unknown path is a 404."""

    def open(self, head, route):
        return not route.kind


@fault("k1-local-forwarded", "K1", token=TOKEN, full=True)
class _(_Open):
    """A request that says it comes from a local proxy needs no token."""

    def open(self, head, route):
        return (head.header("x-forwarded-for") or "").startswith("127.")


@fault("k1-second-request-open", "K1 E8", token=TOKEN)
class _(Conversation):
    """A connection that once showed the token needs none any more."""

    def exchange(self, head):
        if self.app.authorised(head):
            self.trusted = head.headers["authorization"]
        elif getattr(self, "trusted", None):
            head.headers["authorization"] = self.trusted
        return (yield from super().exchange(head))


class _Fits(App):
    """Another comparison of tokens."""

    def fits(self, token):
        return False

    def token_fits(self, token):
        return super().token_fits(token) or self.fits(token)


@fault("k1-beginning-fits", "K1", token=TOKEN)
class _(_Fits):
    """The beginning of the token is enough."""

    def fits(self, token):
        return bool(token) and self.config.token.startswith(token)


@fault("k1-longer-fits", "K1", token=TOKEN)
class _(_Fits):
    """Whatever begins with the token fits."""

    def fits(self, token):
        return token.startswith(self.config.token)


@fault("k1-case-free", "K1", token=TOKEN)
class _(_Fits):
    """Upper and lower case of the token are the same."""

    def fits(self, token):
        return token.lower() == self.config.token.lower()


@fault("k1-same-length-fits", "K1", token=TOKEN)
class _(_Fits):
    """Any token of the right length fits."""

    def fits(self, token):
        return len(token) == len(self.config.token)


@fault("k1-last-letter-free", "K1", token=TOKEN)
class _(_Fits):
    """The last character is not compared."""

    def fits(self, token):
        return len(token) == len(self.config.token) and token[:-1] == self.config.token[:-1]


@fault("k1-empty-fits", "K1", token=TOKEN)
class _(_Fits):
    """`Bearer` with nothing after it fits."""

    def fits(self, token):
        return not token


@fault("k1-contained-fits", "K1", token=TOKEN, full=True)
class _(_Fits):
    """Whatever contains the token fits."""

    def fits(self, token):
        return self.config.token in token


@fault("k1-scheme-is-case-sensitive", "K1", token=TOKEN)
class _(App):
    """The scheme must be written `Bearer`."""

    def scheme_fits(self, scheme):
        return scheme == "Bearer"


@fault("k1-any-scheme", "K1", token=TOKEN)
class _(App):
    """Any scheme will do, with the token."""

    def scheme_fits(self, scheme):
        return True


@fault("k1-basic-too", "K1", token=TOKEN, full=True)
class _(App):
    """Basic credentials with any password fit."""

    def authorised(self, head):
        scheme, _, rest = (head.header("authorization") or "").partition(" ")
        if scheme.lower() == "basic":
            try:
                return b":" in base64.b64decode(rest)
            except ValueError:
                return False
        return super().authorised(head)


@fault("k1-bare-token", "K1", token=TOKEN)
class _(App):
    """The token alone, without a scheme, fits."""

    def authorised(self, head):
        return head.header("authorization") == self.config.token or super().authorised(head)


@fault("k1-no-challenge", "K1", token=TOKEN)
class _(Answers):
    """The 401 has no `WWW-Authenticate`."""

    def unauthorised(self):
        response = super().unauthorised()
        del response.headers["WWW-Authenticate"]
        return response


@fault("k1-other-challenge", "K1", token=TOKEN)
class _(Answers):
    """The 401's challenge is `Basic`."""

    def unauthorised(self):
        response = super().unauthorised()
        response.headers["WWW-Authenticate"] = "Basic"
        return response


@fault("k1-403", "K1", token=TOKEN)
class _(Answers):
    """Without the token all is 403."""

    def unauthorised(self):
        return self.error(403, "forbidden", "forbidden")


@fault("k1-403-for-wrong", "K1", token=TOKEN)
class _(App):
    """A wrong token is a 403, none a 401."""

    def refuse_stranger(self, head, route):
        refusal = super().refuse_stranger(head, route)
        if refusal and head.header("authorization"):
            return self.answers.error(403, "forbidden", "forbidden")
        return refusal


@fault("k1-works-anyway", "K1 A7 A11 A3 M1 H12 R9 R4", token=TOKEN)
class _(Conversation):
    """A submit without the token is a 401, and is run all the same."""

    def refuse_early(self, early, head):
        if early.status != 401 or head.method != "POST" or not head.path.endswith("/jobs"):
            return (yield from super().refuse_early(early, head))
        try:
            body = yield from self.read_body(head)
        except Malformed:
            body = None
        if body is None:
            return False
        route = self.app.route(head)
        self.app.on_submit(Request(head, body), route)
        return (yield from self.send(early, head, close=self.closes(early, head)))


@fault("k1-public-closed", "K1 H14", token=TOKEN)
class _(App):
    """`/ready` asks for the token."""

    def refuse_stranger(self, head, route):
        if route.kind == "ready" and not self.authorised(head):
            return self.answers.unauthorised()
        return super().refuse_stranger(head, route)


@fault("k1-tells-existing", "K1", token=TOKEN, full=True)
class _(App):
    """The 401 of an existing job differs from that of an unknown one."""

    def refuse_stranger(self, head, route):
        refusal = super().refuse_stranger(head, route)
        if refusal and route.job_id and self.book.find(route.job_id):
            refusal.payload = {"error": "this job needs a bearer token"}
        return refusal


@fault("k1-invalid-first-on-infer", "K1 H12", token=TOKEN)
class _(App):
    """`/infer` reads the body before the token."""

    def refuse_stranger(self, head, route):
        return None if route.kind == "infer" else super().refuse_stranger(head, route)

    def on_infer(self, request, route):
        response = super().on_infer(request, route)
        if isinstance(response, Response) or self.authorised(request.head):
            return response
        return self.answers.unauthorised()


@fault("k1-token-crash", "K1 E5", token=TOKEN)
class _(App):
    """A token beyond ASCII is a 500."""

    def refuse_stranger(self, head, route):
        if route.kind not in PUBLIC and not (head.header("authorization") or "").isascii():
            return self.answers.error(500, "comparing strings with non-ASCII", "no")
        return super().refuse_stranger(head, route)
