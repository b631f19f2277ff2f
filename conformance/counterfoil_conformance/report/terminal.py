"""The report people read: progress while the run goes on, then verdicts, then each failure whole.

On a terminal the progress is one live line; elsewhere (CI logs) it is one plain line per check, so
that a run that hangs shows where. A run that never got as far as a check is told in one line. The
verdicts stand clause by clause in the order of the contract;
what failed is told in full below them, nearest to the prompt, with the commands that show it again.
"""

import textwrap
from collections import Counter
from typing import Final

from rich.console import Console
from rich.markup import escape
from rich.status import Status
from rich.text import Text

from counterfoil_conformance.report.events import (
    CheckEnded,
    CheckStarted,
    Event,
    Finding,
    HarnessFault,
    RunEnded,
    RunStarted,
)
from counterfoil_conformance.report.verdicts import ClauseVerdict, Docket, Verdict, left_open
from counterfoil_spec.clauses import CLAUSES, FAMILIES

__all__ = ["EXIT_MEANING", "TerminalReporter", "summary_line"]

STYLES: Final = {
    Verdict.PASS: "green",
    Verdict.FAIL: "bold red",
    Verdict.WARN: "yellow",
    Verdict.UNTESTABLE: "cyan",
    Verdict.UNKNOWN: "magenta",
    Verdict.NOT_RUN: "dim",
    Verdict.ERROR: "bold magenta",
}

EXIT_MEANING: Final = {
    0: "conforms",
    1: "does not conform",
    3: "no verdict: the subject could not be reached or driven, or the kit failed",
    4: "inconclusive: a core clause was not decided",
}

HARNESS_FAILED: Final = 3
INCONCLUSIVE: Final = 4

# Findings of one clause that are told in full; the rest are counted.
FULL_FINDINGS_PER_CLAUSE = 3


def summary_line(rows: tuple[ClauseVerdict, ...], core: frozenset[str]) -> str:
    """How many of how many clauses were exercised, and what came of it."""
    decided = {Verdict.PASS, Verdict.FAIL, Verdict.WARN}
    exercised = sum(row.verdict in decided for row in rows)
    core_rows = [row for row in rows if row.clause in core]
    core_done = sum(row.verdict in decided for row in core_rows)
    counts = Counter(row.verdict for row in rows)
    told = ", ".join(f"{counts[v]} {v}" for v in Verdict if counts[v])
    return (
        f"{exercised} of {len(rows)} clauses exercised "
        f"({core_done} of {len(core_rows)} core): {told}"
    )


