"""`counterfoil vectors [--out FILE]`: test sequences with their expected answers, as JSON."""

import argparse
import sys
from pathlib import Path

from counterfoil_conformance.errors import UsageError
from counterfoil_conformance.vectors import generate, render

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `vectors`."""
    parser.add_argument("--out", type=Path, metavar="FILE", help="where to write (default: stdout)")


def run(args: argparse.Namespace) -> int:
    """Generate the vectors from the law, and write them."""
    document = generate()
    text = render(document)
    if args.out is None:
        sys.stdout.write(text)
        return 0
    try:
        args.out.write_text(text, "utf-8")
    except OSError as error:
        raise UsageError(f"--out {args.out}: {error.strerror}") from error
    steps = sum(len(sequence["steps"]) for sequence in document["sequences"])
    print(f"{args.out}: {len(document['sequences'])} sequences, {steps} steps")
    return 0
