"""AWS's answers about the fleet, in memory: Auto Scaling, EKS and EC2 as the services ask them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from plimsoll.adapters.nodegroups.kind import target_of
from plimsoll.adapters.nodegroups.refusals import refusal_of
from plimsoll.domain.errors import Refused, Throttled
from plimsoll.domain.interruptions import LifecycleHook
from plimsoll.domain.kubernetes import Node, Resources, Taint
from plimsoll.domain.node_groups import (
    Instance,
    LaunchesThrottled,
    NodeGroup,
    NodeTemplate,
    NotGrown,
    Refusal,
)
from plimsoll.domain.notices import (
    GONE,
    LEAVING,
    HealthScheduledChange,
    InstanceNotice,
    SpotInterruption,
    StateChange,
    ZonalShift,
    parse,
)
from plimsoll_simulation.fake_aws.fleet import AGE, Fleet, Group
from plimsoll_simulation.fake_aws.machines import Machine, node_labels, zone_id_of
from plimsoll_simulation.fake_aws.nodegroups import KARPENTER
from plimsoll_simulation.rigs.simulated.network import SimulatedNetwork
from plimsoll_simulation.rigs.simulated.time import VirtualClock
from plimsoll_simulation.scenario.events import event_of

_LIST = {
    "asg": "autoscaling:DescribeAutoScalingGroups",
    "eks-nodegroup": "eks:DescribeNodegroup",
}
_GROW = {
    "asg": "autoscaling:LaunchInstances",
    "eks-nodegroup": "eks:UpdateNodegroupConfig",
}
_ASKABLE = {"spot-interruption", "health-scheduled-change"}
"""What EC2 says when asked, besides the state; everything else is told by events only."""


class SimulatedNodeGroups:
    """The port `NodeGroups` over the fleet of one cluster."""

    def __init__(self, fleet: Fleet, wire: SimulatedNetwork, clock: VirtualClock) -> None:
        self._fleet = fleet
        self._wire = wire
        self._clock = clock
        self._answered: dict[tuple[str, str], int | Refusal] = {}
        """A token that comes again gets the same answer, also when that was a refusal.

        For a refusal this is the careful assumption, and the emulated rig's too: no page of AWS says
        what becomes of it. LaunchInstances tells want of capacity inside an answer that succeeded,
        and promised is only that what succeeded is not done twice:
        https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-idempotency.html
        """

    def list(self, nodes: Sequence[Node]) -> Sequence[NodeGroup]:  # noqa: ARG002 - the fleet knows its own templates
        """Return the groups of the cluster that can grow."""
        found = {
            g.spec.name: g
            for g in self._fleet.groups.values()
            if g.spec.kind in {*_LIST, KARPENTER}
        }
        # Auto Scaling describes all groups in one call, EKS one node group in each.
        calls = dict.fromkeys(
            (_LIST[g.spec.kind], name if g.spec.kind == "eks-nodegroup" else "")
            for name, g in found.items()
            if g.spec.kind in _LIST
        )
        for operation, _ in calls:
            self._wire.to_aws(operation, int)
        return [group_of(group) for group in found.values()]

    def grow(self, group: NodeGroup, add: int, zone: str | None, token: str) -> int:
        """Ask for more nodes and return how many were promised; a repeated token asks once.

        Raises:
            Refused: more than the group may hold, or no capacity.
        """
        return self._wire.to_aws(_GROW[group.kind], partial(self._grow, group, add, zone, token))

    def heartbeat(self, hook: LifecycleHook, instance: str) -> None:
        """Let an instance wait for its hook once more as long as the hook's timeout."""
        self._wire.to_aws(
            "autoscaling:RecordLifecycleActionHeartbeat",
            lambda: self._fleet.heartbeat(instance, hook.name, self._clock.now()),
        )
        self._clock.touch(self._fleet)

    def complete_lifecycle(self, hook: LifecycleHook, instance: str) -> None:
        """Let an instance that is drained wait for a hook no longer."""
        self._wire.to_aws(
            "autoscaling:CompleteLifecycleAction",
            lambda: self._fleet.complete(instance, hook.name, self._clock.now()),
        )
        self._clock.touch(self._fleet)

    def terminate(self, instance: str, *, decrement: bool) -> None:
        """Terminate an instance, and lower the desired capacity of its group; else it launches another."""
        self._wire.to_aws(
            "autoscaling:TerminateInstanceInAutoScalingGroup",
            lambda: self._fleet.end(instance, self._clock.now(), decrement=decrement),
        )
        self._clock.touch(self._fleet)

    def _grow(self, group: NodeGroup, add: int, zone: str | None, token: str) -> int:
        key, now = (group.name, token), self._clock.now()
        what = f"launch {add} instances of {group.name}"
        if key not in self._answered:
            try:
                grown = self._fleet.group(group.name)
                before = grown.desired
                if group.kind == "asg":
                    started = self._fleet.launch(group.name, add, zone, now)
                    self._answered[key] = add
                else:
                    target = target_of(group, add, grown.spec.max, now)
                    started = self._fleet.raise_desired(group.name, target, now)
                    self._answered[key] = target - group.desired
                grown.add(grown.desired - before, started)
                self._clock.touch(self._fleet)
            except NotGrown:
                raise
            except Refused as error:
                said = _refusal(error, now)
                if isinstance(said, LaunchesThrottled):
                    raise Throttled(str(error)) from error
                if group.kind != "asg":  # who only sets a count may ask again
                    raise NotGrown(what, said) from error
                self._answered[key] = said
        answer = self._answered[key]
        if not isinstance(answer, int):
            raise NotGrown(what, answer)
        return answer


