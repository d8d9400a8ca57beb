"""The configuration of a cluster's queues: trees of cohorts whose leaves are queues.

Amounts are in the planner's units: millicores of CPU, bytes, pieces.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from fractions import Fraction
from itertools import chain
from typing import Final

from plimsoll.domain.kubernetes import CAPACITY_LABELS, Taint, Toleration, capacity_of
from plimsoll_batch.domain.jobs import FlavorResource

SPOT: Final = "spot"
MOST_COHORTS_ABOVE: Final = 16
"""Cohorts above a queue: more than anybody means."""


class Order(StrEnum):
    """Which queue of a tree is admitted next."""

    PRIORITY = "priority"
    """Who borrows least far up comes first, then priority, then the oldest."""
    DOMINANT_RESOURCE_SHARE = "dominant-resource-share"
    """Level by level the smallest share of what is borrowed; use within quota counts nothing."""
    DRF = "drf"
    """The queue with the smallest dominant share of all that the tree has, whatever its cohort."""
    HIERARCHICAL_DRF = "hierarchical-drf"
    """The same level by level; what a queue cannot use does not count against its cohort."""
    WATER_FILLING = "water-filling"
    """Who is furthest below what it deserves by weight, request and quota, level by level."""


class Strategy(StrEnum):
    """When a fair tree takes from a queue that borrows more; tried in the order of the configuration."""

    LESS_THAN_OR_EQUAL_TO_FINAL_SHARE = "LessThanOrEqualToFinalShare"
    LESS_THAN_INITIAL_SHARE = "LessThanInitialShare"


class WithinQueue(StrEnum):
    """Which gangs of its own queue a gang may preempt."""

    NEVER = "Never"
    LOWER_PRIORITY = "LowerPriority"
    LOWER_OR_NEWER_EQUAL_PRIORITY = "LowerOrNewerEqualPriority"


class Reclaim(StrEnum):
    """Which gangs of queues that borrow a gang may preempt."""

    NEVER = "Never"
    LOWER_PRIORITY = "LowerPriority"
    ANY = "Any"


class QueueOrder(StrEnum):
    """What a gang that cannot start means for those behind it."""

    STRICT_FIFO = "StrictFIFO"
    BEST_EFFORT_FIFO = "BestEffortFIFO"


@dataclass(frozen=True, slots=True, kw_only=True)
class Flavor:
    """Nodes that quota is counted apart for, such as spot."""

    name: str
    node_labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    """A gang must tolerate them itself."""
    tolerations: tuple[Toleration, ...] = ()
    """Given to the pods of a gang that gets this flavor."""
    price: Fraction | None = None
    """Of a pod and hour, as a weight beside other flavors; None: what it costs decides nothing."""
    interruptions_per_hour: Fraction = Fraction(0)
    """How often one of its instances is interrupted."""

    @property
    def spot(self) -> bool:
        """Whether its nodes are spot, by their labels."""
        return capacity_of(self.node_labels) == SPOT


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """Of one flavor and resource."""

    nominal: int
    borrowing_limit: int | None = None
    """None: as much as others leave. 0: nothing."""
    lending_limit: int | None = None
    """None: all of it. 0: nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceGroup:
    """Resources that a role gets in one flavor, and the flavors in the order in which they are tried."""

    resources: tuple[str, ...]
    flavors: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Preemption:
    """What a queue's gangs may preempt."""

    within_queue: WithinQueue = WithinQueue.NEVER
    reclaim: Reclaim = Reclaim.NEVER
    borrow: bool = False
    """Whether a gang may take from others of lower priority although it borrows itself."""
    borrow_threshold: int | None = None
    """Then only gangs of at most this priority."""
    minimum_run: timedelta = timedelta(minutes=1)
    """How long the queue's own gangs run before one with a smaller share may preempt them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cohort:
    """Queues and cohorts that share quota, and quota of its own for all of them."""

    name: str
    parent: str | None = None
    weight: Fraction = Fraction(1)
    quotas: Mapping[FlavorResource, Quota] = field(default_factory=dict)
    order: Order | None = None
    """Of the tree: only a root says it."""
    strategies: tuple[Strategy, ...] = tuple(Strategy)


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """Where gangs wait."""

    name: str
    cohort: str | None = None
    weight: Fraction = Fraction(1)
    quotas: Mapping[FlavorResource, Quota] = field(default_factory=dict)
    groups: tuple[ResourceGroup, ...] = ()
    order: QueueOrder = QueueOrder.BEST_EFFORT_FIFO
    preemption: Preemption = Preemption()
    borrow_first: bool = True
    """Borrow in a flavor before the next is tried."""
    preempt_first: bool = False
    """Preempt in a flavor before the next is tried."""
    leases_nodes: bool = False
    """Its gangs take whole nodes, which are leased to them."""
    spot_share: Fraction | None = None
    """No gang starts on spot with which more of what the queue uses of any resource would ride on spot."""
    stopped: bool = False
    """Its gangs wait; those that run go on."""
    labelled: bool = False
    """Only namespaces that its label grants it to may use it; else all may."""
    max_priority: int | None = None
    """A gang counts in it with no higher priority."""


_STRATEGIES: Final = (*((strategy,) for strategy in Strategy), tuple(Strategy))


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueConfiguration:
    """All queues of a cluster, with their cohorts and flavors."""

    flavors: tuple[Flavor, ...] = ()
    cohorts: tuple[Cohort, ...] = ()
    queues: tuple[Queue, ...] = ()
    topology_levels: tuple[str, ...] = ()
    """Node labels, the widest first: a value counts together with those above it, since racks of two blocks may
    have one name."""
    free_resources: frozenset[str] = frozenset()
    """No queue counts them: a gang may request as much of them as its nodes have."""
    priorities: Mapping[str, int] = field(default_factory=dict)
    """Name -> priority. Where there are any, a gang names one of them, and states no number."""
    frameworks: tuple[str, ...] = ()
    """Whose objects are queued beside Jobs and bare pods."""


def problems_of(configuration: QueueConfiguration) -> list[str]:
    """Say what is wrong with a configuration, each with its place; nothing where all is well."""
    cohorts = {cohort.name: cohort for cohort in configuration.cohorts}
    found = twice("flavor", (flavor.name for flavor in configuration.flavors))
    found += twice("cohort", (cohort.name for cohort in configuration.cohorts))
    found += twice("queue", (queue.name for queue in configuration.queues))
    found += twice("topology level", configuration.topology_levels)
    found += [
        f"priorities: {name}: is a number: a gang could not tell it from its value"
        for name in configuration.priorities
        if name.removeprefix("-").isdecimal()
    ]
    found += _parents(configuration, cohorts)
    if found:
        return found  # what follows walks up the trees
    flavors = {flavor.name for flavor in configuration.flavors}
    for cohort in configuration.cohorts:
        found += _of_cohort(cohort, flavors)
    on_spot = {flavor.name for flavor in configuration.flavors if flavor.spot}
    for queue in configuration.queues:
        found += _of_queue(queue, root_of(queue, cohorts), flavors)
        if queue.spot_share is not None:
            found += _of_spot_share(queue, on_spot)
    quotas = chain(
        chain.from_iterable(cohort.quotas for cohort in configuration.cohorts),
        chain.from_iterable(queue.quotas for queue in configuration.queues),
    )
    found += [
        f"free resource {resource}: a queue or cohort has quota of it"
        for resource in sorted({resource for _, resource in quotas} & configuration.free_resources)
    ]
    weighed = [(f"cohort {c.name}", c.weight, root_of(c, cohorts)) for c in configuration.cohorts]
    weighed += [(f"queue {q.name}", q.weight, root_of(q, cohorts)) for q in configuration.queues]
    for place, weight, root in weighed:
        if weight < 0:
            found.append(f"{place}: weight: must be at least 0")
        elif weight == 0 and order_of(root) is not Order.DOMINANT_RESOURCE_SHARE:
            found.append(
                f"{place}: weight: 0 means that it borrows last and loses first, which only the order"
                f" {Order.DOMINANT_RESOURCE_SHARE} knows; this tree has {order_of(root)}"
            )
    return found


def root_of(node: Queue | Cohort, cohorts: Mapping[str, Cohort]) -> Cohort | None:
    """Return the cohort at the top of a tree; None for a queue that stands alone."""
    above = node.cohort if isinstance(node, Queue) else node.name
    root = cohorts[above] if above is not None else None
    while root is not None and root.parent is not None:
        root = cohorts[root.parent]
    return root


def order_of(root: Cohort | None) -> Order:
    """Return the order of a tree; a queue that stands alone shares with nobody."""
    return Order.PRIORITY if root is None else root.order or Order.PRIORITY


def twice(kind: str, names: Iterable[str]) -> list[str]:
    """Say which names of a kind stand in a file more than once."""
    counted = Counter(names)
    return [f"{kind} {name}: stands there twice" for name in sorted(counted) if counted[name] > 1]


def _parents(configuration: QueueConfiguration, cohorts: Mapping[str, Cohort]) -> Iterator[str]:
    for queue in configuration.queues:
        if queue.cohort is not None and queue.cohort not in cohorts:
            yield f"queue {queue.name}: cohort: there is no cohort {queue.cohort}"
    for cohort in configuration.cohorts:
        path, above = [cohort.name], cohort.parent
        while above is not None:
            if above not in cohorts:
                if len(path) == 1:
                    yield f"cohort {cohort.name}: parent: there is no cohort {above}"
                break
            if above in path:
                if above == cohort.name:
                    yield f"cohort {cohort.name}: parent: a cycle: {' < '.join([*path, above])}"
                break
            path.append(above)
            above = cohorts[above].parent
        if len(path) > MOST_COHORTS_ABOVE:
            yield f"cohort {cohort.name}: parent: more than {MOST_COHORTS_ABOVE} cohorts above each other"


def _of_cohort(cohort: Cohort, flavors: Iterable[str]) -> Iterator[str]:
    place = f"cohort {cohort.name}"
    if cohort.order is not None and cohort.parent is not None:
        yield f"{place}: order: only the root of a tree says it"
    if cohort.strategies not in _STRATEGIES:
        yield f"{place}: strategies: one of the two, or {' and then '.join(Strategy)}"
    yield from _quotas(place, cohort.quotas, flavors, parent=cohort.parent)


def _of_queue(queue: Queue, root: Cohort | None, flavors: Iterable[str]) -> Iterator[str]:
    place = f"queue {queue.name}"
    yield from _quotas(place, queue.quotas, flavors, parent=queue.cohort)
    for what, names in (
        ("resource", list(chain.from_iterable(g.resources for g in queue.groups))),
        ("flavor", list(chain.from_iterable(g.flavors for g in queue.groups))),
    ):
        for name in sorted({name for name in names if names.count(name) > 1}):
            yield f"{place}: groups: the {what} {name} stands there twice"
    grouped = {(f, r) for g in queue.groups for f in g.flavors for r in g.resources}
    for flavor, resource in sorted(grouped - queue.quotas.keys()):
        yield f"{place}: quota of {resource} in {flavor}: is missing, and its group names both"
    for flavor, resource in sorted(queue.quotas.keys() - grouped):
        yield f"{place}: quota of {resource} in {flavor}: no group of the queue names both"
    if queue.preemption.borrow:
        if order_of(root) is not Order.PRIORITY:
            yield f"{place}: preemption: borrowing while preempting is only for the order {Order.PRIORITY}"
        if queue.preemption.reclaim is Reclaim.NEVER:
            yield f"{place}: preemption: who may not reclaim cannot preempt while borrowing"


def _of_spot_share(queue: Queue, on_spot: AbstractSet[str]) -> Iterator[str]:
    place = f"queue {queue.name}: spotShare"
    if queue.spot_share is not None and not 0 <= queue.spot_share <= 1:
        yield f"{place}: must be from 0 to 1"
    if on_spot.isdisjoint(flavor for flavor, _ in queue.quotas):
        yield f"{place}: none of its flavors is spot by a node label such as {CAPACITY_LABELS[1]}: spot"


def _quotas(
    place: str,
    quotas: Mapping[FlavorResource, Quota],
    flavors: Iterable[str],
    *,
    parent: str | None,
) -> Iterator[str]:
    for (flavor, resource), quota in quotas.items():
        at = f"{place}: quota of {resource} in {flavor}"
        if flavor not in flavors:
            yield f"{at}: there is no flavor {flavor}"
        amounts = (quota.nominal, quota.borrowing_limit or 0, quota.lending_limit or 0)
        if min(amounts) < 0:
            yield f"{at}: must be at least 0"
        if parent is None and (quota.borrowing_limit, quota.lending_limit) != (None, None):
            yield f"{at}: a limit needs a cohort above, to borrow from or lend to"
