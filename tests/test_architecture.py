"""The import arrows point inward: spec <- conformance; the server stands alone; load may judge."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
OURS = {
    "counterfoil_spec": ("spec", set()),
    "counterfoil_conformance": ("conformance", {"counterfoil_spec"}),
    "counterfoil_server": ("impl", set()),
    "counterfoil_load": ("load", {"counterfoil_spec", "counterfoil_conformance"}),
}
# The seeded faults are overrides of the shipped classes, so they alone import the server.
EXEMPT = {"counterfoil_conformance/mutants": {"counterfoil_server"}}


def imported_roots(file: Path) -> set[str]:
    tree = ast.parse(file.read_text())
    roots = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            roots |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            roots.add((node.module or "").split(".")[0])
    return roots


def allowed_for(file: Path, base: set[str]) -> set[str]:
    extra = set()
    for part, roots in EXEMPT.items():
        if part in file.as_posix():
            extra |= roots
    return base | extra


@pytest.mark.parametrize("package", OURS)
def test_imports_point_inward(package):
    folder, allowed = OURS[package]
    for file in (ROOT / folder).rglob("*.py"):
        ours = imported_roots(file) & OURS.keys() - {package}
        assert ours <= allowed_for(file, allowed), f"{file.relative_to(ROOT)} imports {ours}"


def test_the_spec_uses_only_the_standard_library():
    for file in (ROOT / "spec").rglob("*.py"):
        foreign = imported_roots(file) - sys.stdlib_module_names - {"counterfoil_spec"}
        assert not foreign, f"{file.relative_to(ROOT)} imports {foreign}"
