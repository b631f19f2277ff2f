"""What is asked and what is answered: the one definition of request and result (C6).

A body that was accepted becomes an `InferenceTask`. A model turns its images into `Item`s, one per
image and in order. The items become an `InferenceResult`, encoded once, on the worker's thread, so
that reading it again costs nothing and gives the same bytes (G1); it carries all that the envelope
says apart from the task id.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

from counterfoil_server.strict_json import dumps

__all__ = ["InferenceResult", "InferenceTask", "Item", "ModelName"]


class InferenceTask(NamedTuple):
    """A request for inference: base64 images, and what the client says about them."""

    images: tuple[str, ...]
    params: Mapping[str, Any] = MappingProxyType({})
    options: Mapping[str, Any] = MappingProxyType({})


class Item(NamedTuple):
    """The answer to one image: `data`, or what was wrong with it (G4)."""

    data: Any = None
    error: str | None = None


class ModelName(NamedTuple):
    """Which model answered."""

    name: str
    version: str


@dataclass(frozen=True, slots=True)
class InferenceResult:
    """The envelope, encoded but for `task_id`; `reason` says why, when no item succeeded."""

    reason: str
    encoded: bytes

    @property
    def failed(self) -> bool:
        """Whether there is nothing but failure in it (G5)."""
        return bool(self.reason)

    @classmethod
    def of(cls, items: Sequence[Item], model: ModelName, server_time_ms: int) -> "InferenceResult":
        """Encode the items; ValueError when one holds what JSON cannot say (NaN)."""
        bad = [n for n, item in enumerate(items) if item.error is not None]
        failed = bool(bad) and len(bad) == len(items)
        reason = _all_failed(items) if failed else ""
        envelope = {
            "status": int(failed),
            "status_str": reason or "OK",
            "model": model._asdict(),
            "results": [{"status": int(i.error is not None), "data": i.data} for i in items],
            "server_time_ms": server_time_ms,
            "partial": bool(bad) and not failed,
        }
        if bad:
            envelope["errors"] = [
                {"pointer": f"/images/{n}", "message": items[n].error} for n in bad
            ]
        return cls(reason, dumps(envelope))

    @classmethod
    def failure(cls, reason: str, model: ModelName) -> "InferenceResult":
        """The envelope of a call whose run gave no items at all."""
        envelope = {
            "status": 1,
            "status_str": reason,
            "model": model._asdict(),
            "results": [],
            "server_time_ms": 0,
            "partial": False,
        }
        return cls(reason, dumps(envelope))

    def envelope(self, task_id: str) -> bytes:
        """The body of a 200."""
        return b'{"task_id":' + dumps(task_id) + b"," + self.encoded[1:]


def _all_failed(items: Sequence[Item]) -> str:
    """The error of a job none of whose items succeeded (G5)."""
    return "; ".join(f"image {n}: {item.error}" for n, item in enumerate(items[:8]))
