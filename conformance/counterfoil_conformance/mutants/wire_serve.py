"""`python -m counterfoil_conformance.mutants.wire_serve FAULT --port ...`: the faulty server.

It is `counterfoil serve` with the fault's parts in the place of the shipped ones: every module of
the server that names a shipped class finds the override under that name.
"""

import argparse
import sys
from typing import Any

from counterfoil_conformance.mutants.wire import WIRE_FAULTS, load_faults
from counterfoil_server import app, command, probe_model
from counterfoil_server.core import Core
from counterfoil_server.ledger import JobLedger

__all__ = ["main", "substitute"]

_LOADED = (app, command, probe_model)


def substitute(shipped: Any, override: Any) -> int:
    """Put `override` wherever a module of the server names `shipped`; how many places that were."""
    places = 0
    for name, module in list(sys.modules.items()):
        if not name.startswith("counterfoil_server"):
            continue
        for key, value in list(vars(module).items()):
            if value is shipped:
                setattr(module, key, override)
                places += 1
    if shipped is JobLedger:
        (Core.__init__.__kwdefaults__ or {})["ledger"] = override
    return places


def main() -> int:
    """Serve with the fault that the first word names."""
    load_faults()
    fault = WIRE_FAULTS[sys.argv[1]]
    for shipped, override in fault.parts.items():
        if not substitute(shipped, override):
            raise SystemExit(f"{fault.name}: no module of the server names {shipped!r}")
    parser = argparse.ArgumentParser(prog=f"counterfoil serve, {fault.name}")
    command.add_arguments(parser)
    return command.run(parser.parse_args(sys.argv[2:]))


if __name__ == "__main__":
    sys.exit(main())
