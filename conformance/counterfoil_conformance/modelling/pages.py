"""The generated pages about the model: the states of a job, the protocol, the defects' stories.

Each is a function of the tables alone, so that a page can only change together with them;
`tools/generate_docs.py` writes them and `make test` refuses a stale one.
"""

from collections.abc import Iterable

from counterfoil_conformance.modelling.graph import held_mutexes, job_picture, lock_svg, svg
from counterfoil_conformance.modelling.runs import LAW_DEFECTS, Task, perform
from counterfoil_conformance.modelling.stories import Story
from counterfoil_conformance.modelling.tables import how_it_ends
from counterfoil_spec.clauses import DEFECTS
from counterfoil_spec.ledger import ACTIONS, Job, Ledger, Limits, State, Step
from counterfoil_spec.model import Scope
from counterfoil_spec.model_scopes import DEEP_FULL, DEEP_TAGGED, FULL, LIVENESS, pinned
from counterfoil_spec.model_tagged import liveness
from counterfoil_spec.protocol import INSTRUCTIONS
from counterfoil_spec.protocol_programs import CORRECT, SCENARIOS, VARIANTS

__all__ = [
    "defects_page",
    "lock_picture",
    "model_page",
    "protocol_page",
    "state_page",
    "state_picture",
]

_MADE = "<!-- written by tools/generate_docs.py; do not edit -->"


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    head = tuple(head)
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return [*lines, *("| " + " | ".join(_cell(cell) for cell in row) + " |" for row in rows)]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _page(*parts: Iterable[str] | str) -> str:
    lines: list[str] = [_MADE, ""]
    for part in parts:
        lines += [part] if isinstance(part, str) else list(part)
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


# What is searched


def model_page() -> str:
    """`docs/model.md`: what the model covers, and the pinned number of states of every scope."""
    return _page(
        "# The ledger, searched exhaustively",
        "`counterfoil model` visits every ledger that the law (`counterfoil_spec.ledger`) can "
        "reach, and decides every property of `counterfoil_spec.invariants` in each of them and of "
        "every call. A ledger is taken without its ids and its clock: live jobs are a multiset, "
        "retained jobs a sequence in order of completion with ages that stop counting one past the "
        "TTL. So the search *closes*: it covers any number of submits and any length of time. That "
        "nothing that matters is dropped is checked: ledgers with ids and clock have the same "
        "calls, replies and successors as the one that stands for them.",
        "A submit is two steps, *admit* and *sweep*, and anybody may do anything between them. How "
        "many submits may be between the two at once is a parameter, the number of *submitters*: "
        "with 1, one submit is in flight beside all other calls; with 2, two; 0 stands for a "
        "submit that is one step, as a single caller sees it. A bound is needed: without one a "
        "sweep could be as late as one likes, and the terminal jobs would have no number. All "
        "scopes are searched with 0 and with 1, those that stay small with 2.",
        "Not modelled: the cost of a submit (R8), HTTP, and what a job budget's clock is; a job "
        "may time out at any moment (and, in the liveness model, must once its budget is spent).",
        "## Distinct states, in full detail",
        "A scope is max_queue / max_completed / ttl in ms; every count is pinned, and found again "
        "by an encoding that shares no code with the spec (the smaller ones in `make test`, all in "
        "`make model-deep`).",
        _counts(0, "### An atomic submit"),
        _counts(1, "### Admit and sweep apart, one submit in flight"),
        _more_counts(),
        "## One job in detail, the others as counts of ages",
        _table(
            ("scope", "submitters", "states"),
            [
                (f"{scope}", str(scope.submitters), f"{pinned('tagged', scope):,}")
                for scope in DEEP_TAGGED
            ],
        ),
        "## What must happen eventually",
        "With one job tagged and kept out of the symmetry. Each holds when what is named is fair "
        "(not neglected for ever while it is possible all the time), and fails without it.",
        _table(
            ("property", "clauses", "provided that this is fair"),
            [
                (
                    goal.name.replace("_", " "),
                    " ".join(goal.clauses),
                    "; ".join(fair.name.replace("_", " ") for fair in goal.under),
                )
                for goal in liveness(LIVENESS[0])
            ],
        ),
    )


def _counts(submitters: int, heading: str) -> list[str]:
    rows = []
    for max_queue in (1, 2):
        for max_completed in range(3):
            scopes = [Scope(max_queue, max_completed, ttl, submitters) for ttl in range(3)]
            counts = [f"{pinned('full', scope):,}" for scope in scopes]
            rows.append((f"{max_queue}/{max_completed}/ttl", *counts))
    return [heading, "", *_table(("", "ttl 0", "ttl 1", "ttl 2"), rows)]


def _more_counts() -> list[str]:
    scopes = [s for s in (*FULL, *DEEP_FULL) if s.submitters == 2 or s.max_queue == 3]
    rows = [(str(s), str(s.submitters), f"{pinned('full', s):,}") for s in scopes]
    return ["### Others", "", *_table(("scope", "submitters", "states"), rows)]


