"""Which gangs cannot move from flavor to flavor, because their operator keeps the node selector of the former one.

JobSet merges the new node selector of a role into that of its Jobs. Values of equal keys change; other keys stay, and
then no node fits. https://github.com/kubernetes-sigs/jobset/pull/1294
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from plimsoll_batch.domain.jobs import GangJobs
from plimsoll_batch.domain.quota.cohorts import Flavor, Queue, QueueConfiguration


def with_equal_keys(
    gangs: Collection[GangJobs], configuration: QueueConfiguration
) -> list[GangJobs]:
    """Return gangs, those among them held that could get another set of node labels at their next start."""
    if not configuration.frameworks:
        return [*gangs]
    queues = {queue.name: queue for queue in configuration.queues}
    flavors = {flavor.name: flavor for flavor in configuration.flavors}
    return [_held(jobs, queues.get(jobs.gang.queue), flavors) for jobs in gangs]


def _held(jobs: GangJobs, queue: Queue | None, flavors: Mapping[str, Flavor]) -> GangJobs:
    kinds = {role.ref.kind for role in jobs.roles if role.framework.merges_selectors}
    if not kinds or queue is None:
        return jobs
    why = [*filter(None, (_of_flavors(queue, flavors), _of_topology(jobs)))]
    if not why:
        return jobs
    said = f"a {min(kinds)} keeps the node labels of its last start, and {why[0]}"
    gang = replace(jobs.gang, gates=(said, *jobs.gang.gates))
    return replace(jobs, gang=gang)


def _of_flavors(queue: Queue, flavors: Mapping[str, Flavor]) -> str | None:
    for group in queue.groups:
        keys = {
            name: frozenset(flavors[name].node_labels) for name in group.flavors if name in flavors
        }
        if len(set(keys.values())) > 1:
            said = "; ".join(f"{n}: {', '.join(sorted(keys[n])) or 'none'}" for n in sorted(keys))
            return (
                f"the flavors of queue {queue.name} have different ones ({said}): give all of them the"
                " same keys of nodeLabels"
            )
    return None


def _of_topology(jobs: GangJobs) -> str | None:
    topology = jobs.gang.shape.topology
    if topology is None or topology.required:
        return None
    return f"a preferred domain adds {topology.label} at some starts only: write required={topology.label}"
