"""Label selectors, evaluated.

Source: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/

The surprise is in what is left out. An empty selector (`{}`) selects every object; a selector that
is absent (`null`) selects none, in a PodDisruptionBudget of policy/v1, in affinity terms and in
topology spread constraints alike. `MATCHES_NOTHING` stands for the absent one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Final

from plimsoll.domain.kubernetes.pods import Requirement, Selector

MATCHES_NOTHING: Final = Selector(requirements=(Requirement(key="", operator="In"),))
"""A selector that no labels satisfy: `In` an empty set."""


def matches(selector: Selector, labels: Mapping[str, str]) -> bool:
    """Whether all labels and all requirements of a selector hold."""
    for key, value in selector.labels.items():
        if labels.get(key) != value:
            return False
    return all(satisfied(requirement, labels) for requirement in selector.requirements)


def satisfied(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    """Whether one requirement holds. Where the label is missing, NotIn and DoesNotExist hold.

    Gt and Lt compare whole numbers, and hold for nothing that is not one.
    """
    value = labels.get(requirement.key)
    test = _TESTS.get(requirement.operator)
    return test is not None and test(value, requirement.values)


def selector_key(selector: Selector) -> Hashable:
    """Return what two selectors that say the same share, for use as a key."""
    return (tuple(sorted(selector.labels.items())), selector.requirements)


def _compared(value: str | None, bounds: tuple[str, ...]) -> int:
    """Return the sign of value - bound, and 0 where one is no whole number."""
    try:
        mine, bound = int(value or ""), int(bounds[0])
    except (ValueError, IndexError):
        return 0
    return (mine > bound) - (mine < bound)


_TESTS: Final[Mapping[str, Callable[[str | None, tuple[str, ...]], bool]]] = {
    "In": lambda value, allowed: value in allowed,
    "NotIn": lambda value, refused: value not in refused,
    "Exists": lambda value, _: value is not None,
    "DoesNotExist": lambda value, _: value is None,
    "Gt": lambda value, bound: _compared(value, bound) > 0,
    "Lt": lambda value, bound: _compared(value, bound) < 0,
}
