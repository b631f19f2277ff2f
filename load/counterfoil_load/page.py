"""The run on a page: the live Ledger page in Locust's web UI, and the HTML report at the end.

Both show the same: what is violated first, then states, depth against its bound, refusals, wake
latency, and a table of latencies per kind and outcome. Self-contained: it works offline and as a CI
artifact.
"""

from html import escape
from typing import Final

from counterfoil_load.live import INVARIANTS, LiveLedger, percentile
from counterfoil_load.plots import Points, line_chart
from counterfoil_load.verdict import EXIT_MEANING, LoadVerdict

__all__ = ["body_html", "document_html"]

_STYLE: Final = """
:root { color-scheme: light dark; --line: #8884; --ok: #1a7f37; --bad: #cf222e; --wait: #9a6700 }
@media (prefers-color-scheme: dark) { :root { --ok: #3fb950; --bad: #ff7b72; --wait: #d29922 } }
body { font: 14px/1.45 system-ui, sans-serif; max-width: 62rem; margin: 1rem auto; padding: 0 1rem }
h1 { font-size: 1.3rem; margin: 0 0 .2rem } h2 { font-size: 1rem; margin: 1.2rem 0 .3rem }
.ok { color: var(--ok) } .bad { color: var(--bad) } .open { color: var(--wait) }
.head { font-weight: 600; font-size: 1.05rem }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(24rem, 1fr)); gap: .8rem }
svg { width: 100%; border: 1px solid var(--line); border-radius: 6px }
svg text { font: 10px system-ui, sans-serif } svg .t { font-weight: 600 }
svg .grid { stroke: #8884 }
svg .bound { stroke: #dc2626; stroke-dasharray: 4 3; fill: none }
table { border-collapse: collapse; width: 100% }
th, td { text-align: right; padding: .15rem .5rem; border-bottom: 1px solid var(--line) }
th:first-child, td:first-child { text-align: left }
ul { margin: .2rem 0; padding-left: 1.2rem } pre { white-space: pre-wrap; overflow-wrap: anywhere }
"""


def document_html(title: str, body: str, script: str = "") -> str:
    """A whole page around `body`."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>"
        f'<body><main id="ledger">{body}</main>{script}</body></html>\n'
    )


def body_html(live: LiveLedger, verdict: LoadVerdict | None, max_queue: int | None) -> str:
    """The content of the page: the verdict when there is one, the live invariants until then."""
    head = _verdict(verdict) if verdict is not None else _invariants(live)
    return head + _numbers(live) + _charts(live, max_queue) + _latencies(live)


def _verdict(verdict: LoadVerdict) -> str:
    kind = {0: "ok", 1: "bad"}.get(verdict.exit, "open")
    lines = [f'<p class="head {kind}">exit {verdict.exit}: {EXIT_MEANING[verdict.exit]}</p>']
    for clause, why in verdict.violations:
        lines.append(f'<p class="bad"><b>{clause}</b></p><pre>{escape(why)}</pre>')
    shortfalls = "".join(f"<li>{escape(text)}</li>" for text in verdict.shortfalls)
    lines.append(f'<ul class="open">{shortfalls}</ul>' if shortfalls else "")
    notes = "".join(f"<li>{escape(text)}</li>" for text in verdict.notes)
    lines.append(f"<ul>{notes}</ul>" if notes else "")
    held = ", ".join(f"{clause} ×{count}" for clause, count in verdict.witnesses)
    lines.append(f"<p>Held: {escape(held)}</p>" if held else "")
    return "<h1>Verdict</h1>" + "".join(lines)


def _invariants(live: LiveLedger) -> str:
    items = []
    for clause, sentence in INVARIANTS.items():
        broken = live.breaches.get(clause, [])
        kind = "bad" if broken else "ok"
        told = f"broken {len(broken)}×: {broken[0]}" if broken else "holds so far"
        items.append(
            f'<li><b>{clause}</b> {sentence}: <span class="{kind}">{escape(told)}</span></li>'
        )
    return "<h1>Live invariants</h1><ul>" + "".join(items) + "</ul>"


def _numbers(live: LiveLedger) -> str:
    ended = ", ".join(f"{count} {state}" for state, count in sorted(live.ended.items()))
    roles = ", ".join(f"{count} by {role}s" for role, count in sorted(live.calls.items()))
    return (
        f"<p>{live.outcomes['submit 202']} admitted, {live.outcomes['submit 429']} refused; "
        f"ended: {ended or 'none'}; {live.live} live. Calls: {roles or 'none'}.</p>"
    )


def _charts(live: LiveLedger, max_queue: int | None) -> str:
    def per_second(*names: str) -> Points:
        return [
            (float(second), float(sum(bucket[name] for name in names)))
            for second, bucket in sorted(live.timeline.items())
        ]

    endings = {
        label: per_second(f"{op} accepted")
        for op, label in (("finish", "done"), ("fail", "failed"), ("timeout", "timeout"))
    }
    seen = {
        label: per_second(f"snapshot {label}", f"wait {label}")
        for label in ("pending", "running", "done", "failed", "timeout")
    }
    depth = {"": per_second("depth")}
    admission = {"202": per_second("submit 202"), "429": per_second("submit 429")}
    waits = {"woken": per_second("wait woken"), "expired": per_second("wait expired")}
    wakes = {"": _ranked_ms(live.wakes_us)}
    bound = float(max_queue) if max_queue is not None else None
    return (
        '<div class="charts">'
        + line_chart("jobs not yet seen to end, and the bound on depth", depth, bound=bound)
        + line_chart("submits per second", admission)
        + line_chart("endings per second", endings)
        + line_chart("states seen per s", seen)
        + line_chart("waits per second", waits)
        + line_chart("wake latency by share of wakes", wakes, unit=" ms", x_unit=" %")
        + "</div>"
    )


def _ranked_ms(values_us: list[int]) -> Points:
    """The sorted latencies, thinned to a hundred points, against the share of them in per cent."""
    ordered = sorted(values_us)
    count = len(ordered)
    picked = range(0, count, max(1, count // 100))
    return [(100 * index / count, ordered[index] / 1000) for index in picked]


def _latencies(live: LiveLedger) -> str:
    rows = {**live.latencies_us, "wake (end to answer)": live.wakes_us}
    cells = (_latency_row(name, sorted(values)) for name, values in sorted(rows.items()) if values)
    return (
        "<h2>Latency by kind and outcome (ms)</h2><table><tr><th>call</th><th>count</th>"
        "<th>p50</th><th>p95</th><th>p99</th><th>max</th></tr>" + "".join(cells) + "</table>"
        "<p>In a closed loop a user asks again only when it was answered, so a slow target is "
        "asked less often and its worst moments weigh less here than for real clients; "
        "<code>--submit-rate</code> keeps the rate of submits constant.</p>"
    )


def _latency_row(name: str, values_us: list[int]) -> str:
    shown = (percentile(values_us, share) for share in (0.5, 0.95, 0.99, 1.0))
    cells = "".join(f"<td>{value / 1000:.1f}</td>" for value in shown)
    return f"<tr><td>{escape(name)}</td><td>{len(values_us)}</td>{cells}</tr>"
