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
import re
import string
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote, urljoin, urlsplit

from counterfoil_conformance.oracle.history import Call
from counterfoil_conformance.report.events import Finding, Witnessed
from counterfoil_conformance.run import DEFAULT_TOLERANCE_MS, Publish, RunOptions
from counterfoil_conformance.wire.answer import Answer, now_us
from counterfoil_conformance.wire.client import DEFAULT, Client, Connection, _Default, encode
from counterfoil_conformance.wire.laws import broken_laws
from counterfoil_conformance.wire.reading import Fault, Reading, read, surface_faults
from counterfoil_conformance.wire.target import Target
from counterfoil_spec.ledger import Outcome
from counterfoil_spec.wire import Route

__all__ = ["CURRENT_CHECK", "Job", "Session", "Submitted", "TargetGone"]

CLOCK_ID: Final = "wire"
CURRENT_CHECK: ContextVar[str] = ContextVar("current_check", default="")
_FINDINGS_PER_CLAUSE: Final = 6
_TRIPS_KEPT: Final = 256
_NONCE: Final = string.ascii_letters + string.digits


class TargetGone(Exception):
    """The target stopped taking connections in the middle of the run."""


@dataclass(eq=False, slots=True)
class Job:
    """An admitted job as this client knows it. Times are us of the run's clock.

    `live_us`: the call of the last read that saw it live (its submit's return at first);
    `pending_us`: of the last one that saw it pending; `started_us`: the return of the first one
    that saw it otherwise;
    `ended_us`: the return of the first read that saw it terminal; `gone_us`: of the first 404.
    """

    id: str
    kind: str
    answer: Answer
    poll_url: str
    result_url: str
    task_id: str | None
    images: int
    live_us: int
    pending_us: int = 0
    started_us: int | None = None
    state: str = "pending"
    ended_us: int | None = None
    gone_us: int | None = None
    body: bytes = b""
    nonce: str = ""

    @property
    def call_us(self) -> int:
        """When its submit was called."""
        return self.answer.call_us

    @property
    def return_us(self) -> int:
        """When its submit returned."""
        return self.answer.return_us

    @property
    def terminal(self) -> bool:
        """Whether a read has shown it terminal (or gone, after which it cannot come back)."""
        return self.ended_us is not None or self.gone_us is not None


@dataclass(frozen=True, slots=True)
class Submitted:
    """What a submit came to: a job, or `refused` by a full queue, or something else."""

    answer: Answer
    job: Job | None = None
    refused: bool = False


@dataclass(slots=True)
class _Lag:
    """How late our own event loop was, lately: (when us, late us)."""

    seen: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=512))

    async def measure(self, period_s: float = 0.05) -> None:
        while True:
            before = now_us()
            await asyncio.sleep(period_s)
            after = now_us()
            self.seen.append((after, max(0, after - before - int(period_s * 1e6))))

    def worst_us(self, since_us: int) -> int:
        return max((late for at, late in self.seen if at >= since_us), default=0)


