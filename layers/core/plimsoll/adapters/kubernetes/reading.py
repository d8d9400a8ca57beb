"""Reads what a plan needs: thirteen lists side by side, page by page, each version of an object once.

A reconcile looks at the cluster every second or so and most objects have not changed; what was parsed
under the same UID and resourceVersion is used again.

Tenants write these objects. What cannot be read is left out, named and counted: one odd object must
not stop the drain of a cluster.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final, cast

from msgspec import Raw

from plimsoll.adapters.kubernetes import calls, objects
from plimsoll.adapters.kubernetes.calls import Call
from plimsoll.adapters.kubernetes.decoding import version_of
from plimsoll.adapters.kubernetes.requests import Json, Requests, again_if_expired
from plimsoll.domain.errors import BadInput, MissingRights, NotFound
from plimsoll.domain.names import FLOORS
from plimsoll.domain.nodes import Node, refuse_twins
from plimsoll.domain.observation import Observation
from plimsoll.domain.pods import OwnerKind, Pod
from plimsoll.domain.workloads import ReplicaSet, Workload
from plimsoll.services.ports import Workers

UNBOUND: Final = "spec.nodeName="
UNFINISHED: Final = "status.phase!=Succeeded,status.phase!=Failed"


class Parsed[T]:
    """The objects of one kind; what the last list had is not parsed again."""

    def __init__(
        self, call: Call, parse: Callable[[Json | Raw], T], *, fields: str | None = None
    ) -> None:
        """Begin with none.

        Args:
            call: Lists them.
            parse: Reads one; raises BadInput, and nothing else, where that cannot be done.
            fields: The field selector of the list.
        """
        self._call = call
        self._fields = fields
        self._parse = parse
        self._known: Mapping[Hashable, T | BadInput] = {}

    def list(self, requests: Requests, warn: Callable[[str], None]) -> Sequence[T]:
        """Read a whole list, and forget what is no longer in it.

        Raises:
            PlimsollError: see `plimsoll.adapters.kubernetes.errors`.
        """
        known = self._known

        def read() -> Mapping[Hashable, T | BadInput]:
            now: dict[Hashable, T | BadInput] = {}
            for page in requests.pages(self._call, fields=self._fields):
                for obj in page:
                    version = version_of(obj) or object()
                    now[version] = known[version] if version in known else self._read(obj, warn)
            return now

        self._known = again_if_expired(read)
        return [parsed for parsed in self._known.values() if not isinstance(parsed, BadInput)]

    def forget(self) -> Sequence[T]:
        """Know none, and return none."""
        self._known = {}
        return ()

    @property
    def left_out(self) -> Sequence[str]:
        """Why objects of the last list were left out."""
        return [str(parsed) for parsed in self._known.values() if isinstance(parsed, BadInput)]

    def _read(self, obj: Json | Raw, warn: Callable[[str], None]) -> T | BadInput:
        try:
            return self._parse(obj)
        except BadInput as error:
            warn(f"left out: {error}")
            return error


class Reader:
    """Reads one cluster. Keeps what it parsed between reads."""

    def __init__(self, requests: Requests, workers: Workers, warn: Callable[[str], None]) -> None:
        self._requests = requests
        self._workers = workers
        self._warn = warn
        self._nodes = Parsed(calls.LIST_NODES, objects.parse_node)
        self._pods = Parsed(calls.LIST_PODS, objects.parse_pod, fields=UNFINISHED)
        self._deployments = Parsed(calls.LIST_DEPLOYMENTS, objects.parse_deployment)
        self._replica_sets = Parsed(calls.LIST_REPLICA_SETS, objects.parse_any_replica_set)
        self._stateful_sets = Parsed(calls.LIST_STATEFUL_SETS, objects.parse_stateful_set)
        self._budgets = Parsed(calls.LIST_BUDGETS, objects.parse_budget)
        self._claims = Parsed(calls.LIST_CLAIMS, objects.parse_claim)
        self._volumes = Parsed(calls.LIST_VOLUMES, objects.parse_volume)
        self._scalers = Parsed(calls.LIST_SCALERS, objects.parse_scaler)
        self._attachments = Parsed(calls.LIST_ATTACHMENTS, objects.parse_attachment)
        self._services = Parsed(calls.LIST_SERVICES, objects.parse_service)
        self._network_policies = Parsed(calls.LIST_NETWORK_POLICIES, objects.parse_network_policy)
        self._quotas = Parsed(calls.LIST_QUOTAS, objects.parse_quota)
        self._always = [kind for kind in vars(self).values() if isinstance(kind, Parsed)]
        self._unbound = Parsed(calls.LIST_PODS, objects.parse_pod, fields=f"{UNBOUND},{UNFINISHED}")
        self._rollouts = Parsed(calls.LIST_ROLLOUTS, objects.parse_rollout)
        self._namespaces = Parsed(calls.LIST_NAMESPACES, objects.parse_namespace)
        self._floors = Parsed(
            calls.LIST_FLOORS, objects.parse_floors, fields=f"metadata.name={FLOORS}"
        )

    def nodes(self) -> Sequence[Node]:
        """Return all Nodes."""
        return refuse_twins(self._listed(self._nodes))

    def unbound_pods(self) -> Sequence[Pod]:
        """Return the pods without a node: few, in a cluster of many."""
        return self._listed(self._unbound)

    def namespace_floors(self) -> Mapping[str, str]:
        """Return what namespaces say of on-demand floors, by name."""
        return {n.name: n.floor for n in self._listed(self._namespaces) if n.floor is not None}

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
        lists = dict(zip(self._always, self._lists(), strict=True))

        def read[T](kind: Parsed[T]) -> Sequence[T]:
            return cast("Sequence[T]", lists[kind])

        pods = read(self._pods)
        sets = read(self._replica_sets)
        owned = {each.ref: each for each in sets if isinstance(each, ReplicaSet)}
        rolled = any(each.controller.kind == OwnerKind.ROLLOUT for each in owned.values())
        rollouts = self._listed_if_allowed(self._rollouts, wanted=rolled)
        scaler = dict(read(self._scalers))
        volumes = {volume.name: volume for volume in read(self._volumes)}
        attached: dict[str, set[str]] = defaultdict(set)
        for attachment in filter(None, read(self._attachments)):
            attached[attachment[0]].add(attachment[1])
        return Observation(
            cluster=self._requests.cluster,
            nodes=refuse_twins(read(self._nodes)),
            pods=pods,
            workloads=[
                replace(w, scaler=by[0], min_replicas=by[1], scaled=by[2])
                if (by := scaler.get(w.ref)) is not None
                else w
                for w in (
                    *read(self._deployments),
                    *(each for each in sets if isinstance(each, Workload)),
                    *read(self._stateful_sets),
                    *rollouts,
                )
            ],
            budgets=read(self._budgets),
            claims={
                (claim.namespace, claim.name): claim.on(volumes.get(claim.volume))
                for claim in read(self._claims)
            },
            replica_sets=owned,
            label_selections=[*read(self._services), *read(self._network_policies)],
            quotas=read(self._quotas),
            attached={node: frozenset(volumes) for node, volumes in attached.items()},
            left_out=[
                *(f"Pod {pod}: {pod.unread}" for pod in pods if pod.unread is not None),
                *(words for kind in (*self._always, self._rollouts) for words in kind.left_out),
            ],
        )

    def _listed[T](self, kind: Parsed[T]) -> Sequence[T]:
        return kind.list(self._requests, self._warn)

    def _listed_if_allowed[T](self, kind: Parsed[T], *, wanted: bool = True) -> Sequence[T]:
        """Return none where the kind is not installed, or its owner gives no right to it."""
        if wanted:
            with suppress(NotFound, MissingRights):
                return self._listed(kind)
        return kind.forget()

    def _lists(self) -> Sequence[Sequence[object]]:
        found: list[Sequence[object]] = []
        for result in self._workers.run([partial(self._listed, kind) for kind in self._always]):
            if isinstance(result, Exception):
                raise result
            found.append(result)
        return found
