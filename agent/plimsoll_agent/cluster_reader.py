"""Reads one cluster for its snapshots: a kind that is not installed, or not granted, is left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec import Raw

from plimsoll.adapters.kubernetes import calls as core
from plimsoll.adapters.kubernetes.calls import Call
from plimsoll.adapters.kubernetes.collection import Collection
from plimsoll.adapters.kubernetes.reading import UNFINISHED
from plimsoll.adapters.kubernetes.requests import Json, Requests
from plimsoll.adapters.kubernetes.watches import Watches, list_unwatched
from plimsoll.domain.errors import BadInput, MissingRights, NotFound, Temporary
from plimsoll.domain.kubernetes import OwnerKind
from plimsoll.services.ports import Clock, Workers
from plimsoll_agent import calls, objects, workloads
from plimsoll_agent.gpu_metrics import GpuMetrics, GpuReading
from plimsoll_agent.gpu_samples import Known
from plimsoll_agent.limit_ranges import Limited, by_namespace, read_limit_range
from plimsoll_agent.objects import Balanced, Budgeted, Endpoints, Scaled
from plimsoll_agent.wire_values import word
from plimsoll_agent.workloads import Controller
from plimsoll_service.wire import snapshot as wire


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A cluster as it was read, before its parts are joined."""

    kubernetes: str
    nodes: Sequence[wire.Node]
    pods: Sequence[wire.Pod]
    controllers: Sequence[Controller]
    namespaces: Mapping[str, Mapping[str, str]]
    """Name -> the annotations by which it states a floor or a promise for its workloads; only those that do."""
    volumes: Sequence[wire.Volume]
    volume_types: Mapping[str, str]
    """By storage class."""
    budgets: Sequence[Budgeted]
    autoscalers: Sequence[Scaled]
    balanced: Sequence[Balanced]
    endpoints: Sequence[Endpoints]
    node_usage: Mapping[str, wire.Usage]
    """By name; empty without metrics.k8s.io."""
    pod_usage: Mapping[tuple[str, str], wire.Usage]
    """By namespace and name."""
    limit_ranges: Mapping[str, Limited] | None
    """By namespace; None: they cannot be read."""
    vertical: Mapping[tuple[str, str, str], str] = field(default_factory=dict)
    """Kind, namespace and name of a workload -> the VerticalPodAutoscaler that writes its requests."""
    gpus: GpuReading = field(default_factory=GpuReading)
    """Empty where the owner names nobody who tells of them."""


WATCH_SECONDS: Final = 290
"""How long a watch is asked to last; less than five minutes, after which proxies cut connections."""


