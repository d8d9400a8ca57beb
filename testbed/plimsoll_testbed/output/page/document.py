"""One self-contained page about a drill, or about the same drill under several responders.

It needs no network and no script to be read: what a mark means is told by style alone on hover and
on focus. The script only closes what was opened with Escape, and unfolds all before printing. The
same reports and histories give the same page, byte for byte.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Final
from xml.etree import ElementTree as ET

from plimsoll_testbed.output.page import charts, rows, sections
from plimsoll_testbed.output.page.elements import Child, as_html, el
from plimsoll_testbed.output.page.runs import Run
from plimsoll_testbed.output.page.scales import Scale

POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
"""The browser itself holds the page to it: nothing is loaded from anywhere."""
SECTIONS: Final[Mapping[str, str]] = {
    "verdict": "Verdict",
    "workloads": "Workloads",
    "nodes": "Nodes",
    "reasons": "Reasons",
    "done": "What was done",
    "capacity": "Capacity",
}
"""The parts of the page, in order, with their headings."""


def page(runs: Sequence[Run], *, description: str = "") -> str:
    """Return the page as HTML.

    Args:
        runs: of the same scenario, one for each responder; they stand side by side.
        description: the scenario's own.
    """
    first = runs[0].report
    who = " beside ".join(run.report["responder"] for run in runs)
    scale = Scale(seconds=max(run.report["seconds"] for run in runs))
    head = el(
        "head",
        {},
        el("meta", {"charset": "utf-8"}),
        el("meta", {"http-equiv": "Content-Security-Policy", "content": POLICY}),
        el("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}),
        el("meta", {"name": "color-scheme", "content": "light dark"}),
        el("title", {}, f"{first['drill']}: {who}"),
        el("style", {}, _resource("page.css")),
    )
    header = el(
        "header",
        {},
        el("h1", {}, str(first["drill"])),
        el("p", {}, description) if description else None,
        el("p", {"class": "facts"}, f"{who} · rig {first['rig']} · seed {first['seed']}"),
        _navigation(),
    )
    columns = el(
        "div",
        {"class": "cells columns", "aria-hidden": "true"},
        *(el("div", {}, run.report["responder"]) for run in runs),
    )
    main = el(
        "main",
        {},
        _section("verdict", sections.verdicts(runs), sections.totals(runs)),
        el(
            "div",  # the names of the columns stay in view as long as there are columns
            {},
            columns if len(runs) > 1 else None,
            _section(
                "workloads",
                charts.legend(),
                rows.events(runs, scale),
                *rows.workloads(runs, scale),
            ),
            _section("nodes", *rows.nodes(runs, scale)),
        ),
        _section("reasons", *map(sections.reasons, runs)),
        _section("done", *map(sections.done, runs)),
        _section("capacity", *map(sections.capacity, runs)),
    )
    body = el(
        "body",
        {"style": f"--runs:{len(runs)}", "class": "several" if len(runs) > 1 else None},
        charts.patterns(),
        header,
        main,
        el("script", {}, _resource("page.js")),
    )
    return as_html(el("html", {"lang": "en"}, head, body))


@cache
def _resource(name: str) -> str:
    return files("plimsoll_testbed.output.page").joinpath(name).read_text(encoding="utf-8")


def _navigation() -> ET.Element:
    links = (el("a", {"href": f"#{name}"}, heading) for name, heading in SECTIONS.items())
    return el("nav", {"aria-label": "Parts of this page"}, *links)


def _section(name: str, *parts: Child) -> ET.Element:
    title = el("h2", {"id": f"{name}-title"}, SECTIONS[name])
    return el("section", {"id": name, "aria-labelledby": f"{name}-title"}, title, *parts)
