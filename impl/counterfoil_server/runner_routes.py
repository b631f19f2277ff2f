"""The runner surface: any process anywhere may run the jobs, with a token of its own.

    POST /runner/claim              {"wait_ms"?}: 200 {"job_id","task_id","images","params",
                                    "options","fence","lease_ms","traceparent"}, or 204 when no
                                    job waits, and none came within `wait_ms`
    POST /runner/jobs/{id}/finish   {"fence", "results": [{"status", "data", "error"?}, ...]}
    POST /runner/jobs/{id}/fail     {"fence", "error"}
    POST /runner/jobs/{id}/timeout  {"fence", "error"}
    POST /runner/jobs/{id}/renew    {"fence"}

The last four answer 200 `{"accepted": bool}`: false when the ledger refuses, because the job has
ended, or when the fence is not that of the open claim; 404 when the job is unknown.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from sanic import Request
from sanic.response import HTTPResponse

from counterfoil_server import rules, strict_json
from counterfoil_server.answers import answer, no_content, refusal
from counterfoil_server.bodies import is_json, read_body
from counterfoil_server.core import Core
from counterfoil_server.doors import Resource
from counterfoil_server.intake import Fault
from counterfoil_server.keys import Access
from counterfoil_server.leases import Claim, Leases
from counterfoil_server.runner_words import (
    Body,
    Finished,
    read_error,
    read_fence,
    read_finished,
    read_wait_ms,
)

__all__ = ["RunnerRoutes"]


class _Word(NamedTuple):
    """A last part of the path: how its body is read, and what is then done with the claim."""

    read: Callable[[Body], Any]
    act: Callable[[Claim, Any], bool | Fault]


class RunnerRoutes:
    """The handlers, over one core."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._words: dict[str, _Word] = {
            "finish": _Word(read_finished, self._finish),
            "fail": _Word(read_error, self._fail),
            "timeout": _Word(read_error, self._time_out),
            "renew": _Word(lambda _: None, self._renew),
        }

    def resources(self) -> list[Resource]:
        """The table of paths; there is nothing under them unless the runner is external."""
        base = f"{self._core.settings.prefix}/runner"
        enabled = self._core.settings.runner != "internal"
        access = Access.RUNNER if enabled else Access.CLIENT
        return [
            Resource(f"{base}/claim", {"POST": self.claim}, access, enabled),
            Resource(
                f"{base}/jobs/<job_id>/<word>",
                {"POST": self.tell},
                access,
                enabled,
                lambda word, **_: word in self._words,
            ),
        ]

    async def claim(self, request: Request) -> HTTPResponse:
        """Hand the oldest waiting job out, or the next one that comes in time."""
        body = await self._read(request)
        if isinstance(body, HTTPResponse):
            return body
        wait_ms = read_wait_ms(body)
        if isinstance(wait_ms, Fault):
            return _refuse(wait_ms)
        handed = await self._leases.claim(min(wait_ms, rules.LONGEST_WAIT_MS))
        if handed is None:
            return no_content({})
        claim, task = handed
        return answer(
            200,
            strict_json.dumps(
                {
                    "job_id": claim.job_id,
                    "task_id": claim.task_id,
                    "images": task.images,
                    "params": task.params,
                    "options": task.options,
                    "fence": claim.fence,
                    "lease_ms": self._leases.lease_ms,
                    "traceparent": claim.traceparent,
                }
            ),
        )

    async def tell(self, request: Request, job_id: str, word: str) -> HTTPResponse:
        """Take what a runner says about its job."""
        said = self._words.get(word)
        if said is None:
            return refusal(404, "no such path")
        body = await self._read(request)
        if isinstance(body, HTTPResponse):
            return body
        fence, content = read_fence(body), said.read(body)
        faults = [one for one in (fence, content) if isinstance(one, Fault)]
        if isinstance(fence, Fault) or faults:
            return _refuse(*faults)
        if self._core.ledger.snapshot(job_id) is None:
            return refusal(404, f"job not found: {job_id[:128]}")
        claim = self._leases.find(job_id, fence)
        accepted = claim is not None and said.act(claim, content)
        if isinstance(accepted, Fault):
            return _refuse(accepted)
        return answer(200, b'{"accepted":true}' if accepted else b'{"accepted":false}')

    @property
    def _leases(self) -> Leases:
        return self._core.leases

    def _finish(self, claim: Claim, said: Finished) -> bool | Fault:
        """The envelope names the runner's model if it says which, or the configured one."""
        if len(said.items) != claim.images:
            return Fault("/results", f"must be one result for each of {claim.images} images")
        return self._leases.finish(claim, said.items, said.model or self._core.model.name)

    def _fail(self, claim: Claim, error: str) -> bool:
        return self._leases.fail(claim, error)

    def _time_out(self, claim: Claim, error: str) -> bool:
        return self._leases.time_out(claim, error)

    def _renew(self, claim: Claim, _: None) -> bool:
        return self._leases.renew(claim)

    async def _read(self, request: Request) -> dict[str, Any] | HTTPResponse:
        settings = self._core.settings
        if not is_json(request):
            return refusal(415, "the media type must be application/json")
        body = await read_body(request, settings.max_body, settings.body_timeout / 1000)
        if isinstance(body, HTTPResponse):
            return body
        try:
            value = strict_json.loads(body or b"{}")
        except strict_json.BadJson as error:
            return refusal(400, f"the body is not strict JSON: {error}", [Fault("", f"{error}")])
        if not isinstance(value, dict):
            return refusal(400, "the body must be a JSON object", [Fault("", "not an object")])
        return value


def _refuse(*faults: Fault) -> HTTPResponse:
    return refusal(422, "the body is refused", faults)