class ClusterReader:
    """Reads a cluster: lists each kind once, and from then on takes in what watches tell."""

    def __init__(
        self,
        requests: Requests,
        workers: Workers,
        clock: Clock,
        warn: Callable[[str], None],
        gpus: GpuMetrics | None = None,
    ) -> None:
        self._requests = requests
        self._workers = workers
        self._warn = warn
        self._watches = Watches(requests, workers, clock, warn, seconds=WATCH_SECONDS)
        self._nodes = Collection(core.LIST_NODES, objects.read_node)
        self._pods = Collection(core.LIST_PODS, objects.read_pod, fields=UNFINISHED)
        self._namespaces = Collection(core.LIST_NAMESPACES, objects.read_namespace)
        self._controllers = [
            *(
                Collection(call, workloads.reader_of(kind))
                for call, kind in (
                    (core.LIST_DEPLOYMENTS, OwnerKind.DEPLOYMENT),
                    (core.LIST_REPLICA_SETS, OwnerKind.REPLICA_SET),
                    (core.LIST_STATEFUL_SETS, OwnerKind.STATEFUL_SET),
                    (core.LIST_ROLLOUTS, OwnerKind.ROLLOUT),
                    (calls.LIST_DAEMON_SETS, OwnerKind.DAEMON_SET),
                )
            ),
            Collection(calls.LIST_JOBS, workloads.read_job),
            Collection(calls.LIST_CRON_JOBS, workloads.read_cron_job),
        ]
        self._budgets = Collection(core.LIST_BUDGETS, objects.read_budget)
        self._volumes = Collection(core.LIST_VOLUMES, objects.read_volume)
        self._classes = Collection(core.LIST_STORAGE_CLASSES, objects.read_storage_class)
        self._scalers = Collection(core.LIST_SCALERS, objects.read_autoscaler)
        self._vertical = Collection(calls.LIST_VERTICAL_SCALERS, objects.read_vertical_autoscaler)
        self._services = Collection(core.LIST_SERVICES, objects.read_service)
        self._ingresses = Collection(calls.LIST_INGRESSES, objects.read_ingress)
        service = gpus.service if gpus else None
        self._slices = Collection(calls.LIST_SLICES, objects.reader_of_slices(service))
        self._limit_ranges = Collection(calls.LIST_LIMIT_RANGES, read_limit_range)
        self._gpus = gpus
        self._exporters = service and Collection(
            core.LIST_PODS,
            objects.read_exporter,
            fields=f"metadata.namespace={service[0]},status.phase=Running",
        )
        self._missing = set[Collection[Any]]()
        self._kinds = [kind for part in vars(self).values() for kind in _kinds(part)]

    def follow(self) -> None:
        """Take in what watches told, so that it does not wait in memory until the next snapshot.

        Raises:
            PlimsollError: a watch cannot be resumed now.
        """
        self._watches.follow(self._kinds)

    def read(self) -> Seen:
        """Read everything that a snapshot tells: what no watch keeps up to date is listed.

        Raises:
            PlimsollError: nodes or pods cannot be read, or the API server does not answer.
        """
        for kind in self._kinds:
            kind.watchable = True  # the right may have come meanwhile
        # Watches first, then one list of each kind without a watch: the
        # parts of a snapshot differ by as little time as that allows.
        self._watches.follow(self._kinds, settled=True)
        list_unwatched(self._kinds, self._workers, self._list)
        balancing = (*self._services.objects, *self._ingresses.objects)
        controllers = [each for kind in self._controllers for each in kind.objects]
        return Seen(
            kubernetes=self._version(),
            nodes=self._nodes.objects,
            pods=self._pods.objects,
            controllers=controllers,
            namespaces={name: stated for name, stated in self._namespaces.objects if stated},
            volumes=self._volumes.objects,
            volume_types=dict(self._classes.objects),
            budgets=self._budgets.objects,
            autoscalers=self._scalers.objects,
            vertical={of: name for of, name in self._vertical.objects if name},
            balanced=[each for each in balancing if each],
            endpoints=self._slices.objects,
            node_usage=dict(self._usage(calls.LIST_NODE_USAGE, objects.read_node_usage)),
            pod_usage=dict(self._usage(calls.LIST_POD_USAGE, objects.read_pod_usage)),
            limit_ranges=None
            if self._limit_ranges in self._missing
            else by_namespace(self._limit_ranges.objects),
            gpus=self._read_gpus(controllers),
        )

    def _read_gpus(self, controllers: Sequence[Controller]) -> GpuReading:
        if self._gpus is None:
            return GpuReading()
        known = Known(self._nodes.objects, self._pods.objects)
        exporters = self._exporters.objects if self._exporters else ()
        return self._gpus.read(known, self._slices.objects, exporters, controllers)

    def _list(self, kind: Collection[Any]) -> None:
        try:
            kind.list(self._requests, self._warn)
            self._missing.discard(kind)
        except (NotFound, MissingRights) as error:
            # Nodes and pods are required: without them the snapshot would show an empty cluster.
            if kind in {self._nodes, self._pods}:
                raise
            self._warn(f"left out: {error}")
            kind.forget()
            self._missing.add(kind)

    def _usage[K](
        self, call: Call, read: Callable[[Json | Raw], tuple[K, wire.Usage]]
    ) -> Iterator[tuple[K, wire.Usage]]:
        """Yield what was used. It is new each time, so it is neither watched nor kept."""
        try:
            for page in self._requests.pages(call):
                for obj in page.items or ():
                    try:
                        yield read(obj)
                    except BadInput as error:
                        self._warn(f"left out: {error}")
        except (NotFound, MissingRights, Temporary) as error:
            # metrics-server is no part of the API server, and may be down while that answers
            self._warn(f"no usage: {error}")

    def _version(self) -> str:
        answer = self._requests.transport.call("GET", "/version")
        version = answer.body.get("gitVersion") if isinstance(answer.body, dict) else None
        return word(str(version or "")) or "unknown"


def _kinds(part: object) -> Sequence[Collection[Any]]:
    if isinstance(part, list):
        return part
    return [part] if isinstance(part, Collection) else []
