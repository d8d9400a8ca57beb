"""The file that configures queues: read with every problem and its place.

It is YAML or JSON; who has read the text gives what it holds.
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, PlainValidator

from plimsoll.domain.errors import BadInput
from plimsoll.domain.fields import clip
from plimsoll.domain.kubernetes import Resources, Taint, Toleration
from plimsoll_batch.adapters.documents import Strict, told, validated
from plimsoll_batch.domain.frameworks import NAMES
from plimsoll_batch.domain.jobs import MOST_PRIORITY, FlavorResource, amounts_of
from plimsoll_batch.domain.quota import (
    Cohort,
    Flavor,
    Order,
    Preemption,
    Queue,
    QueueConfiguration,
    QueueOrder,
    Quota,
    Reclaim,
    ResourceGroup,
    Strategy,
    WithinQueue,
    problems_of,
)

MOST_ENTRIES: Final = 10_000
"""Queues, cohorts or flavors in a file."""
LONGEST_NAME: Final = 253
MOST_LEVELS: Final = 16
"""Levels of a topology."""


def _quantity(value: object) -> object:
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _stated_priority(value: object) -> int | str:
    if isinstance(value, str) and 0 < len(value) <= LONGEST_NAME:
        return value
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MOST_PRIORITY:
        return value
    raise ValueError(
        f"must be a whole number from -{MOST_PRIORITY} to {MOST_PRIORITY}, or the name of a priority, not {clip(value)}"
    )


def _framework(value: object) -> str:
    if isinstance(value, str) and value in NAMES:
        return value
    raise ValueError(f"must be one of {', '.join(NAMES)}, not {clip(value)}")


type FrameworkName = Annotated[str, PlainValidator(_framework)]
type Quantity = Annotated[str, Field(max_length=64), BeforeValidator(_quantity)]
"""As Kubernetes writes it: 500m, 2, 1.5Gi."""
type Priority = Annotated[int, Field(ge=-MOST_PRIORITY, le=MOST_PRIORITY)]
type StatedPriority = Annotated[int | str, PlainValidator(_stated_priority)]
"""A number, or a name that a configuration gives one."""
type Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]


class TaintEntry(Strict):
    """A taint of the nodes of a flavor."""

    key: Name
    value: str = ""
    effect: str = "NoSchedule"


class TolerationEntry(Strict):
    """A toleration that pods are given."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


class FlavorEntry(Strict):
    """Nodes that quota is counted apart for."""

    name: Name
    node_labels: dict[str, str] = Field(default_factory=dict)
    taints: list[TaintEntry] = Field(default_factory=list)
    tolerations: list[TolerationEntry] = Field(default_factory=list)
    price: Annotated[Decimal, Field(gt=0, le=10**6, max_digits=15, decimal_places=9)] | None = None
    interruptions_per_hour: (
        Annotated[Decimal, Field(ge=0, le=60, max_digits=15, decimal_places=9)] | None
    ) = None


class QuotaEntry(Strict):
    """Of one resource in one flavor."""

    nominal: Quantity
    borrowing_limit: Quantity | None = None
    lending_limit: Quantity | None = None


class FlavorQuotas(Strict):
    """What a queue or cohort has of one flavor, by resource."""

    name: Name
    resources: dict[Name, QuotaEntry]


class GroupEntry(Strict):
    """Flavors in the order in which they are tried; each has quota of the same resources."""

    flavors: Annotated[list[FlavorQuotas], Field(min_length=1)]


class BorrowEntry(Strict):
    """Whether a gang may preempt although it borrows."""

    policy: Literal["Never", "LowerPriority"] = "Never"
    max_priority_threshold: int | None = None


class PreemptionEntry(Strict):
    """What a queue's gangs may preempt."""

    within_queue: WithinQueue = WithinQueue.NEVER
    reclaim_within_cohort: Reclaim = Reclaim.NEVER
    borrow_within_cohort: BorrowEntry = BorrowEntry()
    minimum_run_seconds: Annotated[int, Field(ge=0, le=86_400)] = 60


class CohortEntry(Strict):
    """A cohort."""

    name: Name
    parent: str | None = None
    weight: Decimal = Decimal(1)
    order: Order | None = None
    preemption_strategies: list[Strategy] = Field(default_factory=lambda: list(Strategy))
    resource_groups: list[GroupEntry] = Field(default_factory=list)


class QueueEntry(Strict):
    """A queue."""

    name: Name
    cohort: str | None = None
    weight: Decimal = Decimal(1)
    order: QueueOrder = QueueOrder.BEST_EFFORT_FIFO
    preemption: PreemptionEntry = PreemptionEntry()
    when_can_borrow: Literal["Borrow", "TryNextFlavor"] = "Borrow"
    when_can_preempt: Literal["Preempt", "TryNextFlavor"] = "TryNextFlavor"
    lease_nodes: bool = False
    spot_share: Annotated[Decimal, Field(ge=0, le=1)] | None = None
    stopped: bool = False
    access: Literal["all", "labelled"] = "all"
    max_priority: Priority | None = None
    resource_groups: list[GroupEntry] = Field(default_factory=list)


