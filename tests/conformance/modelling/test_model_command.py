"""`counterfoil model` and `counterfoil explain`: what they say, how they exit, what they write."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import jsonschema
import pytest

import counterfoil_conformance.modelling as package
from counterfoil_conformance.cli import main
from counterfoil_conformance.commands import model as command
from counterfoil_conformance.modelling import runs
from counterfoil_conformance.modelling.graph import held_mutexes, job_picture
from counterfoil_conformance.modelling.runs import Outcome, Task, clauses_of, perform
from counterfoil_conformance.modelling.stories import of_keys
from counterfoil_spec.checker import Trace, explore
from counterfoil_spec.clauses import CLAUSES, DEFECTS
from counterfoil_spec.model import LAW, FullModel, Scope
from counterfoil_spec.model_footprints import LedgerModel
from counterfoil_spec.protocol_programs import CORRECT, VARIANTS

SCHEMA = json.loads((Path(package.__file__).parent / "schema.json").read_text())


def test_a_scope_that_is_as_pinned_exits_0(capsys):
    assert main(["model", "--scope", "1/1/1"]) == 0
    told = capsys.readouterr().out
    assert "3,645" in told
    assert "ok, as pinned" in told


def test_the_json_keeps_to_its_published_schema_and_says_what_was_seen(tmp_path, capsys):
    file = tmp_path / "model.json"
    words = ["model", "--scope", "1/0/0", "--scope", "1/0/1", "--submitters", "0"]
    assert main([*words, "--json", str(file)]) == 0
    document = json.loads(file.read_text())
    jsonschema.validate(document, SCHEMA)
    first = document["searches"][0]
    assert (first["subject"], first["states"], first["pinned"]) == ("1/0/0", 17, 17)
    assert first["witnesses"]["a_sweep_leaves_at_most_max_completed"] > 0
    capsys.readouterr()
    assert main([*words, "--json", "-"]) == 0
    jsonschema.validate(json.loads(capsys.readouterr().out), SCHEMA)


def test_a_search_that_is_cut_off_is_no_pass_and_says_so(capsys):
    assert main(["model", "--scope", "2/1/1", "--limit", "50"]) == 4
    assert "UNKNOWN: cut off" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        ["--scope", "2/1"],
        ["--scope", "a/b/c"],
        ["--submitters", "1"],
        ["--scope", "1/1/1", "--submitters", "-1"],
        ["protocol", "--scope", "1/1/1"],
        ["--graph", "picture.png"],
        ["--scope", "2/2/2", "--graph", "too_large.svg"],
    ],
)
def test_what_cannot_be_asked_exits_2(words, capsys):
    assert main(["model", *words]) == 2
    assert "counterfoil:" in capsys.readouterr().err


def test_a_count_that_is_not_the_pinned_one_exits_1(monkeypatch, capsys):
    monkeypatch.setattr(runs, "pinned", lambda *_: 16)
    assert main(["model", "--scope", "1/0/0", "--submitters", "0"]) == 1
    assert "COUNT: 16 pinned" in capsys.readouterr().out


def test_a_counterexample_exits_1_and_is_told_step_by_step(monkeypatch, capsys):
    def broken_model(scope):
        from counterfoil_spec import ledger as law

        def forgetful(ledger):
            step = law.sweep(ledger)
            return step._replace(ledger=step.ledger._replace(retained=ledger.retained))

        return LedgerModel(scope, {**LAW, "sweep": forgetful})

    monkeypatch.setattr(runs, "LedgerModel", broken_model)
    # Told by the law as it is, which can follow up to the last step: the sweep that goes wrong.
    monkeypatch.setattr(
        runs,
        "of_keys",
        lambda trace, model: of_keys(Trace(trace.states[:-1], trace.labels[:-1]), model),
    )
    assert main(["model", "--scope", "1/0/0", "--limit", "300"]) == 1
    told = capsys.readouterr().out
    assert "a sweep leaves at most max completed (R4)" in told
    assert "R4 MUST: By count" in told


@pytest.mark.parametrize("name", ["D1", "D3", "D5", "notify_one"])
def test_a_defect_is_shown_with_its_story(name, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["model", "--defect", name, "--jobs", "1"]) == 0
    told = capsys.readouterr().out
    assert VARIANTS[name].seen.split()[0] in told
    assert max(map(len, told.splitlines())) <= 80
    assert "begins with:" in told


def test_a_defect_that_is_not_refuted_is_missed():
    fixed = Outcome(Task("defect", name="D3"), 10, expected=("depth_never_passes_its_bound",))
    assert fixed.verdict == "MISSED"
    assert command._exit_code([fixed], []) == 1
    cut_off = Outcome(Task("defect", name="D3"), 10, complete=False, expected=("x",))
    assert cut_off.verdict == "UNKNOWN"


def test_a_property_that_nothing_has_tried_exits_1():
    assert command._exit_code([], ["R4"]) == 1
    outcome = perform(Task("ledger", Scope(0, 0, 0)))
    assert "a_job_is_born_pending" in command._idle([outcome])


def test_the_default_searches_every_scope_both_forms_and_all_defects():
    parsed = command.argparse.ArgumentParser()
    command.add_arguments(parsed)
    tasks = command.tasks_for(parsed.parse_args([]))
    for submitters in (0, 1):
        scopes = {t.scope[:3] for t in tasks if t.kind == "ledger" and t.scope[3] == submitters}
        assert scopes == {(q, c, t) for q in range(3) for c in range(3) for t in range(3)}
    assert {t.form for t in tasks if t.kind == "protocol"} == set(CORRECT)
    assert {t.name for t in tasks if t.kind == "defect"} == set(VARIANTS)
    assert len({t.scope[:3] for t in tasks if t.kind == "gate"}) == 27
    deep = command.tasks_for(parsed.parse_args(["--deep"]))
    assert {Scope(3, 2, 2, 0), Scope(3, 3, 3, 1)} <= {t.scope for t in deep}


@pytest.mark.parametrize("kind", ["gate", "ids", "liveness", "tagged"])
def test_a_search_of_this_kind_is_as_it_must_be(kind):
    outcome = perform(Task(kind, Scope(1, 0, 1, 1), limit=200))
    assert outcome.verdict in ("ok", "UNKNOWN")
    jsonschema.validate(outcome.as_json(), SCHEMA["properties"]["searches"]["items"])


# Pictures


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["protocol"],
        ["--defect", "D3"],
        ["--defect", "D5"],
        ["--scope", "1/0/0", "--submitters", "0"],
    ],
)
def test_pictures_are_well_formed(words, tmp_path, capsys):
    svg, dot = tmp_path / "p.svg", tmp_path / "p.dot"
    assert main(["model", *words, "--graph", str(svg)]) == 0
    assert ET.fromstring(svg.read_text()).tag.endswith("svg")
    assert main(["model", *words, "--graph", str(dot)]) == 0
    text = dot.read_text()
    assert text.startswith("digraph ")
    assert text.count("{") == text.count("}")


def test_the_picture_of_a_job_has_the_arrows_of_the_law():
    arrows = {(edge.source, edge.target): edge.text for edge in job_picture().edges}
    assert arrows["pending", "running"] == "start"
    assert ("running", "pending") not in arrows
    assert not any(source in ("done", "failed", "timeout") for source, _ in arrows)


def test_the_lock_order_is_table_before_job_in_both_forms():
    for programs in CORRECT.values():
        for program in programs.values():
            for _, held in held_mutexes(program):
                assert held in ((), ("table",), ("job",), ("table", "job"))
    (*_, worst) = sorted(
        (held for _, held in held_mutexes(VARIANTS["reversed_lock_order"].programs["end"])), key=len
    )
    assert worst == ("job", "table")


# Stories and explanations


def test_a_story_of_the_reduced_model_is_told_with_ids():
    scope = Scope(1, 1, 1, 1)
    model = LedgerModel(scope)
    found = explore(model)
    trace = found.trace_to(next(reversed(found.index)))
    keys = Trace(tuple(map(model.decode, trace.states)), trace.labels)
    story = of_keys(keys, FullModel(scope))
    assert len(story.lines) == len(trace)
    assert story.lines[0].changes[:2] == ("job 0 pending", "depth 0 -> 1")


@pytest.mark.parametrize("name", [*DEFECTS, "reversed_lock_order"])
def test_a_defect_is_explained(name, capsys):
    assert main(["explain", name.lower()]) == 0
    told = capsys.readouterr().out
    assert told.startswith(name)
    assert ("The shortest interleaving" in told) == (name != "D0")


@pytest.mark.parametrize("name", CLAUSES)
def test_a_clause_is_explained(name, capsys):
    assert main(["explain", name, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["sentence"] == CLAUSES[name].sentence
    assert all(name in clauses_of(prop) for prop in document["properties"])


def test_a_clause_names_the_defects_that_break_it(capsys):
    assert main(["explain", "C3"]) == 0
    assert "D2, D3" in capsys.readouterr().out


def test_an_unknown_name_exits_2_with_a_hint(capsys):
    assert main(["explain", "notify-on"]) == 2
    assert "notify_one" in capsys.readouterr().err
