"""What a plan of the queues asks to be done to Jobs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from plimsoll_batch.domain.admission.decisions import Admitted, QueuePlan
from plimsoll_batch.domain.capacity import Domain, toleration_of
from plimsoll_batch.domain.jobs import (
    Admission,
    Begin,
    Gang,
    GangJobs,
    JobAction,
    PodSetAdmission,
    Role,
    Steering,
    make_way,
    with_baseline,
)
from plimsoll_batch.domain.names import LEASED_TO
from plimsoll_batch.domain.quota import Flavor, Queue, QueueConfiguration, RoleFlavors, grouped


def actions_of(
    plan: QueuePlan,
    gangs: Mapping[str, GangJobs],
    configuration: QueueConfiguration,
    now: datetime,
    not_yet: Collection[str] = (),
) -> Sequence[JobAction]:
    """Return what a plan asks to be done; gangs that stop already are not asked again.

    Args:
        plan: the plan.
        gangs: all of them, by uid.
        configuration: what the plan was made by.
        now: the present.
        not_yet: uids of admitted gangs that do not start yet.
    """
    steps: list[JobAction] = []
    for each in plan.preempting:
        for victim in each.victims:
            jobs = gangs[victim.holder.running.gang.uid]
            if jobs.plan is not None:
                steps.append(make_way(jobs, jobs.plan, each.gang, victim.reason, now))
    queues = {queue.name: queue for queue in configuration.queues}
    flavors = {flavor.name: flavor for flavor in configuration.flavors}
    for start in plan.admitted:
        if start.gang.uid in not_yet:
            continue
        jobs = gangs[start.gang.uid]
        steps.append(_begin(jobs, start, queues[start.gang.queue], flavors, now))
    return steps


def _begin(
    jobs: GangJobs, admitted: Admitted, queue: Queue, flavors: Mapping[str, Flavor], now: datetime
) -> Begin:
    """Return the start of a gang as a plan admitted it."""
    place = admitted.place
    plan = f"{now:%Y%m%dt%H%M%S.%f}"
    domain = () if place is None else place.domain
    roles = iter(jobs.gang.shape.roles)
    admissions = []
    for job in jobs.roles:
        was, sets = job.admission, {}
        for each, role in zip(job.sets, roles, strict=False):  # the rest is of the other Jobs
            names = admitted.flavors[role.name]
            chosen = [flavors[name] for name in names]
            sets[each.name] = PodSetAdmission(
                flavors=_by_resource(role, queue, names),
                steering=Steering()
                if each.at is None
                else _steering(role, chosen, domain, jobs.gang),
                standing=Steering() if was is None else was.in_template(each.name),
                nodes={} if place is None else place.nodes[role.name],
            )
        admission = Admission(
            plan=plan,
            at=now,
            sets=sets,
            roles={each.ref.name: each.uid for each in jobs.roles},
            parallelism=job.parallelism,
        )
        admissions.append(with_baseline(admission, jobs, job))
    return Begin(jobs=jobs, admissions=admissions, reason=admitted.reason)


def _steering(role: Role, flavors: Sequence[Flavor], domain: Domain, gang: Gang) -> Steering:
    """Return what a role's template lacks."""
    labels = {key: value for flavor in flavors for key, value in flavor.node_labels.items()}
    labels |= dict(domain)
    there = role.scheduling
    more = dict.fromkeys(t for flavor in flavors for t in flavor.tolerations)
    if gang.shape.leases:
        labels[LEASED_TO] = gang.lease
        more[toleration_of(gang)] = None
    return Steering(
        labels={k: v for k, v in labels.items() if there.node_selector.get(k) != v},
        tolerations=tuple(each for each in more if each not in there.tolerations),
    )


def _by_resource(role: Role, queue: Queue, names: RoleFlavors) -> dict[str, str]:
    groups = grouped(role, queue)
    return {resource: name for named, name in zip(groups, names, strict=True) for resource in named}
