"""Other programs that act in a cluster, whoever responds. One file and one line here make another.

Those that set back or scale keep to what the owner has declared: by manifests, and by `apply` and
`scale` of the timeline. Those that drain follow what their documentation and source say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from plimsoll_simulation.rigs.rig_cluster import RigCluster
from plimsoll_simulation.rigs.simulated.other_controllers.cluster_autoscaler import (
    ClusterAutoscaler,
)
from plimsoll_simulation.rigs.simulated.other_controllers.gitops import GitOps
from plimsoll_simulation.rigs.simulated.other_controllers.hpa import Hpa
from plimsoll_simulation.rigs.simulated.other_controllers.karpenter import Karpenter
from plimsoll_simulation.rigs.simulated.other_controllers.karpenter_consolidation import (
    ConsolidatingKarpenter,
)
from plimsoll_simulation.rigs.simulated.other_controllers.kubectl_drain import KubectlDrain
from plimsoll_simulation.rigs.simulated.other_controllers.managed_node_group import ManagedNodeGroup
from plimsoll_simulation.rigs.simulated.other_controllers.node_termination_handler import (
    ImdsMode,
    QueueMode,
)
from plimsoll_simulation.rigs.simulated.other_controllers.operator import Operator
from plimsoll_simulation.rigs.simulated.other_controllers.other_controller import OtherController
from plimsoll_simulation.rigs.simulated.other_controllers.vpa import Vpa
from plimsoll_simulation.rigs.simulated.rig_cluster import SimulatedRigCluster
from plimsoll_simulation.rigs.simulated.time import VirtualClock
from plimsoll_simulation.scenario.clusters import OtherControllerName

type Making[C: RigCluster] = tuple[
    timedelta, Callable[[C, VirtualClock, str], OtherController[Any]]
]
"""How often one looks, and how it is made."""

EVICTORS: Final[Mapping[OtherControllerName, Making[RigCluster]]] = {
    "kubectl-drain": (timedelta(seconds=1), KubectlDrain),
    "managed-node-group": (timedelta(seconds=1), ManagedNodeGroup),
    "nth": (timedelta(seconds=2), QueueMode),
    "nth-imds": (timedelta(seconds=2), ImdsMode),
}
"""Those that need an API server and a fleet only, whatever the rig."""

OTHER_CONTROLLERS: Final[Mapping[OtherControllerName, Making[SimulatedRigCluster]]] = {
    **EVICTORS,
    "cluster-autoscaler": (timedelta(seconds=10), ClusterAutoscaler),
    "gitops": (timedelta(minutes=1), GitOps),
    "hpa": (timedelta(seconds=15), Hpa),
    "karpenter": (timedelta(seconds=1), Karpenter),
    "karpenter-consolidation": (timedelta(seconds=1), ConsolidatingKarpenter),
    "operator": (timedelta(seconds=5), Operator),
    "vpa": (timedelta(minutes=1), Vpa),
}
"""All of them."""


def other_controllers_of[C: RigCluster](
    rig_clusters: Iterable[C], known: Mapping[OtherControllerName, Making[C]], clock: VirtualClock
) -> Sequence[tuple[timedelta, OtherController[Any]]]:
    """Return those that the scenario names for each cluster, with how often each looks."""
    return [
        (period, make(rig_cluster, clock, name))
        for rig_cluster in rig_clusters
        for name in rig_cluster.spec.other_controllers
        for period, make in [known[name]]
    ]
