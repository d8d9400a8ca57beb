"""One reading of a live cluster: the objects as they are, and the observation that plans are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, Unpack

from plimsoll.adapters.kubernetes import KubernetesCluster, calls
from plimsoll.adapters.kubernetes.reading import UNFINISHED
from plimsoll.adapters.kubernetes.requests import Requests
from plimsoll.adapters.kubernetes.transport import RequestParts, Response
from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.errors import MissingRights, NotFound
from plimsoll.domain.node_groups import NodeGroup
from plimsoll.domain.observation import Observation
from plimsoll.services.ports import Clock

type Json = Mapping[str, Any]

_LIST_JOBS: Final = calls.Call(verb="list", group="batch", resource="jobs")
_READ: Final = (*calls.FOLLOWED, calls.LIST_NAMESPACES, _LIST_JOBS)
_OPTIONAL: Final = {calls.LIST_ROLLOUTS, calls.LIST_POD_GROUPS, _LIST_JOBS}
"""Argo Rollouts may not be installed nor PodGroups served, and a reconcile needs no right to list Jobs."""
_NOT_FOUND: Final = 404


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveCluster:
    """What a cluster showed at one moment."""

    name: str
    at: datetime
    seen: Observation
    objects: Mapping[str, Sequence[Json]]
    """By resource, as in a path: `pods`. Of `jobs` nothing where there was no right to list them."""
    groups: Sequence[NodeGroup] | None = None
    """None where AWS was not asked: then nothing is known to grow."""
    remembered: bool = False
    """Whether a stack was asked how long pods were seen to take: `seen.times`."""
    keep_ready: str = "0"
    """What the policy of the cluster promises of workloads of which nothing else does."""
    launched: Mapping[str, datetime] = field(default_factory=dict)
    """Instance -> when EC2 launched it."""

    @property
    def observed(self) -> Observation:
        """The observation, with what AWS says beside it."""
        return replace(self.seen.among(groups=self.groups or ()), launched=self.launched)

    def by_name(self, resource: str) -> Mapping[tuple[str, str], Json]:
        """Return the objects of a kind by namespace and name."""
        return {
            (obj["metadata"].get("namespace", ""), obj["metadata"]["name"]): obj
            for obj in self.objects.get(resource, ())
        }


def read_cluster(requests: Requests, clock: Clock) -> LiveCluster:
    """Read a cluster by the lists that a reconcile reads, and its Jobs, each once.

    Raises:
        PlimsollError: it cannot be read.
    """
    lists: dict[str, Sequence[Json]] = {}
    for call in _READ:
        try:
            found = requests.list(call, fields=UNFINISHED if call == calls.LIST_PODS else None)
        except (NotFound, MissingRights):
            if call not in _OPTIONAL:
                raise
            continue
        lists[call.path()] = found
    answers = KubernetesCluster(_Read(lists), requests.cluster, clock, workers=SerialWorkers())
    return LiveCluster(
        name=requests.cluster,
        at=clock.now(),
        seen=answers.observe(),
        objects={
            call.resource: lists.get(call.path(), ())
            for call in _READ
            if call != _LIST_JOBS or call.path() in lists
        },
    )


class _Read:
    """The transport to a cluster that shows for ever what was read of it."""

    def __init__(self, lists: Mapping[str, Sequence[Json]]) -> None:
        self._lists = lists

    def call(self, method: str, path: str, **_: Unpack[RequestParts]) -> Response:
        """Answer a list that was read; there is nothing else."""
        if method != "GET" or path not in self._lists:
            return Response(status=_NOT_FOUND, body={"kind": "Status", "reason": "NotFound"})
        return Response(status=200, body={"items": list(self._lists[path]), "metadata": {}})


def time_of(text: object) -> datetime | None:
    """Return a time as the API server writes it; None where it is none."""
    try:
        return datetime.fromisoformat(str(text))
    except ValueError:
        return None
