"""Seeded faults of the shipped ledger that have a twin in the model or among the lemmas.

The model and the lemmas never see the shipped code: they look at the law and at the protocol. What
they can find is the same mistake made there. A twin is named here by hand, where one exists; that
it is the same mistake is for a reader to judge, that it is found is looked at: the model searches
for its counterexample each time, and the lemmas' pinned record says which of them refute it.
"""

import json
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Final

from counterfoil_conformance.modelling.runs import Task, clauses_of, perform
from counterfoil_conformance.proof.matrix import PINNED
from counterfoil_spec.clauses import CLAUSES

__all__ = ["IN_THE_MODEL", "UNDER_LEMMAS", "refuted_by_lemmas", "refuted_by_model"]

# By fault: a variant of the protocol in `counterfoil_spec.protocol_programs`.
IN_THE_MODEL: Final[Mapping[str, str]] = MappingProxyType(
    {
        "depth-checked-then-counted": "D3",
        "depth-without-a-lock": "D2",
        "look-then-register": "D4",
        "none-kept-orphans": "D5",
        "orphans-of-the-order": "D5",
        "state-before-result": "payload_after_publish",
        "state-before-error": "payload_after_publish",
        "place-free-after-the-end": "place_released_after_unlock",
        "late-end-releases-again": "release_before_guard",
        "wakes-one": "notify_one",
        "first-waiter-only": "notify_one",
        "locks-in-reverse": "reversed_lock_order",
    }
)

# By fault: a defect in `proof.defects`, each refuted by a lemma.
UNDER_LEMMAS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "starts-again": "starts_twice",
        "start-revives": "restarts_a_terminal_job",
        "pending-cannot-fail": "a_pending_job_cannot_end",
        "late-end-moves-the-time": "a_late_ending_moves_the_completion_time",
        "no-time-on-timeout": "the_completion_time_is_lost",
        "unknown-start-accepted": "unknown_is_accepted",
        "late-result-wins": "a_terminal_job_is_overwritten",
        "late-failure-changes-error": "a_terminal_job_is_overwritten",
        "failure-without-error": "the_error_is_lost",
        "one-place-too-many": "the_server_admits_one_too_many",
        "one-place-too-few": "admits_one_too_few",
        "timeout-keeps-its-place": "no_place_comes_back",
        "failure-keeps-its-place": "no_place_comes_back",
        "late-end-releases-again": "a_late_ending_frees_a_place",
        "refusal-takes-a-place": "a_refusal_takes_a_place",
        "ids-come-again": "ids_are_used_again",
        "same-req-id-same-job": "the_same_id_twice",
        "age-reached-is-too-old": "the_servers_ttl_is_inclusive",
        "age-from-admission": "age_counts_from_submission",
        "age-takes-running-jobs": "an_old_live_job_is_swept",
        "negative-keeps-all": "a_negative_count_keeps_all",
        "count-evicts-one-too-many": "the_server_keeps_one_too_few",
        "newest-evicted-first": "the_newest_goes_first",
        "payload-twice": "the_payload_is_handed_out_twice",
        "task-id-goes-with-the-payload": "the_task_id_goes_with_the_payload",
        "unknown-is-pending": "an_unknown_job_is_pending",
        "result-read-once": "a_result_is_consumed",
        "ended-jobs-are-waited-for": "a_wait_sleeps_on",
    }
)


@cache
def refuted_by_model(fault: str) -> frozenset[str]:
    """The clauses that the model shows broken in the fault's twin; none: it has no twin."""
    variant = IN_THE_MODEL.get(fault)
    if variant is None:
        return frozenset()
    outcome = perform(Task("defect", name=variant))
    return frozenset(clause for name in outcome.broken for clause in clauses_of(name))


def refuted_by_lemmas(fault: str) -> frozenset[str]:
    """The clauses of the lemmas that are on record as refuting the fault's twin."""
    defect = UNDER_LEMMAS.get(fault)
    return _on_record().get(defect, frozenset()) if defect else frozenset()


@cache
def _on_record() -> dict[str, frozenset[str]]:
    record: dict[str, set[str]] = {}
    for lemma in json.loads(PINNED.read_text(encoding="utf-8")).values():
        for defect, refutation in lemma.items():
            record.setdefault(defect, set()).update(refutation["broken"])
    return {defect: frozenset(map(_clause_or_property, b)) for defect, b in record.items()}


def _clause_or_property(name: str) -> str:
    """A lemma names clauses, or properties of the model, which stand for clauses."""
    return name if name in CLAUSES else next(iter(clauses_of(name)), name)
