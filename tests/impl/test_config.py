"""Where a value may be set, which place wins, and the one line for a wrong one."""

import pytest

from counterfoil_server.config import KEYS, ConfigError, Settings, load_settings


def test_every_key_is_a_field_and_every_field_a_key():
    assert [key.name for key in KEYS if not hasattr(Settings(), key.name)] == []
    assert len({key.name for key in KEYS}) == len(Settings.__dataclass_fields__)


def test_the_five_keys_keep_their_defaults():
    settings = Settings()
    assert settings.async_enabled is False
    assert settings.async_timeout == settings.async_job_ttl == 300_000
    assert (settings.async_max_queue, settings.async_max_completed) == (16, 100)


def test_a_flag_wins_over_the_environment_and_that_over_the_file(tmp_path):
    file = tmp_path / "c.toml"
    file.write_text('async_max_queue = 1\nasync_job_ttl = 1\nworkers = 1\nmodel = "probe"\n')
    environment = {"COUNTERFOIL_ASYNC_MAX_QUEUE": "2", "COUNTERFOIL_ASYNC_JOB_TTL": "2"}
    settings = load_settings({"async_max_queue": "3"}, environment, file)
    assert (settings.async_max_queue, settings.async_job_ttl, settings.workers) == (3, 2, 1)
    assert settings.model == "probe" and settings.async_max_completed == 100


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"async_max_queue": "many"}, ("async_max_queue", "'many'", "a whole number")),
        ({"async_timeout": "-1"}, ("async_timeout", "'-1'", "from 0 to")),
        ({"port": "70000"}, ("port", "'70000'", "from 0 to 65535")),
        ({"async_enabled": "yes"}, ("async_enabled", "'yes'", "true or false")),
        ({"runner": "mine"}, ("runner", "'mine'", "internal, external, both")),
        ({"prefix": "v1"}, ("prefix", "'v1'")),
        ({"prefix": "/v1/"}, ("prefix", "'/v1/'")),
        ({"prefix": "/v1/../x"}, ("prefix", "'/v1/../x'")),
        ({"prefix": "/."}, ("prefix", "'/.'")),
        ({"model_card": "x.toml"}, ("model_card", "'x.toml'", "a model that is a file")),
        ({"processes": "2"}, ("processes", "'2'", "1 (the ledger is in memory")),
        ({"token": "a b"}, ("token", "(hidden)", "printable ASCII")),
        ({"host": "0.0.0.0"}, ("host", "'0.0.0.0'", "without a token")),
        ({"host": "example.org"}, ("host", "without a token")),
        ({"runner": "both"}, ("runner", "runner_token")),
        (
            {"runner": "both", "token": "t", "runner_token": "t"},
            ("runner_token", "anything but the value of token"),
        ),
    ],
)
def test_a_wrong_value_is_one_line_with_key_value_and_what_is_allowed(flags, words):
    with pytest.raises(ConfigError) as caught:
        load_settings(flags, {}, None)
    line = str(caught.value)
    assert "\n" not in line and all(word in line for word in words), line


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("async_max_queue = 'x'", ("async_max_queue", "'x'")),
        ("async_max_queue = 1.5", ("async_max_queue", "1.5")),
        ("async_max_queue = true", ("async_max_queue", "True")),
        ("async_enabled = 1", ("async_enabled", "1")),
        ("asynch = 1", ("asynch", "no such key", "async_enabled")),
        ("= nonsense", ("is not TOML",)),
        (None, ("cannot be read",)),
    ],
)
def test_a_wrong_file_is_one_line_too(tmp_path, text, words):
    file = tmp_path / "c.toml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_settings({}, {}, file)
    assert all(word in str(caught.value) for word in words)


def test_a_variable_that_all_but_names_a_key_is_refused_and_others_are_left_alone():
    with pytest.raises(ConfigError, match="COUNTERFOIL_ASYNC_ENABLED"):
        load_settings({}, {"COUNTERFOIL_ASYNC_ENABLD": "true"}, None)
    with pytest.raises(ConfigError, match="allowed: COUNTERFOIL_TOKEN"):
        load_settings({}, {"COUNTERFOIL_TOKENS": "t"}, None)
    others = {
        "COUNTERFOIL_LOAD_FAULTS": "all",
        "COUNTERFOIL_SANIC_X": "1",
        "COUNTERFOIL": "y",
        "ASYNC_ENABLD": "z",
    }
    others |= {"COUNTERFOIL_PID": "1", "COUNTERFOIL_PORT_8000_TCP": "tcp://10.0.0.1:8000"}
    assert load_settings({}, others, None).token == ""


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "::1", "localhost"])
def test_loopback_needs_no_token(host):
    assert load_settings({"host": host}, {}, None).host == host


def test_a_prefix_may_hold_dots():
    assert load_settings({"prefix": "/v1.2/..x/a."}, {}, None).prefix == "/v1.2/..x/a."


def test_with_a_token_any_address_is_allowed():
    assert load_settings({"host": "0.0.0.0", "token": "t"}, {}, None).host == "0.0.0.0"


def test_the_bound_may_be_anything_whole():
    settings = load_settings({"async_max_queue": "-3", "async_max_completed": "-1"}, {}, None)
    assert settings.limits == (-3, 300_000, -1)
