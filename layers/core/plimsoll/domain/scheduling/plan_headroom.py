"""The headroom of a plan, before anything is planned: who stands, who waits, and who is about to come."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from plimsoll.domain.kubernetes import (
    Pod,
    Ref,
    Workload,
    is_recreated,
    replacement_of,
    resolve_count,
    successor_of,
    unavailable,
)
from plimsoll.domain.observation import InterruptedNodes, Observation, is_gone, leaves
from plimsoll.domain.scheduling.contention import Contention
from plimsoll.domain.scheduling.headroom import Headroom
from plimsoll.domain.scheduling.preemption import snapshot_of


def headroom_for(seen: Observation, interrupted: InterruptedNodes) -> Headroom:
    """Return the headroom of a plan. Interrupted nodes take nothing, cordoned or not.

    What is Pending has its place first. So have the successors of pods that died with their node:
    they are Pending a moment from now.
    """
    nodes = (
        replace(n, unschedulable=True) if n.name in interrupted.names else n for n in seen.nodes
    )
    snapshot = snapshot_of(nodes, seen)
    dead = _dead(seen, interrupted)
    for pod in dead:
        snapshot.remove(pod)
    waiting = [*seen.pending, *_owed(seen, dead)]
    # The contention keeps a copy from before anybody is placed: it asks what others could do, not what is planned.
    contention = _contention(seen, Contention(snapshot.copy(), interrupted.names), waiting)
    surging = {ref for ref, w in seen.workload.items() if w.ref.kind == "Deployment"}
    short: list[Pod] = []
    coming = [*map(successor_of, waiting)]
    together: dict[Ref, list[Pod]] = defaultdict(list)
    # Pods that cannot run twice before those of Deployments, then as kube-scheduler's queue sorts: by priority, and the
    # one that has waited longest. https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/
    coming.sort(key=lambda p: (seen.owner(p) in surging, -p.priority, p.created))
    for pod in coming:
        if pod.group is not None and pod.group.is_gang:
            together[pod.group.ref].append(pod)
    for pod in coming:
        if pod.group is not None and pod.group.is_gang:
            # All of a group in the turn of its first pod.
            short += (
                snapshot.place_together(members)
                if (members := together.pop(pod.group.ref, []))
                else ()
            )
            continue
        node = snapshot.choose(pod)
        if node is None:
            short.append(pod)
        else:
            snapshot.place(pod, node.name)
    return Headroom(
        snapshot=snapshot,
        contention=contention,
        closed=interrupted.names,
        short=short,
    )


def _dead(seen: Observation, interrupted: InterruptedNodes) -> list[Pod]:
    return [
        pod
        for node in interrupted.nodes
        if is_gone(seen, node)
        for pod in seen.on_node.get(node.name, ())
        if leaves(pod) and is_recreated(pod)
    ]


def _owed(seen: Observation, dead: Sequence[Pod]) -> Iterator[Pod]:
    """Yield the dead whose successors do not exist yet, not even as Pending pods.

    One of a StatefulSet has none until it is gone from the API, which may take as long as its Node is Ready.
    """
    of: dict[Ref, list[Pod]] = defaultdict(list)
    for pod in dead:
        of[seen.workload_of(pod)].append(pod)
    for ref, pods in of.items():
        workload = seen.workload.get(ref)
        if workload is None:
            yield from (pod for pod in pods if pod.deleting is None)
            continue
        gone = {pod.uid for pod in pods}
        made = sum(
            p.deleting is None and not p.released and p.uid not in gone
            for p in seen.of_workload[ref]
        )
        pods.sort(key=lambda p: p.deleting is not None)
        yield from pods[: max(0, workload.replicas - made)]


def _contention(seen: Observation, contention: Contention, waiting: list[Pod]) -> Contention:
    """Fill the contention with who waits, and with pods that controllers owe and that do not exist yet.

    A count that was just raised, by us or by its owner, is followed a moment later; and a rollout
    makes pods in the middle of everything, as many as its settings let it.
    """
    for pod in waiting:
        if pod.deleting is None:
            contention.join(pod)
    for workload in seen.workloads:
        pods = [p for p in seen.of_workload.get(workload.ref, ()) if not p.released]
        stopping = [p for p in pods if p.deleting is not None]
        owed = max(0, workload.replicas - (len(pods) - len(stopping)))
        for pod in stopping[:owed]:
            contention.promise(pod)
        coming = owed - len(stopping[:owed]) + _rolled(workload)
        for pod in pods[:1]:
            contention.join(_of_any_volume(replacement_of(pod)), creatable(seen, workload, coming))
    return contention


def _of_any_volume(pod: Pod) -> Pod:
    """Return the pod without its own volumes: of a StatefulSet any may be owed, in any zone."""
    scheduling = pod.scheduling
    return replace(pod, scheduling=replace(scheduling, claims=())) if scheduling.claims else pod


def creatable(seen: Observation, workload: Workload, wanted: int) -> int:
    """Return how many pods its controller can make: a count alone is only a wish of its owner."""
    if workload.replica_failure is not None:
        return 0
    pods = seen.of_workload.get(workload.ref, ())
    quotas = [
        q.left.pods
        for q in seen.quotas
        if q.ref.namespace == workload.ref.namespace and (not q.scopes or any(map(q.binds, pods)))
    ]
    return min(wanted, *quotas) if quotas else wanted


def _rolled(workload: Workload) -> int:
    """Return how many pods more a rollout may make at any moment."""
    if not workload.rolling_out or workload.ref.kind != "Deployment":
        return 0
    if workload.strategy == "Recreate":
        return 0
    surge = resolve_count(workload.max_surge, workload.replicas, round_up=True)
    return surge + unavailable(workload.replicas, workload.max_unavailable, workload.max_surge)
