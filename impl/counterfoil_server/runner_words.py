"""What runners say, read from their bodies: each reader gives the value, or the fault in it.

What can be seen to be wrong from the body alone is refused before anything else is asked, whether
the job is known or not and whose it is.
"""

from typing import Any, NamedTuple, TypeAlias

from counterfoil_server.intake import Fault
from counterfoil_server.tasks import Item, ModelName

__all__ = ["Body", "Finished", "read_error", "read_fence", "read_finished", "read_wait_ms"]

Body: TypeAlias = dict[str, Any]


class Finished(NamedTuple):
    """The runner's last word on a job that it could run; `model` if it says which one it ran."""

    items: list[Item]
    model: ModelName | None


def read_wait_ms(body: Body) -> int | Fault:
    """How long a claim may wait for a job to come; not at all if it does not say."""
    wait_ms = _whole(body.get("wait_ms", 0))
    if wait_ms is None or wait_ms < 0:
        return Fault("/wait_ms", "must be a whole number of milliseconds")
    return wait_ms


def read_fence(body: Body) -> int | Fault:
    """The number that came with the claim."""
    fence = _whole(body.get("fence"))
    return (
        Fault("/fence", "must be the integer that came with the claim") if fence is None else fence
    )


def read_error(body: Body) -> str | Fault:
    """Why a job failed."""
    error = body.get("error")
    if isinstance(error, str) and error:
        return error
    return Fault("/error", "must be a non-empty string")


def read_finished(body: Body) -> Finished | Fault:
    """One result per image, each a `status` 0 with `data`, or another status with an `error`."""
    results, model = body.get("results"), _read_model(body)
    if isinstance(model, Fault):
        return model
    if not isinstance(results, list):
        return Fault("/results", "must be an array with one result for each image")
    items = []
    for number, result in enumerate(results):
        item = _read_item(result, f"/results/{number}")
        if isinstance(item, Fault):
            return item
        items.append(item)
    return Finished(items, model)


def _read_item(result: Any, pointer: str) -> Item | Fault:
    status = _whole(result.get("status")) if isinstance(result, dict) else None
    if status is None:
        return Fault(pointer, "must be an object with an integer status")
    error = result.get("error", "")
    if not isinstance(error, str):
        return Fault(f"{pointer}/error", "must be a string")
    return Item(result.get("data")) if status == 0 else Item(error=error or f"status {status}")


def _read_model(body: Body) -> ModelName | Fault | None:
    if "model" not in body:
        return None
    said = body["model"]
    words = [said.get(word, "") for word in ModelName._fields] if isinstance(said, dict) else [said]
    if not all(isinstance(word, str) for word in words) or len(words) != len(ModelName._fields):
        return Fault("/model", "must be an object with a name and a version, both strings")
    return ModelName(*words)


def _whole(value: Any) -> int | None:
    """JSON has one kind of number: 3.0 is a whole one."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
