"""Each check of single requests is seen to fail on a server with one fault that it must catch.

The control is the same check on the same server without the fault: no finding, and the clause
witnessed. So a check cannot pass for the wrong reason, nor fail for it.
"""

import asyncio
from collections import Counter

import pytest
from strangers.config import Config
from strangers.faults import FAULTS
from strangers.launch import running, write_target

from counterfoil_conformance.report.events import Finding, HarnessFault, Witnessed
from counterfoil_conformance.run import RunOptions
from counterfoil_conformance.wire.registry import Context
from counterfoil_conformance.wire.run import all_checks
from counterfoil_conformance.wire.session import Session
from counterfoil_conformance.wire.target import load_target

CASES = (
    ("wrong_bodies_are_refused", "E1", ("e1-array-is-422", "e1-nan-admitted", "e1-bad-utf-8")),
    ("wrong_bodies_are_refused", "E2", ("e2-empty-admitted", "e2-no-pointer", "e2-wrong-pointer")),
    ("wrong_bodies_are_refused", "E5", ("e1-array-is-500", "e5-trace-in-refusal")),
    ("odd_bodies_do_no_harm", "E5", ("e5-deep-is-500", "e5-huge-number-is-500")),
    ("odd_bodies_do_no_harm", "E9", ("e9-surrogate-echo",)),
    ("odd_bodies_do_no_harm", "E2", ("e2-unknown-field", "e2-null-req-id")),
    ("media_types_are_told_apart", "E3", ("e3-any-media",)),
    ("a_body_over_the_limit_is_413", "E3", ("e3-no-limit", "e3-reset", "e3-chunked-has-no-limit")),
    ("odd_ids_are_unknown", "E4", ("e4-odd-is-200", "e4-id-in-header", "e4-long-is-500")),
    ("a_req_id_never_reaches_a_header_raw", "E7", ("e7-splits", "e7-latin-1-header")),
    ("unreadable_images_cost_their_item_only", "E6", ("e6-bad-base64-is-fine",)),
    (
        "the_next_request_gets_its_own_answer",
        "E8",
        ("e8-404-leaves-the-body", "e8-405-leaves-the-body", "e8-answers-twice"),
    ),
    ("broken_heads_do_no_harm", "E5", ("e5-bad-chunk-is-500",)),
    ("unknown_paths_are_404", "H5", ("h5-unknown-path-is-200", "h5-unknown-path-is-400")),
    ("wrong_methods_are_refused", "H5", ("h5-405-of-unknown", "h5-get-jobs-lists")),
    ("wrong_methods_on_a_known_job_are_405", "H5", ("h5-404-of-known", "h5-any-action-is-status")),
    (
        "head_and_options_leave_the_connection_in_order",
        "H5",
        ("h5-head-has-a-body", "h5-options-leaves-bytes"),
    ),
    ("the_urls_of_a_202_work_as_they_are", "H3", ("h3-dead-poll-url", "h3-previous-location")),
    ("a_fresh_slow_job_is_live", "H2", ("h2-done-at-once",)),
    ("two_waiters_both_get_the_end", "H7", ("w6-second-is-409",)),
    ("elapsed_is_counted_from_admission", "H8", ("h8-seconds", "h8-always-zero")),
    ("a_404_names_the_id", "H13", ("h13-404-without-id", "h13-404-cuts-the-id")),
    ("a_full_queue_is_in_order", "H4", ("h4-503", "h4-no-bound", "h4-serial")),
    ("a_full_queue_is_in_order", "H1", ("h1-after-the-start", "h1-decodes-first")),
    ("a_full_queue_is_in_order", "H8", ("h8-from-start",)),
    ("a_full_queue_is_in_order", "H11", ("h11-takes-a-place", "h11-refused-when-full")),
    ("a_full_queue_is_in_order", "A7", ("a7-422-takes-a-place",)),
    (
        "invalid_requests_take_no_place",
        "A7",
        ("a7-req-id-takes-a-place", "a7-options-take-a-place"),
    ),
    ("a_full_queue_is_in_order", "K1", ("k1-works-anyway",)),
    ("paths_and_methods_come_before_bodies", "H12", ("h12-400-before-404",)),
    (
        "without_the_token_every_route_is_401",
        "K1",
        ("k1-status-open", "k1-beginning-fits", "k1-any-scheme", "k1-unknown-path-is-404"),
    ),
    ("without_the_token_every_route_is_401", "H12", ("h12-404-before-401",)),
    ("the_scheme_may_be_written_in_any_case", "K1", ("k1-scheme-is-case-sensitive",)),
    ("infer_answers_with_the_envelope", "H13", ("h11-no-envelope",)),
    (
        "a_blocking_call_has_an_item_for_every_image",
        "G5",
        ("g5-infer-all-failed-is-partial", "g5-never-partial"),
    ),
    ("a_blocking_call_has_an_item_for_every_image", "G4", ("g4-infer-fine-only",)),
    (
        "few_jobs_are_retained_for_their_time_and_no_longer",
        "R6",
        ("r6-result-read-ten-times",),
    ),
    ("nobody_gets_anothers_data", "G4", ("g4-cached-by-name", "g4-cached-by-image")),
    ("infer_says_when_every_item_failed", "H11", ("h11-failure-is-ok",)),
    ("counters_agree_with_the_ledger", "M1", ("m1-failed-uncounted", "m1-crash-uncounted")),
    ("a_full_queue_is_in_order", "M1", ("m1-refused-counted", "m1-infer-counted")),
    (
        "every_kind_of_end_wakes_its_waiters",
        "W2",
        ("w2-failure-wakes-nobody", "w2-polls-each-400-ms"),
    ),
    ("many_waiters_hold_nobody_up", "W9", ("w9-waiters-slow-submits",)),
    ("a_run_that_outlasts_its_budget", "T3", ("t3-second-worker-lost",)),
    ("the_result_of_a_live_job_is_a_409", "G2", ("g2-result-blocks",)),
    ("a_full_queue_is_in_order", "H4", ("h4-blocks",)),
    ("without_jobs_every_route_of_them_is_404", "H6", ("h6-503", "h6-only-submit")),
)
PAIRS = [(check, clause, fault) for check, clause, faults in CASES for fault in faults]


