"""Whether an instruction may be carried out: by what it says, by the owner's policy, by the live state.

Pure: each function returns the reason against it, or None. The service proposes; nothing that it
signs can make an executor do more than the owner allows and the cluster as it is now can bear.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain

from plimsoll.domain.disruptions import opted_out_on
from plimsoll.domain.kubernetes import (
    Node,
    Pod,
    Ref,
    replacement_of,
    why_node_protected,
    why_protected,
)
from plimsoll.domain.observation import Observation, leaves
from plimsoll.domain.scheduling import ClusterSnapshot
from plimsoll_agent.journal import CLOCKS_APART, HOUR, Journal
from plimsoll_agent.owner_policy import OwnerPolicy
from plimsoll_service.wire.instructions import Instruction, StandingWorkload


def against_instruction(
    instruction: Instruction, cluster_id: str, journal: Journal, now: datetime
) -> str | None:
    """Return why this executor must not carry out an instruction at this time."""
    # Checked before the journal: a number counts only for the cluster that it was issued to.
    if instruction.cluster_id != cluster_id:
        return "it is for another cluster"
    if journal.answered(instruction):
        return f"number {instruction.number} or one that was issued later came before"
    if now >= instruction.expires_at:
        return f"it expired at {instruction.expires_at:%H:%M:%SZ}"
    if now < instruction.issued_at - CLOCKS_APART:
        return (
            f"it was issued in the future, at {instruction.issued_at:%H:%M:%SZ}: see to the clocks"
        )
    return None


def against_policy(
    instruction: Instruction, policy: OwnerPolicy, journal: Journal, now: datetime
) -> str | None:
    """Return why the owner's policy does not allow an instruction."""
    if instruction.kind not in policy.kinds:
        return f"the owner's policy does not name {instruction.kind} among its kinds"
    if not policy.open(now):
        return f"the owner's policy allows it {'; '.join(map(str, policy.hours))} UTC"
    if instruction.kind == "consolidate-node":
        why = _against_another_drain(instruction.preconditions.most_pods, policy, journal, now)
        if why is not None:
            return why
    foreign = [key for key in instruction.labels if not key.startswith(policy.labels or ("\0",))]
    if foreign:
        return f"the owner's policy does not allow the label {foreign[0]}"
    return None


def _against_another_drain(
    pods: int, policy: OwnerPolicy, journal: Journal, now: datetime
) -> str | None:
    if journal.since is not None and now < journal.since + HOUR:
        return f"the journal was lost: until {journal.since + HOUR:%H:%M:%SZ} nobody knows what the hour holds"
    nodes, left = journal.drained_since(now)
    if nodes >= policy.nodes_per_hour:
        return f"the owner's policy allows {policy.nodes_per_hour} nodes an hour"
    if left + pods > policy.pods_per_hour:
        return (
            f"the owner's policy allows {policy.pods_per_hour} pods an hour, and {left} have left"
        )
    return None


def against_node(instruction: Instruction, policy: OwnerPolicy, node: Node | None) -> str | None:
    """Return why the Node, as it is now, is not the one that was meant."""
    target = instruction.target
    if node is None or node.uid != target.uid:
        return f"there is no Node {target.name} of this uid any more"
    if node.instance is not None and target.provider_id.rpartition("/")[2] != node.instance:
        return f"Node {target.name} is {node.instance}, and {target.provider_id!r} was meant"
    if node.interruption is not None or node.newer_record:
        return f"Node {target.name} has an interruption, which comes first"
    if not policy.nodes.items() <= node.labels.items():
        return f"the owner's policy does not cover Node {target.name}"
    for key, value in instruction.preconditions.labels.items():
        if node.labels.get(key) != value:
            return f"its label {key} is {node.labels.get(key)!r}, and not {value!r}"
    return None


def against_cordon(instruction: Instruction, policy: OwnerPolicy, node: Node | None) -> str | None:
    """Return why the Node must not be cordoned."""
    why = against_node(instruction, policy, node)
    if why is None and node is not None and node.unschedulable:
        return f"Node {node.name} is cordoned already, by somebody else"
    return why


