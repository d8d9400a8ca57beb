"""Events of Kubernetes: what was done to a Node or a pod, told to whoever describes that object.

An Event is named after what it tells, so the same one is created only once, however often a
reconcile comes to it. Source: https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from plimsoll.domain.interruptions import Interruption
from plimsoll.domain.kubernetes.pods import Ref
from plimsoll.domain.kubernetes.workloads import Workload
from plimsoll.domain.reports import Report

LONGEST_MESSAGE_CHARACTERS: Final = 1000
"""Characters of a message: tenants write some of its words."""
MOST_NAMED: Final = 10
"""Workloads that one message names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterEvent:
    """One Event about one object."""

    about: Ref
    """Of a Node the namespace is empty; its Events are in the namespace `default`."""
    uid: str
    """Of the object; of a Node its name, as the kubelet has it: `kubectl describe` looks for both."""
    reason: str
    """One word in upper camel case, as in `Evicted`."""
    message: str
    warning: bool = False
    cause: str = ""
    """What tells two Events of one object and reason apart, for example the interruption."""

    @property
    def name(self) -> str:
        """The name of the Event: the same for what is told again."""
        told = f"{self.about}\n{self.uid}\n{self.reason}\n{self.cause}"
        return f"plimsoll.{sha256(told.encode()).hexdigest()[:32]}"


def about_workload(workload: Workload, reason: str, message: str) -> ClusterEvent:
    """Return the Event that warns the owner of a workload; another message is another Event."""
    return ClusterEvent(
        about=workload.ref,
        uid=workload.uid,
        reason=reason,
        message=message[:LONGEST_MESSAGE_CHARACTERS],
        warning=True,
        cause=message[:LONGEST_MESSAGE_CHARACTERS],
    )


def about_namespace(name: str, reason: str, message: str) -> ClusterEvent:
    """Return the Event that warns of what concerns more than one workload."""
    return ClusterEvent(
        about=Ref("Namespace", "", name),
        uid=name,
        reason=reason,
        message=message[:LONGEST_MESSAGE_CHARACTERS],
        warning=True,
        cause=message[:LONGEST_MESSAGE_CHARACTERS],
    )


def about_node(
    node: str, interruption: str, reason: str, message: str, *, warning: bool = False
) -> ClusterEvent:
    """Return the Event of what an interruption, by its identity, did to a node."""
    return ClusterEvent(
        about=Ref("Node", "", node),
        uid=node,
        reason=reason,
        message=message[:LONGEST_MESSAGE_CHARACTERS],
        warning=warning,
        cause=interruption,
    )


def event_of_cordon(interruption: Interruption, why: str) -> ClusterEvent:
    """Return the Event of a node that an interruption cordoned."""
    message = f"{interruption.kind}: {why}"
    return about_node(interruption.node, interruption.identity, "Cordoned", message, warning=True)


def event_of_report(report: Report) -> ClusterEvent | None:
    """Return the Event of an interruption that is over for its Node; None while it goes on."""
    if report.emptied is None and report.gone is None:
        return None
    missed = [f"{workload} by {short}" for workload, short in report.below_floor.items()]
    message = "every workload kept its ready floor"
    if missed:
        more = f" and {len(missed) - MOST_NAMED} more" if len(missed) > MOST_NAMED else ""
        message = f"below its ready floor was {', '.join(missed[:MOST_NAMED])}{more}"
    reason = "FloorMissed" if missed else "FloorsKept"
    return about_node(report.node, report.interruption, reason, message, warning=bool(missed))
