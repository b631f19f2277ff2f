"""The `counterfoil` command: it only dispatches.

Each subcommand is a module with `add_arguments(parser)` and `run(args) -> exit code`, named in the
table below and imported only when it is asked for: `serve` must not pay for the kit, the kit must
start where the server is not installed, and Locust patches whatever process imports it.
"""

import argparse
import importlib
import sys
from dataclasses import dataclass
from typing import Final

from counterfoil_conformance.errors import HarnessError, UsageError

__all__ = ["COMMANDS", "Command", "main"]


@dataclass(frozen=True, slots=True)
class Command:
    """A subcommand: where its code is, and the extra that brings its dependencies."""

    name: str
    help: str
    module: str
    extra: str = ""


_KIT = "counterfoil_conformance.commands"
COMMANDS: Final = (
    Command("conform", "judge a server or a ledger, clause by clause", f"{_KIT}.conform"),
    Command("model", "check the spec exhaustively, or show a defect", f"{_KIT}.model"),
    Command("prove", "confirm the lemmas for all integers", f"{_KIT}.prove", "prove"),
    Command("vectors", "write test sequences as JSON", f"{_KIT}.vectors"),
    Command(
        "mutants",
        "which check catches which seeded fault",
        "counterfoil_conformance.mutants.command",
        "server",
    ),
    Command("judge", "judge a recorded history", f"{_KIT}.judge"),
    Command("replay", "run a recorded failure again", f"{_KIT}.replay"),
    Command("list", "list clauses, checks and defects", f"{_KIT}.listing"),
    Command("explain", "tell what a clause or a defect is", f"{_KIT}.explain"),
    Command("serve", "run the reference model server", "counterfoil_server.command", "server"),
    Command("load", "run the stress profile", "counterfoil_load.command", "load"),
)


def main(argv: list[str] | None = None) -> int:
    """Run one subcommand and return its exit code (2 usage, 3 harness)."""
    words = sys.argv[1:] if argv is None else argv
    parser = _parser(words[0] if words else "")
    args = parser.parse_args(words)
    try:
        return int(args.run(args))
    except UsageError as error:
        print(f"counterfoil: {error}", file=sys.stderr)
        return 2
    except HarnessError as error:
        print(f"counterfoil: {error}", file=sys.stderr)
        return 3
    except KeyboardInterrupt:
        return 130


def _parser(chosen: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="counterfoil",
        description="The asynchronous job contract: its spec, its conformance kit, its server.",
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in COMMANDS:
        sub = commands.add_parser(command.name, help=command.help, allow_abbrev=False)
        if command.name == chosen:
            _fill(sub, command)
    return parser


def _fill(parser: argparse.ArgumentParser, command: Command) -> None:
    """Let the chosen subcommand's module add its arguments."""
    try:
        module = importlib.import_module(command.module)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if missing.startswith("counterfoil_") or not command.extra:
            raise
        parser.error(f"needs {missing}: pip install 'counterfoil[{command.extra}]'")
    parser.description = command.help
    module.add_arguments(parser)
    parser.set_defaults(run=module.run)


if __name__ == "__main__":
    sys.exit(main())
