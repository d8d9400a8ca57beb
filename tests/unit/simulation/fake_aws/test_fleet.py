from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from plimsoll.domain.errors import NotFound, Refused
from plimsoll_simulation.durations import parse_span
from plimsoll_simulation.fake_aws.fleet import Fleet, Group
from plimsoll_simulation.fake_aws.machines import Hook, Machine
from plimsoll_simulation.fake_aws.nodegroups import NodeGroupSpec

START = datetime(2026, 1, 1, tzinfo=UTC)


def after_start(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def spec(name: str = "spot-a", **changes: Any) -> NodeGroupSpec:
    fields: dict[str, Any] = {
        "name": name,
        "kind": "asg",
        "capacity": "spot",
        "instance_type": "m5.2xlarge",
        "zones": ("us-east-1a", "us-east-1b"),
        "size": 3,
        "max": 5,
        "startup": parse_span("70s"),
        "allocatable": {"cpu": "7910m", "memory": "29Gi", "pods": "58"},
    }
    return NodeGroupSpec(**(fields | changes))


class Listener:
    def __init__(self) -> None:
        self.heard: list[str] = []
        self.asks: list[str] = []
        self.launches: list[str] = []

    def asked(self, group: Group, now: datetime) -> None:
        self.asks.append(f"{group.spec.name} {(now - START).total_seconds():g}")

    def launched(self, machine: Machine, now: datetime) -> None:
        self.launches.append(machine.node)

    def joined(self, machine: Machine, now: datetime) -> None:
        self.heard.append(f"{machine.node} joined {(now - START).total_seconds():g}")

    def vanished(self, machine: Machine, now: datetime) -> None:
        self.heard.append(f"{machine.node} vanished {(now - START).total_seconds():g}")


def a_fleet(*specs: NodeGroupSpec, seed: int = 0) -> tuple[Fleet, list[str]]:
    made = Fleet("harbor", specs or (spec(),), seed=seed, now=START)
    listener = Listener()
    made.tell(listener)
    made.step(START)
    return made, listener.heard


def test_the_nodes_of_the_start_join_at_once_and_are_dealt_to_the_zones_in_turn():
    fleet, heard = a_fleet()
    assert heard == ["spot-a-1 joined 0", "spot-a-2 joined 0", "spot-a-3 joined 0"]
    assert [m.zone[-1] for m in fleet.alive()] == ["a", "b", "a"]


def test_of_several_hooks_the_first_to_give_up_and_the_last_to_be_completed_end_an_instance():
    fleet, _ = a_fleet()
    ours, theirs = (Hook(timeout=timedelta(seconds=100), ours=ours) for ours in (True, False))
    for machine in (machines := list(fleet.alive())):
        fleet.hold(machine, ours, START)
        fleet.hold(machine, theirs, START)
    both, one, _ = machines
    for machine in (both, one):
        fleet.complete(machine.id, ours.name, after_start(10))
    fleet.complete(both.id, theirs.name, after_start(20))
    with pytest.raises(NotFound):
        fleet.heartbeat(one.id, ours.name, after_start(30))
    fleet.step(after_start(200))
    ended = [machine.gone for machine in machines]
    assert ended == [after_start(20), after_start(100), after_start(100)]


def test_an_instance_that_was_stopped_is_launched_again_under_its_id():
    fleet, heard = a_fleet(spec(kind="static", max=3))
    machine = next(fleet.alive())
    machine.returns = timedelta(seconds=60)
    fleet.end(machine.id, after_start(10))
    fleet.step(after_start(10))
    assert machine.state == "stopped"
    fleet.step(after_start(500))
    assert heard[-2:] == ["spot-a-1 vanished 10", "spot-a-1 joined 140"]
    assert (machine.launched, machine.state) == (after_start(70), "running")


def test_an_owner_who_ends_an_instance_wants_one_less():
    fleet, heard = a_fleet()
    machine = next(fleet.alive())
    machine.ended_by_owner = True
    fleet.end(machine.id, after_start(10), decrement=True)
    fleet.step(after_start(500))
    assert heard[3:] == ["spot-a-1 vanished 10"]
    assert fleet.groups["spot-a"].lowered_by_owner == 1


def added(fleet: Fleet) -> list[str]:
    return [machine.node for machine in fleet.alive() if machine.added]


def test_a_node_is_added_that_a_group_launches_only_since_it_was_asked_for_more_than_its_owner_wants():
    fleet, _ = a_fleet()
    group, (first, second, third) = fleet.group("spot-a"), list(fleet.alive())
    fleet.end(first.id, after_start(10))
    fleet.step(after_start(10))  # spot-a-4 is launched for it
    group.add(1, fleet.launch("spot-a", 1, None, after_start(20)))
    assert added(fleet) == ["spot-a-5"]
    fleet.end(second.id, after_start(30))
    fleet.step(after_start(30))
    assert added(fleet) == ["spot-a-5", "spot-a-6"]
    fleet.end(third.id, after_start(40), decrement=True)
    fleet.step(after_start(40))
    assert (group.added, len(group.alive)) == (0, 3)


def test_a_node_is_added_that_a_group_launches_once_ec2_has_more():
    fleet, _ = a_fleet()
    fleet.refuse("spot-a", until=after_start(60))
    fleet.end(next(fleet.alive()).id, after_start(10))
    fleet.step(after_start(10))
    fleet.group("spot-a").add(1, fleet.raise_desired("spot-a", 4, after_start(20)))
    fleet.step(after_start(100))
    assert (len(fleet.group("spot-a").alive), added(fleet)) == (4, ["spot-a-5"])


def test_a_scheduled_change_is_postponed_by_the_last_word_on_it_and_a_sooner_end_still_wins():
    fleet, heard = a_fleet(spec(kind="static"))
    heard.clear()
    first, second = list(fleet.alive())[:2]
    for machine in (first, second):
        fleet.maintain(machine, after_start(60))
        fleet.maintain(machine, after_start(300))
    fleet.end(second.id, after_start(120))
    fleet.step(after_start(500))
    assert heard == ["spot-a-2 vanished 120", "spot-a-1 vanished 300"]


def test_more_than_the_maximum_is_refused_in_the_words_of_the_cloud():
    fleet, _ = a_fleet()
    with pytest.raises(Refused, match="New SetDesiredCapacity value 6 is above max value 5"):
        fleet.launch("spot-a", 3, None, after_start(1))
    assert fleet.group("spot-a").desired == 3


def test_a_group_that_gets_no_capacity_asks_again():
    fleet, heard = a_fleet()
    heard.clear()
    fleet.refuse("spot-a", until=after_start(60))
    with pytest.raises(Refused, match=r"InsufficientInstanceCapacity.*m5\.2xlarge"):
        fleet.launch("spot-a", 1, None, after_start(1))
    assert fleet.raise_desired("spot-a", 4, after_start(10)) == []
    fleet.step(after_start(500))
    assert heard == ["spot-a-4 joined 145"]  # refused at 15 and 45, granted at 75
    assert fleet.group("spot-a").failed is not None


def test_a_group_gets_as_many_instances_as_ec2_has_and_the_rest_once_there_are_more():
    fleet, heard = a_fleet()
    heard.clear()
    fleet.group("spot-a").available = 4
    with pytest.raises(Refused, match=r"InsufficientInstanceCapacity.*m5\.2xlarge"):
        fleet.launch("spot-a", 2, None, after_start(1))
    fleet.raise_desired("spot-a", 5, after_start(10))
    fleet.step(after_start(90))
    assert heard == ["spot-a-4 joined 85"]  # of two one was refused at 15
    fleet.group("spot-a").available = 5
    fleet.step(after_start(500))
    assert heard[1:] == ["spot-a-5 joined 175"]


def test_an_instance_that_ends_is_not_replaced_while_ec2_has_no_more():
    fleet, heard = a_fleet()
    heard.clear()
    fleet.group("spot-a").available = 2
    fleet.end(next(fleet.alive()).id, after_start(120))
    fleet.step(after_start(500))
    assert heard == ["spot-a-1 vanished 120"]
