"""Draws how pods and nodes differ from their templates: by mutating webhooks, resizes in place, late device plugins.

All is drawn after the rest of a storm, so a seed that draws nothing here is the storm that it was before.
"""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Final

from plimsoll_simulation.fake_aws.nodegroups import NodeGroupSpec
from plimsoll_simulation.storms.chance import chance
from plimsoll_simulation.storms.changes import configuration, one_changed, webhook, with_events
from plimsoll_simulation.storms.model import Applied, Storm
from plimsoll_simulation.storms.workload import DEVICE, Workload

MUTATED: Final = 0.08
"""The share of storms in which a webhook adds a sidecar to new pods of a workload, or lets them request more."""
RESIZED: Final = 0.08
"""The share in which pods of a workload are resized in place."""
LATE: Final = 0.06
"""The share in which pods of a workload need devices, which new nodes report late."""
_DEVICES: Final = 8
"""How many devices a node has: as many as it takes pods."""
_MUCH: Final = 1900
"""Nearly all of a small node, so that most such resizes wait."""


def with_differences(rnd: random.Random, storm: Storm) -> Storm:
    """Return a storm in which some of all this is so."""
    if chance(rnd, MUTATED):
        storm = _mutated(rnd, storm)
    if chance(rnd, RESIZED):
        storm = one_changed(rnd, storm, partial(_resized, rnd))
    if chance(rnd, LATE):
        storm = one_changed(rnd, storm, _with_device)
        late = timedelta(seconds=rnd.choice((10, 30, 60, 120)))
        storm = replace(storm, groups=tuple(_with_devices(group, late) for group in storm.groups))
    return storm


def _mutated(rnd: random.Random, storm: Storm) -> Storm:
    """Return a storm in which new pods of a workload get a third of their CPU from a webhook.

    It is there from the start, or comes later: then pods that are made before request less than others after them.
    """
    later = rnd.choice((None, None, timedelta(), timedelta(seconds=10)))
    field = rnd.choice(("sidecar", "cpu"))
    hooks = []

    def smaller(workload: Workload) -> Workload:
        part = workload.cpu // 3
        answer = f"sidecar/{part}m" if field == "sidecar" else f"cpu/{workload.cpu}m"
        selector = {"objectSelector": {"matchLabels": {"app": workload.name}}}
        hooks.append(webhook(answer, "CREATE", ("pods",)) | selector)
        return replace(workload, cpu=workload.cpu - part)

    storm = one_changed(rnd, storm, smaller)
    mutates = configuration(*hooks, kind="MutatingWebhookConfiguration")
    if later is None:
        return replace(storm, objects=(*storm.objects, mutates))
    return with_events(storm, Applied(at=later, objects=(mutates,)))


def _resized(rnd: random.Random, workload: Workload) -> Workload:
    """Return a workload whose pods are resized: to less, to more, or to more than most nodes have free."""
    cpu = rnd.choice((workload.cpu // 2, workload.cpu // 2, workload.cpu * 3 // 2, _MUCH))
    return replace(workload, resized_cpu=cpu)


def _with_device(workload: Workload) -> Workload:
    return replace(workload, devices=1)


def _with_devices(group: NodeGroupSpec, late: timedelta) -> NodeGroupSpec:
    """Return a group whose nodes have devices, which new ones report late."""
    allocatable = {**group.allocatable, DEVICE: str(_DEVICES)}
    return group.model_copy(update={"allocatable": allocatable, "devices_after": late})
