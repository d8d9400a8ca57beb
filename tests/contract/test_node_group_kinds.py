"""Every kind of node group that is asked: AWS's protocols over the fleet, and the simulated rig's twin in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from plimsoll.adapters.aws import Aws
from plimsoll.adapters.nodegroups import KINDS, AwsNodeGroups
from plimsoll.domain.errors import NotFound
from plimsoll.domain.node_groups import FIRST_SIGN_WITHIN, NodeGroup, NotGrown, expected_nodes
from plimsoll.services.ports import NodeGroups
from plimsoll.services.reconcile_memory import ReconcileMemory
from plimsoll_simulation.fake_aws.fleet import ANSWER, STALLED, Fleet
from plimsoll_simulation.fake_aws.nodegroups import GroupKind, NodeGroupSpec
from plimsoll_simulation.rigs.simulated.aws import SimulatedNodeGroups
from plimsoll_simulation.rigs.simulated.network import SimulatedNetwork
from plimsoll_simulation.rigs.simulated.time import VirtualClock
from plimsoll_testbed.rigs.emulated.awsfleet import SERVICES, AwsFleet

from .conftest import REGION, T0
from .test_nodegroups import empty

ASKED = sorted(KINDS.keys() - {"karpenter"})


@dataclass
class Scene:
    """A fleet of one group, as Plimsoll sees and asks it."""

    fleet: Fleet
    clock: VirtualClock
    groups: NodeGroups

    def read(self) -> NodeGroup:
        (group,) = self.groups.list([])
        return group

    def wait(self, span: timedelta) -> None:
        self.clock.run_until(self.clock.now() + span)


def a_fleet(kind: GroupKind, *, renew: bool = True) -> Fleet:
    spec = NodeGroupSpec(
        name="web",
        kind=kind,
        capacity="on-demand",
        instance_type="m6i.xlarge",
        zones=(f"{REGION}a",),
        size=1,
        max=4,
        renew=renew,
        allocatable={"cpu": "4", "memory": "16Gi"},
    )
    return Fleet("shop", [spec], seed=7, now=T0)


@contextmanager
def over_http(
    fleet: Fleet, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> Iterator[NodeGroups]:
    with AwsFleet([fleet], clock=clock.now, lock=nullcontext(), changed=clock.touch) as server:
        for service in SERVICES:
            monkeypatch.setenv(f"AWS_ENDPOINT_URL_{service}", server.url)
        yield AwsNodeGroups(Aws(REGION), "shop", clock, api=empty)


@pytest.fixture(params=ASKED)
def kind(request: pytest.FixtureRequest) -> GroupKind:
    found: GroupKind = request.param
    return found


@pytest.fixture(params=["AWS", "simulated"])
def opened(
    request: pytest.FixtureRequest,
    credentials: None,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Callable[[GroupKind], Scene]]:
    with ExitStack() as stack:

        def open_scene(kind: GroupKind) -> Scene:
            clock, fleet = VirtualClock(T0), a_fleet(kind)
            clock.follow(fleet)
            clock.run_until(T0)
            if request.param == "simulated":
                groups: NodeGroups = SimulatedNodeGroups(fleet, SimulatedNetwork(clock, 0.0), clock)
            else:
                groups = stack.enter_context(over_http(fleet, clock, monkeypatch))
            return Scene(fleet, clock, groups)

        yield open_scene


@pytest.fixture
def scene(opened: Callable[[GroupKind], Scene], kind: GroupKind) -> Scene:
    return opened(kind)


def test_static_nodes_are_no_group_that_could_be_asked(
    opened: Callable[[GroupKind], Scene],
) -> None:
    scene = opened("static")
    assert scene.groups.list([]) == []
    assert len([*scene.fleet.alive()]) == 1


def test_a_group_says_what_it_is(scene: Scene, kind: str) -> None:
    group = scene.read()
    assert (group.kind, group.capacity, group.may_grow) == (kind, "on-demand", True)
    assert (group.desired, group.max_size, group.addable_nodes) == (1, 4, 3)
    assert group.instances == {machine.id for machine in scene.fleet.alive()}
    assert (group.zones, group.instance_types) == ((f"{REGION}a",), ("m6i.xlarge",))
    assert group.template is not None
    assert group.template.allocatable.cpu > 3000


def test_the_same_request_twice_is_one_and_its_nodes_come(scene: Scene) -> None:
    group = scene.read()
    for _ in range(2):
        assert scene.groups.grow(group, 2, None, "token") == 2
    assert (scene.read().desired, len(scene.read().instances)) == (3, 3)
    scene.wait(timedelta(minutes=2))
    assert sum(machine.joined for machine in scene.fleet.alive()) == 3


def test_a_group_is_asked_for_no_more_than_its_maximum(scene: Scene) -> None:
    full = scene.read()
    scene.groups.grow(full, 3, None, "one")
    with pytest.raises(NotGrown) as told:
        scene.groups.grow(scene.read(), 1, None, "two")
    assert [refusal.kind for refusal in told.value.refusals] == ["group-maximum"]
    assert scene.read().desired == 4


def test_what_others_ask_between_our_read_and_our_write_is_never_lowered_and_a_size_counts_once(
    scene: Scene, kind: str
) -> None:
    group = scene.read()
    scene.fleet.raise_desired("web", 3, scene.clock.now())
    assert scene.groups.grow(group, 1, None, "token") == 1
    launched_beside = kind == "asg"
    assert scene.read().desired == (4 if launched_beside else 3)


def test_an_instance_that_is_taken_back_is_the_one_that_ends_and_no_other_comes(
    scene: Scene,
) -> None:
    scene.groups.grow(scene.read(), 2, None, "token")
    scene.wait(timedelta(minutes=2))
    group = scene.read()
    chosen, *kept = sorted(group.instances)
    scene.groups.terminate(chosen, decrement=True)
    with suppress(NotFound):  # it comes twice
        scene.groups.terminate(chosen, decrement=True)
    scene.wait(timedelta(minutes=2))
    after = scene.read()
    assert (after.desired, after.instances) == (2, frozenset(kept))


def test_an_instance_that_is_renewed_is_replaced(scene: Scene) -> None:
    (old,) = scene.read().instances
    scene.groups.terminate(old, decrement=False)
    scene.wait(timedelta(minutes=2))
    after = scene.read()
    assert after.desired == len(after.instances) == 1
    assert old not in after.instances


def test_a_refusal_is_told_with_its_type_at_once_or_at_the_next_reading(scene: Scene) -> None:
    scene.fleet.refuse("web", T0 + timedelta(minutes=5))
    group, told = scene.read(), list[Any]()
    try:
        scene.groups.grow(group, 1, None, "token")
    except NotGrown as error:
        told += error.refusals
    else:
        scene.wait(ANSWER)
        read = scene.read()
        told += read.refusals
        assert expected_nodes(read, [], scene.clock.now()).overdue == 1
    assert [(r.kind, r.zone, r.instance_type) for r in told] == [
        ("insufficient-capacity", f"{REGION}a", "m6i.xlarge")
    ]


def test_what_a_group_accepts_and_does_not_begin_is_not_expected_for_long(
    scene: Scene, kind: str
) -> None:
    scene.fleet.refuse("web", T0 + timedelta(minutes=5), STALLED)
    memory, group = ReconcileMemory(), scene.read()
    try:
        memory.grown(group, scene.groups.grow(group, 1, None, "token"), scene.clock.now())
    except NotGrown:
        assert kind == "asg", "only a launch is answered at once"
        return

    def overdue() -> int:
        memory.note_groups([scene.read()], scene.clock.now())
        (known,) = memory.groups or ()
        return expected_nodes(known, [], scene.clock.now()).overdue

    assert overdue() == 0
    scene.wait(FIRST_SIGN_WITHIN)
    assert overdue() == 1
