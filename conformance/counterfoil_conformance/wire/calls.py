"""The contract as a typed API, every call of it recorded and every answer looked at.

A check asks in the contract's own words (`submit`, `status`, `wait`, `result`) and gets a `Job` or
a `Reading`; behind that every call lands in one history, with its interval, as an oracle `Call`,
and every answer passes one hook that publishes what is wrong with it taken alone. So a fault is
found wherever it turns up, not only by the check that was written for it; the history as a whole
is judged at the end of the run.

Any 202 to any request is recorded, also one that should not have been given: the place it took is
real.
"""

import asyncio
import itertools
import json
import random
import string
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

from counterfoil_conformance.oracle.history import Call
from counterfoil_conformance.run import Publish, RunOptions
from counterfoil_conformance.wire.answer import NOT_JSON, Answer, Request, now_us
from counterfoil_conformance.wire.client import DEFAULT, Client, Connection, _Default
from counterfoil_conformance.wire.jobs import Job, Submitted, effective_budget_ms, images_in
from counterfoil_conformance.wire.laws import broken_laws
from counterfoil_conformance.wire.patience import Patience
from counterfoil_conformance.wire.reading import Reading, at_pointer, read, surface_faults
from counterfoil_conformance.wire.target import Target
from counterfoil_spec.ledger import Outcome
from counterfoil_spec.wire import Route

__all__ = ["Calls", "TargetGone"]

CLOCK_ID: Final = "wire"
_REFUSED_FOR_FORM: Final = (400, 404, 405, 413, 415, 422)
_NONCE: Final = string.ascii_letters + string.digits


class TargetGone(Exception):
    """The target stopped taking connections in the middle of the run."""


