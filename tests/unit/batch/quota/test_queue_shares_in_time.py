"""Three queues of weights 1, 1 and 3: one takes everything, the others come, and shares follow the weights."""

from __future__ import annotations

from collections import Counter

import pytest

from plimsoll_batch.domain.quota.cohorts import Order
from plimsoll_simulation.fake_cluster.conditions import is_deleting
from tests.support.queue_scenes import Scene, a_job

PLACES = 30
TARGET = {"a": 6, "b": 6, "c": 18}
WEIGHTS = {"a": 1, "b": 1, "c": 3}
FAIR = [order for order in Order if order is not Order.PRIORITY]


def queues(order: Order) -> str:
    groups = "resourceGroups: [{{flavors: [{{name: any, resources: {{cpu: {{nominal: {}}}}}}}]}}]"
    lines = [
        f"  - {{name: {name}, cohort: all, weight: {weight}, "
        f"preemption: {{reclaimWithinCohort: Any}}, {groups.format(0)}}}"
        for name, weight in WEIGHTS.items()
    ]
    return "\n".join(
        [
            "flavors: [{name: any}]",
            f"cohorts: [{{name: all, order: {order.value}, {groups.format(PLACES)}}}]",
            "queues:",
            *lines,
        ]
    )


def used(scene: Scene) -> dict[str, int]:
    """Pods that run, by queue: each Job is named after its own."""
    found: Counter[str] = Counter()
    for pod in scene.play.cluster.store.all("pods"):
        if pod["status"]["phase"] == "Running" and not is_deleting(pod):
            found[pod["metadata"]["labels"]["batch.kubernetes.io/job-name"][0]] += 1
    return dict(found)


@pytest.mark.parametrize("order", FAIR)
def test_shares_follow_the_weights_within_seconds_and_stay(order):
    scene = Scene(nodes=PLACES, queues=queues(order), pod_stop=5)
    scene.submit(*(a_job(f"a{n}", queue="a") for n in range(PLACES)))
    scene.run(70)  # gangs run for a minute before shares stop them
    assert used(scene) == {"a": PLACES}
    scene.submit(*(a_job(f"{q}{n}", queue=q) for n in range(PLACES) for q in "bc"))
    scene.run(10)
    assert used(scene) == TARGET
    for _ in range(6):
        scene.run(10)
        assert used(scene) == TARGET
    suspended = sum(message == "gang suspended" for message, _ in scene.heard.said)
    assert suspended == PLACES - TARGET["a"], "nobody makes way in vain, and nobody twice"
