"""What the console reads: a drill that it plays, and a live cluster that it only reads."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from plimsoll.domain.errors import Temporary
from plimsoll.domain.interruptions import to_record
from plimsoll.domain.kubernetes import INTERRUPTION
from plimsoll.domain.reports import Report
from plimsoll_cli.console.cluster_source import ClusterSource
from plimsoll_cli.console.drill_source import DrillSource
from plimsoll_cli.console.rehearsal_worker import scope_of
from plimsoll_cli.console.rehearsals import Rehearsals
from plimsoll_cli.console.stack_source import StackSource
from plimsoll_console.pages import Request
from plimsoll_console.sources import Outcome
from plimsoll_console.views.rehearsal import rehearsal, rehearsals, rehearse, scopes_of
from plimsoll_simulation.rehearsal.live import LiveCluster
from plimsoll_simulation.scenario.drill import read_drill
from tests.support.cli_environment import MemoryEnvironment
from tests.support.console_sources import GivenSource, state_of
from tests.support.observations import interrupted
from tests.support.queue_scenes import Scene, a_job
from tests.support.shop import a_shop
from tests.unit.console.test_screens import calm, pod, shop, shown
from tests.unit.core.frames.test_storm_messages import a_frame

ROOT = Path(__file__).parents[4]


def shop_source() -> tuple[MemoryEnvironment, ClusterSource]:
    environment = a_shop()
    name, api = environment.by_kubeconfig(None, "harbor")
    return environment, ClusterSource(name, api, environment.clock, lambda _: ())


def test_a_live_cluster_shows_its_queues_and_why_each_gang_waits():
    scene = Scene(nodes=2)
    scene.submit(a_job("first", 2))
    scene.run()
    scene.submit(a_job("next", 2))
    environment = MemoryEnvironment(transports={"harbor": scene.wire})
    environment.clock.time = scene.clock.time
    name, api = environment.by_kubeconfig(None, "harbor")
    with closing(ClusterSource(name, api, environment.clock, lambda _: ())) as source:
        source.look(api)
        text = shown("/c/harbor/queues", source)
        assert "1 gang waits, the first for" in text
        assert "lab/next queue lab waiting 0/2" in text
        assert "It starts once these ended: lab/first." in text
        assert "lab/first queue lab running 2/2" in text
        scene.submit(a_job("late", 1))
        source.look(api)
        assert "lab/late" not in shown("/c/harbor/queues", source)
        environment.clock.time += timedelta(seconds=10)
        source.look(api)
        assert "lab/late" in shown("/c/harbor/queues", source)


def interrupt(environment: MemoryEnvironment, name: str) -> None:
    found = interrupted(name).interruption
    assert found is not None
    environment.transports["harbor"].call(
        "PATCH",
        f"/api/v1/nodes/{name}",
        body={"metadata": {"annotations": {INTERRUPTION: to_record(found)}}},
        content_type="application/merge-patch+json",
    )


def test_a_live_cluster_shows_what_rides_on_spot():
    environment, source = shop_source()
    source.look(environment.by_kubeconfig(None, "harbor")[1])
    state = source.state(source.title)
    assert state is not None
    assert state.latest is None
    assert {load.ref.name: load.line for load in state.loads} == {
        "web": 3,
        "cart": 1,
        "search": None,
    }
    assert source.state("another") is None


def test_a_storm_in_a_live_cluster_has_frames_as_soon_as_a_node_has_its_record():
    environment, source = shop_source()
    api = environment.by_kubeconfig(None, "harbor")[1]
    source.look(api)
    interrupt(environment, "c5-0")
    source.look(api)
    state = source.state(source.title)
    assert state is not None
    assert state.latest is not None
    assert [node.name for node in state.latest.nodes] == ["c5-0"]
    assert state.loads_at is not None
    assert state.latest.counts.of > 0


def test_a_live_cluster_is_only_read():
    environment, source = shop_source()
    interrupt(environment, "c5-0")
    asked = []
    transport = environment.transports["harbor"]
    answer = transport.call

    def call(method, path, **more):
        asked.append(method)
        return answer(method, path, **more)

    transport.call = call  # type: ignore[method-assign]  # listens in
    source.look(environment.by_kubeconfig(None, "harbor")[1])
    assert {*asked} == {"GET"}


@pytest.mark.long
def test_a_drill_is_played_to_its_end():
    drill = read_drill(ROOT / "examples" / "one-node.yaml")
    with closing(DrillSource(drill, speed=1000)) as source:
        source.start()
        source.wait()
        (name,) = source.clusters()
        state = source.state(name)
        assert source.ended
        assert source.failed == ""
        assert state is not None
        assert state.latest is not None
        assert state.latest.counts.safe == state.latest.counts.of > 0
        assert state.reports


# Rehearsals.


def test_what_can_be_rehearsed_is_what_spot_nodes_there_are():
    assert [value for value, _ in scopes_of(state_of(calm()))] == ["spot", "zone:us-east-1a"]
    assert scope_of("zone:a:b").zone == "a:b"
    assert str(scope_of("spot")) == "every spot instance"


def test_a_rehearsal_begins_from_the_page_and_one_at_a_time():
    source = GivenSource({"harbor": state_of(calm())})
    asked = Request(named={"cluster": "harbor"}, form={"scope": "spot"})
    assert rehearse(asked, source).to == "c/harbor/rehearsals/1"
    assert rehearse(asked, source).to == "c/harbor/rehearsals"
    assert len(source.made) == 1
    text = shown("/c/harbor/rehearsals", source)
    assert "One rehearsal runs at a time." in text
    assert "reading the cluster" in shown("/c/harbor/rehearsals/1", source)


@pytest.mark.parametrize("scope", ["", "zone:mars", "family:x", "<script>"])
def test_a_scope_without_a_spot_node_is_not_rehearsed(scope: str):
    source = GivenSource({"harbor": state_of(calm())})
    page = rehearse(Request(named={"cluster": "harbor"}, form={"scope": scope}), source)
    assert page.status == 404
    assert source.made == []


def test_a_rehearsal_stands_beside_what_came():
    source = GivenSource({"harbor": state_of(calm())})
    source.rehearse("harbor", "spot")
    source.made[0] = replace(
        source.made[0],
        stage="done",
        verdict="Harbor keeps all.",
        nodes=frozenset({"spot"}),
        outcomes=(
            Outcome(
                workload="Deployment default/web", replicas=3, floor=2, lowest=3, unharmed=True
            ),
        ),
    )
    assert "unharmed" in shown("/c/harbor/rehearsals/1", source)
    source.states["harbor"] = state_of(calm(), shop(pod("new-1", "od", after=5), ready=False))
    assert "optimistic" in shown("/c/harbor/rehearsals/1", source)


def test_a_rehearsal_of_a_cluster_that_is_not_read_says_why():
    def away(_: str) -> LiveCluster:
        raise Temporary("harbor does not answer")

    made = Rehearsals(away)
    begun = made.start("harbor", "spot", GivenSource().now())
    assert begun is not None
    made.close()
    (found,) = made.list("harbor")
    assert (found.stage, found.error) == ("failed", "harbor does not answer")
    source = GivenSource({"harbor": state_of(calm())}, made=[found])
    assert "The rehearsal failed. Harbor does not answer." in shown(
        "/c/harbor/rehearsals/1", source
    )
    assert rehearsals(Request(named={"cluster": "harbor"}), source).status == 200
    assert rehearsal(Request(named={"cluster": "harbor", "number": "9"}), source).status == 404


@pytest.mark.long
def test_a_rehearsal_is_played_in_a_process_of_its_own():
    environment, source = shop_source()
    source.look(environment.by_kubeconfig(None, "harbor")[1])
    begun = source.rehearse(source.title, "spot")
    assert begun is not None
    assert source.rehearse(source.title, "spot") is None
    thread = source._rehearsals._thread
    assert thread is not None
    thread.join(120)
    (found,) = source.rehearsals(source.title)
    assert (found.stage, found.error) == ("done", "")
    assert {each.workload for each in found.outcomes} >= {"Deployment shop/web"}
    assert found.safe


def stack_source(environment: MemoryEnvironment) -> StackSource:
    deployed = environment.deployed("plimsoll")
    return StackSource(
        "plimsoll", deployed.registry, deployed.frames, deployed.reports, environment.clock
    )


def test_a_stack_shows_the_storms_of_its_clusters_and_takes_in_new_frames_only():
    environment = a_shop()
    [name] = environment.registry.names()
    frame = replace(a_frame(of=3, starting=3), cluster=name)
    environment.frames.take(frame)
    source = stack_source(environment)
    source.look()
    later = replace(frame, number=2, at=frame.at + timedelta(seconds=2))
    environment.frames.take(later)
    source.look()
    state = source.state(name)
    assert state is not None
    assert state.frames == (frame, later)
    assert (state.known, state.seen) == (True, None)


def test_a_cluster_of_a_stack_whose_frames_cannot_be_read_says_so_and_keeps_what_it_showed(
    monkeypatch,
):
    environment = a_shop()
    [name] = environment.registry.names()
    environment.frames.take(replace(a_frame(), cluster=name))
    source = stack_source(environment)
    source.look()
    monkeypatch.setattr(environment.frames, "since", away)
    source.look()
    state = source.state(name)
    assert state is not None
    assert state.error == "the table does not answer"
    assert len(state.frames) == 1


def test_a_storm_of_a_stack_is_over_once_its_last_frame_is_late_and_its_reports_are_closed():
    environment = a_shop()
    [name] = environment.registry.names()
    now = environment.clock.now()
    began, late = now - timedelta(minutes=4), now - timedelta(seconds=1)
    running = replace(a_frame(), cluster=name, storm=began, at=now, next_by=late)
    environment.frames.take(running)
    report = Report(
        interruption="i-1@1",
        cluster=name,
        node="c5-0",
        kind="spot-interruption",
        noticed=began,
    )
    environment.reports.merge(report)
    before = replace(report, interruption="i-0@1", noticed=began - timedelta(hours=1))
    environment.reports.merge(before)  # open still, and of no node of this storm
    source = stack_source(environment)
    assert is_over(source, name) is False
    environment.reports.merge(replace(report, closed=now, killed=("shop/web-1",)))
    assert is_over(source, name) is True
    state = source.state(name)
    assert state is not None
    assert state.latest is not None
    assert state.latest.counts.killed == 1  # after the last frame: only the report tells


def test_of_a_stack_nothing_is_said_that_it_does_not_tell():
    environment = a_shop()
    [name] = environment.registry.names()
    source = stack_source(environment)
    source.look()
    fleet = shown("/", source)
    assert "No storm runs. Cluster" in fleet  # and nothing of floors
    assert f"{name} no storm" in fleet
    cluster = shown(f"/c/{name}", source)
    assert "A stack tells of storms only: plimsoll console --context harbor" in cluster
    assert "Workloads" not in cluster
    assert "Rehearsals" not in cluster


def is_over(source: StackSource, name: str) -> bool:
    source.look()
    state = source.state(name)
    assert state is not None
    assert state.latest is not None
    return state.latest.over


def away(cluster, at):
    raise Temporary("the table does not answer")