# The states of a job


def state_picture() -> str:
    """`docs/state-diagram.svg`."""
    return svg(job_picture())


def state_page() -> str:
    """`docs/state-diagram.md`: every call on a job in every state, as the law answers it."""
    calls = [name for name in ACTIONS if name not in ("admit", "sweep", "advance")]
    rows = [
        [f"`{name}`", *(_answer(name, state) for state in State), "not found"] for name in calls
    ]
    return _page(
        "# The states of a job",
        "A job is born `pending` when it is admitted; `done`, `failed` and `timeout` absorb. Asked "
        "of the law (`counterfoil_spec.ledger`), not drawn by hand.",
        "![the states of a job](state-diagram.svg)",
        "What each call does in each state; in *italics* what the caller is told where nothing "
        "changes. A waiter that is told nothing yet is *blocked*.",
        _table(["call", *map(str, State), "unknown id"], rows),
    )


def _answer(name: str, state: State) -> str:
    job = Job(0, state, "task", "payload", 0, 0 if state.terminal else None)
    live, retained = ((), (job,)) if state.terminal else ((job,), ())
    ledger = Ledger(Limits(1, 0, 1), live, retained, len(live), 1)
    arguments = (0, 0, 1) if name == "wait" else (0,)
    step: Step = ACTIONS[name].apply(ledger, *arguments)
    after = step.ledger.find(0)
    if after is not None and after.state is not state:
        return f"-> **{after.state}**"
    told = str(step.reply.outcome).replace("_", " ")
    clause = f" ({step.clause})" if step.clause else ""
    return f"*{told}*{clause}" if step.ledger == ledger else f"{told}, once"


# The protocol


def lock_picture() -> str:
    """`docs/protocol.svg`."""
    return lock_svg(CORRECT["queued"])


def protocol_page() -> str:
    """`docs/protocol.md`: the programs, the forms, the scenarios, the variants."""
    sections: list[Iterable[str] | str] = []
    for name, program in CORRECT["queued"].items():
        sections += [f"### {name}", _program(program)]
    other = CORRECT["table_first"]["end"]
    variants = [
        (
            f"[{v.name}](defects.md#{v.name.lower()})",
            v.title,
            " ".join(v.breaks),
            ", ".join(name.replace("_", " ") for name in v.refuted_by),
        )
        for v in VARIANTS.values()
    ]
    scenarios = [
        (s.name, s.story, ", ".join(thread[0] for thread in s.threads)) for s in SCENARIOS.values()
    ]
    return _page(
        "# The concurrency protocol",
        "One line is one atomic step; between any two, every other thread may take its own. The "
        "model checker tries all interleavings (`counterfoil model protocol`), and that each is a "
        "behaviour of the ledger's law.",
        "![the mutexes that the programs hold](protocol.svg)",
        "## The programs",
        *sections,
        "## The other way to end a job",
        "C5 allows both: to record the completion on an atomic queue within the job's critical "
        "section, as above, or to take the table mutex first, always in this order:",
        _program(other),
        "## What is tried",
        _table(("scenario", "story", "threads"), scenarios),
        "## What breaks it",
        _table(("variant", "what is different", "breaks", "refuted by"), variants),
    )


def _program(program: Iterable[str]) -> list[str]:
    rows = [
        (str(at + 1), f"`{name}`", INSTRUCTIONS[name].text, ", ".join(held))
        for at, (name, held) in enumerate(held_mutexes(tuple(program)))
    ]
    return _table(("", "step", "what it does", "mutexes held"), rows)


# The defects


def defects_page() -> str:
    """`docs/defects.md`: the shortest story of each."""
    sections: list[Iterable[str] | str] = []
    for name, variant in VARIANTS.items():
        known = DEFECTS.get(name)
        sections += [
            f"## {name}",
            f"{_sentence((known or variant).title)}. Breaks {', '.join(variant.breaks)}.",
            f"What a user sees: {variant.seen}",
        ]
        if name in LAW_DEFECTS:
            sections += ["To a single caller:", *_told(Task("law", name=name))]
            sections += ["Between threads:"]
        sections += _told(Task("defect", name=name))
    return _page(
        "# The defects, told step by step",
        "Each is the shortest counterexample there is, found by exhaustive search "
        "(`counterfoil model --defect NAME`). The first five shipped once.",
        *sections,
    )


def _told(task: Task) -> list[Iterable[str] | str]:
    outcome = perform(task)
    name = outcome.expected[0]
    story = outcome.broken[name]
    parts: list[Iterable[str] | str] = [
        f"Refuted by *{name.replace('_', ' ')}*. It begins with: {'; '.join(story.begins)}.",
        _steps(story),
    ]
    ending = how_it_ends(story)
    return [*parts, ending] if ending else parts


def _steps(story: Story) -> list[str]:
    rows = [
        (str(at + 1), line.who, line.does, "; ".join(line.changes))
        for at, line in enumerate(story.lines)
    ]
    return _table(("", "who", "does", "changes"), rows)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
