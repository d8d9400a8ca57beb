"""A snapshot out of what was read: owners followed to the top, usage and budgets joined by uid."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

from msgspec.structs import replace

from plimsoll.domain.kubernetes import matches
from plimsoll_agent.cluster_reader import Seen
from plimsoll_agent.limit_ranges import Limited, with_limit_ranges
from plimsoll_agent.wire_values import Claimed
from plimsoll_agent.workloads import Owning
from plimsoll_service.wire import snapshot as wire

MOST_COVERED: Final = 64
"""Workloads that are told of one budget."""


def full_snapshot(  # noqa: PLR0913 - what a snapshot is made of, each part named
    seen: Seen,
    *,
    cluster_id: str,
    epoch: str,
    sequence: int,
    now: datetime,
    agent: wire.AgentState | None = None,
) -> wire.Snapshot:
    """Return all that was read as a snapshot that stands for itself, with what the agent tells of itself.

    Its lists are as long as the cluster's: what the wire does not take is refused by name when it is encoded.
    """
    owning = {each.workload.uid: each for each in seen.controllers if isinstance(each, Owning)}
    claimed = {each.uid: each for each in seen.controllers if isinstance(each, Claimed)}
    uids = {(w.kind, w.namespace, w.name): uid for uid, o in owning.items() for w in [o.workload]}
    return wire.Snapshot(
        cluster_id=cluster_id,
        epoch=epoch,
        sequence=sequence,
        taken_at=now,
        kubernetes=seen.kubernetes,
        nodes=tuple(seen.nodes),
        pods=tuple(_under_topmost(pod, claimed) for pod in seen.pods),
        workloads=tuple(_in_namespace(o.workload, seen) for o in owning.values()),
        volumes=tuple(
            replace(volume, type=seen.volume_types.get(volume.storage_class, ""))
            for volume in seen.volumes
        ),
        budgets=tuple(_budgets(seen, owning)),
        autoscalers=tuple(
            replace(
                each.autoscaler,
                workload=uids.get((each.kind, each.autoscaler.namespace, each.workload), ""),
            )
            for each in seen.autoscalers
        ),
        load_balancers=tuple(_load_balancers(seen)),
        usage=tuple(_usage(seen)),
        gpus=tuple(seen.gpus.samples),
        gpus_left_out=seen.gpus.left_out,
        agent=agent,
    )


def _under_topmost(pod: wire.Pod, claimed: Mapping[str, Claimed]) -> wire.Pod:
    """Follow the owner: from a ReplicaSet to its Deployment, from a Job to its CronJob."""
    above = claimed.get(pod.owner.uid) if pod.owner is not None else None
    return pod if above is None else replace(pod, owner=above.owner)


def _in_namespace(workload: wire.Workload, seen: Seen) -> wire.Workload:
    """Return a workload with what its namespace states for it: annotations, LimitRanges and a VerticalPodAutoscaler."""
    stated = seen.namespaces.get(workload.namespace)
    if stated is not None:
        workload = replace(workload, annotations={**stated, **workload.annotations})
    named = (workload.kind, workload.namespace, workload.name)
    if (scaler := seen.vertical.get(named)) is not None:
        workload = replace(workload, vertical_scaler=scaler)
    if seen.limit_ranges is None:
        return workload
    return with_limit_ranges(workload, seen.limit_ranges.get(workload.namespace, Limited()))


def _budgets(seen: Seen, owning: Mapping[str, Owning]) -> Iterator[wire.Budget]:
    by_namespace = defaultdict[str, list[Owning]](list)
    for each in owning.values():
        by_namespace[each.workload.namespace].append(each)
    for budgeted in seen.budgets:
        covered = [
            each.workload.uid
            for each in by_namespace[budgeted.budget.namespace]
            if matches(budgeted.selector, each.labels)
        ]
        yield replace(budgeted.budget, workloads=tuple(covered[:MOST_COVERED]))


def _load_balancers(seen: Seen) -> Iterator[wire.LoadBalancer]:
    ready = Counter[tuple[str, str]]()
    for each in seen.endpoints:
        ready[each.namespace, each.service] += each.ready
    for balanced in seen.balanced:
        told = balanced.load_balancer
        count = sum(ready[told.namespace, service] for service in balanced.services)
        yield replace(told, ready_endpoints=count)


def _usage(seen: Seen) -> Iterator[wire.Usage]:
    for node in seen.nodes:
        if (used := seen.node_usage.get(node.name)) is not None:
            yield replace(used, uid=node.uid)
    for pod in seen.pods:
        if (used := seen.pod_usage.get((pod.namespace, pod.name))) is not None:
            yield replace(used, uid=pod.uid)
