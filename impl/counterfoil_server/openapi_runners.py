"""The runner surface in OpenAPI 3.1: the part of the description that is there when it is open."""

from typing import Any, TypeAlias

from counterfoil_server import rules
from counterfoil_server.config import Settings

__all__ = ["runner_paths", "runner_schemas"]

Part: TypeAlias = dict[str, Any]

_SECURITY: list[Part] = [{"runner": []}]


def runner_paths(settings: Settings) -> Part:
    """The paths under `/runner`; none unless runners outside are allowed."""
    if settings.runner == "internal":
        return {}
    base = f"{settings.prefix}/runner"
    told = {f"{base}/jobs/{{job_id}}/{word}": _tell(word, text) for word, text in _WORDS.items()}
    return {f"{base}/claim": _claim()} | told


def runner_schemas() -> Part:
    """What runners say and hear."""
    text, number = {"type": "string"}, {"type": "integer"}
    result = _object({"status": number}, {"data": {}, "error": text})
    ending = {"fence": number, "error": {"type": "string", "minLength": 1}}
    model = {"type": "object", "properties": {"name": text, "version": text}}
    finish = {"fence": number, "results": {"type": "array", "items": result}}
    claimed = {
        "job_id": text,
        "task_id": text,
        "images": {"type": "array", "items": text},
        "params": {"type": "object"},
        "options": {"type": "object"},
        "fence": number,
        "lease_ms": number,
        "traceparent": text,
    }
    wait = {"type": "integer", "minimum": 0, "default": 0, "description": _WAIT}
    return {
        "ClaimAsked": _object({}, {"wait_ms": wait}),
        "Claimed": _object(claimed),
        "Heard": _object({"accepted": {"type": "boolean"}}),
        "finish": _object(finish, {"model": model}),
        "fail": _object(ending),
        "timeout": _object(ending),
        "renew": _object({"fence": number}),
    }


def _claim() -> Part:
    return {
        "post": {
            "operationId": "claim",
            "summary": "Start the oldest waiting job, and take its request; it is handed out once.",
            "security": _SECURITY,
            "requestBody": {"content": _content("ClaimAsked")},
            "responses": {
                "200": _described("The job is the caller's.", "Claimed") | {"links": _LINKS},
                "204": {"description": "No job waits, and none came in time."},
            }
            | _refused(),
        }
    }


def _tell(word: str, text: str) -> Part:
    return {
        "post": {
            "operationId": word,
            "summary": text,
            "security": _SECURITY,
            "parameters": [{"$ref": "#/components/parameters/job_id"}],
            "requestBody": {"required": True, "content": _content(word)},
            "responses": {"200": _described(_HEARD, "Heard")} | _refused("404"),
        }
    }


def _described(text: str, schema: str) -> Part:
    return {"description": text, "content": _content(schema)}


def _content(schema: str) -> Part:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}


def _refused(*more: str) -> Part:
    statuses = ("400", "401", "408", "413", "415", "422", *more)
    return {status: {"$ref": f"#/components/responses/{status}"} for status in statuses}


def _object(required: Part, optional: Part | None = None) -> Part:
    return {
        "type": "object",
        "properties": required | (optional or {}),
        "required": list(required),
    }


_WORDS = {
    "finish": "End the job with one result for each of its images.",
    "fail": "End the job as failed.",
    "timeout": "End the job as timed out.",
    "renew": "Let the lease run anew.",
}
_LINKS = {
    word: {"operationId": word, "parameters": {"job_id": "$response.body#/job_id"}}
    for word in _WORDS
}
_WAIT = f"How long to wait for a job in ms; {rules.LONGEST_WAIT_MS} is the most."
_HEARD = "Whether it counts: not if the job has ended, or the fence is not that of its claim."
