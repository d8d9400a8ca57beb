"""Which pods may be released: let go of by their ReplicaSet while they serve.

A release changes one label and the owner of a pod. Everything that could make this harmful is
checked here, anew for each plan: an owner may change a strategy or add a Service at any time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from itertools import chain

from plimsoll.domain.disruptions.opt_outs import (
    has_returned,
    marks_of,
    must_leave,
    why_opted_out,
)
from plimsoll.domain.disruptions.tolerant_pods import may_return
from plimsoll.domain.disruptions.workload_disruption import EvictablePod
from plimsoll.domain.interruptions import Response
from plimsoll.domain.kubernetes import (
    HASHES,
    HOSTNAME,
    NEVER_RELEASED,
    RELEASE,
    Node,
    OwnerKind,
    Pod,
    Ref,
    ReplicaSet,
    Resources,
    Workload,
    matches,
    resolve_count,
    why_protected,
)
from plimsoll.domain.observation import Observation, is_gone

type Claimed = Mapping[Ref, Resources]
"""By ResourceQuota."""


def why_not_released(
    seen: Observation, workload: Workload | None, pod: Pod, claimed: Claimed
) -> str | None:
    """Return why a pod must not be released, or None where it may be.

    Args:
        seen: the observation.
        workload: whose pod it is; None where nobody knows.
        pod: one that its ReplicaSet counts.
        claimed: what the replacements of others take of quotas.
    """
    return next(
        chain(
            _forbidden(workload, pod, seen.replica_set(pod), seen),
            () if workload is None else _hindrances(workload, pod, seen, claimed),
        ),
        None,
    )


def why_never_released(seen: Observation, workload: Workload, pod: Pod) -> str | None:
    """Return why a pod could not be released whatever there is room for, or None where it could.

    What passes is left out: a quota that is full, a ReplicaSet that cannot make pods just now.
    """
    return next(
        chain(
            _forbidden(workload, pod, seen.replica_set(pod), seen),
            (f"its volume {name} can be on one node only" for name in one_node_claims(seen, pod)),
            _kept_apart(pod),
        ),
        None,
    )


def why_undone(seen: Observation, workload: Workload | None, pod: Pod) -> str | None:
    """Return why a released pod must not stay released, or None where it may.

    One whose ReplicaSet is gone has nothing to go back to: it stays until it is replaced.
    """
    made = seen.replica_set(pod)
    if made is None or workload is None:
        return None
    counted = replace(pod, labels={**pod.labels, made.label: made.hash})
    return next(_forbidden(workload, counted, made, seen), None)


def _forbidden(
    workload: Workload | None, pod: Pod, replica_set: ReplicaSet | None, seen: Observation
) -> Iterator[str]:
    """Yield why a pod may not stand as released beside a replacement, now or later."""
    if (why := why_opted_out(seen, pod)) is not None:
        yield why
    if workload is None or workload.ref.kind not in {OwnerKind.DEPLOYMENT, OwnerKind.ROLLOUT}:
        yield f"{'its controller' if workload is None else workload.ref.kind} is no Deployment"
        return
    if pod.group is not None:
        yield f"kube-scheduler places it with its {pod.group.ref}"
    if workload.unresolved is not None:
        yield workload.unresolved
    if workload.strategy != "RollingUpdate":
        yield f"its strategy {workload.strategy} forbids two generations at once"
    if resolve_count(workload.max_surge, workload.replicas, round_up=True) < 1:
        yield "its rollouts make no pod before they take one (maxSurge 0)"
    named = {*workload.selector.labels, *(r.key for r in workload.selector.requirements)}
    yield from (f"the selector of its {workload.ref.kind} names the {k}" for k in named & {*HASHES})
    if replica_set is None or replica_set.controller != workload.ref:
        yield f"it belongs to no ReplicaSet of its {workload.ref.kind}"
    elif replica_set.controller_uid != workload.uid:
        yield f"its ReplicaSet belongs to an earlier {workload.ref}"
    elif pod.labels.get(replica_set.label) != replica_set.hash or not replica_set.hash:
        yield f"it does not carry the {replica_set.label} of its ReplicaSet"
    yield from _selected_by_hash(seen, workload, pod)


def _hindrances(workload: Workload, pod: Pod, seen: Observation, claimed: Claimed) -> Iterator[str]:
    """Yield why no replacement could be made beside a pod now."""
    if workload.replica_failure is not None:
        yield f"its ReplicaSet cannot make pods: {workload.why_unmade}"
    yield from (f"its volume {name} can be on one node only" for name in one_node_claims(seen, pod))
    yield from _kept_apart(pod)
    if not all(
        quota.leaves(claimed.get(quota.ref, Resources()) + _asked_anew(workload, pod))
        for quota in seen.quotas_of(pod)
    ):
        yield "a ResourceQuota of its namespace leaves no headroom for another pod"


def _asked_anew(workload: Workload, pod: Pod) -> Resources:
    """Return what a replacement may ask of a quota: a pod that was resized in place asked for less in its template, or more."""
    return pod.scheduling.requests.larger(workload.scheduling.requests)


def _without_hash(pod: Pod) -> dict[str, str]:
    return {key: value for key, value in pod.labels.items() if key not in HASHES}


def _selected_by_hash(seen: Observation, workload: Workload, pod: Pod) -> Iterator[str]:
    """Yield what would lose the pod with the label, and what already covers it twice."""
    if any(marks.get(RELEASE) == NEVER_RELEASED for marks in marks_of(seen, pod)):
        yield f"its owner forbade it with {RELEASE}"
    if workload.split_by is not None:
        yield f"{workload.split_by} select it by its hash"
    without = _without_hash(pod)
    for one in seen.selecting_by_hash.get(pod.namespace, ()):
        if matches(one.selector, pod.labels) != matches(one.selector, without):
            yield f"{one.ref} selects it by its {' or '.join(pod.labels.keys() & {*HASHES})}"
    budgets = seen.budgets_in.get(pod.namespace, ())
    covering = [b.ref.name for b in budgets if matches(b.selector, pod.labels)]
    if len(covering) > 1:
        yield f"the eviction API refuses pods that several budgets cover: {', '.join(covering)}"


def one_node_claims(seen: Observation, pod: Pod) -> Iterator[str]:
    """Yield the names of claims whose volumes only one node can have."""
    for name in pod.scheduling.claims:
        claim = seen.claims.get((pod.namespace, name))
        if claim is None or claim.single_node:
            yield name


def _kept_apart(pod: Pod) -> Iterator[str]:
    """Yield anti-affinity that would keep the replacement out while the released pod stands.

    Anti-affinity by hostname is no hindrance: a node without such a pod will do.
    """
    for term in pod.scheduling.anti_affinity:
        if term.topology_key != HOSTNAME and matches(term.selector, _without_hash(pod)):
            yield f"its anti-affinity by {term.topology_key} keeps its replacement out of there"


def held_on(seen: Observation, node: Node, now: datetime, refused: Mapping[str, str]) -> list[Pod]:
    """Return the pods of an interrupted node that the policy leaves there for the time being.

    All where the response is to cordon; on advice those that cannot be released, that their owner protects, or that
    may return to the node.
    """
    found = node.interruption
    if found is None or is_gone(seen, node):
        return []
    only_cordoned = seen.policy.response(found) is Response.CORDON
    patient = found.on_advice(now) and not seen.policy.maintains(found, now)
    if not (only_cordoned or patient):
        return []
    return [
        pod
        for pod in seen.on_node.get(node.name, ())
        if must_leave(seen, pod, node)
        and pod.deleting is None
        and (
            only_cordoned
            or has_returned(pod, node)
            or not (
                pod.released
                or (
                    why_protected(pod, node, now) is None
                    and not may_return(pod)
                    and releasable(seen, pod, refused)
                )
            )
        )
    ]


def releasable(seen: Observation, pod: Pod, refused: Mapping[str, str]) -> bool:
    """Whether a pod that serves may be released now, as far as its own namespace and workload go."""
    ref = seen.workload_of(pod)
    why = refused.get(str(ref)) or why_not_released(seen, seen.workload.get(ref), pod, {})
    return pod.serving and why is None


def not_releasable(
    seen: Observation,
    workload: Workload | None,
    evictable: Iterable[EvictablePod],
    claimed: dict[Ref, Resources],
    refused: str | None,
) -> Iterator[tuple[str, str]]:
    """Yield the uids of pods that must not be released and why; the others claim their quota."""
    for pod in (one.pod for one in evictable if not one.pod.released):
        if (why := refused or why_not_released(seen, workload, pod, claimed)) is not None:
            yield pod.uid, why
        elif pod.serving and workload is not None:
            # Claimed at once: the next pod of any workload finds only what is left of the quota.
            for quota in seen.quotas_of(pod):
                claimed[quota.ref] += _asked_anew(workload, pod)
