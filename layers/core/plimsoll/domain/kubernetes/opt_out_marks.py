"""The mark by which an owner keeps Plimsoll away from a workload or a pod, in whatever spelling YAML knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from plimsoll.domain.kubernetes.names import IGNORE

_TRUE: Final = frozenset({"true", "yes", "on", "y"})
_FALSE: Final = frozenset({"false", "no", "off", "n", ""})
"""In any case. https://yaml.org/type/bool.html; an empty label is what `kubectl label KEY=` writes."""


def is_ignored(*marks: Mapping[str, str]) -> bool:
    """Whether any of these labels or annotations opts out."""
    for each in marks:  # asked of each pod several times in a plan, and hardly any has the mark
        said = each.get(IGNORE)
        if said is not None and said.strip().lower() in _TRUE:
            return True
    return False


def misread_mark(*marks: Mapping[str, str]) -> str | None:
    """Return a value of the mark that says neither yes nor no, and opts out of nothing; None: there is none."""
    said = (each[IGNORE] for each in marks if IGNORE in each)
    return next((s for s in said if s.strip().lower() not in _TRUE | _FALSE), None)
