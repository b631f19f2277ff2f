"""The calls a user makes, as HTTP requests that are counted by Locust and recorded as history.

Each call is one request. Locust's statistics get it under its kind *and outcome* (`submit 429`,
`wait woken`), since a latency averaged over outcomes says nothing. The history gets it as one line,
in the ledger's terms. A refusal that the contract allows is a success here; whether it was right is
for the verdict, which sees the whole history. A failure to Locust is what no contract allows: no
answer, or one that makes no sense.
"""

import json
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from counterfoil_load.known import TERMINAL
from counterfoil_load.recorder import Recorder, now_us

__all__ = ["Answer", "Calls"]

Reply: TypeAlias = dict[str, Any]
# The outcome for Locust's statistics, and the reply in the ledger's terms; None: makes no sense.
Reading: TypeAlias = tuple[str, Reply | None]


class Answer(NamedTuple):
    """What came back: the HTTP status (0: no answer), the JSON body (None: none), the interval."""

    status: int
    body: Any
    call_us: int
    return_us: int


class Calls:
    """The contract's calls, made with one user's HTTP client.

    Args:
        client: Locust's `FastHttpSession`.
        name: the client's name in the history.
        recorder: where the calls go.
        prefix: before `/jobs` and `/runner`.
        token: bearer token for `/jobs`, or empty.
        runner_token: bearer token for `/runner`, or empty.
        learn: told of each history line's op, job and reply.
    """

    def __init__(  # noqa: PLR0913 - what a call needs, named
        self,
        client: Any,
        *,
        name: str,
        recorder: Recorder,
        prefix: str,
        token: str,
        runner_token: str,
        learn: Callable[[dict[str, Any]], None],
    ) -> None:
        self._client = client
        self._name = name
        self._recorder = recorder
        self._prefix = prefix
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        runner = {"Authorization": f"Bearer {runner_token}"} if runner_token else {}
        self._runner_headers = runner
        self._learn = learn

    def submit(self, body: str, task_id: str, nonce: str) -> str | None:
        """Submit `body`; the id if it was admitted."""
        answer = self._send("POST", "/jobs", "submit", _read_submit, body=body)
        reply = self._note("submit", None, answer, _read_submit, task_id=task_id, nonce=nonce)
        return None if reply is None else reply.get("job")

    def poll(self, job: str) -> Reply | None:
        """The job's state."""
        answer = self._send("GET", f"/jobs/{job}", "poll", _read_snapshot)
        return self._note("snapshot", job, answer, _read_snapshot)

    def wait(self, job: str, budget_ms: int) -> Reply | None:
        """Wait for the job's end, for at most `budget_ms`."""
        path = f"/jobs/{job}/wait?timeout={budget_ms}"
        answer = self._send("GET", path, "wait", _read_wait)
        return self._note("wait", job, answer, _read_wait, budget_ms=budget_ms)

    def result(self, job: str) -> Reply | None:
        """The job's result, or why there is none."""
        answer = self._send("GET", f"/jobs/{job}/result", "result", _read_result)
        return self._note("result", job, answer, _read_result)

    def claim(self, wait_ms: int) -> dict[str, Any] | None:
        """Take a pending job and start it: its id, fence and images; None if there is none."""
        text = json.dumps({"wait_ms": wait_ms})
        answer = self._send("POST", "/runner/claim", "claim", _read_claim, body=text, runner=True)
        claim = answer.body if answer.status == 200 else None
        if not isinstance(claim, dict) or not isinstance(claim.get("job_id"), str):
            if answer.status != 204:
                # It may have started a job, and nobody will ever know which.
                self._write("start", None, answer, {}, None)
            return None
        taken = {"task_id": claim.get("task_id"), "payload": "taken"}
        self._write("take_request", claim["job_id"], answer, {}, taken)
        self._write("start", claim["job_id"], answer, {}, {"accepted": True})
        return claim

    def end(self, claim: dict[str, Any], how: str, **body: Any) -> bool | None:
        """Call `finish`, `fail` or `timeout` on a claimed job; whether it was accepted."""
        path = f"/runner/jobs/{claim['job_id']}/{how}"
        text = json.dumps({"fence": claim["fence"], **body})
        answer = self._send("POST", path, how, _read_accepted, body=text, runner=True)
        # With the fence in the history: a refusal may only mean that the lease was over.
        reply = self._note(
            how, claim["job_id"], answer, _read_accepted, fence=claim["fence"], **body
        )
        return None if reply is None else reply.get("accepted")

    def _send(  # noqa: PLR0913 - one request
        self,
        method: str,
        path: str,
        kind: str,
        read: Callable[[Answer], Reading],
        *,
        body: str | None = None,
        runner: bool = False,
    ) -> Answer:
        """Send one request and count it under its kind and outcome."""
        headers = dict(self._runner_headers if runner else self._headers)
        if body is not None:
            headers["Content-Type"] = "application/json"
        call_us = now_us()
        url = f"{self._prefix}{path}"
        with self._client.request(
            method, url, data=body, headers=headers, name=kind, catch_response=True
        ) as response:
            answer = Answer(response.status_code or 0, _json(response.content), call_us, now_us())
            outcome, reply = read(answer)
            response.request_meta["name"] = f"{kind} {outcome}"
            if reply is None:
                response.failure(f"{kind}: {outcome}: {_excerpt(response.content)}")
            else:
                response.success()
        return answer

    def _note(
        self,
        op: str,
        job: str | None,
        answer: Answer,
        read: Callable[[Answer], Reading],
        **args: Any,
    ) -> Reply | None:
        reply = read(answer)[1]
        self._write(op, job, answer, args, reply)
        return reply

    def _write(
        self, op: str, job: str | None, answer: Answer, args: dict[str, Any], reply: Reply | None
    ) -> None:
        returned = None if reply is None else answer.return_us
        self._recorder.record(self._name, op, job, answer.call_us, returned, args, reply)
        self._learn({"op": op, "job": job, "reply": reply})


