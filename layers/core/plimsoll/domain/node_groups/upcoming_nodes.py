"""Which nodes that were asked for can still be expected, and which a group owes.

A group keeps its desired capacity whatever EC2 says, so nodes that never come would be counted as on
their way for ever, and nothing would be asked elsewhere. A launch that failed is not expected any
more, nor one that takes much longer than those of its group did before, nor what was asked for and is
not begun. As the last resort all of them count again: the group still tries, and to ask it for more would
be to ask twice. Only what a group may not launch at all never counts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from plimsoll.domain.kubernetes import GPU, MIG_SLICES, MIG_STATE, Node, starts_up
from plimsoll.domain.node_groups.launch_failures import LaunchesThrottled, Refusal
from plimsoll.domain.node_groups.node_groups import Asked, NodeGroup
from plimsoll.domain.notices import RebalanceRecommendation

DOUBTED_AFTER_REFUSAL: Final = timedelta(minutes=3)
"""How long a group is doubted after it refused, as long as Karpenter remembers an offering without capacity."""
RETRY_AFTER_REFUSAL: Final = timedelta(seconds=15)
"""How soon it is asked again where no other group will do. After each refusal of the same this doubles."""
LONGEST_RETRY: Final = timedelta(minutes=1)
"""Of a storm two minutes are left: capacity that comes back then is still asked for."""
USUAL_START_UP: Final = timedelta(minutes=3)
"""From launch to Ready, where no launch of the group tells."""
LEAST: Final = timedelta(minutes=1)
FIRST_SIGN_WITHIN: Final = timedelta(seconds=30)
"""From a request to the first sign of it: a larger size, then an instance or a failed launch. Auto Scaling
takes seconds for each, and EKS some more before it."""
NODES_JOIN_WITHIN: Final = timedelta(minutes=15)
"""How long after a request its nodes join, as for cluster-autoscaler (`--max-node-provision-time`)."""
DEVICES_REPORT_WITHIN: Final = timedelta(minutes=10)
"""How long after it is Ready a node may lack the devices of its group: a GPU operator builds its driver first."""
LAUNCH_TIME_FACTOR: Final = 2
"""A launch may take so many times as long as the slowest known one of its group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What one group has on the way."""

    upcoming: int = 0
    """Nodes that were asked for and are not Ready yet."""
    zones: Mapping[str, int] = field(default_factory=dict)
    """How many of them come up in which zone, as far as that is known: a volume in another waits in vain."""
    overdue: int = 0
    """How many of them are not to be counted on."""
    doubt: str | None = None
    """Why more of it should be asked only as the last resort."""


def not_asked_again(refusals: Iterable[Refusal], now: datetime) -> Sequence[Refusal]:
    """Return the newest refusal of each kind, zone and instance type that is not asked for again yet.

    Args:
        refusals: what our own requests to one group were refused with.
        now: the time.
    """
    of: dict[tuple[str, str | None, str | None], list[Refusal]] = defaultdict(list)
    for refusal in refusals:
        if now < refusal.at + DOUBTED_AFTER_REFUSAL:
            of[refusal.kind, refusal.zone, refusal.instance_type].append(refusal)
    return [
        last
        for same in of.values()
        for last in [max(same, key=lambda refusal: refusal.at)]
        if now < last.at + min(RETRY_AFTER_REFUSAL * 2 ** (len(same) - 1), LONGEST_RETRY)
    ]


def expected_nodes(group: NodeGroup, nodes: Sequence[Node], now: datetime) -> Expectation:
    """Return what is to be expected of a group.

    What a group launches for an instance when that is gone comes too late for the pods on it. One
    whose interruption is finished with counts as gone. More instances than are desired come where a group
    replaces one before it goes, on a recommendation or to balance its zones: those count too.

    Args:
        group: as it was read last.
        nodes: those of the cluster.
        now: the time that launches are compared with.
    """
    here = {n.instance: n for n in nodes if n.instance and n.instance in group.instances}
    gone = {i for i, n in here.items() if _finished(n)}
    ready = {i for i, n in here.items() if n.ready and not _starts_up(group, n, now)} - gone
    starting = group.instances - ready - {i for i, n in here.items() if n.interruption}
    unlaunched = max(0, group.desired - len(group.instances - gone)) if group.launches else 0
    missing = max(0, group.desired - len(ready)) if group.launches else 0
    if group.provisions:  # what is interrupted is not launched anew
        missing = unlaunched + len(starting)
    surplus = max(0, len(group.instances - gone) - group.desired)
    # Launches that have begun are subtracted: they are the instances beyond the desired capacity.
    rebalanced = max(0, _rebalanced(group, here.values(), now) - surplus)
    upcoming = max(missing + rebalanced, len(starting))
    if upcoming <= 0:
        return Expectation()
    limit = _limit([here[i].created - at for i, at in group.launched.items() if i in ready])
    begun = {i: n.created for i, n in here.items() if n.interruption is None} | dict(group.launched)
    late = [
        i
        for i in starting
        if i in begun and begun[i] + limit < now and not _reports(group, here.get(i), now)
    ]
    owed, doubt = 0, f"{len(late)} of its nodes are not Ready after {limit}" if late else None
    # Throttling is left out: the group goes on trying. The first refusal is the newest.
    told = [r for r in group.refusals if not isinstance(r, LaunchesThrottled)]
    if told and now < told[0].at + DOUBTED_AFTER_REFUSAL:
        owed, doubt = unlaunched, f"its last launch failed: {told[0].why}"
    elif (
        unlaunched
        and group.asked
        and max([group.asked, *group.launched.values()]) + FIRST_SIGN_WITHIN <= now
    ):
        owed = unlaunched
        doubt = f"{owed} of its nodes were asked for, and their launch has not begun within {FIRST_SIGN_WITHIN}"
    return Expectation(
        upcoming=upcoming,
        zones=Counter(zone for i in starting if (zone := group.zone_of.get(i))),
        overdue=min(upcoming, owed + len(late)),
        doubt=doubt,
    )


def on_the_way(expected: Mapping[str, Expectation]) -> Counter[Asked]:
    """Return how many nodes of each group come up, by zone where that is known."""
    count = Counter[Asked]()
    for key, found in expected.items():
        count.update({(key, zone): nodes for zone, nodes in found.zones.items()})
        count[key, None] += found.upcoming - sum(found.zones.values())
    return count


def start_up(group: NodeGroup, nodes: Iterable[Node]) -> timedelta:
    """Return how long a group takes from a launch to a Ready node, as far as its launches tell."""
    took = [
        node.created - at
        for node in nodes
        if node.ready and (at := group.launched.get(node.instance or "")) is not None
    ]
    return max(took, default=USUAL_START_UP)


def _rebalanced(group: NodeGroup, here: Iterable[Node], now: datetime) -> int:
    """Return how many instances a group is about to launch in place of such as are to be replaced."""
    told = (n.interruption for n in here if n.interruption and group.rebalances)
    return sum(
        any(
            notice.kind == RebalanceRecommendation.kind and now < notice.time + FIRST_SIGN_WITHIN
            for notice in found.standing
        )
        for found in told
    )


def _limit(launches: Sequence[timedelta]) -> timedelta:
    """Return how long a launch may take. What is known is when nodes joined, seconds before they were Ready."""
    return max(LEAST, LAUNCH_TIME_FACTOR * max(launches)) if launches else USUAL_START_UP


def _starts_up(group: NodeGroup, node: Node, now: datetime) -> bool:
    """Whether a Ready node cannot be used yet: an agent has not started there, or a device plugin has not reported."""
    return starts_up(node) or _reports(group, node, now)


def _reports(group: NodeGroup, node: Node | None, now: datetime) -> bool:
    """Whether a Ready node is about to report devices that its group promises: not where it failed to make slices.

    One that reports slices reports no whole GPUs any more.
    """
    if node is None or not node.ready or node.labels.get(MIG_STATE) == "failed":
        return False
    if now > (node.ready_since or node.created) + DEVICES_REPORT_WITHIN:
        return False
    promised = () if group.template is None else group.template.allocatable.extended
    devices = {name for name, amount in node.allocatable.extended if amount}
    if any(name.startswith(MIG_SLICES) for name in devices):
        devices.add(GPU)
    return any("/" in name and name not in devices for name, _ in promised)


def _finished(node: Node) -> bool:
    found = node.interruption
    return bool(found and found.phase == "closed" and found.deadline)
