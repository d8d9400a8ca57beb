"""Label selectors: read and evaluated.

Source: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/

The surprise is in what is left out. An empty selector (`{}`) selects every object; a selector that
is absent (`null`) selects none, in a PodDisruptionBudget of policy/v1, in affinity terms and in
topology spread constraints alike. `MATCHES_NOTHING` stands for the absent one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import lru_cache
from operator import ge, gt, le, lt
from typing import Final

from plimsoll.domain.errors import BadInput
from plimsoll.domain.kubernetes.pods import Requirement, Selector

MATCHES_NOTHING: Final = Selector(requirements=(Requirement(key="", operator="In"),))
"""A selector that no labels satisfy: `In` an empty set."""

_NAME = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_KEY = rf"(?:[a-z0-9.-]+/)?{_NAME}"
_VALUES = rf"\s*(?:{_NAME})?(?:\s*,\s*(?:{_NAME})?)*\s*"
_SHAPES: Sequence[tuple[str, str]] = (
    (rf"(?P<key>{_KEY})\s+in\s*\((?P<values>{_VALUES})\)", "In"),
    (rf"(?P<key>{_KEY})\s+notin\s*\((?P<values>{_VALUES})\)", "NotIn"),
    (rf"(?P<key>{_KEY})\s*!=\s*(?P<values>(?:{_NAME})?)", "NotIn"),
    (rf"(?P<key>{_KEY})\s*==?\s*(?P<values>(?:{_NAME})?)", "In"),
    (rf"(?P<key>{_KEY})\s*>\s*(?P<values>-?\d+)", "Gt"),
    (rf"(?P<key>{_KEY})\s*<\s*(?P<values>-?\d+)", "Lt"),
    (rf"!\s*(?P<key>{_KEY})(?P<values>)", "DoesNotExist"),
    (rf"(?P<key>{_KEY})(?P<values>)", "Exists"),
)
"""The grammar of a requirement: k8s.io/apimachinery/pkg/labels/selector.go. Compiled on first use, not in a cold start."""
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
"""A number as Go reads one: `int` takes more, such as `1_000`."""
_PART = re.compile(r",(?![^(]*\))")


@lru_cache(maxsize=512)
def parse_labels(text: str) -> Selector:
    """Read a label selector such as `app=web,tier in (a, b),!old`.

    Raises:
        BadInput: it is none.
    """
    if not text.strip():
        return Selector()
    return Selector(requirements=tuple(_requirement(part) for part in _PART.split(text)))


def matches(selector: Selector, labels: Mapping[str, str]) -> bool:
    """Whether all labels and all requirements of a selector hold."""
    for key, value in selector.labels.items():
        if labels.get(key) != value:
            return False
    return all(satisfied(requirement, labels) for requirement in selector.requirements)


def satisfied(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    """Whether one requirement holds. Where the label is missing, NotIn and DoesNotExist hold.

    Gt, Lt, Gte and Lte compare whole numbers, and hold for nothing that is not one. Only NodePools of Karpenter have
    the latter two.
    """
    value = labels.get(requirement.key)
    test = _TESTS.get(requirement.operator)
    return test is not None and test(value, requirement.values)


def selector_key(selector: Selector) -> Hashable:
    """Return what two selectors that say the same share, for use as a key."""
    return (tuple(sorted(selector.labels.items())), selector.requirements)


def _requirement(part: str) -> Requirement:
    for shape, operator in _SHAPES:
        if found := re.fullmatch(rf"\s*{shape}\s*", part):
            values = tuple(v.strip() for v in found["values"].split(","))
            exists = operator in {"Exists", "DoesNotExist"}
            return Requirement(key=found["key"], operator=operator, values=() if exists else values)
    raise BadInput(f"unable to parse requirement: {part!r}")


def _compared(
    compare: Callable[[int, int], bool],
) -> Callable[[str | None, tuple[str, ...]], bool]:
    """Return the test of a label by its number and the first value."""

    def test(value: str | None, bounds: tuple[str, ...]) -> bool:
        if not (bounds and _WHOLE.fullmatch(value or "") and _WHOLE.fullmatch(bounds[0])):
            return False
        return compare(int(value or ""), int(bounds[0]))

    return test


_TESTS: Final[Mapping[str, Callable[[str | None, tuple[str, ...]], bool]]] = {
    "In": lambda value, allowed: value in allowed,
    "NotIn": lambda value, refused: value not in refused,
    "Exists": lambda value, _: value is not None,
    "DoesNotExist": lambda value, _: value is None,
    "Gt": _compared(gt),
    "Lt": _compared(lt),
    "Gte": _compared(ge),
    "Lte": _compared(le),
}
