"""What a node itself demands: room, cordon, taints, selectors, volumes and ports."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from plimsoll.domain.kubernetes import ZONE, NodeTerm, Requirement, Resources, replacement_of
from plimsoll.domain.scheduling import ClusterSnapshot
from tests.support.builders import ZONE_A, ZONE_B, a_claim, a_node, a_pod, mounting

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def why_not(node: dict[str, Any] | None = None, **pod: Any) -> str | None:
    """Say why a pod does not fit on the only node."""
    only = a_node("n", **(node or {}))
    return ClusterSnapshot([only], []).why_not(a_pod(**pod), only)


def selecting(*expressions: tuple[str, ...], fields: bool = False) -> dict[str, Any]:
    """Return an affinity with one term: (key, operator, values …) each."""
    found = [{"key": k, "operator": o, "values": list(v)} for k, o, *v in expressions]
    term = {"matchFields" if fields else "matchExpressions": found}
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}}


class TestRoom:
    @pytest.mark.parametrize(
        ("node", "pod", "reason"),
        [
            ({"cpu": "1"}, {"cpu": "1001m"}, "Insufficient cpu"),
            ({"memory": "1Gi"}, {"memory": "1025Mi"}, "Insufficient memory"),
            ({"pods": 0}, {}, "Too many pods"),
            ({"cpu": "1", "memory": "1Gi", "pods": 1}, {"cpu": "1", "memory": "1Gi"}, None),
        ],
    )
    def test_a_pod_needs_room_for_all_it_asks(self, node, pod, reason):
        assert why_not(node, **pod) == reason

    def test_a_pod_needs_the_devices_it_asks_for(self):
        gpu = [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "2"}}}]
        assert why_not({}, containers=gpu) == "Insufficient nvidia.com/gpu"
        assert why_not({"extended": {"nvidia.com/gpu": "1"}}, containers=gpu)
        assert why_not({"extended": {"nvidia.com/gpu": "2"}}, containers=gpu) is None

    def test_a_pod_that_asks_for_nothing_fits_on_a_node_that_holds_too_much(self):
        node = a_node("n", cpu="1")
        snapshot = ClusterSnapshot([node], [a_pod("big", cpu="3", node="n")])
        assert snapshot.free("n").cpu == -2000
        assert snapshot.why_not(a_pod("free", cpu=None, memory=None), node) is None
        assert snapshot.why_not(a_pod("small", cpu="1m", memory=None), node) == "Insufficient cpu"

    def test_finished_pods_hold_no_room_and_pods_of_other_nodes_are_left_out(self):
        pods = [
            a_pod("done", node="n", phase="Succeeded"),
            a_pod("elsewhere", node="m"),
            a_pod("pending"),
        ]
        assert ClusterSnapshot([a_node("n")], pods).free("n") == a_node("n").allocatable


class TestCordonAndTaints:
    def test_a_cordoned_node_takes_only_pods_that_tolerate_it(self):
        assert why_not({"unschedulable": True}) == "node(s) were unschedulable"
        daemon = [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]
        assert why_not({"unschedulable": True}, tolerations=daemon) is None

    def test_a_node_that_is_not_ready_takes_only_pods_that_tolerate_it(self):
        reason = "node(s) had untolerated taint {node.kubernetes.io/not-ready: }"
        assert why_not({"ready": False}) == reason
        assert why_not({"ready": False}, tolerations=[{"operator": "Exists"}]) is None

    @pytest.mark.parametrize(
        ("toleration", "fits"),
        [
            ({"key": "k", "value": "v"}, True),
            ({"key": "k", "operator": "Equal", "value": "other"}, False),
            ({"key": "k", "operator": "Exists"}, True),
            ({"key": "k", "operator": "Exists", "effect": "NoSchedule"}, True),
            ({"key": "k", "operator": "Exists", "effect": "NoExecute"}, False),
            ({"operator": "Exists"}, True),
            ({"value": "v"}, False),
            ({"key": "other", "operator": "Exists"}, False),
        ],
    )
    def test_a_toleration_is_for_key_value_and_effect(self, toleration, fits):
        taint = {"key": "k", "value": "v", "effect": "NoSchedule"}
        found = why_not({"taints": [taint]}, tolerations=[toleration])
        assert found == (None if fits else "node(s) had untolerated taint {k: v}")

    def test_a_taint_that_only_prefers_keeps_nobody_out(self):
        assert why_not({"taints": [{"key": "k", "effect": "PreferNoSchedule"}]}) is None
        assert why_not({"taints": [{"key": "k", "effect": "NoExecute"}]}) is not None


class TestSelection:
    def test_every_label_of_the_node_selector_must_be_there(self):
        wanted = {"disk": "ssd", "arch": "arm64"}
        assert why_not({"labels": {"disk": "ssd"}}, nodeSelector=wanted)
        assert why_not({"labels": wanted}, nodeSelector=wanted) is None

    @pytest.mark.parametrize(
        ("expression", "fits"),
        [
            (("disk", "In", "ssd", "nvme"), True),
            (("disk", "NotIn", "ssd"), False),
            (("absent", "NotIn", "x"), True),
            (("disk", "Exists"), True),
            (("disk", "DoesNotExist"), False),
            (("generation", "Gt", "5"), True),
            (("generation", "Gt", "6"), False),
            (("generation", "Lt", "7"), True),
            (("disk", "Lt", "7"), False),
            (("serial", "Gt", "5"), False),
        ],
    )
    def test_node_affinity_knows_every_operator(self, expression, fits):
        labels = {"disk": "ssd", "generation": "6", "serial": "1_000"}
        found = why_not({"labels": labels}, affinity=selecting(expression))
        assert found == (None if fits else "node(s) didn't match Pod's node affinity/selector")

    def test_any_term_is_enough_and_all_of_a_term_must_hold(self):
        yes, no = ("kubernetes.io/hostname", "Exists"), ("absent", "Exists")
        both = selecting(yes, no)
        assert why_not(affinity=both)
        either = selecting(yes)["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
        both["nodeAffinity"][REQUIRED]["nodeSelectorTerms"] += either
        assert why_not(affinity=both) is None

    @pytest.mark.parametrize("terms", [[], [{}]])
    def test_no_terms_and_an_empty_term_select_no_node(self, terms):
        assert why_not(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}})

    def test_a_daemon_pod_is_bound_to_the_name_of_its_node(self):
        assert why_not(affinity=selecting(("metadata.name", "In", "n"), fields=True)) is None
        assert why_not(affinity=selecting(("metadata.name", "In", "m"), fields=True))


class TestVolumesAndPorts:
    def test_a_bound_volume_holds_its_pod_in_its_zone(self):
        here, there = a_node("a", zone=ZONE_A), a_node("b", zone=ZONE_B)
        claim = a_claim("data", zone=ZONE_B)
        snapshot = ClusterSnapshot([here, there], [], {("default", "data"): claim})
        pod = a_pod(volumes=mounting("data"))
        assert snapshot.candidates(pod) == [there]
        assert snapshot.why_not(pod, here) == "node(s) had volume node affinity conflict"

    def test_claims_that_are_unbound_unknown_or_of_another_namespace_hold_nobody(self):
        node = a_node("a", zone=ZONE_A)
        claims = {("default", "data"): a_claim("data")}
        other = {("other", "data"): a_claim("data", namespace="other", zone=ZONE_B)}
        pod = a_pod(volumes=mounting("data"))
        assert ClusterSnapshot([node], [], claims).why_not(pod, node) is None
        assert ClusterSnapshot([node], [], other).why_not(pod, node) is None

    def test_any_term_of_a_volume_is_enough_whatever_its_operators(self):
        here, there = a_node("a", zone=ZONE_A), a_node("b", zone=ZONE_B)
        elsewhere = Requirement(key=ZONE, operator="NotIn", values=(ZONE_A,))
        terms = (NodeTerm(expressions=(elsewhere,)), NodeTerm())
        claim = replace(a_claim("data", zone=ZONE_A), node_terms=terms)
        snapshot = ClusterSnapshot([here, there], [], {("default", "data"): claim})
        assert snapshot.candidates(a_pod(volumes=mounting("data"))) == [there]

    def test_a_node_takes_as_many_volumes_as_its_driver_can_attach(self):
        node = replace(a_node("n"), volume_limits={"ebs": 2})
        claims = {
            ("default", name): replace(a_claim(name, zone=node.zone), driver=driver)
            for name, driver in (("a", "ebs"), ("b", "ebs"), ("c", "ebs"), ("d", "efs"))
        }
        pods = [a_pod(node="n", volumes=mounting("a", "b"))]
        snapshot = ClusterSnapshot([node], pods, claims)
        third = a_pod("third", volumes=mounting("c"))
        assert snapshot.why_not(third, node) == "node(s) exceed max volume count"
        assert (snapshot.candidates(third), snapshot.choose(third)) == ([], None)
        assert snapshot.why_not(a_pod("shares", volumes=mounting("b", "d")), node) is None

    def test_the_ephemeral_volumes_of_a_pod_are_attached_where_it_stands(self):
        node = replace(a_node("n"), volume_limits={"ebs": 2})
        claims = {
            ("default", name): replace(a_claim(name), driver="ebs")
            for name in ("one-scratch", "two-scratch", "data")
        }
        scratch = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}}]
        pods = [a_pod(name, node="n", volumes=scratch) for name in ("one", "two")]
        full = replace(a_node("m"), volume_limits={"ebs": 0})
        snapshot = ClusterSnapshot([node, full, a_node("free")], pods, claims)
        third = a_pod("third", volumes=mounting("data"))
        assert snapshot.why_not(third, node) == "node(s) exceed max volume count"
        assert snapshot.why_not(replacement_of(pods[0]), full) == "node(s) exceed max volume count"
        assert snapshot.choose(third) == snapshot.nodes["free"]

    def test_nobody_else_gets_a_claim_of_one_pod(self):
        nodes = [a_node("a"), a_node("b")]
        claims = {("default", "data"): replace(a_claim("data"), single_pod=True)}
        one, other = (a_pod(name, volumes=mounting("data")) for name in ("one", "other"))
        snapshot = ClusterSnapshot(nodes, [], claims)
        snapshot.place(one, "a")
        assert (snapshot.candidates(other), snapshot.candidates(one)) == ([], nodes)
        snapshot.remove(one)
        assert snapshot.candidates(other) == nodes

    def test_a_claim_that_is_bound_meanwhile_counts_from_then_on(self):
        node = a_node("a", zone=ZONE_A)
        snapshot = ClusterSnapshot([node], [], {("default", "data"): a_claim("data")})
        twin = snapshot.copy()
        snapshot.set_claim(a_claim("data", zone=ZONE_B))
        pod = a_pod(volumes=mounting("data"))
        assert snapshot.why_not(pod, node)
        assert twin.why_not(pod, node) is None

    def test_a_host_port_is_taken_once_by_protocol(self):
        def listening(name: str, protocol: str = "TCP", **how: Any) -> Any:
            ports = [{"containerPort": 1, "hostPort": 53, "protocol": protocol}]
            return a_pod(name, containers=[{"name": "c", "ports": ports}], **how)

        node = a_node("n")
        snapshot = ClusterSnapshot([node], [listening("one", node="n")])
        reason = "node(s) didn't have free ports for the requested pod ports"
        assert snapshot.why_not(listening("two"), node) == reason
        assert snapshot.why_not(listening("three", "UDP"), node) is None
        snapshot.remove(listening("one"))
        assert snapshot.why_not(listening("two"), node) is None

    @pytest.mark.parametrize(
        ("there", "wanted", "fits"),
        [
            ("10.0.0.1", "10.0.0.2", True),
            ("10.0.0.1", "10.0.0.1", False),
            ("0.0.0.0", "10.0.0.1", False),
            ("10.0.0.1", "", False),
        ],
    )
    def test_a_host_port_is_taken_on_its_address(self, there, wanted, fits):
        def listening(name: str, address: str, **how: Any) -> Any:
            ports = [{"containerPort": 1, "hostPort": 53, "hostIP": address}]
            return a_pod(name, containers=[{"name": "c", "ports": ports}], **how)

        node = a_node("n")
        snapshot = ClusterSnapshot([node], [listening("one", there, node="n")])
        assert (snapshot.why_not(listening("two", wanted), node) is None) is fits


def test_a_board_explains_a_pending_pod_as_the_scheduler_does():
    nodes = [a_node("a", cpu="0"), a_node("b", cpu="0"), a_node("c", unschedulable=True)]
    snapshot = ClusterSnapshot(nodes, [])
    assert snapshot.explain(a_pod()) == (
        "0/3 nodes are available: 2 Insufficient cpu, 1 node(s) were unschedulable"
    )
    assert snapshot.explain(a_pod(), without={"c", "a"}) == (
        "0/1 nodes are available: 1 Insufficient cpu"
    )
    assert ClusterSnapshot([], []).explain(a_pod()) == "0/0 nodes are available"


def test_room_is_counted_in_whole_units():
    snapshot = ClusterSnapshot(
        [a_node("n", cpu="1", memory="1Ki", pods=2)], [a_pod(node="n", cpu="0.5m")]
    )
    assert snapshot.free("n") == Resources(cpu=999, memory=1024 - (64 << 20), pods=1)
