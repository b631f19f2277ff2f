import asyncio
import tomllib

import pytest

from counterfoil_conformance.errors import UsageError
from counterfoil_conformance.report.events import NotRun, Untestable
from counterfoil_conformance.run import RunOptions
from counterfoil_conformance.wire.registry import Context
from counterfoil_conformance.wire.run import _choose, all_checks
from counterfoil_conformance.wire.session import Session
from counterfoil_conformance.wire.target import load_target, parse_target

FULL = """
base_url = "http://127.0.0.1:8000"
prefix = "/v1/models/demo"
token = "secret"
exclusive = false
[limits]
max_queue = 4
job_ttl_ms = 2000
max_completed = 5
timeout_ms = 3000
workers = 2
max_body = 1048576
max_connections = 1000
async_enabled = true
[bodies]
quick = '{"images":["aa"]}'
slow = '{"images":["bb"]}'
slow_ms = 800
failing = '{"images":["cc"]}'
crashing = '{"images":["dd"]}'
hanging = '{"images":["ee"]}'
late = '{"images":["ff"]}'
late_ms = 4500
late_failing = '{"images":["gg"]}'
echo = '{"images":["{nonce}"]}'
echo_pointer = "/results/0/data/echo"
[dialect]
running_budget = true
public = ["/healthz", "/ready", "/openapi.json"]
[metrics]
depth = "jobs_depth"
[process]
start = "serve"
stop = "stop it"
kill = ""
[adapter]
headers = { "X-Tenant" = "a" }
body = "/data"
fields = { job_id = "id" }
states = { done = "succeeded" }
rewritten_urls = true
[tolerance]
ms = 250
"""


def test_every_key_of_the_format_is_read(tmp_path):
    file = tmp_path / "target.toml"
    file.write_text(FULL)
    target = load_target(file)
    assert target.limits.max_queue == 4
    assert target.bodies.late_ms == 4500
    assert target.dialect.public == ("/healthz", "/ready", "/openapi.json")
    assert target.adapter.headers == {"X-Tenant": "a"}
    assert target.tolerance.ms == 250.0
    assert target.exclusive is False
    assert target.has("bodies.slow") and not target.has("process.kill")
    assert target.missing(("token", "process.kill", "limits.workers")) == ("process.kill",)


def test_a_url_on_the_command_line_wins_and_its_path_is_part_of_the_prefix(tmp_path):
    file = tmp_path / "target.toml"
    file.write_text(FULL)
    target = load_target(file, "https://gateway:8443/deep/")
    assert (target.host, target.port, target.is_tls) == ("gateway", 8443, True)
    assert target.base_url == "https://gateway:8443"
    assert target.prefix == "/deep/v1/models/demo"


def test_everything_is_optional():
    target = parse_target({"base_url": "http://h:1"})
    assert target.exclusive
    assert target.limits.max_queue is None
    assert not target.has("bodies.quick")


