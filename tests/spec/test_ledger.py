"""The law by example: for every action an accepted case and, beside it, the refused one."""

import pytest

from counterfoil_spec import ledger as law
from counterfoil_spec.invariants import MOVE, Move, broken_by, broken_in
from counterfoil_spec.ledger import Limits, Outcome, State

LIMITS = Limits(max_queue=2, job_ttl_ms=10, max_completed=1, timeout_ms=50)


class Story:
    """Calls the law step by step and checks every property on the way."""

    def __init__(self, limits=LIMITS):
        self.ledger = law.empty_ledger(limits)

    def __call__(self, action, job_id=None, *args):
        named = () if job_id is None else (job_id,)
        step = law.ACTIONS[action].apply(self.ledger, *named, *args)
        times = args if action == "wait" else (0, 0)
        assert broken_by(Move(self.ledger, action, job_id, step, *times)) == ()
        assert broken_in(step.ledger) == ()
        self.ledger = step.ledger
        return step

    def submit(self, task_id="t", payload="p"):
        step = self("admit", None, task_id, payload)
        if step.accepted:
            self("sweep")
        return step.reply.job.id if step.accepted else None

    def state(self, job_id):
        job = self.ledger.find(job_id)
        return job and job.state


@pytest.fixture
def story():
    return Story()


def test_a_submit_is_admitted_below_the_bound_and_refused_at_it(story):
    first, second = story.submit(), story.submit()
    assert (story.state(first), story.state(second), story.ledger.depth) == ("pending",) * 2 + (2,)

    refused = story("admit")
    assert refused.reply.outcome is Outcome.QUEUE_FULL
    assert (refused.clause, refused.ledger.depth, refused.ledger.issued) == ("A3", 2, 2)


@pytest.mark.parametrize("max_queue", [0, -1])
def test_no_room_admits_nothing(max_queue):
    story = Story(LIMITS._replace(max_queue=max_queue))
    assert story("admit").reply.outcome is Outcome.QUEUE_FULL


def test_a_pending_job_starts_and_a_running_one_does_not_start_again(story):
    job = story.submit()
    assert story("start", job).accepted
    again = story("start", job)
    assert (again.accepted, again.clause, story.state(job)) == (False, "S2", State.RUNNING)


@pytest.mark.parametrize("running", [False, True])
@pytest.mark.parametrize(
    ("action", "state"),
    [("finish", State.DONE), ("fail", State.FAILED), ("time_out", State.TIMEOUT)],
)
def test_any_live_job_may_end_and_the_first_ending_wins(story, action, state, running):
    job = story.submit()
    if running:
        story("start", job)
    assert story(action, job).accepted
    assert (story.state(job), story.ledger.depth) == (state, 0)

    for late in ("finish", "fail", "time_out", "start"):
        refused = story(late, job)
        assert (refused.accepted, story.state(job), story.ledger.depth) == (False, state, 0)


def test_a_place_is_free_once_its_job_is_terminal_and_not_before(story):
    first, _ = story.submit(), story.submit()
    story("start", first)
    assert story.submit() is None
    story("finish", first)
    assert story.submit() is not None


def test_an_expired_job_goes_at_the_next_submit_and_not_by_time_alone(story):
    job = story.submit()
    story("finish", job)
    story("advance", None, 10)
    story.submit()
    assert story.state(job) is State.DONE, "exactly at its TTL it stays"
    story("advance", None, 1)
    assert story.state(job) is State.DONE, "time alone evicts nothing"
    story("finish", story.ledger.live[0].id)
    story.submit()
    assert story.state(job) is None


def test_by_count_the_most_recently_completed_stay_whatever_was_submitted_first(story):
    first, second = story.submit(), story.submit()
    story("finish", second)
    story("finish", first)
    story.submit()
    assert (story.state(second), story.state(first)) == (None, State.DONE)


def test_a_live_job_is_never_evicted_however_old(story):
    job = story.submit()
    story("advance", None, 10**9)
    for _ in range(5):
        story("finish", story.submit())
    assert story.state(job) is State.PENDING


def test_a_sweep_belongs_to_a_submit(story):
    assert story("sweep").clause == "R2"


def test_the_payload_is_handed_out_once_and_the_task_id_stays(story):
    job = story.submit("mine", "large")
    first, second = story("take_request", job), story("take_request", job)
    assert (first.reply.outcome, first.reply.job.payload) == (Outcome.PAYLOAD, "large")
    assert (second.reply.outcome, second.reply.job.payload) == (Outcome.NO_PAYLOAD, None)
    story("finish", job, "answer")
    assert story("result", job).reply.job.task_id == "mine"


def test_a_result_is_there_exactly_when_the_job_is_done(story):
    job = story.submit()
    assert story("result", job).reply.outcome is Outcome.NOT_DONE
    story("finish", job, "answer")
    for _ in range(3):
        assert story("result", job).reply.job.result == "answer"

    failed = story.submit()
    story("fail", failed, "no memory")
    assert story("result", failed).reply.outcome is Outcome.NOT_DONE
    assert story("snapshot", failed).reply.job.error == "no memory"


def test_a_wait_blocks_until_the_end_of_the_job_or_of_its_budget(story):
    job = story.submit()
    assert story("wait", job, 0, 5).reply.outcome is Outcome.BLOCKED
    story("start", job)
    assert story("wait", job, 4, 5).reply.outcome is Outcome.BLOCKED
    expired = story("wait", job, 5, 5).reply
    assert (expired.outcome, expired.job.state) == (Outcome.EXPIRED, State.RUNNING)
    story("finish", job)
    assert story("wait", job, 0, 5).reply.outcome is Outcome.FOUND


@pytest.mark.parametrize(
    ("action", "args"),
    [
        ("start", ()),
        ("finish", ()),
        ("fail", ()),
        ("time_out", ()),
        ("take_request", ()),
        ("snapshot", ()),
        ("result", ()),
        ("wait", (0, 5)),
    ],
)
def test_an_id_that_never_was_or_is_gone_is_not_found(story, action, args):
    gone = story.submit()
    story("finish", gone)
    story("advance", None, 11)
    story.submit()
    for unknown in (gone, 99):
        assert story(action, unknown, *args).reply.outcome is Outcome.NOT_FOUND


def test_the_budget_counts_from_admission_and_zero_is_none(story):
    job_id = story.submit()
    job = story.ledger.find(job_id)
    assert not law.is_overdue(job, LIMITS, 49)
    assert law.is_overdue(job, LIMITS, 50)
    assert not law.is_overdue(job, LIMITS._replace(timeout_ms=0), 10**12)


def test_the_clock_goes_forward_only(story):
    assert story("advance", None, 0).accepted
    assert story("advance", None, -1).clause == "S7"


def test_every_action_of_the_table_has_its_properties():
    for name in law.ACTIONS:
        assert any(name in prop.on for prop in MOVE.values()), name
