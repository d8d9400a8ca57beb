"""Nodes that were added for interruptions, and are empty: as many are taken back as were added.

Only in groups whose owner lets us (`NodeGroup.renew`); of all others the cluster's autoscaler takes
care. How many were added, and when, is told by reports, which nobody in the cluster can write. Which
nodes these are is told by their age. A node that was drained on advice counts too: the added one
stands in its place. A record tells since when a node is empty; it is cordoned after `EMPTY_FOR`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, time, timedelta
from typing import Final

from plimsoll.domain.actions import Cordon, Record
from plimsoll.domain.capacity import could_serve
from plimsoll.domain.drain.cordon_rate_limit import MOST_REPORTS, cordon, waiting_for_turn
from plimsoll.domain.interruptions import SCALE_DOWN, Interruption, NoticeRecord, in_this_life
from plimsoll.domain.kubernetes import Node, why_node_protected
from plimsoll.domain.node_groups import NODES_JOIN_WITHIN, NodeGroup
from plimsoll.domain.observation import Observation, is_empty
from plimsoll.domain.reports import SCALE_UP, Reason, Report

EMPTY_FOR: Final = timedelta(minutes=10)
"""How long a node must be empty, as for cluster-autoscaler (`--scale-down-unneeded-time`)."""
MOST_KINDS: Final = 100
"""Kinds of Pending pods that are compared with every node."""

LATEST_REPORTS: Final = 100
"""How many reports are read for that: what an older one tells is left to the cluster's autoscaler."""


def added_entry(group: NodeGroup, nodes: int, now: datetime, what: str) -> Mapping[str, int]:
    """Return what a report says of nodes that were added to a group, or taken back (less than zero).

    `what` names it: the token of the request, or the instance. Of two of one name, the second changed nothing.
    """
    return {f"{group.key}@{now.isoformat()}@{what}": nodes}


def report_of_added(cluster: str, added: Mapping[str, int], reason: str, now: datetime) -> Report:
    """Return what a request adds to the report of its day where no interruption is open: for a zonal shift, or a return."""
    day = datetime.combine(now, time(), now.tzinfo)
    return Report(
        interruption=f"{SCALE_UP}@{cluster}/{day:%Y-%m-%d}",
        cluster=cluster,
        node="",
        kind=SCALE_UP,
        noticed=now,
        closed=now,
        added=added,
        reasons=(Reason(why=reason),),
    )


def added_by_group(report: Report) -> Mapping[str, int]:
    """Return how many nodes were added by what a report tells of, by the keys of their groups."""
    found = Counter[str]()
    for key, nodes in _told([report]).items():
        found[_group(key)] += nodes
    return found


def added_since(reports: Iterable[Report], since: datetime) -> int:
    """Return how many nodes were added, apart from interruptions, by requests after a time."""
    told = _told(report for report in reports if report.kind == SCALE_UP)
    return sum(
        n for key, n in told.items() if datetime.fromisoformat(key.rsplit("@", 2)[1]) > since
    )


def reports_wanted(seen: Observation) -> int:
    """Return how many of the newest reports decide what is done: in calm times where a node is empty."""
    if waiting_for_turn(seen):
        return MOST_REPORTS
    empty = _calm(seen) and any(node.interruption or is_empty(seen, node) for node in seen.nodes)
    return LATEST_REPORTS if empty else 0


def taken_back(seen: Observation) -> Mapping[str, NodeGroup]:
    """Return the empty nodes that their groups need no longer, by name."""
    found: dict[str, NodeGroup] = {}
    for group in seen.groups:
        asked = _asked(seen, group)
        most = min(sum(asked.values()), group.desired - group.min_size) if group.renew else 0
        if most > 0:
            here = [
                node
                for node in seen.nodes
                if node.instance in group.instances and _is_surplus(seen, node, asked)
            ]
            # In a lasting order: if each plan chose other nodes, none would be empty for long enough.
            found |= {node.name: group for node in sorted(here, key=_order)[:most]}
    return found


def _is_waited_for(seen: Observation) -> bool:
    """Whether a Pending pod could be served. Who makes many kinds of pods that could not be holds nodes, and no plan up."""
    kinds = {id(pod.scheduling): pod.scheduling for pod in seen.pending}
    return len(kinds) > MOST_KINDS or could_serve(seen, kinds.values())


def scale_down_steps(seen: Observation, now: datetime) -> Iterator[Record | Cordon]:
    """Yield for empty added nodes a record of the time, and the cordon when they have settled.

    Nothing while a node with a deadline is interrupted, or a pod waits for a node that could be.
    """
    back = taken_back(seen)
    if not back or not _calm(seen) or _is_waited_for(seen):
        return
    for name in back:
        node = seen.node[name]
        found = node.interruption
        if found is None:
            notice = NoticeRecord(kind=SCALE_DOWN, time=now, id=name)
            since = Interruption(
                instance=node.instance or "", launched=None, node=name, notices=(notice,)
            )
            reason = f"it was added and is empty: it goes if it stays so for {EMPTY_FOR}"
            yield Record(node=node, interruption=since, reason=reason)
        elif found.kind == SCALE_DOWN and not found.cordoned and found.noticed + EMPTY_FOR <= now:
            said = seen.instances.get(found.instance)
            named = in_this_life(found, launched=None if said is None else said.launched)
            if named is not None:  # by its launch, as whatever is told of its end will name it
                reason = f"it was added, and has been empty since {found.noticed:%H:%M:%S}"
                yield cordon(node, named, now, reason)


def may_be_added(seen: Observation) -> Iterator[str]:
    """Yield the empty nodes that could be taken back, for all that is known without their groups."""
    every = _told(seen.reports)
    if sum(every.values()) > 0 and _calm(seen):
        yield from (node.name for node in seen.nodes if _is_surplus(seen, node, every))


def _asked(seen: Observation, group: NodeGroup) -> Mapping[str, int]:
    told = _told(seen.reports)
    return {key: nodes for key, nodes in told.items() if _group(key) == group.key}


def _group(key: str) -> str:
    return key.rsplit("@", 2)[0]


def _told(reports: Iterable[Report] | None) -> Mapping[str, int]:
    """Return what reports tell of nodes that were added and taken back.

    Each name counts once: a request that was repeated under its token was answered twice and met once.
    """
    every = (each for report in reports or () for each in report.added.items())
    return dict({key.rpartition("@")[2]: (key, nodes) for key, nodes in every}.values())


def _is_surplus(seen: Observation, node: Node, asked: Mapping[str, int]) -> bool:
    """Whether a node is empty, and was added by one of these requests or drained on advice."""
    found = node.interruption
    if not (node.ready and is_empty(seen, node)) or why_node_protected(node) is not None:
        return False
    if found is not None and found.kind != SCALE_DOWN:
        return bool(found.cordoned) and found.deadline is None and found.phase != "closed"
    requests = (datetime.fromisoformat(key.rsplit("@", 2)[1]) for key, n in asked.items() if n > 0)
    ours = found is not None and found.cordoned is not None
    return (ours or not node.unschedulable) and any(
        at <= node.created <= at + NODES_JOIN_WITHIN for at in requests
    )


def _calm(seen: Observation) -> bool:
    return not any(
        found.deadline and found.phase == "open" and not found.withdrawn
        for node in seen.nodes
        if (found := node.interruption)
    )


def _order(node: Node) -> tuple[bool, bool, datetime, str]:
    """What is cordoned already goes first, then what has been empty for longest."""
    found = node.interruption
    return (
        found is None,
        found is not None and found.cordoned is None,
        found.noticed if found else node.created,
        node.name,
    )
