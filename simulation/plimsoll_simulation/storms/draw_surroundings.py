"""Draws the surroundings of workloads: webhooks, quotas, finalizers, native sidecars, slow and few volumes, Windows nodes.

All is drawn after the rest of a storm, so a seed that draws nothing here is the storm that it was before.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from plimsoll_simulation.durations import Span
from plimsoll_simulation.fake_aws.nodegroups import NodeGroupSpec
from plimsoll_simulation.fake_cluster.controllers.volumes import DRIVER
from plimsoll_simulation.storms.chance import chance
from plimsoll_simulation.storms.changes import configuration, one_changed, webhook, with_events
from plimsoll_simulation.storms.model import Applied, Storm
from plimsoll_simulation.storms.workload import Workload

WEBHOOKS: Final = 0.08
"""The share of storms in which an admission webhook denies or fails for a while."""
QUOTAS: Final = 0.08
"""The share in which a ResourceQuota leaves little or nothing for a surge."""
HELD: Final = 0.05
"""The share in which a finalizer holds the ended pods of a workload."""
SIDECARS: Final = 0.1
"""The share in which pods of a workload have native sidecars."""
SLOW: Final = 0.08
"""The share in which volumes detach slowly."""
LIMITED: Final = 0.08
"""The share in which the nodes of the start take few volumes."""
WINDOWS: Final = 0.05
"""The share with a group of Windows nodes, which can grow and takes none of the pods."""
_SECONDS: Final = (20, 60, 60, 600)
"""How long webhooks deny or fail."""
FAILS: Final = "fails"
_ANSWERS: Final = (
    ("CREATE", ("pods/eviction",), "deny/429/"),
    ("CREATE", ("pods/eviction",), "deny/403/"),
    ("CREATE", ("pods/eviction",), FAILS),
    ("CREATE", ("pods",), FAILS),
    ("UPDATE", ("pods",), FAILS),
    ("UPDATE", ("nodes",), FAILS),
    ("*", ("pods", "pods/eviction"), FAILS),
)
"""Operation, resources and answer. The last is a policy engine that is down with the nodes it ran on."""

type Json = dict[str, Any]


def with_surroundings(rnd: random.Random, storm: Storm) -> Storm:
    """Return a storm in which some of all this is so."""
    if chance(rnd, SIDECARS):
        storm = one_changed(rnd, storm, _with_sidecar)
    if chance(rnd, HELD):
        storm = one_changed(rnd, storm, _held)
    if chance(rnd, QUOTAS):
        storm = replace(storm, objects=(*storm.objects, _quota(rnd, storm)))
    if chance(rnd, SLOW):
        storm = replace(storm, detach_seconds=rnd.choice((10, 30, 60)))
    if chance(rnd, WEBHOOKS):
        storm = with_events(storm, *_webhook(rnd, storm))
    if chance(rnd, LIMITED):
        storm = replace(storm, objects=(*storm.objects, *_limits(storm, rnd.choice((2, 3, 5)))))
    if chance(rnd, WINDOWS):
        storm = replace(storm, groups=(*storm.groups, _windows(storm)))
    return storm


def _limits(storm: Storm, most: int) -> Iterator[Json]:
    """Yield of each node how many volumes it takes."""
    for name in (f"{group.name}-{n + 1}" for group in storm.groups for n in range(group.size)):
        driver = {"name": DRIVER, "nodeID": name, "allocatable": {"count": most}}
        yield {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSINode",
            "metadata": {"name": name},
            "spec": {"drivers": [driver]},
        }


def _windows(storm: Storm) -> NodeGroupSpec:
    """Return a group like the first, of nodes that keep away pods for Linux as EKS advises."""
    startup = timedelta(seconds=100)
    return storm.groups[0].model_copy(
        update={
            "name": "windows",
            "kind": "asg",
            "size": 1,
            "max": 4,
            "renew": False,
            "startup": Span(least=startup, most=startup),
            "labels": {"kubernetes.io/os": "windows"},
            "taints": ({"key": "os", "value": "windows", "effect": "NoSchedule"},),
        }
    )


def _with_sidecar(workload: Workload) -> Workload:
    """Return a workload whose native sidecar requests a part of the CPU."""
    part = workload.cpu // 3
    return replace(workload, cpu=workload.cpu - part, sidecar_cpu=part)


def _held(workload: Workload) -> Workload:
    return replace(workload, held=True)


def _quota(rnd: random.Random, storm: Storm) -> Json:
    """Return a quota of what runs at the start, or of one pod more."""
    pods = sum(w.replicas for w in storm.workloads if w.kind != "DaemonSet")
    pods += sum(storm.nodes for w in storm.workloads if w.kind == "DaemonSet")
    cpu = sum((w.cpu + w.sidecar_cpu) * w.replicas for w in storm.workloads)
    cpu += sum(w.cpu * storm.nodes for w in storm.workloads if w.kind == "DaemonSet")
    more = rnd.choice((0, 0, 1, 3))
    hard = rnd.choice(({"pods": str(pods + more)}, {"requests.cpu": f"{cpu + 500 * more}m"}))
    scopes = rnd.choice(({}, {"scopes": ["NotTerminating"]}, {"scopes": ["NotBestEffort"]}))
    spec = {"hard": hard, **scopes}
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "quota"},
        "spec": spec,
    }


def _webhook(rnd: random.Random, storm: Storm) -> Iterator[Applied]:
    """Yield a webhook that denies or fails, and its end."""
    operation, resources, answer = rnd.choice(_ANSWERS)
    of = rnd.choice(("", rnd.choice(storm.workloads).name)) if answer != FAILS else ""
    hook = webhook(f"{answer}{'' if answer == FAILS else of}", operation, resources)
    begins = timedelta(seconds=rnd.choice((0, 10, 10, 60)))
    yield Applied(at=begins, objects=(configuration(hook),))
    ends = begins + timedelta(seconds=rnd.choice(_SECONDS))
    yield Applied(at=ends, objects=(configuration(),))
