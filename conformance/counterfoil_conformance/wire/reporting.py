"""What a run has found: witnesses counted, findings published with what reproduces them."""

from collections import Counter
from collections.abc import Iterable
from contextvars import ContextVar
from typing import Final

from counterfoil_conformance.report.events import Finding, Witnessed
from counterfoil_conformance.run import Publish, RunOptions
from counterfoil_conformance.wire.answer import Answer
from counterfoil_conformance.wire.reading import Fault
from counterfoil_conformance.wire.target import Target
from counterfoil_spec.clauses import CLAUSES, Level

__all__ = ["CURRENT_CHECK", "Reporting"]

CURRENT_CHECK: ContextVar[str] = ContextVar("current_check", default="")
_FINDINGS_PER_CLAUSE: Final = 6


class Reporting:
    """Says what was seen: the base of a session, which does the seeing."""

    def __init__(self, target: Target, options: RunOptions, publish: Publish) -> None:
        self.target = target
        self.options = options
        self.witnesses: Counter[str] = Counter()
        self._publish = publish
        self._published: Counter[tuple[str, str, bool, bool]] = Counter()

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
        one_connection: bool = False,
    ) -> None:
        """Publish a finding; a clause that has had its share of them in this check is spared.

        `one_connection`: the requests show it only if they are sent on one and the same.
        """
        check = CURRENT_CHECK.get()
        key = (clause, check, should, must)
        self._published[key] += 1
        if self._published[key] > _FINDINGS_PER_CLAUSE:
            return
        shown = tuple(answers)
        came = actual or (shown[-1].say() if shown else "")
        curl = tuple(dict.fromkeys(answer.request.curl() for answer in shown))
        if one_connection and len(curl) > 1:
            curl = (" --next ".join([curl[0], *(line.removeprefix("curl ") for line in curl[1:])]),)
        repro = self.repro(clause)
        self._publish(Finding(clause, why, allowed, came, should, repro, curl, check, must))

    @property
    def has_failed(self) -> bool:
        """Whether a MUST was found broken."""
        return any(
            binding or (not should and CLAUSES[clause].level is Level.MUST)
            for clause, _, should, binding in self._published
        )

    def repro(self, clause: str) -> str:
        """The command that runs the checks of one clause again."""
        words = ["counterfoil conform"]
        words.append(self.target.subject or "URL")
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
