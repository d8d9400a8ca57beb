"""The rights that a cluster gives us are those of the calls that are made: none less, none more.

The whole contract suite of the Kubernetes adapter runs under them (see `conftest.World`).
"""

from __future__ import annotations

import pytest
import yaml

from plimsoll.adapters.kubernetes import CALLS
from plimsoll.domain import names
from plimsoll.domain.errors import Refused

from .conftest import World, machine
from .rights import CLUSTER, documents, grants
from .test_kubernetes_api import INTERRUPTION, WEB, node, pods, workload

TABLE = {(c.verb, c.group, c.resource, c.only_in) for c in CALLS}


def test_what_is_granted_is_what_the_table_of_calls_lists() -> None:
    assert {(g.verb, g.group, g.resource, g.namespace) for g in grants()} == TABLE


def test_nothing_is_granted_twice_and_nothing_by_star() -> None:
    found = [(g.verb, g.group, g.resource) for g in grants()]
    assert len(found) == len(set(found))
    assert "*" not in {part for grant in found for part in grant}


def test_everything_the_table_lists_is_really_asked(world: World) -> None:
    for name in ("shop", names.NAMESPACE):
        world.apply({"kind": "Namespace", "metadata": {"name": name}})
    world.join(machine("a"))
    kinds = ("Deployment", "ReplicaSet", "StatefulSet")
    for kind in kinds:
        world.apply(workload(kind, "web" if kind == "Deployment" else kind.lower(), 3))
    world.wait(60)
    api = world.api
    assert api.acquire("one", 20)
    assert api.acquire("one", 20)
    api.release_lease("one")
    assert api.find_node("i-0000000000000000a", "a") is not None
    api.cordon(node(world), INTERRUPTION)
    world.wait(1)
    api.record(node(world), INTERRUPTION)
    api.out_of_service(node(world))
    world.wait(1)
    for workload_ in api.observe().workload.values():
        api.scale(workload_, 4, "x")
    first, second, *_ = pods(world)
    api.set_deletion_cost(first, 1)
    api.evict(first)
    api.delete(second)
    api.release(node(world))
    assert world.rights.used == {(verb, group, resource) for verb, group, resource, _ in TABLE}


def test_a_missing_right_is_named_with_its_cure(world: World) -> None:
    world.apply({"kind": "Namespace", "metadata": {"name": "shop"}})
    world.apply(workload("Deployment", "web"))
    web = world.api.observe().workload[WEB]
    world.rights.granted = [g for g in world.rights.granted if g.verb != "patch"]
    with pytest.raises(Refused, match=r"patch apps/deployments in cluster shop.*infra/cluster"):
        world.api.scale(web, 3, None)


def test_the_lease_of_another_namespace_or_name_is_out_of_reach() -> None:
    lease = [g for g in grants() if g.resource == "leases"]
    assert {g.namespace for g in lease} == {names.NAMESPACE}
    assert {g.verb: g.names for g in lease if g.names} == {
        "get": {names.LEASE},
        "update": {names.LEASE},
    }


def test_roles_are_bound_to_the_group_and_to_nobody_else() -> None:
    bindings = [d for d in documents() if d["kind"].endswith("Binding")]
    assert len(bindings) == 2
    for binding in bindings:
        assert [(s["kind"], s["name"]) for s in binding["subjects"]] == [("Group", "plimsoll")]


def test_one_command_applies_every_file_beside_it() -> None:
    listed = yaml.safe_load((CLUSTER / "kustomization.yaml").read_text())["resources"]
    there = {f.name for f in CLUSTER.glob("*.yaml")} - {"kustomization.yaml"}
    assert set(listed) == there
    (namespace,) = yaml.safe_load_all((CLUSTER / "namespace.yaml").read_text())
    assert namespace["metadata"]["name"] == names.NAMESPACE
