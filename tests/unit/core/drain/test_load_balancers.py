"""Nodes that load balancers leave out: when it helps, and when it would take away what serves."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from plimsoll.domain.actions import Exclude
from plimsoll.domain.drain import plan_drain
from plimsoll.domain.drain.load_balancers import LEAD, MOST_SERVICES, SETTLED
from plimsoll.domain.kubernetes import (
    EXCLUDED,
    EXCLUDED_BY_US,
    LabelSelection,
    Node,
    Pod,
    Ref,
    Selector,
    Taint,
)
from plimsoll.domain.node_groups import Instance
from plimsoll.domain.observation import Observation
from tests.support.builders import NOON, ZONE_B, a_node, a_pod
from tests.support.observations import actions, interrupted, looked, noon

OURS = {EXCLUDED: EXCLUDED_BY_US}
SERVICE = LabelSelection(
    ref=Ref("Service", "default", "web"), selector=Selector(labels={"app": "web"}), node_ports=True
)
LOCAL = replace(SERVICE, local=True)
DAEMON = ("DaemonSet", "proxy")


def seen_with(*nodes: Node, pods: tuple[Pod, ...] = (), service=SERVICE) -> Observation:
    return looked([*nodes], [*pods], label_selections=[service])


def left_out(seen: Observation, seconds: float = 1, **how) -> list[str]:
    plan = plan_drain(seen, noon(seconds), **how)
    assert all(action.excluded for action in actions(plan, Exclude))
    return [action.node.name for action in actions(plan, Exclude)]


def test_an_interrupted_node_is_left_out_at_once_where_half_of_its_zone_stays():
    assert left_out(seen_with(interrupted("spot"), a_node("od"))) == ["spot"]


def test_nothing_is_written_where_no_load_balancer_sends_requests_to_nodes():
    inside = replace(SERVICE, node_ports=False)
    assert left_out(seen_with(interrupted("spot"), a_node("od"), service=inside)) == []


def test_where_less_than_half_of_a_zone_stays_its_nodes_take_requests_until_their_last_half_minute():
    seen = seen_with(interrupted("s1"), interrupted("s2"), a_node("od"))
    before = 118 - LEAD.total_seconds() - 1
    assert left_out(seen, before) == []
    assert left_out(seen, before + 1) == ["s1", "s2"]


def test_nodes_of_another_zone_count_in_the_last_half_minute_only():
    seen = seen_with(interrupted("spot"), a_node("od", zone=ZONE_B))
    assert left_out(seen) == []
    assert left_out(seen, 100) == ["spot"]


@pytest.mark.parametrize(
    "other",
    [
        interrupted("other"),
        a_node("other", ready=False),
        a_node("other", unschedulable=True),
        a_node("other", labels={EXCLUDED: ""}),
        replace(a_node("other"), taints=(Taint(key="karpenter.sh/disrupted"),)),
        replace(a_node("other"), created=NOON - SETTLED + timedelta(seconds=200)),
    ],
    ids=["interrupted", "not Ready", "cordoned", "left out", "Karpenter takes it", "just joined"],
)
def test_a_node_takes_requests_to_its_end_where_no_other_target_stays(other):
    assert left_out(seen_with(interrupted("spot"), other), 110) == []


def test_half_is_counted_of_the_nodes_before_any_was_left_out():
    """Else each interruption would take half of what the one before had left."""
    gone = [interrupted(name, labels=OURS) for name in ("s1", "s2")]
    seen = seen_with(*gone, interrupted("s3"), a_node("a"), a_node("b"))
    assert left_out(seen) == []


@pytest.mark.parametrize(
    "node",
    [
        interrupted("spot", labels=OURS),
        interrupted("spot", labels={EXCLUDED: "karpenter"}),
        interrupted("spot", ready=False),
    ],
    ids=["by us", "by somebody else", "not Ready"],
)
def test_a_node_that_takes_no_requests_is_not_written_to(node):
    assert left_out(seen_with(node, a_node("a"), a_node("b"))) == []


def test_a_recommended_node_is_left_out_when_its_turn_has_come():
    told = interrupted("spot", kind="rebalance-recommendation", ends=None)
    assert left_out(seen_with(told, a_node("od"))) == ["spot"]
    assert told.interruption is not None
    waits = replace(told, interruption=replace(told.interruption, cordoned=None))
    assert left_out(seen_with(waits, a_node("od"))) == []


def test_a_node_that_returns_is_not_left_out_first():
    spot = interrupted("spot")
    assert spot.instance is not None
    again = Instance(id=spot.instance, state="running", launched=noon(60))
    seen = replace(seen_with(spot, a_node("od")), instances={spot.instance: again})
    assert left_out(seen, 90) == []


def test_the_label_of_an_interruption_that_nobody_remembers_is_taken_off():
    seen = looked([a_node("a", labels=OURS), a_node("b", labels={EXCLUDED: ""})], [])
    plan = plan_drain(seen, NOON)
    assert [(a.node.name, a.excluded) for a in actions(plan, Exclude)] == [("a", False)]
    assert plan.busy


def test_a_label_is_kept_while_a_record_cannot_be_read():
    for odd in ({"unreadable": "is no JSON"}, {"newer_record": True}):
        node = replace(a_node("a", labels=OURS), **odd)
        assert actions(plan_drain(looked([node], []), NOON), Exclude) == []


def test_what_the_api_server_refused_is_not_tried_again_and_costs_no_other_label():
    seen = seen_with(interrupted("spot"), a_node("od"))
    (action,) = actions(plan_drain(seen, noon(1)), Exclude)
    assert action.target != "Node spot"
    plan = plan_drain(seen, noon(1), refused={action.target: "no rights"})
    assert actions(plan, Exclude) == []
    assert "no rights" in plan.waiting["spot"]


def test_a_node_with_a_pod_that_only_it_sends_requests_to_waits_until_that_leaves():
    pod, other = a_pod("web-1", node="spot"), a_pod("web-2", node="od")
    nodes = (interrupted("spot"), a_node("od"))
    assert left_out(seen_with(*nodes, pods=(pod, other), service=LOCAL), 110) == []
    assert left_out(seen_with(*nodes, pods=(pod, other))) == ["spot"]
    leaving = replace(pod, deleting=noon(30))
    assert left_out(seen_with(*nodes, pods=(leaving, other), service=LOCAL)) == ["spot"]


def test_a_pod_of_a_daemon_set_keeps_its_node_only_where_no_other_serves():
    """It ends with its node, and so would never make way."""
    pod = a_pod("proxy-1", node="spot", owner=DAEMON)
    nodes = (interrupted("spot"), a_node("od"))
    assert left_out(seen_with(*nodes, pods=(pod,), service=LOCAL)) == []
    other = a_pod("proxy-2", node="od", owner=DAEMON)
    assert left_out(seen_with(*nodes, pods=(pod, other), service=LOCAL)) == ["spot"]
    asleep = replace(other, ready=False)
    assert left_out(seen_with(*nodes, pods=(pod, asleep), service=LOCAL)) == []


def test_of_too_many_services_in_a_namespace_all_pods_are_taken_to_be():
    """Looking for each would take a tenant's own time from everybody."""
    elsewhere = Selector(labels={"app": "another"})
    many = [
        replace(LOCAL, ref=Ref("Service", "default", f"s-{n}"), selector=elsewhere)
        for n in range(MOST_SERVICES + 1)
    ]
    mine, theirs = a_pod("a", node="spot"), a_pod("b", node="spot", namespace="theirs")
    nodes = [interrupted("spot"), a_node("od")]
    assert left_out(looked(nodes, [mine], label_selections=many[1:])) == ["spot"]
    assert left_out(looked(nodes, [mine], label_selections=many)) == []
    assert left_out(looked(nodes, [theirs], label_selections=many)) == ["spot"]
