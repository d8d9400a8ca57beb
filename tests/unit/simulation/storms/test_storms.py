"""The rules of random storms, their comparison and their shrinking find what is wrong.

Random storms themselves are played in `tests/storms`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from plimsoll.domain.kubernetes import IGNORE
from plimsoll_simulation.fake_cluster.cluster import FakeCluster
from plimsoll_simulation.measure.history import Level
from plimsoll_simulation.measure.listening import Quiet
from plimsoll_simulation.measure.measure import Measurement
from plimsoll_simulation.rigs.simulated.aws import SimulatedNodeGroups, group_of
from plimsoll_simulation.rigs.simulated.network import SimulatedNetwork
from plimsoll_simulation.rigs.simulated.responders import Responder
from plimsoll_simulation.rigs.simulated.rig import Simulation
from plimsoll_simulation.rigs.warmup import NeverReadyError
from plimsoll_simulation.scenario.drill import read_drill
from plimsoll_simulation.scenario.timeline import (
    FaultEntry,
    NoticeEntry,
    Scale,
    ScaleEntry,
    ZonalShiftEntry,
)
from plimsoll_simulation.storms import (
    Other,
    Storm,
    compare,
    draw_storm,
    play_storm,
    read_storm,
    shrink,
    write_storm,
)
from plimsoll_simulation.storms.compare import worse_of, worse_than
from plimsoll_simulation.storms.endings import endings_wrong
from plimsoll_simulation.storms.losses import Loss
from plimsoll_simulation.storms.model import Rollout
from plimsoll_simulation.storms.notice_delivery import NOTICE, NoticeDelivery
from plimsoll_simulation.storms.watch import Watch
from plimsoll_simulation.storms.workload import CUSTOM, Workload
from tests.support.storms import WEB, a_batch, a_group, a_storm


def a_fault(fault: str, lasts: str, **more) -> FaultEntry:
    return FaultEntry.model_validate({"at": "5s", "fault": fault, "for": lasts} | more)


type Found = tuple[str, str | None]
"""A figure that is worse, and the reason for which nobody is blamed."""
ROLLOUT = Rollout(at=timedelta(seconds=30), workload="web")


def test_two_executors_at_once_leave_the_same_as_one():
    result = play_storm(a_storm(), twice=True)
    assert (result.violations, result.settled) == ((), True)


def test_a_workload_is_worse_off_than_under_another_responder_only_in_the_median_of_all_seeds():
    drill, web = read_storm(a_storm()), "Deployment default/web"
    unlucky = {web: replace(a_loss(ZERO, 60), killed=2)}
    assert list(worse_than(drill, ("drain", "none"), unlucky)) == []


NAME = "Deployment default/web"
ZERO, QUORUM, FLOOR = "seconds at zero", "seconds below quorum", "seconds below floor"
END = 900
LACKS = {ZERO: (0, 1, 0), QUORUM: (1, 3, 0), FLOOR: (2, 3, 3)}
"""How many are Ready of how many, and the floor."""


def a_loss(figure: str, seconds: float, *, died: bool = False) -> Loss:
    """Return what a workload lost that lacks something for so long, and has all that it needs from then on."""
    ready, replicas, floor = LACKS[figure]
    levels = Level(0, ready, replicas, floor), Level(seconds, replicas, replicas, floor)
    return Loss(kind="StatefulSet", levels=levels, until=END, died=died)


def a_course(*levels: tuple[float, int, int, int] | tuple[float, int, int, int, bool]) -> Loss:
    """Return what a workload lost: from when on how many were Ready, of how many, the floor, and whether overruled."""
    return Loss(kind="StatefulSet", levels=[Level(*level) for level in levels], until=END)


def found_in(*pairs: tuple[Loss, Loss], than: Other, storm: Storm | None = None) -> set[Found]:
    """Say which rules a workload breaks that has lost so much under Plimsoll and under another, play by play."""
    plays = [({NAME: ours}, {NAME: theirs}) for ours, theirs in pairs]
    found = worse_of(read_storm(storm or a_storm()), than, plays)
    return {(worse.figure, worse.excused) for worse in found}


@pytest.mark.parametrize("figure", [ZERO, QUORUM, FLOOR])
@pytest.mark.parametrize(
    ("than", "died", "longer", "is_worse"),
    [
        ("drain", False, 5, False),
        ("drain", False, 5.1, True),
        ("drain", True, 32, False),
        ("drain", True, 32.1, True),
        ("none", False, 32, False),
        ("none", False, 32.1, True),
    ],
)
def test_a_workload_may_lack_pods_a_little_longer_and_where_the_other_let_them_die_as_long_as_a_stop_takes(
    figure, than, died, longer, is_worse
):
    ours, theirs = a_loss(figure, 10 + longer), a_loss(figure, 10, died=died)
    assert found_in((ours, theirs), than=than) == ({(figure, None)} if is_worse else set())


@pytest.mark.parametrize("than", ["drain", "none"])
@pytest.mark.parametrize(("ours", "theirs", "is_worse"), [(2, 1, True), (1, 1, False)])
def test_no_more_pods_are_killed_or_cut_short_than_under_another(than, ours, theirs, is_worse):
    pair = Loss(killed=ours, died=True), Loss(killed=theirs, died=True)
    assert found_in(pair, than=than) == (
        {("pods killed or cut short", None)} if is_worse else set()
    )


def test_what_the_other_allows_is_counted_play_by_play():
    ours = a_loss(ZERO, 20)
    lucky, unlucky = (ours, a_loss(ZERO, 0, died=True)), (ours, a_loss(ZERO, 0))
    assert found_in(*[lucky] * 3, *[unlucky] * 2, than="drain") == set()
    assert found_in(*[lucky] * 2, *[unlucky] * 3, than="drain") == {(ZERO, None)}


# The owner raises 4 replicas to 6, whose floor is 5; so many are Ready from a second on.
REACHES_SIX = (0, 4, 4, 3), (50, 6, 6, 5)
STAYS_AT_FOUR = a_course((0, 4, 4, 3))
REACHES_SIX_LATE = a_course((0, 4, 4, 3), (165, 6, 6, 5))


@pytest.mark.parametrize(
    ("ours", "theirs", "is_worse"),
    [
        pytest.param(
            a_course(*REACHES_SIX, (100, 4, 6, 5), (140, 6, 6, 5)),
            REACHES_SIX_LATE,
            False,
            id="who comes to more pods sooner is not worse for losing the added ones",
        ),
        pytest.param(
            STAYS_AT_FOUR,
            a_course(*REACHES_SIX),
            True,
            id="who never comes to the raised count is not excused where the other does",
        ),
        pytest.param(
            a_course((0, 4, 4, 3), (55, 4, 4, 3, True)),
            a_course(*REACHES_SIX),
            False,
            id="whose autoscaler takes the raised count back is not worse for never coming to it",
        ),
        pytest.param(
            a_course((0, 4, 4, 3), (200, 4, 4, 3, True)),
            a_course(*REACHES_SIX),
            True,
            id="whose autoscaler takes the raised count back is held to it until then",
        ),
        pytest.param(
            a_course((0, 4, 4, 3), (55, 1, 4, 3, True), (95, 4, 4, 3, True)),
            a_course(*REACHES_SIX),
            True,
            id="whose autoscaler takes the raised count back is held to the former one",
        ),
        pytest.param(
            a_course(*REACHES_SIX, (100, 1, 6, 5), (140, 6, 6, 5)),
            STAYS_AT_FOUR,
            True,
            id="who loses pods of the former count is worse although the other never comes to more",
        ),
        pytest.param(
            a_course((0, 4, 4, 3), (100, 1, 4, 3), (140, 4, 4, 3)),
            STAYS_AT_FOUR,
            True,
            id="a count that neither reaches hides no loss",
        ),
    ],
)
def test_both_plays_are_measured_against_the_same_count(
    ours: Loss, theirs: Loss, *, is_worse: bool
):
    found = {figure for figure, _ in found_in((ours, theirs), than="drain")}
    assert (FLOOR in found) is is_worse


def test_a_workload_is_worse_off_where_one_count_tells_so_without_the_plays_in_which_nobody_knew():
    """By the count that both reach it is worse in the first play alone, by the raised one in the others as well."""
    surprised = replace(a_course(*REACHES_SIX, (100, 1, 6, 5)), surprised=1)
    behind = STAYS_AT_FOUR
    pairs = [(surprised, a_course(*REACHES_SIX))] * 2 + [(behind, a_course(*REACHES_SIX))]
    assert (FLOOR, None) in found_in(*pairs, than="drain")


@pytest.mark.parametrize(
    ("ours", "theirs", "known"),
    [
        ((3, 1), (4, 1), True),
        ((3, 2), (4, 1), False),
        ((4, 1), (3, 2), False),
    ],
)
def test_pods_that_came_too_early_and_ends_told_too_late_do_not_set_each_other_off(
    ours, theirs, known
):
    """Of each: pods that came to an instance before its first notice, and pods whose end was told too late."""
    pair = [
        replace(a_loss(ZERO, seconds), surprised=surprised, unforeseen=unforeseen)
        for seconds, (surprised, unforeseen) in ((60, ours), (0, theirs))
    ]
    excuse = None if known else "they stood where nobody knew of an end"
    assert found_in((pair[0], pair[1]), than="drain") == {(ZERO, excuse)}


def test_a_seed_of_the_scheduler_with_which_no_cluster_gets_ready_is_not_compared(monkeypatch):
    def played(_, responder, seed=0):
        if seed == 2:
            raise NeverReadyError("a pod has no place")
        return {NAME: a_loss(ZERO, 60 + seed if responder == "plimsoll" else 0)}

    monkeypatch.setattr(compare, "play", played)
    drill = read_storm(a_storm())
    (worse,) = worse_than(drill, ["drain"], played(drill, "plimsoll"))

    assert (worse.figure, worse.ours) == (ZERO, 62)


def test_who_has_opted_out_answers_for_it():
    left = a_storm(workloads=(replace(WEB, ignored=True),))
    assert found_in((a_loss(ZERO, 60), a_loss(ZERO, 0)), than="none", storm=left) == {
        (ZERO, "they have opted out")
    }


@pytest.mark.parametrize("said", ["yes", "On"])
def test_the_mark_that_opts_out_is_read_as_the_planner_reads_it(said: str, monkeypatch):
    drill = read_storm(a_storm(workloads=(replace(WEB, ignored=True),)))
    for _, template in compare._templates(drill):
        template["metadata"]["annotations"] = {IGNORE: said}
    monkeypatch.setattr(compare, "play", lambda *_, **__: {NAME: a_loss(ZERO, 0)})
    [worse] = worse_than(drill, ["none"], {NAME: a_loss(ZERO, 60)})
    assert worse.excused == "they have opted out"


def test_a_killed_pod_lacks_from_the_second_that_its_instance_is_gone():
    [loss] = play_storm(on_spot(replicas=1, startup_seconds=20), responder="none").losses.values()
    assert loss.died
    assert loss.seconds_at_zero > 50 + 20  # the API server takes 50 s to notice


def test_a_seed_is_a_storm():
    assert draw_storm(7) == draw_storm(7)
    assert draw_storm(7) != draw_storm(8)


def situations_of(storm: Storm) -> set[str]:
    """Name the situations that the workloads of a storm are in."""
    is_in: dict[str, Callable[[Workload], bool]] = {
        "a quorum with a long grace period and a budget on it": lambda w: (
            w.volumes and w.replicas in {3, 5} and w.grace_seconds >= 120 and w.budget is not None
        ),
        "a quorum that takes long to stop": lambda w: w.volumes and 45 <= w.stop_seconds <= 90,
        "a database of an operator": lambda w: w.kind == CUSTOM and w.volumes,
        "a file system that replicas share": lambda w: w.shared,
        "a checkpoint": lambda w: w.kind == "Job" and 28 < w.stop_seconds < w.grace_seconds <= 115,
        "a slow start under an autoscaler": lambda w: (
            w.startup_seconds >= 40
            and w.autoscaled is not None
            and "hpa" in storm.other_controllers
        ),
        "a hook that sleeps": lambda w: w.hook_seconds is not None,
        "balloons": lambda w: w.priority < 0 and w.on_demand,
        "pods that all stand where nodes go": lambda w: bool(w.nodes) and all_go(storm, w),
    }
    return {name for name, holds in is_in.items() if any(map(holds, storm.workloads))}


def all_go(storm: Storm, workload: Workload) -> bool:
    gone = {
        event.nodes.group
        for event in storm.events
        if isinstance(event, NoticeEntry) and event.nodes.count == size_of(storm, event.nodes.group)
    }
    return {node.rpartition("-")[0] for node in workload.nodes} <= gone


def size_of(storm: Storm, group: str | None) -> int | None:
    return next((g.size for g in storm.groups if g.name == group), None)


def test_storms_are_in_every_situation_of_real_clusters_and_some_in_none():
    found = [situations_of(draw_storm(seed)) for seed in range(200)]
    assert len(set().union(*found)) == 9
    assert set() in found


def on_spot(**changes) -> Storm:
    """Return a storm in which all pods of a workload stand on the one node that goes."""
    return a_storm(workloads=(replace(WEB, nodes=("spot-1-1",) * 3, **changes),))


type Act = tuple[float, str, Callable[[FakeCluster], tuple[str, str, object]]]
"""What a user does: seconds after the first notice, the user, and how to tell method, path and body."""
WEB_AT = "/apis/apps/v1/namespaces/default/deployments/web"


class _Clumsy(Quiet):
    """Does, after the first notice, what it is told: some as the responder, some as others."""

    def __init__(self, *acts: Act) -> None:
        self.simulation: Simulation | None = None
        self._acts: Sequence[Act] = acts

    def say(self, seconds: float, what: str) -> None:
        if NOTICE.match(what) and (playing := self.simulation) is not None:
            now = playing.clock.now()
            for after, user, request in self._acts:
                playing.clock.at(now + timedelta(seconds=after), partial(self.act, user, request))
            self._acts = ()

    def act(self, user: str, request: Callable[[FakeCluster], tuple[str, str, object]]) -> None:
        assert self.simulation is not None
        cluster, now = self.simulation.rig_clusters["harbor"].cluster, self.simulation.clock.now()
        method, path, body = request(cluster)
        kind = "application/merge-patch+json"
        answer = cluster.handle(method, path, None, body, kind, now=now, user=user)
        assert answer.status < 300
        self.simulation.clock.touch(cluster)


def patches(path: str, body: object) -> Callable[[FakeCluster], tuple[str, str, object]]:
    return lambda _: ("PATCH", path, body)


def evicts(node: str) -> Callable[[FakeCluster], tuple[str, str, object]]:
    """Evict the pod of the Deployment that serves on a node."""

    def request(cluster: FakeCluster) -> tuple[str, str, object]:
        pods = cluster.store.all("pods")
        name = next(
            pod["metadata"]["name"]
            for pod in pods
            if pod["spec"]["nodeName"] == node and "deletionTimestamp" not in pod["metadata"]
        )
        return "POST", f"/api/v1/namespaces/default/pods/{name}/eviction", {}

    return request


@pytest.mark.parametrize("seconds", [None, 300])
def test_the_rules_see_that_a_cluster_is_not_left_alone_unless_something_ended_there(
    seconds, monkeypatch
):
    advised = a_storm(
        workloads=(replace(WEB, kind="Job", run_seconds=seconds),),
        events=(a_batch("spot-1", 1, notice="rebalance-recommendation"),),
    )
    assert play_storm(advised).rules == frozenset()
    monkeypatch.setattr("plimsoll_simulation.storms.play.LOOKS", 0)
    assert play_storm(advised).rules == {"not-quiet"}


def test_the_rules_see_a_write_to_a_workload():
    scales = (2, "clumsy", patches(WEB_AT, {"spec": {"replicas": 3}}))
    assert "workload-written" in broken_by(_Clumsy(scales), a_storm())


def test_the_rules_see_a_pod_taken_from_a_healthy_node():
    takes = (2, "clumsy", evicts("base-1"))
    assert "left-healthy-node" in broken_by(_Clumsy(takes), a_storm())


def broken_by(clumsy: _Clumsy, storm: Storm) -> set[str]:
    """Play a clumsy responder; a recommendation leaves it time to do harm."""
    leave = a_batch("spot-1", 1, notice="rebalance-recommendation")
    later = a_batch("base", 1, at="200s", reclaim="5s")
    storm = replace(storm, events=(leave, later))
    simulation = Simulation(read_storm(storm), responder="none", seed=1, listener=clumsy)
    watch = Watch(simulation, "clumsy", NoticeDelivery([]))
    clumsy.simulation = simulation
    simulation.run()
    return {v.rule for v in watch.violations}


def test_a_node_is_unknown_while_its_notices_are_lost():
    delivery = NoticeDelivery([])
    for word in (
        "spot-interruption for spot-1-1 of harbor",
        "a notice is lost",
        "spot-interruption for spot-1-2 of harbor",
        "none for spot-1-3 of harbor",
    ):
        delivery.record(word)
    assert [delivery.any_arrived(f"spot-1-{n}") for n in (1, 2, 3)] == [False, True, False]
    delivery.record("rebalance-recommendation for spot-1-1 of harbor")
    assert delivery.any_arrived("spot-1-1")
    assert not delivery.all_arrived("spot-1-1")


def delivery_with(*faults: FaultEntry) -> NoticeDelivery:
    timeline = read_storm(a_storm(events=(*faults, *a_storm().events))).scenario.timeline
    return NoticeDelivery([e for e in timeline if isinstance(e, FaultEntry)])


def test_a_fault_delays_by_its_duration_its_delay_and_a_minute_until_the_retry():
    late = a_fault("notices-delayed", "30s", delay="40s")
    full = a_fault("insufficient-capacity", "30s", nodes={"group": "base"})
    assert delivery_with(full).slack == timedelta()
    assert delivery_with(full, late).slack == timedelta(seconds=30 + 40 + 60)


def reports(*faults: FaultEntry, cordoned: int, gone: int) -> bool:
    delivery = delivery_with(*faults)
    return delivery.report_expected(timedelta(seconds=cordoned), timedelta(seconds=gone))


@pytest.mark.parametrize(
    ("launches", "rule"),
    [((), "not-reported"), (("2026",), None), (("2025", "2026"), "reported-twice")],
)
def test_the_rules_see_an_interruption_reported_never_or_twice(launches, rule):
    simulation = Simulation(read_storm(a_storm()), responder="plimsoll", seed=1)
    watch = Watch(simulation, "plimsoll", NoticeDelivery([]))
    simulation.run()
    rig_cluster = simulation.rig_clusters["harbor"]
    simulation.clock.run_until(simulation.clock.now() + timedelta(minutes=3))  # resyncs
    (gone,) = (m.id for m in rig_cluster.fleet.machine.values() if m.gone is not None)
    simulation.responder = Reporter([f"{gone}@{launch}" for launch in launches])
    simulation.measurement.reports.clear()
    found = endings_wrong(
        simulation, rig_cluster, watch.observe(), NoticeDelivery([]), watch.cordons
    )
    assert [name for name, _ in found] == ([] if rule is None else [rule])


class Reporter(Responder):
    """Hands in reports of these names."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names

    def hand_in(self, measurement: Measurement) -> None:
        for name in self.names:
            measurement.report(name, ())


