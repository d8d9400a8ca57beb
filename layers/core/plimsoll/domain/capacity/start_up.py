"""Workloads whose replacements are not Ready before the pods that they replace stop.

Of the two minutes of a spot notice a pod serves until its eviction deadline. Its replacement is created two seconds
after the notice, may wait for a node, and starts. Where that takes longer, only pods that stand on on-demand nodes
serve meanwhile; most such workloads load a model onto GPUs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from itertools import takewhile
from statistics import median
from typing import Final

from plimsoll.domain.disruptions import LEAST_SECONDS, stop_of
from plimsoll.domain.kubernetes import (
    AUTO_FLOOR,
    MIG_SLICES,
    MIN_ON_DEMAND,
    SPREAD_PREFIX,
    STOP_SECONDS,
    Node,
    Pod,
    Ref,
    Resources,
    Scheduling,
    total_resources,
    why_never,
)
from plimsoll.domain.kubernetes import GPU as WHOLE_GPU
from plimsoll.domain.observation import Observation, start_samples
from plimsoll.domain.scheduling import count_places
from plimsoll.domain.spot import SPOT, CapacityPool, spot_pool_of

USABLE_SECONDS: Final = 118
"""Of the 120 s of a spot notice; two are left over, since no notice comes at once.
https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html"""
REACTION_SECONDS: Final = 2
"""From the notice until the replacement is created."""
ASSUMED_NODE_SECONDS: Final = 70
"""From a launch to a Ready node, where no launch of the pods' node groups tells."""
_SLOWEST_NODE: Final = timedelta(minutes=15)
"""A node that is Ready later than this after its launch lost and regained readiness."""
_MOST_LOOKS: Final = 1_000
"""For how many shapes of pods one plan looks for free places: of others a replacement waits for a node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartWindow:
    """The times of a replacement, and of the pod that it replaces, from a spot notice on."""

    start_seconds: float
    """The 95th percentile, from the node until Ready."""
    node_seconds: float
    """How long it waits for a node; 0 where others have places for all that one spot pool runs."""
    stop_seconds: float

    @property
    def ready_after(self) -> float:
        """When the replacement is Ready, in seconds after the notice."""
        return REACTION_SECONDS + self.node_seconds + self.start_seconds

    @property
    def serves_for(self) -> float:
        """When the old pod is asked to stop, in seconds after the notice."""
        return USABLE_SECONDS - max(LEAST_SECONDS, self.stop_seconds)

    @property
    def missing(self) -> float:
        """For how many seconds neither of the two serves."""
        return max(0.0, self.ready_after - self.serves_for)

    @property
    def says(self) -> str:
        """Both times, in words."""
        node = f"{self.node_seconds:.0f} s for a node and " if self.node_seconds else ""
        return (
            f"a replacement is Ready {self.ready_after:.0f} s after a spot notice ({node}"
            f"{self.start_seconds:.0f} s to start), and the pod that it replaces serves for {self.serves_for:.0f} s"
        )

    @property
    def cure(self) -> str:
        """What its owner can do about it: first what by itself makes the replacement Ready in time."""
        cures = []
        if not replace(self, node_seconds=0).missing:
            cures.append("keep places for its pods free")
        if not replace(self, stop_seconds=0).missing:
            cures.append(f"state a shorter stop time in {STOP_SECONDS}, if it has one")
        cures = cures or ["shorten the start of its pods"]
        return ", or ".join([*cures, f'set {MIN_ON_DEMAND}: "{AUTO_FLOOR}"'])


@dataclass(frozen=True, kw_only=True)
class StartWindows:
    """The windows of all workloads of one observation, each reckoned when it is asked for.

    Not slotted: what all of them need is reckoned on first use and kept.
    """

    seen: Observation
    now: datetime

    def of(self, workload: Ref) -> StartWindow | None:
        """Return the window of a workload; None where no running pod tells how long it took to start."""
        if workload not in self._known:
            self._known[workload] = self._window(workload)
        return self._known[workload]

    def late(self, workload: Ref) -> StartWindow | None:
        """Return the window of a workload whose replacements come too late; None of any other."""
        window = self.of(workload)
        return window if window is not None and window.missing > 0 else None

    def _window(self, workload: Ref) -> StartWindow | None:
        pods = self.seen.of_workload.get(workload, ())
        samples = start_samples({workload: pods}).get(workload)
        start = None if samples is None else samples.times(self.now).start
        if start is None:
            return None
        window = StartWindow(
            start_seconds=start.p95_seconds,
            node_seconds=self._node_seconds(pods),
            stop_seconds=max(stop_of(self.seen, pod).seconds for pod in pods),
        )
        fast = replace(window, node_seconds=0)
        # The look at all nodes is left out where it decides nothing.
        return fast if window.missing > fast.missing and self._have_headroom(pods) else window

    def _node_seconds(self, pods: Sequence[Pod]) -> float:
        """Return the median of launches of the pods' node groups, of the slowest group."""
        names = {pod.node for pod in pods if pod.node is not None}
        instances = {node.instance for name in names if (node := self.seen.node.get(name))}
        known = [
            seconds
            for key, seconds in self._starts.items()
            if not instances.isdisjoint(self._instances[key])
        ]
        return max(known, default=ASSUMED_NODE_SECONDS)

    @cached_property
    def _instances(self) -> Mapping[str, frozenset[str]]:
        return {group.key: frozenset(group.instances) for group in self.seen.groups}

    @cached_property
    def _starts(self) -> Mapping[str, float]:
        return node_starts(self.seen)

    @cached_property
    def _known(self) -> dict[Ref, StartWindow | None]:
        return {}

    def _have_headroom(self, pods: Sequence[Pod]) -> bool:
        """Whether other nodes have places for the pods of a workload that its largest spot pool runs.

        A workload that is spread over our groups needs places for all its pods on spot: else the floor that it
        has for want of headroom would argue itself away, since the spread makes what one pool runs small.
        """
        pools = Counter(pool for pod in pods if (pool := self._pool_of(pod)) is not None)
        if not pools:
            return False
        spread = any(
            each.topology_key.startswith(SPREAD_PREFIX)
            for pod in pods
            for each in pod.scheduling.spread
        )
        largest, lost = pools.most_common(1)[0]
        shape, without = pods[0].scheduling, None if spread else largest
        count = pools.total() if spread else lost
        key = shape.requests, _of_nodes(shape), without, count
        found = self._headroom.get(key)
        if found is None:
            if len(self._headroom) >= _MOST_LOOKS:
                return False
            found = self._headroom[key] = self._places_for(shape, without, count)
        return found

    def _places_for(self, shape: Scheduling, without: CapacityPool | None, count: int) -> bool:
        """Whether nodes have places for so many pods of a shape: all but those of a spot pool, or of spot at all."""
        free = (
            left
            for node, left in takewhile(lambda each: each[1].cpu >= shape.requests.cpu, self._free)
            if (node.capacity != SPOT if without is None else spot_pool_of(node) != without)
            and why_never(shape, node) is None
        )
        return count_places(shape.requests, free, count) >= count

    @cached_property
    def _headroom(self) -> dict[Hashable, bool]:
        """What was looked up, by what the pods require: workloads of one shape ask for the same."""
        return {}

    def _pool_of(self, pod: Pod) -> CapacityPool | None:
        node = self.seen.node.get(pod.node or "")
        return None if node is None else spot_pool_of(node)

    @cached_property
    def _free(self) -> Sequence[tuple[Node, Resources]]:
        """What nodes that take pods have free, the most processors first. Pods of a negative priority count as free."""
        taken: dict[str, list[Resources]] = defaultdict(list)
        for name, pods in self.seen.on_node.items():
            taken[name] += (pod.scheduling.requests for pod in pods if pod.priority >= 0)
        free = [
            (node, node.allocatable - total_resources(taken.get(node.name, ())))
            for node in self.seen.nodes
            if node.staying
        ]
        return sorted(free, key=lambda each: (-each[1].cpu, each[0].name))


