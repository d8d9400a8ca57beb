"""The boards of Grafana are those that their code makes, and name only what Plimsoll emits."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from infra.grafana.__main__ import BOARDS, FOLDER, rendered
from infra.grafana.alarms import ALARMS
from plimsoll.adapters.clock import SystemClock
from plimsoll.domain.reports import Metric
from plimsoll.observability import NAMESPACE
from plimsoll_agent.output import Output
from plimsoll_batch.domain.queue_metrics import QueueMetric
from plimsoll_cli.batch.list_queues import GAUGES
from plimsoll_console.hosted.routes import ROUTES
from plimsoll_service.domain.metrics import ServiceMetric
from tests.package.template import ROOT, template

STACKS = {"pipeline": "template.yaml", "fleet": "template.yaml", "agent": "service.yaml", "queues": "batch.yaml"}  # fmt: skip
CONSOLE = re.compile(r"\$\{console\}([^\"]*)")
COUNTED = re.compile(r"\b(?:count|add_metric)\(\s*(?:Service)?Metric\.")
NAME = re.compile(r"\b(?:plimsoll|process)_\w+")


@cache
def board(name: str) -> Any:
    return json.loads((FOLDER / f"{name}.json").read_text("utf-8"))


def panels(name: str) -> list[Any]:
    return [panel for panel in board(name)["panels"] if panel["type"] != "row"]


def queried(name: str) -> Iterator[Any]:
    """The CloudWatch queries of a board."""
    for panel in panels(name):
        yield from (target for target in panel["targets"] if "namespace" in target)


def promql(name: str) -> Iterator[str]:
    for panel in panels(name):
        yield from (target["expr"] for target in panel["targets"] if "expr" in target)


@cache
def emitted() -> set[tuple[str, frozenset[str]]]:
    """The metrics that the code counts, each with its dimensions."""
    found = set()
    for file in [*(ROOT / "layers").rglob("*.py"), *(ROOT / "functions").rglob("*.py")]:
        text = file.read_text("utf-8")
        if not COUNTED.search(text):
            continue
        for call in ast.walk(ast.parse(text)):
            match call:
                case ast.Call(
                    func=ast.Attribute(attr="count" | "add_metric"),
                    args=[ast.Attribute(value=ast.Name(id=kind), attr=name), *_],
                    keywords=keywords,
                ):
                    metrics: Any = {"Metric": Metric, "ServiceMetric": ServiceMetric}[kind]
                    dimensions = {"service"} | {
                        "cluster" for word in keywords if word.arg == "cluster"
                    }
                    found.add((str(metrics[name]), frozenset(dimensions)))
                case _:
                    pass
    for each in QueueMetric:
        reason = {"reason"} if each is QueueMetric.GANGS_WAITING else set[str]()
        found.add((str(each), frozenset({"service", "cluster", "queue"} | reason)))
    return found


@pytest.mark.parametrize("name", BOARDS)
def test_a_board_is_what_its_code_makes(name: str):
    assert rendered(name) == (FOLDER / f"{name}.json").read_text("utf-8"), "run: make references"


def test_there_is_no_board_that_nothing_makes():
    assert {file.stem for file in FOLDER.glob("*.json")} == set(BOARDS)


def test_every_metric_of_ours_on_a_board_is_emitted_and_every_emitted_metric_is_on_one():
    shown = {
        (query["metricName"], frozenset(query["dimensions"]))
        for name in BOARDS
        for query in queried(name)
        if query["namespace"] == NAMESPACE
    }
    assert shown <= emitted()
    assert {name for name, _ in shown} == {name for name, _ in emitted()}


def test_metrics_of_aws_are_those_of_alarms_and_what_a_function_takes():
    known = {(alarm.namespace, alarm.metric) for alarm in ALARMS.values()}
    for name in BOARDS:
        for query in queried(name):
            asked = query["namespace"], query["metricName"]
            assert asked[0] == NAMESPACE or asked in known | {("AWS/Lambda", "Duration")}


@pytest.mark.parametrize("name", BOARDS)
def test_queues_and_functions_of_a_board_are_resources_of_its_stack(name: str):
    resources = template(STACKS[name])["Resources"]
    hidden = {v["name"]: v["regex"] for v in board(name)["templating"]["list"] if "regex" in v}
    for resource, pattern in hidden.items():
        assert pattern == f"/^${{stack}}-{resource}-/"
        assert resource.endswith(resources[resource]["Type"].rpartition("::")[2])
    used = {v.removeprefix("$") for query in queried(name) for v in query["dimensions"].values()}
    assert used - {"stack", "*"} == set(hidden)


def test_every_alarm_is_on_one_board_with_its_limit_and_a_link_to_its_heading():
    page = (ROOT / "docs/operate/alarms.md").read_text("utf-8")
    headings = {heading.lower() for heading in re.findall(r"^### (\w+)$", page, re.MULTILINE)}
    linked: Counter[str] = Counter()
    for name in BOARDS:
        for panel in panels(name):
            for link in panel.get("links", []):
                address, _, heading = link["url"].partition("#")
                assert address == "${alarms}"
                assert heading in headings
                linked[heading] += 1
                alarm = next(a for a in ALARMS.values() if a.name.lower() == heading)
                _, limit = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
                assert limit["value"] - alarm.threshold in (0, 1)
                assert any(q["metricName"] == alarm.metric for q in panel["targets"])
    assert linked == Counter(name.lower() for name in ALARMS)


def test_every_metric_of_the_agent_and_the_queues_is_on_a_board_and_no_other():
    families = Output(SystemClock()).registry.collect()
    ours = {f"{f.name}_total" if f.type == "counter" else f.name for f in families}
    agents = {name for query in promql("agent") for name in NAME.findall(query)}
    assert {name for name in ours if name.startswith("plimsoll_")} <= agents <= ours
    assert {name for query in promql("queues") for name in NAME.findall(query)} == set(GAUGES)


def test_links_to_the_console_lead_to_screens_of_it():
    screens = {route.path for route in ROUTES}
    found = {
        path.replace("${__field.labels.cluster}", "{cluster}")
        for name in BOARDS
        for path in CONSOLE.findall(json.dumps(board(name)))
    }
    assert found == {"/c/{cluster}", "/c/{cluster}/storm"}
    assert found <= screens


@pytest.mark.parametrize("name", BOARDS)
def test_every_panel_asks_in_its_title_says_more_and_has_a_unit(name: str):
    for panel in panels(name):
        assert "?" in panel["title"]
        assert panel["description"].endswith(".")
        assert panel["fieldConfig"]["defaults"]["unit"]
