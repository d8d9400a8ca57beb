"""One self-contained page about a drill, or about the same drill under several responders.

It needs no network and no script to be read: what a mark means is told by style alone on hover and
on focus. The script only closes what was opened with Escape, and unfolds all before printing. The
same reports and histories give the same page, byte for byte.

Python computes what is shown; the templates beside it hold all HTML, and escape whatever a name or
a reason contains.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from plimsoll_console.tokens import tokens
from plimsoll_simulation.output.page import charts, rows
from plimsoll_simulation.output.page.marks import SIGNS
from plimsoll_simulation.output.page.runs import Run
from plimsoll_simulation.output.page.scales import Scale
from plimsoll_simulation.output.page.totals import totals

PACKAGE: Final = "plimsoll_simulation.output.page"
POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
"""The browser itself holds the page to it: nothing is loaded from anywhere."""
HEADINGS: Final[Mapping[str, str]] = {
    "verdict": "Verdict",
    "workloads": "Workloads",
    "nodes": "Nodes",
    "reasons": "Reasons",
    "done": "What was done",
    "capacity": "Capacity",
}
"""The parts of the page, in order."""
LAYOUT: Final[dict[str, object]] = {
    "shown": 40,  # nodes that are drawn openly; more are folded away at first
    "open_rows": 40,  # rows up to which a list is open at first
    "told": 14,  # lines of one mark; all of them stand in the list of what was done
    "reasons_shown": 12,  # reasons beside a node; all of them stand in the list of reasons
}
_BETWEEN_TAGS: Final = re.compile(r">\s*\n\s*<")
"""The line breaks of a template. What names and reasons contain is escaped, so it never matches."""


def page(runs: Sequence[Run], *, description: str = "") -> str:
    """Return the page as HTML.

    Args:
        runs: of the same scenario, one for each responder; they stand side by side.
        description: the scenario's own.
    """
    responders = [str(run.report["responder"]) for run in runs]
    scale = Scale(seconds=max(run.report["seconds"] for run in runs))
    given = LAYOUT | {
        "headings": HEADINGS,
        "title": f"{runs[0].report['drill']}: {' beside '.join(responders)}",
        "columns": len(runs),
        "drill": runs[0].report,
        "who": " beside ".join(responders),
        "description": description,
        "runs": runs,
        "responders": responders,
        "totals": totals([run.report["totals"] for run in runs]),
        "groups": ["group", "capacity", "first asked", "nodes added", "peak", "node hours"],
        "signs": SIGNS,
        "moments": charts.moments(scale),
        "events": rows.events(runs, scale),
        "workloads": rows.workloads(runs, scale),
        "nodes": rows.nodes(runs, scale),
    }
    text = _template().render(policy=POLICY, tokens=Markup(tokens()), **given)  # noqa: S704 - ours
    return _BETWEEN_TAGS.sub("><", text).strip() + "\n"


@cache
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader(PACKAGE, "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.j2")
