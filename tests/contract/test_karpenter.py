"""NodePools, read from a cluster as the simulated rig tells them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from plimsoll.adapters.aws import Aws
from plimsoll.adapters.kubernetes import Response
from plimsoll.adapters.kubernetes.objects import parse_node
from plimsoll.adapters.kubernetes.requests import Requests
from plimsoll.adapters.nodegroups.account import Account
from plimsoll.adapters.nodegroups.karpenter import ABSENT, UNLIMITED, NodePools
from plimsoll.adapters.nodegroups.kind import Access
from plimsoll.domain.errors import Refused
from plimsoll.domain.kubernetes import Node, Requirement, Resources
from plimsoll.domain.node_groups import FIRST_SIGN_WITHIN, NodeGroup, expected_nodes
from plimsoll_simulation.fake_aws.fleet import Fleet
from plimsoll_simulation.fake_aws.karpenter import failed_claim, node_claim, node_pool
from plimsoll_simulation.fake_aws.machines import node_object
from plimsoll_simulation.fake_aws.nodegroups import NodeGroupSpec
from plimsoll_simulation.rigs.simulated.aws import group_of

from .conftest import REGION, T0, FakeClock

POOLS, CLAIMS = "/apis/karpenter.sh/v1/nodepools", "/apis/karpenter.sh/v1/nodeclaims"


class Karpenter:
    """A cluster that serves NodePools and NodeClaims, or refuses to."""

    def __init__(self) -> None:
        self.objects: dict[str, list[Any]] = {POOLS: [], CLAIMS: []}
        self.status = 200
        self.asked = 0

    def call(self, method: str, path: str, **_: object) -> Response:
        assert method == "GET"
        self.asked += 1
        if self.status != 200:
            return Response(status=self.status, body={"message": "no"})
        return Response(status=200, body={"items": self.objects[path], "metadata": {}})


@pytest.fixture
def cluster() -> Karpenter:
    return Karpenter()


@pytest.fixture
def pools(cluster: Karpenter, clock: FakeClock, warnings: list[str]) -> NodePools:
    return NodePools(
        Access(
            account=Account(Aws(REGION), clock),  # asked for the time only
            api=lambda: Requests(transport=cluster, cluster="shop"),
            cluster="shop",
            warn=warnings.append,
        )
    )


def a_spec(**more: Any) -> NodeGroupSpec:
    known: dict[str, Any] = {
        "name": "flexible",
        "kind": "karpenter",
        "capacity": "spot",
        "instance_type": "m5.xlarge",
        "zones": (f"{REGION}a", f"{REGION}b"),
        "size": 2,
        "max": 5,
        "allocatable": {"cpu": "4", "memory": "16Gi"},
    }
    return NodeGroupSpec(**known | more)


def shown(cluster: Karpenter, fleet: Fleet, clock: FakeClock) -> list[Node]:
    """Let the cluster show a fleet, and return its Nodes."""
    now = clock.now()
    cluster.objects[POOLS] = [node_pool(group) for group in fleet.groups.values()]
    cluster.objects[CLAIMS] = [node_claim(machine, now) for machine in fleet.alive()]
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    return [
        parse_node(
            obj
            | {
                "metadata": obj["metadata"] | {"creationTimestamp": machine.ready.isoformat()},
                "status": obj["status"] | ready,
            }
        )
        for machine in fleet.alive()
        if machine.joined
        for obj in [node_object(machine)]
    ]


def a_fleet(clock: FakeClock, **more: Any) -> Fleet:
    fleet = Fleet("shop", [a_spec(**more)], seed=7, now=clock.now())
    fleet.step(clock.now())
    return fleet


def test_what_is_read_is_what_the_simulated_rig_tells(
    pools: NodePools, cluster: Karpenter, clock: FakeClock
) -> None:
    fleet = a_fleet(clock, labels={"team": "shop"})
    fleet.launch("flexible", 1, None, clock.now())
    (read,) = pools.list(shown(cluster, fleet, clock))
    told = group_of(fleet.group("flexible"))
    same = (
        "kind",
        "name",
        "capacity",
        "zones",
        "desired",
        "max_size",
        "instances",
        "instance_types",
        "provisions",
        "refusals",
    )
    for field in same:
        assert getattr(read, field) == getattr(told, field), field
    assert read.template is not None
    assert told.template is not None
    assert read.template.allocatable.cpu == told.template.allocatable.cpu
    for label in ("team", "karpenter.sh/nodepool", "karpenter.sh/capacity-type"):
        assert read.template.labels[label] == told.template.labels[label]


def test_a_new_node_is_as_large_as_the_largest_of_its_node_pool_or_else_of_the_cluster(
    pools: NodePools, cluster: Karpenter, clock: FakeClock
) -> None:
    nodes = shown(cluster, a_fleet(clock, taints=({"key": "team", "effect": "NoSchedule"},)), clock)
    cluster.objects[CLAIMS][1]["status"]["allocatable"]["cpu"] = "32"
    (known,) = cluster.objects[POOLS]
    fresh = {**known, "metadata": {**known["metadata"], "name": "fresh", "uid": "fresh"}}
    cluster.objects[POOLS].append(fresh)
    other = replace(nodes[0], name="other", uid="other", labels={}, instance="i-other")
    large = replace(other, allocatable=replace(other.allocatable, cpu=64_000))
    found = {group.name: group.template for group in pools.list([*nodes, large])}
    for name, cpu in (("flexible", 32_000), ("fresh", 64_000)):
        template = found[name]
        assert template is not None
        assert template.allocatable.cpu == cpu
        assert [taint.key for taint in template.taints] == ["team"]


def test_a_node_pool_of_both_ways_is_two_groups(
    pools: NodePools, cluster: Karpenter, clock: FakeClock
) -> None:
    nodes = shown(cluster, a_fleet(clock), clock)
    (pool,) = cluster.objects[POOLS]
    requirement = pool["spec"]["template"]["spec"]["requirements"][0]
    requirement["values"] = ["spot", "on-demand"]
    found = {group.name: group for group in pools.list(nodes)}
    assert {name: (g.capacity, g.desired) for name, g in found.items()} == {
        "flexible/on-demand": ("on-demand", 0),
        "flexible/spot": ("spot", 2),
    }


def test_an_instance_on_its_way_is_expected_and_an_interrupted_one_is_not_made_anew(
    pools: NodePools, cluster: Karpenter, clock: FakeClock
) -> None:
    fleet = a_fleet(clock)
    nodes = shown(cluster, fleet, clock)
    (group,) = pools.list(nodes)
    assert expected_nodes(group, nodes, clock.now()).upcoming == 0
    gone = [replace(node, ready=False) for node in nodes[:1]] + nodes[1:]
    fleet.launch("flexible", 1, None, clock.now())
    shown(cluster, fleet, clock)
    (group,) = pools.list(nodes)
    assert expected_nodes(group, nodes, clock.now()).upcoming == 1
    fleet.end(nodes[0].instance or "", clock.now())
    fleet.step(clock.now())
    shown(cluster, fleet, clock)
    (group,) = pools.list(gone)
    assert (group.desired, expected_nodes(group, gone[1:], clock.now()).upcoming) == (2, 1)


def test_a_claim_that_was_not_launched_is_expected_until_it_is_refused_or_late(
    pools: NodePools, cluster: Karpenter, clock: FakeClock
) -> None:
    fleet = a_fleet(clock)
    nodes = shown(cluster, fleet, clock)
    words = "creating instance, InvalidAMIID.NotFound: The image id '[ami-1]' does not exist"
    waiting = failed_claim(a_spec(), "new", clock.now(), "")
    waiting["status"] = {}
    cluster.objects[CLAIMS].append(waiting)

    def judged() -> tuple[int, int]:
        (group,) = pools.list(nodes)
        found = expected_nodes(group, nodes, clock.now())
        return found.upcoming, found.overdue

    assert judged() == (1, 0)
    clock.sleep(FIRST_SIGN_WITHIN.total_seconds())
    assert judged() == (1, 1)
    cluster.objects[CLAIMS][-1] = failed_claim(a_spec(), "new", clock.now(), words)
    (group,) = pools.list(nodes)
    assert [refusal.kind for refusal in group.refusals] == ["launch-template-broken"]
    assert judged() == (1, 1)


def test_a_claim_that_is_being_deleted_counts_no_more(
    pools: NodePools, cluster: Karpenter, clock: FakeClock
) -> None:
    nodes = shown(cluster, a_fleet(clock), clock)
    cluster.objects[CLAIMS][0]["metadata"]["deletionTimestamp"] = T0.isoformat()
    (group,) = pools.list(nodes)
    assert group.desired == 1


@pytest.mark.parametrize(
    ("limits", "used", "headroom"),
    [
        ({}, {}, UNLIMITED),
        ({"cpu": "20"}, {"cpu": "8"}, 3),
        ({"cpu": "20", "memory": "48Gi"}, {"cpu": "8", "memory": "32Gi"}, 1),
        ({"nodes": "2"}, {"nodes": "2"}, 0),
        ({"cpu": "4"}, {"cpu": "8"}, 0),
        ({"nvidia.com/gpu": "1"}, {}, UNLIMITED),
    ],
)
def test_the_limits_of_a_node_pool_bound_what_is_counted_on(  # noqa: PLR0913, PLR0917 - limits beside fixtures
    pools: NodePools,
    cluster: Karpenter,
    clock: FakeClock,
    limits: Mapping[str, str],
    used: Mapping[str, str],
    headroom: int,
) -> None:
    nodes = shown(cluster, a_fleet(clock), clock)
    (pool,) = cluster.objects[POOLS]
    pool["spec"]["limits"], pool["status"]["resources"] = limits, used
    (group,) = pools.list(nodes)
    assert group.addable_nodes == headroom


NOT_READY = {
    "conditions": [
        {"type": "Ready", "status": "False", "reason": "UnhealthyDependents"},
        {
            "type": "NodeClassReady",
            "status": "False",
            "reason": "NodeClassTerminating",
            "message": "NodeClass is Terminating",
        },
    ]
}


@pytest.mark.parametrize(
    ("part", "said", "why"),
    [
        ("status", NOT_READY, "it is not Ready (NodeClassTerminating: NodeClass is Terminating)"),
        ("metadata", {"deletionTimestamp": T0.isoformat()}, "it is being deleted"),
        ("spec", {"replicas": 2}, "it is static: spec.replicas says how many nodes it has"),
        ("status", {"conditions": [{"type": "Ready", "status": "True"}]}, None),
    ],
)
def test_a_node_pool_of_which_karpenter_makes_no_nodes_for_pods_takes_none(  # noqa: PLR0913, PLR0917 - cases beside fixtures
    pools: NodePools,
    cluster: Karpenter,
    clock: FakeClock,
    part: str,
    said: Mapping[str, Any],
    why: str | None,
) -> None:
    nodes = shown(cluster, a_fleet(clock), clock)
    (pool,) = cluster.objects[POOLS]
    pool[part] = pool.get(part, {}) | said
    (group,) = pools.list(nodes)
    assert group.closed == why
    assert (group.addable_nodes > 0) == (why is None)
    assert group.desired == len(group.instances) == 2  # those that it has are still its own


def test_a_claim_that_is_not_launched_yet_does_not_hide_how_large_nodes_are(
    pools: NodePools, cluster: Karpenter, clock: FakeClock
) -> None:
    nodes = shown(cluster, a_fleet(clock), clock)
    waiting = failed_claim(a_spec(name="fresh"), "new", clock.now(), "")
    waiting["status"] = {}
    (known,) = cluster.objects[POOLS]
    cluster.objects[POOLS] = [{**known, "metadata": {"name": "fresh"}}]
    cluster.objects[CLAIMS] = [waiting]
    (group,) = pools.list(nodes)
    assert group.template is not None
    assert group.template.allocatable.cpu == 4000


def test_an_empty_node_pool_is_no_larger_than_its_limits_and_has_no_device_of_another(
    pools: NodePools, cluster: Karpenter, clock: FakeClock
) -> None:
    (node, *_) = shown(cluster, a_fleet(clock), clock)
    devices = (("ephemeral-storage", 1), ("nvidia.com/gpu", 8))
    large = Resources(cpu=64_000, memory=256 * 2**30, pods=110, extended=devices)
    (known,) = cluster.objects[POOLS]
    limits = {"cpu": "32", "memory": "128Gi", "nvidia.com/gpu": "2"}
    fresh = {**known, "metadata": {"name": "fresh"}, "status": {}}
    fresh["spec"] = {**known["spec"], "limits": limits}
    cluster.objects[POOLS], cluster.objects[CLAIMS] = [fresh], []
    (group,) = pools.list([replace(node, labels={}, allocatable=large)])
    assert group.template is not None
    told = group.template.allocatable
    assert (told.cpu, told.memory) == (32_000, 128 * 2**30)
    assert told.extended == (("ephemeral-storage", 1),)
    assert group.addable_nodes == 1
    limit = Requirement(key="karpenter.k8s.aws/instance-gpu-count", operator="Lte", values=("2",))
    assert limit in (group.template.choices or ())


def test_a_cluster_without_karpenter_is_asked_again_after_a_while(
    pools: NodePools, cluster: Karpenter, clock: FakeClock, warnings: list[str]
) -> None:
    nodes = shown(cluster, a_fleet(clock), clock)
    cluster.status = 404
    assert pools.list(nodes) == pools.list(nodes) == []
    assert (cluster.asked, warnings) == (1, [])
    cluster.status = 200
    clock.sleep(ABSENT.total_seconds())
    assert len(pools.list(nodes)) == 1


@pytest.mark.parametrize("status", [403, 500])
def test_what_cannot_be_read_is_not_counted_on_and_told(
    pools: NodePools, cluster: Karpenter, clock: FakeClock, warnings: list[str], status: int
) -> None:
    nodes = shown(cluster, a_fleet(clock), clock)
    cluster.status = status
    assert pools.list(nodes) == []
    assert "Nothing is counted on of Karpenter" in warnings[0]


def test_a_cluster_that_does_not_answer_is_not_asked(pools: NodePools, cluster: Karpenter) -> None:
    assert pools.list([]) == []
    assert cluster.asked == 0


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param({"template": {"spec": {"requirements": "all"}}}, id="requirements"),
        pytest.param({"limits": {"cpu": "many"}}, id="limits"),
        pytest.param({"limits": {"nodes": "9" * 99}}, id="numbers"),
        pytest.param([], id="spec"),
    ],
)
def test_a_broken_node_pool_costs_itself_only(
    pools: NodePools,
    cluster: Karpenter,
    clock: FakeClock,
    warnings: list[str],
    broken: object,
) -> None:
    fleet = a_fleet(clock)
    nodes = shown(cluster, fleet, clock)
    cluster.objects[POOLS].append(node_pool(fleet.group("flexible")) | {"spec": broken})
    assert [group.name for group in pools.list(nodes)] == ["flexible"]
    assert len(warnings) == 1


def test_karpenter_is_never_asked(pools: NodePools, cluster: Karpenter, clock: FakeClock) -> None:
    group: NodeGroup = group_of(a_fleet(clock).group("flexible"))
    with pytest.raises(Refused, match="Karpenter makes nodes for Pending pods by itself"):
        pools.grow(group, 1, None, "token")
    assert cluster.asked == 0
