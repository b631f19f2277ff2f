"""Run the kit on every stranger: the correct ones in all variations, and each seeded fault.

    tools/fault_matrix.py [--profile quick|full] [--jobs 3] [--only PATTERN ...] [--missed]

Outcomes are kept, one JSON line per run, in `.fault-matrix.jsonl`, so that a stopped run goes on
where it was; the page `docs/fault-matrix.md` is written from them. A fault is *found* when a clause
that it may be reported under fails (warns, where it breaks only a SHOULD); a variation is *accused*
when any clause fails, or warns without a reason.
"""

import argparse
import fnmatch
import json
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from strangers.config import Config, arguments_of  # noqa: E402
from strangers.faults import FAULTS  # noqa: E402
from strangers.launch import running, write_target  # noqa: E402
from strangers.variations import VARIATIONS, WARNED  # noqa: E402

from counterfoil_conformance.mutants.wire import WIRE_FAULTS, load_faults  # noqa: E402
from counterfoil_conformance.wire.own_server import reserved_port  # noqa: E402

KEPT: Final = ROOT / ".fault-matrix.jsonl"
PAGE: Final = ROOT / "docs" / "fault-matrix.md"
COMMAND: Final = [str(Path(sys.executable).parent / "counterfoil"), "conform"]
# A run that takes longer than this hangs: a fault of the kit.
DEADLINE_S: Final = {"quick": 150.0, "full": 1500.0}

INTRODUCTION: Final = """\
# What the kit finds, and whom it accuses

Written by `make fault-matrix` from runs of `counterfoil conform URL --target FILE` on the strangers
in `tests/strangers`: a second correct server in every variation that the contract allows, and the
same server with one seeded fault at a time; and on our own server with one seeded fault at a time.
Under each profile stand the clauses that reported the fault, of those that may. Runs with `--own`
decide only these clauses; a whole run sees more. A busy machine widens the measured round trip and
so hides some faults of time: a miss here is one run's miss.
"""

TITLES: Final = {
    "variation": "Correct servers",
    "mutant": "Seeded faults of our own server",
    "fault": "Seeded faults of the stranger",
}

Start = Callable[[Path], AbstractContextManager[tuple[str, Path]]]


@dataclass(frozen=True)
class Case:
    """A server to run the kit on; `clauses` are those it may be reported under."""

    kind: str
    name: str
    sentence: str
    clauses: tuple[str, ...]
    should: bool
    full: bool
    start: Start | None

    def good(self, outcome: dict[str, Any]) -> bool:
        """Whether the kit said what it must."""
        fails, warns = set(outcome["FAIL"]), set(outcome["WARN"])
        if self.kind == "variation":
            return not fails and warns <= set(self.clauses) and outcome["exit"] in (0, 4)
        if self.should:
            return bool((fails | warns) & set(self.clauses))
        return bool(fails & set(self.clauses)) and outcome["exit"] == 1


def stranger(config: Config, *, with_process: bool = False) -> Start:
    """How to start a stranger and describe it in a target file in the given folder."""

    @contextmanager
    def start(folder: Path) -> Any:
        if with_process:
            # The kit starts and stops it by itself.
            with reserved_port() as port:
                placed = replace(config, port=port)
                file = write_target(placed, folder / "target.toml", with_process=True)
                yield f"http://{placed.host}:{placed.port}", file
            return
        with running(config) as started:
            yield started.url, write_target(started.config, folder / "target.toml")

    return start


def cases() -> list[Case]:
    """Every case, variations first."""
    variations = [
        Case(
            "variation",
            name,
            "`" + (" ".join(arguments_of(config)) or "-") + "`",
            WARNED.get(name, ()),
            False,
            False,
            stranger(config),
        )
        for name, config in VARIATIONS.items()
    ]
    faults = [
        Case(
            "fault",
            fault.name,
            fault.sentence,
            fault.clauses,
            fault.should,
            fault.full,
            stranger(fault.config, with_process=fault.process),
        )
        for fault in FAULTS.values()
    ]
    load_faults()
    mutants = [
        Case("mutant", each.name, each.sentence, each.clauses, each.should, each.full, None)
        for each in WIRE_FAULTS.values()
    ]
    return variations + mutants + faults


