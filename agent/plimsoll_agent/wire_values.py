"""Values of Kubernetes objects as a snapshot tells them, within the bounds of the wire."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

import msgspec
from msgspec import Struct

from plimsoll.adapters.kubernetes import schema as core
from plimsoll.adapters.kubernetes.scheduling import read_resources, read_scheduling
from plimsoll.domain.fields import parse_time
from plimsoll.domain.kubernetes import Resources, total_resources
from plimsoll_agent import schema
from plimsoll_service.wire import snapshot as wire
from plimsoll_service.wire.names import Word

LONGEST_TEXT: Final = 256
"""Characters of a label, an annotation or a floor."""
_MOST: Final = 2**53
msgspec.json.Decoder(wire.Snapshot)
"""Made once, for what it leaves behind: what msgspec knows of each type. Two threads that let it find that out
at once bring the process down, and kinds are listed side by side."""


class Claimed(Struct, frozen=True, gc=False):
    """A controller that another one made: the ReplicaSet of a Deployment, the Job of a CronJob."""

    uid: str
    owner: wire.Owner


def within_bounds[T: Struct](told: T) -> T:
    """Return what is told as its reader will see it.

    Raises:
        ValidationError: its reader would refuse it.
    """
    return msgspec.json.decode(msgspec.json.encode(told), type=type(told))


def claimed(meta: core.Metadata) -> Claimed | None:
    """Return who made a controller; None where nobody did."""
    controller = meta.controller
    return None if controller is None else Claimed(meta.uid, within_bounds(owner_of(controller)))


def amounts_of_template(spec: core.PodSpec) -> tuple[wire.Amounts, wire.Amounts]:
    """Return requests and limits of one pod of a template."""
    return amounts(read_scheduling(spec, {}).requests), limits_of(spec)


def limits_of(spec: core.PodSpec) -> wire.Amounts:
    """Return what the containers of a pod may use together; where one has no limit, there is none."""
    staying = [c for c in spec.init_containers if c.restart_policy == "Always"]
    each = [container.resources.limits for container in (*spec.containers, *staying)]
    limited = total_resources([read_resources(limits, "limits") for limits in each])
    return wire.Amounts(
        cpu_m=counted(limited.cpu) if all("cpu" in limits for limits in each) else 0,
        memory=counted(limited.memory) if all("memory" in limits for limits in each) else 0,
    )


def containers_of(spec: schema.Containers) -> tuple[wire.Container, ...]:
    """Return the containers of a template that run as long as the pod does, as they are told.

    Requests of the pod as a whole stand in place of theirs: then, or where they are too many, none is told.
    """
    staying = [each for each in spec.init_containers if each.restart_policy == "Always"]
    found = (*spec.containers, *staying)
    if spec.resources.requests or spec.resources.limits or len(found) > wire.MOST_CONTAINERS:
        return ()
    return tuple(
        wire.Container(
            name=each.name,
            sidecar=number >= len(spec.containers),
            requests=amounts(Resources.parse(each.resources.limits | each.resources.requests)),
            limits=amounts(Resources.parse(each.resources.limits)),
        )
        for number, each in enumerate(found)
    )


def amounts(found: Resources) -> wire.Amounts:
    """Return processors and memory as the wire takes them."""
    return wire.Amounts(cpu_m=counted(found.cpu), memory=counted(found.memory))


def counted(number: int) -> int:
    """Return a number as the wire takes it."""
    return min(max(number, 0), _MOST)


def owner_of(reference: core.Reference) -> wire.Owner:
    """Return a controller as a snapshot names it."""
    return wire.Owner(kind=reference.kind, name=reference.name, uid=reference.uid)


def only(allowed: tuple[str, ...], said: Mapping[str, str]) -> dict[str, str]:
    """Return those labels or annotations that are told."""
    return {
        key: value
        for key in allowed
        if (value := said.get(key)) is not None and len(value) <= LONGEST_TEXT
    }


def word(text: str) -> str:
    """Return one word, such as the reason why a container ended; empty, where the text is more than that."""
    try:
        msgspec.convert(text, Word)
    except msgspec.ValidationError:
        return ""
    return text


def created_at(meta: core.Metadata) -> datetime:
    """Return when an object was created.

    Raises:
        BadInput: it does not say.
    """
    return parse_time(meta.creation_timestamp)
