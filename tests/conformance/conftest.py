"""The C++ ledgers of the tests, built once for all workers and kept while their sources are."""

import fcntl
import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = (
    ROOT / "tests" / "ledgers_cpp" / "ledger.cpp",
    ROOT / "drivers" / "cpp" / "counterfoil_driver.hpp",
)
FLAGS = ("-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread")


def build(*extra):
    """The program built with these flags; from the cache if nothing changed."""
    compiler = shutil.which("g++")
    assert compiler, "the tests of the C++ driver need g++ (Debian: apt-get install g++)"
    words = (*FLAGS, *extra)
    digest = hashlib.sha256(repr(words).encode())
    for source in SOURCES:
        digest.update(source.read_bytes())
    folder = Path(tempfile.gettempdir()) / "counterfoil-cpp"
    folder.mkdir(exist_ok=True)
    program = folder / f"ledger-{digest.hexdigest()[:16]}"
    with (folder / f"{program.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            made = program.with_suffix(".new")
            subprocess.run([compiler, *words, str(SOURCES[0]), "-o", str(made)], check=True)
            made.rename(program)
    return program


@pytest.fixture(scope="session")
def cpp_ledger():
    return build()


@pytest.fixture(scope="session")
def cpp_ledger_under_tsan():
    return build("-fsanitize=thread", "-g")
