"""Reads what a plan needs: thirteen lists side by side, and from the second time on watches.

A reconcile observes the cluster every second or so, and most objects have not changed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from plimsoll.adapters.kubernetes import calls, objects
from plimsoll.adapters.kubernetes.collection import Collection
from plimsoll.adapters.kubernetes.requests import Json, Requests
from plimsoll.adapters.kubernetes.watches import Watches, list_unwatched
from plimsoll.domain.errors import MissingRights, NotFound
from plimsoll.domain.kubernetes import (
    FLOORS,
    Claim,
    Namespace,
    Node,
    OwnerKind,
    Pod,
    ReplicaSet,
    StorageClass,
    Workload,
    in_groups,
    namespace_guards,
    refuse_twins,
    selects_namespaces,
    with_namespaces,
)
from plimsoll.domain.observation import Observation
from plimsoll.services.ports import Clock, Workers

UNBOUND: Final = "spec.nodeName="
UNFINISHED: Final = "status.phase!=Succeeded,status.phase!=Failed"


class Reader:
    """Reads one cluster. Keeps what it parsed between reads.

    Args:
        requests: Makes the calls.
        workers: Makes them side by side.
        warn: Told of what is left out, and of what cannot be watched.
        follow: The time, where observations after the first are to come from watches.
    """

    def __init__(
        self,
        requests: Requests,
        workers: Workers,
        warn: Callable[[str], None],
        follow: Clock | None = None,
    ) -> None:
        self._requests = requests
        self._workers = workers
        self._warn = warn
        self._clock = follow
        self._watches = None if follow is None else Watches(requests, workers, follow, warn)
        self._known_namespaces: Sequence[Namespace] | None = None
        self._known_classes: Mapping[str, StorageClass] | None = None
        self._leaving: dict[str, datetime] = {}
        """By UID: pods that we told to go, and when they are gone at the latest."""
        # The order of these lines matters: `_always` collects the
        # kinds above it. The kinds below are read separately.
        self._nodes = Collection(calls.LIST_NODES, objects.parse_node)
        self._pods = Collection(calls.LIST_PODS, objects.parse_pod, fields=UNFINISHED)
        self._deployments = Collection(calls.LIST_DEPLOYMENTS, objects.parse_deployment)
        self._replica_sets = Collection(calls.LIST_REPLICA_SETS, objects.parse_any_replica_set)
        self._stateful_sets = Collection(calls.LIST_STATEFUL_SETS, objects.parse_stateful_set)
        self._budgets = Collection(calls.LIST_BUDGETS, objects.parse_budget)
        self._claims = Collection(calls.LIST_CLAIMS, objects.parse_claim)
        self._volumes = Collection(calls.LIST_VOLUMES, objects.parse_volume)
        self._scalers = Collection(calls.LIST_SCALERS, objects.parse_scaler)
        self._attachments = Collection(calls.LIST_ATTACHMENTS, objects.parse_attachment)
        self._services = Collection(calls.LIST_SERVICES, objects.parse_service)
        self._network_policies = Collection(
            calls.LIST_NETWORK_POLICIES, objects.parse_network_policy
        )
        self._quotas = Collection(calls.LIST_QUOTAS, objects.parse_quota)
        self._always = [kind for kind in vars(self).values() if isinstance(kind, Collection)]
        self._unbound = Collection(
            calls.LIST_PODS, objects.parse_pod, fields=f"{UNBOUND},{UNFINISHED}"
        )
        self._rollouts = Collection(calls.LIST_ROLLOUTS, objects.parse_rollout)
        self._pod_groups = Collection(calls.LIST_POD_GROUPS, objects.parse_pod_group)
        self._limits = Collection(calls.LIST_CSI_NODES, objects.parse_volume_limits)
        self._followed = [*self._always, self._rollouts, self._pod_groups, self._limits]
        self._classes = Collection(calls.LIST_STORAGE_CLASSES, objects.parse_storage_class)
        self._namespaces = Collection(calls.LIST_NAMESPACES, objects.parse_namespace)
        self._floors = Collection(
            calls.LIST_FLOORS, objects.parse_floors, fields=f"metadata.name={FLOORS}"
        )

    def nodes(self) -> Sequence[Node]:
        """Return all Nodes."""
        return refuse_twins(self._listed(self._nodes))

    def unbound_pods(self) -> Sequence[Pod]:
        """Return the pods without a node: few, in a cluster of many."""
        return self._listed(self._unbound)

    def namespaces(self) -> Sequence[Namespace]:
        """Return all Namespaces."""
        return self._listed(self._namespaces)

    def injected_floors(self) -> Mapping[str, Mapping[str, str]]:
        """Return what the admission policy is told, by namespace; only those that opted in."""
        found = dict(self._listed_if_allowed(self._floors))
        if not found:
            return {}
        return {
            n.name: found[n.name]
            for n in self._listed(self._namespaces)
            if n.injects and n.name in found
        }

    def observe(self) -> Observation:
        """Read everything that a plan needs, but for node groups."""
        self._refresh()
        # The lists show different moments. The preconditions of each write check what the plan assumed.
        pods = self._with_namespaces(self._without_leaving(self._pods.objects))
        pods = self._with_groups(pods)
        sets = self._replica_sets.objects
        owned = {each.ref: each for each in sets if isinstance(each, ReplicaSet)}
        rolled = any(each.controller.kind == OwnerKind.ROLLOUT for each in owned.values())
        # After the ReplicaSets, which tell whether there is a Rollout: most clusters do not have the kind.
        if not self._rollouts.watched:
            self._listed_if_allowed(self._rollouts, wanted=rolled)
        deployments = {each.ref: each for each in self._deployments.objects}
        scaler = dict(self._scalers.objects)
        limits = {name: limit for name, limit in self._limits.objects if limit}
        attached: dict[str, set[str]] = defaultdict(set)
        for attachment in filter(None, self._attachments.objects):
            attached[attachment[0]].add(attachment[1])
        return Observation(
            cluster=self._requests.cluster,
            nodes=[
                replace(node, volume_limits=limits[node.name]) if node.name in limits else node
                for node in refuse_twins(self._nodes.objects)
            ],
            pods=pods,
            workloads=[
                replace(w, scaler=by[0], min_replicas=by[1], scaled=by[2])
                if (by := scaler.get(w.ref)) is not None
                else w
                for w in (
                    *deployments.values(),
                    *(each for each in sets if isinstance(each, Workload)),
                    *self._stateful_sets.objects,
                    *(each.resolved(deployments) for each in self._rollouts.objects),
                )
            ],
            budgets=self._budgets.objects,
            claims=_missing(pods) | self._with_places(self._claims.objects),
            replica_sets=owned,
            label_selections=[*self._services.objects, *self._network_policies.objects],
            quotas=self._quotas.objects,
            attached={node: frozenset(volumes) for node, volumes in attached.items()},
            guarding=namespace_guards(self._namespaces_once()),
            obeying=frozenset(n.name for n in self._namespaces_once() if n.obeys_budgets),
            ended=self._pods.ended(),
            left_out=[
                *(f"Pod {pod}: {pod.unread}" for pod in pods if pod.unread is not None),
                *(words for kind in (*self._followed, self._classes) for words in kind.left_out),
            ],
        )

    def wrote_node(self, answer: Json) -> None:
        """Take note of what a Node became by a write of ours."""
        if self._clock is not None:
            self._nodes.wrote(answer)

    def wrote_pod(self, answer: Json) -> None:
        """Take note of what a pod became by a write of ours."""
        if self._clock is not None:
            self._pods.wrote(answer)

    def told_to_go(self, pod: Pod, grace_seconds: int | None) -> None:
        """Take note that a pod is deleted: the answer to an eviction does not have its new version."""
        if self._clock is not None:
            grace = pod.grace_seconds if grace_seconds is None else grace_seconds
            self._leaving[pod.uid] = self._clock.now() + timedelta(seconds=grace)

    def close(self) -> None:
        """End all watches."""
        for kind in self._followed:
            kind.close()

    def _namespaces_once(self) -> Sequence[Namespace]:
        """Return all namespaces as they were at the first observation."""
        if self._known_namespaces is None:
            self._known_namespaces = self._listed_if_allowed(self._namespaces)
        return self._known_namespaces

    def _with_places(self, claims: Sequence[Claim]) -> dict[tuple[str, str], Claim]:
        """Return the claims by namespace and name, with what their volumes or classes require of a node."""
        volumes = {volume.name: volume for volume in self._volumes.objects}
        classes: Mapping[str, StorageClass] = {}
        if not all(claim.bound for claim in claims):
            classes = self._classes_once()
        return {
            (claim.namespace, claim.name): claim.of(classes.get(claim.storage_class))
            if classes and not claim.bound
            else claim.on(volumes.get(claim.volume))
            for claim in claims
        }

    def _classes_once(self) -> Mapping[str, StorageClass]:
        """Return all storage classes as they were when they were first needed; none without the right to them."""
        if self._known_classes is None:
            self._known_classes = {c.name: c for c in self._listed_if_allowed(self._classes)}
        return self._known_classes

    def _with_namespaces(self, pods: Sequence[Pod]) -> Sequence[Pod]:
        """Return the pods with the namespaces that selectors in their affinity name."""
        wide = {id(p.scheduling): p.scheduling for p in pods if selects_namespaces(p.scheduling)}
        labels = {n.name: n.labels for n in self._namespaces_once()} if wide else {}
        if not labels:
            return pods
        named = {key: with_namespaces(one, labels) for key, one in wide.items()}
        return [
            replace(pod, scheduling=named[key]) if (key := id(pod.scheduling)) in named else pod
            for pod in pods
        ]

    def _with_groups(self, pods: Sequence[Pod]) -> Sequence[Pod]:
        """Return the pods with what their PodGroups say; where these cannot be read, nobody knows it."""
        named = any(pod.group is not None for pod in pods)
        if not self._pod_groups.watched:
            self._listed_if_allowed(self._pod_groups, wanted=named)
        return in_groups(pods, self._pod_groups.objects) if named else pods

    def _listed[T](self, kind: Collection[T]) -> Sequence[T]:
        return kind.list(self._requests, self._warn)

    def _listed_if_allowed[T](self, kind: Collection[T], *, wanted: bool = True) -> Sequence[T]:
        """Return none where the kind is not installed, or its owner gives no right to it."""
        if wanted:
            with suppress(NotFound, MissingRights):
                return self._listed(kind)
        return kind.forget()

    def _read(self, kind: Collection[Any]) -> Sequence[Any]:
        """List a kind; older manifests do not grant the limits of volumes."""
        return self._listed_if_allowed(kind) if kind is self._limits else self._listed(kind)

    def _refresh(self) -> None:
        """Read all kinds: those that no watch keeps up to date are listed."""
        if self._watches is not None:
            self._watches.follow(self._followed)
        # After the watches: a kind whose watch was refused or has expired is listed now.
        kinds = (*self._always, self._limits)
        list_unwatched(kinds, self._workers, self._read)

    def _without_leaving(self, pods: Sequence[Pod]) -> Sequence[Pod]:
        """Return the pods, those that we told to go as such also where no event has said so yet."""
        if not self._leaving:
            return pods
        # Forgotten once an event says so, or the pod is gone.
        untold = {pod.uid for pod in pods if pod.deleting is None}
        self._leaving = {uid: when for uid, when in self._leaving.items() if uid in untold}
        return [
            replace(pod, deleting=self._leaving[pod.uid]) if pod.uid in self._leaving else pod
            for pod in pods
        ]


def _missing(pods: Iterable[Pod]) -> dict[tuple[str, str], Claim]:
    """Return the claims of pods that wait, as long as nobody has made them: with such a one a pod runs nowhere."""
    return {
        (pod.namespace, name): Claim(namespace=pod.namespace, name=name, node_terms=())
        for pod in pods
        if pod.node is None
        for name in pod.scheduling.claims
    }