def run_check(name: str, config: Config, folder) -> list:
    """The events of one check against a stranger of that configuration."""
    events: list = []

    async def run(target) -> None:
        session = Session(target, RunOptions(seed=7), events.append)
        ctx = Context(session, session.options, events.append)
        for _ in range(4):
            await session.status("job_warm_up")
        try:
            await all_checks()[name].run(ctx)
        finally:
            session.flush()
            await session.aclose()

    with running(config) as stranger:
        target = load_target(write_target(stranger.config, folder / "target.toml"))
        asyncio.run(run(target))
    assert not [event for event in events if isinstance(event, HarnessFault)]
    return events


@pytest.mark.parametrize(("check", "clause", "fault"), PAIRS, ids=[f"{p[0]}-{p[2]}" for p in PAIRS])
def test_a_check_finds_the_fault_it_is_there_for(check, clause, fault, tmp_path):
    events = run_check(check, FAULTS[fault].config, tmp_path)
    found = Counter(event.clause for event in events if isinstance(event, Finding))
    assert found[clause], f"{FAULTS[fault].sentence} went unseen: {found}"


@pytest.mark.parametrize("check", sorted({check for check, _, _ in CASES}))
def test_a_check_has_nothing_against_a_correct_server(check, tmp_path):
    clauses = {clause for name, clause, _ in CASES if name == check}
    config = Config(token="s3cret-Token")
    if clauses == {"H6"}:
        config = Config(async_enabled=False)
    events = run_check(check, config, tmp_path)
    assert [event for event in events if isinstance(event, Finding)] == []
    seen = {event.clause for event in events if isinstance(event, Witnessed)}
    assert clauses <= seen, f"not witnessed: {clauses - seen}"
