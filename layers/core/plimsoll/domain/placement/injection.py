"""What the admission policy gives new pods, so that no manifest need be changed for a floor.

A ConfigMap in each namespace that opted in tells the policy how to constrain the pods of a
workload. It is told only once the nodes carry their labels: a pod with the constraint needs a node
with the label. `cli/plimsoll_cli/manifests/injection.yaml` is the policy.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final

from plimsoll.domain.actions import InjectFloors
from plimsoll.domain.kubernetes import (
    CAPACITY_LABELS,
    MOST_NAMED,
    NAMESPACE,
    POD_TEMPLATE_HASH,
    ClusterEvent,
    OwnerKind,
    Pod,
    Ref,
    Scheduling,
    Selector,
    SpreadConstraint,
    Workload,
    about_workload,
)
from plimsoll.domain.observation import Observation
from plimsoll.domain.placement.load_line import ALL_ON_DEMAND
from plimsoll.domain.placement.on_demand import FloorConstraint, OnDemandFloor
from plimsoll.domain.placement.slots import held_by_on_demand
from plimsoll.domain.placement.spread_groups import (
    LAYOUTS,
    NO_GROUPS,
    ON_DEMAND,
    SINGLE_REPLICA,
    Layout,
    label_key,
)

type Injected = Mapping[str, Mapping[str, str]]
"""Namespace that opted in -> workload, as in `deployment.web` -> what its new pods get."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """What the admission policy is told, and whether it does what it is told."""

    told: Injected = field(default_factory=dict)
    broken: str | None = None
    """Why it is not in force, in words."""
    layouts: bool = True
    """Whether it knows layouts of several on-demand groups: that of an older version leaves such pods as they are."""

    @property
    def gives(self) -> Injected:
        """What new pods get."""
        return self.told if self.broken is None else {}


NO_INJECTION: Final = Injection()
LAYOUT_CANARY: Final = Ref(OwnerKind.STATEFUL_SET, NAMESPACE, "plimsoll-layouts")
INJECTION_CANARIES: Final[Mapping[Ref, str]] = {
    Ref(OwnerKind.DEPLOYMENT, NAMESPACE, "plimsoll-canary"): "0",
    Ref(OwnerKind.STATEFUL_SET, NAMESPACE, "plimsoll-canary"): ON_DEMAND,
    LAYOUT_CANARY: LAYOUTS[-1].entry,
}
"""Workloads that do not exist -> what their pods are given first in a dry run, which proves the policy.

