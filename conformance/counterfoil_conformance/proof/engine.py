"""One lemma, one search: CrossHair through its Python API.

The contract of a lemma is parsed from its docstring; its examples are executed first, without the
solver, and must meet every precondition and the postcondition. Then all paths are searched. The
time limit is processor time, and one path may use all of it: a path that is cut short because
something else had the machine would otherwise be reported as a precondition nobody can meet.

A counterexample is not believed but replayed: the arguments become plain Python values, the lemma
is called with them, and the call is handed out as a program that anyone can run.

The trap is CrossHair's messages: they are English, and their exit code does not tell a refutation
from a search that ran dry. Only the typed results are read here.
"""

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from inspect import BoundArguments
from typing import Any

from crosshair.condition_parser import condition_parser
from crosshair.core import analyze_calltree
from crosshair.core_and_libs import analyze_function
from crosshair.options import AnalysisKind, AnalysisOptionSet
from crosshair.statespace import VerificationStatus

from counterfoil_conformance.errors import HarnessError
from counterfoil_conformance.proof.verdict import Proof, Search, decide
from counterfoil_spec.lemmas.table import Broken, Lemma

__all__ = ["DEFAULT_CPU_S", "as_program", "breaks", "prove"]

DEFAULT_CPU_S = 120.0


def prove(lemma: Lemma, *, cpu_s: float = DEFAULT_CPU_S, faulty: bool = False) -> Proof:
    """Try to confirm or refute a lemma within `cpu_s` seconds of processor time.

    Args:
        lemma: what to prove.
        cpu_s: the allowance, of the search as a whole and of each of its paths.
        faulty: a defect is seeded, so that examples too may behave otherwise.

    Raises:
        HarnessError: the lemma cannot be read, or an example does not meet its precondition.
    """
    began = time.process_time()
    checkable = _checkable(lemma, cpu_s)
    met = sum(_meets(checkable.conditions, example) for example in lemma.examples)
    if met < len(lemma.examples) and not faulty:
        raise HarnessError(f"lemma {lemma.name}: an example does not meet its precondition")
    search = _search(lemma, checkable)
    status, why = decide(search, met)
    return Proof(
        lemma.name,
        status,
        why,
        search.paths,
        search.confirmed_paths,
        time.process_time() - began,
        search.counterexample,
        search.broken,
        "" if search.counterexample is None else as_program(lemma, search.counterexample),
    )


def _checkable(lemma: Lemma, cpu_s: float) -> Any:
    """CrossHair's view of the lemma's one postcondition."""
    options = AnalysisOptionSet(
        analysis_kind=(AnalysisKind.PEP316,),
        per_condition_timeout=cpu_s,
        per_path_timeout=cpu_s,
        stats=Counter(),
    )
    checkables = analyze_function(lemma.function, options)
    if len(checkables) != 1 or not hasattr(checkables[0], "conditions"):
        raise HarnessError(f"lemma {lemma.name}: its docstring is not one readable contract")
    return checkables[0]


def _meets(conditions: Any, arguments: tuple[object, ...]) -> bool:
    bound: Mapping[str, object] = conditions.sig.bind(*arguments).arguments
    return all(condition.evaluate(dict(bound)) for condition in conditions.pre)


def _search(lemma: Lemma, checkable: Any) -> Search:
    """Follow all paths, and replay the counterexample if there is one."""
    options, caught = checkable.options, _Catcher()
    conditions = replace(checkable.conditions, counterexample_description_maker=caught)
    options.deadline = time.process_time() + options.per_condition_timeout
    with condition_parser(options.analysis_kind):
        tree = analyze_calltree(options, conditions)
    broken: Broken = ()
    if caught.arguments is not None and _meets(checkable.conditions, caught.arguments):
        broken = breaks(lemma, caught.arguments)
    return Search(
        paths=options.stats["num_paths"],
        confirmed_paths=tree.num_confirmed_paths,
        exhausted=options.stats["exhaustion"] > 0,
        valid=tree.verification_status is VerificationStatus.CONFIRMED,
        complaints=tuple(message.message for message in tree.messages),
        counterexample=caught.arguments,
        broken=broken,
    )


class _Catcher:
    """Keeps the arguments of a counterexample as values, where CrossHair would keep text."""

    def __init__(self) -> None:
        self.arguments: tuple[object, ...] | None = None

    def __call__(self, found: BoundArguments, returned: object, _: object) -> tuple[str, str]:
        self.arguments = found.args
        return ", ".join(map(repr, found.args)), repr(returned)


def breaks(lemma: Lemma, arguments: tuple[object, ...]) -> Broken:
    """The clauses that a plain call breaks; an exception is named in their place."""
    try:
        return tuple(dict.fromkeys(lemma.function(*arguments)))
    except Exception as error:
        return (type(error).__name__,)


def as_program(lemma: Lemma, arguments: tuple[object, ...]) -> str:
    """A Python program that makes the call and prints what it breaks."""
    names = {lemma.name: lemma.function.__module__}
    for value in arguments:
        _name_types(value, names)
    imports = [
        f"from {module} import {', '.join(sorted(n for n in names if names[n] == module))}"
        for module in sorted(set(names.values()))
    ]
    call = f"print({lemma.name}({', '.join(map(repr, arguments))}))"
    return "; ".join([*imports, call])


def _name_types(value: object, names: dict[str, str]) -> None:
    """Note where the types come from that a value's repr names."""
    if isinstance(value, tuple):
        if hasattr(value, "_fields"):
            names[type(value).__name__] = type(value).__module__
        for part in value:
            _name_types(part, names)
