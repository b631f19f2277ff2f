"""Jobs as a client knows them, and what can be told of a request before it is sent."""

import json
import re
from dataclasses import dataclass
from urllib.parse import unquote

from counterfoil_conformance.wire.answer import Answer

__all__ = ["Job", "Submitted", "effective_budget_ms", "images_in"]


@dataclass(eq=False, slots=True)
class Job:
    """An admitted job as this client knows it. Times are us of the run's clock.

    `live_us`: the call of the last read that saw it live (its submit's return at first);
    `pending_us`: of the last one that saw it pending; `started_us`: the return of the first one
    that saw it otherwise;
    `ended_us`: the return of the first read that saw it terminal; `gone_us`: of the first 404.
    """

    id: str
    kind: str
    answer: Answer
    poll_url: str
    result_url: str
    task_id: str | None
    images: int
    live_us: int
    pending_us: int = 0
    started_us: int | None = None
    state: str = "pending"
    ended_us: int | None = None
    gone_us: int | None = None
    body: bytes = b""
    nonce: str = ""

    @property
    def call_us(self) -> int:
        """When its submit was called."""
        return self.answer.call_us

    @property
    def return_us(self) -> int:
        """When its submit returned."""
        return self.answer.return_us

    @property
    def terminal(self) -> bool:
        """Whether a read has shown it terminal (or gone, after which it cannot come back)."""
        return self.ended_us is not None or self.gone_us is not None


@dataclass(frozen=True, slots=True)
class Submitted:
    """What a submit came to: a job, or `refused` by a full queue, or something else."""

    answer: Answer
    job: Job | None = None
    refused: bool = False


def effective_budget_ms(timeout: int | str | None) -> int | None:
    """How long a wait with this `timeout` may block (W5); None where it may be read either way."""
    if timeout is None:
        return 30_000
    text = unquote(str(timeout))
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        return None  # refused, or as if absent (W10): judged where it is asked
    value = min(int(text[:40]), 300_000)
    return value if value > 0 else None


def images_in(body: bytes) -> int:
    """How many images a body submits; 0 where that cannot be told."""
    try:
        images = json.loads(body).get("images")
    except (ValueError, AttributeError, RecursionError):
        return 0
    return len(images) if isinstance(images, list) else 0