def _json(content: bytes | None) -> Any:
    try:
        return json.loads(content or b"null")
    except ValueError:
        return None


def _excerpt(content: bytes | None) -> str:
    return (content or b"")[:200].decode("utf-8", "replace")


def _read_submit(answer: Answer) -> Reading:
    if answer.status == 429:
        return "429", {"refused": True}
    job = answer.body.get("job_id") if isinstance(answer.body, dict) else None
    if answer.status == 202 and isinstance(job, str):
        return "202", {"job": job}
    return str(answer.status or "no answer"), None


def _read_snapshot(answer: Answer) -> Reading:
    if answer.status == 404:
        return "404", {"unknown": True}
    body = answer.body
    if answer.status == 200 and isinstance(body, dict) and isinstance(body.get("state"), str):
        reply = {key: body.get(key) for key in ("state", "error", "elapsed_ms")}
        return str(body["state"]), reply
    return str(answer.status or "no answer"), None


def _read_wait(answer: Answer) -> Reading:
    outcome, reply = _read_snapshot(answer)
    if reply is None or "state" not in reply:
        return outcome, reply
    return ("woken" if reply["state"] in TERMINAL else "expired"), reply


def _read_result(answer: Answer) -> Reading:
    body = answer.body if isinstance(answer.body, dict) else {}
    if answer.status == 404:
        return "404", {"status": "not_found"}
    if answer.status == 409:
        text = str(body.get("error", ""))
        states = [s for s in ("pending", "running", "failed", "timeout", "done") if s in text]
        return "409", {"status": "not_done", "state": states[0] if states else ""}
    if answer.status == 200 and "results" in body:
        envelope = {key: value for key, value in body.items() if key != "server_time_ms"}
        return "200", {"status": "ready", "task_id": body.get("task_id"), "result": envelope}
    return str(answer.status or "no answer"), None


def _read_claim(answer: Answer) -> Reading:
    if answer.status in (200, 204):
        return ("job" if answer.status == 200 else "none"), {}
    return str(answer.status or "no answer"), None


def _read_accepted(answer: Answer) -> Reading:
    body = answer.body if isinstance(answer.body, dict) else {}
    if answer.status == 404:
        return "404", {"accepted": False, "unknown": True}
    if answer.status == 200 and isinstance(body.get("accepted"), bool):
        return ("accepted" if body["accepted"] else "refused"), {"accepted": body["accepted"]}
    return str(answer.status or "no answer"), None