class QueuesFile(Strict):
    """The whole file."""

    flavors: Annotated[list[FlavorEntry], Field(max_length=MOST_ENTRIES)] = Field(
        default_factory=list
    )
    cohorts: Annotated[list[CohortEntry], Field(max_length=MOST_ENTRIES)] = Field(
        default_factory=list
    )
    queues: Annotated[list[QueueEntry], Field(max_length=MOST_ENTRIES)] = Field(
        default_factory=list
    )
    topology_levels: Annotated[list[Name], Field(max_length=MOST_LEVELS)] = Field(
        default_factory=list
    )
    free_resources: Annotated[list[Name], Field(max_length=MOST_ENTRIES)] = Field(
        default_factory=list
    )
    priorities: Annotated[dict[Name, Priority], Field(max_length=MOST_ENTRIES)] = Field(
        default_factory=dict
    )
    frameworks: Annotated[list[FrameworkName], Field(max_length=len(NAMES))] = Field(
        default_factory=list
    )


def configuration_of(document: Any) -> QueueConfiguration:
    """Return the configuration that a file holds.

    Raises:
        BadInput: names every problem and its place.
    """
    read = validated(QueuesFile, document)
    problems: list[str] = []
    found = QueueConfiguration(
        flavors=tuple(_flavor(entry, problems) for entry in read.flavors),
        cohorts=tuple(
            Cohort(
                name=entry.name,
                parent=entry.parent,
                weight=Fraction(entry.weight),
                quotas=_quotas(f"cohort {entry.name}", entry.resource_groups, problems),
                order=entry.order,
                strategies=tuple(entry.preemption_strategies),
            )
            for entry in read.cohorts
        ),
        queues=tuple(_queue(entry, problems) for entry in read.queues),
        topology_levels=tuple(read.topology_levels),
        free_resources=frozenset(read.free_resources),
        priorities=read.priorities,
        frameworks=tuple(dict.fromkeys(read.frameworks)),
    )
    problems += problems_of(found)
    if problems:
        raise BadInput(told(problems))
    return found


def _flavor(entry: FlavorEntry, problems: list[str]) -> Flavor:
    priced, interrupted = entry.price is not None, entry.interruptions_per_hour is not None
    found = Flavor(
        name=entry.name,
        node_labels=entry.node_labels,
        taints=tuple(Taint(key=t.key, value=t.value, effect=t.effect) for t in entry.taints),
        tolerations=tuple(
            Toleration(key=t.key, operator=t.operator, value=t.value, effect=t.effect)
            for t in entry.tolerations
        ),
        price=None if entry.price is None else Fraction(entry.price),
        interruptions_per_hour=Fraction(entry.interruptions_per_hour or 0),
    )
    if interrupted and not priced:
        problems.append(f"flavor {entry.name}: interruptionsPerHour counts beside a price only")
    if priced and found.spot and not interrupted:
        problems.append(
            f"flavor {entry.name}: price: is spot, so interruptionsPerHour is needed too"
        )
    return found


def _queue(entry: QueueEntry, problems: list[str]) -> Queue:
    place, may = f"queue {entry.name}", entry.preemption
    groups = []
    for number, group in enumerate(entry.resource_groups):
        named = {tuple(sorted(flavor.resources)) for flavor in group.flavors}
        if len(named) > 1:
            problems.append(
                f"{place}: resourceGroups.{number}: its flavors name different resources"
            )
        names = tuple(flavor.name for flavor in group.flavors)
        groups.append(ResourceGroup(resources=min(named), flavors=names))
    return Queue(
        name=entry.name,
        cohort=entry.cohort,
        weight=Fraction(entry.weight),
        quotas=_quotas(place, entry.resource_groups, problems),
        groups=tuple(groups),
        order=entry.order,
        preemption=Preemption(
            within_queue=may.within_queue,
            reclaim=may.reclaim_within_cohort,
            borrow=may.borrow_within_cohort.policy != "Never",
            borrow_threshold=may.borrow_within_cohort.max_priority_threshold,
            minimum_run=timedelta(seconds=may.minimum_run_seconds),
        ),
        borrow_first=entry.when_can_borrow == "Borrow",
        preempt_first=entry.when_can_preempt == "Preempt",
        leases_nodes=entry.lease_nodes,
        spot_share=None if entry.spot_share is None else Fraction(entry.spot_share),
        stopped=entry.stopped,
        labelled=entry.access == "labelled",
        max_priority=entry.max_priority,
    )


def _quotas(
    place: str, groups: list[GroupEntry], problems: list[str]
) -> dict[FlavorResource, Quota]:
    found: dict[FlavorResource, Quota] = {}
    for group in groups:
        for flavor in group.flavors:
            for resource, entry in flavor.resources.items():
                try:
                    quota = Quota(
                        nominal=amount(resource, entry.nominal),
                        borrowing_limit=_limit(resource, entry.borrowing_limit),
                        lending_limit=_limit(resource, entry.lending_limit),
                    )
                except BadInput as error:
                    problems.append(f"{place}: quota of {resource} in {flavor.name}: {error}")
                    quota = Quota(nominal=0)
                found[flavor.name, resource] = quota
    return found


def amount(resource: str, quantity: str) -> int:
    """Return a quantity in the units of the planner.

    Raises:
        BadInput: it is not a quantity.
    """
    found = amounts_of(Resources.parse({resource: quantity}), 1)
    return found.get(resource, 0)


def _limit(resource: str, quantity: str | None) -> int | None:
    return None if quantity is None else amount(resource, quantity)
