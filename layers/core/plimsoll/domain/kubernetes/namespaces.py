"""Affinity that selects namespaces by their labels, in the terms of the names that it selects.

Of a namespace only its name is known to a snapshot: a namespaceSelector is held against the label
`kubernetes.io/metadata.name`, which every namespace has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from plimsoll.domain.kubernetes.pods import PodTerm, Scheduling
from plimsoll.domain.kubernetes.selectors import MATCHES_NOTHING, matches

NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
"""The label of every namespace that has its name."""


def selects_namespaces(scheduling: Scheduling) -> bool:
    """Whether its affinity selects namespaces by labels that not every namespace has."""
    return any(map(_wide, (*scheduling.affinity, *scheduling.anti_affinity)))


def with_namespaces(
    scheduling: Scheduling, namespaces: Mapping[str, Mapping[str, str]]
) -> Scheduling:
    """Return the same with the names of the namespaces that its affinity selects by their labels."""

    def named(term: PodTerm) -> PodTerm:
        wide = term.namespace_selector
        if wide is None or not _wide(term):
            return term
        found = (name for name, labels in namespaces.items() if matches(wide, labels))
        return replace(
            term,
            namespaces=tuple(sorted({*term.namespaces, *found})),
            namespace_selector=MATCHES_NOTHING,
        )

    return replace(
        scheduling,
        affinity=tuple(map(named, scheduling.affinity)),
        anti_affinity=tuple(map(named, scheduling.anti_affinity)),
    )


def _wide(term: PodTerm) -> bool:
    wide = term.namespace_selector
    keys = () if wide is None else (*wide.labels, *(r.key for r in wide.requirements))
    return any(key != NAMESPACE_NAME for key in keys)
