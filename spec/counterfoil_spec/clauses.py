"""The contract as data: every clause, limit and historic defect, and nothing else.

Everything that speaks of the contract points here: properties of the spec, checks, reports and
seeded faults name a clause by its id and take its sentence from this table; `docs/contract.md` is
written from it. Ids are stable: a clause may be added, an id is never reused.

The trap is strictness. A checker may never ask for more than a sentence says: where it allows
several answers all of them pass, and what a clause calls SHOULD is a warning even when the rest of
the clause is a MUST.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

__all__ = [
    "CLAUSES",
    "DEFECTS",
    "FAMILIES",
    "LIMITS",
    "Clause",
    "Defect",
    "Level",
    "Limit",
    "SeenAt",
    "clause_ids",
]


class Level(StrEnum):
    """What a violation means: MUST breaks conformance, SHOULD is a warning."""

    MUST = "MUST"
    SHOULD = "SHOULD"


class SeenAt(StrEnum):
    """Where a clause can be observed.

    LEDGER by calling the ledger in-process, WIRE over HTTP by a black-box client, BOTH of these,
    PROCESS over HTTP with control of the server's process, INSIDE only in the code's own steps.
    """

    LEDGER = "ledger"
    WIRE = "wire"
    BOTH = "both"
    PROCESS = "process"
    INSIDE = "inside"


MUST, SHOULD = Level.MUST, Level.SHOULD
LEDGER, WIRE, BOTH = SeenAt.LEDGER, SeenAt.WIRE, SeenAt.BOTH
PROCESS, INSIDE = SeenAt.PROCESS, SeenAt.INSIDE

_CORE_FAMILIES: Final = frozenset("SARWGH")


@dataclass(frozen=True, slots=True)
class Clause:
    """One clause: its stable id, how binding it is, where it shows, and its sentence."""

    id: str
    level: Level
    seen_at: SeenAt
    sentence: str

    @property
    def family(self) -> str:
        """The letter that groups the clause, a key of `FAMILIES`."""
        return self.id[0]

    @property
    def at_ledger(self) -> bool:
        """Whether calling a ledger in-process can show it."""
        return self.seen_at in (LEDGER, BOTH)

    @property
    def at_wire(self) -> bool:
        """Whether a black-box HTTP client can show it."""
        return self.seen_at in (WIRE, BOTH)

    @property
    def core(self) -> bool:
        """A MUST of S, A, R, W, G or H seen at the wire: a run that missed one is inconclusive."""
        return self.level is MUST and self.at_wire and self.family in _CORE_FAMILIES


@dataclass(frozen=True, slots=True)
class Limit:
    """A configuration key of the contract: its default and what it bounds."""

    key: str
    default: bool | int
    meaning: str


@dataclass(frozen=True, slots=True)
class Defect:
    """A defect that shipped: what it was, the clauses it breaks and those it shows as."""

    id: str
    title: str
    story: str
    breaks: tuple[str, ...]
    shows_as: tuple[str, ...]


FAMILIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "S": "the state machine",
        "A": "admission",
        "R": "retention",
        "Q": "handing the request to the runner",
        "W": "waiting",
        "G": "getting the result",
        "T": "the job budget",
        "H": "the HTTP surface",
        "E": "bad input",
        "K": "keys and safety",
        "C": "the concurrency protocol (inside)",
        "M": "metrics",
        "X": "restart and scale",
    }
)

LIMITS: Final[tuple[Limit, ...]] = (
    Limit("async_enabled", False, "when false every `/jobs` route answers 404"),
    Limit(
        "async_timeout",
        300_000,
        "job budget in ms, from admission to terminal (waiting for a worker + running); "
        "`0` = no budget",
    ),
    Limit("async_max_queue", 16, "admission bound on depth; `<= 0` admits nothing"),
    Limit("async_job_ttl", 300_000, "ms a terminal job is retained after it completed"),
    Limit(
        "async_max_completed",
        100,
        "how many terminal jobs are retained; below 0 counts as 0",
    ),
)

_CLAUSES: Final[tuple[Clause, ...]] = (
    # S
    Clause(
        "S1",
        MUST,
        BOTH,
        "A job is in exactly one of `pending`, `running`, `done`, `failed`, `timeout`; it is "
        "born `pending`.",
    ),
    Clause(
        "S2",
        MUST,
        LEDGER,
        "Only a pending job may enter `running`, once; of concurrent starts exactly one is "
        "accepted.",
    ),
    Clause(
        "S3",
        MUST,
        LEDGER,
        "Any non-terminal job, pending or running, may enter `done`, `failed` or `timeout`.",
    ),
    Clause(
        "S4",
        MUST,
        BOTH,
        "Terminal states absorb: every later transition is refused (returns false) and changes "
        "nothing: not the state, the result, the error, nor the completion time. Of concurrent "
        "terminal calls on one job exactly one is accepted; first writer wins.",
    ),
    Clause(
        "S5",
        MUST,
        BOTH,
        "An observer never sees a job go back: if one read returned before another began, the "
        "later one is not earlier in the order pending < running < terminal, and two reads of "
        "a terminal job agree.",
    ),
    Clause(
        "S6",
        MUST,
        BOTH,
        "A result exists exactly when the state is `done`; a non-empty error exists exactly "
        "when it is `failed` or `timeout` (elsewhere it is absent, null or empty; the caller "
        "of `fail` supplies a non-empty one). No read shows a torn mix.",
    ),
    Clause(
        "S7",
        MUST,
        LEDGER,
        "The completion time is set exactly when the job is terminal, is never before the "
        "submission time, and comes from a monotonic clock.",
    ),
    Clause(
        "S8",
        MUST,
        BOTH,
        'Transitions and reads of an unknown id are refused as "not found" and change nothing.',
    ),
    Clause(
        "S9",
        MUST,
        BOTH,
        "Every admitted job becomes terminal exactly once, provided its run ends or a budget "
        "is enforced.",
    ),
    # A
    Clause(
        "A1",
        MUST,
        LEDGER,
        "At rest depth = number of pending + running jobs. A concurrent read of depth returns "
        "a value that some order of the operations in flight allows (admission may count "
        "before the id is visible).",
    ),
    Clause(
        "A2",
        MUST,
        BOTH,
        "0 <= depth <= `async_max_queue` at every instant, whatever the concurrency.",
    ),
    Clause(
        "A3",
        MUST,
        BOTH,
        "There is an instant between a valid submit's call and its return at which depth < "
        "`async_max_queue`, if it was admitted, or depth >= `async_max_queue`, if it was "
        "refused. Check and increment are one step. So: of n >= max valid submits on an idle "
        "queue, none of whose jobs end meanwhile, exactly max are admitted.",
    ),
    Clause(
        "A4",
        MUST,
        BOTH,
        "`async_max_queue <= 0` admits nothing.",
    ),
    Clause(
        "A5",
        MUST,
        BOTH,
        "A job releases its place exactly once, at its terminal transition; the place is free "
        "for any submit that begins after a read has shown the job terminal.",
    ),
    Clause(
        "A6",
        MUST,
        BOTH,
        "A refused submit leaves no trace: no id, no job, no depth.",
    ),
    Clause(
        "A7",
        MUST,
        WIRE,
        "An invalid request (400, 401, 413, 415, 422) never takes a place in the queue.",
    ),
    Clause(
        "A8",
        MUST,
        BOTH,
        "Every 202 is a new id, never seen before in the life of the ledger: also under "
        "concurrency, after eviction, and for a repeated `req_id`.",
    ),
    Clause(
        "A9",
        SHOULD,
        WIRE,
        "Ids begin with `job_` and cannot be guessed from other ids (>= 96 bits of randomness).",
    ),
    Clause(
        "A10",
        MUST,
        BOTH,
        "As soon as submit has returned an id, every read finds it (no 404 window).",
    ),
    Clause(
        "A11",
        MUST,
        BOTH,
        "After all admitted jobs are terminal, depth is 0 and `async_max_queue` new jobs can "
        "be admitted.",
    ),
    # R
    Clause(
        "R1",
        MUST,
        BOTH,
        "A non-terminal job is never evicted, however old, and however many jobs complete "
        "meanwhile.",
    ),
    Clause(
        "R2",
        MUST,
        LEDGER,
        "Eviction happens only inside a submit: an admitted one evicts, after the new job is "
        "recorded, by age and then by count; a refused one may. The eviction may come later "
        "than the admission of the same submit (two steps, *admit* then *sweep*, both between "
        "its call and its return). On the wire, eviction by age may come earlier.",
    ),
    Clause(
        "R3",
        MUST,
        BOTH,
        "By age: a job that completed more than `async_job_ttl` ago (strictly) is gone once a "
        "submit admitted after that moment has returned.",
    ),
    Clause(
        "R4",
        MUST,
        BOTH,
        "By count: when an admitted submit returns, of the jobs that were terminal before its "
        "call at most `async_max_completed` remain. This holds also for jobs that were still "
        "running when they were the oldest, and does not wear off with use.",
    ),
    Clause(
        "R5",
        SHOULD,
        BOTH,
        "By count, the victims are the oldest in one order: completion (ours: the retained "
        "ones are the most recently completed), submission, or last use.",
    ),
    Clause(
        "R6",
        MUST,
        BOTH,
        "Until evicted, a terminal job's status and result can be read any number of times and "
        "do not change (`elapsed_ms` and `server_time_ms` aside).",
    ),
    Clause(
        "R7",
        MUST,
        BOTH,
        "An evicted id is unknown from then on: 404 everywhere, it never comes back, no later "
        "transition revives it.",
    ),
    Clause(
        "R8",
        SHOULD,
        LEDGER,
        "The cost of a submit does not grow with the number of retained jobs.",
    ),
    Clause(
        "R9",
        MUST,
        BOTH,
        "A terminal job is evicted only by age once it is past its TTL, or by count while more "
        "than `async_max_completed` jobs are (possibly) terminal, and then no more than the "
        "excess.",
    ),
    # Q
    Clause(
        "Q1",
        MUST,
        LEDGER,
        "The payload (large base64 images) is handed out exactly once; a second take gets the "
        "task id and no payload.",
    ),
    Clause(
        "Q2",
        MUST,
        BOTH,
        "The task id (the client's `req_id`, or one the server made when it is absent) stays "
        "in the record: the result echoes it after the runner has taken the payload. An empty "
        "`req_id` is absent; one that is not Unicode text is refused.",
    ),
    Clause(
        "Q3",
        SHOULD,
        LEDGER,
        "After the payload is taken the ledger holds no reference to it.",
    ),
    Clause(
        "Q4",
        MUST,
        WIRE,
        "No pending job stays pending while a worker is idle: none is forgotten. SHOULD: jobs "
        "start in the order of admission.",
    ),
    # W
    Clause(
        "W1",
        MUST,
        BOTH,
        "A wait on a terminal job returns at once.",
    ),
    Clause(
        "W2",
        MUST,
        BOTH,
        "A waiter is woken by the terminal transition. No wake-up is lost: none sleeps on "
        "towards its budget, or towards a polling period, once the job is terminal.",
    ),
    Clause(
        "W3",
        MUST,
        WIRE,
        "pending -> running wakes nobody.",
    ),
    Clause(
        "W4",
        MUST,
        BOTH,
        "When the budget runs out first, the answer is 200 with the current state (`pending` "
        "or `running`), not earlier than the budget (5 ms of timer grain allowed) and not long "
        "after it. It is not a failure of the job.",
    ),
    Clause(
        "W5",
        MUST,
        WIRE,
        "`timeout` is in milliseconds; absent means 30000; above 300000 means 300000. 0 or "
        "below: 30000 (ours), an immediate answer, or a 4xx. An integer of any size is capped, "
        "never wrapped.",
    ),
    Clause(
        "W6",
        MUST,
        BOTH,
        "All waiters of a job are woken, and see the same terminal state.",
    ),
    Clause(
        "W7",
        MUST,
        BOTH,
        "A wait on an unknown id is 404 at once. A job evicted between its completion and the "
        "waiter's answer is still answered (its terminal snapshot) or 404, never hung.",
    ),
    Clause(
        "W8",
        MUST,
        INSIDE,
        "A waiter whose budget ran out, or whose client went away, leaves nothing behind. (A "
        "half-closed connection may be treated as gone.)",
    ),
    Clause(
        "W9",
        MUST,
        WIRE,
        "Waiting holds no worker (and, in our server, no thread): with every worker idle, 200 "
        "waiters (or half the target's declared connections) delay neither submits nor runs.",
    ),
    Clause(
        "W10",
        SHOULD,
        WIRE,
        "A `timeout` that is not an optionally signed decimal integer (`abc`, `1e3`, `150ms`, "
        "empty) is refused with 422 and a pointer `/timeout`, or treated as absent; it is "
        "never read in part.",
    ),
    # G
    Clause(
        "G1",
        MUST,
        BOTH,
        "`done`: 200 with the standard envelope; equal as JSON every time until eviction "
        "(`server_time_ms` aside).",
    ),
    Clause(
        "G2",
        MUST,
        BOTH,
        "Not `done` (pending, running, failed, timeout): 409 naming the state. Never a 200 in "
        "its place.",
    ),
    Clause(
        "G3",
        MUST,
        BOTH,
        "Unknown id: 404.",
    ),
    Clause(
        "G4",
        MUST,
        WIRE,
        "`results` has one item per submitted image, in order, each with its own `status` (0 = "
        "fine) and `data` (`null` when that item failed). Concurrent jobs never receive each "
        "other's data.",
    ),
    Clause(
        "G5",
        MUST,
        WIRE,
        "`partial` is true exactly when some items failed and some did not; such a job is "
        "`done`. A job none of whose items succeeded is `failed`.",
    ),
    # T
    Clause(
        "T1",
        MUST,
        WIRE,
        "A job still pending `async_timeout` ms after admission becomes `timeout` with an "
        "error. (Shows only where an earlier run still holds the worker.)",
    ),
    Clause(
        "T2",
        MUST,
        WIRE,
        "A result that arrives after a timeout is dropped: the job stays `timeout`, its place "
        "is released once.",
    ),
    Clause(
        "T3",
        MUST,
        WIRE,
        "A timed-out run does not take a worker away for good: later jobs still run.",
    ),
    Clause(
        "T4",
        MUST,
        WIRE,
        "`async_timeout = 0` sets no budget.",
    ),
    Clause(
        "T5",
        MUST,
        WIRE,
        "A model error, or a crash of the code that runs it, makes the job `failed` with an "
        "error; its place and its worker come back; the server lives on.",
    ),
    Clause(
        "T6",
        MUST,
        WIRE,
        "The budget also ends a job that is already running. (A target may declare the dialect "
        "`running_budget = false`: then a run that overstays may end `done`.)",
    ),
    # H
    Clause(
        "H1",
        MUST,
        WIRE,
        "202 is sent at admission: the latency of a slow job's 202 is that of a quick job's, "
        "within tolerance, and well under the run.",
    ),
    Clause(
        "H2",
        MUST,
        WIRE,
        "Right after a 202 for a slow job the status is pending or running and the result is 409.",
    ),
    Clause(
        "H3",
        MUST,
        WIRE,
        "202 body and `Location` as above; `poll_url`, `result_url` and `Location`, resolved "
        "against the request URL, work as they are.",
    ),
    Clause(
        "H4",
        MUST,
        WIRE,
        "429 while the queue is full (also serially, with `async_max_queue` = 1 and one job "
        "running); its `error` contains the bound. SHOULD carry `Retry-After` (1..60 s).",
    ),
    Clause(
        "H5",
        MUST,
        WIRE,
        "Wrong method on `/jobs/{id}`: 405 (404 if the id is unknown). On `/jobs`, `/wait`, "
        "`/result`: 405 (SHOULD) or 404. SHOULD carry `Allow`. Unknown path or action: 404. "
        "`HEAD` gets an answer without a body; `HEAD` and `OPTIONS` are answered 200, 204, 404 "
        "or 405 and leave the connection usable (K1, E4 and draining take precedence).",
    ),
    Clause(
        "H6",
        MUST,
        WIRE,
        "`async_enabled=false`: every `/jobs` route is 404 (401 first, where a token is "
        "configured).",
    ),
    Clause(
        "H7",
        MUST,
        WIRE,
        "Two concurrent waiters on one job both get its terminal state.",
    ),
    Clause(
        "H8",
        MUST,
        WIRE,
        "`elapsed_ms` is a non-negative integer counted from admission that does not decrease. "
        "SHOULD stop growing at completion.",
    ),
    Clause(
        "H9",
        SHOULD,
        WIRE,
        "Every answer carries `X-Request-ID` and `Cache-Control: no-store`.",
    ),
    Clause(
        "H10",
        MUST,
        WIRE,
        "`Location`, `poll_url`, `result_url` are absolute paths; with a prefix, all of them "
        "carry it.",
    ),
    Clause(
        "H11",
        SHOULD,
        WIRE,
        "`/infer` shares the workers with the jobs on purpose (that is the arbitration of the "
        "resource) but takes no place in `depth` (MUST): a full job queue does not refuse it; "
        "its budget is `async_timeout` (504). When every item failed it answers 200 with a "
        "`status` other than 0, or 500 with the envelope.",
    ),
    Clause(
        "H12",
        MUST,
        WIRE,
        "Order of refusals: 401 before all else (heads that cannot be parsed aside: 400, 414, "
        "431); 404/405 before the body is looked at. When the queue is full and the body is "
        "invalid, 429 or the body's own refusal are both right; never 202, never a place "
        "taken.",
    ),
    Clause(
        "H13",
        MUST,
        WIRE,
        "JSON content type; envelope as in the table; every job refusal has an `error` that "
        "contains the id (for ids of `[A-Za-z0-9_-]{1,128}`), the state or the bound it speaks "
        "of. (The exact texts above are ours, and SHOULD elsewhere.)",
    ),
    Clause(
        "H14",
        MUST,
        WIRE,
        "`/healthz`, `/ready`, `/openapi.json`, where the target declares them (ours does), "
        "are public and 200 on a healthy server.",
    ),
    # E
    Clause(
        "E1",
        MUST,
        WIRE,
        "Not JSON, or not an object: 400.",
    ),
    Clause(
        "E2",
        MUST,
        WIRE,
        "Missing, empty or wrongly typed `images`: 422 (or 400), each fault with a JSON "
        "pointer and a message. SHOULD: the same for unknown fields and a non-string `req_id` "
        "(null too).",
    ),
    Clause(
        "E3",
        MUST,
        WIRE,
        "Body over the limit: 413, readable also by a client that is still sending. SHOULD: "
        "wrong media type 415 (a missing one: 415, or read as JSON; parameters such as "
        "`charset` are ignored).",
    ),
    Clause(
        "E4",
        MUST,
        WIRE,
        "Ids with percent-encoding, traversal, control characters, emoji or 10 000 characters "
        "that were never issued: 404 (or 400/414), never 5xx, never echoed raw into headers.",
    ),
    Clause(
        "E5",
        MUST,
        WIRE,
        "No request content produces a 5xx, a stack trace in a body, or a hung connection. "
        "(Allowed: 504, and 500 with the envelope, from `/infer`; 503 from `/ready`, and from "
        "`POST` while draining.)",
    ),
    Clause(
        "E6",
        MUST,
        WIRE,
        "Images that are not valid base64, or that the model cannot read: the item fails (the "
        "job ends `failed`, or `done` with `partial`), or 422 at submit. Never a crash.",
    ),
    Clause(
        "E7",
        MUST,
        WIRE,
        "A `req_id` with CR, LF, NUL, other control or non-ASCII characters never reaches a "
        "header raw: it is refused with 422 or made safe. No response splitting.",
    ),
    Clause(
        "E8",
        MUST,
        WIRE,
        "After any refusal, also one sent before the whole body was read, the next request on "
        "the same connection gets its own answer, or the connection is closed.",
    ),
    Clause(
        "E9",
        MUST,
        WIRE,
        "Every JSON body sent is strict JSON: no NaN or Infinity, no lone surrogates.",
    ),
    # K
    Clause(
        "K1",
        MUST,
        WIRE,
        "With a token configured, every route but `/healthz`, `/ready`, `/openapi.json` "
        "answers 401 + `WWW-Authenticate: Bearer` without it, for existing and unknown ids and "
        "paths alike, and does no work. The scheme name is case-insensitive; the token must "
        "match whole.",
    ),
    Clause(
        "K2",
        MUST,
        INSIDE,
        "Tokens are compared in constant time and never logged.",
    ),
    Clause(
        "K3",
        MUST,
        INSIDE,
        "Without a token the server refuses to listen on anything but loopback.",
    ),
    # C
    Clause(
        "C1",
        MUST,
        INSIDE,
        "The state is published atomically; terminal checks (eviction, wait predicates, polls) "
        "read it without a lock and never see a half-made transition.",
    ),
    Clause(
        "C2",
        MUST,
        INSIDE,
        "One mutex per job guards result, error and completion time, and the same mutex guards "
        "the wake-up: payload written, state published, waiters notified in one critical "
        "section.",
    ),
    Clause(
        "C3",
        MUST,
        INSIDE,
        "The queue-full check and the increment are one atomic step.",
    ),
    Clause(
        "C4",
        MUST,
        INSIDE,
        "The terminal transition is the only decrement, guarded to happen once.",
    ),
    Clause(
        "C5",
        MUST,
        INSIDE,
        "The table mutex guards only the id map and the completion order; the lock order is "
        "always table -> job, never the reverse. A terminal transition therefore either takes "
        "table -> job, or records its completion, inside the job's critical section, on an "
        "atomic queue that the sweep drains; no window breaks R4.",
    ),
    Clause(
        "C6",
        MUST,
        INSIDE,
        "The ledger knows nothing of HTTP, workers or metrics; it is a part of the server, not "
        "a second one; server and ledger share one definition of request and result.",
    ),
    Clause(
        "C7",
        MUST,
        INSIDE,
        "Blocking and asynchronous waiters stand on one primitive (a callback registered, or "
        "run at once, under the job's lock).",
    ),
    # M
    Clause(
        "M1",
        SHOULD,
        WIRE,
        "Counters agree with the ledger at rest: submitted = done + failed + timeout + depth.",
    ),
    # X
    Clause(
        "X1",
        MUST,
        PROCESS,
        "In-memory ledger: after a restart old ids are 404 and the queue is empty.",
    ),
    Clause(
        "X2",
        MUST,
        PROCESS,
        "*Extension, never core.* Shared ledger (several processes or hosts): every clause "
        "above holds across all of them and the wire is unchanged; a job admitted by one is "
        "read, waited on and fetched through any other.",
    ),
    Clause(
        "X3",
        MUST,
        PROCESS,
        "*Extension.* Shared ledger: an admitted job whose runner or server process died "
        "becomes terminal within its budget or a lease; no admitted job is lost, none ends "
        "twice.",
    ),
    Clause(
        "X4",
        MUST,
        PROCESS,
        "On SIGTERM: `/ready` is 503 and no new job is admitted (503); pending and running "
        "jobs finish within the grace period, what is left then becomes `failed`; waiters are "
        "answered; exit code 0.",
    ),
    Clause(
        "X5",
        MUST,
        INSIDE,
        "A server that would serve one in-memory ledger from several processes refuses to start.",
    ),
)

CLAUSES: Final[Mapping[str, Clause]] = MappingProxyType({c.id: c for c in _CLAUSES})

DEFECTS: Final[Mapping[str, Defect]] = MappingProxyType(
    {
        d.id: d
        for d in (
            Defect(
                "D0",
                "the tests exercised a copy",
                "The unit tests drove a re-implementation of the job struct instead of the code "
                "that ships, so every other defect lived on beside a green build.",
                (),
                (),
            ),
            Defect(
                "D1",
                "racy reads of state, error and result",
                "State, error and result were written under one lock and read without it, or "
                "under another: torn and stale reads, spurious 409s.",
                ("C1", "C2"),
                ("S5", "S6", "G2"),
            ),
            Defect(
                "D2",
                "unsynchronised depth",
                "The depth was a plain integer, written under a lock and read without one.",
                ("C3",),
                ("A1", "A2"),
            ),
            Defect(
                "D3",
                "check-then-act admission",
                "The queue-full check and the increment were two steps: two submits could both "
                "see the last free place and both take it.",
                ("C3",),
                ("A2", "A3"),
            ),
            Defect(
                "D4",
                "lost wake-up",
                "The state was published under one mutex and the waiters notified under another: "
                "a waiter between its check and its sleep missed the wake-up.",
                ("C2",),
                ("W2",),
            ),
            Defect(
                "D5",
                "orphans of the completion order",
                "The completion order lost jobs that were still running when they were the "
                "oldest: they could never be evicted by count again, and once enough were "
                "orphaned nothing was. The reworked original still held this one; exhaustive "
                "search finds it in six steps.",
                (),
                ("R4",),
            ),
        )
    }
)


def clause_ids(text: str) -> tuple[str, ...]:
    """Split `"S2 S8"` into ids.

    Raises:
        KeyError: an id is not a clause.
    """
    return tuple(CLAUSES[id_].id for id_ in text.split())
