"""Topology spread: how uneven a workload may stand, and which nodes and pods are counted."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.domain.kubernetes import Pod
from plimsoll.domain.scheduling import ClusterSnapshot
from tests.support.builders import NOON, ZONE_A, ZONE_B, ZONE_C, a_node, a_pod

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
SKEWED = "node(s) didn't match pod topology spread constraints"
A, B, C = (a_node(z[-1], zone=z) for z in (ZONE_A, ZONE_B, ZONE_C))


def rule(key: str = ZONE, skew: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "maxSkew": skew,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
        **more,
    }


def spread(name: str = "new", *rules: dict[str, Any], **how: Any) -> Pod:
    return a_pod(name, topologySpreadConstraints=list(rules or [rule()]), **how)


def standing(*nodes: str) -> list[Pod]:
    return [a_pod(f"web-{i}", node=node) for i, node in enumerate(nodes)]


def fitting(snapshot: ClusterSnapshot, pod: Pod) -> str:
    """Return the names of the nodes that a pod fits on, in one word."""
    return "".join(node.name for node in snapshot.candidates(pod))


@pytest.mark.parametrize(
    ("where", "skew", "fits"),
    [
        ("", 1, "abc"),
        ("a", 1, "bc"),
        ("ab", 1, "c"),
        ("abc", 1, "abc"),
        ("aab", 2, "bc"),
        ("aa", 3, "abc"),
    ],
)
def test_no_domain_may_be_more_than_max_skew_above_the_emptiest(where, skew, fits):
    snapshot = ClusterSnapshot([A, B, C], standing(*where))
    assert fitting(snapshot, spread("new", rule(skew=skew))) == fits


def test_a_node_without_the_key_never_fits():
    bare = a_node("bare")
    snapshot = ClusterSnapshot([bare], [])
    assert (
        snapshot.why_not(spread("new", rule("rack")), bare) == f"{SKEWED} (missing required label)"
    )


def test_a_soft_constraint_keeps_nobody_out():
    snapshot = ClusterSnapshot([A, B], standing("a", "a", "a"))
    assert fitting(snapshot, spread("new", rule(whenUnsatisfiable="ScheduleAnyway"))) == "ab"


def test_a_pod_that_its_own_selector_misses_adds_nothing():
    snapshot = ClusterSnapshot([A, B], standing("a"))
    assert fitting(snapshot, spread(labels={"app": "other"})) == "ab"


def test_an_absent_selector_counts_nobody():
    snapshot = ClusterSnapshot([A, B], standing("a", "a", "a"))
    assert fitting(snapshot, spread("new", rule(labelSelector=None))) == "ab"


def test_an_empty_selector_counts_nobody_but_the_pod_itself():
    snapshot = ClusterSnapshot([A, B], standing("a", "a", "b"))
    assert fitting(snapshot, spread("new", rule(labelSelector={}))) == "ab"
    assert fitting(snapshot, spread("new", rule(labelSelector={}, minDomains=3))) == "ab"


def test_terminating_pods_and_those_of_other_namespaces_are_not_counted():
    pods = [a_pod("x", node="a", deleting=NOON), a_pod("y", node="a", namespace="other")]
    assert fitting(ClusterSnapshot([A, B], pods), spread()) == "ab"


def test_a_pod_of_another_namespace_that_comes_later_is_not_counted():
    snapshot = ClusterSnapshot([A, B, C], standing(*"ab"))
    assert fitting(snapshot, spread()) == "c"
    snapshot.place(a_pod("web", namespace="other"), "c")
    assert fitting(snapshot, spread()) == "c"


def test_pods_that_come_and_go_are_counted_in_a_namespace_that_nobody_asked_about_before():
    other = [a_pod(f"web-{n}", namespace="other", node=node) for n, node in enumerate("aabc")]
    snapshot = ClusterSnapshot([A, B, C], [*standing(*"ab"), *other])
    assert fitting(snapshot, spread()) == "c"
    twin = snapshot.copy()
    twin.remove(other[0])
    twin.place(a_pod("later", namespace="other"), "c")
    assert fitting(twin, spread(namespace="other")) == "ab"
    assert fitting(snapshot, spread(namespace="other")) == "bc"


def test_fewer_domains_than_min_domains_count_as_if_one_were_empty():
    snapshot = ClusterSnapshot([A, B], standing("a", "b"))
    assert fitting(snapshot, spread("new", rule(minDomains=2))) == "ab"
    assert fitting(snapshot, spread("new", rule(minDomains=3))) == ""


def test_match_label_keys_count_only_pods_of_the_same_template():
    old = [a_pod(f"old-{i}", node="a", labels={"app": "web", "hash": "1"}) for i in range(3)]
    new = spread("new", rule(matchLabelKeys=["hash", "absent"]), labels={"app": "web", "hash": "2"})
    assert fitting(ClusterSnapshot([A, B], old), new) == "ab"
    assert fitting(ClusterSnapshot([A, B], old), spread()) == "b"


def test_every_constraint_must_hold_and_only_nodes_with_all_keys_are_counted():
    rack1 = a_node("r", zone=ZONE_A, labels={"rack": "1"})
    rack2 = a_node("s", zone=ZONE_B, labels={"rack": "2"})
    both = spread("new", rule(ZONE), rule("rack"))
    snapshot = ClusterSnapshot([rack1, rack2, C], standing("r"))
    assert fitting(snapshot, both) == "s"
    # Zone c has no node with a rack, so it is no domain that could be the emptiest.
    snapshot.place(a_pod("web-9", node="s"), "s")
    assert fitting(snapshot, both) == "rs"


class TestPolicies:
    tainted = a_node("c", zone=ZONE_C, taints=[{"key": "going", "effect": "NoSchedule"}])

    def test_a_tainted_node_is_counted_unless_taints_are_honoured(self):
        snapshot = ClusterSnapshot([A, B, self.tainted], standing("a", "b"))
        assert fitting(snapshot, spread()) == ""
        assert fitting(snapshot, spread("new", rule(nodeTaintsPolicy="Honor"))) == "ab"

    def test_a_cordoned_node_is_one_with_a_taint(self):
        snapshot = ClusterSnapshot(
            [A, B, a_node("c", zone=ZONE_C, unschedulable=True)], standing("a", "b")
        )
        assert fitting(snapshot, spread()) == ""
        assert fitting(snapshot, spread("new", rule(nodeTaintsPolicy="Honor"))) == "ab"

    def test_a_node_that_is_not_selected_is_left_out_unless_affinity_is_ignored(self):
        ssd = [a_node(n, zone=z, labels={"disk": "ssd"}) for n, z in (("a", ZONE_A), ("b", ZONE_B))]
        snapshot = ClusterSnapshot([*ssd, C], standing("a", "b"))
        wants: dict[str, Any] = {"nodeSelector": {"disk": "ssd"}}
        assert fitting(snapshot, spread(**wants)) == "ab"
        assert fitting(snapshot, spread("new", rule(nodeAffinityPolicy="Ignore"), **wants)) == ""

    def test_pods_on_nodes_that_are_left_out_are_not_counted(self):
        same = a_node("c", zone=ZONE_A, taints=[{"key": "going", "effect": "NoSchedule"}])
        snapshot = ClusterSnapshot([A, B, same], standing("c", "c", "a"))
        assert fitting(snapshot, spread("new", rule(nodeTaintsPolicy="Honor"))) == "b"
        snapshot.place(a_pod("web-9"), "b")
        assert fitting(snapshot, spread("new", rule(nodeTaintsPolicy="Honor"))) == "ab"


def test_domains_come_and_go_with_their_nodes():
    snapshot = ClusterSnapshot([A, B], standing("a", "b"))
    assert fitting(snapshot, spread()) == "ab"
    snapshot.add_node(C)
    assert fitting(snapshot, spread()) == "c"
    snapshot.remove_node("c")
    assert fitting(snapshot, spread()) == "ab"
    snapshot.remove_node("b")
    assert fitting(snapshot, spread()) == "a"


def test_a_label_taken_off_a_node_takes_it_out_of_the_spread():
    """A full survivor would pin the minimum; without its label the others may take more."""
    label = "spread.plimsoll.dev/1"
    spot = a_node("s", pods=1, labels={label: "spot-1"})
    base = a_node("b", labels={label: "on-demand"})
    snapshot = ClusterSnapshot([spot, base], standing("s", "b"))
    pod = spread("new", rule(label))
    snapshot.place(spread("web-8", rule(label)), "b")
    assert fitting(snapshot, pod) == ""
    snapshot.add_node(a_node("s", pods=1))
    assert fitting(snapshot, pod) == "b"
