"""JUnit XML for CI: one test suite per clause family, one test case per clause.

FAIL is a failure and ERROR an error; what was not decided (UNTESTABLE, UNKNOWN, NOT_RUN) is skipped
with its reason, never green; a warning passes and says so in its output.
"""

from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from xml.etree import ElementTree as ET

from counterfoil_conformance.report.events import Event, Finding, RunEnded, RunStarted
from counterfoil_conformance.report.verdicts import ClauseVerdict, Docket, Verdict
from counterfoil_spec.clauses import CLAUSES, FAMILIES

__all__ = ["JunitReporter"]

_SKIPPED = (Verdict.UNTESTABLE, Verdict.UNKNOWN, Verdict.NOT_RUN)


class JunitReporter:
    """Writes the report to `path` when the run ends."""

    def __init__(self, docket: Docket, path: Path) -> None:
        self._docket = docket
        self._path = path
        self._subject = ""

    def __call__(self, event: Event) -> None:
        """Read one event."""
        match event:
            case RunStarted(subject):
                self._subject = subject
            case RunEnded():
                rows = self._docket.verdicts()
                root = ET.Element("testsuites", name=f"counterfoil {self._subject}")
                for family, members in groupby(rows, key=lambda row: row.clause[0]):
                    root.append(self._suite(family, list(members)))
                ET.indent(root)
                ET.ElementTree(root).write(self._path, encoding="utf-8", xml_declaration=True)
            case _:
                pass

    def _suite(self, family: str, rows: list[ClauseVerdict]) -> ET.Element:
        suite = ET.Element(
            "testsuite",
            name=f"{family}: {FAMILIES[family]}",
            tests=str(len(rows)),
            failures=_count(rows, (Verdict.FAIL,)),
            errors=_count(rows, (Verdict.ERROR,)),
            skipped=_count(rows, _SKIPPED),
            time=f"{sum(row.seconds for row in rows):.3f}",
        )
        suite.extend(self._case(row) for row in rows)
        return suite

    def _case(self, row: ClauseVerdict) -> ET.Element:
        sentence = CLAUSES[row.clause].sentence
        case = ET.Element(
            "testcase",
            classname=f"counterfoil.{row.clause[0]}",
            name=_clean(f"{row.clause} {sentence}"),
            time=f"{row.seconds:.3f}",
        )
        message = _clean(row.why)
        if row.verdict is Verdict.FAIL:
            ET.SubElement(case, "failure", message=message).text = self._told(row)
        elif row.verdict is Verdict.ERROR:
            ET.SubElement(case, "error", message=message)
        elif row.verdict in _SKIPPED:
            ET.SubElement(case, "skipped", message=f"{row.verdict}: {message}")
        elif row.verdict is Verdict.WARN:
            ET.SubElement(case, "system-out").text = f"WARN: {message}\n{self._told(row)}"
        return case

    def _told(self, row: ClauseVerdict) -> str:
        found = (f for f in self._docket.findings if f.clause == row.clause)
        return _clean("\n\n".join(_paragraph(finding) for finding in found))


def _paragraph(finding: Finding) -> str:
    commands = [f"$ {command}" for command in (finding.repro, *finding.curl) if command]
    lines = [
        finding.why,
        finding.allowed and f"allowed: {finding.allowed}",
        finding.actual and f"came: {finding.actual}",
        *commands,
    ]
    return "\n".join(line for line in lines if line)


def _count(rows: list[ClauseVerdict], verdicts: Iterable[Verdict]) -> str:
    wanted = tuple(verdicts)
    return str(sum(row.verdict in wanted for row in rows))


def _clean(text: str) -> str:
    """Drop what XML 1.0 cannot carry: a subject's answer may hold any character."""
    return "".join(c if c in "\t\n\r" or c >= " " else "�" for c in text if not _unfit(c))


def _unfit(c: str) -> bool:
    return "\ud800" <= c <= "\udfff" or c in "\ufffe\uffff"
