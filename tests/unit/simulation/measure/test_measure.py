"""What a drill measures, told as the life of pods, nodes and instances."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll_simulation.measure.figures import Figures, NodeFigures, WorkloadFigures, percentile
from plimsoll_simulation.measure.measure import Measurement
from plimsoll_simulation.scenario.timeline import Scale, ScaleEntry

ZERO = datetime(2026, 1, 1, tzinfo=UTC)


def second(seconds: float) -> datetime:
    return ZERO + timedelta(seconds=seconds)


def workload(
    name: str = "web", replicas: int = 2, kind: str = "Deployment", **spec: Any
) -> dict[str, Any]:
    return {
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}},
            **spec,
        },
    }


def budget(app: str = "web", **spec: Any) -> dict[str, Any]:
    return {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": app, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": app}}, **spec},
    }


ALL_BUT_ONE = budget(minAvailable=4, selector={})
FOUR_OF_ALL = budget(maxUnavailable=4, selector={})


class RigCluster:
    """A cluster of one group that a test moves by hand; `t` is the time in seconds."""

    def __init__(
        self, *objects: dict[str, Any], begin: bool = True, nodes: tuple[str, ...] = ("n1", "n2")
    ) -> None:
        self.m = Measurement()
        self.m.add_group("harbor", "spot", capacity="spot", price=1.0, stop=timedelta(seconds=3))
        self.m.add_group(
            "harbor", "base", capacity="on-demand", price=1.0, stop=timedelta(seconds=3)
        )
        self.pods: dict[str, dict[str, Any]] = {}
        self.m.declare(second(-100), "harbor", objects)
        for node in nodes:
            self.m.instance_started(
                second(-100), "harbor", "spot", f"i-{node}", node=node, zone="us-east-1a"
            )
        for body in objects:
            if body["kind"] in {"Deployment", "StatefulSet", "ReplicaSet"}:
                for i in range(body["spec"]["replicas"]):
                    self.pod(
                        -50,
                        f"{body['metadata']['name']}-{i}",
                        body["metadata"]["name"],
                        kind=body["kind"],
                        node=nodes[i % len(nodes)],
                    )
        if begin:
            self.m.begin(ZERO)

    def pod(  # noqa: PLR0913 - what a pod is
        self,
        t: float,
        name: str,
        app: str = "web",
        *,
        kind: str = "Deployment",
        node: str = "n1",
        ready: bool = True,
        grace: int = 30,
        annotations: dict[str, str] | None = None,
    ) -> None:
        owner = {"controller": True, "kind": kind, "name": app}
        if kind == "Deployment":
            owner = {"controller": True, "kind": "ReplicaSet", "name": f"{app}-5d8f"}
        self.pods[name] = {
            "metadata": {
                "uid": f"uid-{name}", "name": name, "namespace": "default",
                "labels": {"app": app}, "ownerReferences": [owner],
                "annotations": annotations or {},
            },
            "spec": {"nodeName": node, "terminationGracePeriodSeconds": grace},
            "status": {"phase": "Running" if ready else "Pending", "conditions": []},
        }  # fmt: skip
        self.ready(t, name, ready=ready)

    def ready(self, t: float, name: str, *, ready: bool = True) -> None:
        status = self.pods[name]["status"]
        status["phase"] = "Running" if ready else status["phase"]
        status["conditions"] = [{"type": "Ready", "status": "True" if ready else "False"}]
        self.see(t, name)

    def see(self, t: float, name: str) -> None:
        self.m.observe_pod(second(t), "harbor", self.pods[name])

    def stop(self, t: float, name: str, *, granted: int = 30, evicted: bool = False) -> None:
        if evicted:
            self.pods[name]["status"]["conditions"].append(
                {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
            )
        self.pods[name]["metadata"]["deletionTimestamp"] = "later"
        self.pods[name]["metadata"]["deletionGracePeriodSeconds"] = granted
        self.see(t, name)

    def remove(self, t: float, name: str) -> None:
        self.m.pod_removed(second(t), "harbor", self.pods[name])

    def notice(
        self,
        t: float,
        node: str = "n1",
        kind: str = "spot-interruption",
        deadline: float | None = 120.0,
    ) -> None:
        end = None if deadline is None else second(t + deadline)
        self.m.noticed(second(t), f"i-{node}", kind, deadline=end)

    def cordon(self, t: float, node: str = "n1") -> None:
        self.m.observe_node(
            second(t), "harbor", {"metadata": {"name": node}, "spec": {"unschedulable": True}}
        )

    def gone(self, t: float, node: str = "n1") -> None:
        self.m.gone(second(t), f"i-{node}")

    def scale(self, t: float, replicas: int, name: str = "web") -> None:
        self.m.scale(
            second(t),
            ScaleEntry(
                at=timedelta(seconds=t),
                scale=Scale(cluster="harbor", kind="Deployment", name=name, replicas=replicas),
            ),
        )  # fmt: skip

    def figures(self, t: float) -> Figures:
        return self.m.figures(second(t), settled=True, spot_price=0.35)

    def row(self, t: float, name: str = "web") -> WorkloadFigures:
        return next(row for row in self.figures(t).workloads if row.name == name)

    def node(self, t: float, name: str = "n1") -> NodeFigures:
        return next(row for row in self.figures(t).nodes if row.name == name)


def test_the_shortfall_is_summed_over_time():
    rig_cluster = RigCluster(workload(replicas=4))
    rig_cluster.stop(10, "web-0")
    rig_cluster.stop(20, "web-1")
    rig_cluster.pod(30, "web-4", node="n2")
    rig_cluster.pod(45, "web-5", node="n2")
    row = rig_cluster.row(100)
    assert row.ready_replica_seconds_lost == 10 + 20 + 15
    assert row.seconds_below_replicas == 35
    assert row.seconds_below_floor == 10
    assert row.seconds_at_zero == 0
    assert row.min_ready == 2


def test_a_pod_that_is_told_to_go_is_not_ready_though_its_condition_says_so():
    rig_cluster = RigCluster(workload(replicas=2))
    rig_cluster.stop(10, "web-0")
    assert rig_cluster.row(15).ready_replica_seconds_lost == 5


def test_what_happens_in_one_instant_does_not_count():
    rig_cluster = RigCluster(workload(replicas=1))
    rig_cluster.stop(10, "web-0")
    rig_cluster.pod(10, "web-1", node="n2")
    row = rig_cluster.row(100)
    assert row.min_ready == 1
    assert row.seconds_at_zero == 0


def test_workloads_that_cannot_run_twice_are_not_counted_as_being_at_zero():
    rig_cluster = RigCluster(
        workload("db", 1, kind="StatefulSet"),
        workload("old", 1, strategy={"type": "Recreate"}),
        budget("db", maxUnavailable=0),
    )
    rig_cluster.stop(10, "db-0")
    rig_cluster.stop(10, "old-0")
    totals = rig_cluster.figures(15).totals
    assert totals.workloads_at_zero == 0
    assert totals.seconds_at_zero == 10
    assert rig_cluster.row(15, "db").ready_floor == 0
    assert totals.seconds_below_floor == 0


@pytest.mark.parametrize(
    ("objects", "floor"),
    [
        ([workload(replicas=6)], 5),
        ([workload(replicas=6), budget(maxUnavailable=0)], 6),
        ([workload(replicas=6), budget(minAvailable="50%")], 5),
        ([workload(replicas=6), budget("api", maxUnavailable=0)], 5),
        ([workload(replicas=3, kind="StatefulSet")], 2),
        ([workload(replicas=3, kind="ReplicaSet")], 2),
        ([workload(replicas=11, kind="StatefulSet"), budget(maxUnavailable=4)], 7),
        ([workload(replicas=11, kind="StatefulSet"), budget(maxUnavailable=8)], 6),
        ([workload(replicas=3, kind="StatefulSet"), workload("db"), ALL_BUT_ONE], 2),
        ([workload(replicas=11, kind="StatefulSet"), workload("db"), FOUR_OF_ALL], 7),
        ([workload(replicas=0)], 0),
    ],
)
def test_the_ready_floor_follows_rollout_settings_and_budget(objects, floor):
    assert RigCluster(*objects).row(1).ready_floor == floor


def test_a_raised_count_binds_once_it_was_reached_and_a_lowered_one_at_once():
    rig_cluster = RigCluster(workload(replicas=2))
    rig_cluster.scale(10, 4)
    rig_cluster.pod(20, "web-2", node="n2")
    rig_cluster.pod(30, "web-3", node="n2")
    assert rig_cluster.row(40).ready_replica_seconds_lost == 0
    assert rig_cluster.row(40).min_ready == 2
    rig_cluster.stop(50, "web-3")
    assert rig_cluster.row(60).ready_replica_seconds_lost == 10
    rig_cluster.scale(60, 3)
    row = rig_cluster.row(90)
    assert (row.replicas, row.ready_floor, row.ready_replica_seconds_lost) == (3, 3, 10)


def test_pods_that_run_when_their_instance_vanishes_are_killed():
    rig_cluster = RigCluster(workload(replicas=4))
    rig_cluster.pod(5, "web-9", node="n1", ready=False)
    rig_cluster.notice(8)
    rig_cluster.stop(10, "web-0")
    rig_cluster.gone(12)
    rig_cluster.remove(60, "web-0")
    rig_cluster.remove(60, "web-2")
    assert rig_cluster.row(100).pods_killed == 2
    assert rig_cluster.node(100).pods_killed == 2
    assert rig_cluster.row(100).pods_cut_short == 0


@pytest.mark.parametrize(
    ("kind", "replicas", "seconds"),
    [
        ("StatefulSet", 3, 30),  # two of three are away from 20 to 50
        ("StatefulSet", 5, 0),  # three of five are left
        ("StatefulSet", 2, 0),
        ("Deployment", 3, 0),
    ],
)
def test_a_stateful_set_of_three_and_more_has_a_quorum(kind: str, replicas: int, seconds: float):
    rig_cluster = RigCluster(workload(replicas=replicas, kind=kind))
    rig_cluster.stop(10, "web-0")
    rig_cluster.stop(20, "web-1")
    rig_cluster.pod(50, "web-5", kind=kind, node="n2")
    assert rig_cluster.row(90).seconds_below_quorum == seconds
    assert rig_cluster.figures(90).totals.seconds_below_quorum == seconds


@pytest.mark.parametrize(
    ("stop", "grace", "granted", "after", "cut"),
    [
        (3, 30, 5, 3, 0),
        (20, 30, 30, 20, 0),
        (40, 30, 30, 30, 0),
        (40, 30, 10, 10, 1),
        (20, 30, 1, 1, 1),
        (20, 10, 10, 10, 0),
    ],
)
def test_only_a_shortened_grace_period_cuts_short(stop, grace, granted, after, cut):
    rig_cluster = RigCluster(workload(replicas=2))
    rig_cluster.pod(1, "x", grace=grace, annotations={"drill.plimsoll.dev/stop": f"{stop}s"})
    rig_cluster.stop(10, "x", granted=granted)
    rig_cluster.remove(10 + after, "x")
    assert rig_cluster.row(90).pods_cut_short == cut


def test_a_pod_deleted_by_force_is_cut_short_unless_its_instance_is_gone():
    rig_cluster = RigCluster(workload(replicas=4))
    rig_cluster.remove(10, "web-0")
    rig_cluster.notice(15, "n2")
    rig_cluster.gone(20, "n2")
    rig_cluster.remove(21, "web-1")
    assert rig_cluster.row(60).pods_cut_short == 1


def test_a_stopping_pod_that_is_killed_is_not_lost_again_once_its_instance_is_launched_again():
    rig_cluster = RigCluster(workload(replicas=2), nodes=("n1",))
    rig_cluster.pod(1, "slow", grace=60, annotations={"drill.plimsoll.dev/stop": "60s"})
    rig_cluster.stop(10, "slow", granted=20)
    rig_cluster.gone(20)
    rig_cluster.m.instance_started(
        second(30), "harbor", "spot", "i-n1", node="n1", zone="us-east-1a"
    )
    rig_cluster.remove(50, "slow")
    row = rig_cluster.row(60)
    assert (row.pods_killed, row.pods_cut_short) == (3, 0)


def test_evictions_and_replacements_that_came_first_are_counted():
    rig_cluster = RigCluster(workload(replicas=2))
    rig_cluster.notice(5)
    rig_cluster.pod(20, "web-2", node="n2")
    rig_cluster.stop(25, "web-0", evicted=True)
    rig_cluster.remove(28, "web-0")
    row = rig_cluster.row(60)
    assert (row.pods_evicted, row.replaced_first, row.seconds_below_replicas) == (1, 1, 0)


@pytest.mark.parametrize(
    ("stop", "notices", "unforeseen"),
    [
        ("3s", [(10, 20, True)], 0),
        ("29s", [(10, 20, True)], 1),  # told too late for this pod
        ("29s", [(0, 400, True), (10, 20, True)], 1),  # what was told before said nothing of it
        ("3s", [(20, 10, True)], 1),
        ("3s", [(10, 20, False)], 1),  # the notice is lost
        ("3s", [(0, 30, False), (10, 120, True)], 1),  # and the one that arrives tells a later end
        ("3s", [(0, 60, True), (10, 20, False)], 1),
        ("3s", [(0, 30, True), (10, 120, False)], 0),
    ],
)
def test_who_could_not_be_told_in_time_to_stop_is_killed_or_cut_short_unforeseen(
    stop, notices, unforeseen
):
    rig_cluster = RigCluster(workload(replicas=0))
    for name in ("killed", "cut"):
        rig_cluster.pod(0, name, annotations={"drill.plimsoll.dev/stop": stop})
    for t, ahead, arrives in notices:
        rig_cluster.notice(t, deadline=ahead)
        if not arrives:
            rig_cluster.m.notice_lost("i-n1")
    rig_cluster.stop(28, "cut", granted=1)
    rig_cluster.remove(29, "cut")
    rig_cluster.gone(30)

    [metrics] = rig_cluster.m.workload_metrics.values()
    assert (metrics.killed, metrics.cut_short) == (1, 1)
    assert metrics.unforeseen_killed == metrics.unforeseen_cut == unforeseen


def test_a_node_has_one_row_with_its_first_notice_and_its_most_urgent_kind():
    rig_cluster = RigCluster(workload(replicas=1), nodes=("n1",))
    rig_cluster.notice(10, kind="rebalance-recommendation", deadline=None)
    rig_cluster.cordon(11.5)
    rig_cluster.notice(40, kind="spot-interruption")
    rig_cluster.notice(41, kind="rebalance-recommendation", deadline=None)
    rig_cluster.cordon(42)
    rig_cluster.stop(50, "web-0")
    rig_cluster.remove(53, "web-0")
    rig_cluster.gone(160)
    (node,) = rig_cluster.figures(200).nodes
    assert node.notice == "spot-interruption"
    assert (node.noticed, node.cordoned, node.empty, node.gone) == (10, 11.5, 53, 160)
    totals = rig_cluster.figures(200).totals
    assert (totals.nodes_noticed, totals.nodes_cordoned) == (1, 1)
    assert (totals.cordon_after_p50, totals.empty_after_p99) == (1.5, 43)


def test_capacity_counts_requests_nodes_hours_and_cost():
    rig_cluster = RigCluster(workload(replicas=2))
    rig_cluster.m.capacity_asked(second(60.9), "harbor", "base")
    rig_cluster.m.capacity_asked(second(70), "harbor", "base")
    rig_cluster.m.instance_started(
        second(61), "harbor", "base", "i-n3", node="n3", zone="us-east-1a"
    )
    rig_cluster.notice(60)
    rig_cluster.gone(1800)
    spot, base = rig_cluster.figures(3600).capacity
    assert (base.first_asked, base.nodes_added, base.peak) == (60.9, 1, 1)
    assert base.node_hours == round(3539 / 3600, 4)
    assert (spot.first_asked, spot.nodes_added, spot.peak, spot.node_hours) == (None, 0, 2, 1.5)
    paid = 1.5 * 0.35 + 3539 / 3600
    assert rig_cluster.figures(3600).totals.cost_vs_all_on_demand == round(
        paid / (1.5 + 3539 / 3600), 4
    )


def test_a_drill_is_restless_while_pods_move_or_an_interruption_has_its_end_before_it():
    rig_cluster = RigCluster(workload(replicas=2))
    assert rig_cluster.m.restless() == []
    rig_cluster.notice(10)
    assert rig_cluster.m.restless() == ["n1 has notice to go and is still there"]
    rig_cluster.pod(20, "web-2", node="n2", ready=False)
    rig_cluster.stop(20, "web-0")
    assert len(rig_cluster.m.restless()) == 4
    rig_cluster.remove(23, "web-0")
    rig_cluster.ready(35, "web-2")
    rig_cluster.gone(130)
    assert rig_cluster.m.restless() == []


def test_percentiles_are_values_that_were_measured():
    assert percentile([], 0.5) is None
    assert percentile([3.0], 0.99) == 3.0
    assert percentile([4.0, 1.0, 3.0, 2.0], 0.5) == 2.0
    assert percentile(range(1, 101), 0.99) == 99
    assert percentile(range(1, 102), 0.99) == 100


@given(
    st.integers(1, 4),
    st.lists(st.tuples(st.integers(1, 30), st.integers(0, 3), st.booleans()), max_size=25),
)
def test_the_sums_agree_with_looking_every_second(replicas, changes):
    rig_cluster = RigCluster(workload(replicas=replicas))
    now, lost, below, zero, lowest = 0, 0, 0, 0, replicas
    for after, which, ready in changes:
        count = len(rig_cluster.m.workload_metrics["harbor", "default", "Deployment", "web"].ready)
        lost += after * max(0, replicas - count)
        below += after * (count < replicas)
        zero += after * (count == 0)
        lowest = min(lowest, count)
        now += after
        rig_cluster.ready(now, f"web-{which % replicas}", ready=ready)
    row = rig_cluster.row(now)
    assert row.ready_replica_seconds_lost == lost
    assert row.seconds_below_replicas == below
    assert row.seconds_at_zero == zero
    last = len(rig_cluster.m.workload_metrics["harbor", "default", "Deployment", "web"].ready)
    assert row.min_ready == min(lowest, last)


@pytest.mark.parametrize("autoscaled", [True, False])
def test_a_workload_is_overruled_while_its_autoscaler_holds_it_to_fewer_than_declared(autoscaled):
    scaler = {
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "web"}, "maxReplicas": 3},
    }
    web = workload(replicas=3)
    cluster = RigCluster(web, *([scaler] if autoscaled else []))
    for t, replicas in ((10, 1), (20, 3)):
        cluster.m.observe_workload(second(t), "harbor", workload(replicas=replicas))
    [levels] = cluster.m.levels.values()
    changes = [(0, False), (10, True), (20, False)]
    assert [(level.seconds, level.overruled) for level in levels] == (
        changes if autoscaled else changes[:1]
    )
