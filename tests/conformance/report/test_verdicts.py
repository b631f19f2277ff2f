"""What the events of a run add up to, and what each reporter makes of them."""

import io
import json
from xml.etree import ElementTree as ET

import jsonschema
import pytest
from rich.console import Console

from counterfoil_conformance.errors import UsageError
from counterfoil_conformance.report.baseline import accepted, read_baseline, stale_entries
from counterfoil_conformance.report.events import (
    CheckEnded,
    CheckStarted,
    Declared,
    Finding,
    HarnessFault,
    NotRun,
    RunEnded,
    RunStarted,
    Undecided,
    Untestable,
    Witnessed,
)
from counterfoil_conformance.report.html import HtmlReporter
from counterfoil_conformance.report.json_report import JsonReporter, schema
from counterfoil_conformance.report.junit import JunitReporter
from counterfoil_conformance.report.terminal import TerminalReporter
from counterfoil_conformance.report.verdicts import Docket, Verdict, exit_code

CORE = frozenset({"W2", "S4"})


def decide(*events, scope=("S4", "W2", "A9")):
    docket = Docket(scope)
    for event in events:
        docket(event)
    return {row.clause: row for row in docket.verdicts()}


def code(*events, **options):
    return exit_code(decide(*events).values(), CORE, **options)


EXERCISED = (Witnessed("S4", 2), Witnessed("W2"))


def test_a_clause_that_nobody_exercised_is_not_green():
    assert decide()["W2"].verdict is Verdict.NOT_RUN
    assert decide(Witnessed("W2", 3))["W2"].verdict is Verdict.PASS


def test_a_clause_whose_check_ran_and_saw_nothing_is_unknown_and_not_left_out():
    row = decide(CheckEnded("waiters_wake", ("W2",), 0.1))["W2"]
    assert (row.verdict, "waiters_wake" in row.why) == (Verdict.UNKNOWN, True)
    later = NotRun("W2", "`--profile full` has time for it")
    assert "full" in decide(later, CheckEnded("waiters_wake", ("W2",), 0.1))["W2"].why
    other = NotRun("W2", "no such configuration", applies=False)
    assert decide(other, CheckEnded("w", ("W2",), 0.1))["W2"].verdict is Verdict.NOT_RUN


def test_one_finding_outweighs_any_number_of_witnesses():
    assert decide(Witnessed("W2", 99), Finding("W2", "slept on"))["W2"].verdict is Verdict.FAIL


def test_a_should_is_a_warning_whether_the_clause_or_only_its_part_is_one():
    assert decide(Finding("A9", "guessable"))["A9"].verdict is Verdict.WARN
    assert decide(Finding("W2", "a nicety", should=True))["W2"].verdict is Verdict.WARN


@pytest.mark.parametrize(
    ("event", "verdict"),
    [
        (Untestable("W2", "bodies.slow is absent"), Verdict.UNTESTABLE),
        (Undecided("W2", "the search hit its cap"), Verdict.UNKNOWN),
        (NotRun("W2", "--profile full runs it"), Verdict.NOT_RUN),
        (HarnessFault("bug", ("W2",)), Verdict.ERROR),
        (Declared("W2", "running_budget = false"), Verdict.WARN),
    ],
)
def test_what_was_not_decided_says_why(event, verdict):
    row = decide(event)["W2"]
    assert row.verdict is verdict
    assert event.why in row.why


def test_exit_0_needs_every_core_clause_exercised():
    assert code(*EXERCISED) == 0
    assert code(Witnessed("S4")) == 4
    assert code(Witnessed("S4"), Undecided("W2", "cap")) == 4
    assert code(Witnessed("S4"), allow_untestable=True) == 0


def test_a_core_clause_about_another_configuration_leaves_nothing_open():
    apart = NotRun("W2", "speaks of another configuration", applies=False)
    assert code(Witnessed("S4"), apart) == 0
    assert code(Witnessed("S4"), NotRun("W2", "--profile full runs it")) == 4


def test_exit_1_is_a_broken_must_and_with_strict_a_broken_should():
    assert code(*EXERCISED, Finding("S4", "overwritten")) == 1
    assert code(*EXERCISED, Finding("A9", "guessable")) == 0
    assert code(*EXERCISED, Finding("A9", "guessable"), strict=True) == 1
    assert code(*EXERCISED, Declared("A9", "documented"), strict=True) == 0


def test_exit_3_is_the_harness_and_never_hides_a_failure():
    assert code(Witnessed("S4"), HarnessFault("bug", ("W2",))) == 3
    assert code(Finding("S4", "x"), HarnessFault("bug", ("W2",))) == 1