The entry of the first changes with those of others, so that the next proof tells whether the API
server sees what is written.
"""
_CANARY_ENTRIES: Final = tuple(layout.entry for layout in LAYOUTS if layout.on_demand_groups == 1)
INJECTION_ENTRIES: Final = (*(layout.entry for layout in LAYOUTS), ON_DEMAND)
"""All that the policy understands."""
MOST_INJECTIONS: Final = 100
"""Changes in one namespace and run: anybody who may write its ConfigMap can put much into it."""
_LAYOUT_OF: Final = {layout.entry: layout for layout in LAYOUTS}
_SPREADS: Final = {label_key(layout): layout for layout in LAYOUTS}


def with_new_canary(canaries: Mapping[Ref, str]) -> Mapping[Ref, str]:
    """Return what the canaries are told after a change."""
    [first, *_] = INJECTION_CANARIES
    following = _CANARY_ENTRIES.index(canaries[first]) + 1
    return {**canaries, first: _CANARY_ENTRIES[following % len(_CANARY_ENTRIES)]}


def canaries_told(told: Injected) -> Mapping[Ref, str]:
    """Return what the canaries are told now; what makes no sense is mended."""
    [first, *_] = INJECTION_CANARIES
    now = told.get(NAMESPACE, {}).get(injection_key(first), "")
    return {**INJECTION_CANARIES, first: now} if now in _CANARY_ENTRIES else INJECTION_CANARIES


def injection_key(workload: Ref) -> str:
    """Return how a workload is named in the ConfigMap."""
    return f"{workload.kind.lower()}.{workload.name}"


def entry_of(floor: OnDemandFloor) -> str | None:
    """Return what the policy is told of a workload; None: nothing."""
    if floor.way is FloorConstraint.SPREAD:
        return floor.layout.entry
    return ON_DEMAND if floor.way is FloorConstraint.AFFINITY else None


def spread_keys(scheduling: Scheduling) -> Sequence[Layout]:
    """Return the layouts over which pods are spread already, by their hard constraints."""
    hard = (constraint.topology_key for constraint in scheduling.spread if constraint.hard)
    return [_SPREADS[key] for key in hard if key in _SPREADS]


def is_as_injected(scheduling: Scheduling, entry: str) -> bool:
    """Whether a pod has what an entry gives."""
    if entry == ON_DEMAND:
        return scheduling.node_selector.get(CAPACITY_LABELS[0]) == ON_DEMAND
    return [layout.entry for layout in spread_keys(scheduling)[:1]] == [entry]


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


def as_policy_knows(
    injection: Injection, workload: Workload, floor: OnDemandFloor
) -> OnDemandFloor:
    """Return a floor as the policy that is installed can keep it: an older one spreads over one on-demand group only.

    Where the template names a layout itself, nothing depends on the policy.
    """
    if (
        floor.layout.on_demand_groups > 1
        and not injection.layouts
        and workload.ref.namespace in injection.told
        and not spread_keys(workload.scheduling)
    ):
        reason = "the admission policy is of a version before layouts of several on-demand groups"
        return replace(floor, way=FloorConstraint.AFFINITY, layout=NO_GROUPS, reason=reason)
    return floor


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
    said: dict[str, dict[str, str]] = defaultdict(dict)
    kept: dict[str, set[str]] = defaultdict(set)
    here = [(w, now) for w, f in lacking if w.ref.namespace in injected and (now := entry_of(f))]
    for workload, now in here:
        said[workload.ref.namespace][injection_key(workload.ref)] = now
    for ref in (*unread, *_not_yet(seen, injected, here, labelled=labelled)):
        kept[ref.namespace].add(injection_key(ref))
    changes = False
    canaries = canaries_told(injected)
    # Our own namespace is the last: a change in any other changes its canary.
    for namespace, told in sorted(injected.items(), key=lambda item: (item[0] == NAMESPACE, item)):
        new = said[namespace]
        if namespace == NAMESPACE:
            canaries = with_new_canary(canaries) if changes else canaries
            new |= {injection_key(ref): entry for ref, entry in canaries.items()}
        changed = sorted(key for key in told.keys() | new.keys() if told.get(key) != new.get(key))
        entries = {key: new.get(key) for key in changed if key not in kept[namespace]}
        if entries:
            changes = True
            yield InjectFloors(
                namespace=namespace,
                entries=dict(islice(entries.items(), MOST_INJECTIONS)),
                reason="its new pods keep their on-demand floors by that",
            )


def _not_yet(
    seen: Observation,
    injected: Injected,
    wanted: Sequence[tuple[Workload, str]],
    *,
    labelled: bool,
) -> Iterator[Ref]:
    """Yield the workloads that are not told anew now: the nodes are not ready for their pods."""
    told, new = list[Workload](), list[Workload]()
    for workload, entry in wanted:
        stands = _told(injected, workload.ref) == entry
        if not stands and not labelled:
            yield workload.ref
        elif entry == ON_DEMAND:
            (told if stands else new).append(workload)
    if new:  # those that were told before may still be on their way to on-demand nodes
        held = held_by_on_demand(seen, [*told, *new])
        yield from (workload.ref for workload in new if workload.ref not in held)


def not_injected(
    injection: Injection, lacking: Sequence[tuple[Workload, OnDemandFloor]]
) -> Iterator[ClusterEvent]:
    """Yield the workloads that count on a policy which is not in force; at most a few."""
    if injection.broken is None:
        return
    relying = (w for w, floor in lacking if entry_of(floor) and w.ref.namespace in injection.told)
    for workload in islice(relying, MOST_NAMED):
        why = f"{workload.ref}: the admission policy is not in force: {injection.broken}"
        yield about_workload(workload, "FloorNotInjected", why)


def layout_told(injected: Injected, workload: Ref) -> Layout | None:
    """Return the layout that the policy is told of a workload; None: none, or that of a single replica."""
    entry = _told(injected, workload)
    if entry == ON_DEMAND:
        return ALL_ON_DEMAND
    layout = _LAYOUT_OF.get(entry or "")
    return None if layout == SINGLE_REPLICA else layout


def _told(injected: Injected, workload: Ref) -> str | None:
    return injected.get(workload.namespace, {}).get(injection_key(workload))
