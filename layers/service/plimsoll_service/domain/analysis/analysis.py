"""One cluster, today and as it could be, and what to do about it: a pure function of what is known."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from msgspec.structs import replace

from plimsoll.domain.kubernetes import INSTANCE_TYPE, MIN_ON_DEMAND, Node, OwnerKind, unavailable
from plimsoll_service.domain.analysis.cluster_view import ON_DEMAND, SPOT, View, stands_on_spot
from plimsoll_service.domain.analysis.consolidation import (
    Consolidation,
    Consolidations,
    consolidations,
)
from plimsoll_service.domain.analysis.drafts import draft
from plimsoll_service.domain.analysis.instance_mix import (
    Instance,
    InstanceMix,
    cheaper_mix,
    standing_instance,
)
from plimsoll_service.domain.analysis.prices import HOURS_PER_MONTH, Price, PriceTable
from plimsoll_service.domain.analysis.right_sizing import Resize, resizes
from plimsoll_service.domain.analysis.time_limit import OutOfTime, never
from plimsoll_service.domain.analysis.unused_resources import idle_load_balancers, unused_volumes
from plimsoll_service.domain.snapshots import MIB, WorkloadUsage, sum_of
from plimsoll_service.wire import snapshot as wire
from plimsoll_service.wire.advice import (
    MOST_WORDS,
    About,
    Advice,
    Configuration,
    ContainerRequests,
    Frees,
    InstanceRow,
    Kind,
    Recommendation,
)
from plimsoll_service.wire.documents import MOST_COUNT

SPREADABLE: Final = 4
"""With fewer replicas than this a floor of half leaves at most one on spot: not worth a change."""
LEAST_GAIN: Final = 0.05
"""A mix that saves a smaller share of the bill is not advised."""
MOST_LEFT: Final = 2000
"""Workloads whose requests stay, each with its reason: an answer has 6 MB at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """What an analysis found."""

    advice: Advice
    recommendations: tuple[Recommendation, ...]
    """All of them open, the one that saves most first."""
    consolidations: Consolidations


def analyse(  # noqa: PLR0913 - what an analysis is made of, each part named
    view: View,
    table: PriceTable,
    *,
    week: Mapping[str, WorkloadUsage],
    earlier: Mapping[str, WorkloadUsage],
    idle: Mapping[str, datetime],
    before: Advice | None = None,
    out_of_time: OutOfTime = never,
) -> Analysis:
    """Return what the owner of a cluster could do about its costs.

    What costs little comes first, so that it is told whatever the time suffices for.

    Args:
        view: the cluster.
        table: prices.
        week: usage of the last week, by the uid of the workload.
        earlier: of that, what is older than a day.
        idle: since when load balancers were seen without a Ready endpoint at each look, by uid.
        before: the advice that stands, for what the time does not suffice for.
        out_of_time: says when to end; the kinds that were not reached are named in the advice.
    """
    resized = list(resizes(view, week, earlier))
    better = [each for each in resized if isinstance(each, Resize)]
    left = [(_name(each[0]), each[1]) for each in resized if not isinstance(each, Resize)]
    # The mix takes longest and comes last, so that a lack of time costs nothing else.
    spare = consolidations(view, table, out_of_time)
    mix = cheaper_mix(view, table, out_of_time)
    today = _configuration((standing_instance(view, table, name) for name in view.nodes), table)
    after = resized_view(view, better) if better else None
    resized_mix = cheaper_mix(after, table, out_of_time) if after else None
    complete = mix.complete and (resized_mix is None or resized_mix.complete)
    unreached: list[Kind] = ["consolidate-node"] if spare.unreached else []
    unreached += [] if complete else ["instance-mix"]
    advice = Advice(
        cluster_id=view.seen.cluster_id,
        taken_at=view.at,
        prices=_prices(view, table),
        today=today,
        optimised=_configuration(mix.instances, table),
        resized=_configuration(resized_mix.instances, table) if resized_mix else None,
        gap=round(mix.gap, 4),
        kept=dict(mix.kept),
        left=dict(left[:MOST_LEFT]),
        left_out=len(left[MOST_LEFT:]),
        unpriced=tuple(sorted({t for t in _types(view) if t not in table.prices})),
        unreached=tuple(unreached),
    )
    if not complete and before is not None:
        advice = replace(
            advice,
            optimised=before.optimised,
            resized=before.resized,
            gap=before.gap,
            kept=before.kept,
        )
    found = [
        *(_consolidate(view, each) for each in spare.found),
        *(_right_size(view, table, each) for each in better),
        *(_mix(view, advice, mix) if complete else ()),
        *_allow_spot(view, table),
        *unused_volumes(view, table),
        *idle_load_balancers(view, table, idle),
    ]
    # The id breaks ties, so that equal runs give the same order.
    found.sort(key=lambda each: (-each.monthly, each.id))
    return Analysis(advice=advice, recommendations=tuple(found), consolidations=spare)


