"""Node groups and quota: is there capacity for what must move when spot instances are reclaimed?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from plimsoll.adapters.nodegroups import karpenter
from plimsoll.domain.capacity import (
    QUOTA_CODE,
    Shortfall,
    images_of,
    short_of_addresses,
    short_of_maxima,
    short_of_quota,
    short_of_taints,
    short_of_templates,
    short_of_time_to_start,
    spot_loss,
    subnets_of,
    vcpus,
)
from plimsoll.domain.disruptions import misread_opt_outs
from plimsoll.domain.errors import PlimsollError
from plimsoll.domain.kubernetes import GROW, IGNORE
from plimsoll.domain.node_groups import NodeGroup
from plimsoll_cli.doctor.findings import Finding, fail, info, ok, unread
from plimsoll_cli.doctor.installation import Installation
from plimsoll_cli.probes.aws import GroupSettings

TEMPLATE_TAG: Final = "k8s.io/cluster-autoscaler/node-template/"
LAUNCH: Final = "Launch"

type Hindrance = tuple[str, str]
"""What keeps a group from growing, and the cure."""


def groups(installation: Installation) -> Iterator[Finding]:
    """Say which groups can grow, and what keeps the others from it."""
    found = installation.groups()
    name = installation.cluster.name
    if not found:
        yield fail(
            "none was found: nothing can be asked for capacity",
            f"tag the Auto Scaling groups kubernetes.io/cluster/{name}: owned and {GROW}: true; "
            "EKS managed node groups are found without, and need the second to grow",
        )
        return
    settings = installation.aws.group_settings(installation.cluster, found)
    judged = [(group, tuple(_hindrances(group, settings))) for group in found]
    growing = [group for group, hindered in judged if not hindered]
    if any(group.capacity == "on-demand" for group in growing):
        said = ", ".join(f"{g.name} ({g.capacity}) by {g.addable_nodes}" for g in growing)
        yield ok(f"{len(growing)} of {len(found)} can grow: {said}")
    else:
        yield fail(
            "no group of on-demand nodes can grow: what spot takes has nowhere to go",
            "add one, or fix what keeps those below from growing",
        )
    for group, hindered in judged:
        for says, cure in hindered:
            yield info(says, cure, about=f"node group {group.name}")
        slow = settings[group.name].slow if group.name in settings else None
        if slow is not None and not hindered:
            says = f"{slow}: its desired capacity is raised, which takes longer than a launch"
            yield info(says, about=f"node group {group.name}")


def node_pools(installation: Installation) -> Iterator[Finding]:
    """Name the NodePools that take no more pods, or whose limits leave too little room for all their spot nodes at once."""
    for group in installation.groups():
        if group.kind == karpenter.NAME and group.closed is not None:
            yield info(
                f"{group.closed}. Karpenter makes no node of it for Pending pods",
                "let another NodePool or node group take its pods, or make its EC2NodeClass Ready",
                about=f"NodePool {group.name}",
            )
        elif (
            group.kind == karpenter.NAME
            and group.capacity == "spot"
            and group.addable_nodes < group.desired
        ):
            yield info(
                f"its limits leave room for {group.addable_nodes} more nodes, and {group.desired} of its nodes are spot. "
                "Replacements of interrupted nodes wait until Karpenter hears of the interruption",
                "raise spec.limits by as many nodes",
                about=f"NodePool {group.name}",
            )


def maxima(installation: Installation) -> Iterator[Finding]:
    """Say whether on-demand groups may grow by as much as the cluster's spot nodes are."""
    loss = spot_loss(installation.nodes())
    fine = "on-demand groups may grow by as much as the spot nodes are"
    yield from _told(short_of_maxima(loss, installation.groups()), fine, info)


@unread(f"look at Service Quotas, EC2, {QUOTA_CODE}")
def quota(installation: Installation) -> Iterator[Finding]:
    """Say whether the account may run on-demand what runs on spot now."""
    found = installation.limits.quota()
    try:
        loss = spot_loss(installation.nodes())
    except PlimsollError:
        yield info(vcpus(found))
        return
    fine = f"{vcpus(found)}, and the cluster's spot nodes have {loss.vcpus}"
    yield from _told(short_of_quota(loss, found), fine, fail)


def addresses(installation: Installation) -> Iterator[Finding]:
    """Say whether subnets have addresses for the nodes that on-demand groups would add."""
    found = installation.groups()
    free = installation.limits.free_addresses(subnets_of(found))
    loss = spot_loss(installation.nodes(), installation.observation().pods)
    fine = f"{sum(free.values())} are free in the {len(free)} subnets of on-demand groups"
    yield from _told(short_of_addresses(loss, found, free), fine, fail)


def templates(installation: Installation) -> Iterator[Finding]:
    """Say which on-demand groups could launch nothing by what they launch from."""
    found = installation.groups()
    short = short_of_templates(found, installation.limits.images(images_of(found)))
    yield from _told(short, "all images that groups name exist", fail)


def start_up(installation: Installation) -> Iterator[Finding]:
    """Say which workloads on GPUs start too slowly for a spot notice, and have too few pods on on-demand."""
    short = short_of_time_to_start(installation.observation(), installation.now)
    yield from _told(short, "on-demand covers each GPU workload that starts slowly", info)


def tolerations(installation: Installation) -> Iterator[Finding]:
    """Name the workloads on spot nodes whose pods may return to an interrupted node."""
    short = short_of_taints(installation.observation())
    yield from _told(short, "no workload on spot nodes tolerates every taint", info)


def opt_outs(installation: Installation) -> Iterator[Finding]:
    """Name the workloads whose owners may have meant to opt out, and did not."""
    seen = installation.observation()
    found = [
        info(f"{each.workload}: {each.says}", each.cure)
        for each in misread_opt_outs(seen, seen.node)
    ]
    yield from found or [ok(f"each {IGNORE} says yes or no")]


def _told(
    short: Iterable[Shortfall], fine: str, tell: Callable[[str, str], Finding]
) -> Iterator[Finding]:
    found = [tell(each.says, each.cure) for each in short]
    yield from found or [ok(fine)]


def _hindrances(group: NodeGroup, settings: Mapping[str, GroupSettings]) -> Iterator[Hindrance]:
    own = settings.get(group.name) if group.kind == "asg" else None
    if not group.may_grow:
        yield (
            f"it lacks the tag {GROW}: true, without which our role may not grow it",
            "if Plimsoll shall grow it: aws autoscaling create-or-update-tags, or aws eks tag-resource",
        )
    elif group.desired >= group.max_size:
        said = f"it is at its maximum of {group.max_size} nodes"
        yield said, "raise its maximum, to let it take the place of others"
    if group.template is None:
        yield (
            "nothing tells what a new node of it would be",
            f"tag it {TEMPLATE_TAG}resources/cpu and …/memory, or let it have a node",
        )
    if own is not None and LAUNCH in own.suspended:
        resume = f"aws autoscaling resume-processes --auto-scaling-group-name {group.name}"
        yield "its process Launch is suspended", f"{resume} --scaling-processes Launch"
