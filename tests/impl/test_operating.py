"""The pages and files for operators say what is true."""

import re
import tomllib
from pathlib import Path

from counterfoil_server import core as core_module
from counterfoil_server import rules
from counterfoil_server.config import KEYS, Settings, load_settings
from counterfoil_server.core import Core
from counterfoil_server.model_card import read_card
from counterfoil_server.probe_model import ProbeModel

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = (ROOT / "docs" / "operating.md").read_text()
EXAMPLES = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)


def test_the_example_configuration_loads(tmp_path):
    file = tmp_path / "server.toml"
    file.write_text(EXAMPLES[0])
    settings = load_settings({}, {}, file)
    assert settings.async_enabled and settings.prefix == "/v1/models/digits"
    usual = Settings()
    for key in (
        "async_max_queue",
        "async_timeout",
        "async_job_ttl",
        "async_max_completed",
        "grace",
    ):
        assert getattr(settings, key) == getattr(usual, key), "the example shows the defaults"


def test_the_example_description_is_one(tmp_path):
    file = tmp_path / "flowers.toml"
    file.write_text(EXAMPLES[1])
    assert read_card(file).labels == ("daisy", "rose")


def test_every_metric_of_the_page_exists():
    core = Core(Settings(), ProbeModel())
    known = {f"{family.name}" for family in core.metrics.registry.collect()}
    gauges = set(re.findall(r'gauge\("(\w+)"', Path(core_module.__file__).read_text()))
    table = PAGE.split("| metric | meaning |")[1].split("\n\n")[0]
    named = re.findall(
        r"`(\w+)(?:\{[\w,]+\})?`", "\n".join(re.findall(r"^\|([^|]*)\|", table, re.MULTILINE))
    )
    for name in named:
        stem = f"counterfoil_{name.removesuffix('_total')}"
        assert stem in known or name in gauges, name
    assert len(named) > 15


def test_every_key_that_the_page_names_is_a_key():
    keys = {key.name for key in KEYS}
    for example in EXAMPLES[:1]:
        assert tomllib.loads(example).keys() <= keys


def test_the_table_of_limits_names_keys():
    table = PAGE.split("| key of `serve` |")[1].split("\n\n")[0]
    rows = [
        re.findall(r"`(\w+)`", cell) for cell in re.findall(r"\| ([^|]+) \|$", table, re.MULTILINE)
    ]
    named = [name for row in rows for name in row]
    assert len(named) == 8 and set(named) <= {key.name for key in KEYS}


def test_the_proxy_outlasts_the_longest_wait():
    proxy = (ROOT / "deploy" / "nginx.conf").read_text()
    (seconds,) = re.findall(r"proxy_read_timeout (\d+)s", proxy)
    assert int(seconds) * 1000 > max(rules.LONGEST_WAIT_MS, Settings().async_timeout)
    (mebibytes,) = re.findall(r"client_max_body_size (\d+)m", proxy)
    assert int(mebibytes) * 2**20 > Settings().max_body


def test_the_proxy_keeps_inside_what_is_for_operators():
    proxy = (ROOT / "deploy" / "nginx.conf").read_text()
    (kept,) = re.findall(r"location ~ (\S+) \{ return 404; \}", proxy)
    for path in ("metrics", "status", "runner/claim"):
        assert re.match(kept, f"/v1/models/digits/{path}")
    for path in ("jobs", "jobs/job_status", "infer"):
        assert not re.match(kept, f"/v1/models/digits/{path}")
    assert not re.search(r"location\s*=?\s*/(metrics|status)", proxy)


def test_the_unit_waits_longer_than_the_grace():
    unit = (ROOT / "deploy" / "counterfoil.service").read_text()
    (seconds,) = re.findall(r"TimeoutStopSec=(\d+)", unit)
    assert int(seconds) * 1000 > Settings().grace
    (files,) = re.findall(r"LimitNOFILE=(\d+)", unit)
    assert int(files) > Settings().max_connections
