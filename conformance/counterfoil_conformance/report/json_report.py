"""The report machines read; `schema.json` beside this file is its published schema.

The keys `subject`, `profile`, `seed`, `verdicts` and `exit` are a fixed point that others rely on.
Keys may be added, never changed.
"""

import json
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import Any

from counterfoil_conformance.report.events import Event, Finding, RunEnded, RunStarted
from counterfoil_conformance.report.verdicts import Docket

__all__ = ["JsonReporter", "schema"]


class JsonReporter:
    """Writes the report to `path` when the run ends."""

    def __init__(self, docket: Docket, path: Path) -> None:
        self._docket = docket
        self._path = path
        self._head: dict[str, Any] = {}

    def __call__(self, event: Event) -> None:
        """Read one event."""
        match event:
            case RunStarted(subject, profile, seed, tolerance_ms):
                self._head = {
                    "subject": subject,
                    "profile": profile,
                    "seed": seed,
                    "tolerance_ms": tolerance_ms,
                }
            case RunEnded(exit_code, seconds, notes):
                document = {
                    **self._head,
                    "verdicts": [row.as_json() for row in self._docket.verdicts()],
                    "findings": [_finding(found) for found in self._docket.findings],
                    "notes": list(notes),
                    "seconds": round(seconds, 3),
                    "exit": exit_code,
                }
                self._path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
            case _:
                pass


def schema() -> dict[str, Any]:
    """The JSON schema of the report."""
    text = files("counterfoil_conformance.report").joinpath("schema.json").read_text()
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def _finding(found: Finding) -> dict[str, Any]:
    return {**asdict(found), "curl": list(found.curl)}
