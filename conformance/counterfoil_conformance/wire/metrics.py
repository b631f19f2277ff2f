"""Reading a target's `/metrics`: Prometheus text, and the five numbers that M1 is about.

A target file names its samples as they stand in the text (`jobs_total{state="done"}`). A name
selects every sample that has at least these labels, and their values add up: a server that counts
per worker or per process is read the same way.
"""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

__all__ = ["DEFAULT_NAMES", "Counters", "Sample", "counters", "parse_metrics", "total"]

# What our own server calls them.
DEFAULT_NAMES: Final[Mapping[str, str]] = {
    "submitted": "counterfoil_jobs_submitted_total",
    "done": 'counterfoil_jobs_completed_total{state="done"}',
    "failed": 'counterfoil_jobs_completed_total{state="failed"}',
    "timeout": 'counterfoil_jobs_completed_total{state="timeout"}',
    "depth": "counterfoil_queue_depth",
}
_SAMPLE: Final = re.compile(
    r"^(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)\s*(?:\{(?P<labels>.*)\})?\s*(?P<value>\S+)?"
    r"(?:\s+(?P<time>-?\d+))?(?:\s+#.*)?$"
)
_LABEL: Final = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*,?')


class Sample(NamedTuple):
    """One line: a name, its labels, a value."""

    name: str
    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class Counters:
    """The five numbers of M1; at rest `submitted` is the sum of the other four."""

    submitted: float
    done: float
    failed: float
    timeout: float
    depth: float

    @property
    def accounted(self) -> float:
        """What became of the jobs that were submitted."""
        return self.done + self.failed + self.timeout + self.depth

    def balanced(self) -> bool:
        """M1."""
        return self.submitted == self.accounted

    def say(self) -> str:
        """One line for a report."""
        return (
            f"submitted {self.submitted:g}, done {self.done:g}, failed {self.failed:g}, "
            f"timeout {self.timeout:g}, depth {self.depth:g}"
        )


def parse_metrics(text: str) -> tuple[Sample, ...]:
    """The samples of a Prometheus or OpenMetrics text; lines that are none are left out."""
    samples = []
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        sample = _sample(line.strip())
        if sample is not None:
            samples.append(sample)
    return tuple(samples)


def total(samples: Iterable[Sample], selector: str) -> float | None:
    """The sum of the samples that a name with labels selects, or None if there is none."""
    wanted = _sample(selector.strip())
    if wanted is None:
        return None
    found = [
        s.value
        for s in samples
        if s.name == wanted.name and wanted.labels.items() <= s.labels.items()
    ]
    return sum(found) if found else None


def counters(samples: Iterable[Sample], names: Mapping[str, str]) -> Counters | str:
    """The five numbers, or the name of the first sample that is not there.

    A labelled counter that has never moved is usually not exported yet; so where a name has labels
    and its metric is known, or no job has ended that way yet, absence means 0.
    """
    kept = tuple(samples)
    values = {}
    for key, selector in names.items():
        value = total(kept, selector)
        if value is None:
            labelled = "{" in selector
            if not labelled or key in ("submitted", "depth"):
                return selector
            value = 0.0
        if math.isnan(value):
            return selector
        values[key] = value
    return Counters(**values)


def _sample(line: str) -> Sample | None:
    match = _SAMPLE.match(line)
    if match is None:
        return None
    labels = dict(_LABEL.findall(match["labels"] or ""))
    try:
        value = float(match["value"] or "0")
    except ValueError:
        return None
    return Sample(match["name"], labels, value)
