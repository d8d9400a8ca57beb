"""Gangs that need new nodes: what is asked, once, and what becomes of it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from plimsoll.domain.errors import Throttled
from plimsoll.domain.kubernetes import ZONE
from plimsoll_batch.domain.explanation import in_words, why
from plimsoll_batch.domain.names import NODES
from plimsoll_batch.services.queue_observation import seen_in
from tests.support.builders import ZONE_A, ZONE_B, a_group
from tests.support.growing_scenes import GrowingScene, a_worker_group
from tests.support.queue_scenes import KilledError, a_job, a_training

SMALL = """
flavors: [{name: any}]
queues:
  - name: lab
    resourceGroups: [{flavors: [{name: any, resources: {cpu: {nominal: 4}}}]}]
"""


def sizes(scene: GrowingScene) -> dict[str, int]:
    return {group.name: group.desired for group in scene.groups.known.values()}


def test_a_gang_without_a_place_asks_for_what_it_lacks_and_starts_when_that_is_there():
    scene = GrowingScene(a_worker_group(), nodes=2)
    scene.submit(*a_training("train"))
    scene.run(30)
    assert [(group, add) for group, add, _ in scene.groups.grown] == [("workers", 4)]
    assert scene.suspended("train-ps")
    scene.run(20)
    assert scene.running("train-ps", "train-workers") == 6
    assert sizes(scene) == {"workers": 4}


def test_no_pod_is_made_before_the_last_node_has_come():
    scene = GrowingScene(a_worker_group())
    scene.submit(*a_training("train"))
    scene.run(20)
    at, late = scene.groups.due.pop()
    scene.run(40)
    assert scene.pods_of("train-ps", "train-workers") == []
    scene.groups.due.append((at, late))
    scene.run(20)
    assert scene.running("train-ps", "train-workers") == 6


def test_nothing_is_asked_while_a_place_exists_or_quota_is_missing():
    scene = GrowingScene(a_worker_group(), nodes=6, queues=SMALL)
    scene.submit(a_job("fits", 4))
    scene.run(5)
    scene.submit(a_job("later", 2))
    scene.run(60)
    assert scene.running("fits") == 4
    assert scene.groups.grown == []


def test_a_group_that_cannot_hold_the_whole_gang_is_asked_for_nothing():
    scene = GrowingScene(a_worker_group(max_size=5))
    scene.submit(*a_training("train"))
    scene.run(60)
    assert scene.groups.grown == []
    assert sizes(scene) == {"workers": 0}


def test_a_group_without_the_tag_and_one_that_provisions_by_itself_are_asked_for_nothing():
    scene = GrowingScene(
        replace(a_worker_group("closed"), may_grow=False),
        replace(a_worker_group("pool", kind="karpenter"), provisions=True),
    )
    scene.submit(a_job("waits"))
    scene.run(60)
    assert scene.groups.grown == []
    assert scene.suspended("waits")


def test_what_is_asked_is_written_down_before():
    scene = GrowingScene(a_worker_group())
    scene.submit(a_job("train", 2))
    seen = []
    scene.groups.before = lambda: seen.append(scene.request("train")["asks"][0]["add"])
    scene.run(5)
    assert seen == [2]
    assert scene.request("train")["answered"]


@pytest.mark.parametrize("place", ["before", "after"])
def test_a_planner_that_dies_at_a_request_leaves_it_to_the_next_which_asks_for_no_more(place):
    scene = GrowingScene(a_worker_group())
    scene.submit(*a_training("train"))
    with scene.killed(place):
        assert scene.run(5) == -1
    assert not scene.request("train-ps")["answered"]
    scene.clock.sleep(20)  # the Lease of who died runs out
    scene.run(60)
    assert sizes(scene) == {"workers": 6}
    assert len({token for *_, token in scene.groups.grown}) == 1
    assert scene.running("train-ps", "train-workers") == 6


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("write", range(4))
def test_killed_at_any_write_a_gang_gets_its_nodes_once(write, after):
    scene = GrowingScene(a_worker_group())
    scene.submit(*a_training("train"))
    left = write

    def count(*_: object) -> None:
        nonlocal left
        left -= 1
        if left == -1:
            raise KilledError

    setattr(scene.wire, "after" if after else "before", count)
    for _ in range(4):
        scene.run(50)
    assert sizes(scene) == {"workers": 6}
    assert scene.running("train-ps", "train-workers") == 6


def test_two_gangs_are_promised_different_nodes_and_each_gets_its_own():
    scene = GrowingScene(a_worker_group(max_size=20))
    scene.submit(*a_training("one"), *a_training("two"))
    scene.run(60)
    assert sizes(scene) == {"workers": 12}
    assert scene.running("one-ps", "one-workers") == 6
    assert scene.running("two-ps", "two-workers") == 6


def test_small_gangs_share_the_nodes_that_come():
    scene = GrowingScene(a_worker_group(cpu="4"))
    scene.submit(*(a_job(f"small-{n}") for n in range(6)))
    scene.run(60)
    assert sizes(scene) == {"workers": 2}
    assert scene.running(*(f"small-{n}" for n in range(6))) == 6


def test_one_that_needs_another_zone_is_not_promised_a_node_on_its_way_here():
    group = a_worker_group(zones=(ZONE_A, ZONE_B), launchable=True, desired=1, instances=["i-1"])
    scene = GrowingScene(replace(group, zone_of={"i-1": ZONE_A}))
    there = a_job("there")
    there["spec"]["template"]["spec"]["nodeSelector"] = {ZONE: ZONE_B}
    scene.submit(there)
    scene.run(5)
    assert [(ask["add"], ask["zone"]) for ask in scene.request("there")["asks"]] == [(1, ZONE_B)]


def test_a_node_on_its_way_in_a_known_zone_is_promised_once():
    group = a_worker_group(zones=(ZONE_A, ZONE_B), launchable=True, desired=1, instances=["i-1"])
    scene = GrowingScene(replace(group, zone_of={"i-1": ZONE_B}))
    for name in ("first", "second"):
        job = a_job(name)
        job["spec"]["template"]["spec"]["nodeSelector"] = {ZONE: ZONE_B}
        scene.submit(job)
    scene.run(5)
    assert [(name, add) for name, add, _ in scene.groups.grown] == [("workers", 1)]


def test_one_that_comes_later_with_more_priority_takes_no_nodes_that_are_awaited():
    scene = GrowingScene(a_worker_group(max_size=6), queues=SMALL.replace("4", "100"))
    scene.submit(*a_training("first"))
    scene.run(20)
    scene.submit(*a_training("second", annotations={"plimsoll.dev/priority": "9"}))
    scene.run(40)
    assert scene.running("first-ps", "first-workers") == 6
    assert scene.suspended("second-ps")


def test_quota_is_reserved_while_nodes_are_awaited():
    scene = GrowingScene(a_worker_group(max_size=4), nodes=1, queues=SMALL)
    scene.submit(a_job("large", 4))
    scene.run(20)
    scene.submit(a_job("small"))  # it would find a place
    scene.run(10)
    assert scene.suspended("small")
    scene.run(30)
    assert scene.running("large") == 4


def test_a_group_that_refuses_is_not_asked_again_at_once_and_another_is():
    scene = GrowingScene(a_worker_group("a-first"), a_worker_group("b-second"))
    scene.groups.refusing.add("a-first")
    scene.submit(a_job("train", 3))
    scene.run(6)
    assert scene.request("train")["notBefore"]
    scene.run(50)
    scene.run(30)
    asked = [group for group, *_ in scene.groups.grown]
    assert asked == ["a-first", "b-second", "b-second"]
    assert sizes(scene) == {"a-first": 0, "b-second": 3}
    assert scene.running("train") == 3


def test_nodes_that_do_not_come_are_given_up_and_another_group_is_asked():
    scene = GrowingScene(a_worker_group("a-first"), a_worker_group("b-second"))
    scene.groups.silent.add("a-first")
    scene.submit(a_job("train", 3))
    for _ in range(3):
        scene.run(50)
    assert sizes(scene) == {"a-first": 2, "b-second": 3}
    assert scene.running("train") == 3


def test_where_no_other_group_will_do_the_pause_grows():
    scene = GrowingScene(a_worker_group())
    scene.groups.refusing.add("workers")
    scene.submit(a_job("train", 3))
    for _ in range(10):
        scene.run(50)
    assert 3 <= len(scene.groups.grown) <= 7
    assert scene.request("train")["attempts"] >= 3


def test_a_group_that_cannot_be_asked_now_is_asked_the_same_a_cycle_later():
    scene = GrowingScene(a_worker_group())
    scene.groups.failing.append(Throttled("slow down"))
    scene.submit(a_job("train", 3))
    scene.run(60)
    assert len(scene.groups.grown) == 1
    assert scene.running("train") == 3


def test_pods_of_daemon_sets_take_their_part_of_nodes_that_come():
    scene = GrowingScene(a_worker_group(cpu="4"), nodes=1)
    scene.play.apply(
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": "logs", "namespace": "lab"},
            "spec": {
                "selector": {"matchLabels": {"app": "logs"}},
                "template": {
                    "metadata": {"labels": {"app": "logs"}},
                    "spec": {
                        "containers": [
                            {"name": "m", "image": "x", "resources": {"requests": {"cpu": "500m"}}}
                        ]
                    },
                },
            },
        }
    )
    scene.clock.sleep(5)
    scene.submit(a_job("train", 8))
    scene.run(60)
    assert sizes(scene) == {"workers": 3}
    assert scene.running("train") == 8


def test_a_gang_that_takes_whole_nodes_gets_them_from_a_group():
    scene = GrowingScene(a_worker_group(cpu="2"))
    scene.submit(a_job("train", 2, annotations={"plimsoll.dev/lease-nodes": "true"}))
    scene.submit(a_job("other"))
    scene.run(60)
    assert scene.running("train") == 2
    assert scene.running("other") == 1
    [node] = {pod["spec"]["nodeName"] for pod in scene.pods_of("train")}
    assert node not in {pod["spec"]["nodeName"] for pod in scene.pods_of("other")}


def test_a_gang_in_one_zone_asks_only_a_group_of_one_zone_for_all_of_it():
    both = a_group("both", cpu="1", launchable=True)
    scene = GrowingScene(both)
    topology = {"plimsoll.dev/topology": "required=topology.kubernetes.io/zone"}
    scene.submit(a_job("train", 3, annotations=topology))
    scene.run(5)
    [ask] = scene.request("train")["asks"]
    assert (ask["add"], ask["zone"]) == (3, "us-east-1a")


def test_a_gang_in_one_rack_asks_for_nothing_where_nobody_knows_the_racks_of_new_nodes():
    scene = GrowingScene(a_worker_group())
    scene.submit(
        a_job("train", 2, annotations={"plimsoll.dev/topology": "required=example.com/rack"})
    )
    scene.run(20)
    assert scene.groups.grown == []


def test_a_flavor_is_chosen_whose_nodes_can_come():
    queues = """
