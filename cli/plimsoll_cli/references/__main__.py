"""Write the references anew, or with `--check` say which are out of date: `make references`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from plimsoll_cli import main as plimsoll
from plimsoll_cli.references import api, commands, names, templates
from plimsoll_simulation.checkout import Checkout
from plimsoll_simulation.scenario import reference

PAGES: Final[Mapping[str, Callable[[Path], str]]] = {
    "api": lambda _: api.render(),
    "annotations": names.render_names,
    "cli": lambda _: commands.render(plimsoll),
    "drills": lambda root: reference.render((root / "docs/reference/drills.md").read_text("utf-8")),
    "iam": templates.render,
    "metrics": names.render_metrics,
}
"""Page under docs/reference -> what makes it. Of `drills` only the tables are made."""


def main(root: Path, *, check: bool) -> int:
    """Write the pages of a checkout; with `check`, return 1 when one is out of date."""
    pages = {root / f"docs/reference/{name}.md": render(root) for name, render in PAGES.items()}
    stale = [
        page for page, text in pages.items() if not page.exists() or page.read_text("utf-8") != text
    ]
    for page in stale:
        sys.stdout.write(f"{page.relative_to(root)}\n")
        if not check:
            page.write_text(pages[page], "utf-8")
    return 1 if stale and check else 0


if __name__ == "__main__":
    sys.exit(main(Checkout.find().root, check="--check" in sys.argv[1:]))
