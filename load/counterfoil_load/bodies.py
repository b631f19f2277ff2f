"""What is submitted, and what a runner makes of it.

Every request carries its own nonce, so that an answer meant for another job is recognised (G4).
With a target file whose `echo` body has a `{nonce}`, the target's own model shows it; without one,
our runners put it into the result, and the body is the contract's minimum.
"""

import base64
import json
import random
from typing import Any, NamedTuple

from counterfoil_conformance.wire.target import Bodies

__all__ = ["Request", "make_request", "runner_results"]


class Request(NamedTuple):
    """A body for `POST /jobs`, its `req_id` and its nonce."""

    body: str
    task_id: str
    nonce: str


def make_request(bodies: Bodies, rng: random.Random) -> Request:
    """A request that no other request of the run equals."""
    nonce = f"{rng.getrandbits(64):016x}"
    template = bodies.echo or bodies.quick
    if template is None:
        image = base64.b64encode(nonce.encode()).decode()
        content: Any = {"images": [image]}
    else:
        content = json.loads(template.replace("{nonce}", nonce))
    task_id = f"load-{nonce}"
    if isinstance(content, dict):
        content["req_id"] = task_id
    return Request(json.dumps(content), task_id, nonce)


def runner_results(claim: dict[str, Any]) -> list[dict[str, Any]]:
    """One item per image: what our runners answer, which depends on the image alone."""
    return [{"status": 0, "data": {"image": image}} for image in claim.get("images") or []]
