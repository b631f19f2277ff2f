"""The report as one self-contained HTML file: works offline, from a CI artifact, and printed.

No script and no outside resource: a `<details>` per clause unfolds what was seen, failures are
open from the start.
"""

from html import escape
from itertools import groupby
from pathlib import Path
from typing import Final

from counterfoil_conformance.report.events import Event, Finding, RunEnded, RunStarted
from counterfoil_conformance.report.terminal import EXIT_MEANING, summary_line
from counterfoil_conformance.report.verdicts import ClauseVerdict, Docket, Verdict
from counterfoil_spec.clauses import CLAUSES, FAMILIES

__all__ = ["HtmlReporter"]

_STYLE: Final = """
:root { color-scheme: light dark; --line: #8884;
  --pass: #1a7f37; --fail: #cf222e; --warn: #9a6700; --else: #6e7781 }
@media (prefers-color-scheme: dark) {
  :root { --pass: #3fb950; --fail: #ff7b72; --warn: #d29922; --else: #8b949e } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.5rem; margin-bottom: 0 }
h2 { font-size: 1.05rem; margin: 1.6rem 0 .3rem }
.exit { font-weight: 600 } .exit.ok { color: var(--pass) } .exit.bad { color: var(--fail) }
details, .flat { border-top: 1px solid var(--line); padding: .25rem 0 }
summary, .flat { display: flex; gap: .7rem; align-items: baseline }
summary { cursor: pointer }
.v { flex: 0 0 6.6rem; font-weight: 600; font-size: .85rem }
.id { flex: 0 0 2.5rem; font-weight: 600 }
.count { margin-left: auto; opacity: .65; white-space: nowrap; font-size: .85rem }
.PASS { color: var(--pass) } .FAIL, .ERROR { color: var(--fail) } .WARN { color: var(--warn) }
.UNTESTABLE, .UNKNOWN, .NOT_RUN { color: var(--else) }
.finding { margin: .4rem 0 .8rem 7.3rem }
.finding p { margin: .2rem 0; white-space: pre-wrap; overflow-wrap: anywhere }
pre { background: #8881; padding: .5rem; overflow-x: auto; margin: .3rem 0; font-size: .85rem }
"""


class HtmlReporter:
    """Writes the page to `path` when the run ends; `core` are the clauses a run must decide."""

    def __init__(self, docket: Docket, core: frozenset[str], path: Path) -> None:
        self._docket = docket
        self._core = core
        self._path = path
        self._started = RunStarted("", "", 0, 0)

    def __call__(self, event: Event) -> None:
        """Read one event."""
        match event:
            case RunStarted():
                self._started = event
            case RunEnded():
                self._path.write_text(self._page(event), encoding="utf-8", errors="replace")
            case _:
                pass

    def _page(self, ended: RunEnded) -> str:
        rows = self._docket.verdicts()
        begun = self._started
        families = (
            f"<h2>{family} — {escape(FAMILIES[family])}</h2>\n"
            + "\n".join(self._row(row) for row in members)
            for family, members in groupby(rows, key=lambda row: row.clause[0])
        )
        kind = "ok" if ended.exit == 0 else "bad"
        head = (
            f"<p>profile {escape(begun.profile)}, seed {begun.seed}, "
            f"tolerance {begun.tolerance_ms:g} ms + round trip, {ended.seconds:.1f} s</p>"
            f'<p class="exit {kind}">exit {ended.exit}: {EXIT_MEANING.get(ended.exit, "")}</p>'
            f"<p>{escape(summary_line(rows, self._core))}</p>"
        )
        notes = "".join(f"<p>{escape(note)}</p>" for note in ended.notes)
        title = escape(f"Counterfoil: {begun.subject}")
        return (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width">'
            f"<title>{title}</title><style>{_STYLE}</style></head>\n"
            f"<body><h1>{title}</h1>{head}{notes}\n" + "\n".join(families) + "\n</body></html>\n"
        )

    def _row(self, row: ClauseVerdict) -> str:
        clause = CLAUSES[row.clause]
        found = [f for f in self._docket.findings if f.clause == row.clause]
        seen = f'<span class="count">seen {row.witnesses}×</span>' if row.witnesses else ""
        head = (
            f'<span class="v {row.verdict}">{row.verdict}</span>'
            f'<span class="id">{row.clause}</span>'
            f"<span>{_sentence(clause.sentence)}</span>{seen}"
        )
        if not found and not row.why:
            return f'<div class="flat">{head}</div>'
        opened = " open" if row.verdict in (Verdict.FAIL, Verdict.ERROR, Verdict.WARN) else ""
        told = "".join(_finding(f) for f in found) or _field("why", row.why)
        return (
            f'<details{opened}><summary>{head}</summary><div class="finding">{told}</div></details>'
        )


def _sentence(text: str) -> str:
    """The clause's sentence, with its `code` marked up."""
    parts = escape(text, quote=False).split("`")
    return "".join(f"<code>{p}</code>" if i % 2 else p for i, p in enumerate(parts))


def _finding(found: Finding) -> str:
    commands = "\n".join(command for command in (found.repro, *found.curl) if command)
    return (
        _field("why (SHOULD)" if found.should else "why", found.why)
        + _field("allowed", found.allowed)
        + _field("came", found.actual)
        + (f"<pre>{escape(commands)}</pre>" if commands else "")
    )


def _field(label: str, text: str) -> str:
    return f"<p><b>{label}</b> {escape(text)}</p>" if text else ""
