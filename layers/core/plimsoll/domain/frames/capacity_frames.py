"""The node groups of a frame: what was asked of them, what came, what is on its way, and what they refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from plimsoll.domain.actions import Action, Grow
from plimsoll.domain.frames.frame import LONGEST_WORDS, MOST_GROUPS, GroupFrame
from plimsoll.domain.frames.workload_frames import Scene
from plimsoll.domain.node_groups import (
    DOUBTED_AFTER_REFUSAL,
    USUAL_START_UP,
    NodeGroup,
    Refusal,
    expected_nodes,
    refusal_advice,
    start_up,
)

_MOST_FULL: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ComingNodes:
    """Nodes that are on their way, as far as they are to be counted on."""

    nodes: int = 0
    next_at: datetime | None = None
    """When the next is expected; None where no launch of its group tells."""


def group_frames(
    scene: Scene,
    before: Sequence[GroupFrame],
    done: Iterable[Action],
    refusals: Mapping[str, Sequence[Refusal]],
) -> tuple[GroupFrame, ...]:
    """Return the node groups that were asked for nodes, or refused them.

    Args:
        scene: what is so now.
        before: those of the frame before this one.
        done: what was carried out since then.
        refusals: what our own requests were refused with, by the key of the group.
    """
    known = {frame.name: frame for frame in before}
    added: Counter[str] = Counter()
    for action in done:
        if isinstance(action, Grow):
            added[action.group.name] += action.add
    for group in scene.seen.groups:
        told = [
            refusal
            for refusal in (*refusals.get(group.key, ()), *group.refusals)
            if scene.now < refusal.at + DOUBTED_AFTER_REFUSAL
        ]
        if not (told or added[group.name] or group.name in known):
            continue
        was = known.get(group.name) or GroupFrame(name=group.name, capacity=group.capacity)
        asked = was.asked if was.asked is not None or not added[group.name] else scene.second
        refused = refusal_advice(group.name, max(told, key=_at)) if told else was.refused
        known[group.name] = replace(
            was,
            asked=asked,
            add=was.add + added[group.name],
            ready=sum(
                node.instance in group.instances and node.created >= scene.storm and node.ready
                for node in scene.seen.nodes
            ),
            refused=refused[:LONGEST_WORDS],
        )
    return tuple(known.values())[:MOST_GROUPS]


def coming_nodes(scene: Scene, done: Iterable[Action]) -> ComingNodes:
    """Return how many nodes are on their way: those of groups, and those that were just asked for."""
    times = list[datetime]()
    grouped = {instance for group in scene.seen.groups for instance in group.instances}
    # A Node that is not Ready yet came from somewhere, whether its group was read or not.
    nodes = sum(
        node.created >= scene.storm and not node.ready and node.instance not in grouped
        for node in scene.seen.nodes
    )
    for group in scene.seen.groups:
        expected = expected_nodes(group, scene.seen.nodes, scene.now)
        counted = expected.upcoming - expected.overdue
        if counted > 0:
            nodes += counted
            times += _expected_at(scene, group)
    for action in done:
        if isinstance(action, Grow):
            nodes += action.add
    return ComingNodes(nodes=nodes, next_at=min(times, default=None))


def full_groups(scene: Scene) -> tuple[str, ...]:
    """Return the groups that would grow, and have as many nodes as their owners allow."""
    full = [
        group.name for group in scene.seen.groups if group.grows and group.desired >= group.max_size
    ]
    return tuple(full[:_MOST_FULL])


def _expected_at(scene: Scene, group: NodeGroup) -> Iterable[datetime]:
    """Yield when nodes of a group that come up are expected, where its launches tell how long that takes."""
    took = start_up(group, scene.seen.nodes)
    if took == USUAL_START_UP:
        return
    here = {node.instance for node in scene.seen.nodes if node.ready}
    begun = [at for instance, at in group.launched.items() if instance not in here]
    if not begun and group.asked is not None:
        begun = [group.asked]
    yield from (at + took for at in begun if at + took > scene.now)


def _at(refusal: Refusal) -> datetime:
    return refusal.at
