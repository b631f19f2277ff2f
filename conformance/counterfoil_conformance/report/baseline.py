"""A baseline: the failures a team knows of and accepts for now, each with its reason.

```toml
[[expected]]
clause = "A9"
verdict = "WARN"
comment = "ids are sequential until the next major release"
```

An entry that no longer comes true is stale and fails the run: a baseline may only shrink knowingly.
"""

import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from counterfoil_conformance.errors import UsageError
from counterfoil_conformance.report.verdicts import ClauseVerdict, Verdict
from counterfoil_spec.clauses import CLAUSES

__all__ = ["Expected", "accepted", "read_baseline", "stale_entries"]

_ACCEPTABLE = tuple(v for v in Verdict if v not in (Verdict.PASS, Verdict.ERROR))
_KEYS = {"clause", "verdict", "comment"}


@dataclass(frozen=True, slots=True)
class Expected:
    """One accepted verdict and the reason for it."""

    clause: str
    verdict: Verdict
    comment: str


def read_baseline(path: Path) -> tuple[Expected, ...]:
    """Read a baseline file.

    Raises:
        UsageError: the file cannot be read, or an entry is not what the format allows.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"baseline {path}: {error}") from None
    entries = document.get("expected", [])
    if document.keys() - {"expected"} or not isinstance(entries, list):
        raise UsageError(f"baseline {path}: only [[expected]] entries are allowed")
    return tuple(_entry(path, number, entry) for number, entry in enumerate(entries, 1))


def accepted(entries: Iterable[Expected]) -> Mapping[str, Verdict]:
    """The accepted verdict by clause."""
    return {entry.clause: entry.verdict for entry in entries}


def stale_entries(
    entries: Iterable[Expected], rows: Iterable[ClauseVerdict], decided: Collection[str]
) -> tuple[str, ...]:
    """One line per entry whose clause is in `decided` and has another verdict by now."""
    came = {row.clause: row.verdict for row in rows}
    return tuple(
        f"baseline: {entry.clause} is {came[entry.clause]}, not {entry.verdict} as expected "
        f"({entry.comment}): remove or correct the entry"
        for entry in entries
        if entry.clause in decided
        and entry.clause in came
        and came[entry.clause] is not entry.verdict
    )


def _entry(path: Path, number: int, entry: Any) -> Expected:
    where = f"baseline {path}, entry {number}"
    if not isinstance(entry, dict) or entry.keys() != _KEYS:
        raise UsageError(f"{where}: needs exactly the keys {', '.join(sorted(_KEYS))}")
    clause, verdict, comment = entry["clause"], entry["verdict"], entry["comment"]
    if clause not in CLAUSES:
        raise UsageError(f"{where}: clause {clause!r} is not a clause (see `counterfoil list`)")
    if verdict not in tuple(_ACCEPTABLE):
        raise UsageError(f"{where}: verdict {verdict!r}: allowed are {', '.join(_ACCEPTABLE)}")
    if not isinstance(comment, str) or not comment.strip():
        raise UsageError(f"{where}: comment: say why it is accepted")
    return Expected(clause, Verdict(verdict), comment)
