"""A reconcile that has more pods to tell than an API server takes at once works on beyond its usual time."""

from __future__ import annotations

import pytest

from plimsoll.domain.replace.throughput import AT_ONCE
from plimsoll.services.executor import ROUND
from tests.support.workload_sets import WiredServices, deployment, handled


def evicted(replicas: int) -> int:
    """Return how many pods leave by a reconcile whose usual time is over when it begins.

    Their last call has come, and nothing can take them.
    """
    rig = WiredServices()
    instance = rig.join("spot", capacity="spot", cpu="500", pods=500)
    rig.apply(deployment("web", replicas=replicas))
    handled(rig, rig.spot_event(instance))
    rig.sleep(108)
    before = {pod.uid for pod in rig.api.observe().pods}

    rig.drains.reconcile("harbor", "me", seconds=0)

    staying = {pod.uid for pod in rig.api.observe().pods if pod.deleting is None}
    return len(before - staying)


def test_who_has_few_pods_to_tell_leaves_them_to_the_next_reconcile():
    assert evicted(AT_ONCE // 2) == ROUND


@pytest.mark.parametrize("pods", [AT_ONCE + 1, 3 * AT_ONCE])
def test_who_has_many_to_tell_tells_them_all(pods: int):
    assert evicted(pods) == pods
