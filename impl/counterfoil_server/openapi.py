"""The server's own description in OpenAPI 3.1, made from its configuration.

It says of this very server what a client must know: its prefix, its bounds, which routes it has,
whether it asks for a token. A test sends what the description allows, and what it forbids, to a
running server, and takes every answer that is not described for a fault.
"""

from typing import Any, TypeAlias

from counterfoil_server import rules
from counterfoil_server.config import Settings
from counterfoil_server.openapi_runners import runner_paths, runner_schemas

__all__ = ["describe"]

Part: TypeAlias = dict[str, Any]


def describe(settings: Settings) -> Part:
    """The document behind `/openapi.json`."""
    document: Part = {
        "openapi": "3.1.0",
        "info": {
            "title": "Counterfoil model server",
            "version": "1",
            "description": "Asynchronous inference jobs, and a blocking call beside them.",
        },
        "servers": [{"url": "/"}],
        "paths": _paths(settings),
        "components": {
            "schemas": _schemas(settings),
            "responses": _RESPONSES,
            "headers": _HEADERS,
            "parameters": {"job_id": _JOB_ID},
        },
    }
    bearer = {"type": "http", "scheme": "bearer"}
    schemes = document["components"]["securitySchemes"] = {}
    if settings.token:
        schemes["bearer"] = bearer
        document["security"] = [{"bearer": []}]
    if settings.runner != "internal":
        schemes["runner"] = bearer
        document["paths"] |= runner_paths(settings)
        document["components"]["schemas"] |= runner_schemas()
    return document


def _paths(settings: Settings) -> Part:
    prefix = settings.prefix
    paths = {
        "/healthz": _get("health", "Whether the process answers.", _PUBLIC | _json("Health")),
        "/ready": _get(
            "ready",
            "Whether jobs are admitted.",
            _PUBLIC | _json("Health", "200") | _json("Health", "503", "Starting or stopping."),
        ),
        "/openapi.json": _get("describe", "This document.", _PUBLIC | _json("Any")),
        "/metrics": _get("metrics", "Prometheus text.", _text("text/plain")),
        "/status": _get("statusPage", "A page for people.", _text("text/html")),
    }
    if settings.async_enabled:
        paths |= {
            f"{prefix}/jobs": {"post": _submit(prefix)},
            f"{prefix}/jobs/{{job_id}}": _job("status", "The job as it is now.", _STATUS),
            f"{prefix}/jobs/{{job_id}}/wait": _job(
                "wait",
                "The job once it has ended, or as it is when the time is over.",
                _STATUS | _refused("422"),
                _TIMEOUT,
            ),
            f"{prefix}/jobs/{{job_id}}/result": _job(
                "result",
                "What the model answered.",
                _json("Envelope") | {"304": {"description": "As it was."}} | _refused("409"),
            ),
        }
    if settings.runner != "external":
        paths[f"{prefix}/infer"] = {"post": _infer()}
    return {path: _with_401(item, settings) for path, item in paths.items()}


def _with_401(item: Part, settings: Settings) -> Part:
    """Every route that is not public can refuse a missing token."""
    if settings.token:
        for operation in item.values():
            if operation.pop("x-public", False):
                operation["security"] = []
            else:
                operation["responses"] |= _refused("401")
    else:
        for operation in item.values():
            operation.pop("x-public", None)
    return item


def _get(name: str, text: str, responses: Part, parameters: list[Part] | None = None) -> Part:
    public = responses.pop("x-public", False)
    operation: Part = {"operationId": name, "summary": text, "responses": responses}
    if public:
        operation["x-public"] = True
    if parameters:
        operation["parameters"] = parameters
    return {"get": operation}


def _job(name: str, text: str, responses: Part, *more: Part) -> Part:
    parameter = {"$ref": "#/components/parameters/job_id"}
    return _get(name, text, responses | _refused("404"), [parameter, *more])


def _submit(prefix: str) -> Part:
    links = {
        name: {"operationId": name, "parameters": {"job_id": "$response.body#/job_id"}}
        for name in ("status", "wait", "result")
    }
    accepted = {
        "description": f"Admitted. It can be followed under {prefix}/jobs/{{job_id}}.",
        "headers": _COMMON | {"Location": {"$ref": "#/components/headers/Location"}},
        "content": _content("Accepted"),
        "links": links,
    }
    return {
        "operationId": "submit",
        "summary": "Admit a job.",
        "requestBody": _BODY,
        "responses": {"202": accepted} | _BODY_REFUSED | _refused("429", "503"),
    }


def _infer() -> Part:
    failed = _json("Envelope", "500", "The model failed.")
    return {
        "operationId": "infer",
        "summary": "Run and answer; on the same workers as the jobs.",
        "requestBody": _BODY,
        "responses": _json("Envelope") | failed | _BODY_REFUSED | _refused("429", "503", "504"),
    }


