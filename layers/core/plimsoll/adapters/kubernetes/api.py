"""One Kubernetes cluster, over plain JSON: what services read of it, and every write to it.

All writes are merge patches, and each is one request: a reconcile that dies leaves nothing half-done.
Under a resourceVersion a list is written back whole (taints are an atomic list), so a change that
somebody made in between is a `Conflict`, never lost.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import Any, Final

from plimsoll.adapters.kubernetes import calls, lease
from plimsoll.adapters.kubernetes.objects import parse_node, parse_pod
from plimsoll.adapters.kubernetes.reading import Reader
from plimsoll.adapters.kubernetes.requests import Json, Requests
from plimsoll.adapters.kubernetes.transport import Transport
from plimsoll.domain.errors import MissingRights, NotFound
from plimsoll.domain.interruptions import Interruption, to_record
from plimsoll.domain.kubernetes import (
    EXCLUDED,
    EXCLUDED_BY_US,
    FLOORS,
    GUARD,
    INTERRUPTION,
    MOVED,
    NAMESPACE,
    POD_TEMPLATE_HASH,
    RELEASED,
    REVISION_HASH,
    ZONAL_SHIFT,
    Budget,
    ClusterEvent,
    Namespace,
    Node,
    OwnerKind,
    Pod,
    Ref,
    ReplicaSet,
    Scheduling,
    Selector,
    Taint,
    Workload,
    protection,
)
from plimsoll.domain.observation import Observation
from plimsoll.services.ports import Clock, Workers

OUT_OF_SERVICE: Final = Taint(
    key="node.kubernetes.io/out-of-service", value="nodeshutdown", effect="NoExecute"
)
"""https://kubernetes.io/docs/concepts/cluster-administration/node-shutdown/#non-graceful-node-shutdown"""

_API_VERSIONS: Final[Mapping[str, str]] = {
    OwnerKind.DEPLOYMENT: "apps/v1",
    OwnerKind.STATEFUL_SET: "apps/v1",
    OwnerKind.REPLICA_SET: "apps/v1",
    OwnerKind.ROLLOUT: "argoproj.io/v1alpha1",
    OwnerKind.JOB: "batch/v1",
}
_OWNERS_KEPT: Final = "cannot set an ownerRef on a resource you can't delete"


