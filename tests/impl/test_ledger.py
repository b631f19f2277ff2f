"""The shipped ledger, example by example: a sentence for each clause that is seen there."""

import gc
import itertools
import threading
import time
import weakref

import pytest

from counterfoil_server.ledger import (
    Eviction,
    JobLedger,
    Limits,
    Listener,
    NotDone,
    Ready,
    State,
    TakenRequest,
    random_job_id,
)


class Driven:
    """A ledger, and the hand on its clock."""

    def __init__(self, max_queue=2, job_ttl_ms=10, max_completed=2, **options):
        self.now = 1000
        numbers = itertools.count(1)
        self.ledger = JobLedger(
            Limits(max_queue, job_ttl_ms, max_completed),
            clock=lambda: self.now,
            new_id=lambda: f"job_{next(numbers)}",
            **options,
        )

    def done(self, result="r"):
        job_id = self.ledger.submit("t", "p")
        assert job_id is not None and self.ledger.finish(job_id, result)
        return job_id


def known(ledger, *ids):
    return [ledger.snapshot(job_id) is not None for job_id in ids]


def test_a_job_is_born_pending_and_is_found_at_once():
    driven = Driven()
    job_id = driven.ledger.submit("task", "payload")
    seen = driven.ledger.snapshot(job_id)
    assert (seen.state, seen.task_id, seen.submitted_at) == (State.PENDING, "task", 1000)
    assert seen.completed_at is seen.result is seen.error is None


def test_only_a_pending_job_starts_and_only_once():
    ledger = Driven().ledger
    job_id = ledger.submit("t", "p")
    assert ledger.start(job_id)
    assert not ledger.start(job_id)
    ledger.finish(job_id, "r")
    assert not ledger.start(job_id)


@pytest.mark.parametrize("started", [False, True])
@pytest.mark.parametrize("end", ["finish", "fail", "time_out"])
def test_a_live_job_may_end_in_any_way_and_then_absorbs(started, end):
    driven = Driven()
    ledger = driven.ledger
    job_id = ledger.submit("t", "p")
    if started:
        ledger.start(job_id)
    driven.now += 7
    assert getattr(ledger, end)(job_id, "word")
    ended = ledger.snapshot(job_id)
    assert ended.completed_at == 1007
    assert (ended.result, ended.error) == (("word", None) if end == "finish" else (None, "word"))
    driven.now += 1
    assert not any(call(job_id, "again") for call in (ledger.finish, ledger.fail, ledger.time_out))
    assert ledger.snapshot(job_id) is ended


def test_an_unknown_id_is_refused_everywhere_and_changes_nothing():
    ledger = Driven().ledger
    assert not ledger.start("job_9")
    assert not any(call("job_9", "x") for call in (ledger.finish, ledger.fail, ledger.time_out))
    assert (
        ledger.snapshot("job_9") is ledger.result("job_9") is ledger.take_request("job_9") is None
    )
    assert ledger.wait("job_9", 10_000) is None
    assert ledger.watch("job_9", print) is None
    assert ledger.depth() == 0


def test_a_failure_without_a_word_is_the_callers_mistake():
    ledger = Driven().ledger
    job_id = ledger.submit("t", "p")
    with pytest.raises(ValueError, match="non-empty"):
        ledger.fail(job_id, "")
    assert ledger.snapshot(job_id).state is State.PENDING


def test_admission_stops_at_the_bound_and_a_refusal_leaves_no_trace():
    ledger = Driven(max_queue=2).ledger
    first, second = ledger.submit("a", "p"), ledger.submit("b", "p")
    assert ledger.submit("c", "p") is None
    assert ledger.depth() == 2 and len(ledger.jobs()) == 2
    ledger.start(first)
    assert ledger.submit("c", "p") is None, "a running job keeps its place"
    ledger.finish(first, "r")
    assert ledger.depth() == 1
    assert ledger.submit("c", "p") not in (None, first, second)


@pytest.mark.parametrize("max_queue", [0, -1])
def test_a_bound_of_nothing_admits_nothing(max_queue):
    ledger = Driven(max_queue=max_queue).ledger
    assert ledger.submit("t", "p") is None
    assert ledger.depth() == 0


def test_an_id_that_the_factory_repeats_is_not_issued_twice():
    words = iter(["job_1", "job_1", "job_1", "job_2"])
    ledger = JobLedger(Limits(4), new_id=lambda: next(words))
    assert [ledger.submit("t", "p"), ledger.submit("t", "p")] == ["job_1", "job_2"]


