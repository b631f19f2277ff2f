"""What an operator sees: the page, the live invariants, and what is never shown."""

import html.parser
import os
import shutil
import subprocess

import pytest

from counterfoil_server.audit import audit
from counterfoil_server.ledger import JobLedger, Limits, State


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.ids, self.outside, self.scripts, self.open = {}, [], 0, []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.open.append(attrs.get("id"))
        self.scripts += tag == "script"
        self.outside += [attrs[name] for name in ("src", "href") if name in attrs]

    def handle_endtag(self, tag):
        if self.open:
            self.open.pop()

    def handle_data(self, data):
        for name in filter(None, self.open):
            self.ids[name] = self.ids.get(name, "") + data


def test_the_page_shows_jobs_and_limits_and_no_payload(serve):
    client = serve(async_max_queue=7)
    job_id = client.admitted("a-secret-picture", req_id="<script>x</script>")
    client.ended(job_id)
    answer = client.get("/status")
    assert answer.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    text = answer.content.decode()
    page = Page(text)
    assert page.ids["verdict"] == "All live invariants hold."
    assert page.ids["state"] == "ready"
    assert job_id in page.ids["jobs"] and "done" in page.ids["jobs"]
    assert "0 of 7" in page.ids["now"]
    assert page.scripts == 0 and page.outside == []
    assert "secret" not in text


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium")
def test_a_real_browser_shows_it_and_complains_of_nothing(serve, tmp_path):
    client = serve()
    job_id = client.admitted("x")
    client.ended(job_id)
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"]
    done = subprocess.run(
        ["chromium", *options, "--dump-dom", f"{client.server.url}/status"],
        check=True,
        capture_output=True,
        text=True,
        timeout=180,
        env={**os.environ, "HOME": str(tmp_path)},
    )
    page = Page(done.stdout)
    assert page.ids["verdict"] == "All live invariants hold."
    assert job_id in page.ids["jobs"]
    assert "CONSOLE" not in done.stderr, "as it would say of a blocked style"


def test_the_page_is_behind_the_token(serve):
    assert serve(token="t").get("/status").status == 401


def test_a_broken_ledger_is_seen_and_counted(serve):
    client = serve()
    job_id = client.admitted("x")
    client.ended(job_id)
    job = client.core.ledger._jobs[job_id]
    job.seen = job.seen._replace(error="torn", completed_at=-1)
    page = Page(client.get("/status").content.decode())
    assert "S6" in page.ids["verdict"] and "S7" in page.ids["verdict"]
    value = client.core.metrics.registry.get_sample_value
    assert value("counterfoil_invariant_violations_total", {"clause": "S6"}) == 1


def test_the_audit_passes_a_sound_ledger_and_names_each_fault():
    ledger = JobLedger(Limits(max_queue=3))
    ids = [ledger.submit("t", "p") for _ in range(3)]
    ledger.start(ids[0])
    ledger.finish(ids[1], "r")
    ledger.fail(ids[2], "e")
    assert audit(ledger) == []
    faults = {
        "S6": {"result": "r"},
        "S7": {"completed_at": 5},
    }
    running = ledger._jobs[ids[0]]
    sound = running.seen
    for clause, change in faults.items():
        running.seen = sound._replace(**change)
        assert {violation.clause for violation in audit(ledger)} == {clause}
    running.seen = sound._replace(state=State.DONE, completed_at=sound.submitted_at)
    assert {violation.clause for violation in audit(ledger)} == {"S6"}
    running.seen = sound
    ledger._depth = 4
    assert {violation.clause for violation in audit(ledger)} == {"A2"}
