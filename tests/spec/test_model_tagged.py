"""One tagged job: the view is sound, what must happen happens, and only if somebody is fair."""

import dataclasses
from functools import cache

import pytest

from counterfoil_spec.checker import explore, unlike
from counterfoil_spec.checker_liveness import Graph, lasso
from counterfoil_spec.ledger import Outcome, Reply, Step
from counterfoil_spec.model import LAW, Scope
from counterfoil_spec.model_scopes import DEEP_TAGGED, LIVENESS, TAGGED, pinned
from counterfoil_spec.model_tagged import ALL_LIVENESS, TaggedModel, liveness

SCOPE = Scope(2, 1, 1, 1, timeout_ms=2)


@cache
def graph_of(scope):
    model = TaggedModel(scope, waiting=True)
    found = explore(model, judge=model)
    assert found.found == {}
    return Graph(model, found)


@pytest.mark.parametrize("scope", TAGGED, ids=str)
def test_the_law_holds_by_one_job_and_the_number_of_views_is_pinned(scope):
    model = TaggedModel(scope)
    found = explore(model, judge=model)
    assert (found.found, found.complete, found.states) == ({}, True, pinned("tagged", scope))


def test_3_3_3_is_among_the_deep_scopes():
    assert Scope(3, 3, 3, 1) in DEEP_TAGGED


@pytest.mark.parametrize("scope", LIVENESS, ids=str)
def test_what_must_happen_happens(scope):
    graph = graph_of(scope)
    assert len(graph.states) == pinned("liveness", scope)
    for goal in liveness(scope):
        assert lasso(graph, goal) is None, goal.name
        assert any(map(goal.when, graph.states)), f"{goal.name} has nothing to say"


FAIRNESS = [(goal.name, fair.name) for goal in liveness(SCOPE) for fair in goal.under]


@pytest.mark.parametrize(("name", "dropped"), FAIRNESS)
def test_it_fails_when_this_need_not_be_fair(name, dropped):
    goal = next(goal for goal in liveness(SCOPE) if goal.name == name)
    rest = tuple(fair for fair in goal.under if fair.name != dropped)
    trace = lasso(graph_of(SCOPE), dataclasses.replace(goal, under=rest))
    assert trace is not None
    assert not any(goal.then(state) for state in trace.states[trace.loop_from :])


def test_every_property_of_liveness_is_there_where_there_is_a_budget():
    assert tuple(goal.name for goal in liveness(SCOPE)) == ALL_LIVENESS


def test_a_law_that_never_tells_a_waiter_starves_it(monkeypatch):
    def mute(ledger, job_id, waited_ms, budget_ms):
        return Step(ledger, Reply(Outcome.BLOCKED, ledger.find(job_id)))

    monkeypatch.setattr("counterfoil_spec.model_tagged.wait", mute)
    scope = Scope(1, 0, 0, 1)
    model = TaggedModel(scope, waiting=True)
    graph = Graph(model, explore(model))
    told = next(goal for goal in liveness(scope) if goal.name == "every_waiter_is_told")
    assert lasso(graph, told) is not None


def test_a_law_that_refuses_to_end_a_running_job_starves_it():
    def stubborn(action):
        def end(ledger, job_id, text=""):
            job = ledger.find(job_id)
            if job is not None and job.state.rank == 1:
                return Step(ledger, Reply(Outcome.REFUSED, job), "S3", "it runs")
            return LAW[action](ledger, job_id)

        return end

    ends = {action: stubborn(action) for action in ("finish", "fail", "time_out")}
    scope = Scope(1, 0, 0, 1)
    model = TaggedModel(scope, {**LAW, **ends})
    graph = Graph(model, explore(model))
    ends_goal = liveness(scope)[0]
    assert lasso(graph, ends_goal) is not None


class InDetail(TaggedModel):
    """The tagged model without the blur: every job as it is."""

    def _alike(self, number):
        return number


class BlurredMoves:
    """The moves of the detailed model that the view shows."""

    def __init__(self, model, blur):
        self.model, self.blur = model, blur

    def moves(self, state):
        for label, target in self.model.moves(state):
            if self.blur(target) != self.blur(state):
                yield label, target


@pytest.mark.parametrize(
    "scope", [Scope(2, 1, 0, 1), Scope(1, 1, 1, 1), Scope(2, 0, 1, 0)], ids=str
)
def test_ledgers_in_detail_move_as_their_view_does(scope):
    detailed = InDetail(scope)
    blurring = TaggedModel(scope)
    blurring.ledgers = detailed.ledgers

    def blur(state):
        return blurring.view(state.code, state.tag)

    states = list(explore(detailed).index)
    assert len(states) > 3 * explore(TaggedModel(scope)).states
    sample = states[:: max(len(states) // 1_500, 1)]
    assert unlike(BlurredMoves(detailed, blur), sample, blur, lambda view: view) is None
