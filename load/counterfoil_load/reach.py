"""Is the target there, and does it know our tokens? Asked before a run, so that it is one line.

Eleven users that cannot connect say so thousands of times, and prove nothing.
"""

import http.client
import time
import urllib.error
import urllib.request
from typing import Final

from counterfoil_conformance.errors import HarnessError
from counterfoil_conformance.wire.target import Target

__all__ = ["require_answers"]

_REACH_S: Final = 4.0
_PAUSE_S: Final = 0.2
_ANSWER_S: Final = 10.0
_NO_JOB: Final = "job_of-nobody"


def require_answers(target: Target, runner_token: str) -> None:
    """Ask for a job that is nobody's; any answer will do but a 401.

    Raises:
        HarnessError: there is no answer for some seconds, or a token is refused.
    """
    base = target.base_url.rstrip("/") + target.prefix
    status = _status(f"{base}/jobs/{_NO_JOB}", target.token)
    if status in (401, 403):
        raise HarnessError(f"{base}: {status}: the target refuses the token ([target] token)")
    if runner_token:
        url = f"{base}/runner/jobs/{_NO_JOB}/renew"
        status = _status(url, runner_token, b'{"fence": 0}')
        if status in (401, 403):
            raise HarnessError(f"{base}/runner: {status}: it refuses the token (--runner-token)")


def _status(url: str, token: str, body: bytes | None = None) -> int:
    """The status that a request is answered with; the target may still be starting."""
    headers = {"Content-Type": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    until = time.monotonic() + _REACH_S
    while True:
        try:
            request = urllib.request.Request(url, body, headers)  # noqa: S310 - the user's own URL
            with urllib.request.urlopen(request, timeout=_ANSWER_S) as answer:  # noqa: S310
                return int(answer.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.code
        except (OSError, http.client.HTTPException) as error:
            if time.monotonic() > until:
                reason = getattr(error, "reason", error)
                raise HarnessError(f"{url}: no answer: {reason}") from None
        time.sleep(_PAUSE_S)
