"""The arithmetic of quotas in a tree: what a queue may use, what it borrows, and what others left it.

A node's quota is its own and what its children lend. What it does not lend is local: neither it nor its
use is seen from above. Amounts are lists by the number of a flavor and resource. Whole numbers of Python
have no bound, so sums cannot overflow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import override

from plimsoll_batch.domain.jobs import FlavorResource
from plimsoll_batch.domain.quota.amounts import amount_text
from plimsoll_batch.domain.quota.cohorts import (
    Cohort,
    Order,
    Preemption,
    Queue,
    QueueConfiguration,
    Quota,
    order_of,
)

type Amounts = Sequence[tuple[int, int]]
"""Number of a flavor and resource, and how much of it."""

_NONE = Quota(nominal=0)


class QuotaNode:
    """A queue or a cohort, with what is used of its quota."""

    __slots__ = (
        "borrowing",
        "children",
        "definition",
        "frs",
        "height",
        "lendable",
        "local",
        "nominal",
        "number",
        "on_spot",
        "order",
        "parent",
        "potential",
        "spot_share",
        "subtree",
        "usage",
    )

    def __init__(
        self, definition: Queue | Cohort, number: int, frs: Sequence[FlavorResource]
    ) -> None:
        """Make a node; `link` it when its children are linked, `open` it when its parent is open."""
        quotas = [definition.quotas.get(fr, _NONE) for fr in frs]
        self.definition = definition
        self.frs = frs
        self.number = number
        """Puts nodes in a stable order."""
        self.parent: QuotaNode | None = None
        self.children: list[QuotaNode] = []
        self.order = Order.PRIORITY
        """Of its tree."""
        self.height = 0
        """Levels below it."""
        self.nominal = [quota.nominal for quota in quotas]
        self.borrowing = [quota.borrowing_limit for quota in quotas]
        self.subtree: list[int] = []
        """Its quota and what is lent by what is below it."""
        self.local: list[int] = []
        self.potential: list[int] = []
        """What it could use if nobody else used anything."""
        self.lendable: dict[str, int] = {}
        """Resource -> potential, summed over flavors."""
        self.usage = [0] * len(frs)
        self.spot_share = definition.spot_share if isinstance(definition, Queue) else None
        self.on_spot: Mapping[str, tuple[Sequence[int], Sequence[int]]] = {}
        """Resource -> its numbers in flavors that are spot, and in all."""

    @property
    def name(self) -> str:
        """Its name; a queue may have that of a cohort."""
        return self.definition.name

    @override
    def __repr__(self) -> str:
        return f"{type(self.definition).__name__.lower()} {self.name}"

    @property
    def may_preempt(self) -> Preemption:
        """What the gangs of the queue may preempt."""
        return self.definition.preemption if isinstance(self.definition, Queue) else Preemption()

    def path(self) -> Iterator[QuotaNode]:
        """Yield itself and all above it."""
        node: QuotaNode | None = self
        while node is not None:
            yield node
            node = node.parent

    def link(self, frs: Sequence[FlavorResource]) -> None:
        """Compute its subtree's quota, from below."""
        lending = [self.definition.quotas.get(fr, _NONE).lending_limit for fr in frs]
        lent = ([c.subtree[i] - c.local[i] for c in self.children] for i in range(len(frs)))
        self.subtree = [own + sum(below) for own, below in zip(self.nominal, lent, strict=True)]
        self.local = [
            0 if limit is None else max(0, whole - limit)
            for whole, limit in zip(self.subtree, lending, strict=True)
        ]
        self.height = max((child.height + 1 for child in self.children), default=0)

    def open(self, frs: Sequence[FlavorResource]) -> None:
        """Compute what it could use, from above."""
        if self.parent is None:
            self.potential = list(self.subtree)
        else:
            above = self.parent.potential
            most = [local + more for local, more in zip(self.local, above, strict=True)]
            self.potential = [
                amount if limit is None else min(amount, whole + limit)
                for amount, limit, whole in zip(most, self.borrowing, self.subtree, strict=True)
            ]
        for (_, resource), amount in zip(frs, self.potential, strict=True):
            self.lendable[resource] = self.lendable.get(resource, 0) + amount

    def local_available(self, i: int) -> int:
        """Return what it has left of what it does not lend."""
        return max(0, self.local[i] - self.usage[i])

    def available(self, i: int) -> int:
        """Return how much more it may use; below zero where quota was cut below the use."""
        if self.parent is None:
            return self.subtree[i] - self.usage[i]
        above = self.parent.available(i)
        limit = self.borrowing[i]
        if limit is not None:
            stored = self.subtree[i] - self.local[i]
            above = min(above, stored - max(0, self.usage[i] - self.local[i]) + limit)
        return self.local_available(i) + above

    def borrows(self, i: int, more: int = 0) -> bool:
        """Whether it uses more than its subtree's quota, with so much on top."""
        return self.usage[i] + more > self.subtree[i]

    def add(self, i: int, amount: int) -> None:
        """Count use, as far up as it is seen."""
        node: QuotaNode | None = self
        while node is not None and amount > 0:
            hidden = node.local_available(i)
            node.usage[i] += amount
            amount -= hidden
            node = node.parent

    def remove(self, i: int, amount: int) -> None:
        """Count use no longer."""
        node: QuotaNode | None = self
        while node is not None and amount > 0:
            seen = node.usage[i] - node.local[i]
            node.usage[i] -= amount
            amount = min(amount, seen)
            node = node.parent

    def add_all(self, amounts: Amounts) -> None:
        """Count use of several."""
        for i, amount in amounts:
            self.add(i, amount)

    def remove_all(self, amounts: Amounts) -> None:
        """Count use of several no longer."""
        for i, amount in amounts:
            self.remove(i, amount)

    def amount_text(self, i: int, amount: int) -> str:
        """Return an amount as people write it."""
        return amount_text(self.frs[i][1], amount)

    def holds(self, amounts: Amounts, *, borrow: bool = True) -> bool:
        """Whether it may use so much more; without borrowing on request."""
        return self.above_spot_share(amounts) is None and all(
            amount <= self.available(i) and (borrow or not self.borrows(i, amount))
            for i, amount in amounts
        )

    def above_spot_share(self, amounts: Amounts) -> str | None:
        """Say of which resource too much would ride on spot with so much more; None where none does.

        What adds nothing on spot is never refused: it lowers the share.
        """
        if self.spot_share is None:
            return None
        more = dict(amounts)
        for resource, (on_spot, everywhere) in self.on_spot.items():
            if not any(more.get(i) for i in on_spot):
                continue
            riding, whole = (
                sum(self.usage[i] + more.get(i, 0) for i in numbers)
                for numbers in (on_spot, everywhere)
            )
            if riding > self.spot_share * whole:
                return (
                    f"spotShare: queue {self.name} lets {float(self.spot_share):.0%} of its {resource} ride"
                    f" on spot, and with it {amount_text(resource, riding)} of"
                    f" {amount_text(resource, whole)} would"
                )
        return None

    def lowest_holding(self, i: int, amount: int) -> QuotaNode:
        """Return the lowest subtree whose quota holds so much more; the root where none does.

        Its height says how far up it borrows.
        """
        node, left = self, amount
        while node.parent is not None and node.borrows(i, left):
            left -= node.local_available(i)
            node = node.parent
        return node


