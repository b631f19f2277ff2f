"""`/status`: one page for people, without scripts and without anything from elsewhere.

It shows limits, depth, workers, the most recent jobs (never what is in them), and what the live
invariants say. It reloads itself every few seconds.
"""

import html
from collections.abc import Iterable, Sequence
from typing import Final

from counterfoil_server import rules
from counterfoil_server.audit import Violation
from counterfoil_server.core import Core
from counterfoil_server.ledger import Snapshot

__all__ = ["PAGE_TYPE", "render"]

PAGE_TYPE: Final = "text/html; charset=utf-8"
_RECENT: Final = 50

_PAGE: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="refresh" content="5">
<title>Counterfoil: {state}</title>
<style>
:root {{ color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }}
body {{ max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }}
h1 {{ font-size: 1.4rem; }} h2 {{ font-size: 1.1rem; margin-top: 2rem; }}
table {{ border-collapse: collapse; width: 100%; }}
th, td {{ text-align: left; padding: .25rem .75rem .25rem 0; border-bottom: 1px solid #8884; }}
tr > th:first-child {{ width: 20rem; }}
td.n, th.n {{ text-align: right; font-variant-numeric: tabular-nums; }}
code {{ font-family: ui-monospace, monospace; }}
.good {{ color: #187a3c; }} .bad {{ color: #b3261e; }}
@media (prefers-color-scheme: dark) {{ .good {{ color: #6bd490; }} .bad {{ color: #ff8a80; }} }}
</style>
</head>
<body>
<h1>Counterfoil <span class="{tone}" id="state">{state}</span></h1>
<p id="verdict" class="{verdict_tone}">{verdict}</p>
<h2>Now</h2>
<table id="now">{now}</table>
<h2>Limits</h2>
<table id="limits">{limits}</table>
<h2>Recent jobs</h2>
<table id="jobs"><thead><tr><th>job</th><th>state</th><th class="n">ms</th></tr></thead>
<tbody>{jobs}</tbody></table>
</body>
</html>
"""


def render(core: Core, violations: Sequence[Violation]) -> bytes:
    """The page as it is now."""
    ready = core.ready and not core.draining
    settings = core.settings
    now = [
        ("model", " ".join(core.model.name)),
        ("depth", f"{core.ledger.depth()} of {settings.async_max_queue}"),
        ("jobs known", core.ledger.known()),
        ("waiters", core.waiters.blocked),
        ("workers busy", f"{core.pool.busy} of {core.pool.size}"),
        ("threads left behind", core.pool.stuck),
        ("claims of external runners", len(core.leases)),
        ("external runners that wait", len(core.leases.turns)),
        ("calls to /infer", core.runner.calls),
    ]
    limits = [
        ("async_enabled", "true" if settings.async_enabled else "false"),
        ("async_timeout", f"{settings.async_timeout} ms"),
        ("async_max_queue", settings.async_max_queue),
        ("async_job_ttl", f"{settings.async_job_ttl} ms"),
        ("async_max_completed", settings.async_max_completed),
    ]
    return _PAGE.format(
        state="ready" if ready else "not ready",
        tone="good" if ready else "bad",
        verdict=_verdict(violations),
        verdict_tone="bad" if violations else "good",
        now=_rows(now),
        limits=_rows(limits),
        jobs="".join(
            _job_row(job, core.clock()) for job in reversed(core.ledger.jobs()[-_RECENT:])
        ),
    ).encode()


def _verdict(violations: Sequence[Violation]) -> str:
    if not violations:
        return "All live invariants hold."
    return "; ".join(html.escape(f"{clause}: {why}") for clause, why in violations)


def _rows(rows: Iterable[tuple[str, object]]) -> str:
    return "".join(
        f"<tr><th>{html.escape(name)}</th><td>{html.escape(str(value))}</td></tr>"
        for name, value in rows
    )


def _job_row(job: Snapshot, now: int) -> str:
    elapsed_ms = rules.elapsed_ms(job.submitted_at, job.completed_at, now)
    return (
        f"<tr><td><code>{html.escape(job.job_id)}</code></td><td>{job.state}</td>"
        f'<td class="n">{elapsed_ms}</td></tr>'
    )
