"""Reads what a plan needs: thirteen lists side by side, and objects parsed once for each version.

A reconcile looks at the cluster every second or so and most objects have not changed; what was parsed
under the same UID and resourceVersion is used again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from plimsoll.adapters.kubernetes import calls
from plimsoll.adapters.kubernetes.calls import Call
from plimsoll.adapters.kubernetes.requests import Json, Requests
from plimsoll.domain import objects
from plimsoll.domain.errors import Permanent
from plimsoll.domain.nodes import Node
from plimsoll.domain.observation import Observation
from plimsoll.domain.pods import Ref
from plimsoll.domain.workloads import Claim, Workload
from plimsoll.services.ports import Workers

UNFINISHED: Final = "status.phase!=Succeeded,status.phase!=Failed"

type Version = tuple[str, str]


def version_of(obj: Json) -> Version:
    """Return what changes with every change of an object: UID and resourceVersion."""
    return obj["metadata"].get("uid", ""), obj["metadata"].get("resourceVersion", "")


class Parsed[T]:
    """Parses objects of one kind; what the last list had is not parsed again.

    What cannot be read is left out and told: one odd object must not stop the drain of a cluster.
    """

    def __init__(self, parse: Callable[[Json], T], warn: Callable[[str], None]) -> None:
        self._parse = parse
        self._warn = warn
        self._known: Mapping[Version, T | None] = {}

    def all(self, objs: Sequence[Json]) -> list[T]:
        """Parse a whole list, and forget what is no longer in it."""
        known = self._known
        now: dict[Version, T | None] = {}
        for obj in objs:
            version = version_of(obj)
            now[version] = known[version] if version in known else self._read(obj)
        self._known = now
        return [parsed for parsed in now.values() if parsed is not None]

    def _read(self, obj: Json) -> T | None:
        try:
            return self._parse(obj)
        except Permanent as error:
            self._warn(f"left out: {error}")
            return None


class Reader:
    """Reads one cluster. Keeps what it parsed between reads."""

    def __init__(self, requests: Requests, workers: Workers, warn: Callable[[str], None]) -> None:
        self._requests = requests
        self._workers = workers
        self._nodes = Parsed(objects.parse_node, warn)
        self._pods = Parsed(objects.parse_pod, warn)
        self._deployments = Parsed(objects.parse_deployment, warn)
        self._replica_sets = Parsed(objects.parse_replica_set, warn)
        self._stateful_sets = Parsed(objects.parse_stateful_set, warn)
        self._owned_sets = Parsed(objects.parse_owned_replica_set, warn)
        self._budgets = Parsed(objects.parse_budget, warn)
        self._services = Parsed(objects.parse_service, warn)
        self._network_policies = Parsed(objects.parse_network_policy, warn)
        self._quotas = Parsed(objects.parse_quota, warn)

    def nodes(self) -> Sequence[Node]:
        """Return all Nodes."""
        return self._nodes.all(self._requests.list(calls.LIST_NODES))

    def observe(self) -> Observation:
        """Read everything that a plan needs, but for node groups."""
        (
            nodes,
            pods,
            deployments,
            replica_sets,
            stateful_sets,
            budgets,
            claims,
            volumes,
            scalers,
            attachments,
            services,
            network_policies,
            quotas,
        ) = self._lists(
            (calls.LIST_NODES, None),
            (calls.LIST_PODS, UNFINISHED),
            (calls.LIST_DEPLOYMENTS, None),
            (calls.LIST_REPLICA_SETS, None),
            (calls.LIST_STATEFUL_SETS, None),
            (calls.LIST_BUDGETS, None),
            (calls.LIST_CLAIMS, None),
            (calls.LIST_VOLUMES, None),
            (calls.LIST_SCALERS, None),
            (calls.LIST_ATTACHMENTS, None),
            (calls.LIST_SERVICES, None),
            (calls.LIST_NETWORK_POLICIES, None),
            (calls.LIST_QUOTAS, None),
        )
        owned = self._owned_sets.all([o for o in replica_sets if _owner(o) is not None])
        workloads = [
            *self._deployments.all(deployments),
            *self._replica_sets.all([o for o in replica_sets if _owner(o) is None]),
            *self._stateful_sets.all(stateful_sets),
        ]
        return Observation(
            cluster=self._requests.cluster,
            nodes=self._nodes.all(nodes),
            pods=self._pods.all(pods),
            workloads=_scaled(workloads, scalers),
            budgets=self._budgets.all(budgets),
            claims=_claims(claims, volumes),
            replica_sets={each.ref: each for each in owned if each is not None},
            label_selections=[
                *self._services.all(services),
                *self._network_policies.all(network_policies),
            ],
            quotas=self._quotas.all(quotas),
            attached=_attached(attachments),
        )

    def _lists(self, *wanted: tuple[Call, str | None]) -> Sequence[Sequence[Json]]:
        def task(call: Call, fields: str | None) -> Callable[[], Sequence[Json]]:
            return lambda: self._requests.list(call, fields=fields)

        found: list[Sequence[Json]] = []
        for result in self._workers.run([task(call, fields) for call, fields in wanted]):
            if isinstance(result, Exception):
                raise result
            found.append(result)
        return found


def _ref(kind: str, obj: Json) -> Ref:
    return Ref(kind, obj["metadata"]["namespace"], obj["metadata"]["name"])


def _owner(obj: Json) -> Mapping[str, Any] | None:
    owners = obj["metadata"].get("ownerReferences") or ()
    return next((owner for owner in owners if owner.get("controller")), None)


def _scaled(workloads: Sequence[Workload], scalers: Sequence[Json]) -> Sequence[Workload]:
    """Name the autoscaler of each workload that has one."""
    by_target: dict[Ref, str] = {}
    for obj in scalers:
        target = obj["spec"]["scaleTargetRef"]
        ref = Ref(target["kind"], obj["metadata"]["namespace"], target["name"])
        by_target[ref] = obj["metadata"]["name"]
    return [replace(w, scaler=by_target[w.ref]) if w.ref in by_target else w for w in workloads]


def _claims(claims: Sequence[Json], volumes: Sequence[Json]) -> Mapping[tuple[str, str], Claim]:
    by_name = {obj["metadata"]["name"]: obj for obj in volumes}
    parsed = (
        objects.parse_claim(obj, by_name.get(obj["spec"].get("volumeName", ""))) for obj in claims
    )
    return {(claim.namespace, claim.name): claim for claim in parsed}


def _attached(attachments: Sequence[Json]) -> Mapping[str, frozenset[str]]:
    """Return the volumes of each node that are attached, or may be: a detach may hang half-way."""
    found: dict[str, set[str]] = defaultdict(set)
    for obj in attachments:
        spec = obj["spec"]
        volume = (spec.get("source") or {}).get("persistentVolumeName")
        if volume and (obj.get("status") or {}).get("attached"):
            found[spec["nodeName"]].add(volume)
    return {node: frozenset(volumes) for node, volumes in found.items()}
