"""Tokens: who is let in, and that nothing is learned without one (K1)."""

import pytest

GOOD = {"authorization": "Bearer secret"}


@pytest.mark.parametrize(
    "header",
    [
        {},
        {"authorization": ""},
        {"authorization": "secret"},
        {"authorization": "Bearer"},
        {"authorization": "Bearer "},
        {"authorization": "Bearer secre"},
        {"authorization": "Bearer secret1"},
        {"authorization": "Bearer Secret"},
        {"authorization": "Basic secret"},
        {"authorization": "Bearer secret secret"},
        {"authorization": "Bearer \u00e9"},
    ],
)
def test_without_the_token_everything_is_401_alike(serve, header):
    client = serve(token="secret")
    job_id = client.send("POST", "/jobs", {"images": ["YQ=="]}, GOOD).json["job_id"]
    asked = [
        ("POST", "/jobs"),
        ("GET", f"/jobs/{job_id}"),
        ("GET", "/jobs/job_none"),
        ("DELETE", f"/jobs/{job_id}"),
        ("GET", "/metrics"),
        ("POST", "/infer"),
        ("GET", "/nowhere"),
        ("OPTIONS", "/jobs"),
        ("BREW", "/jobs"),
        ("POST", "/runner/claim"),
    ]
    for method, path in asked:
        answer = client.send(method, path, headers=header)
        assert answer.status == 401, path
        assert answer.headers["www-authenticate"] == "Bearer"
    assert client.core.metrics.registry.get_sample_value("counterfoil_jobs_submitted_total") == 1


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_with_the_token_the_schemes_case_does_not_matter(serve, scheme):
    client = serve(token="secret")
    answer = client.get("/metrics", headers={"authorization": f"{scheme} secret"})
    assert answer.status == 200


def test_some_routes_are_public(serve):
    client = serve(token="secret", prefix="/v1")
    for path in ("/healthz", "/ready", "/openapi.json", "/v1/healthz"):
        assert client.get(path).status == 200


def test_401_comes_before_the_switched_off_jobs(serve):
    client = serve(token="secret", async_enabled=False)
    assert client.get("/jobs/x").status == 401
    assert client.get("/jobs/x", headers=GOOD).status == 404