def resized_view(view: View, better: Iterable[Resize]) -> View:
    """Return the cluster as if the pods of these workloads had other requests."""
    found = {each.workload.uid: each for each in better}
    return View(
        seen=replace(
            view.seen,
            workloads=tuple(
                replace(w, template=its.template, requests=its.instead_of(w.requests))
                if (its := found.get(w.uid))
                else w
                for w in view.seen.workloads
            ),
            pods=tuple(
                replace(pod, requests=its.instead_of(pod.requests))
                if pod.owner and (its := found.get(pod.owner.uid))
                else pod
                for pod in view.seen.pods
            ),
        )
    )


def _share(
    view: View,
    table: PriceTable,
    pod: wire.Pod,
    part: wire.Amounts,
    worth: Callable[[Price, Node], float],
) -> float:
    """Return the share of its node's worth that a part of a pod's requests has.

    It is the mean of its shares of the node's processors and memory.
    """
    node = view.nodes.get(pod.node)
    price = table.prices.get(node.labels.get(INSTANCE_TYPE, "")) if node else None
    if node is None or price is None:
        return 0.0
    cpu = part.cpu_m / (node.allocatable.cpu or 1)
    memory = part.memory / (node.allocatable.memory or 1)
    return worth(price, node) * (cpu + memory) / 2


def _types(view: View) -> Iterator[str]:
    return (node.labels.get(INSTANCE_TYPE, "without a type") for node in view.seen.nodes)


