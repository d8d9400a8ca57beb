"""Refuse the mode act beside other drainers, which evict before a replacement serves."""

from __future__ import annotations

from collections.abc import Iterator

from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.errors import BadInput, PlimsollError
from plimsoll.domain.registry import Cluster
from plimsoll_cli.doctor.kubernetes_probe import KubernetesProbe
from plimsoll_cli.doctor.other_drainers import managed_spot
from plimsoll_cli.environment import Deployed, warn


def refuse_beside_drainers(deployed: Deployed, cluster: Cluster) -> None:
    """Refuse the mode act where others drain, and no budget makes them wait.

    If the cluster cannot be read, warn: the doctor checks whether it can be reached.

    Raises:
        BadInput: others drain; the message names them and the cure.
    """
    try:
        api = deployed.clusters.open(cluster)
        probe = KubernetesProbe(deployed.requests(cluster).transport, cluster.name, SerialWorkers())
        found = [] if probe.guards() else list(_drainers(probe, managed_spot(api.nodes())))
    except PlimsollError as error:
        warn(f"cannot read which other programs drain nodes of {cluster.name}: {error}")
        return
    if found:
        raise BadInput(
            f"other programs drain nodes of {cluster.name}: {', '.join(found)}. They evict pods before the "
            "replacements serve. Guard workloads first (plimsoll guard install), or give --beside-drainers"
        )


def _drainers(probe: KubernetesProbe, managed: int) -> Iterator[str]:
    for drainer in probe.drainers():
        if drainer.drains:
            yield f"{drainer.name} in namespace {drainer.namespace}"
    if managed:
        yield f"EKS, with {managed} spot nodes of managed node groups"
