"""The candidate-set oracle: driven call by call, beside the ledger that ships."""

import functools
import random

import pytest

from counterfoil_conformance.oracle import sequential
from counterfoil_conformance.oracle.sequential import Sequential
from counterfoil_conformance.oracle.successors import Asked, any_victims, sweeps
from counterfoil_server.ledger import JobLedger
from counterfoil_server.ledger import Limits as ServerLimits
from counterfoil_spec import ledger as law
from counterfoil_spec.ledger import Limits

LIMITS = Limits(2, 5, 1)
PENDING = {"state": "pending", "error": None}


def told(oracle, *calls):
    """Observe `(op, args, reply)` in turn; the last rejection, after none before."""
    *before, last = calls
    for call in before:
        assert oracle.observe(*call) is None, call
    return oracle.observe(*last)


def submit(job, task="t", payload="p"):
    reply = {"refused": True} if job is None else {"job": job}
    return "submit", {"task_id": task, "payload": payload}, reply


def on(op, job, reply, **args):
    return op, {"job": job, **args}, reply


def accepted(op, job, answer=True, **args):
    return on(op, job, {"accepted": answer}, **args)


def gone(job):
    return on("snapshot", job, {"unknown": True})


def there(job, state="done", **more):
    return on("snapshot", job, {"state": state, "error": None, **more})


def advance(ms):
    return "advance", {"ms": ms}, {}


DONE = (submit("a"), accepted("start", "a"), accepted("finish", "a", result="r"))
TWO_DONE = (*DONE, submit("b"), accepted("finish", "b", result="s"))

REJECTED = [
    ("A8", (submit("a"), submit("a"))),
    ("A3", (submit("a"), submit(None))),
    ("A3", (submit("a"), submit("b"), submit("c"))),
    ("A3", (submit("a"), submit("b"), submit(None), accepted("finish", "a"), submit(None))),
    ("A10", (submit("a"), gone("a"))),
    ("S1", (submit("a"), there("a", "sleeping"))),
    ("S5", (*DONE, there("a", "running"))),
    ("S2", (submit("a"), accepted("start", "a"), accepted("start", "a"))),
    ("S2", (submit("a"), accepted("start", "a", answer=False))),
    ("S3", (submit("a"), accepted("fail", "a", answer=False, error="e"))),
    ("S4", (*DONE, accepted("fail", "a", error="late"))),
    ("S4", (*DONE, accepted("start", "a"))),
    ("S8", (accepted("finish", "nobody"),)),
    ("S8", (there("nobody", "pending"),)),
    ("G3", (on("result", "nobody", {"status": "not_done", "state": "pending"}),)),
    ("S6", (submit("a"), accepted("fail", "a", error="e"), there("a", "failed"))),
    ("S6", (submit("a"), on("snapshot", "a", {"state": "pending", "error": "e"}))),
    ("S7", (submit("a"), there("a", "pending", submitted_at=1, completed_at=2))),
    ("S7", (*DONE, there("a", submitted_at=5, completed_at=4))),
    ("S7", (*DONE, there("a", submitted_at=5, completed_at=None))),
    ("S5", (*DONE, there("a", completed_at=7), there("a", completed_at=8))),
    (
        "S4",
        (
            *DONE,
            there("a", completed_at=7),
            accepted("fail", "a", False),
            there("a", completed_at=8),
        ),
    ),
    ("A1", (submit("a"), ("depth", {}, {"depth": 0}))),
    ("A2", (submit("a"), ("depth", {}, {"depth": 3}))),
    ("Q1", (submit("a"), on("take_request", "a", {"task_id": "t", "payload": None}))),
    ("Q1", (submit("a"), on("take_request", "a", {"task_id": "t", "payload": "x"}))),
    (
        "Q1",
        (submit("a"), *[on("take_request", "a", {"task_id": "t", "payload": "p"})] * 2),
    ),
    ("Q2", (submit("a"), on("take_request", "a", {"task_id": "u", "payload": "p"}))),
    ("G1", (*DONE, on("result", "a", {"status": "not_done", "state": "running"}))),
    ("G1", (*DONE, on("result", "a", {"status": "ready", "task_id": "t", "result": "x"}))),
    ("G2", (submit("a"), on("result", "a", {"status": "ready", "task_id": "t", "result": "r"}))),
    ("G2", (submit("a"), on("result", "a", {"status": "not_done", "state": "running"}))),
    ("Q2", (*DONE, on("result", "a", {"status": "ready", "task_id": "x", "result": "r"}))),
    ("R9", (*DONE, gone("a"))),
    ("R9", (*DONE, submit("b"), gone("a"))),
    ("R9", (*DONE, advance(5), submit("b"), gone("a"))),
    ("R3", (*DONE, advance(6), submit("b"), there("a"))),
    ("R4", (*TWO_DONE, submit("c"), there("a"), there("b"))),
    ("R9", (*TWO_DONE, submit("c"), gone("a"), gone("b"))),
    ("R1", (submit("a"), there("a", "pending"), advance(99), submit("b"), gone("a"))),
    ("R7", (*DONE, advance(6), submit("b"), gone("a"), there("a"))),
    ("R7", (*DONE, advance(6), submit("b"), gone("a"), accepted("finish", "a"))),
    ("S5", (*DONE, on("wait", "a", PENDING, budget_ms=1))),
]

