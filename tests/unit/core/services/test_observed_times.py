"""What reconciles and placement runs remember of pods, and what the next plan makes of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest

from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.errors import Temporary
from plimsoll.domain.kubernetes import Ref
from plimsoll.domain.observation import Sample, Samples
from plimsoll.domain.observation.observed_times import MOST_WORKLOADS
from plimsoll.domain.registry import Mode
from plimsoll.services.observed_times import ObservedTimes
from plimsoll_simulation.fake_aws.stores import MemoryTimes
from plimsoll_simulation.rigs.simulated.rig import run
from plimsoll_simulation.scenario.drill import read_drill
from tests.support.builders import NOON
from tests.support.observations import WEB
from tests.support.workload_sets import WiredServices, a_pod_of_a_database, deployment, interrupt

KEPT = Path(__file__).parents[3] / "drills" / "replace"
STOP = {"drill.plimsoll.dev/stop": "4s"}


@dataclass
class CountedTimes(MemoryTimes):
    """A store that counts what is asked of it, and fails where it is told to."""

    reads: list[int] = field(default_factory=list)
    writes: list[Ref] = field(default_factory=list)
    away: bool = False

    def __post_init__(self) -> None:
        super().__init__()

    def read(self, cluster: str, workloads: Collection[Ref]) -> Mapping[Ref, Samples]:
        self.reads.append(len(workloads))
        if self.away:
            raise Temporary("the database does not answer")
        return super().read(cluster, workloads)

    def merge(self, cluster: str, workload: Ref, told: Samples) -> None:
        self.writes.append(workload)
        super().merge(cluster, workload, told)


class Rig(WiredServices):
    """The services over such a store."""

    def __init__(self, mode: Mode = Mode.ACT) -> None:
        self.told = CountedTimes()
        super().__init__(mode=mode, times=self.told)


def web():
    manifest = deployment()
    manifest["spec"]["template"]["metadata"]["annotations"] = STOP
    manifest["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 60
    return manifest


def test_a_drain_remembers_how_long_the_pods_took_to_stop():
    rig = Rig()
    interrupt(rig, web(), elsewhere=True)
    rig.drains.reconcile("harbor", "me")
    (samples,) = rig.told.read("harbor", [WEB]).values()
    assert [4 <= each.seconds <= 6 for each in samples.stop] == [True] * 3
    assert not samples.killed


def test_pods_whose_grace_was_cut_short_leave_a_lower_bound_only():
    rig = Rig()
    manifest = web()
    manifest["spec"]["template"]["metadata"]["annotations"] = {"drill.plimsoll.dev/stop": "200s"}
    manifest["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 300
    interrupt(rig, manifest)
    for _ in range(3):
        rig.drains.reconcile("harbor", "me")
    (samples,) = rig.told.read("harbor", [WEB]).values()
    assert not samples.stop
    assert samples.killed


@pytest.mark.parametrize("mode", [Mode.ACT, Mode.OBSERVE])
def test_a_placement_run_remembers_how_long_running_pods_took_to_start(mode):
    rig = Rig(mode=mode)
    rig.join("od")
    rig.apply(web())
    rig.placement.run()
    (samples,) = rig.told.read("harbor", [WEB]).values()
    assert [each.seconds for each in samples.start] == [5, 5, 5]
    rig.told.writes.clear()
    rig.sleep(300)
    rig.placement.run()
    assert rig.told.writes == [], "what is known is not written again"


def test_a_database_that_does_not_answer_is_asked_once_and_no_pod_waits_for_it():
    rig = Rig()
    rig.told.away = True
    interrupt(rig, web(), elsewhere=True)
    rig.drains.reconcile("harbor", "me")
    assert len(rig.pods_on("od")) == 3
    assert rig.told.reads == [1, 1], "once for the plan, once at the end"
    assert rig.told.writes == []


def test_how_many_pods_a_database_has_is_told_once_in_a_reconcile_and_only_where_it_could_be_read():
    rig = Rig()
    interrupt(rig, *map(a_pod_of_a_database, ("db-0", "db-1", "db-2")), elsewhere=True)
    rig.told.away = True
    rig.drains.reconcile("harbor", "first", seconds=0)
    assert rig.told.writes == []
    rig.told.away = False
    rig.drains.reconcile("harbor", "next", seconds=0)
    assert rig.told.writes == [Ref("Database", "default", "db")]


def test_a_reconcile_reads_each_disrupted_workload_once():
    rig = Rig()
    interrupt(rig, web(), elsewhere=True)
    rig.drains.reconcile("harbor", "me")
    assert rig.told.reads == [1, 1]


def test_a_run_writes_a_bounded_number_of_workloads():
    times = CountedTimes()
    rig = WiredServices()
    service = ObservedTimes(
        times=times, clock=rig, workers=SerialWorkers(), telemetry=rig.telemetry
    )
    sample = Samples(start=(Sample(uid="a", at=NOON, seconds=3),))
    told = {Ref("Deployment", "default", f"w-{n}"): sample for n in range(3 * MOST_WORKLOADS)}
    service.remember("harbor", told)
    assert len(times.writes) == MOST_WORKLOADS
    for _ in range(30):
        rig.time += timedelta(minutes=5)
        service.remember("harbor", told)
    assert len(times.read("harbor", told)) == len(told), "each has its turn"


def test_a_second_interruption_plans_with_what_the_first_taught():
    drill = read_drill(KEPT / "second-interruption" / "drill.yaml")
    report = run(drill, responder="plimsoll", seed=drill.scenario.seed)
    nodes = {node["name"]: node for node in report["nodes"]}
    first, second = (nodes[n]["empty"] - nodes[n]["noticed"] for n in ("first-1", "second-1"))
    assert first < 100, "told half a minute before the deadline"
    assert second > 110, "told ten seconds before it"
    told = " ".join(reason for each in report["reports"] for reason in each["reasons"])
    assert "30 s, assumed" in told
    assert "observed (3 pods, p95" in told
