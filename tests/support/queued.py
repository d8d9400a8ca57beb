"""Small builders for tests of queues: whole numbers of GPUs in one flavor, unless a test says more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any

from plimsoll.domain.kubernetes import Node, Resources, Scheduling
from plimsoll.domain.node_groups import NodeGroup, NodeTemplate
from plimsoll_batch.domain.admission.decisions import QueuePlan
from plimsoll_batch.domain.admission.planner import plan_queues
from plimsoll_batch.domain.admission.queue_state import QueueState
from plimsoll_batch.domain.capacity.placement import Place
from plimsoll_batch.domain.jobs.gangs import Gang, Role, RunningGang, Shape, Topology, amounts_of
from plimsoll_batch.domain.quota.cohorts import (
    Cohort,
    Flavor,
    Order,
    Preemption,
    Queue,
    QueueConfiguration,
    Quota,
    Reclaim,
    ResourceGroup,
    WithinQueue,
)
from tests.support.builders import NOON, a_group

GPU = "example.com/gpu"
DEFAULT = "default"
FAIR = Order.DOMINANT_RESOURCE_SHARE
ANY = Preemption(within_queue=WithinQueue.LOWER_PRIORITY, reclaim=Reclaim.ANY)
"""Its own gangs of lower priority, and whoever borrows."""

_SHAPES: dict[tuple[Any, ...], Shape] = {}


def a_queue(  # noqa: PLR0913 - a test names what it is about
    name: str,
    gpus: int = 0,
    cohort: str | None = "all",
    *,
    borrow: int | None = None,
    lend: int | None = None,
    weight: int = 1,
    flavors: Mapping[str, int] | None = None,
    **fields: Any,
) -> Queue:
    """Return a queue with quota of one flavor, or of several in their order."""
    nominal = flavors or {DEFAULT: gpus}
    return Queue(
        name=name,
        cohort=cohort,
        weight=Fraction(weight),
        quotas={
            (flavor, GPU): Quota(nominal=amount, borrowing_limit=borrow, lending_limit=lend)
            for flavor, amount in nominal.items()
        },
        groups=(ResourceGroup(resources=(GPU,), flavors=tuple(nominal)),),
        **fields,
    )


def a_cohort(
    name: str = "all",
    gpus: int = 0,
    parent: str | None = None,
    *,
    order: Order | None = None,
    weight: int = 1,
    **fields: Any,
) -> Cohort:
    """Return a cohort."""
    quotas = {(DEFAULT, GPU): Quota(nominal=gpus)} if gpus else {}
    return Cohort(
        name=name, parent=parent, order=order, weight=Fraction(weight), quotas=quotas, **fields
    )


def a_configuration(*parts: Queue | Cohort, flavors: Sequence[Flavor] = ()) -> QueueConfiguration:
    """Return a configuration; its flavors are those that its queues name, unless a test says more."""
    queues = tuple(part for part in parts if isinstance(part, Queue))
    named = dict.fromkeys(f for queue in queues for group in queue.groups for f in group.flavors)
    return QueueConfiguration(
        flavors=tuple(flavors) or tuple(Flavor(name=name) for name in named or (DEFAULT,)),
        cohorts=tuple(part for part in parts if isinstance(part, Cohort)),
        queues=queues,
    )


def a_shape(  # noqa: PLR0913 - a test names what it is about
    gpus: int = 1,
    pods: int = 1,
    *,
    cpu: int = 0,
    selector: Mapping[str, str] | None = None,
    topology: Topology | None = None,
    roles: Sequence[tuple[str, int, int]] = (),
) -> Shape:
    """Return the shape of so many pods with so many GPUs each, or of roles: name, pods, GPUs each.

    The same question gives the same object, as readers of gangs do.
    """
    parts = tuple(roles) or (("workers", pods, gpus),)
    key = (parts, cpu, tuple(sorted((selector or {}).items())), topology)
    if key not in _SHAPES:
        _SHAPES[key] = Shape(
            roles=tuple(
                Role(
                    name=name,
                    pods=number,
                    scheduling=Scheduling(
                        requests=Resources(cpu=cpu, pods=1, extended=((GPU, each),)),
                        node_selector=selector or {},
                    ),
                )
                for name, number, each in parts
            ),
            topology=topology,
        )
    return _SHAPES[key]


def a_gang(name: str, queue: str, gpus: int = 1, *, minute: int = 0, **fields: Any) -> Gang:
    """Return a gang of one pod, submitted at a minute after noon; or one of a given `shape`."""
    shape = fields.pop("shape", None) or a_shape(gpus)
    return Gang(
        uid=name,
        namespace="lab",
        name=name,
        queue=queue,
        shape=shape,
        since=NOON + timedelta(minutes=minute),
        **fields,
    )


def runs(
    gang: Gang,
    *,
    on: Mapping[str, int] | None = None,
    flavor: str = DEFAULT,
    admitted: datetime | None = None,
    stopping: bool = False,
) -> RunningGang:
    """Return a gang that runs; `on` says how many of its GPUs are on which node."""
    total: dict[str, int] = {}
    for role in gang.shape.roles:
        for name, amount in amounts_of(role.scheduling.requests, role.pods).items():
            total[name] = total.get(name, 0) + amount
    return RunningGang(
        gang=gang,
        admitted=admitted or gang.since,
        usage={(flavor, name): amount for name, amount in total.items() if name == GPU},
        on_nodes={
            node: Resources(pods=1, extended=((GPU, gpus),)) for node, gpus in (on or {}).items()
        },
        stopping=stopping,
    )


def a_gpu_node(name: str, gpus: int, **labels: str) -> Node:
    """Return a node; labels are given with `_` for `.` and `/`-less keys."""
    return Node(
        name=name,
        uid=name,
        resource_version="1",
        labels={"kubernetes.io/hostname": name, **labels},
        allocatable=Resources(cpu=64_000, memory=2**38, pods=110, extended=((GPU, gpus),)),
        zone=labels.get("zone"),
        created=NOON,
    )


def a_group_of_gpus(
    name: str, gpus: int, *, zones: Sequence[str] = ("z1",), **more: Any
) -> NodeGroup:
    """Return a node group whose nodes have so many GPUs."""
    like = a_gpu_node("", gpus)
    whole = NodeTemplate(labels={}, allocatable=like.allocatable)
    return replace(a_group(name, zones=zones, **more), template=whole)


def planned(
    configuration: QueueConfiguration,
    gangs: Iterable[Gang],
    running: Iterable[RunningGang] = (),
    nodes: Sequence[Node] | None = None,
    **options: Any,
) -> QueuePlan:
    """Return the plan at noon."""
    seen = QueueState(
        configuration=configuration, gangs=tuple(gangs), running=tuple(running), nodes=nodes
    )
    return plan_queues(seen, NOON, **options)


def admitted(plan: QueuePlan) -> list[str]:
    """Return the names of those that start, in order."""
    return [each.gang.name for each in plan.admitted]


def place_of(plan: QueuePlan, name: str | None = None) -> Place:
    """Return where a gang starts; the first that does, unless one is named."""
    found = next(each for each in plan.admitted if name in (None, each.gang.name))
    assert found.place is not None
    return found.place


def victims(plan: QueuePlan) -> dict[str, list[str]]:
    """Return for whom others make way, and who."""
    return {
        each.gang.name: [v.holder.running.gang.name for v in each.victims]
        for each in plan.preempting
    }


def waiting(plan: QueuePlan) -> dict[str, str]:
    """Return who waits, and why."""
    return {gang.name: each.reason for each in plan.waiting for gang in each.gangs}


def carried_out(
    plan: QueuePlan, gangs: Sequence[Gang], running: Sequence[RunningGang], at: datetime
) -> tuple[list[Gang], list[RunningGang]]:
    """Return who waits and who runs once victims have stopped and gangs have started."""
    started = {each.gang.uid for each in plan.admitted}
    promised = {each.gang.uid for each in plan.preempting}
    for_whom = {v.holder.running.gang.uid: p.gang for p in plan.preempting for v in p.victims}
    left = [each for each in running if each.gang.uid not in for_whom]
    left += [
        RunningGang(gang=each.gang, admitted=at, usage=each.usage, on_nodes={})
        for each in plan.admitted
    ]
    waits = [
        replace(gang, nominated=gang.nominated or gang.uid in promised)
        for gang in gangs
        if gang.uid not in started
    ]
    stopped = [each.gang for each in running if each.gang.uid in for_whom]
    return [*waits, *(gang.stopped_for(for_whom[gang.uid]) for gang in stopped)], left