def run_case(case: Case, profile: str, seed: int, own: bool) -> dict[str, Any]:
    """Run the kit once; what it said of each clause, its exit code and how long it took."""
    began = time.monotonic()
    if case.start is None:
        return run_mutant(case, profile, seed, own)
    with TemporaryDirectory() as name:
        folder, report = Path(name), Path(name) / "report.json"
        with case.start(folder) as (url, target):
            words = [*COMMAND, url, "--target", str(target), "--json", str(report)]
            words += ["--profile", profile, "--seed", str(seed)]
            if own and case.clauses:
                words += ["--only", ",".join(case.clauses)]
            try:
                ended = subprocess.run(
                    words, capture_output=True, text=True, check=False, timeout=DEADLINE_S[profile]
                )
                code, noise = ended.returncode, ended.stderr[-2000:]
            except subprocess.TimeoutExpired:
                code, noise = -1, "the run did not end"
        rows = json.loads(report.read_text())["verdicts"] if report.exists() else []
    outcome: dict[str, Any] = {"kind": case.kind, "name": case.name, "profile": profile}
    outcome |= {
        "seed": seed,
        "own": own,
        "exit": code,
        "seconds": round(time.monotonic() - began, 1),
    }
    for verdict in ("FAIL", "WARN", "UNKNOWN", "ERROR", "UNTESTABLE"):
        outcome[verdict] = {r["clause"]: r["why"][:300] for r in rows if r["verdict"] == verdict}
    return outcome | {"stderr": noise if code not in (0, 1, 4) or "Traceback" in noise else ""}


def run_mutant(case: Case, profile: str, seed: int, own: bool) -> dict[str, Any]:
    """Run the kit once on our own server with a fault."""
    began = time.monotonic()
    words = [sys.executable, "-m", "counterfoil_conformance.mutants.wire", case.name, "--json"]
    words += ["--profile", profile, "--seed", str(seed)]
    words += ["--only", ",".join(case.clauses)] if own else []
    outcome: dict[str, Any] = {"kind": case.kind, "name": case.name, "profile": profile}
    outcome |= {"seed": seed, "own": own, "exit": -1, "FAIL": {}, "WARN": {}, "stderr": ""}
    try:
        ended = subprocess.run(
            words, capture_output=True, text=True, check=False, timeout=DEADLINE_S[profile]
        )
        outcome |= json.loads(ended.stdout) if ended.stdout else {"stderr": ended.stderr[-2000:]}
    except subprocess.TimeoutExpired:
        outcome["stderr"] = "the run did not end"
    return outcome | {"seconds": round(time.monotonic() - began, 1)}


def kept(profile: str) -> dict[str, dict[str, Any]]:
    """The latest outcome of each case."""
    if not KEPT.exists():
        return {}
    outcomes = [json.loads(line) for line in KEPT.read_text().splitlines()]
    return {each["name"]: each for each in outcomes if each["profile"] == profile}


def told(case: Case, outcome: dict[str, Any]) -> str:
    """One line about an outcome."""
    good = case.good(outcome)
    word = (("right", "ACCUSED") if case.kind == "variation" else ("found", "MISSED"))[not good]
    fails = " ".join(outcome["FAIL"]) or "-"
    warns = f" (warned: {' '.join(outcome['WARN'])})" if outcome["WARN"] else ""
    line = f"{word:8}{case.name:34} exit {outcome['exit']:2} {outcome['seconds']:6.1f} s  "
    line += f"{fails}{warns}"
    if not good:
        line += f"   may be: {' '.join(case.clauses)}"
        line += "".join(f"\n          {id_}: {why}" for id_, why in outcome["FAIL"].items())
    return line + (f"\n          {outcome['stderr'][-400:]}" if outcome["stderr"] else "")


