"""Whether a cluster may act beside others that drain: they evict before a replacement serves."""

from __future__ import annotations

from collections.abc import Iterator

from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.errors import BadInput, PlimsollError
from plimsoll.domain.registry import Cluster
from plimsoll_cli.checks.drainers import managed_spot
from plimsoll_cli.checks.probe import KubernetesProbe
from plimsoll_cli.environment import Deployed, warn


def refuse_beside_drainers(deployed: Deployed, cluster: Cluster) -> None:
    """Refuse to let a cluster act where others drain, and no budget makes them wait.

    One that cannot be read is warned of: whether it can be reached is the doctor's question.

    Raises:
        BadInput: with those who drain, and what to do about it.
    """
    try:
        api = deployed.clusters.open(cluster)
        probe = KubernetesProbe(deployed.requests(cluster).transport, cluster.name, SerialWorkers())
        found = [] if probe.guards() else list(_drainers(probe, managed_spot(api.nodes())))
    except PlimsollError as error:
        warn(f"who else drains nodes of {cluster.name} cannot be read: {error}")
        return
    if found:
        raise BadInput(
            f"in {cluster.name} others drain too: {', '.join(found)}. They evict pods before their replacements "
            "serve, so replacing first is worth little. Guard workloads first (plimsoll guard install), or give "
            "--beside-drainers"
        )


def _drainers(probe: KubernetesProbe, managed: int) -> Iterator[str]:
    for drainer in probe.drainers():
        if drainer.drains:
            yield f"{drainer.name} in namespace {drainer.namespace}"
    if managed:
        yield f"EKS, which has {managed} spot nodes of managed node groups"
