"""The nodes of a live cluster, and the groups that may grow, as node groups of a scenario.

Nodes that are alike in everything that a drill reads make one group, which stands for them and
cannot grow; each group of AWS that may grow is one more, empty at first. What AWS launches by itself in the place
of what it reclaimed is left out: whoever counts on it in a shortage is disappointed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from plimsoll.domain.capacity import ASSUMED_NODE_SECONDS, node_starts
from plimsoll.domain.kubernetes import NODE_POOL, Node, Resources, Taint, total_resources
from plimsoll.domain.node_groups import NodeGroup
from plimsoll.domain.observation import Observation, leaves
from plimsoll_simulation.fake_aws.nodegroups import KARPENTER, SET_BY_RIG
from plimsoll_simulation.rehearsal.live import LiveCluster
from plimsoll_simulation.rehearsal.scope import SPOT, Scope, type_of
from plimsoll_simulation.scenario.clusters import OtherControllerName

_NOWHERE: Final = "no-zone-1a"
_CORDONED: Final = Taint(key="node.kubernetes.io/unschedulable")
_LIFECYCLE: Final = "node.kubernetes.io/"
"""Taints of it tell of a moment, and the model sets them itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelledFleet:
    """Node groups of a scenario, and which node stands for which."""

    groups: Sequence[Mapping[str, Any]]
    names: Mapping[str, str]
    """Live node -> node of the scenario."""
    live_groups: Mapping[str, str]
    """Group of the scenario that may grow -> its name in AWS."""
    refused: Sequence[str]
    """Of these, those that have nothing left to launch from."""
    notes: Sequence[str]

    @property
    def other_controllers(self) -> list[OtherControllerName]:
        """Return who makes nodes of these groups for Pending pods."""
        return ["karpenter"] if any(g["kind"] == KARPENTER for g in self.groups) else []


def modelled_fleet(live: LiveCluster, scope: Scope) -> ModelledFleet:
    """Return the fleet of a cluster of which everything in the scope is about to go."""
    seen, notes = live.seen, list[str]()
    keys = _referenced(seen)
    daemons = {node.name: _of_node(seen, node) for node in seen.nodes}
    starts = node_starts(live.observed)
    alike: dict[str, tuple[dict[str, Any], list[Node]]] = {}
    for node in seen.nodes:
        if not node.ready or node.interruption is not None:
            why = "the node is not Ready" if not node.ready else "the node is already interrupted"
            notes.append(f"the rehearsal leaves out node {node.name} and its pods: {why}")
            continue
        spec = _standing(node, keys, daemons[node.name])
        alike.setdefault(repr(sorted(spec.items())), (spec, []))[1].append(node)
    groups, names = [], dict[str, str]()
    for number, (spec, nodes) in enumerate(alike.values(), start=1):
        name = f"nodes-{number}"
        groups.append({"name": name, **spec, "size": len(nodes)})
        names |= {node.name: f"{name}-{n}" for n, node in enumerate(nodes, start=1)}
    unlabelled = sum(node.capacity is None for node in seen.nodes)
    if unlabelled:
        notes.append(f"{unlabelled} nodes have no capacity label and count as on-demand")
    pools = any(group.kind == KARPENTER for group in live.groups or ())
    if not pools and any(NODE_POOL in node.labels for node in seen.nodes):
        notes.append(
            "Karpenter adds no nodes in the rehearsal, because its NodePools were not read"
        )
    growing = dict[str, str]()
    refused = []
    most = _most(daemons.values())
    for group in live.groups or ():
        if not group.addable_nodes or group.template is None:
            continue
        name = _label(group.name, {*growing, *(g["name"] for g in groups)})
        growing[name] = group.name
        zones = [zone for zone in group.zones if not _lost(group, scope, zone)]
        if not zones:
            refused.append(name)
        groups.append(
            _growing(group, name, zones or group.zones, keys, most)
            | {"startup": f"{starts.get(group.key, ASSUMED_NODE_SECONDS):.0f}s"}
        )
    notes += _about_groups(live, {*growing.values()}, starts)
    return ModelledFleet(
        groups=groups,
        names=names,
        live_groups=growing,
        refused=refused,
        notes=notes,
    )


