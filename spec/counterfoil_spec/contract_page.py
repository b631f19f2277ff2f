"""The contract as a page for people: `docs/contract.md` is what this module returns.

The clauses, limits and defects come from the tables in `clauses.py`; only the prose that frames
them is written here.
"""

from itertools import groupby

from counterfoil_spec.clauses import CLAUSES, DEFECTS, FAMILIES, LIMITS, Clause

__all__ = ["contract_markdown"]

_HEAD = """\
# The asynchronous job contract

A client submits a request and is answered `202` with a job id at once; it polls, waits or fetches
the result later. This page says what a server owes it, clause by clause. Ids are stable: a clause
may be added, an id is never reused.

*Level*: **MUST** breaks conformance when violated; **SHOULD** is reported as a warning.
*Seen at*: **ledger** = by calling the ledger in-process; **wire** = over HTTP by a black-box
client; **both**; **process** = over HTTP with control over the server's process; **inside** = only
in the code's own steps (locks, publication order). A checker is never stricter than this text:
where it allows several answers, all of them pass. A target may *declare* a documented deviation (a
*dialect*), which is then reported as declared, not as a failure. *Core* clauses are the MUSTs of S,
A, R, W, G and H that are seen at the wire; a run that did not exercise all of them is inconclusive,
never green.

Vocabulary: *job*, *ledger*, *state*, *depth* (jobs pending or running), *admission*, *terminal*
(done, failed, timeout), *retention*, *eviction*, *runner* (whoever executes a job), *waiter* (a
blocked wait call), *budget* (the longest a wait may block, or a job may take).

*Tolerance*: "at once", "woken", "not long after" mean within 250 ms plus the measured round trip by
default; a checker declares its tolerance, prints it, and lets the user raise it.
"""

_HTTP = """\
Paths are under an optional prefix (`/v1/models/{name}` behind a gateway); `/healthz`, `/ready`,
`/metrics`, `/openapi.json` are at the root (and may also be under the prefix). All bodies are JSON,
`Content-Type: application/json; charset=utf-8` (case and spacing free). Clients ignore unknown
response fields.

| request | success | refusals |
|---|---|---|
| `POST /jobs` | 202 `{"job_id","state":"pending","poll_url","result_url"}` + `Location` | 429 \
`{"error":"async queue full (max N)"}`; 400/413/415/422 |
| `GET /jobs/{id}` | 200 `{"job_id","state","elapsed_ms"[,"error"]}` | 404 \
`{"error":"job not found: <id>"}` |
| `GET /jobs/{id}/wait?timeout=ms` | 200, same body as above | 404 |
| `GET /jobs/{id}/result` | 200 envelope | 404; 409 \
`{"error":"job not finished (state: <state>)"}` |
| `POST /infer` | 200 envelope, same request body, same workers, blocking | 400/413/415/422, 429 + \
`Retry-After`, 504 |
| `GET /healthz` `GET /ready` `GET /openapi.json` | 200, public | `/ready` 503 while not ready or \
draining |
| `GET /metrics` | 200 Prometheus text | 401 without the token when one is configured |

Request body: `{"images": ["<base64>", ...], "req_id"?: str, "params"?: {}, "options"?: {}}`.
Envelope: `{"status":0,"status_str":"OK","task_id":str,"model":{"name","version"},"results":\
[{"status":0,"data":...}],"server_time_ms":num,"partial":bool[,"errors":[{"pointer","message"}]]}`.
Refusals of the body (400, 413, 415, 422) carry `errors: [{"pointer","message"}]`; every refusal
carries a human-readable `error` or `status_str`.
"""

_DEFECTS = """\
## The historic defects

The clauses exist because a C++ model server shipped these; the checks must be able to find them
again at every level at which they are visible.
"""


def contract_markdown() -> str:
    """The whole page, as Markdown."""
    parts = [_HEAD, _limits()]
    for family, members in groupby(CLAUSES.values(), key=lambda clause: clause.family):
        prose = f"\n{_HTTP}" if family == "H" else ""
        parts.append(f"## {family} — {FAMILIES[family]}\n{prose}\n{_table(list(members))}")
    parts.append(_DEFECTS + "\n" + "\n".join(_defects()) + "\n")
    return "\n".join(parts)


def _limits() -> str:
    rows = (f"| `{x.key}` | `{str(x.default).lower()}` | {x.meaning} |" for x in LIMITS)
    head = "## Limits\n\nConfiguration keys keep these names, units and defaults.\n\n"
    return head + "| key | default | meaning |\n|---|---|---|\n" + "\n".join(rows) + "\n"


def _table(clauses: list[Clause]) -> str:
    rows = (
        f"| {c.id} | {c.level}{' (core)' if c.core else ''} | {c.seen_at} | {c.sentence} |"
        for c in clauses
    )
    return "| id | level | seen at | clause |\n|---|---|---|---|\n" + "\n".join(rows) + "\n"


def _defects() -> list[str]:
    return [
        f"- **{d.id}, {d.title}.** {d.story}"
        + (f" Breaks {', '.join(d.breaks)};" if d.breaks else "")
        + (f" seen as {', '.join(d.shows_as)}." if d.shows_as else "")
        for d in DEFECTS.values()
    ]
