"""What a judge says: accusations that carry their proof, witnesses, and what stayed undecided.

An accusation is an argument: `let` names what was seen, each line a fact from the history, and
`why` is the contradiction they add up to. A reader must be able to follow it without the code. What
was seen to hold is counted per clause, because a clause that nobody exercised was not shown to
hold.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from counterfoil_conformance.oracle.history import Call
from counterfoil_conformance.report.events import Finding, Undecided, Witnessed
from counterfoil_conformance.run import Publish

__all__ = ["Accusation", "Bench", "Judgement", "describe", "span", "tell_us"]

# More findings of one clause than these say nothing new.
_ENOUGH: Final = 20
_ABOUT_ORDER: Final = frozenset({"S1", "S2", "S3", "S4", "S5", "S8", "A8", "A10", "R7"})


@dataclass(frozen=True, slots=True)
class Accusation:
    """A proof that no correct ledger could have answered so.

    Args:
        clause: the clause that is broken, and in `also` the others that the same facts break.
        why: the contradiction, in one sentence.
        let: the facts it follows from, in order.
        calls: the calls involved.
        should: only the SHOULD part of the clause is broken.
        job: the job it is about, if it is about one.
        beyond_us: of an answer that came too late, by how much it exceeds all that was allowed.
    """

    clause: str
    why: str
    let: tuple[str, ...] = ()
    calls: tuple[Call, ...] = ()
    also: tuple[str, ...] = ()
    should: bool = False
    job: str | None = None
    beyond_us: float | None = None

    def text(self) -> str:
        """The whole argument: what is wrong, then a line for each fact that it follows from."""
        return "\n".join((self.why, *(f"for {line}" for line in self.let)))

    def as_json(self) -> dict[str, Any]:
        """For machines: the calls are lines of the history format."""
        return {
            "clause": self.clause,
            "also": list(self.also),
            "should": self.should,
            "job": self.job,
            "why": self.why,
            "let": list(self.let),
            "calls": [call.as_line() for call in self.calls],
        }


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a history shows: accusations, how often each clause was seen to hold, open questions.

    `more` counts, per clause, the accusations that were left out because enough were made.
    """

    accusations: tuple[Accusation, ...]
    witnesses: Mapping[str, int]
    undecided: Mapping[str, str] = field(default_factory=dict)
    more: Mapping[str, int] = field(default_factory=dict)

    @property
    def clauses(self) -> frozenset[str]:
        """Every clause that was shown broken (SHOULDs included)."""
        broken: set[str] = set()
        for accusation in self.accusations:
            broken |= {accusation.clause, *accusation.also}
        return frozenset(broken)

    def publish(self, publish: Publish, check: str = "", repro: str = "") -> None:
        """Hand everything to the reporters as events of the run."""
        for clause, count in self.witnesses.items():
            publish(Witnessed(clause, count))
        for clause, why in self.undecided.items():
            publish(Undecided(clause, why))
        for accusation in self.accusations:
            for clause in (accusation.clause, *accusation.also):
                finding = Finding(
                    clause,
                    accusation.text(),
                    should=accusation.should,
                    repro=repro,
                    check=check,
                )
                publish(finding)


class Bench:
    """Where the rules lay down what they found while a history is being judged.

    `contradicted` holds the jobs whose own sights contradict each other about when they were live.
    No rule builds on such a job's word any more, so that one fault is not told as many.
    """

    def __init__(self) -> None:
        self.witnesses: Counter[str] = Counter()
        self.undecided: dict[str, str] = {}
        self._accusations: list[Accusation] = []
        self._made: Counter[str] = Counter()
        self._of_job: set[tuple[str, str]] = set()
        self.contradicted: set[str] = set()

    def accuse(  # noqa: PLR0913 - an accusation has these parts
        self,
        clause: str,
        why: str,
        *,
        let: Iterable[str] = (),
        calls: Iterable[Call | None] = (),
        also: Iterable[str] = (),
        should: bool = False,
        job: str | None = None,
        beyond_us: float | None = None,
    ) -> None:
        """Lay down an accusation; one per clause and job is enough."""
        if job is not None:
            if (clause, job) in self._of_job:
                return
            self._of_job.add((clause, job))
            if clause in _ABOUT_ORDER:
                self.contradicted.add(job)
        self._made[clause] += 1
        if self._made[clause] > _ENOUGH:
            return
        involved = tuple(call for call in calls if call is not None)
        self._accusations.append(
            Accusation(clause, why, tuple(let), involved, tuple(also), should, job, beyond_us)
        )

    def enough(self, clause: str) -> bool:
        """Whether one more accusation of `clause` would be left out; if so it is counted now.

        For rules whose proofs are dear: a fault that shows in every call must not cost n squared.
        """
        if self._made[clause] < _ENOUGH:
            return False
        self._made[clause] += 1
        return True

    def witness(self, clauses: str, count: int = 1) -> None:
        """Count that each of `"S5 R6"` was exercised, and held, `count` more times."""
        if count > 0:
            for clause in clauses.split():
                self.witnesses[clause] += count

    def judgement(self) -> Judgement:
        """Everything laid down so far."""
        return Judgement(
            tuple(self._accusations),
            dict(self.witnesses),
            dict(self.undecided),
            {clause: n - _ENOUGH for clause, n in self._made.items() if n > _ENOUGH},
        )


def tell_us(stamp: float) -> str:
    """An instant or a length, in ms with the µs behind the point."""
    return f"{stamp / 1000:.3f} ms"


def span(call: Call) -> str:
    """The interval of a call."""
    end = "no answer" if call.return_us is None else tell_us(call.return_us)
    return f"[{tell_us(call.call_us)}, {end}]"


def describe(call: Call) -> str:
    """A call in one line: who, what, the answer, when."""
    subject = call.job or str(call.args.get("task_id") or "")
    return f"{call.client}: {call.op}({_short(subject)}) -> {_answer(call)} {span(call)}"


def _answer(call: Call) -> str:
    if call.reply is None:
        return "nothing"
    parts = []
    for key, value in call.reply.items():
        if value is True:
            parts.append(key)
        elif value is not None:
            parts.append(f"{key} {_short(str(value))}")
    return ", ".join(parts) or "{}"


def _short(text: str, width: int = 40) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."
