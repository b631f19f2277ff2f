"""Every connection is an open file, and many systems allow a process no more than 1024 of them.

Past the limit a connection is neither served nor refused: it waits in the backlog, and nothing is
logged. So the limit is raised at the start as far as the system lets us, and if that is not far
enough the operator is told then.
"""

import logging
from typing import Final

try:
    import resource
except ModuleNotFoundError:  # not a Unix
    resource = None  # type: ignore[assignment]

__all__ = ["room_for"]

_log = logging.getLogger(__name__)
_SPARE: Final = 100  # the listener, the log, a model's files


def room_for(connections: int) -> None:
    """Raise this process's limit on open files if need be; say so if that is not enough."""
    if resource is None:
        return
    needed = connections + _SPARE
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        if soft < connections:
            _log.warning(
                "max_connections is %d, but the system allows %d open files (ulimit -n): "
                "connections past that wait unanswered",
                connections,
                soft,
            )
