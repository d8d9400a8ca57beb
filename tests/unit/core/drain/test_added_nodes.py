"""Nodes that were added and are empty again, and nodes that were drained on advice for nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plimsoll.domain.actions import Cordon, Record, TerminateInstance, Uncordon
from plimsoll.domain.drain import EMPTY_FOR, added_entry, plan_drain
from plimsoll.domain.drain.added_nodes import taken_back
from plimsoll.domain.interruptions import Interruption, marked
from plimsoll.domain.kubernetes import DO_NOT_DISRUPT, Node
from plimsoll.domain.node_groups import NodeGroup
from plimsoll.domain.observation import Observation
from plimsoll.domain.reports import Report
from tests.support.builders import NOON, a_deployment, a_group, a_node, a_pod, pods_of
from tests.support.observations import actions, ec2, interrupted, looked, noon, sole_action

ADVICE = "rebalance-recommendation"
SETTLED = EMPTY_FOR.total_seconds()
HOUR = 3600


def a_group_of(*nodes: Node, desired: int | None = None, **how) -> NodeGroup:
    """Return a group of these nodes whose owner lets us terminate empty ones."""
    instances = frozenset(node.instance or "" for node in nodes)
    group = a_group("od", desired=len(nodes) if desired is None else desired)
    return replace(group, instances=instances, **{"renew": True, **how})


def told(group: NodeGroup, nodes: int = 1, at: float = 0, name: str = "i-1@noon") -> Report:
    """Return the report of an interruption for which nodes were added at that time."""
    return Report(
        interruption=name,
        cluster="harbor",
        node="spot",
        kind="spot-interruption",
        noticed=NOON,
        gone=noon(120),
        added=added_entry(group, nodes, noon(at), name.partition("@")[0]),
    )


def fresh(name: str = "new", seconds: float = 60) -> Node:
    return replace(a_node(name), created=noon(seconds))


def since(node: Node, seconds: float, *, cordoned: float | None = None) -> Node:
    """Return a node as `plan_drain` leaves it when it was seen empty at that time."""
    group = a_group_of(node)
    seen = looked([node], [], groups=[group], reports=[told(group)])
    (record,) = actions(plan_drain(seen, noon(seconds)), Record)
    found: Interruption = record.interruption
    if cordoned is not None:
        found = marked(found, cordoned=noon(cordoned))
    return replace(node, interruption=found, unschedulable=cordoned is not None)


def observed(node: Node, *others: Node, pods=(), **how) -> Observation:
    group = how.pop("group", None) or a_group_of(node)
    reports = how.pop("reports", [told(group)])
    return looked([node, *others], list(pods), groups=[group], reports=reports, **how)


def test_an_added_node_that_stays_empty_is_recorded_then_cordoned_then_terminated():
    node = fresh()
    (record,) = actions(plan_drain(observed(node), noon(900)), Record)
    assert (record.interruption.kind, record.interruption.cordoned) == ("scale-down", None)

    recorded = replace(node, interruption=record.interruption)
    assert plan_drain(observed(recorded), noon(900 + SETTLED - 1)).actions == ()
    said = ec2(recorded, state="running", launched=noon(30))
    later = replace(observed(recorded), instances=said)
    (cordon,) = actions(plan_drain(later, noon(900 + SETTLED)), Cordon)
    assert cordon.interruption.launched == noon(30)

    cordoned = replace(node, interruption=cordon.interruption, unschedulable=True)
    (end,) = actions(plan_drain(observed(cordoned), noon(901 + SETTLED)), TerminateInstance)
    assert end.shrunk is not None
    assert end.shrunk.name == "od"
    assert end.interruption.phase == "closed"
    assert end.target == f"Node {node.name} ({node.instance})"


@pytest.mark.parametrize(("token", "taken"), [("first", ["one"]), ("second", ["one", "two"])])
def test_no_more_nodes_are_taken_back_than_requests_of_different_tokens_added(token, taken):
    one, two = fresh("one"), fresh("two")
    group = a_group_of(one, two)
    reports = [told(group, name="first@i-1"), told(group, at=1, name=f"{token}@i-2")]
    plan = plan_drain(observed(one, two, group=group, reports=reports), noon(900))
    assert [record.node.name for record in actions(plan, Record)] == taken


@pytest.mark.parametrize(
    "how",
    [
        pytest.param({"renew": False}, id="its owner leaves it to the cluster's autoscaler"),
        pytest.param({"min_size": 1}, id="its group is at its minimum"),
        pytest.param({"instances": frozenset()}, id="it belongs to no group that was read"),
    ],
)
def test_an_added_node_stays_where_its_group_does_not_let_us(how):
    group = replace(a_group_of(fresh()), **how)
    assert plan_drain(observed(fresh(), group=group), noon(900)).actions == ()


@pytest.mark.parametrize(
    "reports",
    [
        pytest.param([], id="nothing was added"),
        pytest.param(None, id="the reports cannot be read"),
        pytest.param([told(a_group("other"))], id="another group got the node"),
        pytest.param([told(a_group("od"), at=61)], id="the node was there before"),
        pytest.param([told(a_group("od"), at=-900)], id="the node came much later"),
        pytest.param(
            [told(a_group("od")), told(a_group("od"), -1, at=500, name="i-2@noon")],
            id="as many were taken back",
        ),
    ],
)
def test_an_empty_node_that_was_not_added_stays(reports):
    seen = observed(fresh(), reports=reports)
    assert plan_drain(seen, noon(900)).actions == ()


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(a_pod("web-0", node="new", owner=("ReplicaSet", "web-abc")), id="a pod"),
        pytest.param(
            a_pod("quiet", node="new", annotations={"plimsoll.dev/ignore": "true"}),
            id="a pod that opted out",
        ),
    ],
)
@pytest.mark.parametrize("cordoned", [None, 900 + SETTLED])
def test_an_added_node_on_which_pods_stand_again_is_left_alone(pod, cordoned):
    node = since(fresh(), 900, cordoned=cordoned)
    assert actions(plan_drain(observed(fresh(), pods=[pod]), noon(900)), Record) == []

    plan = plan_drain(observed(node, pods=[pod]), noon(901 + SETTLED))
    assert [type(action) for action in plan.actions] == [Uncordon]


def test_an_added_node_that_its_owner_protects_stays():
    kept = replace(fresh(), annotations={DO_NOT_DISRUPT: "true"})
    assert plan_drain(observed(kept), noon(900)).actions == ()


def test_an_added_node_that_somebody_cordoned_is_theirs():
    kept = replace(fresh(), unschedulable=True)
    assert plan_drain(observed(kept), noon(900)).actions == ()

    recorded = replace(since(fresh(), 900), unschedulable=True)
    plan = plan_drain(observed(recorded), noon(900 + SETTLED))
    assert [type(action) for action in plan.actions] == [Uncordon]


def test_no_more_nodes_are_taken_back_than_were_added():
    nodes = [fresh("a"), fresh("b"), fresh("c")]
    group = a_group_of(*nodes)
    seen = observed(*nodes, group=group, reports=[told(group, 2)])

    assert [r.node.name for r in actions(plan_drain(seen, noon(900)), Record)] == ["a", "b"]


def test_of_more_empty_nodes_than_were_added_the_one_that_is_cordoned_goes():
    cordoned = since(fresh("b"), 900, cordoned=900 + SETTLED)
    seen = observed(cordoned, fresh("a"), group=a_group_of(cordoned, fresh("a")))

    end = sole_action(plan_drain(seen, noon(901 + SETTLED)), TerminateInstance)
    assert end.node.name == "b"


def test_a_node_that_is_not_to_be_taken_back_any_more_is_uncordoned():
    node = since(fresh(), 900, cordoned=1600)
    taken = [told(a_group("od")), told(a_group("od"), -1, at=500, name="i-2@noon")]

    plan = plan_drain(observed(node, reports=taken), noon(1601))
    assert [type(action) for action in plan.actions] == [Uncordon]
    unread = looked([node], [], reports=taken)
    assert plan_drain(unread, noon(1601)).actions == (), "its group could not be read"


def test_no_node_is_taken_back_while_another_goes_or_a_pod_waits():
    node = since(fresh(), 900)
    later = noon(900 + SETTLED)
    going = interrupted("spot", ends=900 + SETTLED + 60)
    waiting = a_pod("late", node=None, phase="Pending", cpu="6")
    impossible = a_pod("huge", node=None, phase="Pending", cpu="64")

    assert actions(plan_drain(observed(node), later), Cordon)
    assert actions(plan_drain(observed(node, going), later), Cordon) == []
    assert actions(plan_drain(observed(node, pods=[waiting]), later), Cordon) == []
    assert actions(plan_drain(observed(node, pods=[impossible]), later), Cordon)


def test_a_node_drained_on_advice_makes_way_for_the_one_that_was_added_for_it():
    drained = interrupted("spot", kind=ADVICE, ends=None)
    new = fresh()
    pods = pods_of("web", 1, node="new")
    group = a_group_of(drained, new)

    def ended(reports) -> TerminateInstance:
        seen = looked(
            [drained, new], pods, [a_deployment(replicas=1)], groups=[group], reports=reports
        )
        (end,) = actions(plan_drain(seen, noon(200)), TerminateInstance)
        return end

    assert ended([told(group)]).shrunk == group
    assert ended([]).shrunk is None, "nothing was added, so its group launches another"


def test_an_empty_node_that_its_owner_protects_is_not_ended_on_advice():
    drained = interrupted("spot", kind=ADVICE, ends=None, annotations={DO_NOT_DISRUPT: "true"})
    seen = looked([drained], [], groups=[a_group_of(drained)], reports=[])
    assert actions(plan_drain(seen, noon(200)), TerminateInstance) == []


@pytest.mark.parametrize(
    ("ends", "marks", "makes_way"),
    [
        pytest.param(None, {"cordoned": NOON}, True, id="drained on advice"),
        pytest.param(120, {"cordoned": NOON}, False, id="it goes by itself"),
        pytest.param(None, {"cordoned": None}, False, id="its turn has not come"),
        pytest.param(None, {"cordoned": NOON, "closed": NOON}, False, id="finished with"),
    ],
)
def test_of_interrupted_nodes_only_those_drained_on_advice_make_way(ends, marks, makes_way):
    node = interrupted("spot", kind=ADVICE, ends=ends)
    assert node.interruption is not None
    node = replace(node, interruption=replace(node.interruption, **marks))
    group = a_group_of(node, fresh())
    pods = pods_of("web", 1, node="new")
    seen = looked([node, fresh()], pods, groups=[group], reports=[told(group)])

    assert list(taken_back(seen)) == ["spot"] * makes_way


@pytest.mark.parametrize(
    ("kind", "cordoned", "now", "over"),
    [
        (ADVICE, 0, HOUR + 1, True),
        (ADVICE, 0, HOUR, False),
        (ADVICE, 60, HOUR + 1, False),
        ("health-scheduled-change", 0, HOUR + 1, False),
    ],
)
@pytest.mark.parametrize("pods", [0, 1])
def test_a_recommendation_that_nothing_followed_expires(kind, cordoned, now, over, pods):
    node = interrupted("spot", kind=kind, ends=None)
    assert node.interruption is not None
    found = replace(node.interruption, cordoned=noon(cordoned))
    node = replace(node, interruption=found if pods else marked(found, closed=noon(300)))
    stays = [a_pod("db-0", node="spot", owner=("StatefulSet", "db"))][:pods]
    seen = looked([node], stays, instances=ec2(node, state="running"))

    assert bool(actions(plan_drain(seen, noon(now)), Uncordon)) is over


def test_nodes_that_are_taken_back_at_one_moment_all_count():
    group = a_group_of(fresh("a"), fresh("b"), fresh("c"))
    gone = [told(group, -1, at=500, name=f"i-{n}@noon") for n in (2, 3)]
    seen = observed(fresh("a"), group=group, reports=[told(group, 2), *gone])

    assert plan_drain(seen, noon(900)).actions == ()


def test_what_was_added_is_merged_into_the_report_once():
    group = a_group("od")
    first, more = told(group, 2), told(group, 1, at=5)
    merged = first.merged(more).merged(first)

    assert sum(merged.added.values()) == 3
