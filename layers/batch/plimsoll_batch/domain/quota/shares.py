"""How much of what is shared a queue or cohort has, in the terms of each order.

A share is compared as a pair: whether it borrows at a weight of 0, which is more than any share; then how
much it has for its weight. One division of whole numbers makes it, so that equal shares are equal.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from math import inf
from typing import Protocol, override

from plimsoll_batch.domain.jobs import FlavorResource
from plimsoll_batch.domain.quota.quota_tree import QuotaNode

type Share = tuple[bool, float]

NOTHING: Share = (False, 0.0)


class Shares(Protocol):
    """A way to measure shares, by the present use."""

    def of(self, node: QuotaNode) -> Share:
        """Return the share of a node among its siblings."""
        ...


class DominantResourceShare(Shares):
    """What is borrowed beyond a subtree's quota, of what its parent could lend: the resource with most.

    In thousandths. Use within quota counts nothing: this is
    Kueue's, not the dominant share of the paper.
    https://kueue.sigs.k8s.io/docs/concepts/fair_sharing/
    """

    def __init__(self, frs: Sequence[FlavorResource]) -> None:
        """Measure by these flavors and resources."""
        self._resources = _by_resource(frs)

    def dominant(self, node: QuotaNode) -> tuple[int, int, str]:
        """Return borrowed, lendable, and the resource of which that is the largest part."""
        best = (0, 1, "")
        if node.parent is None:
            return best
        usage, subtree, lendable = node.usage, node.subtree, node.parent.lendable
        for resource, numbers in self._resources:
            borrowed = sum(usage[i] - subtree[i] for i in numbers if usage[i] > subtree[i])
            if borrowed:
                whole = lendable[resource]
                if whole > 0 and borrowed * best[1] > best[0] * whole:
                    best = (borrowed, whole, resource)
        return best

    @override
    def of(self, node: QuotaNode) -> Share:
        borrowed, whole, _ = self.dominant(node)
        if not borrowed:
            return NOTHING
        weight = node.definition.weight
        if not weight:
            return True, 1000 * borrowed / whole
        return False, 1000 * borrowed * weight.denominator / (whole * weight.numerator)


class Drf(Shares):
    """The largest part that a node has of any resource of its tree, for its weight.

    https://www.usenix.org/conference/nsdi11/dominant-resource-fairness-fair-allocation-multiple-resource-types
    """

    def __init__(self, frs: Sequence[FlavorResource]) -> None:
        """Measure by these flavors and resources."""
        self._resources = _by_resource(frs)

    @override
    def of(self, node: QuotaNode) -> Share:
        *_, root = node.path()
        usage, whole = node.usage, root.lendable
        parts = (
            (sum(usage[i] for i in numbers), whole[resource])
            for resource, numbers in self._resources
        )
        weight = node.definition.weight
        return False, max(
            (u * weight.denominator / (w * weight.numerator) for u, w in parts if w > 0),
            default=0.0,
        )


class HierarchicalDrf(Shares):
    """Dominant shares level by level, with what blocked queues hold left out of the comparison.

    A cohort has what its children have once each that is not blocked is scaled down to the least of
    them: else a cohort whose one queue got much of a resource that nobody else wants would starve its
    others. https://doi.org/10.1145/2523616.2523637 (Bhattacharya and others, 2013)
    """

    def __init__(self, frs: Sequence[FlavorResource], blocked: Collection[QuotaNode]) -> None:
        """Measure by these flavors and resources.

        Args:
            frs: flavors and resources.
            blocked: queues of which nothing can be admitted at present; it may change.
        """
        self._resources = _by_resource(frs)
        self._blocked = blocked

    @override
    def of(self, node: QuotaNode) -> Share:
        *_, root = node.path()
        whole = [root.lendable[resource] for resource, _ in self._resources]
        used, _ = self._scaled(node, whole)
        return False, float(_exact(used, whole, node.definition.weight))

    def _scaled(self, node: QuotaNode, whole: Sequence[int]) -> tuple[list[Fraction], bool]:
        """Return what counts as used of each resource, and whether the node is blocked."""
        if not node.children:
            usage = [Fraction(sum(node.usage[i] for i in ns)) for _, ns in self._resources]
            return usage, node in self._blocked
        below = [(child, *self._scaled(child, whole)) for child in node.children]
        share = {
            child: _exact(used, whole, child.definition.weight)
            for child, used, blocked in below
            if not blocked and any(used)
        }
        least = min(share.values(), default=Fraction(1))
        total = [Fraction(0)] * len(whole)
        for child, used, _ in below:
            scale = least / share[child] if share.get(child) else Fraction(1)
            total = [t + u * scale for t, u in zip(total, used, strict=True)]
        return total, all(blocked for *_, blocked in below)


class WaterFilling(Shares):
    """What a node has of what it deserves, of the resource of which that is most."""

    def __init__(
        self,
        roots: Sequence[QuotaNode],
        frs: Sequence[FlavorResource],
        requested: Mapping[QuotaNode, Mapping[str, int]],
    ) -> None:
        """Fill the trees.

        Args:
            roots: the trees.
            frs: flavors and resources.
            requested: queue -> what its gangs request, those that run included, by resource.
        """
        self._resources = _by_resource(frs)
        self.deserved: dict[QuotaNode, dict[str, Fraction]] = {}
        """Node -> resource -> how much."""
        for root in roots:
            wanted = self._wanted(root, requested)
            for resource, _ in self._resources:
                self._fill(root, resource, Fraction(root.lendable[resource]), wanted)

    @override
    def of(self, node: QuotaNode) -> Share:
        deserved = self.deserved[node]
        most = 0.0
        for resource, numbers in self._resources:
            used = sum(node.usage[i] for i in numbers)
            if used:
                fill = deserved[resource]
                most = max(most, float(used / fill) if fill else inf)
        return False, most

    def _wanted(
        self, root: QuotaNode, requested: Mapping[QuotaNode, Mapping[str, int]]
    ) -> dict[QuotaNode, dict[str, int]]:
        wanted: dict[QuotaNode, dict[str, int]] = {}
        order = [root]
        for node in order:
            order += node.children
        for node in reversed(order):
            below: list[Mapping[str, int]] = [wanted[child] for child in node.children]
            below = below or [requested.get(node, {})]
            wanted[node] = {
                resource: min(node.lendable[resource], sum(each.get(resource, 0) for each in below))
                for resource, _ in self._resources
            }
        return wanted

    def _fill(
        self,
        node: QuotaNode,
        resource: str,
        amount: Fraction,
        wanted: Mapping[QuotaNode, Mapping[str, int]],
    ) -> None:
        self.deserved.setdefault(node, {})[resource] = amount
        numbers = dict(self._resources)[resource]
        vessels = []
        for child in node.children:
            most = wanted[child][resource]
            least = min(most, sum(child.subtree[i] for i in numbers))
            vessels.append((child.definition.weight, Fraction(least), Fraction(most)))
        for child, part in zip(node.children, water_fill(amount, vessels), strict=True):
            self._fill(child, resource, part, wanted)


def water_fill(
    amount: Fraction, vessels: Sequence[tuple[Fraction, Fraction, Fraction]]
) -> list[Fraction]:
    """Divide an amount by weight: nobody gets more than the most, nor less than the least, it asks for.

    Where even the least of all is more than there is, each gets its part of that.

    Args:
        amount: how much there is.
        vessels: weight, least and most of each.
    """
    floor = sum((least for _, least, _ in vessels), Fraction(0))
    if floor >= amount:
        return [least * amount / floor if floor else Fraction(0) for _, least, _ in vessels]
    # The level at which all is given out: between two of the levels at which a vessel begins or ends to fill.
    levels = sorted({edge / w for w, least, most in vessels for edge in (least, most) if w})

    def at(level: Fraction) -> list[Fraction]:
        return [min(most, max(least, level * w)) for w, least, most in vessels]

    low = Fraction(0)
    for high in levels:
        if sum(at(high), Fraction(0)) >= amount:
            filling = [w for w, least, most in vessels if w and least / w <= low and most / w > low]
            slope = sum(filling, Fraction(0))
            return at(low + (amount - sum(at(low), Fraction(0))) / slope) if slope else at(high)
        low = high
    return at(low)


def _by_resource(frs: Sequence[FlavorResource]) -> list[tuple[str, list[int]]]:
    found: dict[str, list[int]] = {}
    for i, (_, resource) in enumerate(frs):
        found.setdefault(resource, []).append(i)
    return sorted(found.items())


def _exact(used: Sequence[Fraction], whole: Sequence[int], weight: Fraction) -> Fraction:
    parts = [u / w for u, w in zip(used, whole, strict=True) if w > 0]
    return max(parts, default=Fraction(0)) / weight