class KubernetesCluster:
    """Implements `plimsoll.services.ports.ClusterApi`."""

    def __init__(  # noqa: PLR0913 - what a cluster is reached and read with
        self,
        transport: Transport,
        name: str,
        clock: Clock,
        *,
        workers: Workers,
        warn: Callable[[str], None] = lambda _: None,
        follow: bool = False,
    ) -> None:
        """Make nothing yet; the first call connects.

        Args:
            transport: Carries the requests.
            name: The cluster's name, for messages.
            clock: Tells when a Lease ends.
            workers: Reads lists side by side.
            warn: Told of every object that cannot be read and is left out.
            follow: Observations after the first come from watches, until `close`.
        """
        self._requests = Requests(transport=transport, cluster=name)
        self._reader = Reader(self._requests, workers, warn, follow=clock if follow else None)
        self._clock = clock
        self._anew = partial(type(self), transport, name, clock, workers=workers, warn=warn)

    @property
    def requests(self) -> Requests:
        """What makes other calls to the cluster."""
        return self._requests

    def node(self, name: str) -> Node | None:
        """Return the Node of a name; None where there is none."""
        try:
            return parse_node(self._requests.send(calls.GET_NODE, name=name))
        except NotFound:
            return None

    def nodes(self) -> Sequence[Node]:
        """Return all Nodes."""
        return self._reader.nodes()

    def unbound_pods(self) -> Sequence[Pod]:
        """Return the pods without a node."""
        return self._reader.unbound_pods()

    def observe(self) -> Observation:
        """Read everything that a plan needs, but for node groups."""
        return self._reader.observe()

    @contextmanager
    def following(self) -> Iterator[KubernetesCluster]:
        """Give the same cluster, whose observations after the first come from watches."""
        followed = self._anew(follow=True)
        try:
            yield followed
        finally:
            followed.close()

    def close(self) -> None:
        """End all watches."""
        self._reader.close()

    def namespaces(self) -> Sequence[Namespace]:
        """Return all Namespaces."""
        return self._reader.namespaces()

    def guard(self, workload: Workload, name: str) -> None:
        """Create the budget of a workload, which is deleted with it."""
        self._requests.send(
            calls.CREATE_BUDGET,
            namespace=workload.ref.namespace,
            name=name,
            body=_budget_object(workload, name),
        )

    def unguard(self, budget: Budget) -> None:
        """Delete a budget of ours, under its UID."""
        self._requests.send(
            calls.DELETE_BUDGET,
            namespace=budget.ref.namespace,
            name=budget.ref.name,
            body={
                "apiVersion": "v1",
                "kind": "DeleteOptions",
                "preconditions": {"uid": budget.uid},
            },
        )

    def injected_floors(self) -> Mapping[str, Mapping[str, str]]:
        """Return what the admission policy is told, by namespace; only those that opted in."""
        return self._reader.injected_floors()

    def inject_floors(self, namespace: str, entries: Mapping[str, str | None]) -> None:
        """Change what the admission policy gives the new pods of workloads; None gives nothing."""
        self._requests.send(
            calls.PATCH_FLOORS, namespace=namespace, name=FLOORS, body={"data": entries}
        )

    def try_pod(self, owner: Ref | None) -> Scheduling:
        """Create a pod of an owner in a dry run, and return what became of its scheduling."""
        created = self._requests.send(
            calls.TRY_POD, namespace=NAMESPACE, body=_canary(owner), dry_run=True
        )
        return parse_pod(created).scheduling

    def remove_injection(self) -> None:
        """Delete the binding of the admission policy: pods are created as without it from then on."""
        self._requests.send(calls.REMOVE_INJECTION, name=FLOORS)

    def acquire(self, holder: str, seconds: float) -> bool:
        """Take or renew the cluster's Lease; False while somebody else's is live."""
        return lease.acquire(self._requests, holder, seconds, self._clock.now())

    def release_lease(self, holder: str) -> None:
        """Give the Lease back, if it is ours."""
        lease.release(self._requests, holder)

    def cordon(self, node: Node, interruption: Interruption) -> None:
        """Cordon, taint and record in one patch, under the node's resourceVersion."""
        # All three in one patch: a cordoned node without a record would look as if somebody else had cordoned it.
        taint = Taint(key=INTERRUPTION, value=interruption.taint)
        self._patch_node(
            node,
            annotations={INTERRUPTION: to_record(interruption)},
            spec={
                "unschedulable": True,
                "taints": written_taints(node, without={INTERRUPTION}, add=taint),
            },
        )

    def record(self, node: Node, interruption: Interruption) -> None:
        """Replace the record only, under the node's resourceVersion."""
        self._patch_node(node, annotations={INTERRUPTION: to_record(interruption)})

    def uncordon(self, node: Node) -> None:
        """Take taint and record off again, and the cordon unless it stood before ours.

        Load balancers may send requests to it again. What frees the volumes of an instance that is off goes too: this one runs again.
        """
        record = node.interruption
        # The out-of-service taint is ours only if our record says that
        # the instance was gone; otherwise an owner may have set it.
        ours = {INTERRUPTION} | ({OUT_OF_SERVICE.key} if record and record.gone else set())
        if any(taint.key == INTERRUPTION for taint in node.taints):
            before = record is not None and record.unschedulable_before
        else:
            before = node.unschedulable  # we never cordoned it
        excluded = node.labels.get(EXCLUDED) == EXCLUDED_BY_US
        self._patch_node(
            node,
            annotations={INTERRUPTION: None},
            labels={EXCLUDED: None} if excluded else None,
            # In a merge patch null deletes a field. https://www.rfc-editor.org/rfc/rfc7386
            spec={"unschedulable": before or None, "taints": written_taints(node, without=ours)},
        )

    def mark_unschedulable(self, node: Node, *, unschedulable: bool) -> None:
        """Set or take off the cordon alone, under the node's resourceVersion."""
        self._patch_node(node, spec={"unschedulable": unschedulable or None})

    def out_of_service(self, node: Node) -> None:
        """Add the taint `node.kubernetes.io/out-of-service` so that volumes detach at once."""
        taints = written_taints(node, without={OUT_OF_SERVICE.key}, add=OUT_OF_SERVICE)
        self._patch_node(node, spec={"taints": taints})

    def taint(self, node: Node, *, tainted: bool) -> None:
        """Set or take off the taint of a zonal shift, under the node's resourceVersion."""
        taint = Taint(key=ZONAL_SHIFT, effect="PreferNoSchedule") if tainted else None
        taints = written_taints(node, without={ZONAL_SHIFT}, add=taint)
        self._patch_node(node, spec={"taints": taints})

    def label(self, node: Node, labels: Mapping[str, str | None]) -> None:
        """Change labels of a node, under its resourceVersion; None takes one off."""
        self._patch_node(node, labels=labels)

    def annotate_pod(self, pod: Pod, key: str, value: str | None) -> None:
        """Set an annotation of a pod, under its UID and resourceVersion; None takes it off."""
        self._patch_pod(pod, annotations={key: value})

    def do_not_disrupt(self, pod: Pod, duration: str | None) -> None:
        """Have Karpenter leave a pod to us up to an age; None takes off what we set."""
        self._patch_pod(pod, annotations=protection(pod, duration))

    def release(
        self,
        pod: Pod,
        replica_set: ReplicaSet,
        interruption: str,
        moved: str | None = None,
        do_not_disrupt: str | None = None,
    ) -> None:
        """Take off the label by which its ReplicaSet counts a pod, and make the Deployment its controller.

        The ReplicaSet stays an owner: garbage collection deletes a pod only when all its owners are gone, so a
        wrong UID of the Deployment costs the pod nothing.
        https://kubernetes.io/docs/concepts/architecture/garbage-collection/#owners-dependents
        """
        marks: dict[str, str | None] = {RELEASED: interruption}
        if moved is not None:
            marks[MOVED] = moved
        if do_not_disrupt is not None:
            marks.update(protection(pod, do_not_disrupt))
        # Both in one list: the API server refuses a second controlling owner.
        above = _owner(replica_set.controller, replica_set.controller_uid, controls=True)
        below = _owner(replica_set.ref, replica_set.uid, controls=False)
        owners = None if replica_set.controller.kind == OwnerKind.ROLLOUT else [above, below]
        self._hand_over(pod, {replica_set.label: None}, marks, owners)

    def undo_release(self, pod: Pod, replica_set: ReplicaSet) -> None:
        """Put the label back, and the ReplicaSet as the one owner where the Deployment controls the pod."""
        back = _owner(replica_set.ref, replica_set.uid, controls=True)
        owners = [back] if replica_set.controller == pod.owner else None
        marks = {RELEASED: None, **protection(pod, None)}
        self._hand_over(pod, {replica_set.label: replica_set.hash}, marks, owners)

    def _hand_over(
        self,
        pod: Pod,
        labels: Mapping[str, str | None],
        annotations: Mapping[str, str | None],
        owners: Sequence[Json] | None,
    ) -> None:
        """Change labels, owners and annotations of a pod together.

        A ReplicaSet takes its own reference off a pod that lost the label and that it controls, and adopts one
        that has the label and no controller. So the label does alone, for a Rollout, and where the admission plugin
        OwnerReferencesPermissionEnforcement lets only those change owners who may delete the pod.
        """
        patch = partial(self._patch_pod, pod, labels=labels, annotations=annotations)
        if owners is not None:
            try:
                patch(ownerReferences=owners)
            except MissingRights as error:
                if _OWNERS_KEPT not in str(error):
                    raise
            else:
                return
        patch()

    def _patch_pod(self, pod: Pod, **metadata: object) -> None:
        """Patch a pod under its UID and resourceVersion; merge patches replace owners as a whole."""
        # Both are preconditions of the patch: the API server refuses it for
        # another pod of that name, and for a newer version of this pod.
        precondition = {"uid": pod.uid, "resourceVersion": pod.resource_version}
        answer = self._requests.send(
            calls.PATCH_POD,
            namespace=pod.namespace,
            name=pod.name,
            body={"metadata": precondition | metadata},
        )
        self._reader.wrote_pod(answer)

    def evict(self, pod: Pod, grace_seconds: int | None = None) -> None:
        """Evict a pod, under its UID; None keeps its own grace period."""
        self._requests.send(
            calls.EVICT,
            namespace=pod.namespace,
            name=pod.name,
            body={
                "apiVersion": "policy/v1",
                "kind": "Eviction",
                "metadata": {"name": pod.name, "namespace": pod.namespace},
                "deleteOptions": _options(pod, grace_seconds),
            },
        )
        self._reader.told_to_go(pod, grace_seconds)

    def delete(self, pod: Pod, grace_seconds: int | None = None) -> None:
        """Delete a pod past its budget, under its UID."""
        self._requests.send(
            calls.DELETE_POD,
            namespace=pod.namespace,
            name=pod.name,
            body={"apiVersion": "v1", "kind": "DeleteOptions", **_options(pod, grace_seconds)},
        )
        self._reader.told_to_go(pod, grace_seconds)

    def create_event(self, event: ClusterEvent) -> None:
        """Create an Event of Kubernetes; `Conflict` where it was created before."""
        create_event(self._requests, event, self._clock.now())

    def _patch_node(
        self,
        node: Node,
        *,
        annotations: Mapping[str, str | None] | None = None,
        labels: Mapping[str, str | None] | None = None,
        spec: Json | None = None,
    ) -> None:
        # The version that the plan was made for: a newer one may differ in a field that the plan went by.
        body: dict[str, Any] = {"metadata": {"resourceVersion": node.resource_version}}
        if annotations is not None:
            body["metadata"]["annotations"] = annotations
        if labels is not None:
            body["metadata"]["labels"] = labels
        if spec is not None:
            body["spec"] = spec
        self._reader.wrote_node(self._requests.send(calls.PATCH_NODE, name=node.name, body=body))


