"""The runner surface: any process anywhere may run the jobs, with a token of its own.

    POST /runner/claim              200 {"job_id","task_id","images","params","options","fence",
                                         "lease_ms","traceparent"}, or 204 when no job waits
    POST /runner/jobs/{id}/finish   {"fence", "results": [{"status", "data", "error"?}, ...]}
    POST /runner/jobs/{id}/fail     {"fence", "error"}
    POST /runner/jobs/{id}/timeout  {"fence", "error"}
    POST /runner/jobs/{id}/renew    {"fence"}

The last four answer 200 `{"accepted": bool}`: false when the ledger refuses, because the job has
ended, or when the fence is not that of the open claim; 404 when the job is unknown.
"""

from collections.abc import Callable
from typing import Any

from sanic import Request
from sanic.response import HTTPResponse

from counterfoil_server import strict_json
from counterfoil_server.answers import answer, no_content, refusal
from counterfoil_server.bodies import is_json, read_body
from counterfoil_server.core import Core
from counterfoil_server.doors import Resource
from counterfoil_server.intake import Fault
from counterfoil_server.keys import Access
from counterfoil_server.leases import Claim, Leases
from counterfoil_server.tasks import Item, ModelName

__all__ = ["RunnerRoutes"]


class RunnerRoutes:
    """The handlers, over one core."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._ends: dict[str, Callable[[Claim, dict[str, Any]], bool | list[Fault]]] = {
            "finish": self._finish,
            "fail": self._fail,
            "timeout": self._time_out,
            "renew": self._renew,
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
                lambda word, **_: word in self._ends,
            ),
        ]

    async def claim(self, request: Request) -> HTTPResponse:
        """Hand the oldest waiting job out."""
        body = await self._read(request)
        if isinstance(body, HTTPResponse):
            return body
        claim = self._leases.claim()
        if claim is None:
            return no_content({})
        return answer(
            200,
            strict_json.dumps(
                {
                    "job_id": claim.job_id,
                    "task_id": claim.task_id,
                    "images": claim.task.images,
                    "params": claim.task.params,
                    "options": claim.task.options,
                    "fence": claim.fence,
                    "lease_ms": self._leases.lease_ms,
                    "traceparent": claim.traceparent,
                }
            ),
        )

    async def tell(self, request: Request, job_id: str, word: str) -> HTTPResponse:
        """Take what a runner says about its job."""
        act = self._ends.get(word)
        if act is None:
            return refusal(404, "no such path")
        body = await self._read(request)
        if isinstance(body, HTTPResponse):
            return body
        fence = body.get("fence")
        if not isinstance(fence, int) or isinstance(fence, bool):
            return _refuse([Fault("/fence", "must be the integer that came with the claim")])
        if self._core.ledger.snapshot(job_id) is None:
            return refusal(404, f"job not found: {job_id[:128]}")
        claim = self._leases.find(job_id, fence)
        accepted = act(claim, body) if claim is not None else False
        if isinstance(accepted, list):
            return _refuse(accepted)
        return answer(200, b'{"accepted":true}' if accepted else b'{"accepted":false}')

    @property
    def _leases(self) -> Leases:
        return self._core.leases

    def _finish(self, claim: Claim, body: dict[str, Any]) -> bool | list[Fault]:
        items = _read_items(body.get("results"), len(claim.task.images))
        if isinstance(items, Fault):
            return [items]
        return self._leases.finish(claim, items, self._model(body))

    def _fail(self, claim: Claim, body: dict[str, Any]) -> bool | list[Fault]:
        error = body.get("error")
        if not isinstance(error, str) or not error:
            return [Fault("/error", "must be a non-empty string")]
        return self._leases.fail(claim, error)

    def _time_out(self, claim: Claim, body: dict[str, Any]) -> bool | list[Fault]:
        error = body.get("error")
        if not isinstance(error, str) or not error:
            return [Fault("/error", "must be a non-empty string")]
        return self._leases.time_out(claim, error)

    def _renew(self, claim: Claim, _: dict[str, Any]) -> bool:
        return self._leases.renew(claim)

    def _model(self, body: dict[str, Any]) -> ModelName:
        """Whom the envelope names: the runner's model if it says so, or the configured one."""
        said = body.get("model")
        if isinstance(said, dict):
            return ModelName(str(said.get("name", "")), str(said.get("version", "")))
        return self._core.model.name

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


def _read_items(results: Any, images: int) -> list[Item] | Fault:
    """One item per image: `status` 0 and its `data`, or another status and an `error`."""
    if not isinstance(results, list) or len(results) != images:
        return Fault("/results", f"must be an array with one result for each of {images} images")
    items = []
    for number, result in enumerate(results):
        if not isinstance(result, dict) or not isinstance(result.get("status"), int):
            return Fault(f"/results/{number}", "must be an object with an integer status")
        failed = result["status"] != 0
        error = str(result.get("error") or f"status {result['status']}") if failed else None
        items.append(Item(None if failed else result.get("data"), error))
    return items


def _refuse(faults: list[Fault]) -> HTTPResponse:
    return refusal(422, "the body is refused", faults)
