"""Every scenario there is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

from tests.differential import behaviours, leftout
from tests.differential.families import (
    autoscalers,
    budgets,
    daemonsets,
    deployments,
    injections,
    jobs,
    nodes,
    priorities,
    releases,
    requests,
    scalein,
    scheduling,
    statefulsets,
)
from tests.differential.scenario import Scenario

FAMILIES: Final = (
    scheduling,
    priorities,
    deployments,
    scalein,
    statefulsets,
    daemonsets,
    jobs,
    budgets,
    autoscalers,
    nodes,
    releases,
    injections,
    requests,
)
"""Modules with FAMILY, COUNT and `scenario(seed)`."""
_SAMPLE = 3


@cache
def everything() -> Sequence[Scenario]:
    """Return all scenarios: the generated ones of each family, then those written by hand."""
    return tuple(_all())


def _all() -> Iterator[Scenario]:
    for family in FAMILIES:
        for seed in range(family.COUNT):
            yield family.scenario(seed)
    yield from behaviours.scenarios()
    yield from leftout.scenarios()


@cache
def sample() -> frozenset[str]:
    """Return the names of those that are quick to play and touch everything."""
    generated = {
        family.scenario(seed).name
        for family in FAMILIES
        for seed in range(min(_SAMPLE, family.COUNT))
    }
    written = {s.name for s in (*behaviours.scenarios(), *leftout.scenarios())}
    return frozenset(generated | written)