def node_starts(seen: Observation) -> Mapping[str, float]:
    """Return by node group how many seconds its running nodes took from their launch until Ready: the median.

    Groups of which no launch is known are left out.
    """
    launched = {
        instance: (group.key, at)
        for group in seen.groups
        for instance in group.instances | group.launched.keys()
        if (at := group.launched.get(instance) or seen.launched.get(instance)) is not None
    }
    took: dict[str, list[float]] = defaultdict(list)
    for node in seen.nodes:
        if node.ready and (known := launched.get(node.instance or "")) is not None:
            key, at = known
            since = (node.ready_since or node.created) - at
            if timedelta() < since < _SLOWEST_NODE:
                took[key].append(since.total_seconds())
    return {key: median(seconds) for key, seconds in took.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowStart:
    """A workload that the loss of one spot pool leaves with too few pods until their replacements are Ready."""

    workload: Ref
    replicas: int
    window: StartWindow
    pool: CapacityPool
    """The spot pool that runs most of its pods."""
    lost: int
    """How many it runs."""
    on_demand: int
    """How many pods stand on on-demand nodes."""

    @property
    def says(self) -> str:
        """What would happen, in words."""
        return (
            f"{self.workload}: {self.window.says}: without {self.pool} {self.lost} of its {self.replicas} pods "
            f"would be missing for {self.window.missing:.0f} s, and {self.on_demand} stand on on-demand"
        )

    @property
    def cure(self) -> str:
        """What its owner can do about it."""
        return (
            f'annotate it with plimsoll.dev/min-on-demand: "{self.lost}", '
            f'or "{AUTO_FLOOR}" for an even share'
        )


def slow_starts(windows: StartWindows) -> Iterator[SlowStart]:
    """Yield the workloads on GPUs whose replacements come too late, with fewer pods on on-demand than on one spot pool."""
    seen = windows.seen
    for workload, templates in seen.templates.items():
        if not any(map(_on_gpus, templates)):  # nearly all workloads of a cluster
            continue
        pods = [
            pod for pod in seen.of_workload[workload] if _on_gpus(pod.scheduling) and pod.serving
        ]
        window = windows.late(workload) if pods else None
        if window is None:
            continue
        nodes = [node for pod in pods if (node := seen.node.get(pod.node or "")) is not None]
        pools = Counter(pool for node in nodes if (pool := spot_pool_of(node)) is not None)
        on_demand = sum(node.capacity == "on-demand" for node in nodes)
        for pool, lost in pools.most_common(1):
            if on_demand < lost:
                yield SlowStart(
                    workload=workload,
                    replicas=len(pods),
                    window=window,
                    pool=pool,
                    lost=lost,
                    on_demand=on_demand,
                )


def _of_nodes(scheduling: Scheduling) -> Hashable:
    """Return what pods require of a node itself, apart from their requests."""
    return (
        tuple(sorted(scheduling.node_selector.items())),
        scheduling.node_terms,
        scheduling.tolerations,
        scheduling.devices,
    )


def _on_gpus(scheduling: Scheduling) -> bool:
    names = (name for name, _ in scheduling.requests.extended)
    return any(name == WHOLE_GPU or name.startswith(MIG_SLICES) for name in names)
