"""Which flavor each role of a gang gets, by quota.

As Kueue: flavors are tried in the order of the configuration, for each role and group of resources; the
first that fits is taken, unless the queue would rather try the next before it borrows or preempts. Where
prices are known they are tried in the order of their costs.
https://kueue.sigs.k8s.io/docs/concepts/cluster_queue/#flavorfungibility

An instance that goes takes the work of all pods of its gang with it, back to when they last saved it. So a flavor
costs its price times (1 + interruptions of an instance and hour x pods of the gang x hours that one loses). Each pod
counts as an instance of its own, since no place is known yet. Where anything of that is not said, the
configuration's order stays.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Final, NamedTuple

from plimsoll.domain.kubernetes import Node, NodeTerm, Scheduling, node_selected, untolerated
from plimsoll_batch.domain.jobs import Role, Shape, amounts_of
from plimsoll_batch.domain.quota.cohorts import (
    Flavor,
    Order,
    Queue,
    QueueConfiguration,
    Reclaim,
    ResourceGroup,
    WithinQueue,
)
from plimsoll_batch.domain.quota.quota_tree import Amounts, QuotaNode

type RoleFlavors = tuple[str, ...]
"""One flavor for each group of resources that a role requests of."""

PODS = "pods"
"""Counted only where a queue has quota for it: every pod is one."""
_HOUR: Final = timedelta(hours=1)
_MICROSECOND: Final = timedelta(microseconds=1)
_NEVER = datetime.max.replace(tzinfo=UTC)


class FlavorOption(NamedTuple):
    """A flavor that a role may get for one group, and what it would count for."""

    flavor: str
    amounts: Amounts


type Options = Sequence[Sequence[Sequence[FlavorOption]]]
"""By role, by group, in the order in which they are tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """A flavor for every role."""

    flavors: tuple[RoleFlavors, ...]
    """In the order of the shape's roles."""
    amounts: Amounts
    """What the gang counts for in its queue."""
    preempts: bool
    """It fits only when others stop."""
    height: int
    """How far up the tree it borrows."""
    passed_over: tuple[str, ...] = field(default=(), compare=False)
    """Why it does not ride on spot where its flavors' order and quota would let it, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unassigned:
    """Why a gang gets no flavors, in words."""

    reasons: tuple[str, ...]


def options_of(
    shape: Shape,
    queue: Queue,
    flavors: Mapping[str, Flavor],
    number: Mapping[tuple[str, str], int],
    free: Collection[str] = (),
) -> Options | Unassigned:
    """Return the flavors that a shape may ever get in a queue, whatever is used.

    Args:
        shape: of a gang.
        queue: where it waits.
        flavors: by name.
        number: of a flavor and resource.
        free: resources that no queue counts.
    """
    found: list[list[list[FlavorOption]]] = []
    for role in shape.roles:
        wanted = amounts_of(role.scheduling.requests, role.pods)
        covered = {resource for group in queue.groups for resource in group.resources}
        unknown = sorted(wanted.keys() - covered - {PODS, *free})
        if unknown:
            return Unassigned(
                reasons=(f"queue {queue.name} has no quota for {', '.join(unknown)}",)
            )
        groups: list[list[FlavorOption]] = []
        for group, named in _wanted(role, queue):
            options: list[FlavorOption] = []
            reasons: list[str] = []
            for name in by_cost(group.flavors, flavors, shape):
                why = why_not(role, flavors[name], _distinctive(name, group, flavors))
                if why is None:
                    amounts = [(number[name, resource], wanted[resource]) for resource in named]
                    options.append(FlavorOption(name, amounts))
                else:
                    reasons.append(f"role {role.name} in flavor {name}: {why}")
            if not options:
                return Unassigned(reasons=tuple(reasons))
            groups.append(options)
        found.append(groups)
    return found


def grouped(role: Role, queue: Queue) -> Sequence[Sequence[str]]:
    """Return what a role requests of each group of resources; of groups that it needs nothing of, none.

    A role's flavors are in the same order.
    """
    return [named for _, named in _wanted(role, queue)]


def _wanted(role: Role, queue: Queue) -> Iterator[tuple[ResourceGroup, Sequence[str]]]:
    wanted = amounts_of(role.scheduling.requests, role.pods)
    for group in queue.groups:
        named = [resource for resource in group.resources if wanted.get(resource)]
        if named:
            yield group, named


def _distinctive(name: str, group: ResourceGroup, flavors: Mapping[str, Flavor]) -> set[str]:
    """Return the labels that decide which pods a flavor takes: its own, and those that mark some of its nodes as another's.

    It says nothing of other labels: its nodes may have any value.
    """
    own = flavors[name].node_labels.items()
    labels = (flavors[other].node_labels for other in group.flavors)
    return {key for each in labels if each.items() >= own for key in each}


def why_not(role: Role, flavor: Flavor, keys: Collection[str]) -> str | None:
    """Say why a role's pods cannot be in a flavor, by its labels and taints; None where they can.

    Only the given labels are compared: nodes have others.
    """
    scheduling = role.scheduling
    taint = untolerated(flavor.taints, (*scheduling.tolerations, *flavor.tolerations))
    if taint is not None:
        return f"untolerated taint {{{taint.key}: {taint.value}}}"
    asked = replace(
        scheduling,
        node_selector={k: v for k, v in scheduling.node_selector.items() if k in keys},
        node_terms=_restricted(scheduling, keys),
    )
    return (
        None if node_selected(asked, _example(flavor, scheduling)) else "its node affinity differs"
    )


def _restricted(scheduling: Scheduling, keys: Collection[str]) -> tuple[NodeTerm, ...] | None:
    """Return node affinity as far as it is about these labels; None where a term asks for nothing else."""
    terms = [
        NodeTerm(expressions=tuple(e for e in term.expressions if e.key in keys))
        for term in scheduling.node_terms or ()
    ]
    return tuple(terms) if terms and all(term.expressions for term in terms) else None


def _example(flavor: Flavor, scheduling: Scheduling) -> Node:
    return Node(
        name=flavor.name,
        uid="",
        resource_version="",
        labels=flavor.node_labels,
        allocatable=scheduling.requests,
        created=_NEVER,
    )


def assign(
    node: QuotaNode,
    queue: Queue,
    options: Options,
    refused: Collection[tuple[RoleFlavors, ...]] = (),
) -> Assignment | Unassigned:
    """Choose flavors by what is left of quotas now.

    Args:
        node: the queue's place in its tree.
        queue: its configuration.
        options: of the gang's shape.
        refused: assignments for which no nodes were found.
    """
    closed: set[tuple[int, int, str]] = set()
    passed_over: dict[str, None] = {}
    while True:
        found = _assign(node, queue, options, closed)
        if isinstance(found, Unassigned):
            return Unassigned(reasons=(*passed_over, *found.reasons)) if passed_over else found
        above = node.above_spot_share(found.amounts)
        if above is None and found.flavors not in refused:
            return replace(found, passed_over=tuple(passed_over)) if passed_over else found
        if above is not None:
            passed_over[above] = None
        last = _last_choice(options, found, closed)
        if last is None:
            return Unassigned(reasons=tuple(passed_over) or ("no nodes for it in any flavor",))
        closed.add(last)


def assignments(node: QuotaNode, queue: Queue, options: Options) -> Iterator[Assignment]:
    """Yield all flavors that a gang may get now, in the order in which they are tried."""
    tried: set[tuple[RoleFlavors, ...]] = set()
    while isinstance(found := assign(node, queue, options, tried), Assignment):
        yield found
        tried.add(found.flavors)


def _last_choice(
    options: Options, found: Assignment, closed: Collection[tuple[int, int, str]]
) -> tuple[int, int, str] | None:
    """Return the last choice that can be made otherwise."""
    for r in reversed(range(len(options))):
        for g in reversed(range(len(options[r]))):
            taken = found.flavors[r][g]
            if any(o.flavor != taken and (r, g, o.flavor) not in closed for o in options[r][g]):
                return r, g, taken
    return None


def _assign(
    node: QuotaNode, queue: Queue, options: Options, closed: Collection[tuple[int, int, str]]
) -> Assignment | Unassigned:
    total: dict[int, int] = {}
    chosen: list[RoleFlavors] = []
    preempts, height = False, 0
    for r, groups in enumerate(options):
        names: list[str] = []
        for g, each in enumerate(groups):
            open_ = [option for option in each if (r, g, option.flavor) not in closed]
            found = _choose(node, queue, open_, total)
            if isinstance(found, Unassigned):
                return found
            must_preempt, borrowed, option = found
            preempts, height = preempts or must_preempt, max(height, borrowed)
            names.append(option.flavor)
            for i, amount in option.amounts:
                total[i] = total.get(i, 0) + amount
        chosen.append(tuple(names))
    return Assignment(
        flavors=tuple(chosen), amounts=tuple(total.items()), preempts=preempts, height=height
    )


def _choose(
    node: QuotaNode, queue: Queue, options: Sequence[FlavorOption], total: Mapping[int, int]
) -> tuple[bool, int, FlavorOption] | Unassigned:
    """Return whether the chosen flavor needs preemption, how far up it borrows, and which it is."""
    best: tuple[bool, int, FlavorOption] | None = None
    reasons: list[str] = []
    for option in options:
        judged = _judge(node, queue, option, total)
        if isinstance(judged, str):
            reasons.append(judged)
            continue
        must_preempt, borrowed = judged
        if best is None or _rank(judged) < _rank(best[:2]):
            best = (*judged, option)
        if queue.preempt_first if must_preempt else queue.borrow_first or not borrowed:
            break
    return Unassigned(reasons=tuple(reasons)) if best is None else best


def _rank(judged: tuple[bool, int]) -> tuple[bool, int]:
    """Return what flavors are compared by; of those in which it preempts the first wins, however far up it borrows."""
    must_preempt, borrowed = judged
    return must_preempt, 0 if must_preempt else borrowed


def _judge(
    node: QuotaNode, queue: Queue, option: FlavorOption, total: Mapping[int, int]
) -> tuple[bool, int] | str:
    """Return whether a flavor needs preemption and how far up it borrows; or why it will not do."""
    preempts, height = False, 0
    for i, more in option.amounts:
        amount = more + total.get(i, 0)
        if amount > node.potential[i]:
            return (
                f"flavor {option.flavor}: it wants {node.amount_text(i, amount)} {node.frs[i][1]} and the queue"
                f" can never have more than {node.amount_text(i, node.potential[i])}"
            )
        holding = node.lowest_holding(i, amount)
        if amount > node.available(i):
            entitled = amount <= node.nominal[i] or holding.parent is not None
            if not entitled and not _may_preempt(node, queue):
                left = node.amount_text(i, max(0, node.available(i)))
                wanted = f"{node.amount_text(i, amount)} {node.frs[i][1]}"
                return f"flavor {option.flavor}: it wants {wanted}, {left} are left"
            preempts = True
        height = max(height, holding.height)
    return preempts, height


def _may_preempt(node: QuotaNode, queue: Queue) -> bool:
    """Whether a gang that nothing below the root entitles to its amount may preempt at all."""
    may = queue.preemption
    if may.within_queue is not WithinQueue.NEVER or may.borrow:
        return True
    return node.order is not Order.PRIORITY and may.reclaim is not Reclaim.NEVER


def cost_of(flavor: Flavor, shape: Shape) -> Fraction | None:
    """Return what a pod and hour of a gang costs in a flavor; None where that is not known."""
    if flavor.price is None or shape.loses is None:
        return None
    pods = sum(role.pods for role in shape.roles)
    hours = Fraction(shape.loses // _MICROSECOND, _HOUR // _MICROSECOND)
    return flavor.price * (1 + flavor.interruptions_per_hour * pods * hours)


def by_cost(names: Sequence[str], flavors: Mapping[str, Flavor], shape: Shape) -> Sequence[str]:
    """Return flavors in the order in which they are tried: the cheapest first, equal ones as configured."""
    costs: dict[str, Fraction] = {}
    for name in names:
        cost = cost_of(flavors[name], shape)
        if cost is None:
            return names
        costs[name] = cost
    return sorted(names, key=costs.__getitem__)


def priced_queues(configuration: QueueConfiguration) -> frozenset[str]:
    """Return the queues in which costs may change an order."""
    priced = {flavor.name for flavor in configuration.flavors if flavor.price is not None}
    return frozenset(
        queue.name
        for queue in configuration.queues
        if any(
            len(group.flavors) > 1 and priced.issuperset(group.flavors) for group in queue.groups
        )
    )


def costs_in_words(shape: Shape, queue: Queue, flavors: Mapping[str, Flavor]) -> tuple[str, ...]:
    """Say by which costs the flavors of each group are ordered; nothing of groups that keep their order."""
    found = []
    for group in queue.groups:
        costs = [
            (name, cost_of(flavors[name], shape)) for name in by_cost(group.flavors, flavors, shape)
        ]
        known = [f"{name} {float(cost):.4g}" for name, cost in costs if cost is not None]
        if shape.loses is not None and 1 < len(costs) == len(known):
            lost = f"{shape.loses.total_seconds():.0f} s"
            found.append(
                f"flavors by cost of a pod and hour, with {lost} lost by an interruption: {', '.join(known)}"
            )
    return tuple(found)
