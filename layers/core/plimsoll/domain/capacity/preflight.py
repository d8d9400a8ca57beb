"""Before a storm: what an account and its node groups could not give if all spot nodes went at once.

Sums are compared, so that a cluster of any size is judged by a few numbers: as much is asked for as the
spot nodes are. What they have free, and what stands free on on-demand nodes, is not counted.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from plimsoll.domain.capacity.start_up import StartWindows, slow_starts
from plimsoll.domain.disruptions import tolerant_workloads
from plimsoll.domain.kubernetes import Node, Pod, Resources, total_resources
from plimsoll.domain.node_groups import LaunchTemplateBroken, NodeGroup, NoFreeAddresses
from plimsoll.domain.observation import Observation, leaves
from plimsoll.domain.reports import Report

PREFLIGHT: Final = "preflight"
"""The kind of the reports that keep what was told last, and the first part of their ids."""
QUOTA_CODE: Final = "L-1216C47A"
"""Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances, in vCPUs."""


class Short(StrEnum):
    """What can be short, named as the refusal that it would lead to, if it leads to one."""

    MAXIMUM = "group-maximum"
    QUOTA = "vcpu-quota"
    ADDRESSES = "no-free-addresses"
    TEMPLATE = "launch-template-broken"
    START_UP = "slow-start"
    TOLERATIONS = "tolerates-interruptions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortfall:
    """One thing that is short."""

    short: Short
    of: str
    """Whose it is: the account, on-demand groups, or one of these."""
    says: str
    cure: str

    @property
    def key(self) -> str:
        """By which it is the same from hour to hour, although its numbers change."""
        return f"{self.of}: {self.short}"


@dataclass(frozen=True, slots=True, kw_only=True)
class VcpuQuota:
    """vCPUs of on-demand instances of the standard families that the account may run at once, and runs."""

    limit: int
    used: int

    @property
    def free(self) -> int:
        """How many more it may run."""
        return max(0, self.limit - self.used)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotLoss:
    """What the loss of all spot nodes would ask for."""

    amounts: Resources
    vcpus: int
    pods: int
    """How many pods would move; 0 where that is not known."""


def spot_loss(nodes: Iterable[Node], pods: Iterable[Pod] = ()) -> SpotLoss:
    """Return what would be asked for if all spot nodes of a cluster went."""
    spot = {node.name: node.allocatable for node in nodes if node.capacity == "spot"}
    return SpotLoss(
        amounts=total_resources([*spot.values()]),
        vcpus=sum(math.ceil(each.cpu / 1000) for each in spot.values()),
        pods=sum(pod.node in spot and leaves(pod) for pod in pods),
    )


def subnets_of(groups: Iterable[NodeGroup]) -> Sequence[str]:
    """Return the subnets that on-demand groups launch into."""
    return sorted({subnet for group in _on_demand(groups) for subnet in group.subnets})


def images_of(groups: Iterable[NodeGroup]) -> Sequence[str]:
    """Return the images that on-demand groups launch, as far as they are known."""
    return sorted({group.image for group in _on_demand(groups) if group.image is not None})


def short_of_maxima(loss: SpotLoss, groups: Iterable[NodeGroup]) -> Iterator[Shortfall]:
    """Yield it where on-demand groups may not grow by as much as the spot nodes are."""
    growth = [(g.addable_nodes, g.template.allocatable) for g in _on_demand(groups) if g.template]
    if lacking := _lacking(loss, growth):
        yield Shortfall(
            short=Short.MAXIMUM,
            of="on-demand groups",
            says=f"on-demand groups may grow by {lacking} of the spot nodes, if all went at once",
            cure="raise the maximum of a group, or tag another one; what stands free on on-demand nodes is not counted here",
        )


def short_of_quota(loss: SpotLoss, quota: VcpuQuota) -> Iterator[Shortfall]:
    """Yield it where the account may not run on-demand what runs on spot now."""
    if quota.free < loss.vcpus:
        yield Shortfall(
            short=Short.QUOTA,
            of="account",
            says=f"{vcpus(quota)}: fewer than the {loss.vcpus} of the cluster's spot nodes, if all went at once",
            cure="aws service-quotas request-service-quota-increase --service-code ec2 "
            f"--quota-code {QUOTA_CODE} --desired-value {quota.used + loss.vcpus}",
        )


def vcpus(quota: VcpuQuota) -> str:
    """Return in words how much of a quota is free."""
    return f"{quota.free} of {quota.limit} on-demand vCPUs (standard families) are free"


def short_of_addresses(
    loss: SpotLoss, groups: Sequence[NodeGroup], free: Mapping[str, int]
) -> Iterator[Shortfall]:
    """Yield it where subnets have too few addresses for the nodes that on-demand groups would add.

    A node takes one address, and each pod that moves takes one, as the VPC CNI assigns them. Groups share subnets,
    and one whose subnets are not known is not bounded by them.

    Args:
        loss: what the loss of all spot nodes would ask for.
        groups: all groups of the cluster.
        free: subnet -> its free addresses.
    """
    left, asked, fed, bound = dict(free), list[_Growth](), list[_Growth](), list[str]()
    for group in _on_demand(groups):
        if group.template is None or not group.addable_nodes:
            continue
        one = group.template.allocatable
        alone = max(1, _nodes(loss.amounts.cpu, one.cpu), _nodes(loss.amounts.memory, one.memory))
        most = min(group.addable_nodes, alone)
        each = 1 + math.ceil(loss.pods / alone)
        known = [subnet for subnet in group.subnets if subnet in left]
        there = sum(left[subnet] for subnet in known)
        can = min(most, there // each) if known else most
        taken = can * each
        for subnet in known:
            part = min(left[subnet], taken)
            left[subnet], taken = left[subnet] - part, taken - part
        asked.append((most, one))
        fed.append((can, one))
        if can < most:
            bound.append(f"{group.name} ({there} free, {each} for each node)")
    lacking = _lacking(loss, fed)
    if bound and lacking and lacking != _lacking(loss, asked):
        yield Shortfall(
            short=Short.ADDRESSES,
            of="on-demand groups",
            says=f"subnets have addresses for {lacking} of the spot nodes, if all went at once: {', '.join(bound)}",
            cure=NoFreeAddresses.cure,
        )


def short_of_templates(groups: Iterable[NodeGroup], images: Collection[str]) -> Iterator[Shortfall]:
    """Yield the on-demand groups whose launch templates name an image that does not exist.

    Args:
        groups: all groups of the cluster.
        images: those of the groups' images that exist.
    """
    for group in _on_demand(groups):
        if group.may_grow and group.image is not None and group.image not in images:
            yield Shortfall(
                short=Short.TEMPLATE,
                of=f"node group {group.name}",
                says=f"the image {group.image} of node group {group.name} does not exist, or may not be used",
                cure=LaunchTemplateBroken.cure,
            )


def short_of_time_to_start(seen: Observation, now: datetime) -> Iterator[Shortfall]:
    """Yield the workloads on GPUs that would miss the pods of one spot pool for as long as others start."""
    for slow in slow_starts(StartWindows(seen=seen, now=now)):
        yield Shortfall(short=Short.START_UP, of=str(slow.workload), says=slow.says, cure=slow.cure)


def short_of_taints(seen: Observation) -> Iterator[Shortfall]:
    """Yield the workloads on spot nodes whose pods no taint keeps off an interrupted node."""
    spot = [node.name for node in seen.nodes if node.capacity == "spot"]
    for found in tolerant_workloads(seen, spot):
        of = str(found.workload)
        yield Shortfall(short=Short.TOLERATIONS, of=of, says=f"{of}: {found.says}", cure=found.cure)


type _Growth = tuple[int, Resources]
"""How many nodes more, and what one of them is."""


def _on_demand(groups: Iterable[NodeGroup]) -> Iterator[NodeGroup]:
    return (group for group in groups if group.capacity == "on-demand")


def _nodes(need: int, one: int) -> int:
    return math.ceil(need / one) if one > 0 else 0


def _lacking(loss: SpotLoss, growth: Sequence[_Growth]) -> str:
    """Return of what is short how much there is; empty where nothing is."""
    need = loss.amounts
    return " and ".join(
        f"{can // unit} of {wanted // unit} {name}"
        for name, unit, wanted, can in (
            ("CPUs", 1000, need.cpu, sum(n * one.cpu for n, one in growth)),
            ("GiB", 2**30, need.memory, sum(n * one.memory for n, one in growth)),
        )
        if can < wanted
    )


# --- What is told of it ----------------------------------------------------------------------------


def preflights_of(cluster: str) -> str:
    """Return what these reports stand under: beside those of interruptions, and no cluster's name."""
    return f"*{PREFLIGHT}/{cluster}"


