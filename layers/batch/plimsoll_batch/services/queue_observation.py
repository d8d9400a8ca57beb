"""The state of the queues, out of what stands in a cluster."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from plimsoll.domain.kubernetes import Pod, Resources, total_resources
from plimsoll.domain.observation import leaves
from plimsoll_batch.domain.admission import QueueState
from plimsoll_batch.domain.capacity import by_lease, unmarked, with_whole_nodes
from plimsoll_batch.domain.jobs import GangJobs, Job, PodOwners, assemble, running_of
from plimsoll_batch.domain.quota import (
    QueueConfiguration,
    priced_queues,
    with_access,
    with_equal_keys,
)
from plimsoll_batch.services.ports import ClusterObjects


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A moment of the queues of a cluster."""

    state: QueueState
    gangs: Mapping[str, GangJobs]
    """By uid."""


def seen_in(objects: ClusterObjects, configuration: QueueConfiguration, now: datetime) -> Seen:
    """Put together what a plan is made from."""
    of_jobs = {job.ref for job in objects.jobs}
    bare = {job.uid: job for job in objects.jobs if job.bare}
    mine: list[Pod] = []
    others: list[Pod] = []
    owners = PodOwners(objects.jobs)
    for pod in objects.pods:
        if pod.owner not in of_jobs and (owner := owners.of(pod)) is not None:
            mine.append(replace(pod, owner=owner))
        elif (
            itself := bare.get(pod.uid)
        ) is not None:  # behind its gate it stands nowhere, as if not made
            mine += [] if itself.suspended else [replace(pod, owner=itself.ref)]
        else:
            (mine if pod.owner in of_jobs else others).append(pod)
    leasing = {queue.name for queue in configuration.queues if queue.leases_nodes}
    gangs = assemble(
        objects.jobs,
        mine,
        now,
        leasing=leasing,
        priced=priced_queues(configuration),
        failed=objects.failed,
        priorities=configuration.priorities,
    )
    gangs = with_access(gangs, configuration, objects.grants)
    gangs = with_equal_keys(gangs, configuration)
    # Running pods of a gang that is not admitted count like foreign pods: they use nodes, but no quota.
    admitted = [jobs for jobs in gangs if jobs.admitted]
    counted = {role.ref for jobs in admitted for role in jobs.roles}
    unmanaged = [pod for pod in mine if pod.owner not in counted]
    sums, pods = _on_nodes(
        [*others, *unmanaged], [p for p in mine if p.owner in counted], objects.jobs
    )
    leased = by_lease(objects.nodes)
    beside = _beside(sums, pods) if leased else sums
    state = QueueState(
        configuration=configuration,
        gangs=[jobs.gang for jobs in gangs if not jobs.admitted],
        running=[with_whole_nodes(running_of(jobs), leased, beside) for jobs in admitted],
        nodes=[unmarked(node) for node in objects.nodes if node.staying],
        sums=sums,
        pods=pods,
        shared={pod.node for pod in [*others, *unmanaged] if pod.node is not None and leaves(pod)},
    )
    return Seen(state=state, gangs={jobs.gang.uid: jobs for jobs in gangs})


def _beside(sums: Mapping[str, Resources], pods: Iterable[Pod]) -> Mapping[str, Resources]:
    """Return what stands on each node beside gangs, with the pods that are known one by one."""
    found = defaultdict(list, {name: [amount] for name, amount in sums.items()})
    for pod in pods:
        if pod.node is not None:
            found[pod.node].append(pod.scheduling.requests)
    return {name: total_resources(each) for name, each in found.items()}


def _on_nodes(
    others: Iterable[Pod], counted: Iterable[Pod], jobs: Sequence[Job]
) -> tuple[Mapping[str, Resources], Sequence[Pod]]:
    """Return what stands on nodes beside gangs, as sums, and the pods that are known one by one.

    Pods that keep others away are, one of each DaemonSet, and all pods where a role wants to be near some or spreads among them.
    Those of gangs are counted with their gangs, so here they request nothing.
    """
    asks = [each.scheduling for job in jobs if not job.finished for each in job.sets]
    everybody = any(each.affinity or each.anti_affinity or each.spread for each in asks)
    sums: dict[str, list[Resources]] = defaultdict(list)
    known: list[Pod] = []
    daemons: set[str] = set()
    for pod in others:
        if pod.node is None:
            continue
        sample = pod.of_daemon_set and str(pod.owner) not in daemons
        if sample:
            daemons.add(str(pod.owner))
        if sample or everybody or pod.scheduling.anti_affinity or pod.scheduling.host_ports:
            known.append(pod)
        else:
            sums[pod.node].append(pod.scheduling.requests)
    for pod in counted:
        keeps = pod.scheduling.anti_affinity or pod.scheduling.host_ports
        if pod.node is not None and (everybody or keeps):
            known.append(replace(pod, scheduling=replace(pod.scheduling, requests=Resources())))
    return {name: total_resources(each) for name, each in sums.items()}, known
