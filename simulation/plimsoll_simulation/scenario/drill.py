"""The script of a drill, ready to be played: the scenario, and the objects of every file that it names.

Here stands what only both together can say: that a workload which is scaled or expected is there,
that a pod could ever fit on some node, that a claim or priority class which is used exists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plimsoll.domain.kubernetes import Resources
from plimsoll_simulation.declared import FieldPath
from plimsoll_simulation.scenario.clusters import ClusterSpec
from plimsoll_simulation.scenario.kinds import COUNTED, LISTED
from plimsoll_simulation.scenario.manifests import WORKLOADS, Manifest, read_manifests
from plimsoll_simulation.scenario.problems import Problems, listed, rename, shown
from plimsoll_simulation.scenario.queues import read_queues
from plimsoll_simulation.scenario.reading import read_scenario
from plimsoll_simulation.scenario.scenario import Scenario
from plimsoll_simulation.scenario.timeline import ApplyEntry, ScaleEntry

_SYSTEM_PRIORITIES = frozenset({"system-node-critical", "system-cluster-critical"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Drill:
    """A drill with everything read."""

    scenario: Scenario
    objects: Mapping[str, tuple[Manifest, ...]]
    """By cluster: what stands in it at time 0."""
    applied: Mapping[Path, tuple[Manifest, ...]]
    """By file: what an `apply` of the timeline brings."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """What of the manifests no drill plays, in words, and how many objects."""


def read_drill(path: Path) -> Drill:
    """Return the drill of a scenario file.

    Raises:
        BadScenario: with everything that is wrong in the scenario, or else in its manifests.
    """
    scenario = read_scenario(path)
    problems = Problems()
    objects = {
        cluster.name: read_manifests(
            cluster.manifests,
            problems,
            named_at=[
                scenario.document.place("spec", "clusters", i, "manifests", k)
                for k in range(len(cluster.manifests))
            ],
        )
        + read_queues(
            cluster.queues, problems, scenario.document.place("spec", "clusters", i, "queues")
        )
        for i, cluster in enumerate(scenario.clusters)
    }
    applies = [entry for entry in scenario.timeline if isinstance(entry, ApplyEntry)]
    applied = {
        entry.file: read_manifests([entry.file], problems, named_at=[entry.place])
        for entry in {entry.file: entry for entry in applies}.values()
    }
    if not problems:
        drill = Drill(scenario=scenario, objects=objects, applied=applied)
        _check(drill, problems)
    problems.check()
    return Drill(
        scenario=scenario, objects=objects, applied=applied, left_out=dict(problems.left_out)
    )


def _check(drill: Drill, problems: Problems) -> None:
    scenario = drill.scenario
    everywhere: set[str] = set()
    for cluster in scenario.clusters:
        start = drill.objects[cluster.name]
        later = [
            manifest
            for entry in scenario.timeline
            if isinstance(entry, ApplyEntry) and entry.cluster == cluster.name
            for manifest in drill.applied[entry.file]
        ]
        both = (*start, *later)
        for manifest in both:
            _check_pods(manifest, both, cluster, problems)
        _check_changes(start, later, problems)
        _check_autoscalers(both, problems)
        workloads = [m for m in both if m.kind in WORKLOADS]
        everywhere |= {f"{m.namespace}/{m.name}" for m in both if m.kind in COUNTED | LISTED}
        for entry in scenario.timeline:
            if isinstance(entry, ScaleEntry) and entry.scale.cluster == cluster.name:
                _check_scale(entry, workloads, problems)
    for name in scenario.expect.workloads if scenario.expect else ():
        if name != "*" and name not in everywhere:
            problems.add(
                scenario.document.place("spec", "expect", "workloads", name),
                found=f"the unknown workload {name}",
                allowed=listed(sorted(everywhere)) or "workloads of the manifests",
                cure=rename(name, everywhere, "Name a workload of the manifests"),
            )


def _check_scale(entry: ScaleEntry, workloads: Sequence[Manifest], problems: Problems) -> None:
    scale = entry.scale
    if not any(m.key == (scale.kind, scale.namespace, scale.name) for m in workloads):
        known = {f"{m.kind} {m.namespace}/{m.name}" for m in workloads}
        wanted = f"{scale.kind} {scale.namespace}/{scale.name}"
        problems.add(
            entry.place,
            found=f"the unknown workload {wanted}",
            allowed=listed(sorted(known)) or "workloads of the manifests",
            cure=rename(wanted, known, "Name a workload of the manifests"),
        )


def _check_changes(
    start: Sequence[Manifest], later: Sequence[Manifest], problems: Problems
) -> None:
    """An API server refuses a changed selector, and so would the drill, half-way."""
    before = {manifest.key: manifest for manifest in start}
    for manifest in later:
        old = before.get(manifest.key)
        if old is None or "template" not in manifest.body.get("spec", {}):
            continue
        if old.body["spec"].get("selector") != manifest.body["spec"].get("selector"):
            problems.add(
                manifest.document.place("spec", "selector"),
                found=f"another selector than at {old.place}",
                allowed="the same selector, which cannot be changed",
                cure="Keep the selector, or give the object another name",
            )


def _check_autoscalers(objects: Sequence[Manifest], problems: Problems) -> None:
    known = {(m.kind, m.namespace, m.name) for m in objects if m.kind in WORKLOADS}
    for manifest in objects:
        if manifest.kind != "HorizontalPodAutoscaler":
            continue
        target = manifest.body["spec"]["scaleTargetRef"]
        if (target["kind"], manifest.namespace, target["name"]) not in known:
            there = {name for kind, space, name in known if space == manifest.namespace}
            problems.add(
                manifest.document.place("spec", "scaleTargetRef"),
                found=f"the unknown {target['kind']} {manifest.namespace}/{target['name']}",
                allowed=listed(sorted(there)) or "workloads of its namespace",
                cure=rename(target["name"], there, "Name a workload of the manifests"),
            )


def _check_pods(
    manifest: Manifest, objects: Sequence[Manifest], cluster: ClusterSpec, problems: Problems
) -> None:
    whole = manifest.body.get("spec", {})
    template: Mapping[str, Any] | None = whole.get("template")
    if template is None and manifest.kind != "Pod":
        return
    spec = whole if template is None else template["spec"]
    path: FieldPath = ("spec",) if template is None else ("spec", "template", "spec")
    priorities = {m.name for m in objects if m.kind == "PriorityClass"} | _SYSTEM_PRIORITIES
    wanted = spec.get("priorityClassName")
    if wanted and wanted not in priorities:
        problems.add(
            manifest.document.place(*path, "priorityClassName"),
            found=f"the unknown priority class {wanted}",
            allowed=listed(sorted(priorities)),
            cure=rename(wanted, priorities, "Add a PriorityClass to the manifests"),
        )
    claims = {
        m.name
        for m in objects
        if m.kind == "PersistentVolumeClaim" and m.namespace == manifest.namespace
    }
    for i, volume in enumerate(spec.get("volumes", ())):
        claim = volume.get("persistentVolumeClaim", {}).get("claimName")
        if claim is not None and claim not in claims:
            problems.add(
                manifest.document.place(*path, "volumes", i),
                found=f"the unknown claim {claim}",
                allowed=listed(sorted(claims)) or "claims of the manifests",
                cure=rename(claim, claims, "Add a PersistentVolumeClaim to the manifests"),
            )
    if manifest.kind != "DaemonSet":
        _check_size(manifest, spec, path, cluster, problems)


def _check_size(
    manifest: Manifest,
    spec: Mapping[str, Any],
    path: FieldPath,
    cluster: ClusterSpec,
    problems: Problems,
) -> None:
    asked = Resources(pods=1)
    for container in spec["containers"]:
        asked += Resources.parse(container["resources"].get("requests", {}))
    rooms = [Resources.parse(group.allocatable) for group in cluster.node_groups]
    if not any(asked.within(headroom) for headroom in rooms):
        requests = {
            container["name"]: container["resources"].get("requests", {})
            for container in spec["containers"]
        }
        rooms_shown = [f"{g.name} {dict(g.allocatable)}" for g in cluster.node_groups]
        problems.add(
            manifest.document.place(*path, "containers"),
            found=f"a pod that asks for {requests}" if requests else shown(requests),
            allowed=f"what a node of some group has: {listed(rooms_shown)}",
            cure="Lower the requests, or add a group of larger nodes",
        )