class QuotaTrees:
    """The trees of a configuration, with nothing used yet."""

    def __init__(self, configuration: QueueConfiguration) -> None:
        """Build the trees of a configuration that has no problems."""
        definitions: Sequence[Queue | Cohort] = (*configuration.cohorts, *configuration.queues)
        self.frs = tuple(sorted({fr for each in definitions for fr in each.quotas}))
        """Flavors and resources by their numbers."""
        self.number = {fr: i for i, fr in enumerate(self.frs)}
        made = [QuotaNode(each, n, self.frs) for n, each in enumerate(definitions)]
        cohorts = dict(zip((c.name for c in configuration.cohorts), made, strict=False))
        self.queues = {node.name: node for node in made[len(configuration.cohorts) :]}
        on_spot = _on_spot(configuration, self.frs)
        for node in self.queues.values():
            node.on_spot = on_spot
        for node in made:
            above = _above(node.definition)
            if above is not None:
                node.parent = cohorts[above]
                node.parent.children.append(node)
        self.roots = [node for node in made if node.parent is None]
        downwards = list(nodes_below(self.roots))
        for node in reversed(downwards):
            node.link(self.frs)
        for node in downwards:
            node.open(self.frs)
        for root in self.roots:
            definition = root.definition
            order = order_of(definition if isinstance(definition, Cohort) else None)
            for node in nodes_below([root]):
                node.order = order

    def amounts(self, usage: Iterable[tuple[FlavorResource, int]]) -> list[tuple[int, int]]:
        """Return amounts by number; what no quota counts is left out."""
        return [(self.number[fr], amount) for fr, amount in usage if fr in self.number and amount]


def _on_spot(
    configuration: QueueConfiguration, frs: Sequence[FlavorResource]
) -> Mapping[str, tuple[Sequence[int], Sequence[int]]]:
    """Return for each resource its numbers in flavors that are spot, and in all."""
    spot = {flavor.name for flavor in configuration.flavors if flavor.spot}
    found: dict[str, tuple[list[int], list[int]]] = {}
    for i, (flavor, resource) in enumerate(frs):
        on_spot, everywhere = found.setdefault(resource, ([], []))
        everywhere.append(i)
        if flavor in spot:
            on_spot.append(i)
    return found


def _above(definition: Queue | Cohort) -> str | None:
    return definition.cohort if isinstance(definition, Queue) else definition.parent


def nodes_below(roots: Sequence[QuotaNode]) -> Iterator[QuotaNode]:
    """Yield nodes, each after its parent."""
    waiting = list(roots)
    while waiting:
        node = waiting.pop()
        yield node
        waiting += node.children
