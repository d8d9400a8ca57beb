"""Which nodes load balancers send no more requests to, by a label that their controllers follow.

Of targets that are nodes (instance mode) any node takes requests and hands them on to any pod. So a node
takes them until its instance goes, whatever stands on it, and a cordon changes nothing: the
AWS Load Balancer Controller and the cloud provider heed the label alone. Targets that are pods need no
label: a pod is deregistered when it is asked to stop.

The label must not take away what still serves. As many targets have to stay, and a pod to which
its own node hands requests leaves first.

Sources: https://github.com/kubernetes-sigs/aws-load-balancer-controller/blob/main/pkg/backend/endpoint_utils.go
and https://github.com/kubernetes/enhancements/blob/master/keps/sig-network/3458-remove-transient-node-predicates-from-service-controller/README.md
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from plimsoll.domain.actions import Exclude
from plimsoll.domain.disruptions import why_over
from plimsoll.domain.kubernetes import EXCLUDED, EXCLUDED_BY_US, LabelSelection, Node, Ref, matches
from plimsoll.domain.observation import InterruptedNodes, Observation, is_gone, leaves, why_drained

SETTLED: Final = timedelta(minutes=2)
"""How old a node is before it is counted on as a healthy target: a Network Load Balancer takes up to that long.
https://github.com/kubernetes-sigs/aws-load-balancer-controller/issues/1834"""
LEAD: Final = timedelta(seconds=30)
"""How long before its deadline a node is left out at the latest, if any target stays: requests that are
under way end by then, and new ones would be lost with it."""
MOST_SERVICES: Final = 100
"""Of how many Services with local traffic in a namespace the pods are looked for; more count as all of them."""


def exclusions(
    seen: Observation, interrupted: InterruptedNodes, now: datetime
) -> Iterator[Exclude]:
    """Yield the nodes to leave out from now on, and those whose label no interruption explains any more."""
    for node in seen.nodes:
        ours = node.labels.get(EXCLUDED) == EXCLUDED_BY_US
        if ours and not (node.interruption or node.unreadable or node.newer_record):
            yield Exclude(node=node, excluded=False, reason="no interruption stands on it any more")
    if not any(one.node_ports for one in seen.label_selections):
        return
    # What stays is counted before any node is left out: all nodes of one interruption are judged by the same targets.
    targets = [
        n for n in seen.nodes if n.ready and n.labels.get(EXCLUDED) in {None, EXCLUDED_BY_US}
    ]
    staying = [n for n in targets if _stays(seen, n, now)]
    targets_in, staying_in = Counter(n.zone for n in targets), Counter(n.zone for n in staying)
    local = _LocalTraffic(seen, frozenset(n.name for n in staying))
    for node in targets:
        if EXCLUDED in node.labels or not _goes(seen, interrupted, node, now):
            continue
        record = interrupted.interruption[node.name]
        left, there = staying_in[node.zone], targets_in[node.zone]
        ends = record.deadline is not None and record.deadline - LEAD <= now
        if 2 * left < there and not (ends and staying):
            continue
        if not local.needs(node):
            reason = f"{left} of {there} targets of load balancers in its zone stay"
            yield Exclude(node=node, reason=reason)


def _stays(seen: Observation, node: Node, now: datetime) -> bool:
    """Whether a target is there for long enough, and nobody takes it away."""
    return (
        node.staying
        and EXCLUDED not in node.labels
        and node.created <= now - SETTLED
        and why_drained(node, seen.policy) is None
    )


def _goes(seen: Observation, interrupted: InterruptedNodes, node: Node, now: datetime) -> bool:
    """Whether a node is cordoned for an interruption that goes on, and its instance still runs."""
    return (
        node.name in interrupted.names
        and interrupted.interruption[node.name].cordoned is not None
        and not is_gone(seen, node)
        and why_over(seen, node, now) is None
    )


@dataclass(slots=True)
class _LocalTraffic:
    """Pods that get the requests of load balancers through their own node only."""

    seen: Observation
    staying: frozenset[str]
    """The names of the targets that stay."""
    services: Mapping[str, Sequence[LabelSelection]] = field(init=False)
    """By namespace."""
    elsewhere: dict[Ref, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        found: dict[str, list[LabelSelection]] = defaultdict(list)
        for one in self.seen.label_selections:
            if one.node_ports and one.local:
                found[one.ref.namespace].append(one)
        self.services = found

    def needs(self, node: Node) -> bool:
        """Whether a pod here would lose its requests: one that leaves, or the last that serves."""
        for pod in self.seen.on_node.get(node.name, ()):
            services = self.services.get(pod.namespace, ()) if pod.serving else ()
            if len(services) > MOST_SERVICES:
                return True
            for service in services:
                selected = matches(service.selector, pod.labels)
                if selected and (leaves(pod) or not self._served_elsewhere(service)):
                    return True
        return False

    def _served_elsewhere(self, service: LabelSelection) -> bool:
        if service.ref not in self.elsewhere:
            self.elsewhere[service.ref] = any(
                pod.serving
                and pod.namespace == service.ref.namespace
                and pod.node in self.staying
                and matches(service.selector, pod.labels)
                for pod in self.seen.pods
            )
        return self.elsewhere[service.ref]
