"""The instances behind a cluster, as a model: time is an argument, and nobody is called.

A group keeps its desired capacity; what is asked for becomes a node after its start-up time; what
is told to end vanishes on schedule. Whoever drives the fleet says what AWS was asked, steps it, and
tells the cluster what `Side` hears. The simulated rig drives it from memory, the emulated one from
a server that speaks AWS's protocols.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, Protocol

from plimsoll.domain.errors import NotFound, Refused
from plimsoll_simulation.fake_aws.launch_refusals import LaunchRefused
from plimsoll_simulation.fake_aws.machines import Hook, Machine, instance_id, startup_share
from plimsoll_simulation.fake_aws.nodegroups import KARPENTER, NodeGroupSpec

AGE: Final = timedelta(hours=6)
"""How long the machines of the start have been running."""

ANSWER: Final = timedelta(seconds=5)
"""How long after its desired capacity is raised a group learns that EC2 has none."""

RETRY: Final = timedelta(seconds=30)
"""How soon a group asks again for an instance that it did not get."""


STALLED: Final = "launches-stalled"
"""The fault in which a group begins no launch, whatever it is to have, and says nothing of it."""


class Side(Protocol):
    """Who hears what becomes of the machines: usually the cluster."""

    def asked(self, group: Group, now: datetime) -> None:
        """Somebody asked for more of a group, whether or not it was granted."""

    def launched(self, machine: Machine, now: datetime) -> None:
        """A machine starts."""

    def joined(self, machine: Machine, now: datetime) -> None:
        """A machine's node is there and Ready."""

    def vanished(self, machine: Machine, now: datetime) -> None:
        """A machine is gone, with everything that still ran on it."""


class Group:
    """One node group: what is wanted, and the machines it has had."""

    def __init__(self, spec: NodeGroupSpec) -> None:
        self.spec = spec
        self.desired = spec.size
        self.machines: list[Machine] = []
        self.refused_until: dict[str, datetime] = {}
        """Fault -> until when no launch gets by."""
        self.available: int | None = None
        """How many instances EC2 has for it in all; None: as many as it wants."""
        self.failed: tuple[datetime, LaunchRefused] | None = None
        """When the newest launch failed that the group made by itself, and why."""
        self.lowered_by_owner = 0
        """How often an owner ended an instance, and wanted one less."""
        self.added = 0
        """How many of those it is to have Plimsoll asked for, and has not taken back: the owner wants the others."""

    @property
    def alive(self) -> Sequence[Machine]:
        """The machines that start or run."""
        return [m for m in self.machines if m.gone is None]

    @property
    def in_service(self) -> int:
        """How many count for its desired capacity."""
        return sum(not (m.waits or m.disclaimed) for m in self.alive)

    def has_more_than_owner_wants(self, *, ending: int = 0) -> bool:
        """Whether more are in service than its owner wants, without so many that are about to end."""
        return self.in_service - ending > self.desired - self.added

    def add(self, count: int, started: Sequence[Machine]) -> None:
        """Take in that Plimsoll asked for so many more, and which start at once: the group launches the others later."""
        self.added += count
        for machine in started:
            machine.added = True

    def next_zone(self) -> str:
        """Return the zone with the fewest machines, the first of those: dealt in turn."""
        zones = [m.zone for m in self.alive]
        return min(self.spec.zones, key=zones.count)

    def refuses(self, count: int, now: datetime) -> str | None:
        """Return the fault by which EC2 launches no further machines, so many at once; None where it does."""
        faults = (fault for fault, until in self.refused_until.items() if now < until)
        scarce = self.available is not None and len(self.alive) + count > self.available
        return next(faults, "insufficient-capacity" if scarce else None)


