"""The report of a drill, its verdict and its tables."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from rich.table import Table

from plimsoll_simulation.measure.expectations import judge
from plimsoll_simulation.measure.figures import Figures, NodeFigures, Totals, WorkloadFigures
from plimsoll_simulation.measure.measure import Measurement
from plimsoll_simulation.measure.report import Report, build_report, exit_status
from plimsoll_simulation.output.tables import workloads_table
from plimsoll_simulation.scenario.drill import Drill, read_drill
from plimsoll_simulation.scenario.expect import Expect, WorkloadBounds

EXAMPLE = Path(__file__).parents[4] / "examples" / "all-spot-at-once.yaml"
ZERO = datetime(2026, 1, 1, tzinfo=UTC)

WEB = WorkloadFigures(
    cluster="harbor", namespace="default", kind="Deployment", name="web", replicas=6, ready_floor=5,
    min_ready=6, seconds_below_floor=0.0, seconds_below_quorum=0.0, seconds_below_replicas=0.0,
    ready_replica_seconds_lost=0.0, seconds_at_zero=0.0, pods_killed=0, pods_cut_short=0,
    pods_evicted=0, replaced_first=4, min_ready_on_demand=2, ready_on_spot=3,
)  # fmt: skip
NODE = NodeFigures(
    cluster="harbor", name="n1", instance="i-1", group="spot", zone="a", notice="spot-interruption",
    noticed=60.0, cordoned=60.6, empty=152.2, gone=180.0, pods_killed=0, pods_cut_short=0,
)  # fmt: skip
TOTALS = Totals(
    pods_killed=0, pods_cut_short=0, workloads_at_zero=0, seconds_at_zero=0.0,
    seconds_below_floor=0.0, seconds_below_quorum=0.0, seconds_below_replicas=0.0, ready_replica_seconds_lost=0.0,
    nodes_noticed=1, nodes_cordoned=1, cordon_after_p50=0.6, cordon_after_p99=0.6,
    empty_after_p50=92.2, empty_after_p99=92.2, cost_vs_all_on_demand=0.61,
)  # fmt: skip
CALM = Figures(
    seconds=312.0, settled=True, workloads=(WEB,), nodes=(NODE,), with_deadline={"i-1": 60.0},
    capacity=(), totals=TOTALS,
)  # fmt: skip


def played(drill: Drill, responder: str = "plimsoll", lost: float = 0.0) -> Report:
    """Return the report of a drill in which nothing happened but, if asked, to legacy."""
    m = Measurement()
    cluster = drill.scenario.clusters[0]
    for group in cluster.node_groups:
        m.add_group(
            cluster.name,
            group.name,
            capacity=group.capacity,
            price=group.price,
            stop=cluster.pods.stop,
        )
    m.declare(ZERO, cluster.name, [o.body for o in drill.objects[cluster.name]])
    for metrics in m.workload_metrics.values():
        for i in range(metrics.replicas):
            metrics.set_ready(ZERO, f"{metrics.id}-{i}", ready=True)
    m.begin(ZERO)
    m.kubernetes_call("PATCH")
    m.report("i-1@2026", ["why"])
    legacy = m.workload_metrics["harbor", "shop", "Deployment", "legacy"]
    if lost:
        legacy.set_ready(ZERO, f"{legacy.id}-0", ready=False)
        legacy.set_ready(
            ZERO + timedelta(seconds=lost), f"{legacy.id}-0", ready=True
        )  # fmt: skip
    figures = m.figures(ZERO + timedelta(minutes=5), settled=True, spot_price=0.35)
    return build_report(
        drill.scenario, m, figures, rig="simulated", responder=responder, seed=drill.scenario.seed
    )


@pytest.fixture(scope="module")
def drill() -> Drill:
    return read_drill(EXAMPLE)


def test_the_report_has_the_published_keys_in_the_published_order(drill):
    report = played(drill)
    assert list(report) == [
        "drill", "rig", "responder", "seed", "seconds", "settled", "workloads", "nodes",
        "capacity", "totals", "api", "reports", "expect",
    ]  # fmt: skip
    assert list(report["workloads"][0]) == [
        "cluster", "namespace", "kind", "name", "replicas", "ready_floor", "min_ready",
        "seconds_below_floor", "seconds_below_quorum", "seconds_below_replicas", "ready_replica_seconds_lost",
        "seconds_at_zero", "pods_killed", "pods_cut_short", "pods_evicted", "replaced_first",
        "min_ready_on_demand", "ready_on_spot",
    ]  # fmt: skip
    assert list(report["capacity"][0]) == [
        "cluster", "group", "capacity", "first_asked", "nodes_added", "peak", "node_hours",
    ]  # fmt: skip
    assert list(report["totals"]) == [
        "pods_killed", "pods_cut_short", "workloads_at_zero", "seconds_at_zero",
        "seconds_below_floor", "seconds_below_quorum", "seconds_below_replicas", "ready_replica_seconds_lost",
        "nodes_noticed", "nodes_cordoned", "cordon_after_p50", "cordon_after_p99",
        "empty_after_p50", "empty_after_p99", "cost_vs_all_on_demand",
    ]  # fmt: skip
    assert list(NodeFigures.__dataclass_fields__) == [
        "cluster", "name", "instance", "group", "zone", "notice", "noticed", "cordoned", "empty",
        "gone", "pods_killed", "pods_cut_short",
    ]  # fmt: skip
    assert report["reports"] == [{"interruption": "i-1@2026", "reasons": ["why"]}]
    assert report["api"] == {"kubernetes": {"PATCH": 1}, "aws": {}}
    assert report["expect"] == {"held": True, "failures": []}


def test_an_expectation_that_fails_is_said_and_makes_status_1(drill):
    report = played(drill, lost=12.5)
    assert report["expect"]["failures"] == ["secondsAtZero is 12.5, expected at most 0"]
    assert report["expect"]["held"] is False
    assert exit_status(report) == 1
    assert exit_status(played(drill)) == 0


@pytest.mark.parametrize(
    ("expect", "figures", "failures"),
    [
        (Expect(), CALM, []),
        (
            Expect(pods_killed=1),
            replace(CALM, totals=replace(TOTALS, pods_killed=2)),
            ["podsKilled is 2, expected at most 1"],
        ),
        (
            Expect(ready_replica_seconds_lost=10),
            replace(CALM, totals=replace(TOTALS, ready_replica_seconds_lost=10.001)),
            ["readyReplicaSecondsLost is 10.001, expected at most 10"],
        ),
        (Expect(cordoned_within=timedelta(seconds=0.6)), CALM, []),
        (
            Expect(cordoned_within=timedelta(milliseconds=500)),
            CALM,
            ["cordonedWithin: n1 was cordoned 0.6 s after its notice, expected within 500ms"],
        ),
        (
            Expect(cordoned_within=timedelta(seconds=5)),
            replace(CALM, nodes=(replace(NODE, cordoned=None),)),
            ["cordonedWithin: n1 was never cordoned"],
        ),
        (
            Expect(cordoned_within=timedelta(milliseconds=1)),
            replace(CALM, with_deadline={}),
            [],
        ),
        (Expect(emptied_before_gone=True), CALM, []),
        (
            Expect(emptied_before_gone=True),
            replace(CALM, nodes=(replace(NODE, empty=None),)),
            ["emptiedBeforeGone: 1 nodes went with pods on them: n1"],
        ),
        (
            Expect(emptied_before_gone=True),
            replace(CALM, nodes=(replace(NODE, empty=None, gone=None),)),
            [],
        ),
        (
            Expect(settled=True),
            replace(CALM, settled=False),
            ["settled: the drill was not at rest when it ended after 312 s"],
        ),
        (
            Expect(workloads={"default/web": WorkloadBounds(min_ready=7)}),
            CALM,
            ["Deployment default/web of harbor: minReady is 6, expected at least 7"],
        ),
        (
            Expect(workloads={"default/web": WorkloadBounds(on_demand_ready=3, spot_ready=4)}),
            CALM,
            [
                "Deployment default/web of harbor: onDemandReady is 2, expected at least 3",
                "Deployment default/web of harbor: spotReady is 3, expected at least 4",
            ],
        ),
        (
            Expect(workloads={"*": WorkloadBounds(seconds_at_zero=0)}),
            replace(CALM, workloads=(replace(WEB, seconds_at_zero=1.5),)),
            ["Deployment default/web of harbor: secondsAtZero is 1.5, expected at most 0"],
        ),
        (
            Expect(
                workloads={
                    "*": WorkloadBounds(min_ready=7),
                    "default/web": WorkloadBounds(min_ready=6),
                }
            ),
            CALM,
            [],
        ),
    ],
)
def test_each_expectation_is_held_against_the_figures(expect, figures, failures):
    verdict = judge(expect, figures, "plimsoll")
    assert list(verdict.failures) == failures
    assert verdict.held is not bool(failures)


def rendered(table: Table) -> list[str]:
    console = Console(file=io.StringIO(), width=200, color_system=None)
    console.print(table)
    out: Any = console.file
    return [line for line in out.getvalue().splitlines() if "shop/" in line or "all work" in line]


def test_the_table_has_the_worst_workload_first(drill):
    lines = rendered(workloads_table(played(drill, lost=12.5)))
    assert "shop/legacy" in lines[0]
    assert "12.5" in lines[0]
    assert len(lines) == 6
