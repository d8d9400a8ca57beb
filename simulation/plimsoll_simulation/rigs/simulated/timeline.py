"""Plays the timeline of a drill: notices, faults, and what the owner does."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Protocol, assert_never

from plimsoll.domain.notices import ZonalShift, parse
from plimsoll_simulation.fake_aws.fleet import STALLED
from plimsoll_simulation.fake_aws.launch_refusals import LAUNCH_FAULTS
from plimsoll_simulation.fake_aws.machines import Machine
from plimsoll_simulation.measure.measure import Measurement
from plimsoll_simulation.rigs.rig_cluster import RigCluster
from plimsoll_simulation.rigs.simulated.time import VirtualClock
from plimsoll_simulation.scenario.drill import Drill
from plimsoll_simulation.scenario.events import event_of, shift_event
from plimsoll_simulation.scenario.manifests import Manifest
from plimsoll_simulation.scenario.timeline import (
    ApplyEntry,
    Entry,
    FaultEntry,
    NoticeEntry,
    ScaleEntry,
    ZonalShiftEntry,
)

OWNER_RETRY = timedelta(seconds=1)
"""How soon the owner tries again while the API server is down."""


class TakesEvents(Protocol):
    """Takes the events of a drill, and brings them to whoever responds."""

    def send(self, body: str, *, delay_seconds: float = 0.0) -> None:
        """Put an event on its way now, or later."""


class InjectsFaults(Protocol):
    """Plays faults of functions and of AWS."""

    def begin(self, entry: FaultEntry, now: datetime) -> None:
        """Let a fault begin; it ends by itself."""


@dataclass(slots=True, kw_only=True)
class Timeline:
    """The entries of a drill, from time 0 on."""

    drill: Drill
    seed: int
    clock: VirtualClock
    rig_clusters: Mapping[str, RigCluster]
    queue: TakesEvents
    measurement: Measurement
    say: Callable[[str], None]
    fault_injector: InjectsFaults
    doubled: bool = False
    """Whether every notice comes twice, fault or no fault."""
    errors: list[Exception] = field(default_factory=list)
    """What the cluster refused to its owner: the scenario is wrong."""
    shifts: list[ZonalShift] = field(default_factory=list)
    """Those that stand, told or not."""
    shifted: datetime | None = None
    """When the last of them began or was over."""
    _disturbing: list[FaultEntry] = field(default_factory=list)
    """Faults that notices meet just now."""
    _sent: int = 0
    _unplayed: int = 0

    def play(self, zero: datetime) -> None:
        """Set every entry on its time."""
        for number, entry in enumerate(self.drill.scenario.timeline):
            self._unplayed += 1
            self.clock.at(zero + entry.at, partial(self._begin, number, entry))

    @property
    def over(self) -> bool:
        """Whether the owner has done all that was to be done, also what had to wait."""
        return not self._unplayed

    def _begin(self, number: int, entry: Entry) -> None:
        match entry:
            case NoticeEntry():
                self._unplayed -= 1
                self._notices(number, entry)
            case FaultEntry():
                self._unplayed -= 1
                self._fault(entry)
            case ScaleEntry(scale=scale):
                rig_cluster = self.rig_clusters[scale.cluster]
                self._owner(
                    f"scales {scale.name} to {scale.replicas}", partial(rig_cluster.scale, entry)
                )
            case ApplyEntry():
                rig_cluster = self.rig_clusters[entry.cluster]
                objects: Sequence[Manifest] = self.drill.applied[entry.file]
                self._owner(f"applies {entry.file.name}", partial(rig_cluster.apply, objects))
            case ZonalShiftEntry():
                self._unplayed -= 1
                shift = self._shift(entry, active=True)
                self.shifts.append(shift)
                self.clock.at(self.clock.now() + entry.lasts, partial(self._back, entry, shift))
            case _:
                assert_never(entry)

    def _shift(self, entry: ZonalShiftEntry, *, active: bool) -> ZonalShift:
        """Send the event of a shift that begins or is over, and return it as it is read."""
        self.say(f"traffic {'leaves' if active else 'returns to'} {entry.zone}")
        practised_by = tuple(self.rig_clusters) if entry.practice else ()
        self.shifted = now = self.clock.now()
        event = shift_event(entry.zone, now, active=active, practised_by=practised_by)
        self._send(json.dumps(event))
        [shift] = parse(event, received=now, drills=True)
        assert isinstance(shift, ZonalShift)  # noqa: S101 - as it was made
        return shift

    def _back(self, entry: ZonalShiftEntry, shift: ZonalShift) -> None:
        self.shifts.remove(shift)
        self._shift(entry, active=False)

    def _owner(self, what: str, act: Callable[[], None]) -> None:
        try:
            act()
        except ConnectionRefusedError:
            again = self.clock.now() + OWNER_RETRY
            self.clock.at(again, partial(self._owner, what, act))
            return
        except Exception as error:  # noqa: BLE001 - raised again where the drill is run
            self.errors.append(error)
        self._unplayed -= 1
        self.say(f"the owner {what}")

    def _fault(self, entry: FaultEntry) -> None:
        now = self.clock.now()
        self.say(f"fault {entry.fault} begins")
        hit = [s for s in self.rig_clusters.values() if entry.cluster in {None, s.name}]
        match entry.fault:
            case "api-server-down":
                for rig_cluster in hit:
                    rig_cluster.take_api_away(now + entry.lasts)
            case "api-server-slow":
                for rig_cluster in hit:
                    rig_cluster.slow_down(entry.latency.total_seconds(), now + entry.lasts)
            case fault if fault in {*LAUNCH_FAULTS, STALLED}:
                for rig_cluster in self.rig_clusters.values():
                    rig_cluster.refuse_launches(entry.nodes, now + entry.lasts, fault)
            case "notices-lost" | "notices-delayed" | "notices-duplicated":
                self._disturbing.append(entry)
                self.clock.at(now + entry.lasts, partial(self._disturbing.remove, entry))
            case _:  # of functions or AWS; what no part of this rig plays was refused before
                self.fault_injector.begin(entry, now)
        self.clock.at(now + entry.lasts, partial(self.say, f"fault {entry.fault} ends"))

    def _notices(self, number: int, entry: NoticeEntry) -> None:
        draw = random.Random(f"{self.seed}/timeline/{number}")  # noqa: S311 - a drill, no secret
        chosen = select(entry, self.rig_clusters, draw)
        steps = max(1, len(chosen) - 1)
        for i, (rig_cluster, machine) in enumerate(chosen):
            when = self.clock.now() + entry.spread * i / steps
            self.clock.at(when, partial(self.give_notice, entry, rig_cluster, machine))

    def give_notice(self, entry: NoticeEntry, rig_cluster: RigCluster, machine: Machine) -> None:
        """Give an instance the notice of an entry now, whatever nodes that selects; none if it is gone."""
        if machine.gone is not None:
            return
        now = self.clock.now()
        goes = None if entry.goes_after is None else now + entry.goes_after
        if goes is not None:
            machine.returns = entry.returns
        for hook in entry.hooks or (None,):  # Auto Scaling sends an event for each of them
            self.say(f"{entry.notice} for {machine.node} of {rig_cluster.name}")
            self.measurement.noticed(now, machine.id, entry.notice, deadline=goes)
            name = "" if hook is None else hook.name
            event = event_of(entry.notice, machine, now, goes=goes, state=entry.state, hook=name)
            if event is not None:
                machine.notices.append((entry.notice, now))
                self._send(json.dumps(event), machine)
        if goes is not None:
            fleet = rig_cluster.fleet
            match entry.notice:
                case "lifecycle-terminate":
                    for hook in entry.hooks:
                        fleet.hold(machine, hook, now)
                case "health-scheduled-change":
                    fleet.maintain(machine, goes)
                case "state-change":
                    machine.ending, machine.ended_by_owner = entry.state, entry.by_owner
                    fleet.end(machine.id, goes, decrement=entry.by_owner)
                case _:
                    fleet.end(machine.id, goes)
            self.clock.touch(fleet)

    def _send(self, body: str, machine: Machine | None = None) -> None:
        """Put an event on its way, through whatever notices meet just now.

        A lost one never arrives, late ones arrive late, and doubled ones with a copy, out of order.
        """
        self._sent += 1
        draw = random.Random(f"{self.seed}/notices/{self._sent}")  # noqa: S311 - a drill, no secret
        met = [fault for fault in self._disturbing if draw.random() < fault.fraction]
        if any(fault.fault == "notices-lost" for fault in met):
            self.say("a zonal shift is not told" if machine is None else "a notice is lost")
            if machine is not None:
                self.measurement.notice_lost(machine.id)
            return
        delays = [0.0]
        spans = [f.delay.total_seconds() for f in met if f.fault == "notices-duplicated"]
        for most in [*spans, *([2.0] if self.doubled else [])]:
            delays = [draw.uniform(0, most) for _ in (*delays, 0)]
        late = sum(f.delay.total_seconds() for f in met if f.fault == "notices-delayed")
        for delay in delays:
            self.queue.send(body, delay_seconds=late + delay)


def select(
    entry: NoticeEntry, rig_clusters: Mapping[str, RigCluster], draw: random.Random
) -> Sequence[tuple[RigCluster, Machine]]:
    """Return the nodes that a notice is about, in the order of the scenario.

    The nodes of the start are drawn first, those that are gone too, so that the same ones go whoever responds. Later
    ones make up for those that are gone, in the order of their ids, which the seed draws.
    """
    selector = entry.nodes
    known = [
        (rig_cluster, machine)
        for rig_cluster in rig_clusters.values()
        for group in rig_cluster.fleet.groups.values()
        for machine in group.machines
        if entry.concerns(machine.group)
        and selector.takes_node(
            rig_cluster.name, machine.group, name=machine.node, zone=machine.zone
        )
    ]
    of_start = [match for match in known if match[1].of_start]
    later = [match for match in known if not match[1].of_start]
    drawn = [*draw.sample(of_start, len(of_start)), *sorted(later, key=lambda match: match[1].id)]
    there = [machine.id for _, machine in drawn if machine.joined and machine.gone is None]
    kept = set(there[: selector.keeps(len(there))])
    return [match for match in known if match[1].id in kept]
