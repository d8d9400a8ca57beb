"""`plimsoll plan` and `plan snippet`: what a user sees of floors, and the page that shows it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from plimsoll.domain.interruptions import Policy
from plimsoll.domain.placement import Layout, label_key
from tests.support.cli_environment import MemoryEnvironment, a_cluster, run
from tests.support.shop import a_shop

PAGE = Path(__file__).parents[4] / "docs" / "guides" / "on-demand-floors.md"
KEY = label_key(Layout(1, 2))


@pytest.fixture
def environment() -> MemoryEnvironment:
    return a_shop()


def shown(environment: MemoryEnvironment, *args: str) -> str:
    result = run(environment, *args)
    assert result.exit_code == 0, result.output
    return "\n".join(line.rstrip() for line in result.stdout.splitlines())


@pytest.mark.parametrize(
    "command",
    [
        "plan --cluster harbor",
        "plan --cluster harbor --explain shop/cart",
        "plan snippet shop/cart --cluster harbor",
    ],
)
def test_the_page_shows_exactly_what_the_command_prints(environment, command):
    assert f"$ plimsoll {command}\n{shown(environment, *command.split())}\n```" in PAGE.read_text()


def test_json_holds_what_the_table_shows(environment):
    said = json.loads(shown(environment, "plan", "--context", "harbor", "--output", "json"))
    web = next(w for w in said["workloads"] if w["workload"] == "Deployment shop/web")
    assert web["ready"] == {"on-demand": 3, "spot": 6}
    assert web["met"]
    assert web["floor"]["workload"] == "Deployment shop/web"
    assert web["saving"]["spot"] == 6
    assert said["saves"] > 0
    assert {loss["kind"] for loss in said["reserve"]} == {"node", "family", "zone", "all spot"}


def test_json_of_one_workload_holds_that_one_only(environment):
    words = ("plan", "--cluster", "harbor", "--explain", "shop/web", "--output", "json")
    (web,) = json.loads(shown(environment, *words))["workloads"]
    assert web["workload"] == "Deployment shop/web"


def test_a_floor_that_does_not_stand_is_a_no(environment):
    environment.transports["harbor"].call(
        "PATCH",
        "/apis/apps/v1/namespaces/shop/deployments/search",
        body={"metadata": {"annotations": {"plimsoll.dev/min-on-demand": "6"}}},
        content_type="application/merge-patch+json",
    )
    assert run(environment, "plan", "--cluster", "harbor").exit_code == 1


def test_the_page_of_a_plan_draws_every_pod_in_its_node_and_escapes_names(environment, tmp_path):
    page = tmp_path / "plan.html"
    label = {"metadata": {"labels": {"node.kubernetes.io/instance-type": "<b>.large"}}}
    environment.transports["harbor"].call(
        "PATCH", "/api/v1/nodes/c5-0", body=label, content_type="application/merge-patch+json"
    )
    said = run(environment, "plan", "--cluster", "harbor", "--html", str(page))
    drawn = page.read_text()
    assert "no price for <b>.large: its 1 spot nodes" in said.output
    assert "&lt;b&gt;.large" in drawn
    assert "<b>.large" not in drawn
    assert "Every on-demand floor is met." in drawn
    assert drawn.count('class="group-node"') == 12  # six nodes, in the groups of two and of three


def test_the_patch_for_kustomize_names_its_workload(environment):
    patch = yaml.safe_load(
        shown(
            environment,
            "plan",
            "snippet",
            "shop/cart",
            "--cluster",
            "harbor",
            "--form",
            "kustomize",
        )
    )
    assert patch["metadata"] == {"name": "cart", "namespace": "shop"}
    (constraint,) = patch["spec"]["template"]["spec"]["topologySpreadConstraints"]
    assert constraint["labelSelector"] == {"matchLabels": {"app": "cart"}}


def test_a_floor_of_two_thirds_is_kept_by_two_on_demand_groups_and_one_of_spot(environment):
    environment.transports["harbor"].call(
        "PATCH",
        "/apis/apps/v1/namespaces/shop/deployments/search",
        body={"metadata": {"annotations": {"plimsoll.dev/min-on-demand": "66%"}}},
        content_type="application/merge-patch+json",
    )
    lines = shown(environment, "plan", "snippet", "shop/search", "--cluster", "harbor")
    assert lines.startswith("# 6 replicas over 3 groups, 2 of them on-demand, leave at least 4")
    (constraint,) = yaml.safe_load(lines)["topologySpreadConstraints"]
    assert constraint["topologyKey"] == "spread.plimsoll.dev/2-1"
    said = run(environment, "plan", "--cluster", "harbor").output
    assert "spread over 2-1" in said
    assert "would undercut" not in said


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("plan",), "name the cluster"),
        (("plan", "--cluster", "harbor", "--explain", "shop/search"), "has no on-demand floor"),
        (("plan", "snippet", "shop/none", "--cluster", "harbor"), "has no on-demand floor"),
    ],
)
def test_what_cannot_be_answered_says_what_to_do(environment, args, said):
    result = run(environment, *args)
    assert result.exit_code == 2
    assert said in result.output


def test_the_floor_of_the_cluster_counts_where_nobody_states_one(environment):
    environment.registry.update(replace(a_cluster(), policy=Policy(min_on_demand="25%")))
    said = json.loads(run(environment, "plan", "--cluster", "harbor", "--output", "json").stdout)
    assert {w["workload"] for w in said["workloads"]} >= {"Deployment shop/search"}
