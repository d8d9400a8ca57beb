"""Volumes and load balancers that cost money and serve nobody, and the commands that delete them."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from plimsoll_service.domain.analysis.cluster_view import View
from plimsoll_service.domain.analysis.commands import commands
from plimsoll_service.domain.analysis.drafts import draft
from plimsoll_service.domain.analysis.prices import HOURS_PER_MONTH, PriceTable
from plimsoll_service.wire import snapshot as wire
from plimsoll_service.wire.advice import About, Frees, Recommendation

GIB: Final = 2**30
SETTLED_UNUSED: Final = timedelta(days=1)
"""A younger volume or load balancer may be about to be used."""


def unused_volumes(view: View, table: PriceTable) -> Iterator[Recommendation]:
    """Advise to delete EBS volumes that no claim has had for a day.

    Other storage has no type of EBS, nor its price. A volume that AWS keeps when its PersistentVolume is deleted goes
    first, because only the PersistentVolume says which volume that is.
    """
    for volume in view.seen.volumes:
        price = table.volumes.get(volume.type)
        if price is None or not _is_unused(volume, view.at):
            continue
        gib, stays = volume.capacity / GIB, volume.reclaim != "Delete"
        if stays and not volume.ebs:
            continue
        steps = [["kubectl", "delete", "persistentvolume", volume.name]]
        why = f"it is {volume.phase} and no claim has it; {gib:.0f} GiB"
        if stays:
            region = ["--region", view.region] if view.region else []
            steps.insert(0, ["aws", "ec2", "delete-volume", "--volume-id", volume.ebs, *region])
            why = (
                f"{why}. Its policy {volume.reclaim} keeps {volume.ebs} in EBS, billed: first delete "
                "the volume, then its PersistentVolume. Only your bill shows what that saved"
            )
        yield draft(
            view,
            "orphan-volume",
            About(kind="PersistentVolume", name=volume.name, uid=volume.uid),
            gib * price,
            f"{why}. Take a snapshot of it before you delete it",
            patch=" && ".join(map(shlex.join, steps)),
            measurable=not stays,
            frees=Frees(volume=volume.type, volume_bytes=volume.capacity),
        )


def _is_unused(volume: wire.Volume, now: datetime) -> bool:
    """Whether no claim has had a volume for a day; one that was released at an unknown time may be in use still."""
    if volume.phase not in {"Available", "Released", "Failed"}:
        return False
    since = volume.since or (volume.created_at if volume.phase == "Available" else now)
    return now - since >= SETTLED_UNUSED


def idle_load_balancers(
    view: View, table: PriceTable, idle: Mapping[str, datetime]
) -> Iterator[Recommendation]:
    """Advise to delete load balancers that had nothing to send requests to for a day, each once, whoever shares it."""
    sharing: dict[str, list[wire.LoadBalancer]] = defaultdict(list)
    for balancer in view.seen.load_balancers:
        if balancer.provisioned:
            sharing[balancer.address or balancer.uid].append(balancer)
    for members in sharing.values():
        since = [idle[each.uid] for each in members if each.uid in idle]
        if len(since) < len(members) or view.at - max(since) < SETTLED_UNUSED:
            continue
        first, *others = sorted(members, key=lambda each: (each.namespace, each.name, each.uid))
        shared = f", nor have {len(others)} others that share it" if others else ""
        yield draft(
            view,
            "idle-load-balancer",
            About(kind=first.kind, namespace=first.namespace, name=first.name, uid=first.uid),
            table.load_balancer * HOURS_PER_MONTH,
            f"it has an address, and had no Ready endpoint for a day{shared}",
            patch=commands([_deletion(each) for each in (first, *others)]),
            frees=Frees(load_balancers=1),
        )


def _deletion(balancer: wire.LoadBalancer) -> Sequence[str]:
    kind, namespace = balancer.kind.lower(), balancer.namespace
    return "kubectl", "delete", kind, "--namespace", namespace, balancer.name
