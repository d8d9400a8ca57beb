"""The cluster that `plimsoll plan` is asked about, and one workload of its plan."""

from __future__ import annotations

from dataclasses import replace

from plimsoll.domain.errors import BadInput
from plimsoll.domain.kubernetes import MIN_ON_DEMAND
from plimsoll.domain.observation import Observation
from plimsoll.domain.placement import FloorStatus, PlacementPlan
from plimsoll.services.ports import ClusterApi
from plimsoll_cli.environment import Environment
from plimsoll_cli.options import Choice, registered, unregistered


def observed(environment: Environment, choice: Choice) -> tuple[ClusterApi, Observation]:
    """Return the API of the cluster that the options name, and an observation with its policy.

    Raises:
        BadInput: they name none.
    """
    if choice.by_kubeconfig:
        cluster, api = unregistered(environment, choice)
    elif choice.cluster is None:
        raise BadInput("name the cluster with --cluster, or with --context of a kubeconfig")
    else:
        deployed = environment.deployed(choice.stack)
        cluster = registered(deployed, choice.cluster)
        api = deployed.clusters.open(cluster)
    return api, replace(api.observe(), policy=cluster.policy)


def status_of(found: PlacementPlan, name: str) -> FloorStatus:
    """Return one workload of a plan by `namespace/name`.

    Raises:
        BadInput: no workload of that name has a floor.
    """
    for status in found.workloads:
        ref = status.floor.workload
        if f"{ref.namespace}/{ref.name}" == name:
            return status
    raise BadInput(f"{name} has no on-demand floor: annotate the workload with {MIN_ON_DEMAND}")
