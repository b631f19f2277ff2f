"""`/jobs` and `/infer`: the ledger over HTTP.

A thin layer: the ledger decides, these handlers say it. Ids come from the path as they were sent,
undecoded; what is not an id of ours is simply not found.
"""

import urllib.parse
from typing import Final

from sanic import Request
from sanic.response import HTTPResponse

from counterfoil_server import rules
from counterfoil_server.answers import JSON_TYPE, Reply, answer, refusal
from counterfoil_server.bodies import body_at_hand, is_json, read_body
from counterfoil_server.core import Core
from counterfoil_server.doors import Resource
from counterfoil_server.intake import Accepted, Fault, read_task
from counterfoil_server.ledger import NotDone, Ready, Snapshot
from counterfoil_server.origins import origin_of
from counterfoil_server.runners import Failure, NoAnswer
from counterfoil_server.strict_json import dumps
from counterfoil_server.tasks import InferenceResult

__all__ = ["JobRoutes"]

_SHOWN: Final = 128


class JobRoutes:
    """The handlers, over one core."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._jobs_path = f"{core.settings.prefix}/jobs"

    def resources(self) -> list[Resource]:
        """The table of paths."""
        jobs, enabled = self._jobs_path, self._core.settings.async_enabled
        internal = self._core.settings.runner != "external"
        infer = f"{self._core.settings.prefix}/infer"
        return [
            Resource(jobs, {"POST": self.submit}, enabled=enabled),
            Resource(
                f"{jobs}/<job_id>", {"GET": self.status}, enabled=enabled, exists=self._exists
            ),
            Resource(
                f"{jobs}/<job_id>/wait", {"GET": self.wait}, enabled=enabled, exists=self._exists
            ),
            Resource(
                f"{jobs}/<job_id>/result",
                {"GET": self.result},
                enabled=enabled,
                exists=self._exists,
            ),
            Resource(infer, {"POST": self.infer}, enabled=internal),
        ]

    async def submit(self, request: Request) -> HTTPResponse:
        """202 at admission, 429 while the queue is full (H1, H4)."""
        accepted = await self._intake(request)
        if isinstance(accepted, HTTPResponse):
            return accepted
        if self._core.draining:  # it may have begun while the body came
            return _draining()
        job_id = self._core.runner.submit(accepted.req_id, accepted.task, origin_of(request))
        if job_id is None:
            return self._full()
        url = f"{self._jobs_path}/{job_id}"
        body = (
            f'{{"job_id":"{job_id}","state":"pending",'
            f'"poll_url":"{url}","result_url":"{url}/result"}}'
        )
        return answer(202, body.encode("ascii"), {"location": url})

    async def status(self, request: Request, job_id: str) -> HTTPResponse:  # noqa: ARG002
        """The job as it is now."""
        seen = self._core.ledger.snapshot(job_id)
        return _unknown(job_id) if seen is None else self._status(seen)

    async def wait(self, request: Request, job_id: str) -> HTTPResponse:
        """The job once it is terminal, or as it is when the budget runs out (W1-W7, W10)."""
        seen = self._core.ledger.snapshot(job_id)
        if seen is None:
            return _unknown(job_id)
        try:
            budget_ms = rules.capped_wait_ms(_asked_ms(request))
        except ValueError as error:
            fault = Fault("/timeout", f"{error}")
            return refusal(422, f"timeout is {error}", [fault])
        if request.method == "HEAD":
            return self._status(seen)
        seen = await self._core.waiters.wait(job_id, budget_ms)
        return _unknown(job_id) if seen is None else self._status(seen)

    async def result(self, request: Request, job_id: str) -> HTTPResponse:
        """The envelope of a done job, 409 otherwise (G1-G3)."""
        result = self._core.ledger.result(job_id)
        match result:
            case None:
                return _unknown(job_id)
            case NotDone(state):
                return refusal(409, f"job not finished (state: {state})")
            case Ready(task_id, InferenceResult() as outcome):
                tag = {"etag": f'"{job_id}"'}
                if tag["etag"] in _known_tags(request):
                    return Reply(b"", 304, tag, JSON_TYPE)
                return answer(200, outcome.envelope(task_id), tag)
        raise TypeError("the ledger holds a result that is not an InferenceResult")

    async def infer(self, request: Request) -> HTTPResponse:
        """The envelope, after the run: same body, same workers, no place in depth (H11)."""
        accepted = await self._intake(request)
        if isinstance(accepted, HTTPResponse):
            return accepted
        outcome = await self._core.runner.call(accepted.task)
        match outcome:
            case InferenceResult():
                return answer(200, outcome.envelope(accepted.req_id or self._core.new_task_id()))
            case NoAnswer.FULL:
                text = f"too many calls (max {self._core.settings.infer_max_pending})"
                return refusal(429, text, headers=self._retry_after())
            case NoAnswer.TIMEOUT:
                return refusal(504, f"timed out after {self._core.settings.async_timeout} ms")
            case Failure():
                failed = InferenceResult.failure(str(outcome), self._core.model.name)
                return answer(500, failed.envelope(accepted.req_id or self._core.new_task_id()))

    async def _intake(self, request: Request) -> Accepted | HTTPResponse:
        settings = self._core.settings
        if self._core.draining:
            return _draining()
        if not is_json(request):
            message = "the media type must be application/json"
            return refusal(415, message, [Fault("", message)])
        body = body_at_hand(request, settings.max_body)
        if body is None:
            body = await read_body(request, settings.max_body, settings.body_timeout / 1000)
        if isinstance(body, HTTPResponse):
            return body
        accepted = read_task(body, settings.max_images)
        if isinstance(accepted, Accepted):
            return accepted
        return refusal(accepted.status, "the body is refused", accepted.faults)

    def _status(self, seen: Snapshot) -> HTTPResponse:
        elapsed_ms = rules.elapsed_ms(seen.submitted_at, seen.completed_at, self._core.clock())
        body = f'{{"job_id":"{seen.job_id}","state":"{seen.state}","elapsed_ms":{elapsed_ms}'
        if seen.error is None:
            return answer(200, (body + "}").encode("ascii"))
        return answer(200, body.encode("ascii") + b',"error":' + dumps(seen.error) + b"}")

    def _full(self) -> HTTPResponse:
        text = f"async queue full (max {self._core.settings.async_max_queue})"
        return refusal(429, text, headers=self._retry_after())

    def _retry_after(self) -> dict[str, str]:
        """When a place should be free, judging by what runs took lately (H4)."""
        core = self._core
        at_once = core.pool.size + len(core.leases)
        seconds = rules.retry_after_s(core.pool.pending + 1, at_once, core.runner.usual_run_ms)
        return {"retry-after": str(seconds)}

    def _exists(self, job_id: str) -> bool:
        return self._core.ledger.snapshot(job_id) is not None


def _unknown(job_id: str) -> HTTPResponse:
    return refusal(404, f"job not found: {job_id[:_SHOWN]}")


def _draining() -> HTTPResponse:
    return refusal(503, "the server is stopping", headers={"retry-after": "5"})


def _known_tags(request: Request) -> list[str]:
    """The tags of what the client has; a proxy that compresses may have marked them as weak."""
    known = request.headers.getone("if-none-match", "")
    return [tag.strip().removeprefix("W/") for tag in known.split(",")] if known else []


def _asked_ms(request: Request) -> int | None:
    """The `timeout` of the query as it was sent: a `+` is a sign here, and not a space."""
    for part in request.query_string.split("&"):
        name, _, text = part.partition("=")
        if name == "timeout":
            return rules.parse_wait_ms(urllib.parse.unquote(text))
    return None
