"""Write every generated page under `docs/` from the table or the model it comes from.

    python tools/generate_docs.py           write them
    python tools/generate_docs.py --check   name the stale ones and exit 1

A page is an entry in `PAGES`: its path and the function that returns its text. `make test` checks
that none is stale, so a page can only change together with what it is made from.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from counterfoil_conformance.modelling import pages
from counterfoil_conformance.proof.page import what_is_proved_markdown
from counterfoil_spec.contract_page import contract_markdown

ROOT = Path(__file__).resolve().parent.parent

PAGES: Final[dict[str, Callable[[], str]]] = {
    "docs/contract.md": contract_markdown,
    "docs/what-is-proved.md": what_is_proved_markdown,
    "docs/model.md": pages.model_page,
    "docs/state-diagram.md": pages.state_page,
    "docs/state-diagram.svg": pages.state_picture,
    "docs/protocol.md": pages.protocol_page,
    "docs/protocol.svg": pages.lock_picture,
    "docs/defects.md": pages.defects_page,
}


def stale_pages() -> list[str]:
    """The paths whose content is not what their function returns."""
    return [
        path
        for path, text in PAGES.items()
        if not (ROOT / path).is_file() or (ROOT / path).read_text(encoding="utf-8") != text()
    ]


def main() -> int:
    """Write the stale pages, or with `--check` only name them."""
    stale = stale_pages()
    for path in stale:
        print(f"{path}: stale" if "--check" in sys.argv else f"{path}: written")
        if "--check" not in sys.argv:
            (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
            (ROOT / path).write_text(PAGES[path](), encoding="utf-8")
    return int(bool(stale) and "--check" in sys.argv)


if __name__ == "__main__":
    sys.exit(main())
