"""A database of three whose grace period is ten minutes, on real controllers: a quorum stays Ready.

All its nodes are interrupted at once. Its grace period alone would put the eviction deadline of every member before the notice.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from plimsoll.domain.interruptions import Interruption, NoticeRecord
from plimsoll.domain.node_groups import Instance
from tests.cluster.placing import Cast
from tests.support.fake_clusters import a_budget, a_stateful_set, a_template

pytestmark = pytest.mark.cluster

MEMBERS = 3
LEFT = timedelta(seconds=120)
"""From the notice until the instances go."""
OVERRULED = timedelta(seconds=32)
"""From here on before that, an assumption overrules a budget: 30 s before the deadline, which is 2 s earlier."""


def a_database(name: str) -> dict[str, Any]:
    template = a_template(
        name,
        annotations={"startup": "5s", "stop": "5s"},
        terminationGracePeriodSeconds=600,
        containers=[
            {
                "name": "main",
                "image": "database",
                "volumeMounts": [{"name": "data", "mountPath": "/data"}],
            }
        ],
    )
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    return a_stateful_set(
        name, MEMBERS, template, podManagementPolicy="Parallel", volumeClaimTemplates=[claim]
    )


def interrupt_all(cast: Cast, names: Sequence[str], ends: datetime) -> None:
    """Let these nodes be interrupted in the same second."""
    now = datetime.now(UTC)
    launched = now - timedelta(hours=1)
    for node in [node for node in cast.api.nodes() if node.name in names]:
        notice = NoticeRecord(kind="spot-interruption", time=now, id=node.name, ends=ends)
        instance = node.instance or ""
        record = Interruption(
            instance=instance, launched=launched, node=node.name, notices=(notice,)
        )
        cast.api.cordon(node, record)
        cast.aws.known[instance] = Instance(id=instance, state="running", launched=launched)


def test_two_of_three_members_are_ready_until_the_last_thirty_seconds(cast: Cast):
    ground = cast.ground
    old = ground.nodes(*(f"old-{n}" for n in range(MEMBERS)))
    ground.apply(a_database("db"), a_budget("db", "db", maxUnavailable=1))
    ground.until(lambda: len(ground.serving("db")) == MEMBERS)
    new = ground.nodes(*(f"new-{n}" for n in range(MEMBERS)))
    ends = datetime.now(UTC) + LEFT
    interrupt_all(cast, old, ends)

    lowest = MEMBERS
    while datetime.now(UTC) < ends - OVERRULED:
        cast.services.drains.reconcile("ground", "test", seconds=2)
        members = ground.serving("db")
        lowest = min(lowest, len(members))
        if {pod["spec"]["nodeName"] for pod in members} <= {*new} and len(members) == MEMBERS:
            break

    assert lowest == MEMBERS - 1
    assert {pod["spec"]["nodeName"] for pod in ground.serving("db")} == {*new}
    assert {stop.how for stop in ground.stops} == {"exited"}