def test_a_baseline_accepts_what_it_lists_and_a_stale_entry_is_told(tmp_path):
    file = tmp_path / "baseline.toml"
    file.write_text('[[expected]]\nclause = "S4"\nverdict = "FAIL"\ncomment = "until 2.0"\n')
    entries = read_baseline(file)
    broken = decide(*EXERCISED, Finding("S4", "overwritten")).values()
    assert exit_code(broken, CORE, expected=accepted(entries)) == 0
    assert stale_entries(entries, broken, {"S4"}) == ()
    mended = decide(*EXERCISED).values()
    assert "S4 is PASS" in stale_entries(entries, mended, {"S4"})[0]
    assert stale_entries(entries, mended, {"W2"}) == ()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[[expected]]\nclause = "Z9"\nverdict = "FAIL"\ncomment = "c"', "Z9"),
        ('[[expected]]\nclause = "S4"\nverdict = "GREEN"\ncomment = "c"', "GREEN"),
        ('[[expected]]\nclause = "S4"\nverdict = "FAIL"\ncomment = " "', "comment"),
        ('[[expected]]\nclause = "S4"\nverdict = "FAIL"', "comment"),
        ("expected = 3", "[[expected]]"),
        ("not toml", "baseline"),
    ],
)
def test_a_bad_baseline_is_named_and_so_is_what_is_allowed(tmp_path, text, told):
    file = tmp_path / "baseline.toml"
    file.write_text(text)
    with pytest.raises(UsageError, match="baseline") as caught:
        read_baseline(file)
    assert told in str(caught.value)


STORY = (
    RunStarted("http://127.0.0.1:1", "quick", 7, 250.0),
    CheckStarted("waits", ("W2",)),
    Witnessed("S4", 4),
    Finding(
        "W2",
        "slept <on>\x00 & on",
        "200 done",
        "nothing",
        repro="counterfoil conform http://127.0.0.1:1 --only W2 --seed 7",
        curl=("curl -i http://127.0.0.1:1/jobs",),
    ),
    CheckEnded("waits", ("W2",), 1.25),
)


def run_story(make):
    docket = Docket(("S4", "W2", "A9"))
    reporter = make(docket)
    for event in (*STORY, RunEnded(1, 2.0, ("a note",))):
        docket(event)
        reporter(event)


def test_the_terminal_tells_the_clause_what_was_allowed_what_came_and_how_to_see_it_again():
    out = io.StringIO()
    run_story(lambda docket: TerminalReporter(docket, CORE, Console(file=out, width=80)))
    text = out.getvalue()
    for part in ("FAIL", "A waiter is woken", "200 done", "--only W2 --seed 7", "exit 1", "a note"):
        assert part in text
    assert "2 of 3 clauses exercised (2 of 2 core)" in text
    table = [line for line in text.splitlines() if not line.lstrip().startswith("$")]
    assert max(map(len, table)) <= 80


def test_an_inconclusive_run_names_the_clauses_that_were_left_open():
    out = io.StringIO()
    docket = Docket(("S4", "W2", "A9"))
    reporter = TerminalReporter(docket, CORE, Console(file=out, width=80))
    for event in (Witnessed("S4"), Undecided("W2", "no time was left"), RunEnded(4, 2.0)):
        docket(event)
        reporter(event)
    assert "open     W2 UNKNOWN: no time was left" in out.getvalue()
    assert "A9 NOT_RUN:" not in out.getvalue()


def test_a_run_that_never_got_as_far_as_a_check_is_one_line():
    out = io.StringIO()
    docket = Docket(("S4", "W2", "A9"))
    reporter = TerminalReporter(docket, CORE, Console(file=out, width=80))
    for event in (STORY[0], HarnessFault("cannot reach http://127.0.0.1:1"), RunEnded(3, 2.0)):
        docket(event)
        reporter(event)
    assert out.getvalue() == "counterfoil: cannot reach http://127.0.0.1:1\n"


def test_the_json_report_keeps_its_published_schema(tmp_path):
    file = tmp_path / "report.json"
    run_story(lambda docket: JsonReporter(docket, file))
    report = json.loads(file.read_text())
    jsonschema.validate(report, schema())
    assert [row["verdict"] for row in report["verdicts"]] == ["PASS", "FAIL", "NOT_RUN"]
    assert report["verdicts"][1]["seconds"] == 1.25
    assert report["exit"] == 1


def test_junit_has_a_case_per_clause_and_survives_control_characters(tmp_path):
    file = tmp_path / "junit.xml"
    run_story(lambda docket: JunitReporter(docket, file))
    cases = {case.get("name").split()[0]: case for case in ET.parse(file).iter("testcase")}
    assert cases["W2"].find("failure") is not None
    assert cases["A9"].find("skipped") is not None
    assert len(cases["S4"]) == 0


def test_the_html_page_escapes_what_the_subject_sent(tmp_path):
    file = tmp_path / "report.html"
    run_story(lambda docket: HtmlReporter(docket, CORE, file))
    page = file.read_text()
    assert "slept &lt;on&gt;" in page
    assert "<on>" not in page
    assert "http" not in page.replace("http://127.0.0.1:1", "")
