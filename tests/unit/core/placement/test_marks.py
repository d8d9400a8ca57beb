"""What stays Ready of a workload if a spot node, a family, a zone or all spot goes."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from plimsoll.domain.kubernetes import Node
from plimsoll.domain.placement import marks_of
from plimsoll.domain.placement.marks import Marks
from tests.support.builders import ZONE_A, ZONE_B, a_deployment, a_node, a_pod
from tests.support.observations import looked


def spot(name: str, kind: str, zone: str | None = ZONE_A) -> Node:
    labels = {"node.kubernetes.io/instance-type": kind}
    return a_node(name, capacity="spot", zone=zone, labels=labels)


NODES = [
    a_node("od"),
    spot("c-1", "c6i.large"),
    spot("c-2", "c6i.xlarge", ZONE_B),
    spot("m-1", "m6i.large", ZONE_B),
]


def marks(where: Sequence[str], *, not_ready: int = 0) -> Marks:
    pods = [a_pod(f"web-{n}", node=node, ready=n >= not_ready) for n, node in enumerate(where)]
    (found,) = marks_of(looked(NODES, pods, [a_deployment("web", replicas=len(where))]))
    return found


def test_the_worst_loss_of_each_kind_is_named_with_what_it_leaves():
    found = marks(["od"] * 2 + ["c-1"] * 3 + ["c-2"] * 2 + ["m-1"] * 2)
    assert found.ready == 9
    assert found.marks == (
        ("node", "c-1", 6),
        ("family", "c6i", 4),
        ("zone", ZONE_B, 5),
        ("all spot", "all spot", 2),
    )


def test_what_stands_on_on_demand_loses_nothing():
    assert {(mark.name, mark.stays) for mark in marks(["od", "od"]).marks} == {("", 2)}


def test_only_ready_replicas_count():
    found = marks(["c-1", "od", "m-1"], not_ready=2)
    assert (found.ready, found.marks[-1].stays) == (1, 0)


def test_any_set_of_nodes_can_be_asked_about():
    found = marks(["od", "c-1", "c-1", "m-1"])
    assert [found.without(nodes) for nodes in (["c-1"], ["c-1", "m-1", "od"], [])] == [2, 1, 4]


def test_a_workload_without_a_ready_replica_has_no_marks():
    seen = looked(NODES, [a_pod("web-1", ready=False)], [a_deployment("web")])
    assert [*marks_of(seen)] == []


@given(where=st.lists(st.sampled_from([node.name for node in NODES]), min_size=1, max_size=12))
def test_a_wider_loss_never_leaves_more(where):
    node, family, zone, all_spot = marks(where).marks
    assert node.stays >= max(family.stays, zone.stays)
    assert min(family.stays, zone.stays) >= all_spot.stays == where.count("od")
