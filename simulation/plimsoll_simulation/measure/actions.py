"""Which action of a responder stands behind a change of an object, as a sentence.

A deployed function logs what it did, with its reasons, when it ends. The cluster shows the action
at once, but not its reason, so the sentences here begin as those of `sentences.py` do.

A change is the responder's if no controller of the cluster and no owner makes it: only a responder
cordons nodes, uses the eviction API, shortens a grace period or releases a pod.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from plimsoll.domain.kubernetes import INTERRUPTION, RELEASED
from plimsoll_simulation.fake_cluster.conditions import controller_of, is_deleting, is_ready
from plimsoll_simulation.measure.workload_metrics import left_by_eviction

_OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"

type Json = dict[str, Any]


def actions(resource: str, before: Json | None, after: Json) -> Iterator[str]:
    """Yield what a change means.

    Args:
        resource: the plural, for example `pods`.
        before: the object as it was; an object that was just created says nothing.
        after: as it is now, or as it last was if it was deleted.
    """
    if before is None:
        return
    match resource:
        case "nodes":
            yield from _on_node(before, after)
        case "pods":
            yield from _on_pod(before, after)
        case _:
            pass


def _on_node(before: Json, after: Json) -> Iterator[str]:
    name = f"Node {after['metadata']['name']}"
    was, now = _closed(before), _closed(after)
    if now - was:
        yield f"cordon {name}"
    elif was and not now:
        yield f"uncordon {name}"
    elif _annotation(after, INTERRUPTION) not in {None, _annotation(before, INTERRUPTION)}:
        yield f"record {name}"
    if _OUT_OF_SERVICE in _taints(after) - _taints(before):
        yield f"out-of-service {name}"


def _on_pod(before: Json, after: Json) -> Iterator[str]:
    metadata, spec = after["metadata"], after["spec"]
    name = f"Pod {metadata['namespace']}/{metadata['name']}"
    if is_deleting(after) and not is_deleting(before):
        conditions = after.get("status", {}).get("conditions", ())
        own = spec.get("terminationGracePeriodSeconds", 30)
        if left_by_eviction(after):
            yield f"evict {name}"
        elif metadata.get("deletionGracePeriodSeconds", own) < own and not any(
            condition["type"] == "DisruptionTarget" for condition in conditions
        ):
            yield f"delete {name}"
    elif _annotation(after, RELEASED) != _annotation(before, RELEASED):
        yield f"{'undo-release' if _annotation(after, RELEASED) is None else 'release'} {name}"
    elif is_ready(after) and not is_ready(before) and not is_deleting(after):
        owner = controller_of(after)
        if owner is None or owner["kind"] != "DaemonSet":
            yield f"{name} is Ready on {spec['nodeName']}"


def _closed(node: Json) -> frozenset[str]:
    """Return what keeps new pods off a node."""
    cordon = {"cordon"} if node["spec"].get("unschedulable") else set()
    return frozenset(cordon | ({INTERRUPTION} & _taints(node)))


def _taints(node: Json) -> frozenset[str]:
    return frozenset(taint["key"] for taint in node["spec"].get("taints", ()))


def _annotation(obj: Mapping[str, Any], name: str) -> str | None:
    value: str | None = (obj["metadata"].get("annotations") or {}).get(name)
    return value