def _content(schema: str) -> Part:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}


def _json(schema: str, status: str = "200", text: str = "As asked.") -> Part:
    return {status: {"description": text, "headers": _COMMON, "content": _content(schema)}}


def _text(kind: str) -> Part:
    content = {kind: {"schema": {"type": "string"}}}
    return {"200": {"description": "As asked.", "headers": _COMMON, "content": content}}


def _refused(*statuses: str) -> Part:
    return {status: {"$ref": f"#/components/responses/{status}"} for status in statuses}


def _schemas(settings: Settings) -> Part:
    text = {"type": "string"}
    state = {"enum": ["pending", "running", "done", "failed", "timeout"]}
    fault = _object({"pointer": text, "message": text})
    model = _object({"name": text, "version": text})
    item = _object({"status": {"type": "integer"}, "data": {}})
    images = {
        "type": "array",
        "items": {"type": "string", "description": "base64"},
        "minItems": 1,
        "maxItems": settings.max_images,
    }
    anything = {"type": "object"}
    req_id = {"type": "string", "pattern": "^[^\\u0000-\\u001f\\u007f-\\u009f]*$"}
    submission = _object(
        {"images": images},
        {"req_id": req_id, "params": anything, "options": anything},
    )
    submission["additionalProperties"] = False
    envelope = _object(
        {
            "status": {"type": "integer"},
            "status_str": text,
            "task_id": text,
            "model": model,
            "results": {"type": "array", "items": item},
            "server_time_ms": {"type": "number", "minimum": 0},
            "partial": {"type": "boolean"},
        },
        {"errors": {"type": "array", "items": fault}},
    )
    return {
        "Any": {},
        "Health": _object({"status": text}, {"error": text}),
        "Submission": submission,
        "Accepted": _object(
            {"job_id": text, "state": {"const": "pending"}, "poll_url": text, "result_url": text}
        ),
        "Status": _object(
            {"job_id": text, "state": state, "elapsed_ms": {"type": "integer", "minimum": 0}},
            {"error": {"type": "string", "minLength": 1}},
        ),
        "Envelope": envelope,
        "Refusal": _object({"error": text}, {"errors": {"type": "array", "items": fault}}),
    }


def _object(required: Part, optional: Part | None = None) -> Part:
    return {
        "type": "object",
        "properties": required | (optional or {}),
        "required": list(required),
    }


_JOB_ID: Part = {
    "name": "job_id",
    "in": "path",
    "required": True,
    "schema": {"type": "string", "minLength": 1},
}
_TIMEOUT: Part = {
    "name": "timeout",
    "in": "query",
    "schema": {"type": "integer"},
    "description": (
        f"The longest wait in ms; absent, 0 and below mean {rules.USUAL_WAIT_MS}, "
        f"and {rules.LONGEST_WAIT_MS} is the most."
    ),
}
_HEADERS: Part = {
    "X-Request-ID": {"schema": {"type": "string"}, "required": True},
    "Cache-Control": {"schema": {"const": "no-store"}, "required": True},
    "Location": {"schema": {"type": "string"}, "required": True},
    "Retry-After": {"schema": {"type": "integer", "minimum": 1, "maximum": 60}},
    "Allow": {"schema": {"type": "string"}},
    "WWW-Authenticate": {"schema": {"const": "Bearer"}, "required": True},
}
_COMMON: Part = {
    name: {"$ref": f"#/components/headers/{name}"} for name in ("X-Request-ID", "Cache-Control")
}


def _refusal(text: str, *headers: str) -> Part:
    more = {name: {"$ref": f"#/components/headers/{name}"} for name in headers}
    return {"description": text, "headers": _COMMON | more, "content": _content("Refusal")}


_RESPONSES: Part = {
    "400": _refusal("The body is not a strict JSON object."),
    "401": _refusal("The token is missing or wrong.", "WWW-Authenticate"),
    "404": _refusal("There is no such job."),
    "408": _refusal("The body did not arrive in time."),
    "409": _refusal("The job is not done; the error names its state."),
    "413": _refusal("The body is too large."),
    "415": _refusal("The body's media type is not JSON."),
    "422": _refusal("The content is wrong; each fault has a JSON pointer."),
    "429": _refusal("Too much at once; the error names the bound.", "Retry-After"),
    "503": _refusal("The server is stopping.", "Retry-After"),
    "504": _refusal("The budget was used up."),
}
_BODY: Part = {"required": True, "content": _content("Submission")}
_BODY_REFUSED: Part = _refused("400", "408", "413", "415", "422")
_STATUS: Part = _json("Status")
_PUBLIC: Part = {"x-public": True}
