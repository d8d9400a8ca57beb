"""PodGroups as kube-scheduler 1.37 places them; tests/cluster/test_pod_groups.py plays the same on the real one."""

from __future__ import annotations

from tests.support.fake_clusters import PODS, Json, Play, a_pod, a_template


def a_group(count: int | None) -> Json:
    policy: Json = {"basic": {}} if count is None else {"gang": {"minCount": count}}
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "train"},
        "spec": {"schedulingPolicy": policy},
    }


def members(*numbers: int) -> list[Json]:
    """Return pods of which a node takes one."""
    spec: Json = {"schedulingGroup": {"podGroupName": "train"}}
    return [a_pod(f"train-{n}", a_template("train", cpu="8", **spec)) for n in numbers]


def placed(play: Play) -> set[str]:
    pods = play.get(PODS)["items"]
    return {p["metadata"]["name"] for p in pods if "nodeName" in p["spec"]}


def test_pods_wait_for_their_group_and_for_as_many_as_it_needs(play: Play):
    play.apply(*members(0))
    play.wait(5)
    assert placed(play) == set()
    play.apply(a_group(2))
    play.wait(5)
    assert placed(play) == set()
    play.apply(*members(1))
    play.wait(5)
    assert placed(play) == {"train-0", "train-1"}


def test_none_is_placed_where_not_enough_of_them_fit_until_they_do(play: Play):
    play.apply(a_group(3), *members(0, 1, 2))
    play.wait(5)
    assert placed(play) == set()
    play.nodes("c")
    play.wait(5)
    assert placed(play) == {"train-0", "train-1", "train-2"}


def test_pods_of_a_basic_group_are_placed_one_by_one(play: Play):
    play.apply(a_group(None), *members(0, 1, 2))
    play.wait(5)
    assert len(placed(play)) == 2
