"""The cheapest fleet for given pods, proven by HiGHS: what the heuristic of the service is measured against.

Every way to fill an instance that leaves no pod out for nothing is a pattern. A fleet is a number of
each pattern, and the cheapest one an integer program. That is exact, and feasible for a few sizes of
pods. https://doi.org/10.1287/opre.9.6.849 (Gilmore and Gomory, 1961)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import highspy

from plimsoll_service.domain.analysis.fleet import Offer

type Size = tuple[int, int]
"""Millicores and bytes of a pod."""
type Pattern = tuple[int, ...]
"""How many pods of each size stand on an instance."""


def cheapest(offers: Sequence[Offer], pods: Sequence[Size]) -> float:
    """Return what the cheapest fleet costs."""
    demand = Counter(pods)
    costs: dict[Pattern, float] = {}
    for offer in offers:
        for pattern in patterns(offer, demand):
            costs[pattern] = min(offer.hourly, costs.get(pattern, offer.hourly))
    solver = _solver()
    columns = [solver.addIntegral(lb=0, obj=cost) for cost in costs.values()]
    for index, number in enumerate(demand.values()):
        used = zip(costs, columns, strict=True)
        solver.addConstr(sum(p[index] * column for p, column in used if p[index]) >= number)
    solver.run()
    return float(solver.getObjectiveValue())


def patterns(offer: Offer, demand: Counter[Size]) -> Iterator[Pattern]:
    """Yield the ways to fill an instance to which no pod can be added."""
    sizes = list(demand.items())

    def fill(index: int, cpu: int, memory: int, pods: int, taken: Pattern) -> Iterator[Pattern]:
        if index == len(sizes):
            left = zip(sizes, taken, strict=True)
            full = pods == 0 or all(
                count == most or one_cpu > cpu or one_memory > memory
                for ((one_cpu, one_memory), most), count in left
            )
            if full and any(taken):
                yield taken
            return
        (one_cpu, one_memory), most = sizes[index]
        for count in range(min(most, pods, cpu // one_cpu, memory // one_memory) + 1):
            rest = cpu - count * one_cpu, memory - count * one_memory, pods - count
            yield from fill(index + 1, *rest, (*taken, count))

    yield from fill(0, offer.cpu, offer.memory, offer.pods, ())


def _solver() -> highspy.Highs:
    solver = highspy.Highs()
    solver.silent()
    return solver
