"""The protocol: both correct forms hold and refine the law; every variant falls to its own rule."""

import dataclasses

import pytest

from counterfoil_spec.checker import DEADLOCK, explore
from counterfoil_spec.checker_liveness import Graph, lasso
from counterfoil_spec.clauses import CLAUSES, DEFECTS
from counterfoil_spec.model_defects import d5_model
from counterfoil_spec.model_scopes import pinned
from counterfoil_spec.protocol import INSTRUCTIONS
from counterfoil_spec.protocol_programs import CORRECT, SCENARIOS, VARIANTS, Variant, model_of
from counterfoil_spec.protocol_properties import (
    ALWAYS,
    EVENTUALLY,
    eventually,
    may_end,
    refinement,
    view,
)

CLAUSES_OF = {rule.name: rule.clauses for rule in (*ALWAYS, *EVENTUALLY)} | {DEADLOCK: ("C5",)}


def search(scenario, form="queued", variant=None, refine=False, unfair=()):
    """(exploration, traces by property) of a scenario."""
    scenario = SCENARIOS[scenario]
    threads = len(scenario.threads)
    model = model_of(scenario, CORRECT[form], variant)
    step = [refinement(scenario.memory, threads)] if refine else []
    found = explore(model, always=ALWAYS, step=step, may_end=may_end)
    traces = dict(found.found)
    (initial,) = model.initial()
    goals = eventually(initial.frames)
    graph = Graph(model, found) if goals else None
    for goal in goals:
        fair = tuple(f for me, f in enumerate(goal.under) if me not in unfair)
        trace = lasso(graph, dataclasses.replace(goal, under=fair))
        if trace is not None:
            traces[goal.name] = trace
    return found, traces


# Seconds each; a variant is tried there if that is where its story is.
LARGE = {"admission", "retention"}


@pytest.mark.parametrize("form", CORRECT)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_correct_form_holds_in_every_interleaving_and_refines_the_law(scenario, form):
    found, traces = search(scenario, form, refine=True)
    assert traces == {}
    assert found.complete
    assert found.states == pinned("protocol", scenario, form)


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_is_refuted_by_the_property_of_its_rule_and_by_no_unrelated_one(name):
    variant = VARIANTS[name]
    _, traces = search(variant.scenario, variant=variant)
    assert set(variant.refuted_by) <= traces.keys()
    assert all(set(CLAUSES_OF[broken]) & set(variant.breaks) for broken in traces)
    for scenario in SCENARIOS.keys() - LARGE:
        for broken in search(scenario, variant=variant)[1]:
            assert set(CLAUSES_OF[broken]) & set(variant.breaks), f"{broken} in {scenario}"


# Step counts of the shortest stories: a longer one means that the search has lost its way.
SHORTEST = {
    "D1": 5,
    "D2": 6,
    "D3": 6,
    "D4": 19,
    "D5": 30,
    "reversed_lock_order": 9,
    "release_before_guard": 10,
    "payload_after_publish": 8,
    "completion_after_unlock": 18,
}


@pytest.mark.parametrize("name", SHORTEST)
def test_the_story_of_a_variant_is_the_shortest(name):
    variant = VARIANTS[name]
    _, traces = search(variant.scenario, variant=variant)
    assert len(traces[variant.refuted_by[0]]) == SHORTEST[name]


def test_d5_is_refuted_in_six_operations_at_max_completed_0():
    model = d5_model()
    found = explore(model, judge=model, stop_early=True)
    trace = found.found["a_sweep_leaves_at_most_max_completed"]
    assert found.found.keys() == {"a_sweep_leaves_at_most_max_completed"}
    actions = [label.action for label in trace.labels]
    assert actions == ["submit", "submit", "finish", "submit", "finish", "submit"]


def test_the_sound_law_is_not_refuted_where_d5_is():
    scope = d5_model().scope
    assert pinned("full", scope) == 183


