"""What the server writes down can be judged, and what is logged ties a job to its request."""

import json
import logging
import threading
from pathlib import Path

import pytest

from counterfoil_conformance.cli import main
from counterfoil_conformance.oracle.history import load_history
from counterfoil_conformance.oracle.judge import judge
from counterfoil_conformance.oracle.setting import Setting
from counterfoil_server.config import Settings
from counterfoil_server.core import Core
from counterfoil_server.logs import set_up_logging
from counterfoil_server.probe_model import ProbeModel

LIMITS = {"async_max_queue": 4, "async_job_ttl": 300, "async_max_completed": 5}


def judged(path):
    history = load_history(path)
    assert not history.bad_lines
    setting = Setting(
        max_queue=4, job_ttl_ms=300, max_completed=5, wire=False, visible=True, tolerance_ms=1000
    )
    return history.calls, judge(history.calls, setting)


@pytest.fixture
def recorded(serve, tmp_path):
    """A log of some seconds of mixed use by several clients."""
    path = tmp_path / "events.jsonl"
    client = serve(event_log=str(path), async_timeout=400, **LIMITS)

    def use(number):
        mine = type(client)(client.server)
        kinds = ("x", "delay:20", "fail:no", "crash", "hang")
        for turn in range(12):
            answer = mine.submit(kinds[(turn + number) % 5], f"{number}-{turn}")
            if answer.status == 202:
                job_id = answer.json["job_id"]
                mine.get(f"/jobs/{job_id}")
                mine.get(f"/jobs/{job_id}/wait?timeout={50 + 200 * (turn % 3)}")
                mine.get(f"/jobs/{job_id}/result")

    threads = [threading.Thread(target=use, args=(number,)) for number in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    client.until(lambda: client.core.ledger.depth() == 0)
    client.core.log.close()
    return path


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_on_a_full_disk_the_log_ends_and_the_server_goes_on(serve, caplog):
    client = serve(event_log="/dev/full")
    client.ended(client.admitted("x"))
    client.until(lambda: "the event log ends here" in caplog.text)
    log = client.core.log
    before = log._lines.qsize()
    for _ in range(5):
        assert client.ended(client.admitted("x"))["state"] == "done"
    assert log._lines.qsize() == before, "what cannot be written is not kept"
    log.close()


def test_the_log_of_the_shipped_server_is_a_history_without_fault(recorded):
    calls, judgement = judged(recorded)
    assert {call.op for call in calls} >= {"submit", "start", "finish", "fail", "timeout", "wait"}
    assert len(calls) > 60
    assert judgement.accusations == ()
    assert judgement.witnesses["S4"] > 0
    assert "Mi0w" not in recorded.read_text(), "pictures are not written down"


def test_the_command_that_operators_are_told_accepts_it(recorded, capsys):
    words = "--ledger --every-call --every-transition --fresh --tolerance-ms 1000"
    limits = "--max-queue 4 --job-ttl-ms 300 --max-completed 5"
    assert main(["judge", str(recorded), *words.split(), *limits.split()]) == 0
    assert "0 lines" not in capsys.readouterr().out


def test_a_log_that_was_tampered_with_is_accused(recorded):
    lines = [json.loads(line) for line in recorded.read_text().splitlines()]
    read = next(line for line in reversed(lines) if line["reply"].get("status") == "ready")
    read["reply"]["result"] = "0" * 16
    recorded.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert judged(recorded)[1].accusations


def test_a_job_that_fails_is_logged_with_its_request_and_trace(serve, caplog):
    caplog.set_level(logging.INFO)
    client = serve(token="s3cret")
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    headers = {"authorization": "Bearer s3cret", "x-request-id": "r-1", "traceparent": trace}
    job_id = client.send("POST", "/jobs", {"images": ["ZmFpbDpubw=="]}, headers).json["job_id"]
    client.get(f"/jobs/{job_id}/wait", headers=headers)
    client.until(lambda: "job failed" in caplog.text)
    record = next(one for one in caplog.records if one.getMessage() == "job failed")
    assert (record.job_id, record.request_id) == (job_id, "r-1")
    assert record.trace_id == "4bf92f3577b34da6a3ce929d0e0e4736"
    assert "s3cret" not in caplog.text


@pytest.mark.parametrize("trace", ["", "nonsense", "00-" + "0" * 32 + "-00f067aa0ba902b7-01"])
def test_a_trace_that_is_none_is_left_out(serve, trace, caplog):
    caplog.set_level(logging.INFO)
    client = serve()
    headers = {"traceparent": trace}
    job_id = client.send("POST", "/jobs", {"images": ["ZmFpbDpubw=="]}, headers).json["job_id"]
    client.ended(job_id)
    client.until(lambda: "job failed" in caplog.text)
    assert not any(hasattr(record, "trace_id") for record in caplog.records)


def test_a_line_of_the_log_is_json_when_asked_for(capsys):
    root = logging.getLogger()
    before, level = root.handlers, root.level
    try:
        set_up_logging(Settings(log_format="json"))
        logging.getLogger("counterfoil_server.x").info("hello", extra={"job_id": "job_1"})
        logging.getLogger("sanic.error").error("<Request> body not consumed.")
        (line,) = capsys.readouterr().err.splitlines()
        entry = json.loads(line)
        assert (entry["event"], entry["job_id"], entry["level"]) == ("hello", "job_1", "info")
        assert entry["timestamp"].endswith("Z")
    finally:
        root.handlers, root.level = before, level


def test_a_log_that_cannot_be_opened_is_refused(tmp_path):
    with pytest.raises(OSError, match="No such file"):
        Core(Settings(event_log=str(tmp_path / "none" / "log")), ProbeModel())
