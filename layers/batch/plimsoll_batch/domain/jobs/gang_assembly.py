"""Gangs, put together from the Jobs that name them.

What a gang is doing follows from its Jobs alone. It counts as admitted from the first role that was
started by a plan, and until the last pod of it is gone. A plan that was only written on it means nothing:
who wrote it died, or a role changed meanwhile, and the next plan is made anew.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from plimsoll.domain.kubernetes import ZONE, Pod, Ref, Resources, total_resources
from plimsoll_batch.domain.jobs.gangs import (
    FlavorResource,
    Gang,
    PreemptionRecord,
    Role,
    RunningGang,
    Shape,
    Topology,
    amounts_of,
    lost_at_an_interruption,
)
from plimsoll_batch.domain.jobs.job_annotations import MOST_ROLES, PodSetAdmission, Stop
from plimsoll_batch.domain.jobs.jobs import FailedPod, GangJobs, Job, PodSet
from plimsoll_batch.domain.jobs.policies import contradictions, gates_of_gangs, state_of
from plimsoll_batch.domain.jobs.priorities import Priorities, rank_of, why_unranked
from plimsoll_batch.domain.names import DATA

ONLY_ROLE: Final = "job"
"""The role of a Job that is a gang of its own: so all that are alike have one shape."""
MOST_NAMED: Final = 3
"""Pods that hang of one gang."""
_NONE: Final[Priorities] = {}
HANGS: Final = timedelta(minutes=5)
"""How long after its grace period a pod may be there before its gang has its quota no longer."""


def assemble(  # noqa: PLR0913 - what a moment of the queues is put together from
    jobs: Iterable[Job],
    pods: Iterable[Pod],
    now: datetime,
    *,
    leasing: Collection[str] = (),
    priced: Collection[str] = (),
    failed: Iterable[FailedPod] = (),
    priorities: Priorities = _NONE,
) -> Sequence[GangJobs]:
    """Return all gangs of which a role is not finished.

    Args:
        jobs: those that name a queue.
        pods: those of Jobs, not finished ones.
        now: the present.
        leasing: queues whose gangs all take whole nodes.
        priced: queues that compare what flavors cost.
        failed: pods of gangs that have failed.
        priorities: the named ones of the configuration.
    """
    named: dict[tuple[str, str, bool], list[Job]] = defaultdict(list)
    for job in jobs:
        named[job.ref.namespace, job.gang or job.ref.name, job.gang is None].append(job)
    of_job: dict[Ref, list[Pod]] = defaultdict(list)
    for pod in pods:
        if pod.owner is not None:
            of_job[pod.owner].append(pod)
    ended: dict[Ref, list[FailedPod]] = defaultdict(list)
    for each in failed:
        ended[each.owner].append(each)
    found, states = [], dict[tuple[str, str], str]()
    shapes: dict[tuple[object, ...], Shape] = {}
    for (namespace, name, alone), all_roles in named.items():
        # Sorted by name: plans, admissions and the first role, which names the queue, stay the same in every cycle.
        roles = sorted((r for r in all_roles if not r.finished), key=lambda r: r.ref.name)
        if not roles:
            states[namespace, name] = state_of(all_roles, None)
            continue
        mine = [pod for role in roles for pod in of_job.get(role.ref, ())]
        uid = roles[0].uid if alone else f"{namespace}/{name}"
        finished = [role for role in all_roles if role.finished]
        problems = [] if alone else _problems(roles, all_roles)
        problems += contradictions(roles, finished) + _far_from_data(roles)
        problems += [f"{role}: {words}" for role in roles for words in _wrong(role, priorities)]
        queue = roles[0].queue
        shape = _shape(shapes, roles, alone=alone, leases=queue in leasing, priced=queue in priced)
        one = GangJobs(
            gang=_gang(uid, name, roles, shape, now, priorities),
            roles=roles,
            pods=mine,
            finished=finished,
            failed=[pod for role in roles for pod in ended.get(role.ref, ())],
            problems=problems,
        )
        late = [p for p in mine if p.deleting is not None and p.deleting + HANGS <= now]
        if one.stopping and late and len(late) == len(mine):
            one = replace(one, hanging=late, problems=[*problems, *map(_hangs, late[:MOST_NAMED])])
        states[namespace, name] = state_of(all_roles, one)
        found.append(one)
    # After all gangs are known: other gangs hold the promises, and a gang may wait for others.
    return _nominated([_with_gates(jobs, gates_of_gangs(jobs, states), now) for jobs in found])


def _shape(
    known: dict[tuple[object, ...], Shape],
    roles: Sequence[Job],
    *,
    alone: bool,
    leases: bool,
    priced: bool,
) -> Shape:
    """Return the shape of a gang's roles: the same for all gangs that are alike.

    Args:
        known: the shapes that were made before; a new one is added.
        roles: its Jobs that are not finished.
        alone: whether it has one role, by no name.
        leases: whether its queue leases nodes to all.
        priced: whether its queue compares what flavors cost; else gangs that lose different amounts are alike.
    """
    leases = leases or any(role.leases for role in roles)
    topology = _near_data(roles)
    parts = [(_role_name(role, each, alone=alone), each) for role in roles for each in role.sets]
    loses = _loses(roles) if priced else None
    key = (
        topology,
        leases,
        loses,
        tuple(
            (name, each.pods, id(each.scheduling), tuple(sorted(_labels(each).items())))
            for name, each in parts
        ),
    )
    if key not in known:
        known[key] = Shape(
            roles=tuple(
                Role(name=name, pods=each.pods, scheduling=each.scheduling, labels=_labels(each))
                for name, each in parts
            ),
            topology=topology,
            leases=leases,
            loses=loses,
        )
    return known[key]


def _role_name(job: Job, each: PodSet, *, alone: bool) -> str:
    if alone:
        return each.name or ONLY_ROLE
    return f"{job.role}.{each.name}" if each.name else job.role


def running_of(jobs: GangJobs) -> RunningGang:
    """Return an admitted gang as it counts in its queue and on nodes.

    Pods that have no node yet are expected where the plan saw them. Pods that hang keep their nodes, and nobody
    waits for them: their gang counts no more in its queue, and makes way for nobody.
    """
    usage: Counter[FlavorResource] = Counter()
    on_nodes: dict[str, list[Resources]] = defaultdict(list)
    of_set: dict[tuple[Ref, str | None], list[Pod]] = defaultdict(list)
    by_ref = {role.ref: role for role in jobs.roles}
    for pod in jobs.pods:
        if pod.node is not None:
            on_nodes[pod.node].append(pod.scheduling.requests)
        if pod.owner is not None and pod.owner in by_ref:
            of_set[pod.owner, by_ref[pod.owner].set_of(pod)].append(pod)
    admitted: list[datetime] = []
    for role in jobs.roles:
        if role.admission is None:
            continue
        admitted.append(role.admission.at)
        for each in role.sets:
            plan = role.admission.sets.get(each.name, PodSetAdmission())
            there = of_set[role.ref, each.name]
            count = len(there) if jobs.stopping else max(each.pods, len(there))
            for name, amount in amounts_of(each.scheduling.requests, count).items():
                if name in plan.flavors:
                    usage[plan.flavors[name], name] += amount
            bound = Counter(pod.node for pod in there if pod.node is not None)
            left = 0 if jobs.stopping else count - bound.total()
            for node, planned in plan.nodes.items():
                more = min(left, max(0, planned - bound[node]))
                on_nodes[node] += [each.scheduling.requests] * more
                left -= more
    return RunningGang(
        gang=jobs.gang,
        admitted=max(admitted, default=jobs.gang.since),
        usage={} if jobs.hanging else usage,
        on_nodes={node: total_resources(each) for node, each in on_nodes.items()},
        stopping=jobs.stopping,
        stays=bool(jobs.hanging) or any(role.bare for role in jobs.roles),
    )


def _hangs(pod: Pod) -> str:
    return (
        f"pod {pod.name} hangs in Terminating on node {pod.node}: it was to end by {pod.deleting:%H:%M:%S} UTC;"
        " it keeps its place there, its quota is given to others"
    )


def _wrong(role: Job, priorities: Priorities) -> Iterator[str]:
    yield from role.wrong
    unranked = why_unranked(role.priority, priorities)
    if unranked is not None:
        yield unranked


def _gang(  # noqa: PLR0913, PLR0917 - what a gang is made of
    uid: str,
    name: str,
    roles: Sequence[Job],
    shape: Shape,
    now: datetime,
    priorities: Priorities,
) -> Gang:
    stops = [role.stop for role in roles if role.stop is not None]
    last = max(stops, key=lambda stop: stop.at, default=None)
    created = min(role.created for role in roles)
    # A stop starts a new wait: requests for nodes from before it belong to the earlier wait.
    since = created if last is None else max(created, last.at)
    requests = [r.request for r in roles if r.request and since <= r.request.at <= now]
    request = max(requests, key=lambda each: each.at, default=None)
    return Gang(
        uid=uid,
        namespace=roles[0].ref.namespace,
        name=name,
        queue=roles[0].queue,
        shape=shape,
        priority=max(rank_of(role.priority, priorities) for role in roles),
        since=since,
        limit=_limit(roles),
        nominated=(last is not None and last.first)
        or (request is not None and request.awaited(now)),
        request=request,
        made_way_for=() if last is None else last.made_way_for,
        preempted=preemption_in(last, roles[0], name),
    )


def preemption_in(stop: Stop | None, role: Job, name: str) -> PreemptionRecord | None:
    """Return what a stop of a gang says of a preemption; None where it was for no other gang.

    Args:
        stop: the last one.
        role: the first role of the gang.
        name: of the gang, in its namespace.
    """
    if stop is None or not stop.made_way:
        return None
    return PreemptionRecord(
        gang=f"{role.ref.namespace}/{name}",
        queue=role.queue,
        at=stop.at,
        by=stop.by,
        why=stop.why.removeprefix(f"makes way for {stop.by}: "),
    )


def _limit(roles: Sequence[Job]) -> timedelta | None:
    """Return when the last of a gang's roles ends at the latest; None where one does not say it."""
    limits = [role.limit for role in roles if role.limit is not None]
    return max(limits) if len(limits) == len(roles) else None


