"""The verdict of a run: the oracle's judgement of the whole history, and whether enough happened.

Exit codes: 0 every invariant held; 1 one was violated; 4 nothing was violated, but too little was
exercised to say so: a role never acted, too few jobs ended, none was done, or a job was still live
when the time to drain was over. Nothing exercised is not a pass.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from counterfoil_conformance.oracle.history import parse_history
from counterfoil_conformance.oracle.judge import judge
from counterfoil_conformance.oracle.setting import Setting
from counterfoil_conformance.run import DEFAULT_TOLERANCE_MS
from counterfoil_conformance.wire.target import Target
from counterfoil_load.live import LiveLedger, percentile
from counterfoil_load.settings import ROLES, Settings

__all__ = ["EXIT_MEANING", "Circumstances", "LoadVerdict", "reach_verdict"]

EXIT_MEANING: Final = {
    0: "every invariant held",
    1: "an invariant was violated",
    4: "too little was exercised for a verdict",
}


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What the verdict depends on beside the history.

    `acted` counts turns per role, `users` the users of each, `dropped` calls past the recorder's
    limit, `left_live` jobs that nobody saw end; `unclaimed` of these were never handed to a runner
    that asked for work.
    """

    settings: Settings
    target: Target
    acted: Mapping[str, int]
    users: Mapping[str, int]
    dropped: int
    left_live: int
    unclaimed: int


@dataclass(frozen=True, slots=True)
class LoadVerdict:
    """What a run showed: `violations` and `warnings` are (clause, argument)."""

    exit: int
    violations: tuple[tuple[str, str], ...]
    warnings: tuple[tuple[str, str], ...]
    shortfalls: tuple[str, ...]
    notes: tuple[str, ...]
    witnesses: tuple[tuple[str, int], ...]
    users: Mapping[str, int]

    def as_json(self, live: LiveLedger) -> dict[str, Any]:
        """For machines: the verdict and the numbers of the run; latencies in ms."""
        rows = {**live.latencies_us, "wake": live.wakes_us}
        return {
            "exit": self.exit,
            "violations": [{"clause": c, "why": why} for c, why in self.violations],
            "warnings": [{"clause": c, "why": why} for c, why in self.warnings],
            "shortfalls": list(self.shortfalls),
            "notes": list(self.notes),
            "witnesses": dict(self.witnesses),
            "jobs": {
                "admitted": live.outcomes["submit 202"],
                "refused": live.outcomes["submit 429"],
                "ended": dict(live.ended),
            },
            "users": dict(self.users),
            "calls": dict(live.calls),
            "latency_ms": {name: _summary(values) for name, values in sorted(rows.items())},
        }


def reach_verdict(
    lines: list[dict[str, Any]], live: LiveLedger, circumstances: Circumstances
) -> LoadVerdict:
    """Judge history lines in the light of the circumstances; `live` is their fold."""
    history = parse_history(json.dumps(line) for line in lines)
    judgement = judge(history.calls, _setting(circumstances))
    violations = [(a.clause, a.text()) for a in judgement.accusations if not a.should]
    warnings = [(a.clause, a.text()) for a in judgement.accusations if a.should]
    judged = {clause for clause, _ in violations}
    for clause, broken in live.breaches.items():
        if clause not in judged:
            violations.append((clause, broken[0]))
    if circumstances.unclaimed:
        lost = f"{circumstances.unclaimed} jobs stayed pending while runners asked for work"
        violations.append(("Q4", lost))
    shortfalls = _shortfalls(live, circumstances)
    return LoadVerdict(
        exit=1 if violations else 4 if shortfalls else 0,
        violations=tuple(violations),
        warnings=tuple(warnings),
        shortfalls=tuple(shortfalls),
        notes=(*_notes(circumstances), *(f"{c}: {w}" for c, w in judgement.undecided.items())),
        witnesses=tuple(sorted(judgement.witnesses.items())),
        users=circumstances.users,
    )


def _setting(circumstances: Circumstances) -> Setting:
    target, limits = circumstances.target, circumstances.target.limits
    runner_surface = bool(circumstances.settings.runner_token)
    return Setting(
        max_queue=limits.max_queue,
        job_ttl_ms=limits.job_ttl_ms,
        max_completed=limits.max_completed,
        # Calls past the recorder's limit may have been anybody's submits.
        exclusive=target.exclusive and not circumstances.dropped,
        visible=runner_surface and limits.timeout_ms == 0 and not circumstances.dropped,
        # What an earlier run left behind may be anything, as long as it has ended.
        ended_before=None,
        tolerance_ms=target.tolerance.ms or DEFAULT_TOLERANCE_MS,
    )


def _shortfalls(live: LiveLedger, circumstances: Circumstances) -> list[str]:
    idle = [role for role in ROLES if not circumstances.acted.get(role)]
    ended = sum(live.ended.values())
    needed = circumstances.settings.min_jobs
    found = []
    if idle:
        found.append(f"never acted: {', '.join(idle)}")
    if ended < needed:
        found.append(f"only {ended} jobs ended; a verdict needs {needed} (--min-jobs)")
    elif not live.ended["done"] + live.ended["gone"]:
        found.append("no job was ever `done`: results were not exercised (is `bodies` right?)")
    if circumstances.left_live:
        found.append(
            f"{circumstances.left_live} jobs had not ended {circumstances.settings.drain_s:g} s "
            "after the last submit (--drain-s)"
        )
    return found


def _notes(circumstances: Circumstances) -> list[str]:
    notes = []
    if not circumstances.settings.runner_token:
        notes.append(
            "no runner surface: the target's own workers are the runners, and the runner users "
            "fetched results instead"
        )
    if circumstances.dropped:
        notes.append(
            f"the record is full: {circumstances.dropped} later calls were not judged (--max-calls)"
        )
    return notes


def _summary(values_us: list[int]) -> dict[str, float]:
    ordered = sorted(values_us)
    shares = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}
    told = {name: percentile(ordered, share) / 1000 for name, share in shares.items()}
    return {"count": len(ordered), **told}
