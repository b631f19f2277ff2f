"""The routes: what each request means and which refusal comes first.

`before_body` refuses what can be refused on the head alone, in the order of H12 (401, then 404 and
405, then 415 and 413); `answer` does the rest. An answer that has to wait is a `Parked`.
"""

import re
import secrets
from collections.abc import Callable
from dataclasses import replace
from hmac import compare_digest
from typing import Any, NamedTuple
from urllib.parse import unquote

from strangers.answers import Answers
from strangers.book import Book, Job
from strangers.config import Config
from strangers.intake import Intake, Order, Refusal
from strangers.messages import Head, Malformed, Parked, Request, Response
from strangers.workers import Pool

__all__ = ["App", "Route"]

_METHODS = {"submit": "POST", "infer": "POST"}
_MAX_WAIT_MS, _DEFAULT_WAIT_MS = 300_000, 30_000
PUBLIC = ("healthz", "ready", "openapi")


class Route(NamedTuple):
    """Which action a path names, and of which job; kind "" is an unknown path."""

    kind: str
    job_id: str = ""


class App:
    """Answers requests; knows neither sockets nor threads."""

    def __init__(
        self, config: Config, book: Book, pool: Pool, intake: Intake, answers: Answers
    ) -> None:
        self.config, self.book, self.pool = config, book, pool
        self.intake, self.answers = intake, answers
        self.draining = False

    # -- on the head alone

    def before_body(self, head: Head) -> Response | None:
        """The refusal that needs no body, None when there is none."""
        route = self.route(head)
        for check in self.early_checks():
            refusal = check(head, route)
            if refusal is not None:
                return self.finish(refusal)
        return None

    def early_checks(self) -> tuple[Callable[[Head, Route], Response | None], ...]:
        return (
            self.refuse_stranger,
            self.refuse_path,
            self.refuse_method,
            self.refuse_draining,
            self.refuse_media,
            self.refuse_length,
        )

    def route(self, head: Head) -> Route:
        if head.path in ("/healthz", "/ready", "/metrics"):
            return Route(head.path[1:])
        if head.path == "/openapi.json":
            return Route("openapi")
        if not head.path.startswith(self.config.prefix + "/"):
            return Route("")
        return self.route_below(head.path[len(self.config.prefix) + 1 :].split("/"))

    def route_below(self, parts: list[str]) -> Route:
        """The route of a path below the prefix."""
        match parts:
            case ["infer"]:
                return Route("infer")
            case ["jobs"]:
                return Route("submit")
            case ["jobs", job_id] if job_id:
                return Route("status", job_id)
            case ["jobs", job_id, ("wait" | "result") as kind] if job_id:
                return Route(kind, job_id)
            case _:
                return Route("")

    def refuse_stranger(self, head: Head, route: Route) -> Response | None:
        """401 for whoever lacks the token, before anything else."""
        if not self.config.token or route.kind in PUBLIC or self.authorised(head):
            return None
        return self.answers.unauthorised()

    def authorised(self, head: Head) -> bool:
        scheme, _, token = (head.header("authorization") or "").partition(" ")
        return self.scheme_fits(scheme) and self.token_fits(token)

    def scheme_fits(self, scheme: str) -> bool:
        return scheme.lower() == "bearer"

    def token_fits(self, token: str) -> bool:
        return compare_digest(token.encode(), self.config.token.encode())

    def refuse_path(self, head: Head, route: Route) -> Response | None:
        if not route.kind or (not self.config.async_enabled and self.is_async(route)):
            return self.answers.no_path()
        return None

    def is_async(self, route: Route) -> bool:
        return route.kind in ("submit", "status", "wait", "result")

    def refuse_method(self, head: Head, route: Route) -> Response | None:
        """405, or what else H5 allows in its place."""
        allowed = _METHODS.get(route.kind, "GET")
        as_get = head.method == "HEAD" and allowed == "GET" and self.config.head == "get"
        if head.method == allowed or as_get:
            return None
        if route.kind == "status" and self.book.find(route.job_id) is None:
            return self.answers.unknown_job(route.job_id)
        if head.method == "HEAD" and self.config.head == "404":
            return self.answers.no_path()
        if head.method == "OPTIONS" and self.config.options != "405":
            return self.answers.options(allowed)
        if self.config.wrong_method == "404" and route.kind in ("submit", "wait", "result"):
            return self.answers.no_path()
        return self.answers.wrong_method(allowed)

    def refuse_draining(self, head: Head, route: Route) -> Response | None:
        return self.answers.draining() if self.draining and head.method == "POST" else None

    def refuse_media(self, head: Head, route: Route) -> Response | None:
        if head.method != "POST":
            return None
        media = head.header("content-type")
        if media is None and self.config.missing_type == "json":
            return None
        if (media or "").partition(";")[0].strip().lower() != "application/json":
            return self.answers.wrong_media()
        return None

    def refuse_length(self, head: Head, route: Route) -> Response | None:
        return self.answers.too_large() if head.length > self.config.max_body else None

    # -- with the body

    def answer(self, request: Request) -> Response | Parked:
        """The answer to a request that `before_body` let through."""
        route = self.route(request.head)
        answer: Response | Parked = getattr(self, "on_" + route.kind)(request, route)
        if isinstance(answer, Parked):
            return replace(answer, answer=lambda: self.finish(answer.answer()))
        return self.finish(answer)

    def finish(self, response: Response) -> Response:
        if self.config.optional_headers:
            response.headers.setdefault("X-Request-ID", secrets.token_hex(8))
            response.headers.setdefault("Cache-Control", "no-store")
        return response

    def malformed(self, bad: Malformed) -> Response:
        return self.finish(self.answers.refused(bad.status, str(bad), [("", str(bad))]))

    def on_submit(self, request: Request, route: Route) -> Response:
        if self.config.full_first and not self.book.has_room():
            return self.answers.full()
        try:
            order = self.intake.read(request.body)
        except Refusal as refusal:
            return self.answers.refusal(refusal)
        return self.submit(order, request)

    def submit(self, order: Order, request: Request) -> Response:
        with self.book.lock:
            if self.draining:
                return self.answers.draining()
            job = self.book.admit(self.task_id(order), order.work)
        if job is None:
            return self.answers.full()
        self.pool.put(job)
        return self.answers.admitted(job)

    def task_id(self, order: Order) -> str:
        return order.req_id or "task-" + secrets.token_hex(6)

    def on_status(self, request: Request, route: Route) -> Response:
        view = self.book.look(route.job_id)
        return self.answers.status(view) if view else self.unknown(route)

    def unknown(self, route: Route) -> Response:
        odd = not re.fullmatch(r"[A-Za-z0-9_-]{1,128}", route.job_id)
        if odd and self.config.odd_id == "400":
            return self.answers.refused(400, "not a job id", [("", "not a job id")])
        return self.answers.unknown_job(route.job_id)

    def on_result(self, request: Request, route: Route) -> Response:
        view = self.book.look(route.job_id)
        if view is None:
            return self.unknown(route)
        return self.answers.result(view)

    def on_wait(self, request: Request, route: Route) -> Response | Parked:
        job = self.book.find(route.job_id)
        if job is None:
            return self.unknown(route)
        budget_ms = self.wait_budget_ms(self.timeout_text(request.head.query))
        if isinstance(budget_ms, Response):
            return budget_ms
        return self.park(job, budget_ms, lambda: self.after_wait(job))

    def park(self, job: Job, budget_ms: float | None, answer: Callable[[], Response]) -> Parked:
        return Parked(job, budget_ms, answer)

    def after_wait(self, job: Job) -> Response:
        if self.config.evicted_wait == "404" and self.book.find(job.id) is None:
            return self.answers.unknown_job(job.id)
        return self.answers.status(self.book.view(job))

    def timeout_text(self, query: str) -> str | None:
        for part in query.split("&"):
            name, _, value = part.partition("=")
            if unquote(name) == "timeout":
                return unquote(value)
        return None

    def wait_budget_ms(self, text: str | None) -> float | Response:
        """The budget that a `timeout` asks for, or the refusal of it (W5, W10)."""
        if text is None:
            return _DEFAULT_WAIT_MS
        if not re.fullmatch(r"[+-]?[0-9]+", text):
            if self.config.odd_wait == "absent":
                return _DEFAULT_WAIT_MS
            return self.answers.bad_timeout(422)
        digits = text.lstrip("+-0")
        if text.startswith("-") or not digits:
            return self.zero_budget_ms()
        return self.capped_ms(digits)

    def zero_budget_ms(self) -> float | Response:
        match self.config.zero_wait:
            case "default":
                return _DEFAULT_WAIT_MS
            case "now":
                return 0
            case status:
                return self.answers.bad_timeout(int(status))

    def capped_ms(self, digits: str) -> float:
        return _MAX_WAIT_MS if len(digits) > 6 else min(int(digits), _MAX_WAIT_MS)

    def on_infer(self, request: Request, route: Route) -> Response | Parked:
        try:
            order = self.intake.read(request.body)
        except Refusal as refusal:
            return self.answers.refusal(refusal)
        job = self.book.errand(self.task_id(order), order.work)
        if job is None:
            return self.answers.busy()
        self.pool.put(job)
        return Parked(job, None, lambda: self.answers.inferred(self.book.view(job)))

    def on_healthz(self, request: Request, route: Route) -> Response:
        return Response(200, {"status": "ok"})

    def on_ready(self, request: Request, route: Route) -> Response:
        if self.draining:
            return self.answers.draining()
        return Response(200, {"status": "ready"})

    def on_openapi(self, request: Request, route: Route) -> Response:
        paths: dict[str, Any] = {f"{self.config.prefix}/jobs": {"post": {"responses": {}}}}
        info = {"title": "a stranger", "version": "7"}
        return Response(200, {"openapi": "3.1.0", "info": info, "paths": paths})

    def on_metrics(self, request: Request, route: Route) -> Response:
        with self.book.lock:
            numbers = self.numbers()
        lines = [f"stranger_jobs_{name} {value}\n" for name, value in numbers.items()]
        return Response(200, "".join(lines))

    def numbers(self) -> dict[str, int]:
        names = ("submitted", "done", "failed", "timeout")
        counters = {f"{name}_total": self.book.tally[name] for name in names}
        return {**counters, "depth": self.book.depth}
