"""A snapshot of nodes and gangs as a file: what `plimsoll queues plan` and `why` read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final

from pydantic import AwareDatetime, Field

from plimsoll.domain.errors import BadInput
from plimsoll.domain.kubernetes import ZONE, Node, Resources, Scheduling, Taint, Toleration
from plimsoll_batch.adapters.documents import Strict, told, validated
from plimsoll_batch.adapters.queues_file import (
    Name,
    Quantity,
    StatedPriority,
    TaintEntry,
    TolerationEntry,
    amount,
)
from plimsoll_batch.domain.admission import QueueState
from plimsoll_batch.domain.jobs import (
    Gang,
    Role,
    RunningGang,
    Shape,
    Topology,
    lost_at_an_interruption,
    rank_of,
    why_unranked,
)
from plimsoll_batch.domain.quota import (
    Grants,
    QueueConfiguration,
    counted,
    granted_by,
    priced_queues,
    twice,
)

MOST_PODS: Final = 100_000
"""Pods of one role."""

type Amounts = dict[Name, Quantity]


class NodeEntry(Strict):
    """A node, and what its pods request that belong to no gang."""

    name: Name
    labels: dict[str, str] = Field(default_factory=dict)
    taints: tuple[TaintEntry, ...] = ()
    unschedulable: bool = False
    allocatable: Amounts
    used: Amounts = Field(default_factory=dict)


class RoleEntry(Strict):
    """Pods of one template."""

    name: Name
    pods: Annotated[int, Field(ge=1, le=MOST_PODS)]
    requests: Amounts
    node_selector: dict[str, str] = Field(default_factory=dict)
    tolerations: tuple[TolerationEntry, ...] = ()


class TopologyEntry(Strict):
    """That all pods stand in one domain."""

    label: Name
    required: bool


class RunsEntry(Strict):
    """What an admitted gang runs on."""

    since: AwareDatetime
    flavors: dict[Name, Name]
    """Resource -> flavor."""
    pods: dict[Name, dict[Name, Annotated[int, Field(ge=1, le=MOST_PODS)]]] = Field(
        default_factory=dict
    )
    """Role -> node -> pods."""
    stopping: bool = False


class GangEntry(Strict):
    """A gang; it waits unless it says on what it runs."""

    namespace: Name
    name: Name
    queue: Name
    priority: StatedPriority = 0
    since: AwareDatetime
    limit_seconds: Annotated[int, Field(ge=1, le=10**9)] | None = None
    checkpoint_seconds: Annotated[int, Field(ge=1, le=10**9)] | None = None
    gates: tuple[Name, ...] = ()
    roles: Annotated[list[RoleEntry], Field(min_length=1, max_length=100)]
    topology: TopologyEntry | None = None
    runs: RunsEntry | None = None


class SnapshotFile(Strict):
    """The whole file."""

    nodes: list[NodeEntry] | None = None
    """None: only quota decides."""
    gangs: tuple[GangEntry, ...] = ()
    namespaces: dict[Name, dict[str, str]] | None = None
    """Name -> labels. None: whatever access a queue has, it counts as granted."""


def state_of(document: Any, configuration: QueueConfiguration) -> QueueState:
    """Return the state that a file holds, under a configuration.

    Raises:
        BadInput: names every problem and its place.
    """
    read = validated(SnapshotFile, document)
    shapes: dict[tuple[str, timedelta | None], Shape] = {}
    labels = read.namespaces or {}
    grants = Grants(by_namespace={name: granted_by(each) for name, each in labels.items()})
    priced, problems = priced_queues(configuration), list[str]()
    waiting: list[Gang] = []
    running: list[RunningGang] = []
    nodes: list[Node] | None = None
    sums: dict[str, Resources] = {}
    queues = {queue.name: queue for queue in configuration.queues}
    try:
        for entry in read.gangs:
            gang = _gang(entry, _shape(shapes, entry, priced=entry.queue in priced), configuration)
            if entry.queue in queues:
                runs = entry.runs is not None or read.namespaces is None
                gang = counted(gang, queues[entry.queue], grants, runs=runs)
            if entry.runs is None:
                waiting.append(gang)
            else:
                running.append(_running(gang, entry, entry.runs, problems))
        if read.nodes is not None:
            nodes = [_node(entry) for entry in read.nodes]
            sums = {entry.name: Resources.parse(entry.used) for entry in read.nodes if entry.used}
    except BadInput as error:
        problems.append(str(error))
    problems += twice("gang", (f"{entry.namespace}/{entry.name}" for entry in read.gangs))
    problems += twice("node", (entry.name for entry in read.nodes or ()))
    if problems:
        raise BadInput(told(problems))
    return QueueState(
        configuration=configuration, gangs=waiting, running=running, nodes=nodes, sums=sums
    )


def _shape(
    known: dict[tuple[str, timedelta | None], Shape], entry: GangEntry, *, priced: bool
) -> Shape:
    """Return the shape of a gang: the same for all gangs that are alike."""
    checkpoint, limit = _seconds(entry.checkpoint_seconds), _seconds(entry.limit_seconds)
    loses = lost_at_an_interruption(checkpoint, limit) if priced else None
    key = entry.model_dump_json(include={"roles", "topology"}), loses
    if key not in known:
        said = entry.topology
        known[key] = Shape(
            roles=tuple(_role(role) for role in entry.roles),
            topology=None if said is None else Topology(label=said.label, required=said.required),
            loses=loses,
        )
    return known[key]


def _role(entry: RoleEntry) -> Role:
    return Role(
        name=entry.name,
        pods=entry.pods,
        scheduling=Scheduling(
            requests=Resources.parse({"pods": "1", **entry.requests}),
            node_selector=entry.node_selector,
            tolerations=tuple(
                Toleration(key=t.key, operator=t.operator, value=t.value, effect=t.effect)
                for t in entry.tolerations
            ),
        ),
    )


def _gang(entry: GangEntry, shape: Shape, configuration: QueueConfiguration) -> Gang:
    unranked = why_unranked(entry.priority, configuration.priorities)
    return Gang(
        uid=f"{entry.namespace}/{entry.name}",
        namespace=entry.namespace,
        name=entry.name,
        queue=entry.queue,
        shape=shape,
        priority=rank_of(entry.priority, configuration.priorities),
        since=entry.since.astimezone(UTC),
        limit=_seconds(entry.limit_seconds),
        gates=entry.gates if unranked is None else (unranked, *entry.gates),
    )


def _seconds(said: int | None) -> timedelta | None:
    return None if said is None else timedelta(seconds=said)


def _running(gang: Gang, entry: GangEntry, runs: RunsEntry, problems: list[str]) -> RunningGang:
    usage: dict[tuple[str, str], int] = {}
    on_nodes: dict[str, Resources] = {}
    for said in entry.roles:
        # Each pod counts as one of the resource `pods`, as it does where a gang waits.
        asked = {"pods": "1", **said.requests}
        requests = Resources.parse(asked)
        for resource, quantity in asked.items():
            if resource in runs.flavors:
                key = (runs.flavors[resource], resource)
                usage[key] = usage.get(key, 0) + said.pods * amount(resource, quantity)
        for node, pods in runs.pods.get(said.name, {}).items():
            on_nodes[node] = on_nodes.get(node, Resources()) + _times(requests, pods)
    unknown = sorted(runs.pods.keys() - {role.name for role in entry.roles})
    if unknown:
        problems.append(f"gang {gang}: runs: it has no role {', '.join(unknown)}")
    return RunningGang(
        gang=gang,
        admitted=runs.since.astimezone(UTC),
        usage=usage,
        on_nodes=on_nodes,
        stopping=runs.stopping,
    )


def _times(requests: Resources, pods: int) -> Resources:
    return Resources(
        cpu=requests.cpu * pods,
        memory=requests.memory * pods,
        pods=requests.pods * pods,
        extended=tuple((name, each * pods) for name, each in requests.extended),
    )


def _node(entry: NodeEntry) -> Node:
    return Node(
        name=entry.name,
        uid=entry.name,
        resource_version="",
        labels=entry.labels,
        taints=tuple(Taint(key=t.key, value=t.value, effect=t.effect) for t in entry.taints),
        unschedulable=entry.unschedulable,
        allocatable=Resources.parse({"pods": "110", **entry.allocatable}),
        zone=entry.labels.get(ZONE),
        created=datetime.min.replace(tzinfo=UTC),
    )
