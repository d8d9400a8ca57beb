"""The cluster that `plimsoll plan` is asked about, and what a stack knows of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial

from plimsoll.domain.capacity import StartWindows
from plimsoll.domain.errors import BadInput
from plimsoll.domain.kubernetes import (
    MIN_ON_DEMAND,
    Ref,
    namespace_floors,
    namespace_promises,
)
from plimsoll.domain.observation import Observation
from plimsoll.domain.placement import (
    Asked,
    ChosenLayout,
    ChosenLayouts,
    FloorStatus,
    Injected,
    PlacementPlan,
    asked_promises,
    choices_of,
    chosen_layouts,
    layouts_there,
)
from plimsoll.domain.reports import months_until
from plimsoll.domain.spot import reclaim_rates
from plimsoll.services.node_launches import with_launches
from plimsoll.services.placement import with_stop_times
from plimsoll.services.ports import ClusterApi
from plimsoll_cli.environment import Environment, Said
from plimsoll_cli.options import Choice, registered, unregistered
from plimsoll_cli.plan.load_lines import Facts, short_name


def observed(environment: Environment, choice: Choice) -> tuple[ClusterApi, Observation]:
    """Return the API of the cluster that the options name, and an observation with its policy.

    Raises:
        BadInput: they name none.
    """
    if choice.by_kubeconfig:
        cluster, api = unregistered(environment, choice)
        return api, replace(api.observe(), policy=cluster.policy)
    if choice.cluster is None:
        raise BadInput("name the cluster with --cluster, or with --context of a kubeconfig")
    deployed = environment.deployed(choice.stack)
    cluster = registered(deployed, choice.cluster)
    api, now = deployed.clusters.open(cluster), environment.clock.now()
    seen = replace(api.observe(), policy=cluster.policy)
    seen = with_launches(seen, deployed.groups(cluster), deployed.index, Said())
    observed_times = deployed.observed_times(environment.clock, Said())
    return api, with_stop_times(observed_times, cluster, seen, _asked(api, seen), now)


def layouts_of(
    environment: Environment, choice: Choice, facts: Facts, seen: Observation, told: Injected
) -> ChosenLayouts:
    """Return the layouts that a placement run would choose now for promised workloads; nothing is written.

    Args:
        environment: the environment of the command.
        choice: the cluster that the options name.
        facts: what its load lines follow from.
        seen: an observation of it.
        told: what its admission policy is told.
    """
    asked, now = asked_promises(seen, facts.promises, facts.floors), environment.clock.now()
    remembered: Mapping[Ref, ChosenLayout] = {}
    if asked.promises and choice.cluster is not None and not choice.by_kubeconfig:
        remembered = environment.deployed(choice.stack).layouts.read(choice.cluster)
    windows = StartWindows(seen=seen, now=now)
    choices = [*choices_of(asked, windows, facts.rates, remembered, told)]
    return chosen_layouts(asked, layouts_there(asked, remembered, told), choices)


def _asked(api: ClusterApi, seen: Observation) -> Asked:
    namespaces = api.namespaces()
    return asked_promises(seen, namespace_promises(namespaces), namespace_floors(namespaces))


def facts_of(environment: Environment, choice: Choice, api: ClusterApi, now: datetime) -> Facts:
    """Return what load lines follow from; without a stack neither rates nor scores are known."""
    namespaces = api.namespaces()
    read = partial(
        Facts, floors=namespace_floors(namespaces), promises=namespace_promises(namespaces)
    )
    if choice.by_kubeconfig or choice.cluster is None:
        return read(rates={}, scores=None)
    deployed = environment.deployed(choice.stack)
    cluster = registered(deployed, choice.cluster)
    return read(
        rates=reclaim_rates(*deployed.pools.memory(cluster.place, now), now),
        scores=deployed.reports.scores(cluster.name, months_until(now)),
    )


def status_of(found: PlacementPlan, name: str) -> FloorStatus:
    """Return one workload of a plan by `namespace/name`.

    Raises:
        BadInput: no workload of that name has a floor.
    """
    for status in found.workloads:
        if short_name(status.floor.workload) == name:
            return status
    raise BadInput(f"{name} has no on-demand floor: annotate the workload with {MIN_ON_DEMAND}")
