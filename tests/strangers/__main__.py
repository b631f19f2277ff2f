"""`python -m strangers --port 8000 ...`: run a stranger, perhaps with one seeded fault."""

from strangers.config import parse_arguments
from strangers.server import main

if __name__ == "__main__":
    config = parse_arguments()
    replaced: dict[type, type] = {}
    if config.fault:
        from strangers.faults import fault_named

        replaced = fault_named(config.fault).parts
    main(config, replaced)