def test_lost_notices_excuse_only_what_could_not_be_known():
    lost = a_fault("notices-lost", "30s", fraction=1.0)
    leave = a_batch("spot-1", 1, notice="rebalance-recommendation")
    assert play_storm(a_storm(events=(lost, leave))).rules == frozenset()
    assert "not-cordoned" in play_storm(a_storm(events=(leave,)), responder="none").rules


def test_a_storm_shrinks_to_what_its_failure_needs():
    storm = a_storm(
        workloads=(WEB, replace(WEB, name="api"), replace(WEB, name="db", kind="StatefulSet")),
        events=(
            *a_storm().events,
            ScaleEntry(
                at=timedelta(seconds=20), scale=Scale(kind="Deployment", name="api", replicas=3)
            ),
            ROLLOUT,
        ),
    )
    found = shrink(storm, lambda s: any(isinstance(e, Rollout) for e in s.events))
    assert [w.name for w in found.workloads] == ["web"]
    assert found.events == (ROLLOUT,)
    assert found.nodes == 1


def test_a_storm_that_is_kept_is_the_same_drill(tmp_path: Path):
    storm = draw_storm(12)
    kept = read_drill(write_storm(storm, tmp_path / "kept", comment="It broke.\nBadly."))
    assert (tmp_path / "kept" / "drill.yaml").read_text().startswith("# It broke.\n# Badly.\n")
    assert [m.body for m in kept.objects["harbor"]] == [
        m.body for m in read_storm(storm).objects["harbor"]
    ]


