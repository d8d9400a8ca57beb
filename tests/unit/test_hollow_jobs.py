"""Jobs: what finishes, what counts as a failure, and when they give up.

Source: https://kubernetes.io/docs/concepts/workloads/controllers/job/
"""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll_testbed.model.hollow.conditions import condition, is_true
from tests.support.hollows import Json, Play, a_template

JOBS = "/apis/batch/v1/namespaces/default/jobs"


@pytest.fixture
def play() -> Play:
    play = Play()
    play.nodes("a", "b")
    return play


def a_job(run: str | None, *, stop: str = "3s", **spec: Any) -> Json:
    annotations = {"stop": stop} | ({"run": run} if run else {})
    template = a_template("sum", annotations=annotations, restartPolicy="Never")
    return {
        "kind": "Job",
        "metadata": {"name": "sum", "namespace": "default"},
        "spec": {"template": template, **spec},
    }


def job(play: Play) -> Json:
    return play.get(f"{JOBS}/sum")


def figures(play: Play) -> tuple[int, ...]:
    status = job(play)["status"]
    return tuple(status[key] for key in ("active", "succeeded", "failed"))


def active(play: Play) -> list[str]:
    return sorted(
        p["metadata"]["name"]
        for p in play.pods()
        if p["status"]["phase"] == "Running" and "deletionTimestamp" not in p["metadata"]
    )


def test_a_pod_that_says_nothing_never_finishes(play: Play):
    play.apply(a_job(None))
    play.wait(3600)
    assert figures(play) == (1, 0, 0)


def test_a_finished_pod_gives_its_room_back(play: Play):
    play.apply(a_job("30s"))
    play.wait(60)
    (pod,) = play.pods()
    assert pod["status"]["phase"] == "Succeeded"
    assert not play.serving()
    assert play.evict(pod["metadata"]["name"]).status == 201
    play.wait(1)
    assert figures(play) == (0, 1, 0)
    assert is_true(job(play), "Complete")


def test_an_evicted_pod_has_failed_and_starts_from_the_beginning(play: Play):
    play.apply(a_job("90s"))
    play.wait(60)
    (old,) = active(play)
    play.evict(old)
    play.wait(20)
    (new,) = active(play)
    assert new != old
    assert figures(play) == (1, 0, 1)
    play.wait(80)
    assert not is_true(job(play), "Complete")
    play.wait(10)
    assert is_true(job(play), "Complete")


def test_a_pod_that_is_done_within_its_grace_period_stays_counted_as_failed(play: Play):
    play.apply(a_job("30s", stop="20s"))
    play.wait(35)
    (old,) = active(play)
    play.evict(old)
    play.wait(15)
    assert not play.stops
    assert figures(play) == (1, 0, 1)
    play.wait(35)
    assert figures(play) == (0, 1, 1)
    assert is_true(job(play), "Complete")


def test_a_job_gives_up_when_more_pods_were_lost_than_its_limit(play: Play):
    play.apply(a_job(None, parallelism=2, completions=2, backoffLimit=1))
    for _ in range(2):
        play.wait(20)
        play.evict(active(play)[0])
    play.wait(20)
    failed = condition(job(play), "Failed")
    assert failed is not None
    assert failed["reason"] == "BackoffLimitExceeded"
    assert not play.pods()
    assert figures(play) == (0, 0, 2)


def test_a_pod_killed_with_its_node_counts_when_its_object_is_collected(play: Play):
    play.apply(a_job(None))
    play.wait(20)
    node = "a" if play.pods_on("a") else "b"
    play.cluster.vanish(node, now=play.now)
    play.wait(180)
    assert figures(play) == (1, 0, 1)


IGNORING = {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]}


def ended(play: Play) -> list[tuple[str, str, int]]:
    """Return phase, reason of the condition DisruptionTarget and exit code of pods that ended, as watches showed them."""
    return [
        (
            change.object["status"]["phase"],
            (condition(change.object, "DisruptionTarget") or {}).get("reason", ""),
            change.object["status"]["containerStatuses"][0]["state"]
            .get("terminated", {})
            .get("exitCode", 0),
        )
        for change in play.cluster.store.since(0, "pods")
        if change.type == "DELETED"
    ]


def test_a_pod_that_was_told_to_go_says_how_it_ended_before_its_object_goes(play: Play):
    play.apply(a_job(None, parallelism=2))
    play.wait(20)
    first, second = active(play)
    play.evict(first)
    play.delete(second, gracePeriodSeconds=1)
    play.wait(10)
    assert sorted(ended(play)) == [
        ("Failed", "", 128 + 9),
        ("Failed", "EvictionByEvictionAPI", 128 + 15),
    ]


@pytest.mark.parametrize(
    ("policy", "how", "failed"),
    [
        (IGNORING, "evicted", False),
        (IGNORING, "deleted", True),
        (IGNORING, "orphaned", False),
        (IGNORING, "out of service", False),
        (None, "evicted", True),
        (None, "orphaned", True),
    ],
)
def test_a_policy_ignores_what_evictions_taints_and_pod_gc_end_and_not_what_was_deleted(
    play: Play, policy, how, failed
):
    play.apply(a_job(None, backoffLimit=0, **({"podFailurePolicy": policy} if policy else {})))
    play.wait(20)
    (old,) = active(play)
    node = "a" if play.pods_on("a") else "b"
    match how:
        case "evicted":
            play.evict(old)
        case "deleted":
            play.delete(old)
        case _:
            play.cluster.vanish(node, now=play.now, stopped=how == "out of service")
            play.wait(70)
    if how == "out of service":
        taint = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}
        play.patch(f"/api/v1/nodes/{node}", {"spec": {"taints": [taint]}})
    play.wait(180)
    assert is_true(job(play), "Failed") is failed
    assert old not in active(play)
    assert len(active(play)) == (not failed)


def test_pods_that_a_job_takes_away_itself_have_not_failed(play: Play):
    play.apply(a_job(None, parallelism=3, completions=3, backoffLimit=0))
    play.wait(20)
    play.patch(f"{JOBS}/sum", {"spec": {"parallelism": 1}})
    play.wait(20)
    assert figures(play) == (1, 0, 0)
    play.patch(f"{JOBS}/sum", {"spec": {"suspend": True}})
    play.wait(20)
    assert figures(play) == (0, 0, 0)
    play.patch(f"{JOBS}/sum", {"spec": {"suspend": False}})
    play.wait(20)
    assert figures(play) == (1, 0, 0)


def test_without_completions_one_success_is_enough(play: Play):
    play.apply(a_job("60s", parallelism=2))
    play.wait(40)
    play.evict(active(play)[0])
    play.wait(40)
    assert figures(play) == (1, 1, 1)
    play.wait(60)
    assert figures(play) == (0, 2, 1)
    assert is_true(job(play), "Complete")


def test_a_pod_that_is_restarted_always_never_finishes(play: Play):
    manifest = a_job("30s")
    manifest["spec"]["template"]["spec"]["restartPolicy"] = "Always"
    play.apply(manifest)
    play.wait(300)
    assert len(play.serving()) == 1


def test_a_suspended_job_says_so_and_says_when_it_goes_on(play: Play):
    play.apply(a_job("90s", suspend=True))
    play.wait(5)
    assert is_true(job(play), "Suspended")
    play.patch(f"{JOBS}/sum", {"spec": {"suspend": False}})
    play.wait(20)
    told = condition(job(play), "Suspended")
    assert told is not None
    assert (told["status"], told["reason"]) == ("False", "JobResumed")