def test_every_historic_defect_but_the_root_cause_has_its_variant():
    assert DEFECTS.keys() - VARIANTS.keys() == {"D0"}
    for name, defect in DEFECTS.items():
        if name in VARIANTS:
            shown = {c for p in VARIANTS[name].refuted_by for c in CLAUSES_OF[p]}
            assert shown & set(defect.shows_as) or name == "D5", name


# Every property can fail, also those that no historic defect breaks.

END, SUBMIT = CORRECT["queued"]["end"], CORRECT["queued"]["submit"]
UNLOCKED_START = ("leave unless pending", "publish running", "unlock job")
SEEDED = {
    "one_start_is_accepted": ("starting", {"start": UNLOCKED_START}),
    "no_poll_goes_back": ("starting", {"start": UNLOCKED_START}),
    "one_ending_is_accepted": (
        "ending",
        {"end": tuple(name for name in END if name != "leave if terminal")},
    ),
    "an_answer_of_admission_was_possible": (
        "admission",
        {"submit": ("call", "take place", *SUBMIT[3:])},
    ),
    "depth_counts_the_live_jobs_at_rest": (
        "ending",
        {"end": tuple(name for name in END if name != "release place")},
    ),
    "an_admitted_job_is_found": (
        "admission",
        {"submit": ("call", "load depth", "take place if unchanged", "return")},
    ),
    "no_live_job_is_erased": (
        "retention",
        {"submit": (*SUBMIT[:5], "enter order", *SUBMIT[5:])},
    ),
    "who_has_left_is_registered_nowhere": (
        "waiting_in_budget",
        {"wait in budget": ("lock job", "look and register", "unlock job", "sleep or expire")},
    ),
}


@pytest.mark.parametrize("name", SEEDED)
def test_a_seeded_change_breaks(name):
    scenario, programs = SEEDED[name]
    seeded = Variant(name, "", (), (name,), scenario, "", programs)
    assert name in search(scenario, variant=seeded)[1]


def test_no_property_of_the_protocol_is_without_a_change_that_breaks_it():
    shown = set(SEEDED) | {name for v in VARIANTS.values() for name in v.refuted_by}
    shown.add("nobody_is_woken_before_the_end")
    assert (
        "nobody_is_woken_before_the_end"
        in search("waiting", variant=VARIANTS["notify_before_publish"])[1]
    )
    assert shown == CLAUSES_OF.keys()


@pytest.mark.parametrize("name", ["D3", "D5", "release_before_guard"])
def test_refinement_turns_red_when_the_protocol_leaves_the_law(name):
    variant = VARIANTS[name]
    _, traces = search(variant.scenario, variant=variant, refine=True)
    assert "every_step_is_a_step_of_the_law" in traces


def test_a_waiter_is_not_woken_when_the_waiter_itself_need_not_go_on():
    waiter = 2
    assert "a_waiter_is_woken" in search("waiting", unfair=(waiter,))[1]


def test_the_view_of_a_quiet_ledger_is_the_ledger():
    (state,) = model_of(SCENARIOS["late_ending"], CORRECT["queued"]).initial()
    seen = view(state)
    assert (len(seen.live), [job.state for job in seen.retained], seen.depth) == (0, ["done"], 0)


def test_programs_are_made_of_instructions_and_leave_no_mutex_behind():
    for programs in (*CORRECT.values(), *(v.programs for v in VARIANTS.values())):
        for program in programs.values():
            assert set(program) <= INSTRUCTIONS.keys()
    for scenario in SCENARIOS.keys() - LARGE:
        for state in search(scenario)[0].index:
            if all(frame.over for frame in state.frames):
                held = [state.memory.table, *(cell.mutex for cell in state.memory.cells)]
                assert held == [None] * len(held)


def test_variants_name_clauses_and_scenarios_that_exist():
    for variant in VARIANTS.values():
        assert set(variant.breaks) <= CLAUSES.keys()
        assert variant.scenario in SCENARIOS
