"""Label selectors as kubectl and the API server read them.

Source: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#api
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from plimsoll.domain.errors import BadInput
from plimsoll.domain.kubernetes import Requirement, Selector

_NAME = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_KEY = rf"(?:[a-z0-9.-]+/)?{_NAME}"
_VALUES = rf"\s*(?:{_NAME})?(?:\s*,\s*(?:{_NAME})?)*\s*"
_SHAPES: Sequence[tuple[re.Pattern[str], str]] = tuple(
    (re.compile(rf"\s*{shape}\s*"), operator)
    for shape, operator in (
        (rf"(?P<key>{_KEY})\s+in\s*\((?P<values>{_VALUES})\)", "In"),
        (rf"(?P<key>{_KEY})\s+notin\s*\((?P<values>{_VALUES})\)", "NotIn"),
        (rf"(?P<key>{_KEY})\s*!=\s*(?P<values>(?:{_NAME})?)", "NotIn"),
        (rf"(?P<key>{_KEY})\s*==?\s*(?P<values>(?:{_NAME})?)", "In"),
        (rf"(?P<key>{_KEY})\s*>\s*(?P<values>-?\d+)", "Gt"),
        (rf"(?P<key>{_KEY})\s*<\s*(?P<values>-?\d+)", "Lt"),
        (rf"!\s*(?P<key>{_KEY})(?P<values>)", "DoesNotExist"),
        (rf"(?P<key>{_KEY})(?P<values>)", "Exists"),
    )
)
"""The grammar of a requirement: k8s.io/apimachinery/pkg/labels/selector.go."""
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


def _requirement(part: str) -> Requirement:
    for shape, operator in _SHAPES:
        if found := shape.fullmatch(part):
            values = tuple(v.strip() for v in found["values"].split(","))
            exists = operator in {"Exists", "DoesNotExist"}
            return Requirement(key=found["key"], operator=operator, values=() if exists else values)
    raise BadInput(f"unable to parse requirement: {part!r}")