class SimulatedInstances:
    """The port `Instances` over all fleets of a drill."""

    def __init__(self, fleets: Sequence[Fleet], wire: SimulatedNetwork) -> None:
        self._fleets = fleets
        self._wire = wire

    def describe(self, ids: Sequence[str]) -> Mapping[str, Instance]:
        """Return what EC2 knows of these instances; the unknown ones are left out."""
        return self._wire.to_aws(
            "ec2:DescribeInstances", lambda: {m.id: instance_of(m) for m in self._known(ids)}
        )

    def interrupted(self, ids: Sequence[str]) -> Sequence[InstanceNotice]:
        """Return notices for those instances that are going, as events would have told."""
        for operation in ("DescribeInstances", "DescribeSpotInstanceRequests"):
            self._wire.to_aws(f"ec2:{operation}", int)
        return self._wire.to_aws(
            "ec2:DescribeInstanceStatus",
            lambda: [notice for m in self._known(ids) for notice in _interrupted_groups(m)],
        )

    def zones(self) -> Mapping[str, str]:
        """Return the zones of the region in this account: their ids, and their names."""
        names = {zone for f in self._fleets for g in f.groups.values() for zone in g.spec.zones}
        return self._wire.to_aws(
            "ec2:DescribeAvailabilityZones", lambda: {zone_id_of(name): name for name in names}
        )

    def _known(self, ids: Sequence[str]) -> Sequence[Machine]:
        return [f.machine[i] for i in ids for f in self._fleets if i in f.machine]


class SimulatedZonalShifts:
    """The port `ZonalShifts` over the timeline of a drill."""

    def __init__(
        self, standing: Callable[[], Sequence[ZonalShift]], wire: SimulatedNetwork
    ) -> None:
        self._standing = standing
        self._wire = wire

    def active(self) -> Sequence[ZonalShift]:
        """Return notices of the shifts that stand, as events would have told."""
        self._wire.to_aws("arc-zonal-shift:ListZonalShifts", int)
        return self._wire.to_aws("arc-zonal-shift:ListAutoshifts", self._standing)


def group_of(group: Group) -> NodeGroup:
    """Return a group of the fleet as the planner sees it."""
    spec = group.spec
    failed = group.failed
    counted = [m for m in group.alive if not m.disclaimed]
    return NodeGroup(
        kind=spec.kind,
        name=spec.name,
        capacity=spec.capacity,
        zones=spec.zones,
        desired=group.desired,
        min_size=0,
        max_size=spec.max,
        instances=frozenset(m.id for m in counted),
        zone_of={m.id: m.zone for m in counted},
        instance_types=(spec.instance_type,),
        template=NodeTemplate(
            labels=node_labels(spec, spec.zones[0]),
            taints=tuple(
                Taint(key=t["key"], value=t.get("value", ""), effect=t.get("effect", "NoSchedule"))
                for t in spec.taints
            ),
            allocatable=Resources.parse(spec.allocatable),
        ),
        launchable=spec.kind == "asg",
        provisions=spec.kind == KARPENTER,
        launched={m.id: m.launched for m in counted if m.ready - m.launched < AGE},
        refusals=() if failed is None else (_refusal(failed[1], failed[0]),),
        waiting=frozenset(m.id for m in counted if m.waits),
        hooks=tuple(
            LifecycleHook(
                group=spec.name,
                name=hook.name,
                timeout=hook.timeout,
                longest=100 * hook.timeout,
                ours=hook.ours,
            )
            for hook in dict.fromkeys(hook for m in counted for hook in m.held)
        ),
        renew=spec.renew,
    )


def _refusal(error: Refused, at: datetime) -> Refusal:
    code, _, words = str(error).partition(": ")
    return refusal_of(code, words, at, zone=getattr(error, "zone", None))


def instance_of(machine: Machine) -> Instance:
    """Return a machine as EC2 describes it."""
    return Instance(
        id=machine.id,
        state=machine.state,
        launched=machine.launched,
        zone=machine.zone,
        instance_type=machine.group.instance_type,
        spot=machine.spot,
        tags=((f"kubernetes.io/cluster/{machine.cluster}", "owned"),),
        ended_by_owner=machine.ended_by_owner,
    )


def _interrupted_groups(machine: Machine) -> Iterator[InstanceNotice]:
    """Yield what can be asked for: spot request status, scheduled events, and the death itself."""
    told = [(kind, time) for kind, time in machine.notices if kind in _ASKABLE]
    since = machine.gone or next((t for k, t in machine.notices if k == "state-change"), None)
    if since is not None and machine.state in GONE | LEAVING:
        told.append(("state-change", since))
    for kind, time in told:
        goes = machine.maintenance if kind == "health-scheduled-change" else machine.terminates
        event = event_of(kind, machine, time, goes=goes, state=machine.state)
        for notice in parse(event, received=time, drills=True):
            if isinstance(notice, SpotInterruption | HealthScheduledChange | StateChange):
                # Not the event's id: whoever asks EC2 never saw the event.
                yield replace(notice, id=f"{machine.id}/{kind}")
