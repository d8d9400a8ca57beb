"""Which pods may be released: handed from their ReplicaSet to their Deployment while they serve.

A release changes one label and the owner of a pod. Everything that could make this harmful is
checked here, anew for each plan: an owner may change a strategy or add a Service at any time.
"""

from __future__ import annotations

from collections.abc import Iterator

from plimsoll.domain.floors import resolve
from plimsoll.domain.names import HOSTNAME, POD_TEMPLATE_HASH
from plimsoll.domain.observation import Observation
from plimsoll.domain.pods import OwnerKind, Pod, Selector
from plimsoll.domain.selectors import matches
from plimsoll.domain.workloads import Workload


def why_not_released(seen: Observation, workload: Workload | None, pod: Pod) -> str | None:
    """Return why a pod must not be released, or None where it may be."""
    return next(_hindrances(seen, workload, pod), None)


def _hindrances(seen: Observation, workload: Workload | None, pod: Pod) -> Iterator[str]:
    if workload is None or workload.ref.kind != OwnerKind.DEPLOYMENT:
        yield f"{'its controller' if workload is None else workload.ref.kind} is no Deployment"
        return
    if workload.strategy != "RollingUpdate":
        yield f"its strategy {workload.strategy} forbids two generations at once"
    if resolve(workload.max_surge, workload.replicas, round_up=True) < 1:
        yield "its rollouts make no pod before they take one (maxSurge 0)"
    if workload.replica_failure is not None:
        yield f"its ReplicaSet cannot make pods: {workload.replica_failure}"
    if _names_the_hash(workload.selector):
        yield "the selector of its Deployment names the pod-template-hash"
    replica_set = None if pod.owner is None else seen.replica_sets.get(pod.owner)
    if replica_set is None or replica_set.controller != workload.ref:
        yield "it belongs to no ReplicaSet of its Deployment"
    elif replica_set.controller_uid != workload.uid:
        yield f"its ReplicaSet belongs to an earlier {workload.ref}"
    elif pod.labels.get(POD_TEMPLATE_HASH) != replica_set.hash or not replica_set.hash:
        yield "it does not carry the pod-template-hash of its ReplicaSet"
    yield from _selected_by_hash(seen, pod)
    yield from _bound_to_one_node(seen, pod)
    yield from _kept_apart(pod)
    if not all(
        pod.scheduling.requests.within(quota.left)
        for quota in seen.quotas
        if quota.ref.namespace == pod.namespace
    ):
        yield "a ResourceQuota of its namespace leaves no headroom for another pod"


def _names_the_hash(selector: Selector) -> bool:
    keys = {*selector.labels, *(r.key for r in selector.requirements)}
    return POD_TEMPLATE_HASH in keys


def _selected_by_hash(seen: Observation, pod: Pod) -> Iterator[str]:
    """Yield what would lose the pod with the label, and what already covers it twice."""
    without = {key: value for key, value in pod.labels.items() if key != POD_TEMPLATE_HASH}
    budgets = [b for b in seen.budgets if b.ref.namespace == pod.namespace]
    selections = [(s.ref, s.selector) for s in seen.label_selections]
    selections += [(b.ref, b.selector) for b in budgets]
    for ref, selector in selections:
        if ref.namespace != pod.namespace:
            continue
        if matches(selector, pod.labels) != matches(selector, without):
            yield f"{ref} selects it by its pod-template-hash"
    covering = [b.ref.name for b in budgets if matches(b.selector, pod.labels)]
    if len(covering) > 1:
        yield f"the eviction API refuses pods that several budgets cover: {', '.join(covering)}"


def _bound_to_one_node(seen: Observation, pod: Pod) -> Iterator[str]:
    for name in pod.scheduling.claims:
        claim = seen.claims.get((pod.namespace, name))
        if claim is None or claim.single_node:
            yield f"its volume {name} can be on one node only"


def _kept_apart(pod: Pod) -> Iterator[str]:
    """Yield anti-affinity that would keep the replacement out while the released pod stands.

    Anti-affinity by hostname is no hindrance: a node without such a pod will do.
    """
    without = {key: value for key, value in pod.labels.items() if key != POD_TEMPLATE_HASH}
    for term in pod.scheduling.anti_affinity:
        if term.topology_key != HOSTNAME and matches(term.selector, without):
            yield f"its anti-affinity by {term.topology_key} keeps its replacement out of there"
