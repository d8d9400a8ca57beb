"""Nodes."""

from __future__ import annotations

import re
from typing import Final

from msgspec import Raw

from plimsoll.adapters.kubernetes import schema
from plimsoll.adapters.kubernetes.decoding import decoded, naming
from plimsoll.adapters.kubernetes.objects.metadata import annotations_of, condition, created, holds
from plimsoll.adapters.kubernetes.scheduling import read_resources
from plimsoll.domain.errors import BadInput
from plimsoll.domain.fields import INSTANCE, Field
from plimsoll.domain.interruptions import Interruption, NewerRecord, from_record
from plimsoll.domain.kubernetes import Node, capacity_of, names

_INSTANCE: Final = re.compile(rf"aws:///[^/]*/(i-[0-9a-f]+)|({INSTANCE.pattern})")
"""As the cloud controller manager writes it; a bare id where a kubelet or an installer sets it."""


@naming("Node")
def parse_node(obj: Raw) -> Node:
    """Read a Node, with the interruption recorded on it.

    A record that cannot be read, or is about another instance, is no error of the node: it is said
    in `unreadable`.
    """
    node = decoded(obj, schema.Node)
    meta, annotations = node.metadata, annotations_of(node.metadata)
    provider = _INSTANCE.fullmatch(node.spec.provider_id)
    instance = provider[1] or provider[2] if provider else None
    interruption, unreadable, newer = _record(annotations.get(names.INTERRUPTION), instance)
    amounts = node.status.allocatable or node.status.capacity
    ready = condition(node.status.conditions, "Ready")
    since = ready.last_transition_time if ready else ""
    return Node(
        name=meta.name,
        uid=meta.uid,
        resource_version=meta.resource_version,
        labels=meta.labels,
        annotations=annotations,
        taints=node.spec.taints,
        unschedulable=node.spec.unschedulable,
        ready=holds(ready),
        ready_since=Field(since, "status.conditions.lastTransitionTime").time_or_bound(),
        allocatable=read_resources(amounts, "status.allocatable"),
        instance=instance,
        zone=meta.labels.get(names.ZONE),
        capacity=capacity_of(meta.labels),
        created=created(meta),
        interruption=interruption,
        unreadable=unreadable,
        newer_record=newer,
    )


def _record(text: str | None, instance: str | None) -> tuple[Interruption | None, str | None, bool]:
    """Return what is recorded, why that is not believed, and whether a newer Plimsoll wrote it."""
    if text is None:
        return None, None, False
    try:
        record = from_record(text)
    except NewerRecord as error:
        return None, str(error), True
    except BadInput as error:
        return None, str(error), False
    if record.instance != instance:
        return None, f"the record is about {record.instance}, and the Node is {instance}", False
    return record, None, False