def write_page() -> None:
    """Write the page from what is kept."""
    quick, full = kept("quick"), kept("full")
    every = cases()
    ran = [case for case in every if case.name in quick or case.name in full]

    def row(case: Case) -> str:
        cells = []
        for outcomes in (quick, full):
            outcome = outcomes.get(case.name)
            if outcome is None:
                cells.append("")
                continue
            reported = outcome["FAIL"] | (outcome["WARN"] if case.should else {})
            hits = [id_ for id_ in reported if id_ in case.clauses]
            right = "nobody accused" if case.good(outcome) else "ACCUSED " + " ".join(reported)
            missed = "left to full" if case.full and outcomes is quick else "missed"
            found = " ".join(hits) if case.good(outcome) else missed
            cells.append(right if case.kind == "variation" else found)
        sentence = case.sentence.replace("|", "\\|")
        return f"| `{case.name}` | {sentence} | {cells[0]} | {cells[1]} |"

    def count(kind: str, outcomes: dict[str, Any]) -> str:
        judged = [case for case in every if case.kind == kind and case.name in outcomes]
        if outcomes is quick:
            judged = [case for case in judged if not case.full or case.good(outcomes[case.name])]
        good = sum(case.good(outcomes[case.name]) for case in judged)
        return f"{good} of {len(judged)}" if judged else "none run"

    lines = [
        INTRODUCTION,
        (
            f"Faults of the stranger found: {count('fault', quick)} by `quick`, "
            f"{count('fault', full)} by `full`."
        ),
        (
            f"Faults of our own server found: {count('mutant', quick)} by `quick`, "
            f"{count('mutant', full)} by `full`."
        ),
        (
            "Variations not accused: "
            f"{count('variation', quick)} by `quick`, {count('variation', full)} by `full`."
        ),
    ]
    for kind, title in TITLES.items():
        lines += [
            "",
            f"## {title}",
            "",
            "| name | what it does | quick | full |",
            "|---|---|---|---|",
        ]
        lines += [row(case) for case in ran if case.kind == kind]
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")


def chosen(arguments: argparse.Namespace) -> Iterable[Case]:
    """The cases that the command line asks for."""
    done = kept(arguments.profile)
    picked = [
        case
        for case in cases()
        if any(fnmatch.fnmatch(case.name, pattern) for pattern in arguments.only or ["*"])
        and (arguments.kind in (None, case.kind))
    ]
    if arguments.missed:
        picked = [c for c in picked if c.name in done and not c.good(done[c.name])]
    elif not arguments.again:
        picked = [c for c in picked if c.name not in done]
    if arguments.sample:
        picked = random.Random(arguments.seed).sample(picked, min(arguments.sample, len(picked)))
    return picked


def main() -> int:
    """Run what is asked for, tell each outcome, and write the page; 1 when any is bad."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--profile", choices=("quick", "full"), default="quick")
    parser.add_argument("--jobs", type=int, default=3, help="runs side by side")
    parser.add_argument("--only", nargs="*", help="names or patterns")
    parser.add_argument("--kind", choices=("fault", "mutant", "variation"))
    parser.add_argument("--sample", type=int, help="that many, by chance")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--missed", action="store_true", help="those that were not as they must be")
    parser.add_argument("--own", action="store_true", help="decide only the clauses it may break")
    parser.add_argument("--again", action="store_true", help="also those that have an outcome")
    arguments = parser.parse_args()
    bad = 0
    with ThreadPoolExecutor(arguments.jobs) as pool:
        runs = {
            pool.submit(run_case, case, arguments.profile, arguments.seed, arguments.own): case
            for case in chosen(arguments)
        }
        for run in as_completed(runs):
            outcome, case = run.result(), runs[run]
            with KEPT.open("a", encoding="utf-8") as file:
                file.write(json.dumps(outcome) + "\n")
            print(told(case, outcome), flush=True)
            bad += not case.good(outcome)
    write_page()
    print(f"{len(runs) - bad} of {len(runs)} as they must be", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
