"""The planner of the queues on a cluster: gangs start whole, stop whole, and end where they began."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from plimsoll.adapters.kubernetes import KubernetesCluster
from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.interruptions import Interruption, NoticeRecord
from tests.support.queue_scenes import (
    Scene,
    a_job,
    a_training,
    killed_at_each_write,
    record,
    stop_of,
)

TWO_FLAVORS = """
flavors:
  - {name: spot, nodeLabels: {capacity: spot}, tolerations: [{key: spot, operator: Exists}]}
  - {name: base, nodeLabels: {capacity: base}}
queues:
  - name: lab
    resourceGroups:
      - flavors:
          - {name: spot, resources: {cpu: {nominal: 4}}}
          - {name: base, resources: {cpu: {nominal: 4}}}
"""


# --- Starting ------------------------------------------------------------------------------------


def test_a_suspended_job_starts_when_there_is_quota_and_a_place():
    scene = Scene(nodes=2)
    scene.submit(a_job("one", 2))
    scene.run()
    assert scene.running("one") == 2


def test_a_gang_starts_with_all_its_roles_by_one_plan():
    scene = Scene(nodes=6)
    scene.submit(*a_training("train"))
    scene.run()
    assert scene.running("train-ps", "train-workers") == 6
    ps, workers = record(scene.job("train-ps")), record(scene.job("train-workers"))
    assert ps["plan"] == workers["plan"]
    assert set(ps["roles"]) == {"train-ps", "train-workers"}


def test_a_gang_without_a_place_for_all_its_pods_starts_none():
    scene = Scene(nodes=5)
    scene.submit(*a_training("train"))
    scene.run()
    assert not scene.pods_of("train-ps", "train-workers")


def test_of_two_gangs_with_room_for_one_the_other_waits_and_follows():
    scene = Scene(nodes=10)
    scene.submit(*a_training("one", run="20s"), *a_training("two", run="20s"))
    scene.run(10)
    assert sorted(
        (scene.running("one-ps", "one-workers"), scene.running("two-ps", "two-workers"))
    ) == [0, 6]
    scene.run(50)
    assert all(scene.complete(name) for name in ("one-ps", "one-workers", "two-ps", "two-workers"))


def test_what_was_just_started_is_counted_on_the_nodes_where_it_is_expected():
    scene = Scene(nodes=6, pod_startup=30)
    scene.submit(a_job("one", 6))
    scene.run(1)
    scene.submit(a_job("two", 6))
    scene.run(5)
    assert scene.suspended("two")


def test_pods_of_others_take_room():
    scene = Scene(nodes=2)
    scene.submit({**a_job("other", 1), "metadata": {"name": "other", "namespace": "lab"}})
    scene.patch("other", {"spec": {"suspend": False}})
    scene.clock.sleep(5)
    scene.submit(a_job("mine", 2), a_job("small", 1))
    scene.run()
    assert (scene.running("mine"), scene.running("small")) == (0, 1)


def test_pods_are_steered_to_their_flavor_and_keep_what_they_had():
    scene = Scene(nodes=0, queues=TWO_FLAVORS)
    scene.play.nodes("s1", "s2", cpu="1", capacity="spot")
    job = a_job("one", 2)
    kept = {"key": "dedicated", "operator": "Exists", "tolerationSeconds": 5, "effect": "NoExecute"}
    job["spec"]["template"]["spec"] |= {
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [kept],
    }
    for name in ("s1", "s2"):
        scene.play.patch(
            f"/api/v1/nodes/{name}", {"metadata": {"labels": {"kubernetes.io/os": "linux"}}}
        )
    scene.submit(job)
    scene.run()
    spec = scene.job("one")["spec"]["template"]["spec"]
    assert spec["nodeSelector"] == {"kubernetes.io/os": "linux", "capacity": "spot"}
    assert spec["tolerations"] == [kept, {"key": "spot", "operator": "Exists"}]
    assert scene.running("one") == 2


def test_a_job_that_gets_another_flavor_loses_what_the_first_had_added():
    scene = Scene(nodes=0, queues=TWO_FLAVORS, pod_stop=1)
    scene.play.nodes("s1", cpu="1", capacity="spot")
    scene.submit(a_job("one"))
    scene.run()
    scene.patch("one", {"metadata": {"annotations": {"plimsoll.dev/hold": "true"}}})
    scene.run(10)
    assert not scene.pods_of("one")
    scene.play.cordon("s1")
    scene.play.nodes("b1", cpu="1", capacity="base")
    scene.patch("one", {"metadata": {"annotations": {"plimsoll.dev/hold": None}}})
    scene.run(10)
    spec = scene.job("one")["spec"]["template"]["spec"]
    assert spec["nodeSelector"] == {"capacity": "base"}
    assert not spec["tolerations"]
    assert scene.running("one") == 1


# --- Stopping ------------------------------------------------------------------------------------


def test_a_gang_makes_way_whole_and_the_other_starts_once_its_pods_are_gone():
    scene = Scene(nodes=6, pod_stop=4)
    scene.submit(*a_training("low"))
    scene.run()
    scene.submit(*a_training("high", annotations={"plimsoll.dev/priority": "10"}))
    scene.run(3)
    assert scene.suspended("low-ps")
    assert scene.suspended("low-workers")
    assert scene.suspended("high-ps")
    scene.run(10)
    assert scene.running("high-ps", "high-workers") == 6
    assert not scene.pods_of("low-ps", "low-workers")
    assert stop_of(scene.job("low-ps"))["madeWay"] == "lab/high"


def test_who_made_way_starts_again_when_the_other_has_ended():
    scene = Scene(nodes=2, pod_stop=1)
    scene.submit(a_job("low", 2, run="300s"))
    scene.run()
    scene.submit(a_job("high", 2, run="20s", annotations={"plimsoll.dev/priority": "10"}))
    scene.run(60)
    assert scene.complete("high")
    assert scene.running("low") == 2


def test_a_gang_that_does_not_run_in_time_is_suspended_and_tried_again_later():
    scene = Scene(nodes=2, pod_startup=60)
    scene.submit(a_job("slow", 2, annotations={"plimsoll.dev/start-seconds": "20"}))
    scene.run(30)
    assert scene.suspended("slow")
    stop = stop_of(scene.job("slow"))
    assert stop["attempts"] == 1
    assert "2 of its pods do not run after 20 s" in stop["why"]
    scene.run(40)
    assert stop_of(scene.job("slow"))["attempts"] == 2


def test_a_gang_that_lost_a_node_for_good_is_suspended_whole():
    scene = Scene(nodes=6, pod_stop=1)
    notes = {"plimsoll.dev/start-seconds": "20"}
    scene.submit(*a_training("train", annotations=notes))
    scene.run()
    node = scene.pods_of("train-ps")[0]["spec"]["nodeName"]
    scene.play.cordon(node)
    victim = next(p for p in scene.pods_of("train-ps") if p["spec"]["nodeName"] == node)
    scene.play.call("DELETE", f"/api/v1/namespaces/lab/pods/{victim['metadata']['name']}")
    for _ in range(3):  # as the schedule does
        scene.run(20)
    assert not scene.pods_of("train-ps", "train-workers")
    assert scene.suspended("train-workers")


def test_a_held_gang_is_suspended_and_waits():
    scene = Scene(nodes=6, pod_stop=1)
    scene.submit(*a_training("train"))
    scene.run()
    scene.patch("train-ps", {"metadata": {"annotations": {"plimsoll.dev/hold": "true"}}})
    scene.run(10)
    assert not scene.pods_of("train-ps", "train-workers")
    scene.patch("train-ps", {"metadata": {"annotations": {"plimsoll.dev/hold": None}}})
    scene.run(10)
    assert scene.running("train-ps", "train-workers") == 6


def test_who_suspends_a_role_by_hand_suspends_the_gang_and_is_not_fought():
    scene = Scene(nodes=6, pod_stop=1)
    scene.submit(*a_training("train"))
    scene.run()
    scene.patch("train-ps", {"spec": {"suspend": True}})
    scene.run(30)
    assert not scene.pods_of("train-ps", "train-workers")
    assert scene.suspended("train-workers")


def reclaim(scene: Scene, node: str, minutes: float = 2) -> None:
    """Let a node's record say when its instance goes."""
    api = KubernetesCluster(scene.wire, "harbor", scene.clock, workers=SerialWorkers())
    found = api.node(node)
    assert found is not None
    now = scene.clock.now()
    ends = now + timedelta(minutes=minutes)
    notice = NoticeRecord(kind="spot-interruption", time=now, id="event", ends=ends)
    instance = found.instance or ""
    record = Interruption(instance=instance, launched=None, node=node, notices=(notice,))
    api.cordon(found, record)


