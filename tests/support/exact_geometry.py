"""Exact optima of GPU geometry, by dynamic programming and by integer programming."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import highspy

from plimsoll_service.domain.gpu import CARDS, Choice
from plimsoll_service.domain.gpu.geometry import Counts, MigGeometries, geometries_of


def optima(geometries: MigGeometries, most: Sequence[int]) -> dict[Counts, int]:
    """Return the fewest GPUs for every demand of the profiles below the largest, up to `most` of each."""
    inner = [g[1 : 1 + len(most)] for g in geometries.maximal]
    useful = [geometry for geometry in inner if any(geometry)]
    found: dict[Counts, int] = {(0,) * len(most): 0}
    for demand in product(*(range(each + 1) for each in most)):
        if any(demand):
            found[demand] = 1 + min(
                best
                for geometry in useful
                if (rest := tuple(map(_left, demand, geometry))) != demand
                for best in (found[rest],)
            )
    return found


def fewest_by_solver(geometries: MigGeometries, demand: Counts) -> int:
    """Return the fewest GPUs as an integer program finds them."""
    model = _solver()
    used = [_whole(model) for _ in geometries.maximal]
    _cover(model, geometries, demand, used)
    model.minimize(sum(used[1:], start=used[0]))
    return round(model.getObjectiveValue())


def most_kept_by_solver(
    geometries: MigGeometries,
    demand: Counts,
    current: Sequence[tuple[Counts, int]],
    limit: int,
    gpus: int = 1,
) -> int:
    """Return how many nodes can keep their layout at most, with so many GPUs in all.

    Args:
        geometries: of the card.
        demand: what all nodes have to give.
        current: what a node gives, and how many nodes do.
        limit: GPUs.
        gpus: of a node.
    """
    model = _solver()
    used = [_whole(model) for _ in geometries.maximal]
    kept = [_whole(model, nodes) for _, nodes in current]
    _cover(model, geometries, demand, used, kept, [given for given, _ in current])
    all_kept = sum(kept[1:], start=kept[0])
    model.addConstr(sum(used[1:], start=used[0]) + gpus * all_kept <= limit)
    model.maximize(all_kept)
    return round(model.getObjectiveValue())


def _cover(  # noqa: PLR0913, PLR0917 - the parts of one constraint
    model: highspy.Highs,
    geometries: MigGeometries,
    demand: Counts,
    used: Sequence[Any],
    kept: Sequence[Any] = (),
    supplies: Sequence[Counts] = (),
) -> None:
    columns = [*zip(geometries.maximal, used, strict=True), *zip(supplies, kept, strict=True)]
    for place, wanted in enumerate(demand):
        terms = [given[place] * variable for given, variable in columns if given[place]]
        if wanted:
            model.addConstr(sum(terms[1:], start=terms[0]) >= wanted)


def _whole(model: highspy.Highs, most: float = highspy.kHighsInf) -> Any:
    return model.addIntegral(lb=0, ub=most)


def _left(wanted: int, given: int) -> int:
    return max(0, wanted - given)


def _solver() -> highspy.Highs:
    solver = highspy.Highs()
    solver.silent()
    return solver


def cheapest_mix(
    choices: Sequence[Choice], prices: Mapping[str, float], *, seconds: float
) -> float:
    """Return a lower bound of what a mixed fleet costs, which is its optimum where the time is enough.

    Args:
        choices: classes of pods, each of which may be spread over its models.
        prices: of a GPU, by model.
        seconds: the solver's time.
    """
    model = _solver()
    model.setOptionValue("time_limit", seconds)
    model.setOptionValue("mip_rel_gap", 0.001)
    demands: dict[str, dict[str, list[Any]]] = {card: {} for card in prices}
    for choice in choices:
        pods = [model.addIntegral(lb=0) for _ in choice.slices]
        model.addConstr(sum(pods[1:], start=pods[0]) >= choice.pods)
        for (card, profile), variable in zip(choice.slices.items(), pods, strict=True):
            demands[card].setdefault(profile, []).append(variable)
    for card, wanted in demands.items():
        geometries = geometries_of(CARDS[card])
        used = [model.addIntegral(lb=0, obj=prices[card]) for _ in geometries.maximal]
        for profile, variables in wanted.items():
            place = geometries.names.index(profile)
            pairs = [
                (g[place], v) for g, v in zip(geometries.maximal, used, strict=True) if g[place]
            ]
            given = [number * variable for number, variable in pairs]
            needed = [-1 * variable for variable in variables]
            model.addConstr(sum([*given[1:], *needed], start=given[0]) >= 0)
    model.run()
    return float(model.getInfo().mip_dual_bound)
