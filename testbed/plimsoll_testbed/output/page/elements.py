"""Builds HTML and SVG as a tree, so that whatever a name holds is escaped when it is written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from xml.etree import ElementTree as ET

type Child = ET.Element | str | None
"""None is left out."""
type Attributes = Mapping[str, object]


def el(tag: str, attributes: Attributes | None = None, *children: Child) -> ET.Element:
    """Return an element. An attribute that is None is left out, and one that is True is bare."""
    element = ET.Element(tag)
    for name, value in (attributes or {}).items():
        if value is not None:
            element.set(name, "" if value is True else str(value))
    add(element, *children)
    return element


def add(element: ET.Element, *children: Child) -> None:
    """Put children at the end of an element."""
    for child in children:
        if child is None:
            continue
        if not isinstance(child, str):
            element.append(child)
        elif len(element):
            element[-1].tail = (element[-1].tail or "") + child
        else:
            element.text = (element.text or "") + child


def table(caption: str, head: Iterable[Child], rows: Iterable[Iterable[Child]]) -> ET.Element:
    """Return a table whose first column names its rows."""
    body = el("tbody")
    for row in rows:
        first, *rest = row
        add(body, el("tr", {}, _cell("th", first, scope="row"), *(_cell("td", c) for c in rest)))
    names = el("tr", {}, *(_cell("th", name, scope="col") for name in head))
    return el(
        "div",
        {"class": "scroll"},
        el("table", {}, el("caption", {}, caption), el("thead", {}, names), body),
    )


def _cell(tag: str, child: Child, scope: str | None = None) -> ET.Element:
    return el(tag, {"scope": scope}, child)


def as_html(root: ET.Element) -> str:
    """Return a document as text."""
    return "<!doctype html>\n" + ET.tostring(root, encoding="unicode", method="html") + "\n"