WHOLE = {"plimsoll.dev/on-interruption": "suspend"}


def test_a_gang_that_asks_for_it_is_suspended_whole_when_a_node_is_reclaimed_and_placed_first():
    scene = Scene(nodes=6, pod_stop=1)
    scene.submit(*a_training("train", annotations=WHOLE))
    scene.run()
    scene.submit(a_job("urgent", 6, annotations={"plimsoll.dev/priority": "0"}))
    reclaim(scene, "n0")
    scene.run(10)
    assert scene.suspended("train-ps")
    assert not scene.pods_of("train-ps", "train-workers")
    assert stop_of(scene.job("train-ps"))["why"] == "node n0 is reclaimed"
    scene.play.nodes("new", cpu="1")
    scene.run(10)
    assert scene.running("train-ps", "train-workers") == 6
    assert scene.suspended("urgent")


@pytest.mark.parametrize(("notes", "minutes"), [({}, 2), (WHOLE, 120)], ids=["unasked", "later"])
def test_a_gang_that_does_not_ask_or_has_hours_is_left_alone(notes, minutes):
    scene = Scene(nodes=6, pod_stop=1)
    scene.submit(*a_training("train", annotations=notes))
    scene.run()
    reclaim(scene, "n0", minutes)
    scene.run(10)
    assert scene.running("train-ps", "train-workers") == 6


