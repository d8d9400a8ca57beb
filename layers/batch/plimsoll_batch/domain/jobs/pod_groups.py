"""PodGroups that the Jobs of a gang name: kube-scheduler places their pods together, as the queues admit them.

A Job's template names its PodGroup from the beginning: Kubernetes lets nobody change that later, not even while the
Job is suspended. See docs/decisions/0020-gang-start-and-lifecycle.md.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from plimsoll.domain.kubernetes import Ref
from plimsoll_batch.domain.jobs.jobs import GangJobs, Job


@dataclass(frozen=True, slots=True, kw_only=True)
class GangPodGroup:
    """A PodGroup as a gang needs it."""

    ref: Ref
    gang: str
    """The name of the gang."""
    min_count: int
    priority_class: str
    """Of its pods: a PodGroup preempts by its own priority, and not by theirs."""
    owners: Sequence[Job]
    """The Jobs and bare pods that name it: it goes with the last of them."""


def pod_groups_of(jobs: GangJobs, starting: Iterable[Job]) -> Sequence[GangPodGroup]:
    """Return the PodGroups that a gang needs so that these roles can start beside those that run.

    Pods that no started role makes yet are not waited for: a role may start only when another one runs.
    """
    named: dict[str, list[Job]] = defaultdict(list)
    for role in {each.uid: each for each in (*jobs.started, *starting)}.values():
        if role.group is not None:
            named[role.group].append(role)
    whole = sum(role.pods for role in jobs.roles)
    return [
        GangPodGroup(
            ref=Ref("PodGroup", jobs.gang.namespace, name),
            gang=jobs.gang.name,
            # What the gang can do without, any of its PodGroups may miss.
            min_count=max(1, sum(role.pods for role in roles) - (whole - jobs.needs)),
            priority_class=roles[0].priority_class,
            owners=roles,
        )
        for name, roles in sorted(named.items())
    ]