def _loses(roles: Sequence[Job]) -> timedelta | None:
    """Return what an interruption costs a gang of its work: the role counts that saves it least often."""
    said = [r.checkpoint_seconds for r in roles if r.checkpoint_seconds is not None]
    checkpoint = timedelta(seconds=max(said)) if said else None
    return lost_at_an_interruption(checkpoint, _limit(roles))


def _problems(roles: Sequence[Job], all_roles: Sequence[Job]) -> list[str]:
    """Say what Jobs of one gang contradict each other in."""
    found = []
    queues = sorted({role.queue for role in roles})
    if len(queues) > 1:
        found.append(f"its Jobs name different queues: {', '.join(queues)}")
    if len({role.bare for role in roles}) > 1:
        found.append(
            "Jobs and bare pods are in it, and bare pods cannot be suspended with the others"
        )
    if len(roles) > MOST_ROLES:
        found.append(f"it has {len(roles)} Jobs, more than {MOST_ROLES}")
    names = Counter(role.role for role in roles)
    found += [f"two of its Jobs are the role {name}" for name in sorted(names) if names[name] > 1]
    sizes = sorted({role.declared for role in roles if role.declared is not None})
    if not sizes:
        found.append("none of its Jobs declares plimsoll.dev/gang-size")
    elif len(sizes) > 1:
        found.append(f"its Jobs declare different sizes: {', '.join(map(str, sizes))}")
    elif len(roles) == len(all_roles):  # a role that has finished counts no more
        there = sum(role.parallelism for role in roles)
        if there != sizes[0]:
            found.append(
                f"it declares {sizes[0]} pods and its {len(roles)} Jobs have {there}: "
                + ("a Job is missing" if there < sizes[0] else "correct plimsoll.dev/gang-size")
            )
    return found


