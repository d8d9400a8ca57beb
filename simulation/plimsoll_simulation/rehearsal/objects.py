"""The objects of a live cluster as manifests of a scenario, and on which node each pod stands.

A workload is played with the pods that are Ready now: a drill begins when everything is. Of pods
only what decides where they run and how they stop is kept, and no command, secret or environment.
What a tenant's object says is checked as a manifest is; one that is refused costs only itself.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from plimsoll.domain.disruptions import ASSUMED_SECONDS, Basis, StopTime, known_stops, stop_of
from plimsoll.domain.kubernetes import MOVED, PREFIX, RELEASED, OwnerKind, Pod, Ref, Workload
from plimsoll.domain.observation import leaves
from plimsoll_simulation.rehearsal.jobs import kept_of
from plimsoll_simulation.rehearsal.live import Json, LiveCluster
from plimsoll_simulation.rehearsal.pods import played_stop, pod_spec, startup_of
from plimsoll_simulation.rehearsal.volumes import volumes_of
from plimsoll_simulation.scenario.clusters import OWNER
from plimsoll_simulation.scenario.kinds import KINDS, MODELS
from plimsoll_simulation.scenario.problems import Problems
from plimsoll_simulation.scenario.validation import validate
from plimsoll_simulation.scenario.yamlfiles import Document

_PLURALS: Final[Mapping[str, str]] = {
    OwnerKind.DEPLOYMENT: "deployments",
    OwnerKind.STATEFUL_SET: "statefulsets",
    OwnerKind.REPLICA_SET: "replicasets",
    OwnerKind.ROLLOUT: "rollouts",
}
_SPEC: Final = (
    "selector",
    "strategy",
    "updateStrategy",
    "minReadySeconds",
    "podManagementPolicy",
    "serviceName",
    "ordinals",
)
"""What is kept of a workload beside its count, its template and its claims."""
_OF_ROLLOUTS: Final = ("selector", "minReadySeconds")
_LIMITS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "poddisruptionbudgets": (
        "PodDisruptionBudget",
        ("minAvailable", "maxUnavailable", "selector", "unhealthyPodEvictionPolicy"),
    ),
    "services": ("Service", ("selector", "type")),
    "horizontalpodautoscalers": (
        "HorizontalPodAutoscaler",
        ("scaleTargetRef", "minReplicas", "maxReplicas"),
    ),
}
"""What limits, finds and scales the pods: its kind, and what is kept of its spec."""
_OF_POD_GROUPS: Final = ("schedulingPolicy", "disruptionMode", "priority")
_FIRST: Final = frozenset({"Namespace", "PriorityClass", "PodGroup"})
"""What must be there before what names it."""
_OF_JOBS: Final = ("batch.kubernetes.io/", "controller-uid", "job-name")
"""Labels that the controller of Jobs sets."""
_SYSTEM: Final = "system-"
"""Priority classes that every cluster has."""
_STATE: Final = frozenset({MOVED, RELEASED})
"""What Plimsoll itself wrote in the course of something, which does not begin anew."""


class ModelledObjects:
    """Manifests, and what is said of how they came about.

    Args:
        live: the cluster.
        names: live node -> node of the scenario.
    """

    def __init__(self, live: LiveCluster, names: Mapping[str, str]) -> None:
        self.manifests: list[Json] = []
        self.bindings: dict[str, list[str]] = {}
        """As a scenario has them."""
        self.notes = [f"cannot be read: {words}" for words in live.seen.left_out]
        self.observed: dict[str, Json] = {}
        """As a scenario has them."""
        self.stops: dict[str, StopTime] = {}
        """Workload, as it is played -> how long its pods are known to need to stop."""
        self.operated = False
        """Whether a custom resource makes pods."""
        self._live = live
        self._names = names
        self._raw = {obj["metadata"]["uid"]: obj for obj in live.objects["pods"]}
        self._jobs = live.by_name("jobs")
        self._workloads = {kind: live.by_name(plural) for kind, plural in _PLURALS.items()}
        self._timed = self._untimed = 0
        self._played: dict[tuple[str, str, str], None] = {}
        self._pods: list[Pod] = []
        for manifest in volumes_of(live, names):
            self._add(manifest)
        standing = self._standing()
        for ref in sorted({*live.seen.workload, *standing}):
            if why := self._why_not(ref, standing.get(ref, ())):
                self.notes.append(f"the rehearsal leaves out {ref}: {why}")
            elif ref in standing:
                self._take(ref, live.seen.workload.get(ref), standing[ref])
        for manifest in (
            *self._spaces(),
            *self._priorities(),
            *self._pod_groups(),
            *self._limits(),
        ):
            self._add(manifest)
        self.manifests.sort(key=lambda manifest: manifest["kind"] not in _FIRST)
        self.notes += self._about()

    def _standing(self) -> Mapping[Ref, Sequence[Pod]]:
        """Return the pods that are played, by workload."""
        found: dict[Ref, list[Pod]] = defaultdict(list)
        for pod in self._live.seen.pods:
            if pod.serving and pod.node in self._names and leaves(pod):
                found[self._live.seen.workload_of(pod)].append(pod)
        return found

    def _why_not(self, ref: Ref, pods: Sequence[Pod]) -> str | None:
        workload = self._live.seen.workload.get(ref)
        if not pods:
            scaled = workload is not None and workload.replicas
            return "none of its pods is Ready" if scaled else None
        for claim in (claim for pod in pods for claim in pod.scheduling.claims):
            if ("PersistentVolumeClaim", ref.namespace, claim) not in self._played:
                return f"its claim {claim} is not bound, or cannot be played"
        return None

    def _take(self, ref: Ref, workload: Workload | None, pods: Sequence[Pod]) -> None:
        """Play a workload."""
        startup = startup_of(pods)
        if workload is not None:
            count = min(workload.replicas, len(pods))
            taken = self._add(self._workload(ref, count, pods[0], startup))
            if count < workload.replicas:
                self.notes.append(
                    f"the rehearsal plays {ref} with its {count} Ready pods of {workload.replicas}"
                )
        elif ref.kind == OwnerKind.JOB:
            count = len(pods)
            taken = self._add(self._job(ref, pods, startup))
        else:
            count = len(pods)
            taken = all(self._add(self._pod(pod, startup)) for pod in pods)
        if not taken:
            return
        self._pods += pods
        self._timed, self._untimed = (
            self._timed + (startup is not None),
            self._untimed + (startup is None),
        )
        kind = _played_as(ref.kind)
        self._note_times(ref, kind, pods)
        for pod in pods[:count]:
            by_name = kind not in {OwnerKind.DEPLOYMENT, OwnerKind.REPLICA_SET, OwnerKind.JOB}
            of = (
                f"Pod/{pod.namespace}/{pod.name}"
                if by_name
                else f"{kind}/{ref.namespace}/{ref.name}"
            )
            self.bindings.setdefault(of, []).append(self._names[pod.node or ""])

    def _note_times(self, ref: Ref, kind: str, pods: Sequence[Pod]) -> None:
        """Note what is remembered of a workload: Plimsoll plans with it in the drill too."""
        seen = self._live.seen
        self.stops |= {
            f"{kind} {ref.namespace}/{ref.name}": stop for stop in known_stops(seen, pods).values()
        }
        times, owner = seen.times.get(ref), f"{kind}/{ref.namespace}/{ref.name}"
        if times is not None and re.fullmatch(OWNER, owner):
            self.observed[owner] = {
                name: {"pods": told.pods, "p95": f"{told.p95_seconds:.0f}s"}
                for name, told in (("stop", times.stop), ("start", times.start))
                if told is not None
            }

    def _workload(self, ref: Ref, count: int, pod: Pod, startup: float | None) -> Json:
        obj = self._workloads[ref.kind][ref.namespace, ref.name]
        live, meta, raw = self._resolved(ref, obj["spec"]), obj["metadata"], self._raw[pod.uid]
        template = live.get("template") or {"metadata": raw["metadata"], "spec": raw["spec"]}
        if ref.kind == OwnerKind.ROLLOUT:
            self.notes.append(
                f"the rehearsal plays {ref} as a ReplicaSet, which moves within its ready floor"
            )
        fields = _OF_ROLLOUTS if ref.kind == OwnerKind.ROLLOUT else _SPEC
        spec = {name: live[name] for name in fields if live.get(name)} | {
            "replicas": count,
            "template": {
                "metadata": {
                    "labels": template.get("metadata", {}).get("labels", {}),
                    "annotations": self._annotations(template, pod, startup),
                },
                "spec": pod_spec(template["spec"], raw["spec"], self._names),
            },
        }
        claims = [
            {
                "metadata": {"name": claim["metadata"]["name"]},
                "spec": {
                    k: v for k, v in claim["spec"].items() if k in {"accessModes", "resources"}
                },
            }
            for claim in live.get("volumeClaimTemplates") or ()
        ]
        return _object(
            _played_as(ref.kind),
            ref.namespace,
            ref.name,
            spec | ({"volumeClaimTemplates": claims} if claims else {}),
            labels=_ours(meta.get("labels")),
            annotations=_ours(meta.get("annotations")),
        )

    def _resolved(self, ref: Ref, spec: Json) -> Json:
        """Return the spec of a workload; of a Rollout by `workloadRef` with selector and template of its Deployment."""
        target = spec.get("workloadRef") or {}
        found = self._workloads.get(str(target.get("kind")), {}).get(
            (ref.namespace, str(target.get("name")))
        )
        if found is None:
            return spec
        theirs = {name: found["spec"].get(name) for name in ("selector", "template")}
        return {**theirs, **spec, "template": theirs["template"]}

    def _job(self, ref: Ref, pods: Sequence[Pod], startup: float | None) -> Json:
        raw = self._raw[pods[0].uid]
        labels = raw["metadata"].get("labels", {})
        template = {
            "metadata": {
                "labels": {k: v for k, v in labels.items() if not k.startswith(_OF_JOBS)},
                "annotations": self._annotations(raw, pods[0], startup),
            },
            "spec": pod_spec(raw["spec"], raw["spec"], self._names),
        }
        spec = {"parallelism": len(pods), "template": template}
        return _object("Job", ref.namespace, ref.name, spec | kept_of(self._jobs.get(ref[1:])))

    def _pod(self, pod: Pod, startup: float | None) -> Json:
        raw = self._raw[pod.uid]
        owners = [o for o in raw["metadata"].get("ownerReferences", ()) if o.get("controller")]
        self.operated = self.operated or bool(owners)
        return _object(
            "Pod",
            pod.namespace,
            pod.name,
            pod_spec(raw["spec"], raw["spec"], self._names),
            labels=raw["metadata"].get("labels"),
            annotations=self._annotations(raw, pod, startup),
            ownerReferences=owners,
        )

    def _annotations(self, obj: Json, pod: Pod, startup: float | None) -> dict[str, str]:
        drill = {"drill.plimsoll.dev/stop": f"{played_stop(pod, stop_of(self._live.seen, pod))}s"}
        if startup is not None:
            drill["drill.plimsoll.dev/startup"] = f"{startup:.0f}s"
        return _ours(obj.get("metadata", {}).get("annotations")) | drill

    def _spaces(self) -> Iterator[Json]:
        used = {pod.namespace for pod in self._pods}
        for obj in self._live.objects["namespaces"]:
            meta = obj["metadata"]
            if meta["name"] in used:
                marks = {each: _ours(meta.get(each)) for each in ("labels", "annotations")}
                yield _object("Namespace", "", meta["name"], None, **marks)

    def _priorities(self) -> Iterator[Json]:
        specs = [self._raw[pod.uid]["spec"] for pod in self._pods]
        for name, spec in {str(s.get("priorityClassName", "")): s for s in specs}.items():
            if name and not name.startswith(_SYSTEM):
                policy = spec.get("preemptionPolicy")
                yield _object("PriorityClass", "", name, None) | {
                    "value": spec.get("priority", 0),
                    **({"preemptionPolicy": policy} if policy else {}),
                }

    def _pod_groups(self) -> Iterator[Json]:
        used = {pod.group.ref for pod in self._pods if pod.group is not None}
        for obj in self._live.objects["podgroups"]:
            meta, live = obj["metadata"], obj["spec"]
            if Ref("PodGroup", meta["namespace"], meta["name"]) in used:
                spec = {name: live[name] for name in _OF_POD_GROUPS if live.get(name) is not None}
                yield _object("PodGroup", meta["namespace"], meta["name"], spec)

    def _limits(self) -> Iterator[Json]:
        for resource, (kind, fields) in _LIMITS.items():
            for obj in self._live.objects[resource]:
                meta, live = obj["metadata"], obj["spec"]
                target = live.get("scaleTargetRef", {})
                key = target.get("kind"), meta["namespace"], target.get("name")
                if (target and key not in self._played) or (
                    kind == "Service" and not live.get("selector")
                ):
                    continue
                spec = {name: live[name] for name in fields if live.get(name) is not None}
                yield _object(kind, meta["namespace"], meta["name"], spec)

    def _add(self, manifest: Json) -> bool:
        """Take a manifest that a scenario may hold, and tell of one that it may not."""
        problems, kind, meta = Problems(), manifest["kind"], manifest["metadata"]
        where = " ".join((kind, "/".join(filter(None, (meta.get("namespace"), meta["name"])))))
        validate(MODELS[kind], Document(file=where, value=manifest, lines={}), problems)
        if problems:
            self.notes.append(f"the rehearsal leaves out: {next(iter(problems))}")
            return False
        self.manifests.append(manifest)
        self._played[kind, meta.get("namespace", ""), meta["name"]] = None
        return True

    def _about(self) -> Iterator[str]:
        if self._timed:
            yield (
                f"start-up times of {self._timed} workloads are observed on running pods; pods that pull an image "
                "first need longer"
            )
        if self._untimed:
            yield f"start-up times of {self._untimed} workloads are assumed: 15 s"
        yield from self._about_stops()
        if "jobs" not in self._live.objects:
            yield "Jobs were not read, because the right is missing: Jobs that would fail are not named"
        if self._live.objects["resourcequotas"]:
            yield "the rehearsal ignores ResourceQuotas, which may refuse a replacement"
        if self._live.objects["networkpolicies"]:
            yield "the rehearsal ignores NetworkPolicies; a policy that selects by pod-template-hash forbids releases"

    def _about_stops(self) -> Iterator[str]:
        bases = Counter(stop.basis for stop in self.stops.values())
        if bases:
            counts = ", ".join(f"{bases[basis]} {basis}" for basis in Basis if bases[basis])
            yield f"stop times of workloads: {counts}"
        if bases[Basis.ASSUMED]:
            yield (
                "a pod with an assumed stop time stops after its grace period, at most "
                f"{ASSUMED_SECONDS} s"
                + (
                    ""
                    if self._live.remembered
                    else "; without a stack nothing is remembered of pods that stopped"
                )
            )


def _played_as(kind: str) -> str:
    return "ReplicaSet" if kind == OwnerKind.ROLLOUT else kind


def _object(
    kind: str, namespace: str, name: str, spec: Json | None, **metadata: Any
) -> dict[str, Any]:
    meta = {"name": name} | ({"namespace": namespace} if namespace else {})
    meta |= {key: value for key, value in metadata.items() if value}
    head = {"apiVersion": KINDS[kind], "kind": kind, "metadata": meta}
    return head if spec is None else head | {"spec": spec}


def _ours(marks: Mapping[str, str] | None) -> dict[str, str]:
    """Return the labels or annotations by which an owner tells us something."""
    return {k: v for k, v in (marks or {}).items() if k.startswith(PREFIX) and k not in _STATE}
