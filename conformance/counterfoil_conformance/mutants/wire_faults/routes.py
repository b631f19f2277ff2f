"""Faults of the shipped server's surface: answers, methods, keys, numbers, stopping."""

import asyncio
import json
import re

from sanic.response import HTTPResponse

from counterfoil_conformance.mutants.wire import also, wire_fault
from counterfoil_conformance.wire.own_server import Setup
from counterfoil_server import answers, rules
from counterfoil_server.answers import answer, refusal
from counterfoil_server.core import Core
from counterfoil_server.doors import Doorkeeper
from counterfoil_server.job_routes import JobRoutes
from counterfoil_server.keys import Access, Keyring
from counterfoil_server.ledger import JobLedger, State
from counterfoil_server.metrics import Metrics
from counterfoil_server.mishaps import Mishaps
from counterfoil_server.system_routes import SystemRoutes


def _changed(response: HTTPResponse, change) -> HTTPResponse:
    body = change(json.loads(response.body or b"{}"))
    return answer(response.status, json.dumps(body).encode(), dict(response.headers))


class _Submit(JobRoutes):
    def changed(self, response):
        return response

    async def submit(self, request):
        response = await super().submit(request)
        return self.changed(response) if response.status == 202 else response


@wire_fault("202-after-the-run", "H1 H2 H4 A3", of=JobRoutes)
class _AfterRun(_Submit):
    """The 202 is sent when the run is over."""

    async def submit(self, request):
        response = await super().submit(request)
        if response.status == 202:
            await self._core.waiters.wait(json.loads(response.body)["job_id"], 5000)
        return response


@wire_fault("200-for-202", "H3 H1", of=JobRoutes)
class _Plain200(_Submit):
    """An admitted submit is a 200."""

    def changed(self, response):
        return answer(200, response.body, dict(response.headers))


@wire_fault("location-without-prefix", "H10 H3", of=JobRoutes)
class _BareLocation(_Submit):
    """`Location` lacks the prefix."""

    def changed(self, response):
        bare = response.headers["location"].removeprefix(self._core.settings.prefix)
        return answer(202, response.body, {"location": bare})


@wire_fault("poll-url-without-prefix", "H10 H3", of=JobRoutes)
class _BarePollUrl(_Submit):
    """`poll_url` lacks the prefix."""

    def changed(self, response):
        prefix = self._core.settings.prefix
        return _changed(
            response, lambda body: {**body, "poll_url": body["poll_url"].removeprefix(prefix)}
        )


@wire_fault("no-location", "H3 H10", of=JobRoutes)
class _NoLocation(_Submit):
    """The 202 has no `Location`."""

    def changed(self, response):
        return answer(202, response.body)


@wire_fault("born-running", "S1 H3", of=JobRoutes)
class _BornRunning(_Submit):
    """The 202 says `running`."""

    def changed(self, response):
        return _changed(response, lambda body: {**body, "state": "running"})


@wire_fault("submit-after-stop", "X4", full=True)
class _AdmitsOn(JobRoutes):
    """While it stops, the server admits new jobs."""

    async def submit(self, request):
        draining, self._core.draining = self._core.draining, False
        try:
            return await super().submit(request)
        finally:
            self._core.draining = draining


class _Full(JobRoutes):
    def changed(self, response):
        return response

    def _full(self):
        return self.changed(super()._full())


@wire_fault("full-is-503", "H4 A3 E5", of=JobRoutes)
class _Full503(_Full):
    """A full queue is a 503."""

    def changed(self, response):
        return answer(503, response.body, dict(response.headers))


@wire_fault("429-without-bound", "H4 H13", of=JobRoutes)
class _NoBound(_Full):
    """The 429 does not name the bound."""

    def changed(self, response):
        return refusal(429, "async queue full", headers=dict(response.headers))


@wire_fault("no-retry-after", "H4", should=True, of=JobRoutes)
class _NoRetryAfter(_Full):
    """The 429 has no `Retry-After`."""

    def changed(self, response):
        return answer(429, response.body)


class _Status(JobRoutes):
    def changed(self, body):
        return body

    def _status(self, seen):
        return _changed(super()._status(seen), self.changed)