class Session:
    """One run against one target: calls, the history of them, and the findings of each answer."""

    def __init__(self, target: Target, options: RunOptions, publish: Publish) -> None:
        self.target = target
        self.options = options
        self.client = Client(target)
        self.history: list[Call] = []
        self.answers: list[tuple[Call, Answer]] = []
        self.jobs: dict[str, Job] = {}
        self.rng = random.Random(options.seed)
        self.witnesses: Counter[str] = Counter()
        self.lag = _Lag()
        self.max_queue: int | None = target.limits.max_queue
        self.lost_submits = 0
        self.process: Any = None
        self._publish = publish
        self._trips: deque[tuple[int, int]] = deque(maxlen=_TRIPS_KEPT)
        self.worst_trip_us = 0
        self.is_fresh = False
        self.odd_order = False
        self.forgotten: set[str] = set()
        self._stuck: set[str] = set()
        self._published: Counter[tuple[str, str, bool]] = Counter()
        self._failures_in_a_row = 0
        self._last_ok_us = now_us()
        self._numbers = itertools.count(1)

    # Timing

    @property
    def tolerance_ms(self) -> float:
        """The declared tolerance: of the command line, else of the target file, else 250."""
        given = (self.options.tolerance_ms, self.target.tolerance.ms)
        return next((ms for ms in given if ms is not None), DEFAULT_TOLERANCE_MS)

    def trip_us(self, since_us: int = 0) -> int:
        """The worst round trip of a prompt read since then, or of the recent ones."""
        recent = [trip for at, trip in self._trips if at >= since_us]
        return max(recent or [trip for _, trip in self._trips], default=0)

    def slack_us(self, since_us: int | None = None) -> int:
        """Tolerance + the worst measured round trip and lag of our own loop since then, in us.

        Without `since_us`: over the last 3 s. This is how late an answer that is due "at once" may
        be before it is called late.
        """
        since = now_us() - 3_000_000 if since_us is None else since_us - 1_000_000
        measured = max(self.trip_us(since), self._usual_trip_us())
        return int(self.tolerance_ms * 1000) + measured + self.lag.worst_us(since)

    def usual_trip_ms(self) -> float:
        """The median of the round trips kept."""
        trips = sorted(trip for _, trip in self._trips)
        return trips[len(trips) // 2] / 1000 if trips else 0.0

    def _usual_trip_us(self) -> int:
        """Nearly the worst of all trips kept: a jittery target is jittery throughout."""
        trips = sorted(trip for _, trip in self._trips)
        return trips[int(len(trips) * 0.98)] if trips else 0

    def _note_trip(self, answer: Answer) -> None:
        if answer.ok:
            self._trips.append((answer.return_us, answer.trip_us))
            self.worst_trip_us = max(self.worst_trip_us, answer.trip_us)

    # Reporting

    def ok(self, clause: str, count: int = 1) -> None:
        """The clause was exercised and held."""
        self.witnesses[clause] += count

    def flush(self) -> None:
        """Publish the witnesses counted so far."""
        for clause, count in self.witnesses.items():
            self._publish(Witnessed(clause, count))
        self.witnesses.clear()

    def find(
        self,
        clause: str,
        why: str,
        *,
        allowed: str = "",
        answers: Iterable[Answer] = (),
        actual: str = "",
        should: bool = False,
        must: bool = False,
    ) -> None:
        """Publish a finding; a clause that has had its share of them in this check is spared."""
        check = CURRENT_CHECK.get()
        key = (clause, check, should)
        self._published[key] += 1
        if self._published[key] > _FINDINGS_PER_CLAUSE:
            return
        shown = tuple(answers)
        came = actual or (shown[-1].say() if shown else "")
        curl = tuple(dict.fromkeys(answer.request.curl() for answer in shown))
        repro = self.repro(clause)
        self._publish(Finding(clause, why, allowed, came, should, repro, curl, check, must))

    def repro(self, clause: str) -> str:
        """The command that runs the checks of one clause again."""
        words = ["counterfoil conform"]
        words.append(self.target.base_url or "URL")
        if self.target.file:
            words.append(f"--target {self.target.file}")
        if self.options.profile != "quick":
            words.append(f"--profile {self.options.profile}")
        words.append(f"--only {clause} --seed {self.options.seed}")
        return " ".join(words)

    def report(self, faults: Iterable[Fault], answer: Answer) -> None:
        """Publish what was found wrong with one answer."""
        for fault in faults:
            self.find(
                fault.clause,
                fault.why,
                allowed=fault.allowed,
                answers=(answer,),
                should=fault.should,
            )

    # Any request

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
        if answer.trouble == "refused":
            return answer
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
        self._failures_in_a_row += 1
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
        task_id = None
        if body is None:
            body, task_id = self.compose(kind, named=named, nonce=used_nonce)
        path = f"{self.target.prefix}/jobs"
        request = self.client.request("POST", path, body=body, headers=headers)
        answer = await self.client.send(request, conn=conn, timeout_s=timeout_s)
        submitted = self.submitted(answer, kind, body, task_id)
        if submitted.job is not None:
            submitted.job.nonce = used_nonce
        return submitted

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
        if answer.ok and answer.status not in (202, 429) and answer.status < 500:
            return None  # refused for its form: it took no place
        if answer.trouble == "refused":
            return None  # it never left
        reading = read(Route.SUBMIT, answer, adapter=self.target.adapter)
        self.report(reading.faults, answer)
        if reading.outcome is None or reading.reply is None:
            self.lost_submits += 1
            self._record("submit", None, answer, {"task_id": task_id}, None)
            return None
        job_id = reading.reply.get("job")
        known = isinstance(job_id, str) and job_id != ""
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
            _images(body),
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
        """`GET /jobs/{id}/wait?timeout=ms`, as written; `patience_s` is how long we listen."""
        path = self._path(job, "/wait") + ("" if timeout is None else f"?timeout={timeout}")
        budget_ms = effective_budget_ms(timeout)
        limit_s = patience_s if patience_s is not None else (budget_ms or 30_000) / 1000 + 10
        answer, reading = await self._get(Route.WAIT, job, path, conn, limit_s)
        args = {} if budget_ms is None else {"budget_ms": budget_ms}
        self._record("wait", _id(job), answer, args, reading.reply)
        return reading

    async def result(self, job: Job | str, *, conn: Connection | None = None) -> Reading:
        """`GET /jobs/{id}/result`."""
        path = job.result_url if isinstance(job, Job) else self._path(job, "/result")
        answer, reading = await self._get(Route.RESULT, job, path, conn, None)
        self._note_trip(answer)
        reply = reading.reply
        if reading.outcome is Outcome.NOT_FOUND:
            reply = {"status": "not_found"}
        self._record("result", _id(job), answer, {}, reply)
        return reading

    async def infer(self, body: bytes, *, timeout_s: float | None = None) -> Answer:
        """`POST /infer`."""
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
        answer = await self.client.send(request, conn=conn, timeout_s=limit_s)
        self.look_at(answer)
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
            if answer.return_us < job.call_us + self._shortest_life_us(job):
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

    def _shortest_life_us(self, job: Job) -> int:
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

    # Bringing about

    async def until_terminal(
        self, job: Job, timeout_s: float, *, period_s: float = 0.02
    ) -> Reading | None:
        """Poll until a read shows the job terminal or unknown; None if that did not come."""
        deadline_us = now_us() + int(timeout_s * 1e6)
        conn = await self.client.connect()
        steady = conn if isinstance(conn, Connection) else None
        try:
            while now_us() < deadline_us:
                reading = await self.status(job, conn=steady if _usable(steady) else None)
                if job.terminal:
                    return reading
                await asyncio.sleep(period_s)
        finally:
            if steady is not None:
                steady.close()
        return None

    async def settle(self, timeout_s: float | None = None) -> bool:
        """Wait until every job we know of is terminal; whether that came about.

        A job that did not end in ample time is not waited for again; with a budget it is S9.
        """
        limit_s = self.patience_s() if timeout_s is None else timeout_s
        deadline_us = now_us() + int(limit_s * 1e6)
        live = [j for j in self.jobs.values() if not j.terminal and j.id not in self._stuck]
        while live and now_us() < deadline_us:
            await asyncio.gather(*(self.status(job) for job in live[:8]))
            live = [job for job in live if not job.terminal]
            if live:
                await asyncio.sleep(0.02)
        for job in live:
            self._stuck.add(job.id)
            self._never_ended(job)
        return not live

    def _never_ended(self, job: Job) -> None:
        budget_ms = self.target.limits.timeout_ms or 0
        lived_us = job.live_us - job.return_us
        if not budget_ms or not self.target.dialect.running_budget:
            return
        if lived_us > budget_ms * 1000 + self.slack_us() + 2_000_000:
            self.find(
                "S9",
                f"a job is `{job.state}` {lived_us // 1000} ms after its admission",
                allowed=f"terminal, at the latest by the budget of {budget_ms} ms",
                answers=(job.answer,),
            )

    @property
    def has_stuck(self) -> bool:
        """Whether several jobs never ended: then no more patience is wasted on others."""
        return len(self._stuck) >= 2

    def patience_s(self) -> float:
        """How long at most a full queue may take to empty, with room to spare."""
        limits, bodies = self.target.limits, self.target.bodies
        one_ms = max(bodies.slow_ms or 0, bodies.late_ms or 0, limits.timeout_ms or 0, 1000)
        depth = min(max(self.max_queue or 1, 1), 64)
        if self.has_stuck:
            return 1.0 + one_ms / 1000
        return 5.0 + 2 * one_ms / 1000 * max(1, depth / (limits.workers or 1))

    async def fill(self, kind: str = "slow", most: int = 256) -> tuple[list[Job], Answer | None]:
        """Submit until a 429: the jobs admitted, and that answer (None: it never came)."""
        jobs: list[Job] = []
        for _ in range(most):
            sent = await self.submit(kind)
            if sent.job is None:
                return jobs, sent.answer if sent.refused else None
            jobs.append(sent.job)
        return jobs, None

    async def burst(
        self, kind: str, count: int, *, padding: int = 20_000, bodies: list[bytes] | None = None
    ) -> list[Submitted]:
        """Submits on connections opened before, whose last bytes go out together.

        The bodies are padded with JSON whitespace so that a server has something to chew on in
        each; only the closing brace is held back.
        """
        prepared = []
        for number in range(count):
            body, task_id = self.compose(kind) if bodies is None else (bodies[number], None)
            limit = self.target.limits.max_body
            pad = padding if limit is None else max(0, min(padding, limit // 2 - len(body)))
            text = body.rstrip()[:-1] + b" " * pad + b"}"
            request = self.client.request("POST", f"{self.target.prefix}/jobs", body=text)
            prepared.append((request, text, task_id))
        conns = await asyncio.gather(*(self.client.connect() for _ in prepared))
        ready = [(c, p) for c, p in zip(conns, prepared, strict=True) if isinstance(c, Connection)]
        for conn, (request, _, _) in ready:
            conn.write(encode(request)[:-1])
        await asyncio.gather(*(conn.drain() for conn, _ in ready))
        await asyncio.sleep(0.03)
        calls = [conn.write(b"}") for conn, _ in ready]
        answers = await asyncio.gather(
            *(
                conn.read_answer(request, call_us)
                for (conn, (request, _, _)), call_us in zip(ready, calls, strict=True)
            )
        )
        done = []
        for answer, (conn, (_, text, task_id)) in zip(answers, ready, strict=True):
            done.append(self.submitted(answer, kind, text, task_id))
            conn.close()
        return done

    def forget(self) -> None:
        """Drop the history so far: others were still using the target."""
        self.forgotten |= set(self.jobs)
        self.history.clear()
        self.answers.clear()
        self.jobs.clear()

    async def aclose(self) -> None:
        """Close every connection."""
        await self.client.aclose()


def effective_budget_ms(timeout: int | str | None) -> int | None:
    """How long a wait with this `timeout` may block (W5); None where it may be read either way."""
    if timeout is None:
        return 30_000
    text = unquote(str(timeout))
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        return None  # refused, or as if absent (W10): judged where it is asked
    value = min(int(text[:40]), 300_000)
    return value if value > 0 else None


def _usable(conn: Connection | None) -> bool:
    return conn is not None and conn.alive


def _id(job: Job | str) -> str:
    return job.id if isinstance(job, Job) else job


def _images(body: bytes) -> int:
    try:
        images = json.loads(body).get("images")
    except (ValueError, AttributeError, RecursionError):
        return 0
    return len(images) if isinstance(images, list) else 0
