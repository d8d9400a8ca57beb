"""What can be played today, by rig. What cannot is refused by name before anything starts.

The simulated rig plays every other controller and kind of node group; a fault names its rigs in `faults`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import get_args

from plimsoll_simulation.fake_aws.nodegroups import GroupKind
from plimsoll_simulation.scenario.clusters import ClusterSpec, OtherControllerName
from plimsoll_simulation.scenario.faults import faults_of
from plimsoll_simulation.scenario.problems import BadScenario, Problem, listed
from plimsoll_simulation.scenario.scenario import Scenario
from plimsoll_simulation.scenario.timeline import FaultEntry, NoticeEntry, ZonalShiftEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class RigCapabilities:
    """What one rig can play."""

    faults: frozenset[str] = frozenset()
    services: frozenset[str] = frozenset()
    """Those of AWS that `aws-throttled` can throttle."""
    other_controllers: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset({"asg", "eks-nodegroup", "static"})
    """Of node groups."""
    stops: bool = False
    """Whether an instance can return after its end."""
    shifts: bool = False
    """Whether it plays zonal shifts."""
    binds: bool = False
    """Whether it can be said on which nodes pods stand at time 0."""
    remembers: bool = False
    """Whether it can be said what Plimsoll remembers at time 0."""
    queues: bool = False
    """Whether it plans batch queues."""
    devices: bool = False
    """Whether device plugins may report late."""


RIGS: Mapping[str, RigCapabilities] = {
    "simulated": RigCapabilities(
        faults=faults_of("simulated"),
        services=frozenset({"autoscaling", "dynamodb", "ec2", "eks", "sqs"}),
        other_controllers=frozenset(get_args(OtherControllerName.__value__)),
        kinds=frozenset(get_args(GroupKind.__value__)),
        stops=True,
        shifts=True,
        binds=True,
        remembers=True,
        queues=True,
        devices=True,
    ),
    **{
        rig: RigCapabilities(
            faults=faults_of(rig),
            other_controllers=frozenset({"kubectl-drain", "managed-node-group", "nth", "nth-imds"}),
        )
        for rig in ("emulated", "cluster", "localstack")
    },
}
"""The rigs that are built."""


def unsupported(scenario: Scenario, rig: str) -> list[Problem]:
    """Return what of a scenario this rig cannot play; `str()` of each is a message."""
    return list(_unsupported(scenario, rig))


def refuse_unsupported(scenario: Scenario, rig: str) -> None:
    """Refuse a scenario that this rig cannot play.

    Raises:
        BadScenario: with everything that is refused, by name.
    """
    if problems := unsupported(scenario, rig):
        raise BadScenario(problems)


def _unsupported(scenario: Scenario, rig: str) -> Iterator[Problem]:
    can = RIGS.get(rig)
    if can is None:
        yield Problem(
            place=scenario.clusters[0].place,
            found=f"the rig {rig}, which is unknown",
            allowed=listed(sorted(RIGS)),
            cure="Choose one of these with --rig",
        )
        return
    for cluster in scenario.clusters:
        yield from _unsupported_in(cluster, rig, can)
    for entry in scenario.timeline:
        if isinstance(entry, FaultEntry):
            yield from _unsupported_fault(entry, rig, can)
        if isinstance(entry, ZonalShiftEntry) and not can.shifts:
            yield Problem(
                place=entry.place,
                found=f"a zonal shift, which the rig {rig} cannot play yet",
                allowed="a timeline without zonal shifts",
                cure="Take it out of the timeline, or choose the rig simulated",
            )
        if isinstance(entry, NoticeEntry) and entry.returns is not None and not can.stops:
            yield Problem(
                place=entry.place,
                found=f"an instance that returns, which the rig {rig} cannot play yet",
                allowed="instances that stay gone",
                cure="Take returns out of the entry",
            )


def _unsupported_in(cluster: ClusterSpec, rig: str, can: RigCapabilities) -> Iterator[Problem]:
    for other_controller in cluster.other_controllers:
        if other_controller not in can.other_controllers:
            yield Problem(
                place=cluster.place,
                found=f"the controller {other_controller}, which the rig {rig} cannot play yet",
                allowed=listed(sorted(can.other_controllers)) or "no other controllers",
                cure="Take it out of otherControllers",
            )
    for group in cluster.node_groups:
        if group.kind not in can.kinds:
            yield Problem(
                place=cluster.place,
                found=f"the node group {group.name} of kind {group.kind}, which the rig {rig} cannot play yet",
                allowed=listed(sorted(can.kinds)),
                cure="Choose another kind, or the simulated rig",
            )
        if group.devices_after and not can.devices:
            yield Problem(
                place=cluster.place,
                found=f"devicesAfter of the node group {group.name}, which the rig {rig} cannot play yet",
                allowed="device plugins that report at once",
                cure="Take it out of the group, or choose the rig simulated",
            )
    if cluster.bindings and not can.binds:
        yield Problem(
            place=cluster.place,
            found=f"bindings, which the rig {rig} cannot play: its scheduler chooses the nodes",
            allowed="no bindings",
            cure="Take bindings out of the cluster, or choose the rig simulated",
        )
    if cluster.observed and not can.remembers:
        yield Problem(
            place=cluster.place,
            found=f"observed, which the rig {rig} cannot play: its tables are empty at time 0",
            allowed="nothing observed",
            cure="Take observed out of the cluster, or choose the rig simulated",
        )
    if cluster.queues is not None and not can.queues:
        yield Problem(
            place=cluster.place,
            found=f"batch queues, which the rig {rig} cannot plan yet",
            allowed="no queues",
            cure="Take queues out of the cluster, or choose the rig simulated",
        )


def _unsupported_fault(entry: FaultEntry, rig: str, can: RigCapabilities) -> Iterator[Problem]:
    wanted = [
        ("fault", entry.fault, can.faults, "Take it out of the timeline, or choose another rig"),
        ("service", entry.service, can.services, "Name another service"),
    ]
    for what, name, known, cure in wanted:
        if name is not None and name not in known:
            yield Problem(
                place=entry.place,
                found=f"the {what} {name}, which the rig {rig} cannot play yet",
                allowed=listed(sorted(known)),
                cure=cure,
            )
            return
