"""The vectors: they cover the law, take no sides, come out the same, and find faults alone."""

import json

import pytest

from counterfoil_conformance import vectors
from counterfoil_conformance.cli import main
from counterfoil_conformance.oracle.sequential import Sequential
from counterfoil_conformance.report.events import Finding
from counterfoil_conformance.run import RunOptions
from counterfoil_conformance.subjects.python import PythonSubject
from counterfoil_conformance.subjects.run import run_subject
from counterfoil_server.ledger import Eviction, JobLedger, State
from counterfoil_spec.ledger import Limits


@pytest.fixture(scope="module")
def generated():
    return vectors.generate()


def test_the_shipped_vectors_are_the_generated_ones(generated):
    path = vectors.files("counterfoil_conformance").joinpath("vectors.json")
    fresh = vectors.render(generated)
    assert path.read_text("utf-8") == fresh, "run: counterfoil vectors --out <that file>"


def replayed(sequence):
    """The classes of edges that a sequence meets, found by walking the law along it."""
    limits = Limits(**sequence["limits"])
    ledger, classes = vectors.empty_ledger(limits), set()
    for step in sequence["steps"]:
        if step["op"] == "depth":
            continue
        job = step.get("job")
        if job is not None:
            job = -1 if job == "no-such-job" else int(job.removeprefix("$job"))
        edge = vectors._Edge(step["op"], job)
        taken = vectors._apply(ledger, edge)
        classes.add(vectors._class_of(ledger, edge, taken.reply))
        ledger = taken.ledger
    return limits, classes


def test_every_reachable_class_of_state_action_and_outcome_is_covered(generated):
    met = {limits: set() for limits in vectors.SCOPES}
    for sequence in generated["sequences"]:
        limits, classes = replayed(sequence)
        met[limits] |= classes
    for limits in vectors.SCOPES:
        assert met[limits] >= vectors.reachable(limits)
    assert sum(map(len, met.values())) > 900


def test_the_oracle_allows_every_expected_answer_and_no_order_of_eviction_is_ruled_out(generated):
    for sequence in generated["sequences"]:
        oracle = Sequential(Limits(**sequence["limits"]))
        orders = len(oracle._orders)
        names = {}
        for step in sequence["steps"]:
            [expected] = step.get("expect", [{}])
            args = {k: v for k, v in step.items() if k not in ("op", "as", "expect", "clauses")}
            if "job" in args:
                args["job"] = names.get(args["job"], args["job"])
            reply = dict(expected)
            if "as" in step:
                names["$" + step["as"]] = reply["job"] = f"id of {step['as']}"
            assert oracle.observe(step["op"], args, reply) is None, (sequence["name"], step)
        assert len(oracle._orders) == orders


def found_on(factory, **options):
    events = []
    with PythonSubject(factory) as subject:
        run_subject(subject, RunOptions(**options), events.append)
    return [event for event in events if isinstance(event, Finding)]


def test_a_file_of_vectors_is_run_alone_and_the_shipped_ledger_passes(tmp_path, generated, capsys):
    path = tmp_path / "vectors.json"
    assert main(["vectors", "--out", str(path)]) == 0
    assert json.loads(path.read_text()) == generated
    assert found_on(JobLedger, vectors=str(path)) == []


class LastWriterWins(JobLedger):
    def _end(self, job_id, state, *, result=None, error=None):
        job = self._find(job_id)
        if job is not None and job.seen.state is State.DONE:
            job.seen = job.seen._replace(state=state, result=result, error=error)
        return super()._end(job_id, state, result=result, error=error)


class KeepsOneTooMany(JobLedger):
    def __init__(self, limits, **words):
        super().__init__(limits._replace(max_completed=max(limits.max_completed, 0) + 1), **words)


class TtlInclusive(JobLedger):
    def _expired(self, job, now):
        return now - job.seen.completed_at >= self.limits.job_ttl_ms


@pytest.mark.parametrize(
    ("ledger", "clause"), [(LastWriterWins, "S4"), (KeepsOneTooMany, "R4"), (TtlInclusive, "R9")]
)
def test_the_vectors_find_a_fault(tmp_path, ledger, clause):
    path = tmp_path / "vectors.json"
    main(["vectors", "--out", str(path)])
    assert clause in {finding.clause for finding in found_on(ledger, vectors=str(path))}


class EvictsTheNewest(JobLedger):
    """Another victim than the oldest: less than one SHOULD, but no clause that binds."""

    def _evict(self, cause):
        if cause is Eviction.COUNT:
            self._ended.rotate(1)
        super()._evict(cause)


def test_another_victim_than_the_oldest_is_no_more_than_a_warning(tmp_path):
    path = tmp_path / "vectors.json"
    main(["vectors", "--out", str(path)])
    found = found_on(EvictsTheNewest, vectors=str(path))
    assert {(finding.clause, finding.should) for finding in found} == {("R5", True)}


def test_a_ledger_that_keeps_too_many_is_told_nothing_else(tmp_path):
    path = tmp_path / "vectors.json"
    main(["vectors", "--out", str(path)])
    assert {one.clause for one in found_on(KeepsOneTooMany, vectors=str(path))} == {"R4"}


def test_a_run_by_vectors_alone_must_decide_what_they_name_and_no_more(tmp_path, capsys):
    path = tmp_path / "vectors.json"
    main(["vectors", "--out", str(path)])
    words = ["conform", "python:counterfoil_server.ledger:JobLedger", "--vectors", str(path)]
    assert main(words) == 0
    assert "core" in capsys.readouterr().out


def test_an_expectation_that_is_not_met_names_the_steps_clause(tmp_path):
    step = {"op": "depth", "expect": [{"depth": 7}], "clauses": ["A1"]}
    limits = {"max_queue": 1, "job_ttl_ms": 1, "max_completed": 1}
    document = {"format": vectors.FORMAT, "sequences": [{"limits": limits, "steps": [step]}]}
    path = tmp_path / "own.json"
    path.write_text(json.dumps(document))
    [finding] = found_on(JobLedger, vectors=str(path))
    assert finding.clause == "A1"
    assert '{"depth": 7}' in finding.why


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"format": "x"}',
        '{"format": "counterfoil-vectors/1", "sequences": []}',
        '{"format": "counterfoil-vectors/1", "sequences": [{}]}',
    ],
)
def test_a_file_that_holds_no_vectors_is_a_usage_error(tmp_path, text, capsys):
    path = tmp_path / "bad.json"
    path.write_text(text)
    words = ["conform", "python:counterfoil_server.ledger:JobLedger", "--vectors", str(path)]
    assert main(words) == 2
    assert "--vectors" in capsys.readouterr().err