def create_event(
    requests: Requests,
    event: ClusterEvent,
    now: datetime,
    versions: Mapping[str, str] = _API_VERSIONS,
) -> None:
    """Create an Event of Kubernetes; `Conflict` where it was created before.

    Args:
        requests: Makes the call.
        event: What is told.
        now: The present.
        versions: Kind of what it is about -> apiVersion, where that is not v1.
    """
    about, time = event.about, f"{now:%Y-%m-%dT%H:%M:%SZ}"
    # Events about cluster-scoped objects belong in `default`: `kubectl describe node` looks for them there.
    namespace = about.namespace or "default"
    involved = {"kind": about.kind, "name": about.name, "uid": event.uid}
    if about.namespace:
        involved["namespace"] = about.namespace
    requests.send(
        calls.CREATE_EVENT,
        namespace=namespace,
        name=event.name,
        body={
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": event.name, "namespace": namespace},
            "involvedObject": {"apiVersion": versions.get(about.kind, "v1"), **involved},
            "type": "Warning" if event.warning else "Normal",
            "reason": event.reason,
            "message": event.message,
            "source": {"component": "plimsoll"},
            "firstTimestamp": time,
            "lastTimestamp": time,
            "count": 1,
        },
    )


def _owner(ref: Ref, uid: str, *, controls: bool) -> Json:
    named = {"apiVersion": "apps/v1", "kind": ref.kind, "name": ref.name, "uid": uid}
    return {**named, "controller": controls, "blockOwnerDeletion": False}


