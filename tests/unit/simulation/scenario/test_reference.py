"""The reference of drills: up to date with the schema, complete, and every field of it is played."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll_simulation.measure.report import Report, as_text
from plimsoll_simulation.rigs.simulated.rig import run
from plimsoll_simulation.scenario.drill import read_drill
from plimsoll_simulation.scenario.faults import FAULTS
from plimsoll_simulation.scenario.kinds import KINDS
from plimsoll_simulation.scenario.reference import fields
from plimsoll_simulation.scenario.scenario import DrillFile
from plimsoll_simulation.scenario.selectors import GroupSelector, Selector
from plimsoll_simulation.scenario.timeline import ENTRIES
from plimsoll_simulation.scenario.validation import Rules, resolved, schema

ROOT = Path(__file__).parents[4]
PAGE = ROOT / "docs" / "reference" / "drills.md"
EVERY_FIELD = ROOT / "tests" / "drills" / "every-field.yaml"
NOT_BUILT = {
    "fault.function=placement",
}
"""Values that are refused by name."""


def page() -> str:
    return PAGE.read_text(encoding="utf-8")


@cache
def everything() -> Report:
    return run(read_drill(EVERY_FIELD), responder="plimsoll", seed=5)


def drills() -> Iterator[Mapping[str, Any]]:
    """Yield the drills that the tests play: this one, and the examples (tests/e2e)."""
    yield yaml.safe_load(EVERY_FIELD.read_text())
    for file in (ROOT / "examples").glob("*.yaml"):
        for document in yaml.safe_load_all(file.read_text()):
            if document["kind"] == "Drill":
                yield document


def used(value: Any, rules: Rules, path: str) -> Iterator[str]:
    """Yield every field that a value uses, and its value where there is a choice."""
    name = str(rules.get("$ref", "")).rpartition("/")[2]
    if name == "Entry":
        kind = next(kind for kind in ENTRIES if kind in value)
        yield from used(value, schema(ENTRIES[kind]), kind)
        return
    if name in {"Selector", "GroupSelector"}:
        path = name
    rules = resolved(rules, schema(DrillFile))
    if "enum" in rules:
        yield f"{path}={value}"
    for item in value if isinstance(value, list) else ():
        inner = path if "enum" in resolved(rules["items"], schema(DrillFile)) else f"{path}[]"
        yield from used(item, rules["items"], inner)
    for name, field in value.items() if isinstance(value, dict) else ():
        known = name in rules.get("properties", {})
        inner = f"{path}.{name}" if path else name
        more = rules["properties"][name] if known else rules["additionalProperties"]
        yield inner if known else f"{path}.*"
        yield from used(field, more, inner if known else f"{path}.*")


def offered() -> Iterator[str]:
    """Yield every field of the schema, and the values of those that have a choice."""
    parts = {"": DrillFile, **ENTRIES, "Selector": Selector, "GroupSelector": GroupSelector}
    for root, model in parts.items():
        for path, mapping in fields(schema(model), root):
            for name, reference in mapping["properties"].items():
                field = resolved(reference, schema(DrillFile))
                inner = f"{path}.{name}" if path else name
                yield inner
                items = resolved(field.get("items", {}), schema(DrillFile))
                choices = field.get("enum") or items.get("enum", ())
                yield from (f"{inner}={choice}" for choice in choices)
                if isinstance(field.get("additionalProperties"), dict):
                    yield f"{inner}.*"
            if isinstance(mapping.get("additionalProperties"), dict):
                yield f"{path}.*"


def test_every_field_and_every_choice_of_the_schema_is_used_by_a_drill_that_is_played():
    seen = {path for drill in drills() for path in used(drill, schema(DrillFile), "")}
    elsewhere = {f"fault.fault={name}" for name in FAULTS}  # test_drill_faults plays each of them
    assert sorted(set(offered()) - seen - NOT_BUILT - elsewhere) == []


def test_every_kind_is_used_by_the_drill_of_every_field():
    objects = (EVERY_FIELD.parent / "every-kind.yaml").read_text()
    assert {o["kind"] for o in yaml.safe_load_all(objects)} == set(KINDS)


def test_the_drill_of_every_field_holds_what_it_expects():
    assert everything()["expect"] == {"held": True, "failures": []}


def test_the_page_names_every_field_of_a_report():
    _, _, text = page().partition("\n## The report\n")
    named = {word for row in re.findall(r"^\| (`.*?) \|", text, re.MULTILINE) for word in
             re.findall(r"`(\w+)`", row)}  # fmt: skip
    report = json.loads(as_text(everything()))
    there = set(report) | set(report["totals"])
    for rows in ("workloads", "nodes", "capacity"):
        there |= set(report[rows][0])
    assert sorted(there - named) == []


def test_the_page_lists_every_example():
    listed = set(re.findall(r"\(\.\./\.\./examples/(.+?)\.yaml\)", page()))
    named = {
        file.stem
        for file in (ROOT / "examples").glob("*.yaml")
        if "\nkind: Drill\n" in file.read_text()
    }
    assert listed == named


@pytest.mark.parametrize("harder", [False, True])
def test_the_first_drill_of_the_page_can_be_played(tmp_path: Path, *, harder: bool):
    web, drill, fault = re.findall(r"^```yaml\n(.*?)^```", page(), re.MULTILINE | re.DOTALL)
    timeline = "  timeline:\n"
    (tmp_path / "web.yaml").write_text(web)
    (tmp_path / "drill.yaml").write_text(
        drill.replace(timeline, timeline + fault) if harder else drill
    )
    report = run(read_drill(tmp_path / "drill.yaml"), responder="plimsoll", seed=0)
    assert report["totals"]["pods_killed"] == 0
    assert report["expect"]["held"] is not harder
