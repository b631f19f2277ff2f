"""The Ledger tab in Locust's web UI.

Locust lets a locustfile add a tab, but only with a table in it; the tab's table has the live
invariants, and a few lines of script put the Ledger page (charts, and the verdict once there is
one) into the tab beside it. The page is also at `/ledger` by itself. Only the master, or the only
process, has a web UI, and it gathers the history of all workers, so the tab shows the whole run.
"""

import json
from typing import Any, Final

from flask import Blueprint, Response, request
from locust.env import Environment

from counterfoil_load.live import INVARIANTS, LiveLedger
from counterfoil_load.page import body_html, document_html
from counterfoil_load.stage import Stage

__all__ = ["LedgerTab", "add_ledger_tab"]

_KEY: Final = "ledger"

_REFRESH: Final = """<script>
setInterval(async () => {
  try {
    const answer = await fetch("/ledger/body");
    document.getElementById("ledger").innerHTML = await answer.text();
  } catch { /* the run has ended and Locust with it: keep the last picture */ }
}, 2000);
</script>"""

# Locust's page is a React app; its tab panel is found by the table that Locust puts into it.
_INTO_THE_TAB: Final = """<script>
setInterval(() => {
  const open = new URLSearchParams(location.search).get("tab") === "ledger";
  const frame = document.getElementById("counterfoil-ledger");
  if (!open) { if (frame) frame.remove(); return; }
  const table = document.querySelector("table");
  if (frame || !table) return;
  const made = document.createElement("iframe");
  made.id = "counterfoil-ledger";
  made.src = "/ledger";
  made.title = "Ledger";
  made.style = "width:100%;height:1100px;border:0;margin-top:16px;background:#fff";
  table.parentElement.insertAdjacentElement("afterend", made);
}, 300);
</script></body>"""


class LedgerTab:
    """Folds what the stage gathers, and renders it when asked."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._live = LiveLedger()
        self._folded = 0

    def live(self) -> LiveLedger:
        """The fold of everything gathered so far; starts again with each run."""
        history = self._stage.gather()
        if len(history) < self._folded:
            self._live, self._folded = LiveLedger(), 0
        self._live.learn(history[self._folded :])
        self._folded = len(history)
        return self._live

    def body(self) -> str:
        """The Ledger page's content."""
        bound = self._stage.target.limits.max_queue
        return body_html(self.live(), self._stage.verdict, bound)

    def rows(self) -> list[dict[str, Any]]:
        """The tab's table: one row per live invariant, and the verdict."""
        live = self.live()
        rows = [
            {
                "clause": clause,
                "invariant": sentence,
                "state": "BROKEN" if live.breaches.get(clause) else "holds",
            }
            for clause, sentence in INVARIANTS.items()
        ]
        verdict = self._stage.verdict
        told = f"exit {verdict.exit}" if verdict is not None else f"running ({self._stage.phase})"
        return [*rows, {"clause": "verdict", "invariant": "the whole history", "state": told}]


def add_ledger_tab(environment: Environment, stage: Stage) -> None:
    """Add the tab, its table, and the page it shows."""
    tab = LedgerTab(stage)
    routes = Blueprint("counterfoil", __name__)

    @routes.route("/ledger")
    def page() -> str:
        return document_html("Counterfoil: ledger", tab.body(), _REFRESH)

    @routes.route("/ledger/body")
    def body() -> str:
        return tab.body()

    def extend(response: Response) -> Response:
        if request.path == "/stats/requests" and response.is_json:
            extended = [{"key": _KEY, "data": tab.rows()}]
            response.set_data(json.dumps({**response.get_json(), "extended_stats": extended}))
        elif request.path == "/" and response.mimetype == "text/html" and not response.is_streamed:
            page = response.get_data(as_text=True)
            response.set_data(page.replace("</body>", _INTO_THE_TAB))
        return response

    web_ui = environment.web_ui
    web_ui.app.register_blueprint(routes)
    web_ui.app.after_request(extend)
    web_ui.template_args["extended_tabs"] = [{"title": "Ledger", "key": _KEY}]
    columns = [{"key": key, "title": key.capitalize()} for key in ("clause", "invariant", "state")]
    web_ui.template_args["extended_tables"] = [{"key": _KEY, "structure": columns}]
