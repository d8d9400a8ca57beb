"""Reads a demand, and a fleet out of `kubectl get nodes,pods --all-namespaces --output json`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import click
import yaml

from plimsoll.domain.errors import BadInput
from plimsoll.domain.kubernetes import DO_NOT_DISRUPT, GPU, INSTANCE_TYPE, MIG_SLICES, is_ignored
from plimsoll_service.domain.gpu import (
    CARDS,
    WHOLE_GPU,
    Choice,
    GpuNode,
    Layout,
    MigGeometries,
    cheapest_cards,
    geometries_of,
    layout_of,
    model_of,
)
from plimsoll_service.wire.gpu_plan import MIG_CONFIG

PRODUCT: Final = "nvidia.com/gpu.product"
_SAFE_TO_EVICT: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict"
_MOVABLE: Final = frozenset({"DaemonSet", "ReplicaSet", "StatefulSet"})
"""Controllers that replace a pod which leaves, without losing what it has computed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """The nodes with GPUs, by GPU model."""

    nodes: dict[str, list[GpuNode]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    """What was left out or guessed, and why."""
    uids: dict[str, str] = field(default_factory=dict)
    """Of the nodes, by name."""
    labelled: dict[str, str] = field(default_factory=dict)
    """The layouts that the labels of the nodes name now, by name: the way back."""


def read(option: str, file: Path) -> Any:
    """Return the content of a YAML or JSON file; `-` is standard input.

    Raises:
        BadInput: it is neither, or cannot be read.
    """
    try:
        with click.open_file(str(file), encoding="utf-8") as stream:
            text = stream.read()
        try:
            return json.loads(text)
        except ValueError:
            return yaml.safe_load(text)
    except (yaml.YAMLError, UnicodeDecodeError, OSError) as error:
        raise BadInput(f"{option} {file}: {error}") from error


def wanted_of(document: Any) -> dict[str, dict[str, int]]:
    """Return instances by GPU model and profile; the answer of `plimsoll gpu fit` holds them as `demand`.

    Classes under `any`, which run on several models, take the one whose slice costs the least.

    Raises:
        BadInput: it is no such document.
    """
    if isinstance(document, Mapping):
        document = document.get("demand", document)
    if not isinstance(document, Mapping):
        raise BadInput("--demand: must be a mapping of GPU models to profiles and counts")
    wanted = {
        str(model): Counter(_whole_numbers(str(model), counts))
        for model, counts in document.items()
        if model != "any"
    }
    for model, counts in _anywhere(document.get("any")).items():
        wanted.setdefault(model, Counter()).update(counts)
    for model in wanted:
        if model not in CARDS:
            raise BadInput(f"--demand: {model}: not one of the models {', '.join(CARDS)}")
    return {model: dict(counts) for model, counts in wanted.items()}


def _anywhere(document: Any) -> dict[str, dict[str, int]]:
    try:
        choices = [Choice(**each) for each in (document or {}).get("classes", ())]
        return cheapest_cards(choices, CARDS, (document or {}).get("prices", {}))
    except KeyError as error:
        raise BadInput(f"--demand: any: {error} has no price, or no such profile") from error
    except (AttributeError, TypeError, ValueError) as error:
        raise BadInput(f"--demand: any: must have `prices` and `classes`: {error}") from error


def _whole_numbers(model: str, counts: Any) -> dict[str, int]:
    if not isinstance(counts, Mapping) or not all(type(n) is int for n in counts.values()):
        raise BadInput(f"--demand: {model}: must map profiles to whole numbers")
    return {str(profile): number for profile, number in counts.items()}


def fleet_of(document: Any) -> Fleet:
    """Return the nodes with GPUs of a list of nodes and pods.

    Raises:
        BadInput: it is no such list.
    """
    try:
        items = document["items"]
        nodes = [item for item in items if item["kind"] == "Node"]
        staying = {
            item["spec"]["nodeName"]: item["metadata"]["name"]
            for item in items
            if item["kind"] == "Pod" and _holds_gpus(item) and _stays(item)
        }
        fleet = Fleet()
        for node in sorted(nodes, key=lambda each: str(each["metadata"]["name"])):
            _add(fleet, node, stays=node["metadata"]["name"] in staying)
    except (KeyError, TypeError, AttributeError) as error:
        raise BadInput(
            f"--fleet: is not the output of `kubectl get nodes,pods -A -o json`: {error!r}"
        ) from error
    return fleet


def _add(fleet: Fleet, node: Mapping[str, Any], *, stays: bool) -> None:
    name, labels = node["metadata"]["name"], node["metadata"].get("labels", {})
    given = {
        resource.removeprefix(MIG_SLICES) if resource.startswith(MIG_SLICES) else WHOLE_GPU: int(
            number
        )
        for resource, number in node["status"].get("allocatable", {}).items()
        if (resource.startswith(MIG_SLICES) or resource == GPU) and int(number)
    }
    product = labels.get(PRODUCT, "")
    model = model_of(product)
    if not product:
        if given:
            fleet.notes.append(f"{name} is left out: it has no label {PRODUCT}")
        return
    shared = labels.get("nvidia.com/gpu.sharing-strategy", "none") != "none"
    single = labels.get("nvidia.com/mig.strategy") == "single" and "-MIG-" in product
    if model not in CARDS or shared or single:
        why = "its GPUs are shared by time-slicing or MPS" if shared else f"{model} is not known"
        if single:
            why = "its MIG strategy is single: only mixed offers several profiles"
        fleet.notes.append(f"{name} is left out: {why}")
        return
    geometries = geometries_of(CARDS[model])
    gpus = (
        CARDS[model].instance_types.get(labels.get(INSTANCE_TYPE, ""))
        or int(labels.get("karpenter.k8s.aws/instance-gpu-count", 0))
        or int(labels.get("nvidia.com/gpu.count", 0))
        or given.get(WHOLE_GPU, 0)
    )
    if not gpus:
        fleet.notes.append(f"{name} is left out: nothing says how many GPUs it has")
        return
    layout = layout_of(geometries, labels.get(MIG_CONFIG, ""), gpus)
    if layout is None or _totals(geometries, layout) != given:
        layout = _guessed(geometries, given, gpus)
        if layout is None:
            fleet.notes.append(f"{name} is left out: {gpus} GPUs cannot give what it reports")
            return
        if given != {WHOLE_GPU: gpus}:
            fleet.notes.append(f"{name}: the geometry of each GPU is guessed from the totals")
    fleet.uids[name] = node["metadata"]["uid"]
    if MIG_CONFIG in labels:
        fleet.labelled[name] = labels[MIG_CONFIG]
    found = GpuNode(name=name, layout=layout, stays=stays)
    fleet.nodes.setdefault(model, []).append(found)


def _totals(geometries: MigGeometries, layout: Layout) -> dict[str, int]:
    totals: Counter[str] = Counter()
    for geometry in layout:
        totals.update(geometries.by_name(geometry))
    return dict(totals)


def _guessed(geometries: MigGeometries, given: Mapping[str, int], gpus: int) -> Layout | None:
    """Return geometries that give just these totals; None: the GPUs are too few."""
    if any(name not in geometries.names for name in given):
        return None
    left = geometries.counts(given)
    layout = []
    for geometry in geometries.fewest(left).elements():
        layout.append(tuple(map(min, geometry, left)))
        left = tuple(a - b for a, b in zip(left, layout[-1], strict=True))
    empty = geometries.counts({})
    return (*layout, *(empty for _ in range(gpus - len(layout)))) if len(layout) <= gpus else None


def _holds_gpus(pod: Mapping[str, Any]) -> bool:
    running = pod.get("status", {}).get("phase") not in {"Succeeded", "Failed"}
    containers: Iterable[Mapping[str, Any]] = (
        *pod["spec"]["containers"],
        *pod["spec"].get("initContainers", ()),
    )
    return (
        running
        and bool(pod["spec"].get("nodeName"))
        and any(
            resource.startswith("nvidia.com/")
            for container in containers
            for resource in container.get("resources", {}).get("limits", {})
        )
    )


def _stays(pod: Mapping[str, Any]) -> bool:
    """Whether a pod keeps its node as it is: its owner says so, or nothing starts it again elsewhere."""
    marks = pod["metadata"].get("annotations") or {}
    labels = pod["metadata"].get("labels") or {}
    controllers = {
        owner["kind"]
        for owner in pod["metadata"].get("ownerReferences", ())
        if owner.get("controller")
    }
    return (
        not controllers <= _MOVABLE
        or not controllers
        or marks.get(DO_NOT_DISRUPT, "false") != "false"
        or is_ignored(labels, marks)
        or marks.get(_SAFE_TO_EVICT) == "false"
    )
