"""Whether a change of a plan may be begun: by the plan, by the Node, by the pods that stand on it. Pure.

Each function returns the reason against it, or None.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Final

from plimsoll.domain.disruptions import why_never_released
from plimsoll.domain.kubernetes import Node, Pod, why_node_protected, why_protected
from plimsoll.domain.observation import Observation
from plimsoll_agent.authorization import interrupted as cluster_interrupted
from plimsoll_agent.gpu_change import NVIDIA, Look, Write, interrupted
from plimsoll_agent.gpu_journal import GpuChange
from plimsoll_service.wire.gpu_plan import PLUGIN_CONFIG, ConfigSource, GpuPlan, NodeChange

HOUR: Final = timedelta(hours=1)


def holds_gpus(pod: Pod) -> bool:
    """Whether a pod has GPUs of its node, or may have: terminating ones included."""
    if pod.finished:
        return False
    asked = pod.scheduling.requests.extended
    named = any(name.startswith(NVIDIA) and n > 0 for name, n in asked)
    return named or pod.scheduling.devices or pod.unread is not None


def against_config(source: ConfigSource, text: str | None) -> str | None:
    """Return why the ConfigMap of the layouts is not the one that was planned with."""
    where = f"ConfigMap {source.namespace}/{source.name}: {source.key}"
    if text is None:
        return f"{where} is not there"
    if sha256(text.encode()).hexdigest() != source.sha256:
        return f"{where} is not as it was when the plan was made: plan again"
    return None


def against_name(entry: NodeChange, source: ConfigSource, text: str) -> str | None:
    """Return why a layout's name is none of the ConfigMap: mig-manager lists them, the device plugin has a key for each."""
    if entry.label == PLUGIN_CONFIG:
        listed = source.key == entry.value
    else:
        name = re.escape(entry.value)
        listed = re.search(rf"""(?m)(?:^|[\s{{,])(["']?){name}\1\s*:""", text) is not None
    return (
        None
        if listed
        else f"{entry.value} is no name in ConfigMap {source.namespace}/{source.name}"
    )


def against_any(plan: GpuPlan, looks: Sequence[Look], now: datetime) -> str | None:
    """Return why no change is begun now."""
    # Reasons against every Node come before reasons against one Node: only the first is shown.
    if plan.paused:
        return "the plan is paused"
    for look in looks:
        if look.change is not None and look.change.step == "alert":
            return f"Node {look.node.name} needs a person first: {look.change.reason}"
    begun = sum(look.change is not None and look.change.begun > now - HOUR for look in looks)
    if begun >= plan.nodes_per_hour:
        return f"the plan allows {plan.nodes_per_hour} nodes an hour"
    return None


def against_node(look: Look, entry: NodeChange, source: ConfigSource) -> str | None:
    """Return why this Node is not changed now; what is as planned already is not changed either."""
    return next(_against_node(look, entry, source), None)


def _against_node(look: Look, entry: NodeChange, source: ConfigSource) -> Iterator[str]:
    node, change, says = look.node, look.change, look.node.labels.get(entry.label)
    wanted = {name: n for name, n in entry.allocatable.items() if n}
    if node.uid != entry.uid:
        yield "it is not the Node that was meant: its uid is another"
    if says == entry.value:
        yield "its label says so already" + ("" if look.gpus == wanted else ", and its GPUs do not")
    if says is None:
        yield f"it has no {entry.label}: label it with the layout that it has, as the way back"
    if change is not None and change.stopped_at(entry.value, source.sha256):
        yield f"it was stopped: {change.reason}"
    if node.unschedulable:
        yield "somebody cordoned it"
    why = interrupted(node) or why_node_protected(node) or look.unsteady(look.gpus)
    if why is not None:
        yield why
    if not look.gpus:
        yield "it shows no GPUs"
    if entry.label == PLUGIN_CONFIG and look.gpus == wanted:
        yield "it shows these GPUs already, so nobody could tell when it is done"


def against_emptying(seen: Observation, node: Node, entry: NodeChange, now: datetime) -> str | None:
    """Return why the Node cannot be emptied without a loss, or its pods would not come back."""
    return next(_against_emptying(seen, node, entry, now), None)


def _against_emptying(
    seen: Observation, node: Node, entry: NodeChange, now: datetime
) -> Iterator[str]:
    if (why := cluster_interrupted(seen)) is not None:
        yield why
    for pod in filter(holds_gpus, seen.on_node.get(node.name, ())):
        owner = seen.owner(pod)
        workload = None if owner is None else seen.workload.get(owner)
        if workload is None:
            yield f"Pod {pod} is of no Deployment, and ends by itself"
            continue
        if (
            why := why_protected(pod, node, now) or why_never_released(seen, workload, pod)
        ) is not None:
            yield f"Pod {pod} is not moved: {why}"
        for name, amount in workload.scheduling.requests.extended:
            if name.startswith(NVIDIA) and amount > 0 and not entry.allocatable.get(name):
                yield f"{workload.ref} still asks for {name}, which the new layout has not: patch its template first"


def cordon(look: Look, entry: NodeChange, source: ConfigSource, now: datetime) -> Write:
    """Return the patch that begins a change."""
    change = GpuChange(
        step="emptying",
        label=entry.label,
        saved=look.node.labels[entry.label],
        target=entry.value,
        old=look.gpus,
        new={name: n for name, n in entry.allocatable.items() if n},
        config=source.sha256,
        begun=now,
        since=now,
    )
    return Write(change=change, unschedulable=True)
