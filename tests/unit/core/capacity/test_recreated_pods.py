"""A node is asked for a pod that somebody makes again, and for no other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plimsoll.domain.actions import Evict, Grow
from plimsoll.domain.drain import plan_drain
from plimsoll.domain.kubernetes import is_recreated
from tests.support.builders import a_group, a_pod
from tests.support.observations import actions, died, ec2, interrupted, looked, noon

GANG = {"plimsoll.dev/gang": "train"}


@pytest.mark.parametrize(
    ("owner", "restarts", "labels", "recreated"),
    [
        (None, True, {}, False),
        (None, False, {}, False),
        (("EphemeralRunner", "runner-x7k2p"), False, {}, False),
        (("TaskRun", "build"), False, {}, False),
        (("Job", "sum"), False, {}, True),
        (("StatefulSet", "db"), True, {}, True),
        (("Cluster", "postgres"), True, {}, True),
        (("PyTorchJob", "train"), False, GANG, True),
    ],
)
def test_a_node_is_asked_for_a_pod_that_somebody_makes_again(owner, restarts, labels, recreated):
    pod = replace(a_pod("p", node="spot", owner=owner, labels=labels, cpu="2"), restarts=restarts)
    seen = looked([interrupted("spot")], [pod], groups=[a_group(max_size=3)])

    assert is_recreated(pod) is recreated
    assert bool(actions(plan_drain(seen, noon(1)), Grow)) is recreated


@pytest.mark.parametrize("owner", [None, ("EphemeralRunner", "r"), ("Job", "r")])
def test_a_node_is_asked_for_the_dead_only_where_somebody_makes_them_again(owner):
    node = died(interrupted("spot"))
    pod = replace(a_pod("r", node="spot", owner=owner, cpu="2"), restarts=False)
    seen = looked([node], [pod], groups=[a_group(max_size=3)], instances=ec2(node))

    assert bool(actions(plan_drain(seen, noon(45)), Grow)) is is_recreated(pod)


def test_a_runner_that_leaves_takes_no_place_from_a_pod_that_comes_back():
    owned = a_pod("r", node="spot", owner=("EphemeralRunner", "r"), cpu="2")
    runner = replace(owned, restarts=False)
    plan = plan_drain(looked([interrupted("spot")], [runner], groups=[a_group()]), noon(90))

    assert [action.pod.name for action in actions(plan, Evict)] == ["r"]
    assert actions(plan, Grow) == []
