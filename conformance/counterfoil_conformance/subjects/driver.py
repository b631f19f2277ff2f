"""A Python ledger as a driver process: the exec protocol on stdin and stdout.

`python -m counterfoil_conformance.subjects.driver MODULE:FACTORY` speaks for whatever that factory
makes (see `host`). A team whose ledger is in Python need not write a driver; this one also shows,
in its few lines, what a driver in another language has to do.
"""

import json
import sys
import threading
from typing import Any, TextIO

from counterfoil_conformance.subjects.host import CAPABILITIES, Factory, Host, Lanes
from counterfoil_conformance.subjects.python import load_factory
from counterfoil_conformance.subjects.race import CONCURRENT_OPS

__all__ = ["serve"]


def serve(factory: Factory, name: str, source: TextIO, sink: TextIO) -> None:
    """Answer one JSON object per line of `source` on `sink`, until the input ends."""
    host, lanes, lock = Host(factory), Lanes(), threading.Lock()

    def write(message: dict[str, Any]) -> None:
        line = json.dumps(message)
        with lock:
            sink.write(line + "\n")
            sink.flush()

    def perform(message: dict[str, Any]) -> None:
        try:
            concurrent = CONCURRENT_OPS.get(message.get("op", ""))
            reply = concurrent(host, message) if concurrent else host.perform(message)
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {error}"}
        write({"n": message.get("n"), **reply})

    write({"hello": {"protocol": 1, "name": name, "capabilities": list(CAPABILITIES)}})
    for line in source:
        message = json.loads(line)
        if "lane" in message:
            lanes.run(message["lane"], lambda message=message: perform(message))  # type: ignore[misc]
        else:
            perform(message)
    lanes.close()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m counterfoil_conformance.subjects.driver MODULE:FACTORY")
    serve(load_factory(sys.argv[1]), sys.argv[1], sys.stdin, sys.stdout)