def test_the_rules_see_an_added_node_left_empty_and_one_not_given_back(monkeypatch):
    full = a_group("base", "on-demand").model_copy(update={"kind": "static", "max": 1})
    renewed = a_group("spot-1", "spot").model_copy(update={"renew": True})
    busy = replace(WEB, cpu=1450, max_surge=1, max_unavailable=0)
    added = a_storm(groups=(full, renewed), workloads=(busy,))
    back = a_batch("base", 1, returns="60s")
    returned = replace(added, groups=(full, a_group("spot-1", "spot")), events=(back,))
    assert [play_storm(storm).violations for storm in (added, returned)] == [(), ()]
    monkeypatch.setattr(
        "plimsoll.domain.drain.finalization.scale_down_steps", lambda _, __: iter(())
    )
    assert "left-added" in play_storm(added).rules
    monkeypatch.setattr(
        "plimsoll.domain.disruptions.interruption_end.in_this_life", lambda found, **_: found
    )
    assert "left-open" in play_storm(returned).rules


@pytest.mark.parametrize(
    ("used", "left"),
    [
        ({"spot-1-3"}, []),
        ({"spot-1-2"}, ["spot-1 has 1 more for Plimsoll; empty are ['spot-1-3']"]),
        ({"base-1"}, ["spot-1 has 1 more for Plimsoll; empty are ['spot-1-3']"]),
    ],
)
def test_the_rules_tell_an_added_node_from_one_that_its_group_launched_for_a_dead_one(used, left):
    """spot-1-1 dies, its group launches spot-1-2 for it, and then Plimsoll asks for spot-1-3."""
    renewed = a_group("spot-1", "spot").model_copy(update={"renew": True})
    died = a_batch("spot-1", 1, notice="none")
    storm = a_storm(groups=(a_group("base", "on-demand"), renewed), events=(died,))
    simulation = Simulation(read_storm(storm), responder="none", seed=1)
    delivery = NoticeDelivery([])
    watch = Watch(simulation, "none", delivery)
    simulation.run()
    clock, rig_cluster = simulation.clock, simulation.rig_clusters["harbor"]
    groups = SimulatedNodeGroups(rig_cluster.fleet, SimulatedNetwork(clock, 0.0), clock)
    groups.grow(group_of(rig_cluster.fleet.group("spot-1")), 1, None, "token")
    clock.run_until(clock.now() + timedelta(minutes=3))
    seen = watch.observe()
    (node,) = used
    seen = replace(seen, pods=[replace(pod, node=node) for pod in seen.pods])
    found = endings_wrong(simulation, rig_cluster, seen, delivery, watch.cordons)
    assert [what for rule, what in found if rule == "left-added"] == left


def test_the_rules_see_a_zonal_shift_of_which_no_event_told_and_nobody_asked(monkeypatch):
    shift = {"at": "10s", "zonalShift": "us-east-1a", "for": "1h"}
    lost = a_fault("notices-lost", "30s", fraction=1)
    untold = a_storm(events=(lost, ZonalShiftEntry.model_validate(shift)))
    assert play_storm(untold).violations == ()
    monkeypatch.setattr("plimsoll.services.zonal_shifts.inferred_events", lambda *_: ())
    assert play_storm(untold).rules == {"left-shifted"}