# --- Hostile and broken input ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("jobs", "words"),
    [
        ([a_job("bad", gang="g", size=3, role="a")], "declares 3 pods and its 1 Jobs have 1"),
        ([a_job("bad", gang="g", role="a")], "none of its Jobs declares plimsoll.dev/gang-size"),
        ([a_job("bad", annotations={"plimsoll.dev/priority": "very"})], "must be a whole number"),
        ([a_job("bad", annotations={"plimsoll.dev/topology": "zone"})], "must be required=LABEL"),
        ([a_job("bad", annotations={"plimsoll.dev/admission": "[" * 5000})], "is no JSON"),
        ([a_job("bad", annotations={"plimsoll.dev/admission": '{"v":1}'})], "plan: must be"),
        (
            [
                a_job("bad", gang="g", size=2, role="a"),
                a_job("other", gang="g", size=2, role="b", queue="elsewhere"),
            ],
            "different queues: elsewhere, lab",
        ),
    ],
    ids=["too few", "no size", "priority", "topology", "deep record", "empty record", "two queues"],
)
def test_a_bad_gang_waits_and_is_told_and_others_go_on(jobs, words):
    scene = Scene(nodes=4)
    scene.submit(*jobs, a_job("good"))
    scene.run()
    assert scene.running("good") == 1
    assert scene.suspended("bad")
    assert any(words in event for event in scene.events("bad"))


def test_a_job_that_names_an_unknown_queue_waits():
    scene = Scene(nodes=4)
    scene.submit(a_job("lost", queue="nowhere"), a_job("good"))
    scene.run()
    assert scene.suspended("lost")
    assert scene.running("good") == 1


def test_a_job_that_nobody_admitted_is_left_alone():
    scene = Scene(nodes=2)
    scene.submit(a_job("wild", suspend=False), a_job("mine", 2))
    scene.run(10)
    assert scene.running("wild") == 1
    assert scene.suspended("mine")


def test_a_role_that_is_deleted_meanwhile_costs_only_its_own_gang():
    scene = Scene(nodes=8)
    scene.submit(*a_training("train"), a_job("good"))

    def delete(method: str, path: str, body: object) -> None:
        if method == "PATCH" and "suspend" in json.dumps(body) and path.endswith("train-ps"):
            scene.wire.before = lambda *_: None
            scene.play.call("DELETE", "/apis/batch/v1/namespaces/lab/jobs/train-workers")

    scene.wire.before = delete
    scene.run(30)
    assert scene.running("good") == 1
    assert not scene.pods_of("train-ps", "train-workers")


def test_a_wrong_configuration_is_told_and_nothing_is_written():
    scene = Scene(
        queues="flavors: []\nqueues: [{name: lab, cohort: nowhere, resourceGroups: []}]\n"
    )
    scene.submit(a_job("one"))
    scene.run()
    assert scene.suspended("one")
    assert scene.events("plimsoll-queues")


