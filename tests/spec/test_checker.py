"""The checker itself, on models small enough to be checked by eye."""

import dataclasses

from counterfoil_spec.checker import (
    DEADLOCK,
    Always,
    OnStep,
    Reduced,
    Sometimes,
    explore,
    refines,
    unlike,
)
from counterfoil_spec.checker_liveness import Eventually, Fairness, Graph, lasso


class Moves:
    """A model given as a table: state -> [(label, state)]."""

    def __init__(self, table, start=0):
        self.table, self.start = table, start

    def initial(self):
        yield self.start

    def moves(self, state):
        return self.table.get(state, [])


DIAMOND = Moves({0: [("long", 1), ("short", 3)], 1: [("on", 2)], 2: [("on", 3)], 3: [("stay", 3)]})


def test_every_reachable_state_is_visited_and_no_other():
    found = explore(Moves({0: [("a", 1)], 1: [("b", 0)], 7: [("c", 0)]}))
    assert (found.states, found.transitions, found.depth, found.complete) == (2, 2, 1, True)


def test_a_counterexample_is_a_shortest_one():
    found = explore(DIAMOND, always=[Always("not_3", (), lambda state: state != 3)])
    assert found.found["not_3"].labels == ("short",)
    assert found.found["not_3"].states == (0, 3)


def test_a_property_of_steps_sees_both_ends_and_the_label():
    rule = OnStep("no_jump", (), lambda a, label, b: b - a <= 1 or label == "allowed")
    assert "no_jump" in explore(DIAMOND, step=[rule]).found
    table = {**DIAMOND.table, 0: [("long", 1), ("allowed", 3)]}
    assert not explore(Moves(table), step=[rule]).found


def test_a_deadlock_is_a_state_without_moves_that_is_no_end():
    model = Moves({0: [("go", 1)]})
    assert explore(model, may_end=lambda state: state == 1).found == {}
    stuck = explore(model, may_end=lambda state: False).found[DEADLOCK]
    assert stuck.states == (0, 1)


def test_what_is_sometimes_so_is_counted():
    found = explore(DIAMOND, sometimes=[Sometimes("odd", (), lambda s: s % 2 == 1)])
    assert found.witnesses["odd"] == 2
    assert found.witnesses["never"] == 0


def test_a_search_that_is_cut_off_says_so():
    endless = Moves({n: [("up", n + 1)] for n in range(10_000)})
    found = explore(endless, limit=100)
    assert not found.complete
    assert found.states == 101
    stopped = explore(endless, always=[Always("low", (), lambda n: n < 5)], stop_early=True)
    assert not stopped.complete
    assert len(stopped.found["low"]) == 5


def test_progress_is_told_on_long_runs():
    told = []
    model = Moves({n: [("up", n + 1)] for n in range(99)})
    explore(model, watch=lambda found: told.append(found.states), every=25)
    assert told == [26, 51, 76, 100]


def test_a_sound_reduction_finds_the_quotient_and_an_unsound_one_is_told():
    def parity(n):
        return n % 2

    up = Moves({n: [("up", (n + 1) % 100)] for n in range(100)})
    assert unlike(up, range(100), parity, lambda key: key) is None
    assert explore(Reduced(up, parity, lambda key: key)).states == 2

    representative, odd, differ = unlike(up, range(100), lambda n: min(n, 3), lambda key: key)
    assert (representative, odd) == (3, 99), "from 3 on is not one state: 99 goes back to 0"
    assert differ == {("up", 0), ("up", 3)}


def test_refinement_allows_stutters_and_refuses_what_the_coarse_model_cannot_do():
    coarse = Moves({0: [("tick", 1)], 1: [("tick", 0)]})
    fine = Moves({n: [("quarter", (n + 1) % 4)] for n in range(4)})
    assert not explore(fine, step=[refines("r", (), coarse, lambda n: n // 2)]).found
    three = Moves({0: [("a", 1)], 1: [("b", 2)]})
    assert "r" in explore(three, step=[refines("r", (), coarse, lambda n: n)]).found


# Eventually: somebody else can go round for ever while `me` may always move.

TURNS = Moves({0: [("other", 1), ("me", 2)], 1: [("other", 0), ("me", 2)]})
MINE = Fairness("me", lambda label: label == "me")
ARRIVES = Eventually("arrives", (), lambda state: True, lambda state: state == 2, (MINE,))


def lasso_of(model, goal):
    return lasso(Graph(model, explore(model)), goal)


def test_a_fair_move_is_not_neglected_for_ever():
    assert lasso_of(TURNS, ARRIVES) is None


def test_without_fairness_the_cycle_is_a_counterexample():
    unfair = dataclasses.replace(ARRIVES, under=())
    trace = lasso_of(TURNS, unfair)
    assert trace.loop_from is not None
    assert "me" not in trace.labels


def test_weak_fairness_does_not_help_a_move_that_is_only_now_and_then_possible():
    sometimes = Moves({0: [("other", 1), ("me", 2)], 1: [("other", 0)]})
    trace = lasso_of(sometimes, ARRIVES)
    assert set(trace.labels) == {"other"}
    assert set(trace.states[trace.loop_from :]) == {0, 1}, "it must pass where it is impossible"


def test_a_state_that_is_never_left_is_a_counterexample_only_if_that_is_fair():
    stop = Moves({0: [("go", 1)]})
    goal = Eventually("gets_2", (), lambda state: True, lambda state: state == 2)
    trace = lasso_of(stop, goal)
    assert trace.loop_from == len(trace.labels), "it stays there"
    fair = dataclasses.replace(goal, under=(Fairness("go", lambda label: label == "go"),))
    assert lasso_of(stop, fair).states[-1] == 1, "in 0 it would have to go on"


def test_a_fair_cycle_takes_every_fair_move_there_is():
    ring = Moves({n: [(f"step{n}", (n + 1) % 3)] for n in range(3)})
    goal = Eventually(
        "never",
        (),
        lambda state: state == 0,
        lambda state: False,
        tuple(Fairness(f"f{n}", lambda label, n=n: label == f"step{n}") for n in range(3)),
    )
    trace = lasso_of(ring, goal)
    assert {*trace.labels[trace.loop_from :]} == {"step0", "step1", "step2"}
    assert trace.states[trace.loop_from] == trace.states[-1]


def test_leads_to_starts_only_where_when_holds():
    goal = dataclasses.replace(ARRIVES, when=lambda state: state == 9, under=())
    assert lasso_of(TURNS, goal) is None
