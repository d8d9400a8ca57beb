"""What Hypothesis draws clusters from: few zones, few templates, tight room, so that rules bite."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from plimsoll.domain.kubernetes import Claim, Node, Pod
from plimsoll.domain.node_groups import NodeGroup
from plimsoll.domain.scheduling import ClusterSnapshot
from tests.support.builders import ZONE_A, ZONE_B, ZONE_C, a_claim, a_group, a_node, a_pod, mounting

ZONES = (ZONE_A, ZONE_B, ZONE_C)
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
CLAIMS: dict[tuple[str, str], Claim] = {
    ("default", f"data-{zone[-1]}"): a_claim(f"data-{zone[-1]}", zone=zone) for zone in ZONES
}
"""One bound claim for each zone."""

zones = st.sampled_from(ZONES)
_selector = {"matchLabels": {"app": "web"}}


def _spread(key: str, skew: int, taints: str) -> dict[str, Any]:
    return {
        "topologySpreadConstraints": [
            {
                "maxSkew": skew,
                "topologyKey": key,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": _selector,
                "nodeTaintsPolicy": taints,
            }
        ]
    }


def _affinity(kind: str, key: str) -> dict[str, Any]:
    return {"affinity": {kind: {REQUIRED: [{"topologyKey": key, "labelSelector": _selector}]}}}


_keys = st.sampled_from([HOST, ZONE])
rules: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.just({}),
    st.builds(_spread, _keys, st.integers(1, 2), st.sampled_from(["Honor", "Ignore"])),
    st.builds(_affinity, st.sampled_from(["podAffinity", "podAntiAffinity"]), _keys),
    st.builds(lambda zone: {"volumes": mounting(f"data-{zone[-1]}")}, zones),
    st.builds(lambda zone: {"nodeSelector": {ZONE: zone}}, zones),
    st.just({"nodeSelector": {"node.kubernetes.io/capacity": "on-demand"}}),
)
"""What a pod's template demands beyond room."""


@st.composite
def pods(draw: st.DrawFn, name: str, *, nodes: list[str]) -> Pod:
    """Draw a pod of one of two apps; it stands on one of `nodes`, or nowhere if there is none."""
    app = draw(st.sampled_from(["web", "api"]))
    return a_pod(
        name,
        labels={"app": app},
        owner=("ReplicaSet", app),
        node=draw(st.sampled_from(nodes)) if nodes else None,
        cpu=f"{draw(st.integers(0, 4))}",
        memory="1Gi",
        priority=draw(st.sampled_from([0, 0, 0, 1000])),
        **draw(rules),
    )


@st.composite
def node_lists(draw: st.DrawFn, *, least: int = 0) -> list[Node]:
    """Draw up to five nodes in up to three zones."""
    return [
        a_node(
            f"n{index}",
            zone=draw(zones),
            cpu=f"{draw(st.integers(1, 6))}",
            pods=draw(st.integers(1, 6)),
            capacity=draw(st.sampled_from(["on-demand", "spot"])),
            unschedulable=draw(st.sampled_from([False, False, False, True])),
        )
        for index in range(draw(st.integers(least, 5)))
    ]


@st.composite
def groups(draw: st.DrawFn, name: str) -> NodeGroup:
    """Draw a node group that may or may not be steered to a zone."""
    desired = draw(st.integers(0, 3))
    return a_group(
        name,
        capacity=draw(st.sampled_from(["on-demand", "spot"])),
        zones=draw(st.lists(zones, min_size=1, max_size=3, unique=True)),
        desired=desired,
        max_size=desired + draw(st.integers(0, 4)),
        cpu=f"{draw(st.integers(1, 6))}",
        pods=draw(st.integers(1, 5)),
        launchable=draw(st.booleans()),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortage:
    """A cluster with pods that need a node, and groups that may give one."""

    nodes: list[Node]
    standing: list[Pod]
    unschedulable: list[Pod]
    groups: list[NodeGroup]

    def snapshot(self) -> ClusterSnapshot:
        """Return the picture without the unschedulable."""
        return ClusterSnapshot(self.nodes, self.standing, CLAIMS)


@st.composite
def shortages(draw: st.DrawFn) -> Shortage:
    """Draw a cluster with unschedulable pods."""
    nodes = draw(node_lists())
    names = [node.name for node in nodes]
    standing = [
        draw(pods(f"s{index}", nodes=names))
        for index in range(draw(st.integers(0, 4)) if names else 0)
    ]
    return Shortage(
        nodes=nodes,
        standing=standing,
        unschedulable=[draw(pods(f"h{i}", nodes=[])) for i in range(draw(st.integers(0, 7)))],
        groups=[draw(groups(f"g{i}")) for i in range(draw(st.integers(0, 3)))],
    )
