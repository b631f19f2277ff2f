"""Correct strangers of different make: each is a configuration that the contract allows.

A name ends up in the matrix of the kit's verdicts, so it says what is different.
"""

from typing import Any

from strangers.config import Config

__all__ = ["VARIATIONS", "WARNED"]


def _each(**fields: Any) -> Config:
    return Config(**fields)


VARIATIONS: dict[str, Config] = {
    "plain": _each(),
    "jitter": _each(jitter_ms=300),
    "jitter-loop": _each(jitter_ms=300, front="loop", packets="split"),
    "loop": _each(front="loop"),
    "null-error": _each(error_key="null"),
    "empty-error": _each(error_key="empty"),
    "bad-image-422": _each(bad_image="422"),
    "submission-order": _each(eviction="submission"),
    "last-use-order": _each(eviction="use"),
    "age-timer": _each(age_timer=True),
    "refused-sweeps": _each(refused_sweeps=True),
    "uuid-ids": _each(ids="uuid"),
    "no-optional-headers": _each(optional_headers=False),
    "wrong-method-404": _each(wrong_method="404", head="404", options="404"),
    "head-405": _each(head="405", options="200"),
    "options-405": _each(options="405"),
    "zero-wait-now": _each(zero_wait="now"),
    "zero-wait-422": _each(zero_wait="422"),
    "zero-wait-400": _each(zero_wait="400", odd_wait="absent"),
    "odd-wait-absent": _each(odd_wait="absent"),
    "images-400": _each(bad_images_status=400),
    "odd-req-id-safe": _each(odd_req_id="safe"),
    "odd-id-400": _each(odd_id="400"),
    "odd-id-414": _each(max_line=4096),
    "missing-type-415": _each(missing_type="415"),
    "no-running-budget": _each(running_budget=False),
    "worker-held": _each(late_worker="held", hang_ms=2400),
    "all-failed-500": _each(all_failed="500"),
    "elapsed-grows": _each(elapsed="grows"),
    "body-before-full": _each(full_first=False),
    "evicted-wait-404": _each(evicted_wait="404"),
    "half-closed-is-gone": _each(half_close="gone"),
    "half-closed-is-gone-loop": _each(half_close="gone", front="loop"),
    "early-refusal-closes": _each(early="close"),
    "no-keep-alive": _each(keep_alive=False),
    "close-after-refusal": _each(close_after_refusal=True),
    "chunked": _each(chunked=True, packets="split"),
    "pretty-json": _each(json_style="pretty", content_type="spaced", header_case="lower"),
    "ascii-json": _each(json_style="ascii", content_type="upper", header_case="upper"),
    "other-texts": _each(texts="other"),
    "query-urls": _each(urls="query"),
    "extra-fields": _each(extra_fields=True, error_key="null"),
    "prefix": _each(prefix="/v1/models/demo"),
    "token": _each(token="s3cret-Token"),
    "prefix-token-loop": _each(prefix="/v1/models/x", token="T" * 40, front="loop"),
    "slow-pickup": _each(pickup_ms=80),
    "one-worker": _each(workers=1, max_queue=2),
    "one-place": _each(workers=1, max_queue=1),
    "many-workers": _each(workers=6, max_queue=8, max_completed=20),
    "keeps-none": _each(max_completed=0),
    "keeps-one": _each(max_completed=1),
    "short-ttl": _each(job_ttl_ms=700),
    "no-budget": _each(timeout_ms=0),
    "nothing-admitted": _each(max_queue=0),
    "negative-queue": _each(max_queue=-3),
    "async-disabled": _each(async_enabled=False),
    "async-disabled-token": _each(async_enabled=False, token="abc"),
    "everything-else": _each(
        front="loop", error_key="null", bad_image="422", eviction="use", age_timer=True,
        refused_sweeps=True, ids="uuid", optional_headers=False, wrong_method="404",
        zero_wait="422", odd_wait="absent", bad_images_status=400, odd_id="400",
        missing_type="415", all_failed="500", elapsed="grows", full_first=False,
        evicted_wait="404", early="close", chunked=True, json_style="pretty", texts="other",
        urls="query", extra_fields=True, header_case="upper", jitter_ms=60,
    ),
}  # fmt: skip

# Clauses whose SHOULD part a variation leaves out on purpose: a WARN is right there, nowhere else.
WARNED: dict[str, tuple[str, ...]] = {
    "uuid-ids": ("A9",),
    "no-optional-headers": ("H4", "H5", "H9"),
    "wrong-method-404": ("H5",),
    "elapsed-grows": ("H8",),
    "other-texts": ("H13",),
    "everything-else": ("A9", "H4", "H5", "H8", "H9", "H13", "H11"),
    "no-running-budget": ("T6", "H11"),
}
