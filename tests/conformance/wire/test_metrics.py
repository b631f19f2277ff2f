"""Prometheus text is read by name and labels; what is not there is named."""

from counterfoil_conformance.wire.metrics import Counters, counters, parse_metrics, total

TEXT = """\
# HELP jobs_total Jobs by how they ended.
# TYPE jobs_total counter
jobs_total{state="done",worker="a"} 3.0
jobs_total{state="done",worker="b"} 4
jobs_total{state="failed",worker="a"} 1 1700000000000
odd{text="a \\"quoted\\" } brace"} 5
submitted 10
depth 2
words many
nothing
"""
NAMES = {
    "submitted": "submitted",
    "done": 'jobs_total{state="done"}',
    "failed": 'jobs_total{state="failed"}',
    "timeout": 'jobs_total{state="timeout"}',
    "depth": "depth",
}


def test_a_name_with_labels_adds_up_every_sample_that_has_them():
    samples = parse_metrics(TEXT)
    assert total(samples, 'jobs_total{state="done"}') == 7
    assert total(samples, "jobs_total") == 8
    assert total(samples, 'odd{text="a \\"quoted\\" } brace"}') == 5
    assert total(samples, "missing") is None
    assert total(samples, "words") is None


def test_a_labelled_counter_that_never_moved_is_zero():
    found = counters(parse_metrics(TEXT), NAMES)
    assert found == Counters(submitted=10, done=7, failed=1, timeout=0, depth=2)
    assert found.balanced()


def test_a_counter_that_is_not_there_is_named():
    assert counters(parse_metrics(TEXT), NAMES | {"depth": "queue_depth"}) == "queue_depth"


def test_a_sum_that_is_not_right_is_seen():
    assert not Counters(submitted=10, done=7, failed=1, timeout=0, depth=1).balanced()
