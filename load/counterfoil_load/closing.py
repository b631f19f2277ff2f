"""The end of a run: probe the ledger at rest, judge, report.

When the users have rested and the jobs have drained, the queue must be empty again: `max_queue` new
jobs are admitted (A11), and where our runners decide when a job ends, one more is refused (A3).
These calls are recorded like all others and judged with them.
"""

import json
from typing import Any

from locust.contrib.fasthttp import FastHttpSession
from rich.console import Console
from rich.text import Text

from counterfoil_load.bodies import make_request, runner_results
from counterfoil_load.calls import Calls
from counterfoil_load.live import LiveLedger
from counterfoil_load.page import body_html, document_html
from counterfoil_load.stage import Stage
from counterfoil_load.verdict import EXIT_MEANING, Circumstances, LoadVerdict, reach_verdict

__all__ = ["conclude"]


def conclude(stage: Stage) -> int:
    """Probe, judge and report the run that has just ended; returns its exit code."""
    left_live = stage.known.live_count
    unclaimed = _unclaimed(stage) if left_live else 0
    if not left_live:
        _probe_at_rest(stage)
    lines = stage.gather()
    live = LiveLedger()
    live.learn(lines)
    circumstances = Circumstances(
        settings=stage.settings,
        target=stage.target,
        acted=stage.acted,
        users=stage.users,
        dropped=stage.dropped,
        left_live=left_live,
        unclaimed=unclaimed,
    )
    verdict = reach_verdict(lines, live, circumstances)
    stage.verdict = verdict
    _write_files(stage, lines, live, verdict)
    _print(verdict, live)
    return verdict.exit


def _closing_calls(stage: Stage) -> Calls:
    events = stage.environment.events
    client = FastHttpSession(stage.environment.host, events.request, user=None, network_timeout=60)
    return Calls(
        client,
        name="closing-0",
        recorder=stage.recorder,
        prefix=stage.target.prefix,
        token=stage.target.token,
        runner_token=stage.settings.runner_token,
        learn=stage.known.learn,
    )


def _unclaimed(stage: Stage) -> int:
    """How many jobs are pending although a runner that asks for work is told there is none."""
    if not stage.has_runner_surface:
        return 0
    calls = _closing_calls(stage)
    if calls.claim(wait_ms=500) is not None:
        return 0
    replies = [calls.poll(job) for job in stage.known.live_jobs()]
    return sum(reply is not None and reply.get("state") == "pending" for reply in replies)


def _probe_at_rest(stage: Stage) -> None:
    """Fill the queue once more, and see the jobs to their end."""
    bound = stage.target.limits.max_queue
    if bound is None or bound <= 0 or not stage.target.exclusive:
        return
    calls = _closing_calls(stage)
    extra = 1 if stage.has_runner_surface else 0
    admitted: list[str] = []
    for _ in range(bound + extra):
        request = make_request(stage.target.bodies, stage.rng)
        job = calls.submit(request.body, request.task_id, request.nonce)
        if job is not None:
            admitted.append(job)
    while stage.has_runner_surface and (claim := calls.claim(wait_ms=0)) is not None:
        calls.end(claim, "finish", results=runner_results(claim))
    for job in admitted:
        calls.wait(job, budget_ms=10_000)


def _write_files(
    stage: Stage, lines: list[dict[str, Any]], live: LiveLedger, verdict: LoadVerdict
) -> None:
    settings = stage.settings
    if settings.history_file:
        text = "".join(f"{json.dumps(line)}\n" for line in lines)
        settings.history_file.write_text(text, encoding="utf-8")
    if settings.json_file:
        report = {"subject": stage.environment.host, **verdict.as_json(live)}
        settings.json_file.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    if settings.html_file:
        body = body_html(live, verdict, stage.target.limits.max_queue)
        page = document_html(f"Counterfoil load: {stage.environment.host}", body)
        settings.html_file.write_text(page, encoding="utf-8")


def _by_clause(told: tuple[tuple[str, str], ...]) -> dict[str, list[str]]:
    clauses: dict[str, list[str]] = {}
    for clause, why in told:
        clauses.setdefault(clause, []).append(why)
    return clauses


def _print(verdict: LoadVerdict, live: LiveLedger) -> None:
    console = Console()
    ended = sum(live.ended.values())
    admitted, refused = live.outcomes["submit 202"], live.outcomes["submit 429"]
    console.print(f"\n{admitted} jobs admitted, {refused} refused, {ended} ended", highlight=False)
    for clause, arguments in _by_clause(verdict.violations).items():
        console.print(Text(f"VIOLATED {clause}: {arguments[0]}", style="bold red"))
        if len(arguments) > 1:
            console.print(Text(f"  ... and {len(arguments) - 1} more of {clause}", style="red"))
    for clause, why in verdict.warnings:
        console.print(Text(f"warning {clause}: {why}", style="yellow"))
    for text in (*verdict.shortfalls, *verdict.notes):
        console.print(Text(text, style="yellow"))
    held = ", ".join(f"{clause} ×{count}" for clause, count in verdict.witnesses)
    console.print(Text(f"held: {held or 'nothing was exercised'}", style="dim"))
    style = "bold green" if verdict.exit == 0 else "bold red"
    console.print(Text(f"exit {verdict.exit}: {EXIT_MEANING[verdict.exit]}", style=style))