def _configuration(instances: Iterable[Instance], table: PriceTable) -> Configuration:
    rows: dict[tuple[str, str], list[Instance]] = defaultdict(list)
    for each in instances:
        rows[each.type, each.capacity or ON_DEMAND].append(each)
    flat = [each for row in rows.values() for each in row]
    return Configuration(
        nodes=len(flat),
        spot=sum(each.capacity == SPOT for each in flat),
        vcpus=sum(
            table.sizes[each.type].vcpus
            if each.type in table.sizes
            else -(-each.allocatable.cpu // 1000)
            for each in flat
        ),
        memory=sum(each.allocatable.memory for each in flat),
        monthly=round(sum(each.hourly for each in flat) * HOURS_PER_MONTH, 2),
        instances=tuple(
            InstanceRow(
                type=name,
                capacity=capacity,
                count=len(row),
                monthly=round(sum(each.hourly for each in row) * HOURS_PER_MONTH, 2),
            )
            for (name, capacity), row in sorted(rows.items())
        ),
    )


def _prices(view: View, table: PriceTable) -> str:
    elsewhere = view.region not in {None, table.region}
    there = f"; prices differ in {view.region}, where the nodes are" if elsewhere else ""
    return f"{table.region}, {table.dates}{there}"


def _consolidate(view: View, found: Consolidation) -> Recommendation:
    node, leaving = found.node, {pod.uid for pod in found.pods}
    ending = sum_of(pod.requests for pod in view.on_node[node.name] if pod.uid not in leaving)
    where = ", ".join(sorted(set(found.destinations))[:5])
    what = (
        "no pod on it has to leave"
        if found.idle
        else f"its pods ({len(found.pods)}) fit on {where}, and a tenth of each stays free"
    )
    return draft(
        view,
        "consolidate-node",
        About(kind="Node", name=node.name, uid=node.uid),
        found.monthly,
        f"{what}; once it is empty, a cluster autoscaler removes it, or you do",
        executable=True,
        frees=Frees(
            instance=node.labels[INSTANCE_TYPE],
            spot=view.nodes[node.name].capacity == SPOT,
            cpu_m=ending.cpu_m,
            memory=ending.memory,
        ),
    )


def _about(workload: wire.Workload) -> About:
    return About(
        kind=workload.kind, namespace=workload.namespace, name=workload.name, uid=workload.uid
    )


def _name(workload: wire.Workload) -> str:
    return f"{workload.kind} {workload.namespace}/{workload.name}"


def _right_size(view: View, table: PriceTable, found: Resize) -> Recommendation:
    pods = view.of_workload.get(found.workload.uid, ())
    return draft(
        view,
        "right-size",
        _about(found.workload),
        sum(
            _share(view, table, pod, found.less, lambda price, node: price.monthly(node.capacity))
            for pod in pods
        ),
        f"it saves once nodes are consolidated. {found.reason}",
        patch=_requests(found),
        containers=tuple(
            ContainerRequests(
                name=then.name,
                sidecar=then.sidecar,
                cpu_m=then.requests.cpu_m,
                memory=then.requests.memory,
            )
            for _, then in found.changed
        ),
        frees=Frees(
            cpu_m=_of_all(found.less.cpu_m, pods),
            memory=_of_all(found.less.memory, pods),
        ),
    )


def _of_all(less: int, pods: Sequence[wire.Pod]) -> int:
    return max(-MOST_COUNT, min(less * len(pods), MOST_COUNT))


def _requests(found: Resize) -> str:
    """Return a strategic merge patch, for `kubectl patch` or as an overlay of Kustomize.

    It names the containers and the requests that change, and leaves all others as they are. Of a
    custom resource there is no such patch: merged, its list of containers would be replaced.
    """
    if found.workload.kind == OwnerKind.ROLLOUT:
        return ""
    lists: dict[str, list[dict[str, object]]] = defaultdict(list)
    for present, advised in found.changed:
        requests = {}
        if advised.requests.cpu_m != present.requests.cpu_m:
            requests["cpu"] = f"{advised.requests.cpu_m}m"
        if advised.requests.memory != present.requests.memory:
            requests["memory"] = _quantity(advised.requests.memory)
        lists["initContainers" if advised.sidecar else "containers"].append(
            {"name": advised.name, "resources": {"requests": requests}}
        )
    return json.dumps({"spec": {"template": {"spec": lists}}})


def _quantity(size: int) -> str:
    """Return bytes as a quantity, and never as more: a request above its limit is refused."""
    return str(size) if size % MIB else f"{size // MIB}Mi"


def _mix(view: View, advice: Advice, mix: InstanceMix) -> Iterator[Recommendation]:
    saved = advice.today.monthly - advice.optimised.monthly
    if saved <= LEAST_GAIN * advice.today.monthly:
        return
    rows = sorted(advice.optimised.instances, key=lambda row: -row.count)
    told = [f"{row.count} {row.type} on {row.capacity}" for row in rows]
    more = f" and {len(told[12:])} more kinds" if told[12:] else ""
    patch, left_out = node_pools(rows)
    rest = f"; the patch leaves out the {left_out} rarest kinds" if left_out else ""
    yield draft(
        view,
        "instance-mix",
        About(kind="Cluster", name=view.seen.cluster_id, uid=view.seen.cluster_id),
        saved,
        f"the same pods fit on {', '.join(told[:12])}{more}; at most {mix.gap:.0%} above the optimum{rest}",
        patch=patch,
    )


def node_pools(rows: Sequence[InstanceRow]) -> tuple[str, int]:
    """Return the requirements of a NodePool for each capacity type, as JSON, and how many rows it has no room for.

    The last rows are left out first.
    """
    patch, left_out = _requirements(rows), 0
    while len(patch) > MOST_WORDS:
        left_out += 1
        patch = _requirements(rows[:-left_out])
    return patch, left_out


def _requirements(rows: Iterable[InstanceRow]) -> str:
    types: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        types[row.capacity].add(row.type)
    requirements = [
        [
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": [capacity]},
            {"key": INSTANCE_TYPE, "operator": "In", "values": sorted(names)},
        ]
        for capacity, names in sorted(types.items())
    ]
    return json.dumps({"nodePools": requirements})


def _allow_spot(view: View, table: PriceTable) -> Iterator[Recommendation]:
    """Say what a floor would save for workloads whose owners have stated none."""
    for workload in view.seen.workloads:
        if (
            workload.kind != "Deployment"
            or MIN_ON_DEMAND in workload.annotations
            or workload.replicas < SPREADABLE
            or workload.uid in view.scalers
            or workload.claim_templates
            or stands_on_spot(view, workload)
            or unavailable(workload.replicas, workload.max_unavailable, workload.max_surge) == 0
        ):
            continue
        keep = -(-workload.replicas // 2)
        pods = view.of_workload.get(workload.uid, ())
        shares = (
            _share(view, table, pod, pod.requests, lambda price, _: price.saved_monthly)
            for pod in pods
        )
        saved = sum(shares) / max(1, len(pods))
        share = (workload.replicas - keep) * saved
        if share <= 0 or any(pod.volumes for pod in pods):
            continue
        patch = {"metadata": {"annotations": {MIN_ON_DEMAND: "50%"}}}
        yield draft(
            view,
            "allow-spot",
            _about(workload),
            share,
            f"all {workload.replicas} replicas stand on on-demand and no floor is stated; with half of them "
            f"kept there, {workload.replicas - keep} may stand on spot, and be interrupted",
            patch=json.dumps(patch),
        )
