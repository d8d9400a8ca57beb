"""One run: what it is like, and when notices and deadlines come."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from plimsoll.adapters.clock import SystemClock
from plimsoll.adapters.kubernetes.calls import OVERLAYS
from plimsoll.domain.errors import Refused
from plimsoll.domain.notices import DRILL_SOURCE
from plimsoll.domain.registry import IndexEntry
from plimsoll_simulation.checkout import Checkout
from plimsoll_simulation.fake_cluster.settings import Settings
from plimsoll_simulation.scenario.events import ACCOUNT
from plimsoll_simulation.scenario.manifests import Manifest
from plimsoll_testbed.rigs.beside_karpenter.instances import ZONE, instance_of
from plimsoll_testbed.rigs.beside_karpenter.services import CLUSTER, InProcessPlimsoll
from plimsoll_testbed.rigs.beside_karpenter.watched_cluster import POOL, Outcome, WatchedCluster
from plimsoll_testbed.rigs.cluster.installation import install
from plimsoll_testbed.rigs.controlplane import ControlPlane
from plimsoll_testbed.rigs.karpenter import Karpenter, instance_type

CPUS_PER_NODE: Final = 4
HEARS_S: Final = 1.0
"""From a notice until Plimsoll has its event."""
NOTICE_S: Final = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What one run is like. All spot nodes get their notices in one second."""

    plimsoll: bool = True
    queue_delay: float | None = 15.0
    """Seconds until Karpenter hears beyond those until Plimsoll does; None: it never does."""
    node_startup: str = "40s"
    most_nodes: int = 12
    """The NodePool's limit."""


def play(
    objects: Sequence[Manifest], setting: Setting, *, say: Callable[[str], None] = lambda _: None
) -> Outcome:
    """Play one run, which takes about four minutes.

    Args:
        objects: what the cluster holds; every pod goes to nodes of the NodePool.
        setting: what the run is like.
        say: told what the services log.

    Raises:
        Refused: a program does not start, a service failed, or not all became Ready.
    """
    with ExitStack() as exits:
        plane = exits.enter_context(ControlPlane(settings=Settings()))
        manifests = Checkout.find().root / "infra" / "cluster"
        for folder in (manifests, *(manifests / overlay for overlay in OVERLAYS)):
            install(plane.transport(), folder)
        sizes = [
            instance_type("m5.xlarge", (ZONE,), cpu=str(CPUS_PER_NODE), memory="16Gi", pods="58")
        ]
        karpenter = exits.enter_context(Karpenter(plane, sizes, startup=setting.node_startup))
        karpenter.make_pool(POOL, limits={"cpu": str(CPUS_PER_NODE * setting.most_nodes)})
        run = WatchedCluster(plane, objects)
        run.start()
        plimsoll = InProcessPlimsoll(plane, say)
        exits.callback(plimsoll.end)
        old = run.nodes()
        now = SystemClock().now()
        plimsoll.index.put(
            [
                IndexEntry(instance=instance_of(n), cluster=CLUSTER, node=n, zone=ZONE, seen=now)
                for n in old
            ]
        )
        events: list[tuple[float, Callable[[], None]]] = [
            (NOTICE_S, lambda: run.end_instances(old))
        ]
        if setting.plimsoll:
            bodies = [_event(node, now) for node in old]
            events.append((HEARS_S, lambda: plimsoll.notices(bodies)))
        if setting.queue_delay is not None:
            hears = HEARS_S + setting.queue_delay
            events.append((hears, lambda: interrupt(karpenter, old)))
        run.watch(sorted(events, key=lambda event: event[0]))
        for error in plimsoll.errors:
            raise Refused("a service failed") from error
        return run.outcome


def interrupt(karpenter: Karpenter, nodes: Sequence[str]) -> None:
    """Let Karpenter hear that nodes are interrupted."""
    for node in nodes:
        karpenter.interrupt(node)


def _event(node: str, now: datetime) -> str:
    instance = instance_of(node)
    event = {
        "version": "0",
        "id": instance,
        "detail-type": "EC2 Spot Instance Interruption Warning",
        "source": DRILL_SOURCE,
        "account": ACCOUNT,
        "time": f"{now:%Y-%m-%dT%H:%M:%SZ}",
        "region": ZONE[:-1],
        "resources": [f"arn:aws:ec2:{ZONE}:instance/{instance}"],
        "detail": {"instance-id": instance, "instance-action": "terminate"},
    }
    return json.dumps(event)