def _about_groups(
    live: LiveCluster, growing: Collection[str], starts: Mapping[str, float]
) -> Iterator[str]:
    if live.groups is None:
        yield (
            "no node is added, because no node group is known: give each group that may grow with --group or "
            "--groups, or name a registered cluster with --cluster"
        )
        return
    if not growing:
        yield "no node group may grow: that needs the tag plimsoll.dev/grow and a maximum above the desired size"
    for group in live.groups:
        if group.name not in growing:
            continue
        if group.key in starts:
            yield f"new nodes of {group.name} need {starts[group.key]:.0f} s, observed on running nodes"
        else:
            yield f"new nodes of {group.name} need {ASSUMED_NODE_SECONDS} s, assumed without a running node"


def _standing(node: Node, keys: Collection[str], daemons: Resources) -> dict[str, Any]:
    """Return what a drill reads of a node."""
    taints = [t for t in node.taints if not t.key.startswith(_LIFECYCLE)]
    if node.unschedulable:
        taints.append(_CORDONED)
    return {
        "kind": "static",
        "capacity": node.capacity or "on-demand",
        "instanceType": type_of(node),
        "zones": [node.zone or _NOWHERE],
        "allocatable": _amounts(node.allocatable - daemons),
        "labels": _kept(node.labels, keys),
        "taints": [_taint(taint) for taint in taints],
    }


def _growing(
    group: NodeGroup,
    name: str,
    zones: Sequence[str],
    keys: Collection[str],
    daemons: Resources,
) -> dict[str, Any]:
    template = group.template
    assert template is not None  # noqa: S101 - such a group is never chosen
    return {
        "name": name,
        "kind": group.kind,
        "capacity": group.capacity,
        "instanceType": next(iter(group.instance_types), "unknown"),
        "zones": list(dict.fromkeys(zones)) or [_NOWHERE],
        "size": 0,
        "max": group.addable_nodes,
        "allocatable": _amounts(template.allocatable - daemons),
        "labels": _kept(template.labels, keys),
        "taints": [_taint(taint) for taint in template.taints],
    }


def _lost(group: NodeGroup, scope: Scope, zone: str) -> bool:
    """Whether nothing is left in a zone that a group may launch: a pool that is reclaimed gives none."""
    if group.capacity != SPOT:
        return False
    return all(scope.takes(each, zone) for each in group.instance_types or ("unknown",))


def _referenced(seen: Observation) -> frozenset[str]:
    """Return the node labels that decide where some pod may run."""
    found: set[str] = set()
    for scheduling in {id(pod.scheduling): pod.scheduling for pod in seen.pods}.values():
        found |= scheduling.node_selector.keys()
        found |= {e.key for term in scheduling.node_terms or () for e in term.expressions}
        found |= {t.topology_key for t in (*scheduling.affinity, *scheduling.anti_affinity)}
        found |= {s.topology_key for s in scheduling.spread}
    return frozenset(found - SET_BY_RIG)


def _kept(labels: Mapping[str, str], keys: Collection[str]) -> dict[str, str]:
    return {key: value for key, value in sorted(labels.items()) if key in keys}


def _of_node(seen: Observation, node: Node) -> Resources:
    """Return what pods take that belong to their node, and are not played."""
    own = [pod for pod in seen.on_node.get(node.name, ()) if not leaves(pod)]
    return total_resources([pod.scheduling.requests for pod in own])


def _most(amounts: Collection[Resources]) -> Resources:
    """Return the most of each that such pods take of a node: a new one will have them too."""
    return Resources(
        cpu=max((each.cpu for each in amounts), default=0),
        memory=max((each.memory for each in amounts), default=0),
        pods=max((each.pods for each in amounts), default=0),
    )


def _amounts(resources: Resources) -> dict[str, str]:
    return {
        "cpu": f"{max(0, resources.cpu)}m",
        "memory": str(max(0, resources.memory)),
        "pods": str(max(0, resources.pods)),
        **{name: str(max(0, amount)) for name, amount in resources.extended},
    }


def _taint(taint: Taint) -> dict[str, str]:
    return {"key": taint.key, "effect": taint.effect} | (
        {"value": taint.value} if taint.value else {}
    )


def _label(name: str, taken: Collection[str]) -> str:
    """Return a name that a scenario allows, and that is not taken."""
    made = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:50].strip("-") or "group"
    found, number = made, 2
    while found in taken:
        found, number = f"{made}-{number}", number + 1
    return found
