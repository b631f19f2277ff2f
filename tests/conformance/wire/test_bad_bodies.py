"""The tables of wrong requests are wrong in the way they say, and in no other."""

import json

import pytest

from counterfoil_conformance.wire.answer import NOT_JSON, strict_json
from counterfoil_conformance.wire.bad_bodies import (
    bad_bodies,
    image_bodies,
    lenient_bodies,
    req_id_bodies,
)
from counterfoil_conformance.wire.checks.keys import _nearly

QUICK = {"images": ["aGVsbG8="], "params": {"a": 1}}
BAD = bad_bodies(QUICK)


@pytest.mark.parametrize("row", BAD, ids=lambda row: row.name)
def test_a_row_of_e1_is_no_json_object_and_one_of_e2_is(row):
    value, _ = strict_json(row.body)
    if row.clause == "E2":
        assert isinstance(value, dict)
        images = value.get("images")
        fine = isinstance(images, list) and images
        assert not (fine and all(isinstance(image, str) for image in images))
    else:
        assert value is NOT_JSON or not isinstance(value, dict)


def test_names_are_unique_and_say_what_is_wrong():
    rows = [*BAD, *lenient_bodies(QUICK), *req_id_bodies(QUICK), *image_bodies(QUICK)]
    assert len({row.name for row in rows}) == len(rows)


@pytest.mark.parametrize("row", req_id_bodies(QUICK), ids=lambda row: row.name)
def test_a_row_of_e7_differs_from_a_good_request_in_its_name_only(row):
    value = json.loads(row.body)
    assert value.pop("req_id")
    assert value == QUICK


def test_rows_that_may_be_admitted_allow_anything_but_a_crash_or_are_a_should():
    for row in lenient_bodies(QUICK):
        assert row.should or row.allowed == ()


@pytest.mark.parametrize("token", ["x", "wrong", "*", "null", "s3cret-Token"])
def test_no_header_that_is_to_be_refused_is_the_token(token):
    right = f"Bearer {token}"
    assert right not in [headers.get("Authorization") for headers in _nearly(token).values()]
