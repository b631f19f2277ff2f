"""The live fold counts what happened and shows as broken only what is."""

from counterfoil_load.live import LiveLedger, percentile
from counterfoil_load.page import body_html, document_html


def line(op, job, call, returned, reply, client="poller-0-1", **args):
    return {
        "client": client,
        "op": op,
        "job": job,
        "call": call,
        "return": returned,
        "clock_id": "c",
        "args": args,
        "reply": reply,
    }


def submitted(job, at=0, nonce="n"):
    return line("submit", None, at, at + 10, {"job": job}, "submitter-0-1", nonce=nonce)


def seen(job, state, call, returned, op="snapshot"):
    return line(op, job, call, returned, {"state": state, "error": None})


def fold(*lines):
    live = LiveLedger()
    live.learn(list(lines))
    return live


def test_a_job_lives_from_its_202_to_the_first_read_that_shows_it_terminal():
    live = fold(submitted("a"), seen("a", "running", 20, 30))
    assert live.live == 1
    live.learn([seen("a", "done", 40, 50), seen("a", "done", 60, 70)])
    assert live.live == 0
    assert live.ended == {"done": 1}
    assert not live.breaches


def test_the_runners_own_calls_are_no_reads_of_the_state():
    started = line("start", "a", 12, 13, {"accepted": True}, "runner-0-1")
    assert not fold(submitted("a"), started, seen("a", "running", 20, 30)).breaches


def test_reads_that_overlap_may_show_either_state_and_reads_that_do_not_may_not_go_back():
    running, done = seen("a", "running", 20, 60), seen("a", "done", 30, 40)
    assert not fold(submitted("a"), done, running).breaches
    late = seen("a", "running", 41, 60)
    assert "S5" in fold(submitted("a"), done, late).breaches


def test_two_endings_an_id_issued_twice_a_changed_result_and_anothers_result_are_broken():
    finish = line("finish", "a", 20, 30, {"accepted": True}, "runner-0-1")
    assert "S4" in fold(submitted("a"), finish, {**finish, "call": 31, "return": 32}).breaches
    assert "A8" in fold(submitted("a"), submitted("a", at=50)).breaches

    def got(job, data, at):
        reply = {"status": "ready", "result": {"results": [{"data": data}]}}
        return line("result", job, at, at + 1, reply)

    assert "R6" in fold(submitted("a"), got("a", 1, 20), got("a", 2, 30)).breaches
    others = (
        submitted("a", nonce="x"),
        submitted("b", nonce="y"),
        got("a", 1, 30),
        got("b", 1, 40),
    )
    assert "G4" in fold(*others).breaches


def test_a_wake_is_measured_from_the_runners_finish_to_the_waiters_answer_in_either_order():
    finish = line("finish", "a", 100, 120, {"accepted": True}, "runner-0-1")
    woken = seen("a", "done", 50, 160, op="wait")
    assert fold(submitted("a"), finish, woken).wakes_us == [60]
    before = LiveLedger()
    before.learn([submitted("a"), woken])
    before.learn([finish])
    assert before.wakes_us == [60]
    late = seen("a", "done", 130, 160, op="wait")
    assert fold(submitted("a"), finish, late).wakes_us == []


def test_latencies_are_kept_apart_by_outcome():
    refused = line("submit", None, 0, 5, {"refused": True}, "submitter-0-1")
    live = fold(submitted("a"), refused, seen("a", "pending", 20, 50, op="wait"))
    assert live.latencies_us["submit 202"] == [10]
    assert live.latencies_us["submit 429"] == [5]
    assert live.latencies_us["wait expired"] == [30]
    assert percentile([1, 2, 3, 4], 0.5) == 3
    assert percentile([], 0.5) == 0


def test_the_page_shows_a_broken_invariant_and_needs_nothing_from_elsewhere():
    live = fold(submitted("a"), submitted("a", at=50))
    page = document_html("Ledger <1>", body_html(live, None, 32))
    assert "broken 1×: a was issued twice" in page
    assert "Ledger &lt;1&gt;" in page
    assert "http" not in page
    assert page.count("<svg") == 6
