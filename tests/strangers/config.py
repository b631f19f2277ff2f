"""Every limit of the stranger and every choice that the contract leaves to it.

A choice is a field with its allowed values and the clause that allows it; the command line is made
from the fields, so a variation is said once. The defaults are mostly *not* those of the shipped
server.
"""

import argparse
from dataclasses import dataclass, field, fields
from typing import Any

__all__ = ["Config", "arguments_of", "parse_arguments"]


def _limit(default: Any, meaning: str) -> Any:
    return field(default=default, metadata={"meaning": meaning})


def _choice(*values: Any, clause: str) -> Any:
    """A field that is one of `values` (the first is the default), allowed by `clause`."""
    return field(default=values[0], metadata={"values": values, "meaning": f"see {clause}"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Times are in ms, sizes in bytes; names with `_ms` say so."""

    host: str = _limit("127.0.0.1", "address to listen on")
    port: int = _limit(0, "port to listen on")
    prefix: str = _limit("", "path prefix of /jobs and /infer")
    token: str = _limit("", "bearer token, empty for none")
    fault: str = _limit("", "the seeded fault to carry, empty for none")

    async_enabled: bool = _limit(True, "false: every /jobs route is 404")
    max_queue: int = _limit(4, "admission bound on depth")
    job_ttl_ms: int = _limit(1500, "how long a terminal job is retained")
    max_completed: int = _limit(5, "how many terminal jobs are retained")
    timeout_ms: int = _limit(1500, "job budget, 0 for none")
    workers: int = _limit(2, "threads that run the model")
    max_body: int = _limit(1 << 20, "limit of a request body")
    grace_ms: int = _limit(3000, "how long SIGTERM waits for live jobs")
    hang_ms: int = _limit(60_000, "how long a hanging body runs")
    infer_bound: int = _limit(64, "blocking calls at a time before 429")

    jitter_ms: int = _limit(0, "every answer is late by up to this much (tolerance)")
    pickup_ms: int = _limit(0, "an idle worker looks that much later (tolerance)")
    front: str = _choice("threads", "loop", clause="layout is free")
    error_key: str = _choice("absent", "null", "empty", clause="S6")
    bad_image: str = _choice("item", "422", clause="E6")
    eviction: str = _choice("completion", "submission", "use", clause="R5")
    age_timer: bool = _choice(False, True, clause="R2: on the wire, by age may come earlier")
    refused_sweeps: bool = _choice(False, True, clause="R2: a refused one may")
    ids: str = _choice("job", "uuid", clause="A9 (SHOULD)")
    optional_headers: bool = _choice(True, False, clause="H4 H5 H9 (SHOULD)")
    wrong_method: str = _choice("405", "404", clause="H5")
    head: str = _choice("get", "405", "404", clause="H5")
    options: str = _choice("204", "200", "405", "404", clause="H5")
    zero_wait: str = _choice("default", "now", "422", "400", clause="W5")
    odd_wait: str = _choice("422", "absent", clause="W10")
    bad_images_status: int = _choice(422, 400, clause="E2")
    odd_req_id: str = _choice("422", "safe", clause="E7")
    odd_id: str = _choice("404", "400", clause="E4")
    missing_type: str = _choice("json", "415", clause="E3")
    running_budget: bool = _choice(True, False, clause="T6 (dialect)")
    late_worker: str = _choice("replaced", "held", clause="T3")
    all_failed: str = _choice("status", "500", clause="H11")
    elapsed: str = _choice("stops", "grows", clause="H8 (SHOULD)")
    full_first: bool = _choice(True, False, clause="H12")
    evicted_wait: str = _choice("answer", "404", clause="W7")
    half_close: str = _choice("alive", "gone", clause="W8")
    early: str = _choice("drain", "close", clause="E8")
    keep_alive: bool = _choice(True, False, clause="E8")
    close_after_refusal: bool = _choice(False, True, clause="E8")
    chunked: bool = _choice(False, True, clause="HTTP/1.1")
    json_style: str = _choice("compact", "pretty", "ascii", clause="H: bodies are JSON")
    content_type: str = _choice("plain", "spaced", "upper", clause="H: case and spacing free")
    header_case: str = _choice("title", "lower", "upper", clause="HTTP/1.1")
    texts: str = _choice("ours", "other", clause="H13 (exact texts)")
    urls: str = _choice("plain", "query", clause="H3: work as they are")
    extra_fields: bool = _choice(False, True, clause="H: unknown response fields")
    packets: str = _choice("whole", "split", clause="HTTP/1.1")
    max_line: int = _limit(65_536, "longest request line before 414")


def parse_arguments(words: list[str] | None = None) -> Config:
    """The configuration that a command line asks for."""
    parser = argparse.ArgumentParser(prog="strangers", allow_abbrev=False)
    for each in fields(Config):
        kind = type(each.default)
        parser.add_argument(
            "--" + each.name.replace("_", "-"),
            type=(lambda word: word == "true") if kind is bool else kind,
            choices=each.metadata.get("values"),
            default=each.default,
            help=each.metadata["meaning"],
        )
    return Config(**vars(parser.parse_args(words)))


def arguments_of(config: Config) -> list[str]:
    """The command line that asks for this configuration: only what differs from the defaults."""
    words = []
    for each in fields(Config):
        value = getattr(config, each.name)
        if value != each.default:
            text = str(value).lower() if isinstance(value, bool) else str(value)
            words.append(f"--{each.name.replace('_', '-')}={text}")
    return words