# --- One planner at a time -------------------------------------------------------------------------


def test_a_second_planner_leaves_at_once():
    scene = Scene()
    scene.submit(a_job("one"))
    assert scene.service().cluster.acquire("first", 30)
    assert scene.run() == 0
    assert scene.suspended("one")


def test_nothing_is_written_for_gangs_that_only_wait():
    scene = Scene(nodes=1)
    scene.submit(a_job("large", 2))
    scene.run()
    writes: list[str] = []
    scene.wire.before = lambda method, path, _: writes.append(f"{method} {path}")
    scene.run(30)
    assert writes == []


# --- Killed in the middle --------------------------------------------------------------------------


def _story() -> Scene:
    """A gang runs, another of higher priority takes its place, and ends; then the first runs again."""
    scene = Scene(nodes=6, pod_stop=2)
    scene.submit(*a_training("low", run="60s"))
    return scene


def _tell(scene: Scene) -> None:
    scene.run(10)
    scene.submit(*a_training("high", run="20s", annotations={"plimsoll.dev/priority": "10"}))
    for _ in range(4):
        scene.run(60)


def _partial(scene: Scene) -> list[str]:
    """Gangs of which some roles are suspended and others are not."""
    names = ("low", "high")
    return [
        name
        for name in names
        if len({scene.suspended(f"{name}-{role}") for role in ("ps", "workers")}) > 1
    ]


@pytest.mark.parametrize("after", [True, False], ids=["after the write", "before the write"])
def test_killed_at_any_write_the_story_ends_the_same(after):
    wrong, count = {}, 0
    for where, scene in killed_at_each_write(_story, _tell, after=after):
        count += 1
        ended = [
            f"{g}-{r}"
            for g in ("low", "high")
            for r in ("ps", "workers")
            if not scene.complete(f"{g}-{r}")
        ]
        if ended or _partial(scene):
            wrong[where] = (ended, _partial(scene))
    assert wrong == {}
    assert count > 12


# --- Beyond quota, and beyond their time ----------------------------------------------------------

FOUR = """
flavors: [{name: any}]
queues:
  - name: lab
    preemption: {withinQueue: LowerPriority}
    resourceGroups: [{flavors: [{name: any, resources: {cpu: {nominal: 4}}}]}]
"""


def test_a_job_whose_parallelism_is_raised_beyond_quota_is_suspended_and_waits_again():
    scene = Scene(nodes=9, queues=FOUR)
    scene.submit(a_job("grows", 2, completions=9), a_job("stays", 2))
    scene.run()
    scene.patch("grows", {"spec": {"parallelism": 5}})
    scene.run(10)
    assert scene.suspended("grows")
    assert scene.pods_of("grows") == []
    assert scene.running("stays") == 2
    [told] = [words for words in scene.events("grows") if words.startswith("QueueSuspended")]
    assert "raised to parallelism 5, for which queue lab has no quota" in told
    scene.configure(FOUR.replace("4", "9"))
    scene.run(10)
    assert scene.running("grows") == 5


def test_a_job_whose_parallelism_is_raised_within_quota_goes_on_and_counts():
    scene = Scene(nodes=9, queues=FOUR)
    scene.submit(a_job("grows", 2, completions=9))
    scene.run()
    scene.patch("grows", {"spec": {"parallelism": 3}})
    scene.submit(a_job("other", 2))
    scene.run(10)
    assert scene.running("grows") == 3
    assert scene.suspended("other")


def test_a_victim_whose_pod_hangs_is_named_and_after_a_while_holds_the_queue_no_longer():
    scene = Scene(nodes=5, queues=FOUR)
    scene.submit(a_job("low", 4))
    scene.run()
    pod = scene.pods_of("low")[0]
    name, node = pod["metadata"]["name"], pod["spec"]["nodeName"]
    scene.play.cluster.vanish(node, now=scene.clock.now(), stopped=True)  # nobody stops the pod
    scene.submit(a_job("high", 4, annotations={"plimsoll.dev/priority": "10"}))
    for _ in range(5):
        scene.run(50)
    assert scene.suspended("low")
    assert scene.suspended("high")
    for _ in range(3):
        scene.run(50)
    assert scene.running("high") == 4
    told = f"pod {name} hangs in Terminating on node {node}"
    assert any(told in words for words in scene.events("low"))
    assert scene.suspended("low")