ALLOWED = [
    (submit("a"), submit("b"), submit(None), accepted("finish", "a"), submit("c")),
    (*DONE, accepted("fail", "a", answer=False, error="late"), there("a")),
    (*DONE, advance(5), submit("b"), there("a")),
    (*DONE, advance(6), submit("b"), gone("a")),
    (*DONE, advance(6), there("a")),
    (*TWO_DONE, submit("c"), gone("b"), there("a")),
    (*TWO_DONE, submit("c"), gone("a"), there("b")),
    # a refused submit may evict, or not
    (submit("x"), *TWO_DONE[:3], submit("b"), advance(6), submit(None), gone("a")),
    (submit("x"), *TWO_DONE[:3], submit("b"), advance(6), submit(None), there("a")),
    # one that is refused for its content takes no place
    (submit("a"), ("submit", {}, {"rejected": True}), ("depth", {}, {"depth": 1})),
    # a submit that timed out was admitted, or not, or will be
    (submit("a"), ("submit", {}, None), submit("b")),
    (submit("a"), ("submit", {}, None), submit(None)),
    (submit("a"), ("submit", {}, None), ("depth", {}, {"depth": 1}), submit(None)),
    (submit("a"), accepted("finish", "a", None) and on("finish", "a", None), there("a", "pending")),
    (submit("a"), on("finish", "a", None), there("a", "pending"), there("a", "done")),
    (submit("a"), on("finish", "a", {"error": "broken pipe"}), there("a", "done")),
    (
        submit("a"),
        accepted("timeout", "a"),
        on("snapshot", "a", {"state": "timeout", "error": "!"}),
    ),
]


@pytest.mark.parametrize(("clause", "calls"), REJECTED, ids=lambda value: str(value)[:60])
def test_a_wrong_answer_is_rejected_with_its_clause(clause, calls):
    rejection = told(Sequential(LIMITS), *calls)
    assert rejection is not None
    assert rejection.clause == clause, rejection
    assert rejection.why


FULL = (submit("a"), submit("b"), ("depth", {}, {"depth": 2}))
ALSO = [
    ("A1", ("A6",), (*FULL, submit(None), ("depth", {}, {"depth": 1}))),
    ("A2", ("A6",), (*FULL, submit(None), ("depth", {}, {"depth": 3}))),
    ("A1", ("S8",), (*FULL, accepted("fail", "x", answer=False), ("depth", {}, {"depth": 1}))),
    (
        "A1",
        ("A5",),
        (
            *FULL,
            accepted("fail", "a"),
            ("depth", {}, {"depth": 1}),
            accepted("fail", "a", answer=False),
            ("depth", {}, {"depth": 0}),
        ),
    ),
    # Something else happened too: the depth is wrong, and that is all that is known.
    ("A1", (), (*FULL, accepted("start", "a"), ("depth", {}, {"depth": 1}))),
    # Kept too long is no more than that; what came back, or is told of an id unknown, is.
    ("R3", (), (*DONE, advance(6), submit("b"), there("a"))),
    ("R4", (), (*TWO_DONE, submit("c"), there("a"), there("b"))),
    ("R7", ("S8",), (*DONE, advance(6), submit("b"), gone("a"), there("a"))),
    # Gone after the last submit: outside of any, lawful as the choice of the victim may be.
    ("R2", (), (*DONE, there("a"), advance(6), gone("a"))),
    ("R2", (), (*TWO_DONE, there("a"), gone("a"))),
    ("R9", ("R2", "R6"), (*DONE, there("a"), gone("a"))),
    ("S5", ("W4",), (submit("a"), on("wait", "a", {"state": "timeout", "error": "late"}))),
]


