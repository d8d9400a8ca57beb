"""Jobs: what finishes, what counts as a failure, and when they give up.

Source: https://kubernetes.io/docs/concepts/workloads/controllers/job/
"""

from __future__ import annotations

from typing import Any

from plimsoll_simulation.fake_cluster.conditions import is_true
from tests.support.fake_clusters import Json, Play, a_template

JOBS = "/apis/batch/v1/namespaces/default/jobs"


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


def test_a_pod_killed_with_its_node_counts_when_its_object_is_collected(play: Play):
    play.apply(a_job(None))
    play.wait(20)
    node = "a" if play.pods_on("a") else "b"
    play.cluster.vanish(node, now=play.now)
    play.wait(180)
    assert figures(play) == (1, 0, 1)
