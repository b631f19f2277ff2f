"""A program of calls, told by labels: another run of it, on ids of its own, finds the same."""

import json
import shlex
import sys
from pathlib import Path

import pytest

from counterfoil_conformance.cli import main
from counterfoil_conformance.subjects import open_subject
from counterfoil_conformance.subjects.books import Books
from counterfoil_conformance.subjects.python import PythonSubject
from counterfoil_conformance.subjects.rerun import run_program
from counterfoil_server.ledger import JobLedger
from counterfoil_spec.ledger import Limits

ROOT = Path(__file__).resolve().parents[3]
REFERENCE = f"exec:{sys.executable} {ROOT / 'drivers' / 'python' / 'job_ledger.py'}"


def two_ends(subject):
    """A job that ends, and is told to end again."""
    books = Books(subject, Limits(2, 5, 1))
    job = books.admit()
    books.finish(job)
    books.pause(0.001)
    books.fail(job)
    books.snapshot("nobody")
    return books


class LastWriterWins(JobLedger):
    def fail(self, job_id, error):
        return super().fail(job_id, error) or self._find(job_id) is not None


def test_jobs_are_named_by_label_and_strangers_by_their_name():
    with PythonSubject(JobLedger) as subject:
        program = two_ends(subject).program()
    assert [message.get("as") for message in program] == [None, "job0", None, None, None, None]
    assert [message.get("job") for message in program[2:]] == ["$job0", None, "$job0", "nobody"]


def test_the_command_of_a_failure_runs_the_program_on_a_fresh_driver(capsys):
    with open_subject(REFERENCE) as subject:
        command = two_ends(subject).repro()
    program, *words = shlex.split(command)
    assert program == "counterfoil"
    assert main(words) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[1].endswith('-> {"accepted": true}')
    assert told[3].endswith('-> {"accepted": false}')
    assert told[4].endswith('-> {"unknown": true}')


def test_a_fault_is_found_again_and_named():
    with PythonSubject(LastWriterWins) as subject:
        program = Books(subject, Limits(2, 5, 1)).program()[:1]
        program += (
            {"op": "submit", "task_id": "t", "payload": "p", "as": "job0"},
            {"op": "wait", "lane": 1, "job": "$job0", "budget_ms": 5_000},
            {"op": "finish", "job": "$job0", "result": "r"},
            {"op": "fail", "job": "$job0", "error": "late"},
        )
        told = list(run_program(subject, program, 250.0))
    assert told[1].endswith("(later)")
    assert any(line.startswith("S4: ") for line in told)


def test_calls_that_name_no_job_are_lines_for_the_driver_itself():
    with open_subject(REFERENCE) as subject:
        books = Books(subject, Limits(0, 5, 1))
        books.submit()
        assert books.repro().startswith("printf ")


@pytest.mark.parametrize("text", ["{", "{}", "[]", "[1]", json.dumps([{"op": "depth"}])])
def test_what_is_no_program_is_a_usage_error(text, capsys):
    assert main(["replay", REFERENCE, "--program", text]) == 2
    assert "--program" in capsys.readouterr().err
