"""The tables of the drill reference, made from what validates a scenario.

A page holds each table between two comments, `<!-- table: NAME -->` and `<!-- end -->`; what stands
between them is replaced, everything else is left as it was written. So the page cannot say anything
that the schema does not. `make references` writes them anew.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from plimsoll_simulation.scenario.capabilities import RIGS
from plimsoll_simulation.scenario.faults import FAULTS
from plimsoll_simulation.scenario.kinds import KINDS
from plimsoll_simulation.scenario.scenario import DrillFile
from plimsoll_simulation.scenario.selectors import GroupSelector, Selector
from plimsoll_simulation.scenario.timeline import ENTRIES
from plimsoll_simulation.scenario.validation import Rules, limits, resolved, schema, words_for

_TABLE: Final = re.compile(r"(<!-- table: ([a-z]+) -->\n).*?(<!-- end -->)", re.DOTALL)
_REFERENCES: Final[Mapping[str, str]] = {
    "Duration": "duration",
    "DurationOrRange": "duration, or a range of two",
    "Quantity": "quantity",
    "Selector": "[nodes](#nodes-of-a-notice)",
    "GroupSelector": "[node groups](#nodes-of-a-fault)",
    "Entry": "[entries](#entries-of-the-timeline)",
}
"""What has a section of its own, or needs no more words."""


def render(page: str) -> str:
    """Return a page with its tables made anew.

    Raises:
        KeyError: it asks for a table that there is not.
    """
    return _TABLE.sub(lambda found: f"{found[1]}\n{_TABLES[found[2]]()}\n{found[3]}", page)


def fields(rules: Rules, path: str = "") -> Iterator[tuple[str, Rules]]:
    """Yield every mapping of the scenario's schema that has fields, with its path: outer ones first."""
    if _target(rules) in _REFERENCES:
        return
    rules = _resolved(rules)
    if rules.get("properties"):
        yield path, rules
    for name, field in rules.get("properties", {}).items():
        yield from fields(field, f"{path}.{name}" if path else name)
    if "items" in rules:
        yield from fields(rules["items"], f"{path}[]")
    if isinstance(rules.get("additionalProperties"), Mapping):
        yield from fields(rules["additionalProperties"], f"{path}.*")


def _target(rules: Rules) -> str:
    return str(rules.get("$ref", "")).rpartition("/")[2]


def _resolved(rules: Rules) -> Rules:
    return resolved(rules, schema(DrillFile))


def _scenario() -> str:
    return "\n".join(
        _section(f"`{path}`" if path else "The file", rules)
        for path, rules in fields(schema(DrillFile))
    )


def _entries() -> str:
    return "\n".join(
        _section(f"`{path}`", rules)
        for name, model in ENTRIES.items()
        for path, rules in fields(schema(model), name)
    )


def _selectors() -> str:
    selectors = {"Nodes of a notice": Selector, "Nodes of a fault": GroupSelector}
    return "\n".join(_section(title, schema(model)) for title, model in selectors.items())


def _faults() -> str:
    rigs = list(RIGS)
    rows = [
        (
            f"`{name}`",
            _codes([*sorted(fault.needs), "for"]),
            _codes(sorted(fault.takes)),
            *("yes" if rig in fault.rigs else "no" for rig in rigs),
        )
        for name, fault in FAULTS.items()
    ]
    tables = [_table(("fault", "needs", "may have", *rigs), rows)]
    for rig, capabilities in RIGS.items():
        if capabilities.services:
            names = _codes(sorted(capabilities.services))
            tables.append(f"On the rig `{rig}`, `service` is one of {names}.\n")
    return "\n".join(tables)


def _kinds() -> str:
    return _table(("kind", "apiVersion"), [(kind, f"`{KINDS[kind]}`") for kind in sorted(KINDS)])


_TABLES: Final[Mapping[str, Callable[[], str]]] = {
    "scenario": _scenario,
    "entries": _entries,
    "selectors": _selectors,
    "faults": _faults,
    "kinds": _kinds,
}


def _section(title: str, rules: Rules) -> str:
    required = rules.get("required", ())
    rows = [
        (
            f"`{name}`" + (" (required)" if name in required else ""),
            _value(field),
            _resolved(field).get("description", ""),
        )
        for name, field in rules["properties"].items()
    ]
    more = rules.get("additionalProperties")
    if isinstance(more, Mapping):
        rows.append(("any other", _value(more), _resolved(more).get("description", "")))
    description = rules.get("description", "")
    about = f"{description}\n\n" if description else ""
    return f"### {title}\n\n{about}{_table(('field', 'value', 'meaning'), rows)}"


def _value(rules: Rules) -> str:
    """Return in words what a field may hold."""
    if _target(rules) in _REFERENCES:
        return _REFERENCES[_target(rules)]
    rules = _resolved(rules)
    if "const" in rules:
        return f"`{rules['const']}`"
    if "enum" in rules:
        return _codes(map(str, rules["enum"]))
    if rules["type"] == "array":
        return ", ".join([f"list of {_value(rules['items']).removeprefix('a ')}", *limits(rules)])
    more = rules.get("additionalProperties")
    if rules["type"] == "object" and isinstance(more, Mapping) and "properties" not in rules:
        return f"mapping of names to {_value(more).removeprefix('a ')}"
    return words_for(rules, schema(DrillFile))


def _codes(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(
        f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in line)} |\n"
        for line in lines
    )