def preflight_answer(
    found: Iterable[Shortfall], before: Mapping[str, str], unread: Collection[Short]
) -> Mapping[str, str]:
    """Return what is short now, by key, in words. What could not be read now is as it was before."""
    known = {f"{short}" for short in unread}
    kept = {key: words for key, words in before.items() if key.rpartition(": ")[2] in known}
    return kept | {each.key: f"{each.says}. Cure: {each.cure}" for each in found}


def preflight_report(cluster: str, short: Mapping[str, str], now: datetime) -> Report:
    """Return what keeps the preflight_answer that was told, until another is."""
    return Report(
        interruption=f"{PREFLIGHT}@{cluster}/{now:%Y-%m-%dT%H:%M:%SZ}",
        cluster=preflights_of(cluster),
        node="",
        kind=PREFLIGHT,
        noticed=now,
        closed=now,
        refused=short,
    )


def preflight_announcement(
    cluster: str, short: Mapping[str, str], before: Mapping[str, str]
) -> tuple[str, str]:
    """Return subject and text of the one message about an preflight_answer that changed."""
    cured = [f"No longer short: {key}" for key in before if key not in short]
    if not short:
        text = ["If all spot nodes went now, nothing known would keep others from coming.", *cured]
        return f"{cluster[:50]}: nothing is short any more before a storm", "\n".join(text)
    text = ["If all spot nodes went now, these would keep others from coming:"]
    text += [f"  {words}" for words in short.values()] + cured
    text.append(f"All of it, as it is now: plimsoll doctor --cluster {cluster}")
    return f"{cluster[:50]}: {len(short)} short before a storm", "\n".join(text)