@pytest.mark.parametrize(("clause", "also", "calls"), ALSO, ids=lambda value: str(value)[:60])
def test_the_other_clauses_that_an_answer_breaks_are_named(clause, also, calls):
    rejection = told(Sequential(LIMITS), *calls)
    assert (rejection.clause, rejection.also) == (clause, also), rejection


@pytest.mark.parametrize("calls", ALLOWED, ids=lambda value: str(value)[:60])
def test_what_the_contract_leaves_open_is_allowed(calls):
    assert told(Sequential(LIMITS), *calls) is None


def test_a_rejection_says_what_would_have_been_right():
    rejection = told(Sequential(LIMITS), submit("a"), there("a", "running"))
    assert rejection.allowed == ("pending",)
    assert rejection.why == "running while pending"


def test_nothing_is_admitted_by_a_bound_of_zero():
    assert Sequential(Limits(0, 5, 1)).observe(*submit("a")).clause == "A4"
    assert Sequential(Limits(-3, 5, 1)).observe(*submit(None)) is None


def test_victims_in_no_order_are_only_a_warning():
    limits = Limits(4, 99, 3)
    oracle = Sequential(limits)
    for job in "abcd":
        assert told(oracle, submit(job), accepted("finish", job)) is None
    assert told(oracle, submit("e"), gone("c"), there("a"), there("b"), there("d")) is None
    assert [warning.clause for warning in oracle.warnings] == ["R5"]


@pytest.mark.parametrize("victim", ["a", "b", "c"])
def test_victims_by_completion_submission_or_last_use_are_no_warning(victim):
    """Submitted a, b, c; completed b, a, c; used c, then b, then a, d came last in all."""
    oracle = Sequential(Limits(4, 99, 3))
    assert told(oracle, *(submit(job) for job in "abcd")) is None
    assert told(oracle, *(accepted("finish", job) for job in "bacd")) is None
    assert told(oracle, *(there(job) for job in "cbad")) is None
    assert told(oracle, submit("e"), gone(victim)) is None
    assert told(oracle, *(there(job) for job in "abcd" if job != victim)) is None
    assert not oracle.warnings


def test_too_many_explanations_end_in_undecided_not_in_a_guess(monkeypatch):
    monkeypatch.setattr(sequential, "CANDIDATE_CAP", 5)
    oracle = Sequential(Limits(9, 99, 3))
    for job in "abcdef":
        told(oracle, submit(job), accepted("finish", job))
    told(oracle, submit("g"))
    assert oracle.undecided
    assert oracle.observe(*there("a", "nonsense")) is None


def test_the_laws_own_sweep_is_among_the_sweeps_allowed():
    oracle = Sequential(Limits(4, 5, 1))
    for job in "abc":
        told(oracle, submit(job), accepted("finish", job), advance(1))
    for ledger in oracle.candidates:
        own = law.survivors(ledger.retained, ledger.limits, ledger.now)
        assert own in {after.retained for after in sweeps(ledger, any_victims)}


def test_a_job_nobody_issued_has_a_number_that_no_job_has():
    assert Asked("snapshot").number_or_none == -1


# Beside the ledger that ships


