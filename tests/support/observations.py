"""Observations of a cluster with interrupted nodes, and questions to ask of a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from plimsoll.domain.actions import Plan
from plimsoll.domain.interruptions import Interruption, NoticeRecord, marked
from plimsoll.domain.kubernetes import (
    POD_TEMPLATE_HASH,
    RELEASED,
    Node,
    Pod,
    Ref,
    ReplicaSet,
    Workload,
)
from plimsoll.domain.node_groups import Instance
from plimsoll.domain.observation import Observation
from tests.support.builders import NOON, a_node, a_pod

WEB = Ref("Deployment", "default", "web")
DB = Ref("StatefulSet", "default", "db")
STARTED = "2026-01-02T12:01:00Z"


def interrupted(
    name: str, *, kind: str = "spot-interruption", ends: float | None = 120, **how
) -> Node:
    """Return a node whose notice came at noon and which goes `ends` seconds later."""
    node = a_node(name, capacity="spot", unschedulable=True, **how)
    notice = NoticeRecord(
        kind=kind,
        time=NOON,
        id="event",
        ends=None if ends is None else NOON + timedelta(seconds=ends),
    )
    interruption = Interruption(
        instance=node.instance or "", launched=NOON, node=name, notices=(notice,), cordoned=NOON
    )
    return replace(node, interruption=interruption)


def looked(
    nodes: list[Node], pods: list[Pod], workloads: list[Workload] | None = None, **how
) -> Observation:
    """Return an observation of the cluster `harbor`; the ReplicaSet `x-abc` belongs to Deployment `x`."""
    replica_sets = {
        p.owner: ReplicaSet(
            ref=p.owner,
            uid=f"replicaset-{p.namespace}-{p.owner.name}",
            hash="abc",
            controller=Ref("Deployment", p.namespace, p.owner.name.removesuffix("-abc")),
            controller_uid=f"deployment-{p.namespace}-{p.owner.name.removesuffix('-abc')}",
            revision=1,
        )
        for p in pods
        if p.owner is not None and p.owner.kind == "ReplicaSet"
    }
    return Observation(
        cluster="harbor",
        nodes=nodes,
        pods=pods,
        workloads=workloads or [],
        replica_sets=how.pop("replica_sets", replica_sets),
        **how,
    )


def noon(seconds: float) -> datetime:
    """Return the time so many seconds after noon."""
    return NOON + timedelta(seconds=seconds)


def actions[A](plan: Plan, kind: type[A]) -> list[A]:
    return [action for action in plan.actions if isinstance(action, kind)]


def sole_action[A](plan: Plan, kind: type[A]) -> A:
    """Return the one action of the plan, which is of this kind."""
    (action,) = plan.actions
    assert isinstance(action, kind)
    return action


def released(pod: Pod, owner: Ref = WEB, interruption: str = "i-1@noon") -> Pod:
    """Return a pod as the API server shows it after its release."""
    labels = {k: v for k, v in pod.labels.items() if k != POD_TEMPLATE_HASH}
    return replace(pod, labels=labels, annotations={RELEASED: interruption}, owner=owner)


def sets_of(name: str, nodes: Sequence[str | None], **how) -> list[Pod]:
    labels = {"app": name}
    return [
        a_pod(f"{name}-{n}", node=node, labels=labels, owner=("StatefulSet", name), **how)
        for n, node in enumerate(nodes)
    ]


def died(node: Node) -> Node:
    """Return a node, not Ready any more, whose record says that its instance is gone."""
    assert node.interruption is not None
    return replace(node, interruption=marked(node.interruption, gone=noon(30)), ready=False)


def ec2(*nodes: Node, state: str = "terminated", launched: datetime = NOON) -> dict[str, Instance]:
    """Return what EC2 says of the instances of nodes."""
    ids = [node.instance or "" for node in nodes]
    return {i: Instance(id=i, state=state, launched=launched) for i in ids}
