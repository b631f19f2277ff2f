"""Recording calls, writing them down, reading them back."""

import json

import pytest

from counterfoil_conformance.errors import UsageError
from counterfoil_conformance.oracle.history import (
    Call,
    Recorder,
    load_history,
    parse_history,
    save_history,
)


def line(**changes):
    fields = {"client": "a", "op": "depth", "call": 1, "return": 2, "clock_id": "c"}
    fields |= {"args": {}, "reply": {"depth": 0}}
    return json.dumps({k: v for k, v in (fields | changes).items() if v is not ...})


def test_a_history_survives_being_written_and_read(tmp_path):
    calls = [
        Call("b", "wait", "job_é", 5.75, None, "c", {"budget_ms": 10}, None),
        Call("a", "submit", None, 1, 4, "c", {"task_id": "t"}, {"job": "job_é"}),
    ]
    save_history(tmp_path / "h.jsonl", calls)
    read = load_history(tmp_path / "h.jsonl")
    assert [c.as_line() for c in read.calls] == [
        calls[1].as_line(),
        calls[0].as_line() | {"call": 5},
    ]
    assert not read.bad_lines


def test_lines_may_come_in_any_order_with_blanks_and_unknown_fields():
    history = parse_history([line(call=9, **{"return": 11}), "  ", line(call=1, extra=[1])])
    assert [call.call_us for call in history.calls] == [1, 9]
    assert not history.bad_lines


def test_a_line_without_a_clock_has_its_clients_own():
    one, other = parse_history([line(clock_id=...), line(clock_id=..., client="z")]).calls
    assert one.clock_id != other.clock_id


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "Expecting"),
        ("[1]", "not a JSON object"),
        ("[" * 100_000, "recursion"),
        (line(op=...), "`op`"),
        (line(client=7), "`client`"),
        (line(job=7), "`job`"),
        (line(call=None), "`call`"),
        (line(call=True), "`call`"),
        (line(call=float("nan")), "`call`"),
        (line(call=10**400), "`call`"),
        (line(call=3, **{"return": 2}), "before"),
        (line(args=[]), "`args`"),
        (line(reply="no"), "`reply`"),
        (line(clock_id=1), "`clock_id`"),
    ],
)
def test_a_line_that_is_no_call_is_counted_apart_with_its_number(text, why):
    history = parse_history(["", text, line()])
    assert len(history.calls) == 1
    (bad,) = history.bad_lines
    assert bad.number == 2
    assert why in bad.why


def test_a_file_that_cannot_be_read_is_the_users_mistake(tmp_path):
    with pytest.raises(UsageError, match=r"nothing\.jsonl"):
        load_history(tmp_path / "nothing.jsonl")


def test_a_recorder_stamps_outside_the_call_and_keeps_the_unanswered():
    ticks = iter(range(100))
    recorder = Recorder("c", lambda: next(ticks))
    with recorder.calling("a", "submit", task_id="t") as call:
        call.reply = {"job": "j"}
    with pytest.raises(TimeoutError), recorder.calling("a", "snapshot", "j"):
        raise TimeoutError
    answered, lost = recorder.calls()
    assert (answered.call_us, answered.return_us, answered.args) == (0, 1, {"task_id": "t"})
    assert answered.until_us == 1
    assert (lost.return_us, lost.reply, lost.until_us) == (None, None, float("inf"))


def test_an_answer_that_proves_nothing_leaves_the_effect_open():
    call = Call("a", "submit", None, 1, 2, "c", {}, {"error": "500"})
    assert not call.answered
    assert call.until_us == float("inf")
