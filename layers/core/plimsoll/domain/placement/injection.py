"""What the admission policy gives new pods, so that no manifest need be changed for a floor.

A ConfigMap in each namespace that opted in tells the policy how to constrain the pods of a
workload. It is told only once the nodes carry their labels: a pod with the constraint needs a node
with the label. `cli/plimsoll_cli/manifests/injection.yaml` is the policy.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final

from plimsoll.domain.actions import InjectFloors
from plimsoll.domain.cluster_events import NAMED, ClusterEvent, about_workload
from plimsoll.domain.names import CAPACITY_LABELS, NAMESPACE, POD_TEMPLATE_HASH
from plimsoll.domain.observation import Observation
from plimsoll.domain.placement.node_labels import holds_all
from plimsoll.domain.placement.on_demand import MOST_GROUPS, OnDemandFloor, Way
from plimsoll.domain.placement.spread_groups import ON_DEMAND, label_key
from plimsoll.domain.pods import OwnerKind, Pod, Ref, Scheduling, Selector, SpreadConstraint
from plimsoll.domain.workloads import Workload

type Injected = Mapping[str, Mapping[str, str]]
"""Namespace that opted in -> workload, as in `deployment.web` -> what its new pods get."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """What the admission policy is told, and whether it does what it is told."""

    told: Injected = field(default_factory=dict)
    broken: str | None = None
    """Why it is not in force, in words."""

    @property
    def gives(self) -> Injected:
        """What new pods get."""
        return self.told if self.broken is None else {}


NO_INJECTION: Final = Injection()
CANARIES: Final[Mapping[Ref, str]] = {
    Ref(OwnerKind.DEPLOYMENT, NAMESPACE, "plimsoll-canary"): "0",
    Ref(OwnerKind.STATEFUL_SET, NAMESPACE, "plimsoll-canary"): ON_DEMAND,
}
"""Workloads that do not exist -> what their pods are given in a dry run, which proves the policy."""
AT_ONCE: Final = 100
"""Changes in one namespace and run: anybody who may write its ConfigMap can put much into it."""
_SPREADS: Final = {label_key(number): number for number in range(MOST_GROUPS + 1)}


def key_of(workload: Ref) -> str:
    """Return how a workload is named in the ConfigMap."""
    return f"{workload.kind.lower()}.{workload.name}"


def entry_of(floor: OnDemandFloor) -> str | None:
    """Return what the policy is told of a workload; None: nothing."""
    if floor.way is Way.SPREAD:
        return str(floor.spot_groups)
    return ON_DEMAND if floor.way is Way.AFFINITY else None


def spread_keys(scheduling: Scheduling) -> Sequence[int]:
    """Return over how many spot groups pods are spread already, by their hard constraints."""
    hard = (constraint.topology_key for constraint in scheduling.spread if constraint.hard)
    return [_SPREADS[key] for key in hard if key in _SPREADS]


def is_as_injected(scheduling: Scheduling, entry: str) -> bool:
    """Whether a pod has what an entry gives."""
    if entry == ON_DEMAND:
        return scheduling.node_selector.get(CAPACITY_LABELS[0]) == ON_DEMAND
    return str(next(iter(spread_keys(scheduling)), None)) == entry


def as_injected(pod: Pod, key: str) -> Pod:
    """Return a pod of a Deployment as the policy lets its replacement be created.

    Args:
        pod: with or without the constraint.
        key: the label over which it is spread; that of capacity types lets it to on-demand nodes only.
    """
    was = pod.scheduling
    if key == CAPACITY_LABELS[0]:
        return replace(
            pod, scheduling=replace(was, node_selector={**was.node_selector, key: ON_DEMAND})
        )
    if any(constraint.topology_key == key for constraint in was.spread):
        return pod
    constraint = SpreadConstraint(
        max_skew=1,
        topology_key=key,
        hard=True,
        selector=Selector(labels={POD_TEMPLATE_HASH: pod.labels.get(POD_TEMPLATE_HASH, "")}),
        node_taints_policy="Honor",
    )
    return replace(pod, scheduling=replace(was, spread=(*was.spread, constraint)))


def is_injected(injected: Injected, floor: OnDemandFloor) -> bool:
    """Whether new pods of a workload get from the policy what its floor asks for."""
    entry = _told(injected, floor.workload)
    return entry is not None and entry == entry_of(floor)


def injections(
    seen: Observation,
    injected: Injected,
    lacking: Sequence[tuple[Workload, OnDemandFloor]],
    *,
    unread: Collection[Ref],
    labelled: bool,
) -> Iterator[InjectFloors]:
    """Yield what each namespace is to be told anew.

    Args:
        seen: one observation of the cluster.
        injected: what the namespaces that opted in are told now.
        lacking: the workloads whose templates do not say what their floors ask for.
        unread: workloads whose floors make no sense: they keep what they have.
        labelled: whether all nodes carry their labels. Until then nobody gets a constraint anew.
    """
    wanted = dict(CANARIES)
    kept = {*unread}
    for workload, floor in lacking:
        entry, ref = entry_of(floor), workload.ref
        if entry is None or ref.namespace not in injected or _told(injected, ref) == entry:
            pass
        elif not labelled or (entry == ON_DEMAND and not holds_all(seen, workload)):
            kept.add(ref)
        if entry is not None:
            wanted[ref] = entry
    for namespace, told in sorted(injected.items()):
        said = {key_of(ref): entry for ref, entry in wanted.items() if ref.namespace == namespace}
        stay = {key_of(ref) for ref in kept if ref.namespace == namespace}
        changed = sorted(key for key in told.keys() | said.keys() if told.get(key) != said.get(key))
        entries = {key: said.get(key) for key in changed if key not in stay}
        if entries:
            yield InjectFloors(
                namespace=namespace,
                entries=dict(islice(entries.items(), AT_ONCE)),
                reason="its new pods keep their on-demand floors by that",
            )


def not_injected(
    injection: Injection, lacking: Sequence[tuple[Workload, OnDemandFloor]]
) -> Iterator[ClusterEvent]:
    """Yield the workloads that count on a policy which is not in force; at most a few."""
    if injection.broken is None:
        return
    relying = (w for w, floor in lacking if entry_of(floor) and w.ref.namespace in injection.told)
    for workload in islice(relying, NAMED):
        why = f"{workload.ref}: the admission policy is not in force: {injection.broken}"
        yield about_workload(workload, "FloorNotInjected", why)


def _told(injected: Injected, workload: Ref) -> str | None:
    return injected.get(workload.namespace, {}).get(key_of(workload))
