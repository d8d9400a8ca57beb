"""The example of GPU pools: its files agree, its quotas hold, and its drill ends as it says."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

import pytest
import yaml

from plimsoll_batch.adapters.queues_file import configuration_of
from plimsoll_service.domain.gpu import CARDS, geometries_of, layout_name, mig_config
from plimsoll_simulation.rigs.simulated.rig import Simulation, run
from plimsoll_simulation.scenario.drill import Drill, read_drill
from tests.support.fake_clusters import Json
from tests.support.gpu_tenancy import FOLDER, POOL, SLICE, asking, groups, nodes, objects, on
from tests.support.queue_scenes import Scene, stop_of

TRAIN, SWEEP_A, SWEEP_B = objects("jobs")
[EMBED] = objects("reclaim")
QUEUES = (FOLDER / "queues.yaml").read_text()
SEEN_AFTER: Final = timedelta(seconds=75)
"""From time 0; the notices come after 60 s."""


def drill() -> Drill:
    return read_drill(FOLDER / "drill.yaml")


# --- The files ----------------------------------------------------------------------------------


def test_the_pools_of_the_node_groups_are_those_of_the_drill_and_of_the_flavors():
    made = {group["name"]: group for group in objects("node-groups")[0]["managedNodeGroups"]}
    assert made.keys() == {group["name"] for group in groups()}
    for group in groups():
        other = made[group["name"]]
        assert group["taints"] == other["taints"]
        assert group["labels"].items() <= other["labels"].items()
        assert [group["instanceType"]] == other["instanceTypes"]
        assert (group["capacity"] == "spot") == other.get("spot", False)
        assert (group["size"], group["max"]) == (other["minSize"], other["maxSize"])
    pools = {group["labels"][POOL]: group["taints"] for group in groups()}
    for flavor in yaml.safe_load(QUEUES)["flavors"]:
        assert flavor["taints"] == flavor["tolerations"] == pools[flavor["nodeLabels"][POOL]]


def test_mig_manager_makes_the_slices_that_the_drill_and_the_quotas_count():
    mig, sharing = (each["data"] for each in objects("nvidia"))
    [name, *_] = [
        group["labels"]["nvidia.com/mig.config"]
        for group in objects("node-groups")[0]["managedNodeGroups"]
        if group["name"] == "shared"
    ]
    config = yaml.safe_load(mig["config.yaml"])["mig-configs"][name]
    [shared] = [group for group in groups() if group["name"] == "shared"]
    assert config[0]["mig-devices"] == {
        resource.removeprefix("nvidia.com/mig-"): count
        for resource, count in shared["allocatable"].items()
        if resource.startswith("nvidia.com/mig-")
    }
    geometries = geometries_of(CARDS["H100-80GB-HBM3"])
    layouts = [(geometry,) for geometry in geometries.maximal]
    [layout] = [each for each in layouts if layout_name(geometries, each) == name]
    assert mig_config(geometries, layout)[0]["mig-devices"] == config[0]["mig-devices"]
    configuration = configuration_of(yaml.safe_load(QUEUES))
    quota = sum(queue.quotas["shared", SLICE].nominal for queue in configuration.queues)
    assert quota == shared["size"] * shared["allocatable"][SLICE]
    [replicas] = yaml.safe_load(sharing["four"])["sharing"]["timeSlicing"]["resources"]
    sliced = [group for group in groups() if group["labels"][POOL] == "time-sliced"]
    counts = {group["allocatable"]["nvidia.com/gpu.shared"] for group in sliced}
    assert counts == {replicas["replicas"]}


# --- The quotas ---------------------------------------------------------------------------------


@pytest.fixture
def teams() -> Scene:
    """The pools of the example with all of its Jobs but `embed`, planned."""
    scene = Scene(nodes=0, queues=QUEUES)
    scene.play.apply(*objects("namespaces"))
    for node in nodes():
        scene.play.cluster.join(node, now=scene.play.now)
    scene.submit(TRAIN, SWEEP_A, SWEEP_B)
    scene.run(10)
    return scene


def standing(scene: Scene, *jobs: str) -> dict[str, int]:
    """Return how many running pods of Jobs stand in each pool."""
    found: dict[str, int] = {}
    pool = {node["metadata"]["name"]: node["metadata"]["labels"][POOL] for node in nodes()}
    for pod in scene.pods_of(*jobs):
        if pod["status"]["phase"] == "Running":
            where = pool[pod["spec"]["nodeName"]]
            found[where] = found.get(where, 0) + 1
    return found


def in_team(scene: Scene, job: Json) -> Json:
    meta = job["metadata"]
    return scene.play.get(f"/apis/batch/v1/namespaces/{meta['namespace']}/jobs/{meta['name']}")


def test_a_team_borrows_idle_slices_and_the_other_takes_them_back(teams: Scene):
    assert standing(teams, "sweep-a", "sweep-b") == {"shared": 12}
    assert standing(teams, "train") == {"research": 2}
    teams.submit(EMBED)
    teams.run(60)
    assert standing(teams, "embed") == {"shared": 4}
    assert standing(teams, "sweep-a", "sweep-b") == {"shared": 8}
    assert standing(teams, "train") == {"research": 2}
    stopped = in_team(teams, SWEEP_B)
    assert stopped["spec"]["suspend"]
    assert stop_of(stopped)["madeWay"] == in_team(teams, EMBED)["metadata"]["uid"]


def test_what_a_team_wants_beyond_its_borrowing_limit_waits(teams: Scene):
    more = on(SWEEP_B, name="more")
    more["spec"] = {**more["spec"], "parallelism": 1, "completions": 1}
    teams.submit(more)
    teams.run(10)
    assert in_team(teams, more)["spec"]["suspend"]


@pytest.mark.parametrize(
    "spec",
    [
        {"containers": asking("nvidia.com/gpu")},
        {"nodeSelector": {POOL: "research"}, "tolerations": [{"operator": "Exists"}]},
        {"nodeSelector": {POOL: "time-sliced"}, "tolerations": [{"operator": "Exists"}]},
    ],
    ids=["whole GPUs", "by its selector", "the time-sliced pool"],
)
def test_a_pool_takes_no_jobs_of_a_team_without_quota_there(teams: Scene, spec: dict[str, Any]):
    teams.play.call("DELETE", "/apis/batch/v1/namespaces/research/jobs/train")
    teams.play.call("DELETE", "/apis/batch/v1/namespaces/vision/jobs/sweep-a")
    intruder = on(SWEEP_B, name="intruder", **spec)
    teams.submit(intruder)
    teams.run(40)
    assert standing(teams, "train", "sweep-a") == {}
    assert in_team(teams, intruder)["spec"]["suspend"]


def test_a_pod_of_no_queue_stays_out_of_every_pool_that_it_does_not_tolerate(teams: Scene):
    for resource in ("nvidia.com/gpu.shared", SLICE):
        name = f"stray-{resource.partition('/')[2].replace('.', '-')}"
        meta = {"name": name, "namespace": "models"}
        teams.play.apply(
            {"kind": "Pod", "metadata": meta, "spec": {"containers": asking(resource)}}
        )
    teams.play.call("DELETE", "/apis/batch/v1/namespaces/vision/jobs/sweep-a")
    teams.run(40)
    strays = [p for p in teams.play.pods() if p["metadata"]["name"].startswith("stray-")]
    assert [pod["spec"].get("nodeName") for pod in strays] == [None, None]


def test_slices_are_counted_by_the_name_of_their_resource(teams: Scene):
    teams.submit(EMBED)
    teams.run(60)
    large = on(EMBED, name="large", containers=asking("nvidia.com/mig-3g.40gb"))
    teams.submit(large, on(EMBED, name="second"))
    teams.run(10)
    assert standing(teams, "embed", "train") == {"shared": 4, "research": 2}
    for job in (large, on(EMBED, name="second")):  # no quota for one, no quota left for the other
        assert in_team(teams, job)["spec"]["suspend"]


# --- The drill ----------------------------------------------------------------------------------


def test_the_drill_holds_what_it_expects_and_nothing_is_lost_that_an_evictor_keeps():
    file = (FOLDER / "drill.yaml").read_text()
    assert "# What it teaches: " in file
    assert file.count("plimsoll drill examples/gpu-tenancy/drill.yaml") == 2
    ours, theirs = (run(drill(), responder=who, seed=7) for who in ("plimsoll", "drain"))
    assert ours["expect"] == {"held": True, "failures": []}
    assert ours["settled"]
    for figure in ("pods_killed", "pods_cut_short", "ready_replica_seconds_lost"):
        assert ours["totals"][figure] == 0
        assert ours["totals"][figure] <= theirs["totals"][figure]
    assert theirs["totals"]["ready_replica_seconds_lost"] > 0


def test_all_pods_of_the_training_gang_are_told_although_one_node_of_it_goes():
    told: list[str | None] = []
    with Simulation(drill(), responder="plimsoll", seed=7) as play:
        play.prepare()
        play.begin()
        cluster = play.rig_clusters["harbor"]

        def look() -> None:
            pods = [p for p in cluster.all("pods") if p["metadata"]["namespace"] == "research"]
            gang = [p for p in pods if "plimsoll.dev/gang" in p["metadata"].get("labels", {})]
            notes = (p["metadata"].get("annotations", {}) for p in gang)
            told.extend(each.get("plimsoll.dev/deadline") for each in notes)

        started = cluster.started
        assert started is not None
        play.clock.at(started + SEEN_AFTER, look)
        assert play.watch()
    assert len(told) == 2
    assert len(set(told)) == 1
    assert None not in told