class Driven:
    """The shipped ledger under a driven clock, answering in the shapes of the exec protocol."""

    def __init__(self, limits, make=JobLedger):
        self.now = 1000
        names = iter(range(10_000))
        self.ledger = make(
            ServerLimits(*limits[:3]), clock=lambda: self.now, new_id=lambda: f"j{next(names)}"
        )

    def do(self, op, job=None, **args):
        return getattr(self, op)(*([] if job is None else [job]), **args)

    def submit(self, task_id, payload):
        job = self.ledger.submit(task_id, payload)
        return {"refused": True} if job is None else {"job": job}

    def advance(self, ms):
        self.now += ms
        return {}

    def depth(self):
        return {"depth": self.ledger.depth()}

    def start(self, job):
        return {"accepted": self.ledger.start(job)}

    def finish(self, job, result):
        return {"accepted": self.ledger.finish(job, result)}

    def fail(self, job, error):
        return {"accepted": self.ledger.fail(job, error)}

    def timeout(self, job, error):
        return {"accepted": self.ledger.time_out(job, error)}

    def take_request(self, job):
        taken = self.ledger.take_request(job)
        if taken is None:
            return {"unknown": True}
        return {"task_id": taken.task_id, "payload": taken.payload}

    def snapshot(self, job):
        seen = self.ledger.snapshot(job)
        if seen is None:
            return {"unknown": True}
        reply = {"state": str(seen.state), "error": seen.error, "submitted_at": seen.submitted_at}
        return reply | {"completed_at": seen.completed_at}

    def wait(self, job, budget_ms):
        self.ledger.wait(job, budget_ms)
        return self.snapshot(job)

    def result(self, job):
        got = self.ledger.result(job)
        if got is None:
            return {"status": "not_found"}
        if hasattr(got, "state"):
            return {"status": "not_done", "state": str(got.state)}
        return {"status": "ready", "task_id": got.task_id, "result": got.result}


def drive(seed, limits, make=JobLedger, calls=80, lose=0.0):
    """Random calls; with probability `lose` no answer comes, and the effect now, later or never."""
    rng, subject, oracle = random.Random(seed), Driven(limits, make), Sequential(limits)
    jobs, late = ["nobody"], []
    for n in range(calls):
        op = rng.choice(
            [
                "submit",
                "submit",
                "start",
                "finish",
                "fail",
                "timeout",
                "take_request",
                "snapshot",
                "result",
                "depth",
                "advance",
                "wait",
            ]
        )
        args = {"submit": {"task_id": f"t{n}", "payload": f"p{n}"}, "advance": {"ms": n % 5}}
        args |= {"depth": {}, "finish": {"result": {"n": n}}, "fail": {"error": f"e{n}"}}
        args |= {"timeout": {"error": f"e{n}"}, "wait": {"budget_ms": 0}}
        asked = dict(args.get(op, {}))
        if op not in ("submit", "advance", "depth"):
            asked["job"] = rng.choice(jobs[-6:])
        if late and rng.random() < 0.3:
            late.pop()()
        if op != "advance" and rng.random() < lose:
            fate = rng.choice(["now", "late", "never"])
            if fate == "now":
                subject.do(op, **asked)
            elif fate == "late":
                late.append(functools.partial(subject.do, op, **asked))
            reply = None
        else:
            reply = subject.do(op, **asked)
        rejection = oracle.observe(op, asked, reply)
        if rejection is not None:
            return rejection
        if reply is not None and "job" in reply:
            jobs.append(reply["job"])
    assert lose or not (oracle.undecided or oracle.warnings)
    return None


def test_calls_that_timed_out_excuse_whatever_they_may_have_done():
    for seed in range(60):
        limits = Limits(1 + seed % 3, (0, 3, 7)[seed % 3], (-1, 0, 1, 2)[seed % 4])
        assert drive(seed, limits, calls=25, lose=0.12) is None


def test_the_shipped_ledger_is_never_rejected():
    for seed in range(150):
        limits = Limits(seed % 4, (0, 3, 7)[seed % 3], (-1, 0, 1, 3)[seed % 4])
        assert drive(seed, limits) is None


class AdmitsOneMore(JobLedger):
    def _admit(self):
        self._depth += 1
        return self._depth <= self.limits.max_queue + 1


class NeverAges(JobLedger):
    def _expired(self, job, now):
        return False


class AgesAtTheTtl(JobLedger):
    def _expired(self, job, now):
        return now - job.seen.completed_at >= self.limits.job_ttl_ms


@pytest.mark.parametrize(
    ("make", "clauses"),
    [(AdmitsOneMore, {"A3", "A1", "A2"}), (NeverAges, {"R3"}), (AgesAtTheTtl, {"R9"})],
)
def test_a_wrong_ledger_is_rejected(make, clauses):
    found = {one.clause for seed in range(20) if (one := drive(seed, Limits(3, 3, 3), make))}
    assert found
    assert found <= clauses, found
