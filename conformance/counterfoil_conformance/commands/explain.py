"""`counterfoil explain CLAUSE|DEFECT`: what it says, who breaks it, and how that looks.

For a clause: its sentence, the properties of the model that stand for it, the defects that break
it. For a defect: what it was, what a user would have seen, and the shortest story the model checker
finds, found afresh each time.
"""

import argparse
import difflib
import json
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from counterfoil_conformance.errors import UsageError
from counterfoil_conformance.modelling.runs import LAW_DEFECTS, Outcome, Task, perform
from counterfoil_conformance.modelling.tables import console, print_story
from counterfoil_spec.clauses import CLAUSES, DEFECTS, FAMILIES
from counterfoil_spec.invariants import JOB, LEDGER, MOVE
from counterfoil_spec.model import Scope
from counterfoil_spec.model_tagged import liveness
from counterfoil_spec.protocol_programs import VARIANTS
from counterfoil_spec.protocol_properties import ALWAYS, EVENTUALLY

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `explain`."""
    parser.add_argument("name", metavar="CLAUSE|DEFECT", help="such as A3, D4 or notify_one")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Explain one thing; it is found whatever the case of its letters."""
    name = _known(args.name)
    if name in CLAUSES:
        document = _clause(name)
        if not args.json:
            _print_clause(console(), document)
    else:
        outcomes = _stories(name)
        document = _defect(name, outcomes)
        if not args.json:
            _print_defect(console(), document, outcomes)
    if args.json:
        print(json.dumps(document, indent=2, ensure_ascii=False))
    return 0


def _known(text: str) -> str:
    names = {name.lower(): name for name in (*CLAUSES, *DEFECTS, *VARIANTS)}
    wanted = text.lower().replace("-", "_")
    if wanted not in names:
        near = difflib.get_close_matches(wanted, names, n=3, cutoff=0.5)
        hint = f"; did you mean {', '.join(names[n] for n in near)}?" if near else ""
        raise UsageError(f"explain {text}: no such clause or defect{hint}")
    return names[wanted]


def _clause(name: str) -> dict[str, Any]:
    clause = CLAUSES[name]
    goals = liveness(Scope(1, 1, 1, timeout_ms=1))
    sentences = {
        prop.name: prop.sentence
        for table in (JOB, LEDGER, MOVE)
        for prop in table.values()
        if name in prop.clauses
    }
    for rules in (ALWAYS, EVENTUALLY, goals):
        for rule in rules:
            if name in rule.clauses:
                sentences.setdefault(rule.name, "")
    breakers = [v.name for v in VARIANTS.values() if name in v.breaks]
    breakers += [
        d.id for d in DEFECTS.values() if name in (*d.breaks, *d.shows_as) and d.id not in breakers
    ]
    return {
        "clause": name,
        "family": FAMILIES[clause.family],
        "level": str(clause.level),
        "core": clause.core,
        "seen_at": str(clause.seen_at),
        "sentence": clause.sentence,
        "properties": sentences,
        "broken_by": breakers,
    }


def _print_clause(out: Console, document: dict[str, Any]) -> None:
    core = ", core" if document["core"] else ""
    out.print(Text(f"{document['clause']}  {document['level']}{core}", style="bold"))
    out.print(Text(f"{document['family']}; seen at: {document['seen_at']}", style="dim"))
    out.print()
    out.print(Padding(Text(document["sentence"]), (0, 2)))
    if document["properties"]:
        out.print("\nChecked by the model as")
        for name, sentence in document["properties"].items():
            out.print(Padding(Text(f"{name.replace('_', ' ')}. {sentence}"), (0, 2)))
    if document["broken_by"]:
        out.print(f"\nBroken by {', '.join(document['broken_by'])} (counterfoil explain NAME)")


def _stories(name: str) -> list[Outcome]:
    tasks = [Task("law", name=name)] if name in LAW_DEFECTS else []
    if name in VARIANTS:
        tasks.append(Task("defect", name=name))
    return [perform(task) for task in tasks]


def _defect(name: str, outcomes: list[Outcome]) -> dict[str, Any]:
    known, variant = DEFECTS.get(name), VARIANTS.get(name)
    return {
        "defect": name,
        "title": known.title if known else variant.title if variant else "",
        "story": known.story if known else "",
        "breaks": list(known.breaks if known else variant.breaks if variant else ()),
        "shows_as": list(known.shows_as if known else ()),
        "what_a_user_sees": variant.seen if variant else "",
        "searches": [outcome.as_json() for outcome in outcomes],
    }


def _print_defect(out: Console, document: dict[str, Any], outcomes: list[Outcome]) -> None:
    out.print(Text(f"{document['defect']}  {document['title']}", style="bold"))
    breaks, shows = " ".join(document["breaks"]), " ".join(document["shows_as"])
    facts = [f"breaks {breaks}" if breaks else "", f"seen as {shows}" if shows else ""]
    out.print(Text("; ".join(filter(None, facts)), style="dim"))
    for text in (document["story"], document["what_a_user_sees"]):
        if text:
            out.print()
            out.print(Padding(Text(text), (0, 2)))
    for outcome in outcomes:
        single = outcome.task.kind == "law"
        out.print("\nTo a single caller:" if single else "\nThe shortest interleaving:")
        name = outcome.expected[0]
        print_story(out, name, outcome.broken[name])