def test_ids_are_random_and_long():
    ids = {random_job_id() for _ in range(1000)}
    assert len(ids) == 1000
    assert all(job_id.startswith("job_") and len(job_id) == 4 + 32 for job_id in ids)


def test_a_job_goes_by_age_strictly_after_its_ttl_and_only_in_a_submit():
    driven = Driven(max_queue=9, job_ttl_ms=10, max_completed=9)
    old = driven.done()
    driven.now += 10
    driven.ledger.submit("t", "p")
    assert driven.ledger.snapshot(old) is not None, "exactly the TTL is not more than it"
    driven.now += 1
    assert driven.ledger.snapshot(old) is not None, "time alone evicts nothing"
    driven.ledger.submit("t", "p")
    assert driven.ledger.snapshot(old) is None
    assert not driven.ledger.finish(old, "revived")


def test_by_count_the_most_recently_completed_stay():
    driven = Driven(max_queue=9, job_ttl_ms=10**6, max_completed=2)
    a, b, c = (driven.ledger.submit("t", "p") for _ in "abc")
    for job_id in (c, a, b):
        driven.ledger.finish(job_id, "r")
    driven.ledger.submit("t", "p")
    assert known(driven.ledger, a, b, c) == [True, True, False]


def test_a_job_that_ran_while_it_was_the_oldest_is_evicted_by_count_later():
    driven = Driven(max_queue=9, job_ttl_ms=10**6, max_completed=0)
    slow = driven.ledger.submit("t", "p")
    for _ in range(3):
        driven.done()
    driven.ledger.finish(slow, "r")
    last = driven.ledger.submit("t", "p")
    assert [seen.job_id for seen in driven.ledger.jobs()] == [last]


def test_a_live_job_is_never_evicted():
    driven = Driven(max_queue=3, job_ttl_ms=0, max_completed=0)
    pending, running = driven.ledger.submit("t", "p"), driven.ledger.submit("t", "p")
    driven.ledger.start(running)
    for _ in range(50):
        driven.now += 100
        driven.done()
    assert known(driven.ledger, pending, running) == [True, True]


def test_a_negative_max_completed_counts_as_zero():
    driven = Driven(max_completed=-5)
    old = driven.done()
    driven.ledger.submit("t", "p")
    assert driven.ledger.snapshot(old) is None


def test_a_refused_submit_evicts_nothing_here():
    driven = Driven(max_queue=1, max_completed=0)
    old = driven.done()
    driven.ledger.limits = driven.ledger.limits._replace(max_queue=0)
    assert driven.ledger.submit("t", "p") is None
    assert driven.ledger.snapshot(old) is not None


def test_a_result_is_ready_only_when_done_and_can_be_read_again():
    ledger = Driven().ledger
    job_id = ledger.submit("task", "p")
    assert ledger.result(job_id) == NotDone(State.PENDING)
    ledger.start(job_id)
    assert ledger.result(job_id) == NotDone(State.RUNNING)
    ledger.finish(job_id, {"answer": 42})
    assert ledger.result(job_id) == ledger.result(job_id) == Ready("task", {"answer": 42})
    other = ledger.submit("t", "p")
    ledger.fail(other, "no")
    assert ledger.result(other) == NotDone(State.FAILED)


def test_the_payload_is_handed_out_once_and_then_let_go():
    class Payload:
        pass

    payload = Payload()
    witness = weakref.ref(payload)
    ledger = Driven().ledger
    job_id = ledger.submit("task", payload)
    assert ledger.take_request(job_id) == TakenRequest("task", payload)
    assert ledger.take_request(job_id) == TakenRequest("task", None)
    del payload
    gc.collect()
    assert witness() is None
    ledger.finish(job_id, "r")
    assert ledger.result(job_id) == Ready("task", "r")


def test_a_wait_on_a_terminal_job_does_not_wait():
    driven = Driven()
    job_id = driven.done()
    assert driven.ledger.wait(job_id, 10**15).state is State.DONE


@pytest.mark.parametrize("budget_ms", [0, -1, 20])
def test_a_wait_whose_budget_runs_out_tells_the_state_and_leaves_nothing(budget_ms):
    ledger = Driven().ledger
    job_id = ledger.submit("t", "p")
    before = time.monotonic()
    assert ledger.wait(job_id, budget_ms).state is State.PENDING
    assert time.monotonic() - before >= max(budget_ms, 0) / 1000 - 0.005
    assert not ledger._jobs[job_id].watches


