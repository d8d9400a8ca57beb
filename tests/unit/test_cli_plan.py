"""`plimsoll plan` and `plimsoll snippet`: what a user sees of floors, and the page that shows it."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll.domain.placement.spread_groups import label_key
from plimsoll_testbed.model.hollow.cluster import HollowCluster
from plimsoll_testbed.model.hollow.transport import HollowTransport
from tests.support.builders import node_json, pod_spec_json
from tests.support.cli_environment import MemoryEnvironment, a_cluster, run
from tests.support.floors import spread_over

PAGE = Path(__file__).parents[2] / "docs" / "placement.md"
KEY = label_key(2)


def a_deployment(name: str, replicas: int, floor: str | None, **spec: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "namespace": "shop"}
    if floor is not None:
        metadata["annotations"] = {"plimsoll.dev/min-on-demand": floor}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": pod_spec_json(cpu="500m", **spec),
            },
        },
    }


@pytest.fixture
def environment() -> MemoryEnvironment:
    """Return a cluster with two spot families, whose nodes placement has labelled."""
    found = MemoryEnvironment()
    early = found.clock.now() - timedelta(minutes=10)
    cluster = HollowCluster(now=early)
    groups = {"od": "on-demand", "c5": "spot-1", "m5": "spot-2"}
    for family, group in groups.items():
        for n in range(2):
            node = node_json(
                f"{family}-{n}",
                capacity="on-demand" if family == "od" else "spot",
                labels={"node.kubernetes.io/instance-type": f"{family}.large", KEY: group},
            )
            del node["status"]["conditions"]  # the cluster's own to say
            cluster.join(node, now=early)
    shop = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    cluster.apply(
        [
            shop,
            a_deployment("web", 9, "30%", **spread_over(2)),
            a_deployment("cart", 4, "1"),
            a_deployment("search", 6, None),
        ],
        now=early,
    )
    cluster.step(found.clock.now())
    found.transports["harbor"] = HollowTransport(cluster, found.clock)
    found.registry.add(a_cluster())
    return found


def shown(environment: MemoryEnvironment, *args: str) -> str:
    result = run(environment, *args)
    assert result.exit_code == 0, result.output
    return "\n".join(line.rstrip() for line in result.stdout.splitlines())


@pytest.mark.parametrize(
    "command",
    [
        "plan --cluster harbor",
        "plan --cluster harbor --explain shop/cart",
        "snippet shop/cart --cluster harbor",
    ],
)
def test_the_page_shows_exactly_what_the_command_prints(environment, command):
    assert f"$ plimsoll {command}\n{shown(environment, *command.split())}\n```" in PAGE.read_text()


def test_json_holds_what_the_table_shows(environment):
    said = json.loads(shown(environment, "plan", "--context", "harbor", "--json"))
    web = next(w for w in said["workloads"] if w["workload"] == "Deployment shop/web")
    assert web["ready"] == {"on-demand": 3, "spot": 6}
    assert web["met"]


def test_a_floor_that_does_not_stand_is_a_no(environment):
    environment.transports["harbor"].call(
        "PATCH",
        "/apis/apps/v1/namespaces/shop/deployments/search",
        body={"metadata": {"annotations": {"plimsoll.dev/min-on-demand": "6"}}},
        content_type="application/merge-patch+json",
    )
    assert run(environment, "plan", "--cluster", "harbor").exit_code == 1


def test_the_patch_for_kustomize_names_its_workload(environment):
    patch = yaml.safe_load(
        shown(environment, "snippet", "shop/cart", "--cluster", "harbor", "--form", "kustomize")
    )
    assert patch["metadata"] == {"name": "cart", "namespace": "shop"}
    (constraint,) = patch["spec"]["template"]["spec"]["topologySpreadConstraints"]
    assert constraint["labelSelector"] == {"matchLabels": {"app": "cart"}}


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("plan",), "name the cluster"),
        (("plan", "--cluster", "harbor", "--explain", "shop/search"), "has no on-demand floor"),
        (("snippet", "shop/none", "--cluster", "harbor"), "has no on-demand floor"),
    ],
)
def test_what_cannot_be_answered_says_what_to_do(environment, args, said):
    result = run(environment, *args)
    assert result.exit_code == 2
    assert said in result.output