class Calls(Patience):
    """The calls of one run, the history of them, and the findings of each answer."""

    def __init__(self, target: Target, options: RunOptions, publish: Publish) -> None:
        super().__init__(target, options, publish)
        self.client = Client(target)
        self.history: list[Call] = []
        self.answers: list[tuple[Call, Answer]] = []
        self.rng = random.Random(options.seed)
        self.lost_submits = 0
        self.crashes: list[Answer] = []
        self.echoes: dict[str, Any] = {}  # what a nonce of the `echo` body is known to give
        self.blocking_calls: list[Answer] = []
        self._failures_in_a_row = 0
        self._last_ok_us = now_us()
        self._numbers = itertools.count(1)

    async def send(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | Iterable[tuple[str, str]] = (),
        token: str | _Default | None = DEFAULT,
        conn: Connection | None = None,
        prefix: bool = True,
        timeout_s: float | None = None,
        may_5xx: bool = False,
        json_route: bool = True,
        may_fail: bool = False,
    ) -> Answer:
        """Send a request exactly as given; every answer passes the hook.

        `prefix` puts the target's prefix before `path`; `may_fail`: no answer at all is no finding
        here (an aborted or malformed exchange, which the caller judges).
        """
        where = (self.target.prefix if prefix else "") + path
        request = self.client.request(method, where, body=body, headers=headers, token=token)
        answer = await self.client.send(request, conn=conn, timeout_s=timeout_s)
        self.look_at(answer, may_5xx=may_5xx, json_route=json_route, may_fail=may_fail)
        if method == "POST" and path.split("?", maxsplit=1)[0].rstrip("/") == "/jobs":
            self._admit(answer, "other", body or b"", None)
        return answer

    def look_at(
        self,
        answer: Answer,
        *,
        may_5xx: bool = False,
        json_route: bool = True,
        may_fail: bool = False,
    ) -> Answer:
        """The hook: what no answer may be. For answers read by hand, call it yourself.

        Raises:
            TargetGone: the target has not taken a connection for several requests in a row.
        """
        self._note_health(answer)
        if answer.trouble == "refused" or answer.closed_idle:
            return answer
        if answer.request.path == f"{self.target.prefix}/infer":
            self.blocking_calls.append(answer)
        self._note_rejected(answer)
        if not (may_fail and answer.trouble):
            faults = list(surface_faults(answer, json_route=json_route, may_5xx=may_5xx))
            if json_route:
                faults += broken_laws(answer, self.target)
            self.report(faults, answer)
            blamed = {fault.clause for fault in faults}
            for clause in {"E5", "E9", "H9"} - blamed:
                self.ok(clause)
        return answer

    def _note_rejected(self, answer: Answer) -> None:
        """Record a submit refused for its form: as any refused one it may have evicted (R2)."""
        request = answer.request
        submits = request.method == "POST" and request.path == f"{self.target.prefix}/jobs"
        if submits and answer.ok and 400 <= answer.status < 500 and answer.status != 429:
            self._record("submit", None, answer, {}, {"rejected": True})

    def _note_health(self, answer: Answer) -> None:
        """Give up on a target that takes no connection, or that answers nobody any more."""
        if answer.ok:
            self._failures_in_a_row, self._last_ok_us = 0, answer.return_us
            return
        if answer.trouble == "timeout" and answer.request.path.partition("?")[0].endswith("/wait"):
            return  # who is not woken says nothing of the target's health
        self._failures_in_a_row += not answer.closed_idle
        silent_us = now_us() - self._last_ok_us
        if answer.trouble == "refused" and self._failures_in_a_row >= 5:
            raise TargetGone(f"it takes no connection any more ({answer.detail})")
        if self._failures_in_a_row >= 12 and silent_us > 15_000_000:
            raise TargetGone(f"it has not answered for {silent_us // 1_000_000} s: {answer.say()}")

    # The ledger's calls

    def compose(
        self, kind: str, *, named: bool = True, nonce: str = ""
    ) -> tuple[bytes, str | None]:
        """A body of the target file as bytes, with a `req_id` of its own; and that `req_id`."""
        text = getattr(self.target.bodies, kind)
        assert text is not None, kind
        if kind == "echo" and not nonce and self.echoes:
            nonce = self.rng.choice(list(self.echoes))  # one whose data is known
        content = json.loads(text.replace("{nonce}", nonce or self.nonce()))
        if named:
            content.setdefault("req_id", f"cf-{self.options.seed}-{next(self._numbers)}")
        task_id = content.get("req_id")
        return json.dumps(content).encode(), task_id if isinstance(task_id, str) else None

    def nonce(self, length: int = 16) -> str:
        """Unique content; alphanumeric, a multiple of four long: it may stand inside base64."""
        return "".join(self.rng.choices(_NONCE, k=length))

    async def submit(
        self,
        kind: str = "quick",
        *,
        body: bytes | None = None,
        named: bool = True,
        nonce: str = "",
        conn: Connection | None = None,
        timeout_s: float | None = None,
        headers: Mapping[str, str] | Iterable[tuple[str, str]] = (),
    ) -> Submitted:
        """`POST /jobs` with a body of the target file (or the one given)."""
        used_nonce = nonce or self.nonce()
        task_id, ours = None, body is None and not headers
        if body is None:
            body, task_id = self.compose(kind, named=named, nonce=used_nonce)
        path = f"{self.target.prefix}/jobs"
        request = self.client.request("POST", path, body=body, headers=headers)
        answer = await self.client.send(request, conn=conn, timeout_s=timeout_s)
        if kind == "crashing":
            self.crashes.append(answer)
        submitted = self.submitted(answer, kind, body, task_id)
        if submitted.job is not None:
            submitted.job.nonce = used_nonce
        elif ours and answer.ok and answer.status in _REFUSED_FOR_FORM and self._admits(kind):
            said = f"a `{kind}` body, as was admitted before, is answered {answer.status}"
            allowed = "202, or 429 while the queue is full"
            self.find("A3", said, allowed=allowed, answers=(answer,))
        return submitted

    def _admits(self, kind: str) -> bool:
        """Whether a body of that kind is one that the target takes."""
        return any(job.kind == kind for job in self.jobs.values())

    def submitted(
        self, answer: Answer, kind: str, body: bytes, task_id: str | None = None
    ) -> Submitted:
        """Record and look at the answer to a submit that was sent by hand."""
        self.look_at(answer)
        job = self._admit(answer, kind, body, task_id)
        return Submitted(answer, job, answer.ok and answer.status == 429)

    def admitted(self, answer: Answer) -> Job | None:
        """The job that an answer promised, if it did."""
        jobs = reversed(self.jobs.values())
        return next((job for job in jobs if job.answer is answer), None)

    def _admit(self, answer: Answer, kind: str, body: bytes, task_id: str | None) -> Job | None:
        """Record a submit of any outcome; the job, where it was admitted."""
        exact = answer.request.path == f"{self.target.prefix}/jobs"
        if exact and answer.ok and 200 <= answer.status < 400 and answer.status != 202:
            said = f"a submit is answered {answer.status}"
            self.find("H3", said, allowed="202, or a refusal", answers=(answer,))
        elif answer.ok and answer.status not in (202, 429) and answer.status < 500:
            return None  # refused for its form: it took no place
        if answer.trouble == "refused":
            return None  # it never left
        self.clogged = self.clogged and answer.status != 202
        reading = read(Route.SUBMIT, answer, adapter=self.target.adapter)
        self.report(reading.faults, answer)
        if reading.outcome is None or reading.reply is None:
            self.lost_submits += 1
            self._record("submit", None, answer, {"task_id": task_id}, None)
            return None
        job_id = reading.reply.get("job")
        known = isinstance(job_id, str) and job_id != ""
        if reading.outcome is Outcome.QUEUE_FULL:
            self._held_back("H4", "the 429 of a full queue", "429 while it is full", answer)
        reply = reading.reply if known or reading.outcome is Outcome.QUEUE_FULL else None
        self._record("submit", job_id if known else None, answer, {"task_id": task_id}, reply)
        if not known:
            return None
        assert isinstance(job_id, str)
        if job_id in self.jobs:
            first = self.jobs[job_id].answer
            self.find("A8", f"the id {job_id} was issued twice", answers=(first, answer))
        job = Job(
            job_id,
            kind,
            answer,
            self._followed(answer, reading.body.get("poll_url"), f"/jobs/{job_id}"),
            self._followed(answer, reading.body.get("result_url"), f"/jobs/{job_id}/result"),
            task_id,
            images_in(body),
            answer.return_us,
            body=body,
        )
        self.jobs[job_id] = job
        return job

    def abandoned(self, client: str, task_id: str | None, call_us: int) -> None:
        """Record a submit that was sent whole, from `call_us` on, whose answer nobody will read."""
        self.lost_submits += 1
        args = {"task_id": task_id, "aborted": True}
        self.history.append(Call(client, "submit", None, call_us, None, CLOCK_ID, args, None))

    def _followed(self, answer: Answer, url: Any, own: str) -> str:
        """The path that a URL of the 202 leads to, or the one that the table says it must be."""
        default = self.target.prefix + own
        if not isinstance(url, str) or not url or self.target.adapter.rewritten_urls:
            return default
        try:
            parts = urlsplit(urljoin(self.target.base_url + answer.request.path, url))
        except ValueError:
            return default
        path = parts.path + (f"?{parts.query}" if parts.query else "")
        printable = all(32 < ord(c) < 127 for c in path)
        return path if printable and path.startswith("/") else default

    async def status(self, job: Job | str, *, conn: Connection | None = None) -> Reading:
        """`GET /jobs/{id}`."""
        path = self._path(job)
        answer, reading = await self._get(Route.STATUS, job, path, conn, None)
        self._note_trip(answer)
        self._record("snapshot", _id(job), answer, {}, reading.reply)
        return reading

    async def wait(
        self,
        job: Job | str,
        timeout: int | str | None = None,  # noqa: ASYNC109 - the contract's own parameter, in ms
        *,
        conn: Connection | None = None,
        patience_s: float | None = None,
    ) -> Reading:
        """`GET /jobs/{id}/wait?timeout=ms`, as written; `patience_s` is how long we listen.

        By default that is until the answer is certainly late, or every job should have ended.
        """
        path = self._path(job, "/wait") + ("" if timeout is None else f"?timeout={timeout}")
        budget_ms = effective_budget_ms(timeout)
        limit_s = self.wait_limit_s(budget_ms) if patience_s is None else patience_s
        answer, reading = await self._get(Route.WAIT, job, path, conn, limit_s)
        if answer.trouble == "timeout":
            self._not_answered(job, answer, budget_ms, "W5" if timeout is None else "W4")
        args = {} if budget_ms is None else {"budget_ms": budget_ms}
        self._record("wait", _id(job), answer, args, reading.reply)
        return reading

    async def _listen(
        self, request: Request, job: Job | str, conn: Connection | None, limit_s: float | None
    ) -> Answer:
        """Send a wait and read its answer, until there has been no excuse for a while."""
        known, call_us = self.jobs.get(_id(job)), now_us()
        sending = asyncio.create_task(self.client.send(request, conn=conn, timeout_s=limit_s))
        try:
            while True:
                done, _ = await asyncio.wait({sending}, timeout=None if known is None else 0.25)
                if done:
                    return sending.result()
                if known is not None and self.is_unwoken(known, call_us):
                    break
        finally:
            sending.cancel()
        if conn is not None:
            conn.abort()
        name = "none" if conn is None else conn.name
        late = Answer(request, call_us, now_us(), trouble="timeout", closed=True, conn=name)
        return replace(late, detail="no byte came")

    def _not_answered(
        self, job: Job | str, answer: Answer, budget_ms: int | None, of_budget: str
    ) -> None:
        """A wait that we gave up on: whose fault it is depends on the job and the budget."""
        known = self.jobs.get(_id(job))
        slack_us = self.slack_us(answer.call_us)
        ended_us = None if known is None else known.ended_us or known.gone_us
        if known is None or (known.gone_us is not None and known.gone_us < answer.call_us):
            why, clause = "a wait on an unknown id hung", "W7"
        elif ended_us is not None and answer.return_us > max(ended_us, answer.call_us) + slack_us:
            late_ms = (answer.return_us - max(ended_us, answer.call_us)) // 1000
            why, clause = f"a waiter sleeps on {late_ms} ms after the job was seen ended", "W2"
        elif budget_ms and answer.trip_us > budget_ms * 1000 + slack_us:
            why = f"a wait of {budget_ms} ms was not over after {answer.trip_us // 1000} ms"
            clause = of_budget
        else:
            return  # the budget is not spent and the job may live
        self.find(clause, why, allowed="an answer by then", answers=(answer,))

    async def result(self, job: Job | str, *, conn: Connection | None = None) -> Reading:
        """`GET /jobs/{id}/result`."""
        path = job.result_url if isinstance(job, Job) else self._path(job, "/result")
        answer, reading = await self._get(Route.RESULT, job, path, conn, None)
        reply = reading.reply
        if reading.outcome is Outcome.NOT_FOUND:
            reply = {"status": "not_found"}
        elif reading.outcome is None and answer.ok and _id(job) in self.jobs:
            self.find(
                "G2",
                f"the result of a job is answered {answer.status}",
                allowed="200 when `done`, 409 before and otherwise, 404 once evicted",
                answers=(answer,),
            )
        # What it took says how slow the target may be, not how prompt a read is: it may block.
        self.worst_trip_us = max(self.worst_trip_us, answer.trip_us if answer.ok else 0)
        if reading.outcome is Outcome.NOT_DONE and reading.state in ("pending", "running"):
            self._held_back("G2", "the 409 of a live job", "409 at once", answer)
        self._record("result", _id(job), answer, {}, reply)
        if isinstance(job, Job) and reading.outcome is Outcome.READY:
            self._judge_echo(job, reading)
        return reading

    def _judge_echo(self, job: Job, reading: Reading) -> None:
        """G4: what a nonce has given before it gives again, whoever asks and however busy it is."""
        known = next((nonce for nonce in self.echoes if nonce.encode() in job.body), None)
        got = at_pointer(reading.body, self.target.bodies.echo_pointer or "")
        if known is None or got is NOT_JSON:
            return
        if got == self.echoes[known]:
            self.ok("G4")
            return
        self.find(
            "G4",
            "a job got data that is not its own",
            allowed=f"{self.echoes[known]!r:.120}",
            answers=(job.answer, reading.answer),
        )

    def _held_back(self, clause: str, what: str, allowed: str, answer: Answer) -> None:
        """A refusal that could have been given at once: late again and again is a fault."""
        allowed_us = self.allowed_us(answer.call_us, answer.return_us)
        if self.is_late(clause, answer.trip_us, allowed_us, answer.call_us):
            why = f"{what} was held back for {answer.trip_us // 1000} ms, and so were others"
            self.find(clause, why, allowed=allowed, answers=(answer,))

    async def infer(self, body: bytes, *, timeout_s: float | None = None) -> Answer:
        """`POST /infer`."""
        timeout_s = self.answer_patience_s() if timeout_s is None else timeout_s
        return await self.send("POST", "/infer", body=body, may_5xx=True, timeout_s=timeout_s)

    async def _get(
        self,
        route: Route,
        job: Job | str,
        path: str,
        conn: Connection | None,
        limit_s: float | None,
    ) -> tuple[Answer, Reading]:
        request = self.client.request("GET", path)
        if route is Route.WAIT:
            answer = await self._listen(request, job, conn, limit_s)
        else:
            answer = await self.client.send(request, conn=conn, timeout_s=limit_s)
        # How long a wait may take is judged apart.
        self.look_at(answer, may_fail=route is Route.WAIT and answer.trouble == "timeout")
        reading = read(route, answer, _id(job), self.target.adapter)
        self.report(reading.faults, answer)
        self._learn(_id(job), answer, reading)
        return answer, reading

    def _path(self, job: Job | str, action: str = "") -> str:
        if isinstance(job, Job) and not action:
            return job.poll_url
        return f"{self.target.prefix}/jobs/{_id(job)}{action}"

    def _learn(self, job_id: str, answer: Answer, reading: Reading) -> None:
        """Narrow the interval in which a job was live."""
        job = self.jobs.get(job_id)
        if job is None:
            return
        if reading.terminal or reading.state == "running":
            job.started_us = min(job.started_us or answer.return_us, answer.return_us)
        if reading.outcome is Outcome.NOT_FOUND:
            job.gone_us = min(job.gone_us or answer.return_us, answer.return_us)
            if answer.return_us < job.call_us + self.shortest_life_us(job):
                self.find(
                    "R1",
                    f"a `{job.kind}` job is unknown {(answer.return_us - job.call_us) // 1000} ms "
                    "after its submit: it cannot have ended by then",
                    allowed="never evicted while it is live",
                    answers=(job.answer, answer),
                )
        elif reading.outcome is Outcome.READY or reading.state in ("done", "failed", "timeout"):
            job.state = "done" if reading.outcome is Outcome.READY else str(reading.state)
            job.ended_us = min(job.ended_us or answer.return_us, answer.return_us)
        elif reading.state in ("pending", "running"):
            # A wait that ran out saw the state when it returned, not when it was called; its call
            # is the safe bound.
            job.live_us = max(job.live_us, answer.call_us)
            if reading.state == "pending":
                job.pending_us = max(job.pending_us, answer.call_us)
            if not job.terminal:
                job.state = str(reading.state)

    def shortest_life_us(self, job: Job) -> int:
        """How long a job of that kind lives at least, by the target file, with a margin."""
        bodies, budget_ms = self.target.bodies, self.target.limits.timeout_ms
        if job.kind == "slow":
            life_ms = bodies.slow_ms or 0
        elif job.kind in ("late", "late_failing"):
            life_ms = bodies.late_ms or 0
        else:
            return 0
        return min(life_ms, budget_ms or life_ms) * 800

    def _record(
        self,
        op: str,
        job_id: str | None,
        answer: Answer,
        args: dict[str, Any],
        reply: dict[str, Any] | None,
    ) -> None:
        if reply is None and op != "submit":
            return  # a read without a usable answer says nothing
        returned = answer.return_us if reply is not None else None
        client = answer.conn or "none"
        call = Call(client, op, job_id, answer.call_us, returned, CLOCK_ID, args, reply)
        self.history.append(call)
        self.answers.append((call, answer))


def _id(job: Job | str) -> str:
    return job.id if isinstance(job, Job) else job
