"""Bin packing of unschedulable pods: those that stay, those on the way, and as few new ones as can be.

Bin packing goes through the pods in order. A pod takes the node the scheduler would choose; when none
fits, a node is opened for it. Nodes that were asked for already are opened before new ones, and
only when a pod needs one, in the same order in which new ones would have been: so a plan that counts
what the one before asked for arrives at the same nodes and asks for nothing more.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from types import MappingProxyType

from plimsoll.domain.capacity.node_templates import Daemons, future_node, template_for
from plimsoll.domain.kubernetes import GROW, Node, Pod, PodGroup, Ref, Resources, why_never
from plimsoll.domain.node_groups import Asked, Expectation, NodeGroup, NodeTemplate
from plimsoll.domain.scheduling import ClusterSnapshot
from plimsoll.domain.spot import NEVER_SEEN, Source, is_covered

_GLANCE = 200
"""How many of the next pods are looked at to compare groups: enough to fill any node."""

_DECIDED = (
    *("_upcoming", "_addable", "_in_zone", "_serial", "_hopeless", "opened", "awaited", "group_of"),
    *("placed", "refused", "full", "cause"),
)
"""Attributes that say what was decided: they are taken back for a PodGroup of which too few pods have a node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleUpOption:
    """A way to open a node: the nodes to open for it, the last of which is meant for the pod."""

    group: NodeGroup
    template: NodeTemplate
    zones: tuple[str, ...]
    """A group that chooses its zones by itself may have to open nodes in others first."""
    rank: tuple[object, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubts:
    """What is not asked, and what is counted on and asked only as the last resort."""

    closed: frozenset[Source] = frozenset()
    """Refused, and not asked again yet."""
    last: frozenset[Source] = frozenset()
    """Refused lately, or reclaimed just now."""
    rate: Mapping[Source, float] = MappingProxyType({})
    """Key of a group, and zone -> how often an hour what it launches from is reclaimed."""
    expected: Mapping[str, Expectation] = MappingProxyType({})
    """Key of a group -> what is doubted of its nodes on the way."""


class BinPacking:
    """One attempt to give every pod a node. It changes the snapshot that it is given."""

    def __init__(
        self,
        snapshot: ClusterSnapshot,
        groups: Sequence[NodeGroup],
        upcoming: Mapping[Asked, int],
        doubts: Doubts,
    ) -> None:
        self._snapshot = snapshot
        self._groups = groups
        self._upcoming = Counter[Asked](upcoming)
        self._doubts = doubts
        self._addable = {group.key: group.addable_nodes for group in groups}
        self._in_zone = _zones_in_use(snapshot, groups)
        self._daemons = Daemons(snapshot)
        self._serial: Counter[str] = Counter()
        self._hopeless: dict[tuple[object, int], str] = {}
        self.opened: dict[str, Asked] = {}
        """Name of each new node -> what has to be asked for it."""
        self.awaited: dict[str, Node] = {}
        """All nodes that are not there yet, new or asked for before, in the order in which they were added."""
        self.group_of: dict[str, str] = {}
        """The keys of their groups."""
        self.pods: dict[str, Pod] = {}
        """All that were to be placed by uid, those too that made way for others."""
        self.placed: dict[str, str] = {}
        """Pod uid -> node name, in the order of placing."""
        self.refused: dict[str, str] = {}
        self.full: set[str] = set()
        """Keys of the groups that could take a pod and are at their maxima."""
        self.cause: dict[Asked, str] = {}
        """Why the first node was asked for: what the scheduler would say of its pod."""

    def pack(self, pods: Sequence[Pod]) -> None:
        """Give each pod a node, or the reason why it gets none.

        Pods that wait for others by affinity or spread are tried again while anything moves. Those that make way
        for others come after all.
        """
        waiting = [*pods, *self._snapshot.take_displaced()]
        while waiting:
            self.pods |= {pod.uid: pod for pod in waiting}
            rest = [*self._seat_all(waiting)]
            again = [p for p in rest if p.scheduling.affinity or p.scheduling.spread]
            if len(rest) == len(waiting):
                return
            # A second round helps pods whose affinity or spread
            # looks at others, and pods that made way in this round.
            waiting = [*again, *self._snapshot.take_displaced()]

    def _seat_all(self, pods: Sequence[Pod]) -> Iterator[Pod]:
        """Seat pods in their order, those of a PodGroup in the turn of the first of them; yield those without a node."""
        together: dict[Ref, list[Pod]] = defaultdict(list)
        for pod in pods:
            if pod.group is not None and pod.group.is_gang:
                together[pod.group.ref].append(pod)
        for number, pod in enumerate(pods):
            if pod.group is not None and pod.group.is_gang:
                if members := together.pop(pod.group.ref, None):
                    yield from self._seat_together(pod.group, members)
            elif not self._seat(pod, pods[number : number + _GLANCE]):
                yield pod

    def _seat_together(self, group: PodGroup, pods: Sequence[Pod]) -> Sequence[Pod]:
        """Seat as many pods of a group as kube-scheduler places at once, or none; return those without a node."""
        missing = self._snapshot.missing(group)
        if group.min_count is None or len(pods) < missing:
            why = self._snapshot.why_alone(pods[0]) or ""
            self.refused |= dict.fromkeys((pod.uid for pod in pods), why)
            return pods
        undo = self._undo()
        self._snapshot.gather([group.ref])
        rest = [p for n, p in enumerate(pods) if not self._seat(p, pods[n : n + _GLANCE])]
        self._snapshot.scatter([group.ref])
        if len(pods) - len(rest) < missing:
            first = self.refused[rest[0].uid]
            undo([pod for pod in pods if pod.uid in self.placed])
            why = f"{self._snapshot.why_alone(pods[0])}, and not all of them have a node: {first}"
            self.refused |= dict.fromkeys((pod.uid for pod in pods), why)
            return pods
        return rest

    def _undo(self) -> Callable[[Sequence[Pod]], None]:
        """Return what takes back all that was decided since, given the pods that were placed."""
        before = {name: copy(getattr(self, name)) for name in _DECIDED}

        def undo(placed: Sequence[Pod]) -> None:
            self._snapshot.undo(placed)
            for name in self.awaited.keys() - before["awaited"].keys():
                self._snapshot.remove_node(name)
            for name, value in before.items():
                setattr(self, name, value)

        return undo

    def _seat(self, pod: Pod, rest: Sequence[Pod]) -> bool:
        mind = (pod.owner or pod.uid, id(pod.scheduling))
        if mind in self._hopeless:
            self.refused[pod.uid] = self._hopeless[mind]
            return False
        node = self._snapshot.choose(pod)
        if node is not None:
            self._place(pod, node.name)
            return True
        reasons: dict[str, str] = {}
        for option in sorted(self._options(pod, rest, reasons), key=lambda o: o.rank):
            why = self._open(option, pod)
            if why is None:
                return True
            reasons[option.group.name] = why
        self.refused[pod.uid] = self._refusal(pod, reasons)
        if not (pod.scheduling.affinity or pod.scheduling.spread):
            self._hopeless[mind] = self.refused[pod.uid]
        return False

    def _place(self, pod: Pod, name: str) -> None:
        self._snapshot.place(pod, name)
        self.placed[pod.uid] = name
        self.refused.pop(pod.uid, None)

    def _options(
        self, pod: Pod, rest: Sequence[Pod], reasons: dict[str, str]
    ) -> Iterator[ScaleUpOption]:
        """Yield the ways to open a node that a pod may fit on; say of the others why not."""
        for group in self._groups:
            if group.template is None:
                reasons[group.name] = "nothing tells what its nodes would be"
                continue
            template = template_for(group.template, pod.scheduling)
            taken, left = _filled(template.allocatable, rest)
            for zone in group.zones:
                if is_covered(self._doubts.closed, group, zone):
                    reasons.setdefault(group.name, "refused lately")
                    continue
                node = future_node(group, template, zone, "")
                why = why_never(pod.scheduling, node) or _too_small(pod, node)
                if why is None and not self._snapshot.in_reach(pod, node):
                    why = "node(s) had volume node affinity conflict"
                if why is not None:
                    reasons[group.name] = why
                    continue
                zones = self._on_the_way_to(group, zone)
                fresh = max(0, len(zones) - self._ready_to_open(group, zone))
                if fresh > self._addable[group.key]:
                    if group.grows:
                        self.full.add(group.key)
                    reasons[group.name] = _why_full(group)
                    continue
                yield ScaleUpOption(
                    group=group,
                    template=template,
                    zones=zones,
                    # The first difference decides: not the last resort; nodes on the way,
                    # then nodes that come unasked, then nodes to ask for; on-demand; a warm
                    # pool; low risk; few other nodes to open; a full node; many pods; an even
                    # spread over zones. Names come last, so that two plans choose the same.
                    rank=(
                        self._is_last_resort(group, zone, len(zones)),
                        0 if fresh == 0 else 1 if group.provisions else 2,
                        group.capacity != "on-demand",
                        fresh > group.warm,
                        self._doubts.rate.get((group.key, zone), NEVER_SEEN),
                        len(zones),
                        left,
                        -taken,
                        self._in_zone[group.key, zone],
                        group.name,
                        zone,
                    ),
                )

    def _open(self, option: ScaleUpOption, pod: Pod) -> str | None:
        """Open nodes and place the pod on the last; say why not, and close them, where it fails."""
        nodes = [self._add(option, zone) for zone in option.zones]
        # Checked again with the node in place: its DaemonSets' pods
        # stand on it, and other nodes may have joined its domain.
        why = self._snapshot.why_not(pod, nodes[-1])
        if why is not None:
            for node in nodes:
                self._snapshot.remove_node(node.name)
                self._in_zone[option.group.key, node.zone or ""] -= 1
            self._serial[option.group.name] -= len(nodes)
            return why
        for node in nodes:
            self._account(option.group, node, pod)
        self._place(pod, nodes[-1].name)
        return None

    def _add(self, option: ScaleUpOption, zone: str) -> Node:
        group = option.group
        self._serial[group.name] += 1
        self._in_zone[group.key, zone] += 1
        name = f"new-{group.name}-{self._serial[group.name]}"
        node = future_node(group, option.template, zone, name)
        self._snapshot.add_node(node)
        for daemon in self._daemons.on(node):
            self._snapshot.place(daemon, node.name)
        return node

    def _account(self, group: NodeGroup, node: Node, pod: Pod) -> None:
        self.awaited[node.name] = node
        self.group_of[node.name] = group.key
        # Nodes on the way in this zone first; the others may come up anywhere.
        for before in ((group.key, node.zone), (group.key, None)):
            if self._upcoming[before] > 0:
                self._upcoming[before] -= 1
                return
        asked = (group.key, node.zone if group.launchable else None)
        self._addable[group.key] -= 1
        self.opened[node.name] = asked
        if asked not in self.cause:
            self.cause[asked] = self._why_unschedulable(pod)

    def _on_the_way_to(self, group: NodeGroup, zone: str) -> tuple[str, ...]:
        """Return the zones in which nodes come up until one is in `zone`.

        Auto Scaling launches in the zone with the fewest instances.
        https://docs.aws.amazon.com/autoscaling/ec2/userguide/auto-scaling-benefits.html#AutoScalingBehavior.InstanceUsage
        """
        if group.launchable or group.provisions or self._upcoming[group.key, zone] > 0:
            return (zone,)
        count = {z: self._in_zone[group.key, z] for z in group.zones}
        path: list[str] = []
        while not path or path[-1] != zone:
            # The name breaks ties, so that two plans arrive at the same path.
            path.append(min(count, key=lambda z: (count[z], z)))
            count[path[-1]] += 1
        return tuple(path)

    def _ready_to_open(self, group: NodeGroup, zone: str) -> int:
        return self._upcoming[group.key, zone] + self._upcoming[group.key, None]

    def _is_last_resort(self, group: NodeGroup, zone: str, nodes: int) -> bool:
        """Whether so many nodes are likely to be interrupted too, or not to come."""
        doubt = self._doubts.expected.get(group.key)
        return is_covered(self._doubts.last, group, zone) or (
            doubt is not None and nodes > self._ready_to_open(group, zone) - doubt.overdue
        )

    def _why_unschedulable(self, pod: Pod) -> str:
        """Say what the scheduler would, of the nodes that are there."""
        return self._snapshot.explain(pod, without=self.awaited)

    def _refusal(self, pod: Pod, reasons: Mapping[str, str]) -> str:
        counted = "; ".join(f"{group}: {why}" for group, why in sorted(reasons.items()))
        return f"{self._why_unschedulable(pod)}; {counted or 'there is no group that could grow'}"


def _zones_in_use(
    snapshot: ClusterSnapshot, groups: Sequence[NodeGroup]
) -> Counter[tuple[str, str]]:
    group_of = {instance: group.key for group in groups for instance in group.instances}
    return Counter(
        (group_of[node.instance], node.zone)
        for node in snapshot.nodes.values()
        if node.instance in group_of and node.zone is not None
    )


def _filled(headroom: Resources, pods: Sequence[Pod]) -> tuple[int, float]:
    """Return how many of the next pods an empty node takes, and the shares it has left then."""
    taken, left = 0, headroom
    for pod in pods:
        if pod.scheduling.requests.within(left):
            left -= pod.scheduling.requests
            taken += 1
    return taken, round(left.cpu / (headroom.cpu or 1) + left.memory / (headroom.memory or 1), 6)


def _why_full(group: NodeGroup) -> str:
    if not group.may_grow:
        return f"without the tag {GROW}"
    if not group.launches:
        return "its process Launch is suspended"
    return group.closed or f"at its maximum of {group.max_size} nodes"


def _too_small(pod: Pod, node: Node) -> str | None:
    if pod.scheduling.requests.within(node.allocatable):
        return None
    has = dict(node.allocatable.extended)
    lacks = [
        name for name, amount in pod.scheduling.requests.extended if amount and not has.get(name)
    ]
    return f"its nodes are not known to have {lacks[0]}" if lacks else "its nodes are too small"
