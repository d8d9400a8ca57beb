"""Where the fake cluster is known to differ, scenario by scenario.

Each entry names a sentence of docs/develop/rigs.md that gives the reason. A difference that is not here
fails the suite, and so does one that is here and no longer there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from plimsoll_simulation.fake_cluster.edits import look
from tests.differential.bench import ZONE
from tests.differential.drawn import HARD, Case


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What of a scenario differs, and why."""

    differs: frozenset[tuple[int, str]]
    """Step and name of what is in the picture."""
    why: str
    """Words that stand in docs/develop/rigs.md, in the section about what is left out."""


def _known(why: str, *differs: tuple[int, str]) -> Known:
    return Known(differs=frozenset(differs), why=why)


KNOWN: Final[Mapping[str, Known]] = {
    "left-out-adoption": _known(
        "adoption of pods without an owner", (1, "pod stray"), (1, "pod stray: node")
    ),
    "left-out-validation": _known(
        "nearly all validation",
        (0, "answer 0: causes"),
        (0, "answer 0: code"),
        (0, "pod odd"),
        (0, "pod odd: node"),
    ),
}

LIMITS: Final[Mapping[str, Callable[[Case], bool]]] = {
    "with `resourceClaims`": lambda case: "resourceClaims" in case.pod["spec"],
    "with an unbound claim for a volume that exists already": lambda case: any(
        obj["kind"] == "PersistentVolume" and obj["spec"]["storageClassName"]
        for obj in case.objects
    ),
    "with a volume whose zone is a label, on a node without one": lambda case: (
        any(ZONE not in node["metadata"]["labels"] for node in case.nodes)
        and any(
            obj["kind"] == "PersistentVolume" and ZONE in obj["metadata"]["labels"]
            for obj in case.objects
        )
    ),
}
"""Pods that Plimsoll takes to fit nowhere, in the words of docs/guides/spot-drain.md, and whether a case may have one."""


def comes_late(case: Case, minor: str) -> bool:
    """Whether a pod may stay in kube-scheduler's queue for five minutes after its victims are gone.

    For a pod that was deleted, isSchedulableAfterPodChange of InterPodAffinity looks before 1.37 for one that
    meets all terms of the anti-affinity, not any of them.
    """
    if [int(part) for part in minor.split(".")] >= [1, 37]:
        return False
    terms = look(case.pod, "spec", "affinity", "podAntiAffinity", HARD, default=[])
    return len(terms) > 1
