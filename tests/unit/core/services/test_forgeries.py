"""Records and provider IDs that somebody forged: what a Node says of itself moves nothing but that Node.

Each of them failed on the code before the rule that it holds: it shows the harm that the forgery did.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from plimsoll.adapters.kubernetes.requests import MERGE_PATCH
from plimsoll.domain.errors import Temporary
from plimsoll.domain.interruptions import (
    Interruption,
    LifecycleHook,
    NoticeRecord,
    marked,
    to_record,
)
from plimsoll.domain.kubernetes import INTERRUPTION
from plimsoll.domain.node_groups import Instance
from plimsoll.domain.registry import IndexEntry
from tests.support.builders import NOON, a_group
from tests.support.workload_sets import LAUNCHED, WiredServices, deployment

HOOK = LifecycleHook(
    group="g", name="h", timeout=timedelta(minutes=5), longest=timedelta(hours=8), ours=True
)
VICTIM = "i-0aaaaaaaaaaaaaaaa"
"""An instance of another cluster of the same account."""
ELSEWHERE = (("kubernetes.io/cluster/elsewhere", "owned"),)


@pytest.fixture
def rig() -> WiredServices:
    rig = WiredServices()
    rig.aws.known[VICTIM] = Instance(id=VICTIM, state="running", launched=LAUNCHED, tags=ELSEWHERE)
    return rig


def a_record(instance: str, *, launched: Any = LAUNCHED, **notice: Any) -> Interruption:
    said: dict[str, Any] = {"kind": "rebalance-recommendation", "time": NOON, "id": "forged"}
    return Interruption(
        instance=instance,
        launched=launched,
        node="spot",
        notices=(NoticeRecord(**said | notice),),
        cordoned=NOON,
    )


def forge(rig: WiredServices, record: Interruption | str, node: str = "spot") -> None:
    text = record if isinstance(record, str) else to_record(record)
    body = {"metadata": {"annotations": {INTERRUPTION: text}}, "spec": {"unschedulable": True}}
    path = f"/api/v1/nodes/{node}"
    answer = rig.fake_cluster.handle(
        "PATCH", path, now=rig.time, body=body, content_type=MERGE_PATCH
    )
    assert answer.status == 200, answer.body


def actions(rig: WiredServices) -> list[str]:
    return [str(facts["action"]) for _, facts in rig.telemetry.said if "action" in facts]


@pytest.mark.parametrize(
    "record",
    [
        a_record(VICTIM),
        replace(a_record("i-00000000073706f74"), launched=NOON + timedelta(days=900)),
        "not a record",
        '{"v":1,"instance":' + "[" * 100_000,
        '{"v":' + "9" * 5000 + "}",
    ],
    ids=["another instance", "another launch", "no record", "nested", "5,000 digits"],
)
def test_a_forged_record_is_replaced_by_the_next_notice(rig: WiredServices, record):
    instance = rig.join("spot", capacity="spot")
    rig.resync.run()
    forge(rig, record)

    rig.sleep(1)
    assert rig.notices.receive([rig.spot_event(instance)]) == [None]

    found = rig.node("spot").interruption
    assert found is not None
    assert (found.instance, found.launched) == (instance, LAUNCHED)
    assert [notice.kind for notice in found.notices] == ["spot-interruption"]


def test_no_instance_that_a_record_names_is_terminated(rig: WiredServices):
    instance = rig.join("spot", capacity="spot")
    rig.aws.groups = [
        replace(a_group("spot", capacity="spot"), instances=frozenset({instance}), renew=True)
    ]
    forge(rig, a_record(VICTIM))

    rig.drains.reconcile("harbor", "me", seconds=0)

    assert rig.aws.renewed == []


def test_no_lifecycle_action_of_an_instance_that_a_record_names_is_completed(rig: WiredServices):
    rig.join("spot", capacity="spot")
    rig.aws.groups = [replace(a_group(), waiting=frozenset({VICTIM}), hooks=(HOOK,))]
    forge(rig, a_record(VICTIM, kind="lifecycle-terminate", about=HOOK.name))

    rig.drains.reconcile("harbor", "me", seconds=0)

    assert rig.aws.completed == []


@pytest.mark.parametrize("away", [False, True], ids=["EC2 says it runs", "EC2 is away"])
def test_a_record_that_says_gone_kills_no_pod(rig: WiredServices, away: bool):  # noqa: FBT001
    instance = rig.join("spot", capacity="spot")
    rig.apply(deployment(replicas=1))
    forge(rig, marked(a_record(instance), gone=NOON))
    rig.aws.fails = Temporary("EC2 is away") if away else None

    rig.drains.reconcile("harbor", "me", seconds=0)

    assert "force-delete" not in actions(rig)


def test_a_node_that_claims_a_dead_instance_of_another_cluster_loses_no_pod(rig: WiredServices):
    rig.aws.known[VICTIM] = replace(rig.aws.known[VICTIM], state="terminated")
    rig.join("spot", capacity="spot", instance=VICTIM)
    rig.aws.known[VICTIM] = replace(rig.aws.known[VICTIM], state="terminated", tags=ELSEWHERE)
    rig.apply(deployment(replicas=1))
    forge(rig, a_record(VICTIM, kind="spot-interruption", ends=NOON + timedelta(minutes=1)))
    rig.sleep(120)

    rig.drains.reconcile("harbor", "me", seconds=0)

    assert "force-delete" not in actions(rig)


@pytest.mark.parametrize("indexed", [True, False], ids=["moved", "new"])
@pytest.mark.parametrize("tags", [ELSEWHERE, ()], ids=["tagged elsewhere", "without tags"])
def test_an_instance_of_another_cluster_is_not_taken_into_the_index(
    rig: WiredServices,
    indexed: bool,  # noqa: FBT001
    tags: tuple[tuple[str, str], ...],
):
    rig.join("spot", instance=VICTIM)
    rig.aws.known[VICTIM] = replace(rig.aws.known[VICTIM], tags=tags)
    there = IndexEntry(instance=VICTIM, cluster="elsewhere", node="b", launched=LAUNCHED, seen=NOON)
    if indexed:
        rig.index.put([there])
    rig.sleep(60)

    rig.resync.run()

    taken = rig.index.find([VICTIM]).get(VICTIM)
    if indexed:
        assert taken == there
    else:  # without tags nobody says that it is another's
        assert (taken is None) is bool(tags)


def test_an_instance_comes_over_from_another_cluster_when_its_tags_agree(rig: WiredServices):
    instance = rig.join("spot")
    rig.index.put([IndexEntry(instance=instance, cluster="elsewhere", node="b", seen=NOON)])
    rig.sleep(60)

    rig.resync.run()

    assert rig.index.find([instance])[instance].cluster == "harbor"


def test_two_nodes_that_name_one_instance_are_both_refused(rig: WiredServices):
    instance = rig.join("honest", capacity="spot")
    rig.join("spot", capacity="spot", instance=instance)
    rig.apply(deployment(replicas=4))
    ids = frozenset({instance})
    rig.aws.groups = [replace(a_group(), instances=ids, renew=True, waiting=ids, hooks=(HOOK,))]
    rig.aws.known[instance] = replace(rig.aws.known[instance], state="terminated")
    forge(rig, a_record(instance, kind="lifecycle-terminate", about=HOOK.name))

    rig.resync.run()
    rig.drains.reconcile("harbor", "me", seconds=0)

    assert rig.index.find([instance]) == {}
    assert rig.aws.completed == rig.aws.renewed == []
    assert "force-delete" not in actions(rig)