flavors: [{name: gone, nodeLabels: {kind: gone}}, {name: there, nodeLabels: {kind: there}}]
queues:
  - name: lab
    resourceGroups:
      - flavors:
          - {name: gone, resources: {cpu: {nominal: 9}}}
          - {name: there, resources: {cpu: {nominal: 9}}}
"""
    scene = GrowingScene(a_worker_group(labels={"kind": "there"}), queues=queues)
    scene.submit(a_job("train", 3))
    scene.run(60)
    assert scene.running("train") == 3
    assert scene.job("train")["spec"]["template"]["spec"]["nodeSelector"] == {"kind": "there"}


def test_what_was_added_is_told_to_who_gives_it_back():
    scene = GrowingScene(a_worker_group())
    scene.submit(a_job("train", 3))
    scene.run(10)
    [report] = scene.reports.list("harbor")
    assert sum(report.added.values()) == 3
    assert all(key.startswith("asg/workers@") for key in report.added)
    assert report.closed is not None


def test_why_says_what_was_asked_for_and_when_it_is_expected():
    scene = GrowingScene(a_worker_group())
    scene.submit(a_job("train", 3))
    scene.run(10)
    [event] = [words for words in scene.events("train") if words.startswith("QueueNodes")]
    assert "nodes asked for: 3 of group asg/workers, asked at 12:00:0" in event
    told = explained(scene, "train")
    assert "nodes asked for: 3 of group asg/workers, asked at 12:00:0" in told
    assert "expected by 12:03:0" in told


def test_why_says_that_nodes_were_refused():
    scene = GrowingScene(a_worker_group())
    scene.groups.refusing.add("workers")
    scene.submit(a_job("train", 3))
    scene.run(6)
    assert "no such instances; not asked again before" in explained(scene, "train")


@pytest.mark.parametrize(
    "asks",
    [
        {"group": "asg/workers", "desired": 0, "add": 9, "token": "t"},
        {"group": "asg/workers", "desired": 8, "add": 1, "token": "t"},
        {"group": "asg/nobody", "desired": 0, "add": 1, "token": "t"},
    ],
)
def test_a_forged_request_asks_for_no_more_than_the_gang_lacks(asks):
    scene = GrowingScene(a_worker_group())
    forged = {
        "v": 1,
        "at": "2026-03-01T12:00:00+00:00",
        "expected": "2026-03-01T12:03:00+00:00",
        "asks": [asks],
        "answered": False,
        "attempts": 0,
        "notBefore": None,
        "why": "",
    }
    scene.submit(a_job("train", 1, annotations={NODES: json.dumps(forged)}))
    scene.run(60)
    scene.run(60)
    assert sizes(scene) == {"workers": 1}
    assert scene.running("train") == 1


def test_a_request_of_a_former_run_counts_no_more():
    scene = GrowingScene(a_worker_group())
    scene.submit(a_job("train", 2, annotations={"plimsoll.dev/start-seconds": "600"}))
    scene.run(60)
    assert scene.running("train") == 2
    scene.patch("train", {"metadata": {"annotations": {"plimsoll.dev/hold": "true"}}})
    scene.run(40)
    scene.patch("train", {"metadata": {"annotations": {"plimsoll.dev/hold": None}}})
    scene.run(20)
    assert scene.running("train") == 2
    assert len(scene.groups.grown) == 1


def explained(scene: GrowingScene, job: str) -> str:
    cluster = scene.service().cluster
    configuration = cluster.configuration()
    assert configuration is not None
    seen = seen_in(cluster.read(), configuration, scene.clock.now())
    found = why(seen.state, scene.job(job)["metadata"]["uid"], scene.clock.now())
    assert found is not None
    return in_words(found)