def test_all_waiters_wake_at_the_end_and_not_at_the_start():
    ledger = Driven().ledger
    job_id = ledger.submit("t", "p")
    answers = []
    waiters = [
        threading.Thread(target=lambda: answers.append(ledger.wait(job_id, 60_000)))
        for _ in range(4)
    ]
    for waiter in waiters:
        waiter.start()
    while len(ledger._jobs[job_id].watches) < 4:
        time.sleep(0.001)
    ledger.start(job_id)
    time.sleep(0.02)
    assert not answers
    ledger.finish(job_id, "r")
    for waiter in waiters:
        waiter.join(10)
    assert [seen.state for seen in answers] == [State.DONE] * 4


def test_a_watch_is_called_once_or_at_once_or_not_after_it_was_cancelled():
    ledger = Driven().ledger
    job_id = ledger.submit("t", "p")
    heard = []
    watch = ledger.watch(job_id, lambda seen: heard.append(("kept", seen.state)))
    ledger.watch(job_id, lambda seen: heard.append(("cancelled", seen.state))).cancel()
    ledger.fail(job_id, "no")
    watch.cancel()
    ledger.watch(job_id, lambda seen: heard.append(("late", seen.state)))
    assert heard == [("kept", State.FAILED), ("late", State.FAILED)]


def test_a_watch_still_knows_its_job_after_the_eviction():
    driven = Driven(max_completed=0)
    job_id = driven.ledger.submit("t", "p")
    watch = driven.ledger.watch(job_id, lambda _: None)
    driven.ledger.finish(job_id, "r")
    driven.ledger.submit("t", "p")
    assert driven.ledger.snapshot(job_id) is None
    assert watch.snapshot().state is State.DONE


def test_a_callback_that_fails_stops_neither_the_transition_nor_the_others(caplog):
    ledger = Driven().ledger
    job_id = ledger.submit("t", "p")
    heard = []
    ledger.watch(job_id, lambda _: 1 / 0)
    ledger.watch(job_id, heard.append)
    assert ledger.finish(job_id, "r")
    assert [seen.state for seen in heard] == [State.DONE]
    assert "callback" in caplog.text


def test_the_listener_hears_everything_in_order():
    heard = []

    class Ear(Listener):
        def admitted(self, snapshot):
            heard.append(("admitted", snapshot.job_id))

        def refused(self):
            heard.append(("refused",))

        def started(self, snapshot):
            heard.append(("started", snapshot.job_id))

        def ended(self, snapshot):
            heard.append((snapshot.state.value, snapshot.job_id))

        def evicted(self, snapshot, cause):
            heard.append((cause, snapshot.job_id))

    driven = Driven(max_queue=1, max_completed=0, job_ttl_ms=10, listener=Ear())
    ledger = driven.ledger
    one = ledger.submit("t", "p")
    ledger.submit("t", "p")
    ledger.start(one)
    ledger.start(one)
    ledger.time_out(one, "late")
    ledger.time_out(one, "late")
    two = ledger.submit("t", "p")
    ledger.finish(two, "r")
    driven.now += 11
    three = ledger.submit("t", "p")
    assert heard == [
        ("admitted", one),
        ("refused",),
        ("started", one),
        ("timeout", one),
        ("admitted", two),
        (Eviction.COUNT, one),
        ("done", two),
        ("admitted", three),
        (Eviction.AGE, two),
    ]


def test_of_many_threads_that_end_one_job_one_wins_and_the_place_comes_back_once():
    ledger = JobLedger(Limits(max_queue=1, max_completed=10**6))
    for _ in range(200):
        job_id = ledger.submit("t", "p")
        gate, wins = threading.Barrier(3), []

        def end(call, word, gate=gate, wins=wins, job_id=job_id):
            gate.wait()
            wins.append(call(job_id, word))

        calls = [(ledger.finish, "r"), (ledger.fail, "e"), (ledger.time_out, "e")]
        threads = [threading.Thread(target=end, args=call) for call in calls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(wins) == [False, False, True]
        assert ledger.depth() == 0


def test_the_cost_of_a_submit_does_not_grow_with_what_is_retained():
    """Counted in steps, not in time: a sweep looks at what it evicts and at one job more."""
    looked_at = []

    class Counting(JobLedger):
        def _expired(self, job, now):
            looked_at.append(job)
            return super()._expired(job, now)

    ledger = Counting(Limits(max_queue=1, max_completed=5000))
    for _ in range(5000):
        ledger.finish(ledger.submit("t", "p"), "r")
    looked_at.clear()
    ledger.submit("t", "p")
    assert len(looked_at) == 1
