"""Servers as they stand in real life: behind TLS, a gateway, a wrapping of their own."""

import tomllib

import gateway
import pytest
from strangers.config import Config
from strangers.launch import running, target_text

from counterfoil_conformance.errors import HarnessError
from counterfoil_conformance.report.events import Declared, Finding, HarnessFault, Witnessed
from counterfoil_conformance.run import RunOptions
from counterfoil_conformance.wire.run import run
from counterfoil_conformance.wire.target import parse_target

ADAPTER = {
    "headers": dict([gateway.TENANT]),
    "ca_file": str(gateway.CERTIFICATE),
    "body": "/data",
    "fields": {"job_id": "id"},
    "states": {"done": "succeeded"},
    "rewritten_urls": True,
}
ONLY = RunOptions(seed=1, only=frozenset({"A10", "G1", "S6", "W1", "Q2", "H3"}))


def behind_the_gateway(server, url, **changes):
    data = tomllib.loads(target_text(server.config))
    return parse_target(
        {**data, "base_url": url, "prefix": gateway.PREFIX, "adapter": {**ADAPTER, **changes}}
    )


def test_a_correct_server_behind_a_gateway_is_read_through_it_and_not_accused():
    events = []
    with running(Config()) as server, gateway.gateway_to(server.url) as url:
        run(behind_the_gateway(server, url), ONLY, events.append)
    assert not [e for e in events if isinstance(e, HarnessFault)]
    assert not [e for e in events if isinstance(e, Finding) and not e.should]
    seen = {e.clause for e in events if isinstance(e, Witnessed)}
    assert {"A10", "G1", "S6", "W1", "Q2"} <= seen
    assert "H3" in {e.clause for e in events if isinstance(e, Declared)}


def test_a_certificate_that_nobody_vouches_for_is_one_line():
    with running(Config()) as server, gateway.gateway_to(server.url) as url:
        target = behind_the_gateway(server, url, ca_file="")
        with pytest.raises(HarnessError, match=r"(?i)certificate"):
            run(target, ONLY, [].append)
