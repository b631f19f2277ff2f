"""The description and the server agree: every answer to what is sent is one that is described."""

import pathlib
import re
import subprocess
import sys

import pytest

from counterfoil_server import openapi, rules, system_routes
from counterfoil_server.app import _resources
from counterfoil_server.config import Settings
from counterfoil_server.core import Core
from counterfoil_server.probe_model import ProbeModel


def explore(client, *words, token="t"):
    """Schemathesis against a running server; its exit code and report."""
    tool = pathlib.Path(sys.executable).with_name("schemathesis")
    url = f"{client.server.url}/openapi.json"
    options = ["--checks", "all", "--seed", "1", "--header", f"Authorization: Bearer {token}"]
    done = subprocess.run(
        [tool, "run", url, *options, *words],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
        cwd=pathlib.Path(__file__).parent,
    )
    return done.returncode, done.stdout + done.stderr


def test_schemathesis_finds_nothing(serve):
    client = serve(token="t", async_max_queue=1000, prefix="/v1/models/demo")
    code, report = explore(client, "--max-examples", "8")
    assert code == 0, report
    assert "No issues found" in report
    assert client.get("/healthz").status == 200


def test_schemathesis_finds_nothing_at_the_runner_surface(serve, monkeypatch):
    monkeypatch.setattr(rules, "LONGEST_WAIT_MS", 50)
    client = serve(runner="external", runner_token="r", async_max_queue=1000, runner_lease=1000)
    ids = [client.admitted("x") for _ in range(3)]
    words = ("--include-path-regex", "/runner/", "--max-examples", "8")
    code, report = explore(client, *words, token="r")
    assert code == 0, report
    assert "No issues found" in report
    assert client.get("/healthz").status == 200
    assert client.get(f"/jobs/{ids[0]}").json["state"] != "pending", "it has claimed jobs"


def test_an_answer_that_is_not_described_would_be_found(serve, monkeypatch):
    def forgetful(settings):
        document = openapi.describe(settings)
        del document["paths"]["/jobs"]["post"]["responses"]["422"]
        return document

    monkeypatch.setattr(system_routes, "describe", forgetful)
    client = serve(token="t", async_max_queue=1000)
    words = ("--include-operation-id", "submit", "--phases", "coverage", "--max-examples", "3")
    code, report = explore(client, *words)
    assert code == 1
    assert "422" in report and "1 unique failure" in report


@pytest.mark.parametrize(
    "settings",
    [
        Settings(),
        Settings(async_enabled=True, prefix="/v1", token="t"),
        Settings(async_enabled=True, runner="external", runner_token="r"),
    ],
)
def test_every_route_is_described_and_no_other(settings):
    routed = {
        (re.sub(r"<(\w+)>", r"{\1}", resource.path), method.lower())
        for resource in _resources(Core(settings, ProbeModel()))
        if resource.enabled
        for method in resource.methods
    }
    words = "{job_id}/{word}"  # one route for all that a runner says of a job
    for path, method in [one for one in routed if one[0].endswith(words)]:
        routed.remove((path, method))
        said = ("finish", "fail", "timeout", "renew")
        routed |= {(path.replace("{word}", word), method) for word in said}
    described = {
        (path, method)
        for path, item in openapi.describe(settings)["paths"].items()
        for method in item
    }
    again = {(path, method) for path, method in routed if path.startswith("/v1/")}
    doubled = {(path, method) for path, method in again if (path[3:], method) in described}
    assert described == routed - doubled
