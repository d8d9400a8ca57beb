"""Jobs of two parameter servers and four workers on few places: what is submitted, where, and when.

Each case has a namespace, nodes and a queue of its own, so that several run side by side on one
control plane. A job has ended only when all six of its pods have run for some seconds at once: pods that
hold a place while they wait for the others are what a gang is about.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from plimsoll_batch.domain.names import GANG, GANG_SIZE, QUEUE, ROLE

ROLES: Final[Mapping[str, int]] = {"ps": 2, "workers": 4}
SIZE: Final = sum(ROLES.values())
CASE: Final = "gangs.plimsoll.dev/case"
"""On the nodes of a case, label: its pods run there only."""
CLIENTS: Final = 6
"""How many submit the Jobs of a case, interleaved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """So many jobs on so many places."""

    name: str
    slots: int
    jobs: int
    queued: bool = True
    """Whether the planner of the queues starts its Jobs; else they start at once."""
    leases: bool = False
    """Whether each place is a node, and the nodes of a gang are leased to it."""
    seed: int = 0
    """Draws the order of arrival."""

    @property
    def gangs(self) -> list[str]:
        """The names of its jobs."""
        return [f"job-{number}" for number in range(self.jobs)]


def nodes(case: Case) -> list[dict[str, Any]]:
    """Return the nodes of a case: each pod takes a CPU."""
    if case.leases:
        return [_node(case, f"{case.name}-{number}", 1) for number in range(case.slots)]
    return [_node(case, case.name, case.slots)]


def _node(case: Case, name: str, slots: int) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, CASE: case.name}},
        "status": {"allocatable": {"cpu": str(slots), "memory": "64Gi", "pods": "110"}},
    }


def configuration(cases: list[Case]) -> dict[str, Any]:
    """Return queues with quota for whatever fits: only places are short."""
    return {
        "flavors": [{"name": case.name, "nodeLabels": {CASE: case.name}} for case in cases],
        "queues": [
            {
                "name": case.name,
                "leaseNodes": case.leases,
                "resourceGroups": [
                    {"flavors": [{"name": case.name, "resources": {"cpu": {"nominal": 1000}}}]}
                ],
            }
            for case in cases
        ],
    }


def submissions(case: Case) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the Jobs in random order, each with the client that submits it."""
    jobs = [_job(case, gang, role) for gang in case.gangs for role in ROLES]
    Random(case.seed).shuffle(jobs)  # noqa: S311 - which order it is decides nothing secret
    for number, job in enumerate(jobs):
        yield number % CLIENTS, job


def _job(case: Case, gang: str, role: str) -> dict[str, Any]:
    container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "1"}}}
    spec: dict[str, Any] = {"restartPolicy": "Never", "containers": [container]}
    if not case.queued:
        spec["nodeSelector"] = {CASE: case.name}  # what the flavor says otherwise
    labels = {QUEUE: case.name, GANG: gang, ROLE: role} if case.queued else {GANG: gang, ROLE: role}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": f"{gang}-{role}",
            "namespace": case.name,
            "labels": labels,
            "annotations": {GANG_SIZE: str(SIZE)},
        },
        "spec": {
            "suspend": case.queued,
            "parallelism": ROLES[role],
            "completions": ROLES[role],
            "template": {"metadata": {"labels": {GANG: gang}}, "spec": spec},
        },
    }
