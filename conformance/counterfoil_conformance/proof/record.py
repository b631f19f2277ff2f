"""The path counts of every lemma, as they were when it was last confirmed.

The solver and its search are deterministic, so the counts come out the same wherever the same
versions run. A lemma that is suddenly confirmed along fewer paths may have become vacuous: its
precondition shuts out what it was about. `counterfoil prove` says when a count has changed, and
`counterfoil prove --record` writes them down after someone has looked.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Final, TypeAlias

from counterfoil_conformance.errors import HarnessError
from counterfoil_conformance.proof.verdict import Proof, Status

__all__ = ["RECORD", "Paths", "changes", "load", "save"]

RECORD: Final = Path(__file__).with_name("paths.json")

# Confirmed paths and all paths, by lemma.
Paths: TypeAlias = dict[str, tuple[int, int]]


def load(path: Path = RECORD) -> Paths:
    """The recorded counts.

    Raises:
        HarnessError: the file is not such a record.
    """
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        return {lemma: (int(confirmed), int(tried)) for lemma, (confirmed, tried) in raw.items()}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise HarnessError(f"{path}: {error!r}") from None


def save(proofs: Iterable[Proof], path: Path = RECORD) -> None:
    """Write down the counts of what is confirmed."""
    rows = sorted((p.lemma, p.confirmed_paths, p.paths) for p in proofs if _confirmed(p))
    lines = [f' "{lemma}": [{confirmed}, {tried}]' for lemma, confirmed, tried in rows]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def changes(recorded: Paths, proofs: Iterable[Proof]) -> list[str]:
    """One line for each confirmed lemma whose counts are not those of the record."""
    return [
        f"{p.lemma}: {p.confirmed_paths} of {p.paths} paths, recorded are "
        + "{} of {}".format(*recorded.get(p.lemma, ("none", "none")))
        for p in proofs
        if _confirmed(p) and recorded.get(p.lemma) != (p.confirmed_paths, p.paths)
    ]


def _confirmed(proof: Proof) -> bool:
    return proof.status is Status.CONFIRMED