def _canary(owner: Ref | None) -> Json:
    """Return a pod as its controller would create it. It is never stored."""
    metadata: dict[str, Any] = {
        "name": "plimsoll-canary",
        "labels": dict.fromkeys((POD_TEMPLATE_HASH, REVISION_HASH), "canary"),
    }
    if owner is not None:
        # A Deployment's pods belong to a ReplicaSet of another name, and the policy sees only that name.
        stateful = owner.kind == OwnerKind.STATEFUL_SET
        made = {
            "apiVersion": "apps/v1",
            "kind": owner.kind if stateful else OwnerKind.REPLICA_SET,
            "name": owner.name if stateful else f"{owner.name}-canary",
            "uid": "00000000-0000-0000-0000-000000000000",
            "controller": True,
        }
        metadata["ownerReferences"] = [made]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [{"name": "canary", "image": "canary"}]},
    }


def written_taints(
    node: Node, *, without: Collection[str], add: Taint | None = None
) -> list[dict[str, str]]:
    """Return the whole list of a node's taints, changed.

    When a NoExecute taint was added (`timeAdded`) is not written back: evictions by taint count
    from when their controller first saw it.
    """
    kept = [taint for taint in node.taints if taint.key not in without]
    return [
        {"key": t.key, "effect": t.effect} | ({"value": t.value} if t.value else {})
        for t in (*kept, *([add] if add else []))
    ]


def _budget_object(workload: Workload, name: str) -> dict[str, Any]:
    """Return the PodDisruptionBudget that guards a workload: whoever deletes the workload deletes it too."""
    ref = workload.ref
    owner = {
        "apiVersion": _API_VERSIONS[ref.kind],
        "kind": ref.kind,
        "name": ref.name,
        "uid": workload.uid,
    }
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {
            "name": name,
            "namespace": ref.namespace,
            "labels": {GUARD: "true"},
            "ownerReferences": [owner],
        },
        "spec": {"maxUnavailable": 0, "selector": _as_sent(workload.selector)},
    }


def _as_sent(selector: Selector) -> dict[str, Any]:
    expressions = [
        {"key": r.key, "operator": r.operator, **({"values": list(r.values)} if r.values else {})}
        for r in selector.requirements
    ]
    return {
        **({"matchLabels": dict(selector.labels)} if selector.labels else {}),
        **({"matchExpressions": expressions} if expressions else {}),
    }


def _options(pod: Pod, grace_seconds: int | None) -> dict[str, Any]:
    options: dict[str, Any] = {"preconditions": {"uid": pod.uid}}
    if grace_seconds is not None:
        options["gracePeriodSeconds"] = grace_seconds
    return options