@pytest.mark.parametrize(
    ("data", "key", "allowed"),
    [
        ({"basse_url": "http://h"}, "basse_url", "one of base_url"),
        ({"limits": {"max_quue": 4}}, "limits.max_quue", "max_queue"),
        ({"limits": {"max_queue": "4"}}, "limits.max_queue", "an integer"),
        ({"limits": {"max_queue": True}}, "limits.max_queue", "an integer"),
        ({"limits": {"job_ttl_ms": -1}}, "limits.job_ttl_ms", "0 to"),
        ({"limits": {"workers": 0}}, "limits.workers", "1 or more"),
        ({"limits": 3}, "limits", "a table"),
        ({"exclusive": "yes"}, "exclusive", "true or false"),
        ({"prefix": "v1"}, "prefix", "a path"),
        ({"token": "a b"}, "token", "printable"),
        ({"base_url": "ftp://h"}, "base_url", "http://"),
        ({"base_url": "http://h:99999"}, "base_url", "http://"),
        ({"base_url": "http://h/?a=1"}, "base_url", "no query"),
        ({"bodies": {"quick": "{nope"}}, "bodies.quick", "a JSON object"),
        ({"bodies": {"quick": "[1]"}}, "bodies.quick", "a JSON object"),
        ({"bodies": {"echo": "{}"}}, "bodies.echo", "{nonce}"),
        ({"bodies": {"echo_pointer": "results"}}, "bodies.echo_pointer", "pointer"),
        ({"dialect": {"public": "all"}}, "dialect.public", "a list of strings"),
        ({"dialect": {"public": ["healthz"]}}, "dialect.public", "begin with /"),
        ({"adapter": {"headers": {"X": 1}}}, "adapter.headers", "a table of strings"),
        ({"file": "x"}, "file", "one of"),
    ],
)
def test_a_bad_key_is_refused_by_name_value_and_what_is_allowed(data, key, allowed):
    with pytest.raises(UsageError) as refusal:
        parse_target(data, "t.toml")
    assert key in str(refusal.value)
    assert allowed in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_file_that_is_missing_or_no_toml_is_a_usage_error(tmp_path):
    with pytest.raises(UsageError, match="No such file"):
        load_target(tmp_path / "none.toml")
    file = tmp_path / "bad.toml"
    file.write_text("limits = [")
    with pytest.raises(UsageError, match="not TOML"):
        load_target(file)


def verdicts_without(*keys):
    """What is told before the first request of a target file that lacks these keys."""
    data = tomllib.loads(FULL) | {"exclusive": True}
    for key in keys:
        section, _, name = key.partition(".")
        data = {**data, section: {k: v for k, v in data.get(section, {}).items() if k != name}}
    told = []
    chosen = _choose(all_checks().values(), parse_target(data), RunOptions(), told.append)
    return {check.name for check in chosen}, told


NEEDED = sorted({key for check in all_checks().values() for key in check.needs})


@pytest.mark.parametrize("key", [key for key in NEEDED if "." in key])
def test_a_key_left_out_is_named_by_the_clauses_that_need_it_and_by_no_other(key):
    full, _ = verdicts_without()
    left, told = verdicts_without(key)
    named = {event.clause for event in told if isinstance(event, Untestable) and key in event.why}
    lost = {name for name in full - left if key in all_checks()[name].needs}
    assert {clause for name in lost for clause in all_checks()[name].clauses} <= named
    needy = [check for check in all_checks().values() if key in check.needs]
    assert named <= {clause for check in needy for clause in check.clauses}
    for check in all_checks().values():
        # What does not need the key is asked all the same (an `unless` aside).
        if check.name in full and key not in check.needs:
            assert check.name in left


def test_a_target_file_that_says_nothing_leaves_what_needs_nothing():
    told = []
    target = parse_target({"base_url": "http://127.0.0.1:8000"})
    chosen = _choose(all_checks().values(), target, RunOptions(), told.append)
    assert chosen
    assert all(not check.needs for check in chosen)
    clauses = {clause for check in chosen for clause in check.clauses}
    assert {"E4", "E5", "E8", "E9", "G3", "S8", "W7", "H5", "H12", "H13"} <= clauses
    assert all(isinstance(event, Untestable | NotRun) for event in told)


def test_an_empty_list_of_public_routes_is_a_configuration_and_no_lack():
    _, told = verdicts_without()
    assert not [event for event in told if event.clause == "H14"]
    data = tomllib.loads(FULL) | {"dialect": {"public": []}}
    events = []
    session = Session(parse_target(data), RunOptions(), events.append)
    ctx = Context(session, RunOptions(), events.append)
    asyncio.run(all_checks()["public_routes_are_public"].run(ctx))
    assert [(event.clause, event.applies) for event in events] == [("H14", False)]


def test_a_path_in_the_url_is_part_of_the_prefix_and_of_what_is_shown():
    target = parse_target({"base_url": "http://127.0.0.1:8000/v1/", "prefix": "/models/m"})
    assert target.prefix == "/v1/models/m"
    assert target.base_url == "http://127.0.0.1:8000"
    assert target.subject == "http://127.0.0.1:8000/v1"
