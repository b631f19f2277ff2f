"""The bodies: what each answer says, in our words or in others that the contract allows."""

from typing import Any

from strangers.book import Job, View
from strangers.config import Config
from strangers.intake import Refusal
from strangers.messages import Response

__all__ = ["Answers"]


class Answers:
    """One method per answer of the H table."""

    def __init__(self, config: Config) -> None:
        self.config = config

    # -- jobs

    def admitted(self, job: Job) -> Response:
        body = {
            "job_id": job.id,
            "state": "pending",
            "poll_url": self.url(job, ""),
            "result_url": self.url(job, "/result"),
        }
        return Response(202, self.extended(body), {"Location": self.url(job, "")})

    def url(self, job: Job, action: str) -> str:
        query = "?from=202" if self.config.urls == "query" else ""
        return f"{self.config.prefix}/jobs/{job.id}{action}{query}"

    def status(self, view: View) -> Response:
        body: dict[str, Any] = {"job_id": view.id, "state": view.state}
        body["elapsed_ms"] = view.elapsed_ms
        if view.error is not None:
            body["error"] = view.error
        elif self.config.error_key != "absent":
            body["error"] = None if self.config.error_key == "null" else ""
        return Response(200, self.extended(body))

    def extended(self, body: dict[str, Any]) -> dict[str, Any]:
        return {"node": "n-1", **body, "links": []} if self.config.extra_fields else body

    def result(self, view: View) -> Response:
        if view.state != "done":
            return self.not_done(view)
        return Response(200, view.result)

    def not_done(self, view: View) -> Response:
        return self.error(409, f"job not finished (state: {view.state})", f"it is {view.state}")

    def unknown_job(self, id_: str) -> Response:
        text = id_.encode("latin-1", "replace").decode("utf-8", "replace")[:200]
        return self.error(404, f"job not found: {text}", f"no job is named {text} here")

    def full(self) -> Response:
        bound = self.config.max_queue
        response = self.error(
            429, f"async queue full (max {bound})", f"all {bound} places are taken, try later"
        )
        return self.later(response)

    def busy(self) -> Response:
        return self.later(self.error(429, "too many blocking calls", "busy"))

    def later(self, response: Response) -> Response:
        if self.config.optional_headers:
            response.headers["Retry-After"] = "1"
        return response

    def inferred(self, view: View) -> Response:
        if view.state == "timeout":
            return self.error(504, f"timed out: {view.error}", "took too long")
        bad = view.state == "failed" and self.config.all_failed == "500"
        return Response(500 if bad else 200, view.result)

    # -- refusals

    def error(self, status: int, ours: str, other: str) -> Response:
        if self.config.texts == "ours":
            return Response(status, {"error": ours})
        return Response(status, {"error": other, "code": status})

    def refused(self, status: int, why: str, faults: list[tuple[str, str]]) -> Response:
        errors = [{"pointer": pointer, "message": message} for pointer, message in faults]
        key = "error" if self.config.texts == "ours" else "status_str"
        return Response(status, {key: why, "errors": errors})

    def refusal(self, refusal: Refusal) -> Response:
        return self.refused(refusal.status, refusal.why, refusal.faults)

    def bad_timeout(self, status: int) -> Response:
        why = "timeout must be a positive whole number of ms"
        return self.refused(status, why, [("/timeout", why)])

    def unauthorised(self) -> Response:
        response = self.error(401, "a bearer token is needed", "who are you?")
        response.headers["WWW-Authenticate"] = 'Bearer realm="stranger"'
        if self.config.texts == "ours":
            response.headers["WWW-Authenticate"] = "Bearer"
        return response

    def no_path(self) -> Response:
        return self.error(404, "not found", "nothing here")

    def wrong_method(self, allowed: str) -> Response:
        response = self.error(405, f"method not allowed, use {allowed}", "not so")
        return self.allowing(response, allowed)

    def allowing(self, response: Response, allowed: str) -> Response:
        if self.config.optional_headers:
            response.headers["Allow"] = f"{allowed}, HEAD" if allowed == "GET" else allowed
        return response

    def options(self, allowed: str) -> Response:
        status = int(self.config.options)
        if status == 404:
            return self.no_path()
        return self.allowing(Response(status, None if status == 204 else {}), allowed)

    def wrong_media(self) -> Response:
        why = "the body must be application/json"
        return self.refused(415, why, [("", why)])

    def too_large(self) -> Response:
        why = f"the body is over {self.config.max_body} bytes"
        return self.refused(413, why, [("", why)])

    def draining(self) -> Response:
        return self.later(self.error(503, "draining", "going away"))
