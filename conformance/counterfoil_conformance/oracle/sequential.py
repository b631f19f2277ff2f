"""The oracle for one call after another: the ledgers that could explain what was seen so far.

Where calls do not overlap and the clock is driven, the law says nearly everything. What it leaves
open (whose turn it is to be evicted, whether a refused submit evicts, what a call did that was
never answered) is kept as a set of candidates: every answer filters it, every choice forks it. When
none is left the answer was wrong, and a candidate that was there before says which clause it broke.

The order of eviction by count is only a SHOULD (R5): further sets follow the orders that the clause
allows, each with one choice only, and once all of them are empty `warnings` says so.

The trap is a call that timed out: it may take effect now, later or never, so it stays pending in
every candidate until then.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from counterfoil_conformance.oracle.blame import Rejection
from counterfoil_conformance.oracle.memory import Facts, Memory
from counterfoil_conformance.oracle.successors import (
    Asked,
    Choose,
    any_victims,
    blame,
    may_sweep,
    oldest_by,
    successors,
)
from counterfoil_spec.ledger import Job, Ledger, Limits, empty_ledger

__all__ = ["CANDIDATE_CAP", "Rejection", "Sequential"]

# More candidates than these, and the oracle stops judging rather than guess.
CANDIDATE_CAP: Final = 4096

_READS: Final = frozenset({"snapshot", "result", "wait", "depth"})
_NEVER_MOVE: Final = frozenset({"snapshot", "result", "wait", "take_request", "advance"})
_ENDS: Final = frozenset({"finish", "fail", "timeout"})
_Candidate: TypeAlias = tuple[Ledger, tuple[int, ...]]


class _Explanations:
    """The ledgers that explain everything so far, under one way of choosing victims.

    A candidate is a ledger and the unanswered calls that have not taken effect in it.
    """

    def __init__(self, start: Ledger, choose: Choose) -> None:
        self.candidates: set[_Candidate] = {(start, ())}
        self._choose = choose

    def after(self, asked: Asked, pending: Mapping[int, Asked], when: int) -> set[_Candidate]:
        """The candidates that allow the answer; an unanswered call is left pending in all."""
        if asked.reply is None:
            return {(ledger, (*rest, when)) for ledger, rest in self.candidates}
        found: set[_Candidate] = set()
        for ledger, rest in self.settled(pending):
            for after in successors(ledger, asked, self._choose):
                found.add((after, rest))
                if len(found) > CANDIDATE_CAP:
                    return found
        return found

    def settled(self, pending: Mapping[int, Asked]) -> set[_Candidate]:
        """With every pending call taking effect, or not yet, in any order."""
        found, frontier = set(self.candidates), list(self.candidates)
        while frontier and len(found) <= CANDIDATE_CAP:
            ledger, rest = frontier.pop()
            for index in rest:
                left = tuple(other for other in rest if other != index)
                for after in successors(ledger, pending[index], self._choose):
                    if (after, left) not in found:
                        found.add((after, left))
                        frontier.append((after, left))
        return found


class Sequential:
    """Judges a sequence of calls, none of which began before the one before had ended.

    Args:
        limits: what the ledger is configured with; `timeout_ms` plays no part, a timeout is a call.
        known: ids that were issued before; a submit must not issue them again.

    `undecided` says why nothing more can be judged, once the choices have become too many; until
    then it is empty. `warnings` are broken SHOULDs.
    """

    def __init__(self, limits: Limits, known: Iterable[str] = ()) -> None:
        start = empty_ledger(limits)
        self.limits = limits
        self.undecided = ""
        self.warnings: list[Rejection] = []
        self.memory = Memory()
        self._every = _Explanations(start, any_victims)
        self._orders = [_Explanations(start, choose) for choose in self._allowed_orders()]
        self._numbers: dict[str, int] = {}
        self._known = frozenset(known)
        self._pending: dict[int, Asked] = {}
        self._calls = 0
        self._was_full = False
        self._swept_at = -1
        self._now_ms = self._swept_ms = 0
        self._ended_ms: dict[int, int] = {}
        # Clauses that a depth which changed breaks, if nothing happened but what was refused.
        self._blamed_for_depth: set[str] | None = None

    @property
    def candidates(self) -> frozenset[Ledger]:
        """The ledgers that explain everything seen so far; jobs are numbered by `number_of`."""
        return frozenset(ledger for ledger, _ in self._every.candidates)

    def number_of(self, job: str) -> int | None:
        """The number under which the candidates know an id."""
        return self._numbers.get(job)

    def observe(
        self, op: str, args: Mapping[str, Any], reply: Mapping[str, Any] | None
    ) -> Rejection | None:
        """Judge one call, and remember it.

        Args:
            op: as in a history.
            args: what was asked, `job` among it where the op speaks of one.
            reply: the answer; None, or `{"error": text}` alone: nothing is known of it.

        Returns:
            None, or why the answer is not allowed; the call then counts as not made.
        """
        if self.undecided:
            return None
        if reply is not None and reply.keys() == {"error"}:
            reply = None
        asked = Asked(op, self._number(op, args), args, reply)
        rejection = self._judge(asked)
        self._calls += 1
        return rejection

    def _number(self, op: str, args: Mapping[str, Any]) -> int | None:
        return self._calls if op == "submit" else self._numbers.get(str(args.get("job")))

    def _judge(self, asked: Asked) -> Rejection | None:
        if asked.reply is None:
            self._leave_pending(asked)
            return None
        if self._nobodys(asked):
            return None
        job = asked.reply.get("job") if asked.op == "submit" else None
        if job in self._numbers or job in self._known:
            return Rejection("A8", f"the id {job} was issued before", ("a new id",))
        found = self._every.after(asked, self._pending, self._calls)
        if not found:
            return self._reject(asked)
        return self._remember(asked, None if job is None else str(job), found)

    def _leave_pending(self, asked: Asked) -> None:
        if asked.op in _READS:
            return
        self._pending[self._calls] = asked
        for set_ in (self._every, *self._orders):
            set_.candidates = set_.after(asked, self._pending, self._calls)

    def _nobodys(self, asked: Asked) -> bool:
        """Whether the id may be one that an unanswered submit issued: nothing is known of it."""
        if asked.number is not None or asked.op in ("depth", "advance"):
            return False
        return any(call.op == "submit" for call in self._pending.values())

    def _remember(self, asked: Asked, job: str | None, found: set[_Candidate]) -> Rejection | None:
        assert asked.reply is not None
        if asked.number is not None and asked.op != "submit":
            rejection = self.memory.observe(
                asked.op, asked.number, asked.args, asked.reply, self._calls
            )
            if rejection is not None:
                return rejection
        self._every.candidates = found
        self._note_time(asked)
        self._note_refusal(asked)
        if asked.op == "submit":
            self._was_full |= any(led.depth >= self.limits.max_queue for led, _ in found)
        if job is not None:
            self._numbers[job] = self._calls
            self.memory.born(self._calls, self._calls)
        if len(found) > CANDIDATE_CAP:
            self.undecided = f"more than {CANDIDATE_CAP} ledgers explain what was seen"
        self._follow_orders(asked)
        return None

    def _note_time(self, asked: Asked) -> None:
        reply = asked.reply or {}
        if asked.op == "advance":
            self._now_ms += int(asked.args.get("ms", 0))
        elif asked.op == "submit":
            self._swept_at, self._swept_ms = self._calls, self._now_ms
        elif asked.op != "start" and reply.get("accepted") is True and asked.number is not None:
            self._ended_ms[asked.number] = self._now_ms

    def _note_refusal(self, asked: Asked) -> None:
        """Since the last right depth: what was refused must not have moved it (A5 A6 S8)."""
        reply = asked.reply or {}
        if asked.op == "depth":
            self._blamed_for_depth = set()
        elif self._blamed_for_depth is None or asked.op in _NEVER_MOVE:
            pass
        elif asked.op == "submit" and reply.get("refused") is True:
            self._blamed_for_depth.add("A6")
        elif asked.op in _ENDS and reply.get("accepted") is not True:
            self._blamed_for_depth.add("S8" if asked.number is None else "A5")
        else:
            self._blamed_for_depth = None

    # The order of eviction

    def _allowed_orders(self) -> tuple[Choose, ...]:
        """Completion, submission, last use (R5), the last told by any call or by reads alone."""
        jobs = self.memory.jobs

        def facts(job: Job) -> Facts:
            return jobs.get(job.id) or Facts(job.id, job.id)

        return (
            oldest_by(lambda job: facts(job).completed or 0),
            oldest_by(lambda job: job.id),
            oldest_by(lambda job: facts(job).used),
            oldest_by(lambda job: facts(job).read),
        )

    def _follow_orders(self, asked: Asked) -> None:
        if not self._orders:
            return
        for set_ in self._orders:
            set_.candidates = set_.after(asked, self._pending, self._calls)
        self._orders = [set_ for set_ in self._orders if set_.candidates]
        if not self._orders:
            why = (
                "the victims of eviction by count follow no order: completion, submission, last use"
            )
            self.warnings.append(Rejection("R5", why))

    # Why not

    def _reject(self, asked: Asked) -> Rejection:
        before = self._every.settled(self._pending)
        verdicts = [one for led, _ in before if (one := blame(led, asked)) is not None]
        # "Found though unknown" says least: prefer a candidate that still has the job.
        verdicts.sort(key=lambda one: one.clause in ("S8", "G3"))
        first = verdicts[0]
        clause, also = self._refine(asked, first)
        allowed = sorted({answer for one in verdicts for answer in one.allowed})
        return Rejection(clause, first.why, tuple(allowed), also)

    def _refine(self, asked: Asked, first: Rejection) -> tuple[str, tuple[str, ...]]:
        """The clause in the light of what went before, and the others that are broken too."""
        facts = self.memory.jobs.get(asked.number_or_none)
        clause = first.clause
        if clause in ("S8", "G3") and facts is not None:
            late = self._too_late(facts)
            # A job kept too long is still known: to find it breaks no more than that.
            kept = late != "R7" and "accepted" not in (asked.reply or {})
            return late, () if kept else (clause,)
        if asked.op == "depth":
            return clause, tuple(sorted(self._blamed_for_depth or ()))
        if clause == "R1" and facts is not None and self._unswept(facts):
            return "A10", ()
        if clause == "A3" and (asked.reply or {}).get("refused") is True:
            return clause, ("A5",) if self._was_full else ()
        if clause == "R9" and facts is not None and facts.last_seen > self._swept_at:
            return ("R2", ()) if self._sweepable(facts.number) else (clause, ("R2", "R6"))
        also: tuple[str, ...] = {"A3": ("A2",), "A4": ("A2",), "R9": ("R6",)}.get(clause, ())
        if clause == "S5" and facts is not None and facts.completed is not None:
            also = ("S4", "W6") if asked.op == "wait" else ("S4",)
        elif clause == "S5" and asked.op == "wait":
            also = ("W4",)  # a budget that runs out is no end of the job
        return clause, also

    def _unswept(self, facts: Facts) -> bool:
        """Whether no read has found the job yet and no submit was called since its own."""
        return not facts.found and self._swept_at <= facts.submitted

    def _sweepable(self, number: int) -> bool:
        """Whether a submit, had there been one, might have evicted this job."""
        before = self._every.settled(self._pending)
        return any(after.find(number) is None for led, _ in before for after in may_sweep(led))

    def _too_late(self, facts: Facts) -> str:
        """Found though it must be gone: seen gone before, or past its TTL, or one too many."""
        if facts.gone:
            return "R7"
        ended_ms = self._ended_ms.get(facts.number, self._swept_ms)
        return "R3" if self._swept_ms - ended_ms > self.limits.job_ttl_ms else "R4"