def _with_gates(jobs: GangJobs, gates: list[str], now: datetime) -> GangJobs:
    """Add what keeps a gang from being considered, to what it waits for."""
    gates = [*jobs.problems, *gates]
    gates += [words for role in jobs.roles for words in role.gates]
    gates += [f"{role} is held" for role in jobs.roles if role.held]
    if (name := jobs.by_hand) is not None:
        gates.append(
            f"Job {name} was suspended by hand: `plimsoll jobs resume` lets it start again"
        )
    gates += [
        f"it was aborted: {stop.why}: `plimsoll jobs resume` lets it start again"
        for role in jobs.roles
        if (stop := role.stop) is not None and stop.aborted and role.resumed != stop.plan
    ][:1]
    if jobs.stopping and not jobs.hanging:
        gates.append("pods of its last run are still stopping")
    gates += [f"{role} runs, and no plan started it" for role in jobs.started if role.plan is None]
    waits = [(s.not_before, s) for r in jobs.roles if (s := r.stop) is not None and s.not_before]
    if waits and now < (last := max(waits, key=lambda each: each[0]))[0]:
        why = "was restarted" if last[1].restarts else "did not start in time"
        gates.append(f"it {why}, and is not tried before {last[0]:%H:%M:%S} UTC")
    return _replaced(jobs, gates=tuple(gates))


def _nominated(found: Sequence[GangJobs]) -> Sequence[GangJobs]:
    """Mark the gangs for which others were suspended since they themselves last waited anew."""
    promised: dict[str, datetime] = {}
    for jobs in found:
        for role in jobs.roles:
            if role.stop is not None and role.stop.made_way:
                at = promised.get(role.stop.made_way)
                promised[role.stop.made_way] = role.stop.at if at is None else max(at, role.stop.at)
    return [
        _replaced(jobs, nominated=True)
        if jobs.gang.uid in promised and promised[jobs.gang.uid] >= jobs.gang.since
        else jobs
        for jobs in found
    ]


def _replaced(jobs: GangJobs, **fields: Any) -> GangJobs:
    return replace(jobs, gang=replace(jobs.gang, **fields))


def _near_data(roles: Sequence[Job]) -> Topology | None:
    """Return the topology of a gang; where its roles say where data is, their weights are added up."""
    topology = next((role.topology for role in roles if role.topology is not None), None)
    weights: Counter[str] = Counter()
    for role in roles:
        weights.update(dict(role.data))
    if not weights or (topology is not None and topology.label != ZONE):
        return topology
    required = topology is not None and topology.required
    return Topology(label=ZONE, required=required, weights=tuple(sorted(weights.items())))


def _far_from_data(roles: Sequence[Job]) -> list[str]:
    """Say where a gang wants its data's zone, and a domain of another label."""
    others = {r.topology.label for r in roles if r.topology is not None} - {ZONE}
    if not others or not any(role.data for role in roles):
        return []
    return [f"{DATA} weighs zones, and its topology is {min(others)}"]


def _labels(each: PodSet) -> Mapping[str, str]:
    """Return the labels of a role's pods where anything counts by them; each Job's own differ."""
    asks = each.scheduling
    return each.labels if asks.affinity or asks.anti_affinity or asks.spread else {}
