"""The cheapest card for each class of workload, where a fleet has several."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from plimsoll_service.domain.gpu.cards import Card
from plimsoll_service.domain.gpu.geometry import WHOLE_GPU


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Pods that run on any of several cards."""

    pods: int
    slices: Mapping[str, str]
    """The profile that a pod needs, or `WHOLE_GPU`, by GPU model."""


def cheapest_cards(
    choices: Iterable[Choice], cards: Mapping[str, Card], prices: Mapping[str, float]
) -> dict[str, dict[str, int]]:
    """Return the demand by GPU model, where each class takes the card whose slice costs the least.

    A slice costs its share of the GPU: that of compute or that of memory, whichever is larger. The optimum
    over all cards at once may be lower, since a class may fill what another leaves.

    Args:
        choices: the classes.
        cards: by model.
        prices: of a GPU, by model, in any unit.
    """
    found: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for choice in choices:
        model = min(
            choice.slices,
            key=lambda each: prices[each] * share(cards[each], choice.slices[each]),
        )
        found[model][choice.slices[model]] += choice.pods
    return {model: dict(demand) for model, demand in found.items()}


def share(card: Card, profile: str) -> float:
    """Return how much of a GPU a profile takes, from 0 to 1."""
    if profile == WHOLE_GPU:
        return 1.0
    slice_ = card.profiles[profile]
    return max(slice_.compute / card.compute, slice_.memory / card.memory)