class Fleet:
    """The machines of one cluster.

    Args:
        cluster: its name, part of what the seed draws.
        specs: the node groups at the start; their nodes join in the first step.
        seed: draws instance ids and start-up times, whatever is asked and when.
        now: the time at which it all begins.
    """

    def __init__(
        self, cluster: str, specs: Sequence[NodeGroupSpec], *, seed: int, now: datetime
    ) -> None:
        self.cluster = cluster
        self.groups: Mapping[str, Group] = {spec.name: Group(spec) for spec in specs}
        self.machine: dict[str, Machine] = {}
        """By instance id, also those that are gone: EC2 knows them for an hour."""
        self._seed = seed
        self._due: list[tuple[datetime, int, Machine | Group]] = []
        self._sequence = 0
        self._sides: list[Side] = []
        for group in self.groups.values():
            for _ in range(group.spec.size):
                self._start(group, group.next_zone(), launched=now - AGE, ready=now)

    def tell(self, side: Side) -> None:
        """Let somebody hear of every machine, those of the start included."""
        self._sides.append(side)
        for machine in self.alive():
            side.launched(machine, machine.launched)

    def group(self, name: str) -> Group:
        """Return a group.

        Raises:
            NotFound: there is none of that name.
        """
        if name not in self.groups:
            raise NotFound(f"there is no node group {name} in cluster {self.cluster}")
        return self.groups[name]

    def on_node(self, node: str) -> Machine | None:
        """Return the machine of a node, if it is still there."""
        return next((m for m in self.alive() if m.node == node), None)

    def alive(self) -> Iterator[Machine]:
        """Yield the machines that start or run, group by group in the order of the scenario."""
        for group in self.groups.values():
            yield from group.alive

    def launch(
        self, name: str, count: int, zone: str | None, now: datetime, *, replacement: bool = False
    ) -> Sequence[Machine]:
        """Start machines beyond what is desired, as LaunchInstances does: all or none.

        Raises:
            NotFound: no such group.
            LaunchRefused: EC2 refuses just now.
            Refused: it cannot grow, or is full.
        """
        group = self.group(name)
        spec = group.spec
        if spec.kind == "static":
            raise Refused(f"node group {name} is static: nothing can be asked of it")
        if not replacement:
            for side in self._sides:
                side.asked(group, now)
            if group.desired + count > spec.max:
                raise Refused(
                    f"ValidationError: New SetDesiredCapacity value {group.desired + count} is "
                    f"above max value {spec.max} for the AutoScalingGroup."
                )
        stalled = group.refused_until.get(STALLED, now)
        if now < stalled:
            group.desired += 0 if replacement else count
            self._push(stalled, group)
            return []
        if (fault := group.refuses(count, now)) is not None:
            raise LaunchRefused(fault, spec, zone or group.next_zone())
        if not replacement:
            group.desired += count
        started = []
        for _ in range(count):
            share = startup_share(self._seed, self.cluster, name, len(group.machines) + 1)
            ready = now + spec.startup.at(share)
            started.append(self._start(group, zone or group.next_zone(), launched=now, ready=ready))
        return started

    def raise_desired(self, name: str, desired: int, now: datetime) -> Sequence[Machine]:
        """Set the desired capacity; the machines that are missing start at once.

        Nothing is ever lowered here: nobody in a drill may do that.

        Raises:
            NotFound: no such group.
            Refused: it cannot grow, or not that far. What EC2 refuses is no refusal here: the
                group goes on asking.
        """
        group = self.group(name)
        if desired <= group.desired:
            return []
        try:
            return self.launch(name, desired - group.desired, None, now)
        except LaunchRefused:
            group.desired = desired
            self._push(now + ANSWER, group)
            return []

    def refuse(self, name: str, until: datetime, fault: str = "insufficient-capacity") -> None:
        """Let no launch of a group get by until then, or until later if that was said."""
        told = self.group(name).refused_until
        told[fault] = max(until, told.get(fault, until))

    def end(self, instance: str, at: datetime, *, decrement: bool = False) -> None:
        """Let a machine vanish at that time, unless it goes sooner; its group may want one less.

        Raises:
            NotFound: there is no such instance.
        """
        machine = self.machine.get(instance)
        if machine is None:
            raise NotFound(f"there is no instance {instance}")
        if machine.gone is None and (machine.terminates is None or at < machine.terminates):
            group = self.groups[machine.group.name]
            group.desired -= decrement
            group.lowered_by_owner += decrement and machine.ended_by_owner
            if decrement and not machine.ended_by_owner:
                group.added = max(0, group.added - 1)
            machine.terminates = at
            self._push(at, machine)

    def disclaim(self, machine: Machine) -> None:
        """Let a machine count no more for its NodePool, as when its NodeClaim is deleted, while it runs on."""
        if not machine.disclaimed:
            machine.disclaimed = True
            group = self.groups[machine.group.name]
            group.desired -= 1
            group.lowered_by_owner += 1

    def maintain(self, machine: Machine, at: datetime) -> None:
        """Let a scheduled change take a machine away at that time, whatever was said of it before."""
        machine.maintenance = at
        self._push(at, machine)

    def hold(self, machine: Machine, hook: Hook, now: datetime) -> None:
        """Let a machine wait for a lifecycle hook before it ends, or wait for it once more.

        The first hook that gives up ends it, since that is what a hook does by default: ABANDON. Its
        group replaces it at once, unless it wants one less. Sources:
        https://docs.aws.amazon.com/autoscaling/ec2/userguide/lifecycle-hooks-overview.html,
        https://repost.aws/questions/QUKC2EtnyGSPS_RWk7AD6BKQ/asg-terminate-before-launch
        """
        if not machine.held:
            self._push(now, self.groups[machine.group.name])
        machine.held[hook] = now + hook.timeout
        self._push(now + hook.timeout, machine)

    def heartbeat(self, instance: str, name: str, now: datetime) -> None:
        """Let a machine wait for a lifecycle hook once more.

        Raises:
            NotFound: there is no such instance, or it waits for no such hook.
        """
        self.hold(*self._waiting(instance, name), now)

    def complete(self, instance: str, name: str, now: datetime) -> None:
        """Let a machine wait for a lifecycle hook no longer; the last one ends it.

        Raises:
            NotFound: there is no such instance, or it waits for no such hook.
        """
        machine, hook = self._waiting(instance, name)
        del machine.held[hook]
        if not machine.held:
            self.end(instance, now)

    def _waiting(self, instance: str, name: str) -> tuple[Machine, Hook]:
        machine = self.machine.get(instance)
        hook = None if machine is None else machine.hook(name)
        if machine is None or hook is None:
            raise NotFound(f"No active Lifecycle Action found with instance ID {instance}")
        return machine, hook

    def step(self, now: datetime) -> datetime | None:
        """Do all that is due by `now`; return when there is more to do, None for never."""
        while self._due and self._due[0][0] <= now:
            when, _, what = heapq.heappop(self._due)
            match what:
                case Group():
                    self._keep(what, when)
                case Machine():
                    self._advance(what, when)
        return self._due[0][0] if self._due else None

    def _start(self, group: Group, zone: str, *, launched: datetime, ready: datetime) -> Machine:
        number = len(group.machines) + 1
        machine = Machine(
            id=instance_id(self._seed, self.cluster, group.spec.name, number),
            cluster=self.cluster,
            group=group.spec,
            number=number,
            zone=zone,
            launched=launched,
            ready=ready,
        )
        group.machines.append(machine)
        self.machine[machine.id] = machine
        self._push(ready, machine)
        for side in self._sides:
            side.launched(machine, launched)
        return machine

    def _push(self, when: datetime, what: Machine | Group) -> None:
        self._sequence += 1
        heapq.heappush(self._due, (when, self._sequence, what))

    def _advance(self, machine: Machine, when: datetime) -> None:
        if machine.gone is not None:
            if machine.returns is not None and machine.gone + machine.returns <= when:
                machine.launch_again(when, when + machine.group.startup.at(0))
                self._push(machine.ready, machine)
                for side in self._sides:
                    side.launched(machine, when)
            return
        ends = [machine.ends, *machine.held.values()]
        if any(end is not None and end <= when for end in ends):
            machine.gone = when
            for side in self._sides:
                side.vanished(machine, when)
            if machine.returns is not None:
                self._push(when + machine.returns, machine)
            self._keep(self.groups[machine.group.name], when)
        elif not machine.joined and machine.ready <= when:
            machine.joined = True
            for side in self._sides:
                side.joined(machine, when)

    def _keep(self, group: Group, when: datetime) -> None:
        missing = group.desired - group.in_service
        if missing <= 0 or group.spec.kind == "static":
            return
        if group.spec.kind == KARPENTER:  # which makes nodes for pods, and not for a count
            group.desired -= missing
            group.lowered_by_owner += missing
            return
        try:
            for _ in range(missing):  # as many as EC2 has
                for machine in self.launch(group.spec.name, 1, None, when, replacement=True):
                    machine.added = group.has_more_than_owner_wants()
        except LaunchRefused as error:
            group.failed = when, error
            self._push(when + RETRY, group)