@wire_fault("elapsed-in-seconds", "H8", of=JobRoutes)
class _Seconds(_Status):
    """`elapsed_ms` is in seconds."""

    def changed(self, body):
        return {**body, "elapsed_ms": body["elapsed_ms"] // 1000}


@wire_fault("elapsed-is-a-float", "H8", of=JobRoutes)
class _Float(_Status):
    """`elapsed_ms` has a fraction."""

    def changed(self, body):
        return {**body, "elapsed_ms": body["elapsed_ms"] + 0.5}


@wire_fault("elapsed-counts-down", "H8", of=rules.elapsed_ms)
def time_left(submitted_at, completed_at, now):
    """`elapsed_ms` is what is left of two seconds."""
    return max(0, 2000 - ((now if completed_at is None else completed_at) - submitted_at))


@wire_fault("done-is-called-success", "S1 S6", of=JobRoutes)
class _Success(_Status):
    """Done is called `success`."""

    def changed(self, body):
        return {**body, "state": "success"} if body["state"] == "done" else body


@wire_fault("running-is-called-done", "H2 S6 G2 S5 W1 W2 W4 A5 A2 H4 T5 T6", of=JobRoutes)
class _DoneEarly(_Status):
    """A running job is said to be done."""

    def changed(self, body):
        return {**body, "state": "done"} if body["state"] == "running" else body


@wire_fault("404-without-id", "H13", of=answers.refusal)
def without_id(status, error, faults=(), headers=None):
    """The 404 of a job does not name it."""
    return _refusal(status, re.sub(r"job not found: .*", "job not found", error), faults, headers)


@wire_fault("409-without-state", "G2 H13 H2", of=answers.refusal)
def without_state(status, error, faults=(), headers=None):
    """The 409 does not name the state."""
    return _refusal(status, re.sub(r" \(state: .*", "", error), faults, headers)


@wire_fault("faults-without-pointer", "E2 H13", of=answers.refusal)
def without_pointer(status, error, faults=(), headers=None):
    """The faults of a body have no pointer."""
    response = _refusal(status, error, faults, headers)
    if status != 422:
        return response
    return _changed(
        response,
        lambda body: {**body, "errors": [{"message": e["message"]} for e in body["errors"]]},
    )


_refusal = answers.refusal


@wire_fault("live-result-is-404", "G2 H2 A10 S8 R1 R9 S5 R7")
class _Live404(JobRoutes):
    """The result of a live job is a 404."""

    async def result(self, request, job_id):
        response = await super().result(request, job_id)
        return refusal(404, f"job not found: {job_id}") if response.status == 409 else response


@wire_fault("timeout-result-is-200", "G2 S6 T2 T6 G1 H13")
class _Timeout200(JobRoutes):
    """The result of a timed-out job is a 200 with a status."""

    async def result(self, request, job_id):
        seen = self._core.ledger.snapshot(job_id)
        if seen is not None and seen.state is State.TIMEOUT:
            return answer(200, b'{"status":1,"status_str":"timed out"}')
        return await super().result(request, job_id)


@wire_fault("infer-failure-is-ok", "H11 G5", should=True)
class _InferOk(JobRoutes):
    """A blocking call all of whose items failed has status 0."""

    async def infer(self, request):
        response = await super().infer(request)
        if response.status != 200:
            return response
        return _changed(response, lambda body: {**body, "status": 0})


@wire_fault("infer-timeout-is-500", "H11 E5 T6")
class _Infer500(JobRoutes):
    """A blocking call past its budget is a 500."""

    async def infer(self, request):
        response = await super().infer(request)
        return refusal(500, "timed out") if response.status == 504 else response


# Doors and keys


@wire_fault("delete-deletes", "H5 R9 R1 A10 S5 R6 R7 G3")
class _Deletes(Doorkeeper):
    """DELETE removes the job."""

    def other_method(self, resource, request, words):
        response = super().other_method(resource, request, words)
        if request.method == "DELETE" and response.status == 405 and "job_id" in words:
            ledger = resource.methods["GET"].__self__._core.ledger
            with ledger._table:
                ledger._jobs.pop(words["job_id"], None)
            return answer(200, b'{"deleted":true}')
        return response


@also("delete-deletes")
class _Forgives(JobLedger):
    def _evict(self, cause):
        if self._ended[0].seen.job_id in self._jobs:
            super()._evict(cause)
        else:
            self._ended.popleft()


@wire_fault("405-for-unknown", "H5 H12 S8")
class _Unknown405(Doorkeeper):
    """A wrong method on an unknown id is a 405."""

    def other_method(self, resource, request, words):
        response = super().other_method(resource, request, words)
        wrong = response.status == 404 and request.method not in ("OPTIONS", "HEAD")
        return refusal(405, "not allowed", headers=resource.allow) if wrong else response


@wire_fault("no-allow", "H5", should=True)
class _NoAllow(Doorkeeper):
    """A 405 has no `Allow`."""

    def other_method(self, resource, request, words):
        response = super().other_method(resource, request, words)
        response.headers.pop("allow", None)
        return response


@wire_fault("no-request-id", "H9", should=True)
class _NoRequestId(Doorkeeper):
    """Answers have no `X-Request-ID`."""

    def stamp(self, request, response):
        super().stamp(request, response)
        del response.headers["x-request-id"]


@wire_fault("options-is-500", "H5 E5")
class _Options500(Doorkeeper):
    """OPTIONS is a 500."""

    def other_method(self, resource, request, words):
        if request.method == "OPTIONS":
            return refusal(500, "internal error")
        return super().other_method(resource, request, words)


@wire_fault("disabled-is-503", "H6 E5", setup=Setup(enabled=False))
class _Disabled503(Doorkeeper):
    """Disabled routes are 503."""

    def _refuse_entry(self, resource, request):
        refused = super()._refuse_entry(resource, request)
        if refused is not None and not resource.enabled and refused.status == 404:
            return refusal(503, "disabled")
        return refused


@wire_fault("404-before-401", "K1 H12")
class _PathFirst(Mishaps):
    """Unknown paths are 404 before the token is asked for."""

    def _answer(self, request, exception):
        response = super()._answer(request, exception)
        return answers.not_found() if response.status == 401 else response


class _Keys(Keyring):
    def fits(self, given, token):
        return False

    def admits(self, request, access):
        header = request.headers.getone("authorization", "")
        scheme, _, given = header.partition(" ")
        token = self._tokens.get(access, b"").decode()
        fits = scheme.lower() == "bearer" and self.fits(given, token)
        return fits or super().admits(request, access)


@wire_fault("token-beginning-fits", "K1", of=Keyring)
class _Beginning(_Keys):
    """The beginning of the token is enough."""

    def fits(self, given, token):
        return bool(given) and token.startswith(given)


@wire_fault("longer-token-fits", "K1", of=Keyring)
class _Longer(_Keys):
    """Whatever begins with the token fits."""

    def fits(self, given, token):
        return bool(token) and given.startswith(token)


@wire_fault("scheme-case-sensitive", "K1")
class _Scheme(Keyring):
    """The scheme must be written `Bearer`."""

    def admits(self, request, access):
        header = request.headers.getone("authorization", "Bearer")
        return super().admits(request, access) and (
            access is Access.PUBLIC or header.startswith("Bearer")
        )


@wire_fault("metrics-open", "K1")
class _MetricsOpen(Keyring):
    """The metrics need no token."""

    def admits(self, request, access):
        return request.path.endswith("/metrics") or super().admits(request, access)


@wire_fault("no-challenge", "K1", of=answers.unauthorized)
def no_challenge():
    """The 401 has no `WWW-Authenticate`."""
    return refusal(401, "a bearer token is required")


# Numbers, readiness, stopping


@wire_fault("timeouts-uncounted", "M1", should=True)
class _Uncounted(Metrics):
    """Timed-out jobs are not counted."""

    def ended(self, snapshot):
        if snapshot.state is not State.TIMEOUT:
            super().ended(snapshot)


@wire_fault("refused-counted", "M1", should=True)
class _RefusedCounted(Metrics):
    """Refused submits count as submitted."""

    def refused(self):
        super().refused()
        self._submitted.inc()


@wire_fault("not-ready", "H14 X4")
class _NotReady(SystemRoutes):
    """`/ready` is 503 on a healthy server."""

    async def ready(self, request):
        return answer(503, b'{"error":"not ready"}')


@wire_fault("ready-while-stopping", "X4", full=True)
class _StaysReady(SystemRoutes):
    """`/ready` is 200 while the server stops."""

    async def ready(self, request):
        return answer(200, b'{"status":"ready"}')


@wire_fault("stop-cuts-jobs", "X4", full=True)
class _NoGrace(Core):
    """A stop fails all live jobs at once."""

    async def drain(self, grace_s):
        self.draining = True
        await asyncio.sleep(0.05)
        return self.runner.fail_all("the server stopped before the job ended")