def against_drain(
    instruction: Instruction,
    policy: OwnerPolicy,
    seen: Observation,
    now: datetime,
    *,
    begun: bool = False,
) -> str | None:
    """Return why the pods of the Node must not be moved.

    Args:
        instruction: What is asked.
        policy: What the owner allows.
        seen: The cluster as it is now.
        now: The time of the observation.
        begun: Some may have been moved, so that their replacements are Pending or took their places.
    """
    node = seen.node.get(instruction.target.name)
    why = against_node(instruction, policy, node)
    if why is not None or node is None:
        return why
    moved = leaving(seen, node)
    found = chain(
        _against_owners(node, moved, now), _against_moving(instruction, policy, seen, node, moved)
    )
    if not begun:
        found = chain(found, _against_beginning(instruction, seen, node, moved))
    return next(found, None)


def leaving(seen: Observation, node: Node) -> Sequence[Pod]:
    """Return the pods that have to leave a node."""
    return [pod for pod in seen.on_node.get(node.name, ()) if leaves(pod)]


def interrupted(seen: Observation) -> str | None:
    """Return which interruption of the cluster comes before anything voluntary."""
    recorded = (n.name for n in seen.nodes if n.interruption is not None or n.newer_record)
    name = next(recorded, None)
    return None if name is None else f"Node {name} is interrupted: voluntary moves wait"


def _against_owners(node: Node, moved: Sequence[Pod], now: datetime) -> Iterator[str]:
    """Yield what the owners of the Node and of its pods protect from disruption."""
    if (why := why_node_protected(node)) is not None:
        yield why
    for pod in moved:
        if (why := why_protected(pod, node, now)) is not None:
            yield f"Pod {pod} must be left alone: {why}"


def _against_moving(
    instruction: Instruction,
    policy: OwnerPolicy,
    seen: Observation,
    node: Node,
    moved: Sequence[Pod],
) -> Iterator[str]:
    if (why := interrupted(seen)) is not None:
        yield why
    for out in opted_out_on(seen, node):
        yield f"Pod {out.pod} must be left alone: {out.why}"
    if len(moved) > instruction.preconditions.most_pods:
        yield f"{len(moved)} pods would have to leave, and {instruction.preconditions.most_pods} were meant"
    standing = {Ref(w.kind, w.namespace, w.name): w for w in instruction.preconditions.workloads}
    for pod in moved:
        if pod.namespace in policy.namespaces_kept:
            yield f"the owner's policy keeps the pods of namespace {pod.namespace}"
        yield from _against_leaving(pod, seen, standing)


def _against_leaving(
    pod: Pod, seen: Observation, standing: Mapping[Ref, StandingWorkload]
) -> Iterator[str]:
    owner = seen.owner(pod)
    if owner is None:
        yield f"nobody makes Pod {pod} anew"
        return
    workload, meant = seen.workload.get(owner), standing.get(owner)
    if meant is None:
        yield f"{owner} has a pod there, which was not meant"
    elif workload is not None and workload.uid != meant.uid:
        yield f"{owner} is not the one that was meant: it was made anew"
    elif workload is not None and workload.replicas < meant.replicas:
        yield f"{owner} has {workload.replicas} replicas, and {meant.replicas} were meant"


def _against_beginning(
    instruction: Instruction, seen: Observation, node: Node, moved: Sequence[Pod]
) -> Iterator[str]:
    """Yield why the Node is needed: for a Pending pod, or because the replacements do not fit where they were meant."""
    open_node = replace(node, unschedulable=False)
    snapshot = ClusterSnapshot([*seen.nodes, open_node], seen.pods, seen.claims)
    for pod in seen.pending:
        if snapshot.why_not(pod, open_node) is None:
            yield f"Pod {pod} waits for a node, and fits on Node {node.name}"
    meant = set(instruction.preconditions.destinations)
    staying = {each.uid for each in seen.nodes if each.staying}
    if lost := meant - staying:
        yield f"{len(lost)} of the {len(meant)} Nodes that were to take its pods are not there or not Ready"
    for each in seen.nodes:
        if each.uid not in meant or each.name == node.name:
            snapshot.add_node(replace(each, unschedulable=True))
    short = Counter[str]()
    # Pending pods take their places first. Then the largest of the others, which are the hardest to place.
    for pod in [*seen.pending, *sorted(moved, key=lambda p: (-p.scheduling.requests.cpu, str(p)))]:
        replacement = pod if pod.pending else replacement_of(pod)
        place = snapshot.choose(replacement)
        if place is not None:
            snapshot.place(replacement, place.name)
        elif not pod.pending:
            short[f"Pod {pod}: {snapshot.explain(replacement)}"] += 1
    yield from (f"no place is left for {words}" for words in short)