class TerminalReporter:
    """Prints a run to `console`; `core` are the clauses that a conclusive run must decide."""

    def __init__(self, docket: Docket, core: frozenset[str], console: Console) -> None:
        self._docket = docket
        self._core = core
        self._console = console
        self._status: Status | None = None
        self._running: dict[str, None] = {}
        self._done = 0
        self._head = ""
        self._faults: list[str] = []

    def __call__(self, event: Event) -> None:
        """Read one event."""
        match event:
            case RunStarted():
                self._begin(event)
            case CheckStarted(check):
                self._show_head()
                self._running[check] = None
                self._progress()
            case CheckEnded(check, clauses, seconds):
                self._running.pop(check, None)
                self._done += 1
                self._ended(check, clauses, seconds)
            case HarnessFault(why):
                self._faults.append(why)
            case RunEnded():
                self._finish(event)
            case _:
                pass

    def _begin(self, event: RunStarted) -> None:
        self._head = (
            f"{event.subject}\nprofile {event.profile}, seed {event.seed}, "
            f"tolerance {event.tolerance_ms:g} ms + round trip"
        )
        if self._console.is_terminal:
            self._status = self._console.status("starting")
            self._status.start()

    def _show_head(self) -> None:
        if self._head:
            self._console.print(self._head, markup=False, highlight=False)
            self._head = ""

    def _progress(self) -> None:
        if self._status is not None:
            names = ", ".join(list(self._running)[-3:])
            self._status.update(escape(f"{self._done} checks done; now: {names}"))

    def _ended(self, check: str, clauses: tuple[str, ...], seconds: float) -> None:
        self._progress()
        if self._status is None:
            line = f"  {seconds:5.1f} s  {check} ({' '.join(clauses)})"
            self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def _finish(self, event: RunEnded) -> None:
        if self._status is not None:
            self._status.stop()
        if self._head and event.exit == HARNESS_FAILED:
            for why in self._faults:
                self._console.print(
                    f"counterfoil: {why}", markup=False, highlight=False, soft_wrap=True
                )
            return
        self._show_head()
        for why in self._faults:
            self._console.print(Text(f"\nharness fault: {why}", style="bold magenta"))
        rows = self._docket.verdicts()
        self._table(rows)
        for row in rows:
            if row.verdict in (Verdict.WARN, Verdict.FAIL):
                self._story(row)
        for note in event.notes:
            self._console.print(Text(note, style="yellow"))
        self._console.print()
        self._console.print(summary_line(rows, self._core), markup=False, highlight=False)
        if event.exit == INCONCLUSIVE:
            for row in rows:
                if left_open(row, self._core):
                    self._field("open", f"{row.clause} {row.verdict}: {row.why}")
        style = "bold green" if event.exit == 0 else "bold red"
        meaning = EXIT_MEANING.get(event.exit, "")
        self._console.print(
            Text(f"exit {event.exit}: {meaning} ({event.seconds:.1f} s)", style=style)
        )

    def _table(self, rows: tuple[ClauseVerdict, ...]) -> None:
        family = ""
        for row in rows:
            clause = CLAUSES[row.clause]
            if clause.family != family:
                family = clause.family
                self._console.print(Text(f"\n{family}  {FAMILIES[family]}", style="bold"))
            self._console.print(self._row(row))

    def _row(self, row: ClauseVerdict) -> Text:
        passed = row.verdict is Verdict.PASS
        told = _plain(CLAUSES[row.clause].sentence) if passed else row.why
        tail = f" ×{row.witnesses}" if row.witnesses else ""
        room = max(self._console.width - 22 - len(tail), 20)
        line = Text("  ")
        line.append(f"{row.verdict:<10}", style=STYLES[row.verdict])
        line.append(f" {row.clause:<4} ")
        line.append(textwrap.shorten(told, room, placeholder=" …"))
        line.append(tail, style="dim")
        return line

    def _story(self, row: ClauseVerdict) -> None:
        found = [f for f in self._docket.findings if f.clause == row.clause]
        if not found:
            return
        title = f"\n{row.verdict} {row.clause} ({row.level})"
        self._console.print(Text(title, style=STYLES[row.verdict]))
        self._field("clause", _plain(CLAUSES[row.clause].sentence))
        for finding in _distinct(found)[:FULL_FINDINGS_PER_CLAUSE]:
            self._finding(finding)
        more = len(_distinct(found)) - FULL_FINDINGS_PER_CLAUSE
        if more > 0:
            self._field("more", f"{more} more of this clause; --json has them all")

    def _finding(self, finding: Finding) -> None:
        label = "why" if not finding.should else "why (SHOULD)"
        self._field(label, finding.why)
        self._field("allowed", finding.allowed)
        self._field("came", finding.actual)
        # Commands stay on one line each, whatever the width: they are there to be copied.
        for command in (finding.repro, *finding.curl):
            if command:
                self._console.print(
                    f"    $ {command}", markup=False, highlight=False, soft_wrap=True
                )

    def _field(self, label: str, text: str) -> None:
        if not text:
            return
        width = max(self._console.width - 2, 40)
        first, rest = f"  {label:<8} ", " " * 11
        for line in text.splitlines():
            filled = textwrap.fill(line, width, initial_indent=first, subsequent_indent=rest)
            self._console.print(filled, markup=False, highlight=False, soft_wrap=True)
            first = rest


def _distinct(findings: list[Finding]) -> list[Finding]:
    """One finding per reason: a fault that shows a hundred times is told once."""
    return list({finding.why: finding for finding in reversed(findings)}.values())[::-1]


def _plain(sentence: str) -> str:
    return sentence.replace("`", "")
