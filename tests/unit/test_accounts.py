"""Clusters in several accounts: a notice counts only for a cluster of the account that it is from."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from plimsoll.services.notices import Senders
from tests.support.workload_sets import WiredServices

HUB, SPOKE, STRANGER = "111122223333", "210987654321", "999988887777"
ROLE = f"arn:aws:iam::{SPOKE}:role/plimsoll-spoke-us-east-1"


@pytest.fixture
def rig() -> WiredServices:
    """A cluster in another account than the stack."""
    found = WiredServices()
    found.cluster = replace(found.cluster, role=ROLE, external_id="between-us-two")
    found.registry.update(found.cluster)
    return found


@pytest.mark.parametrize(("account", "moved"), [(SPOKE, True), (HUB, False), (STRANGER, False)])
def test_only_a_notice_of_its_own_account_cordons_a_node(rig, account, moved):
    instance = rig.join("spot", capacity="spot")
    body = json.dumps(json.loads(rig.spot_event(instance)) | {"account": account})
    service = replace(rig.notices, senders=Senders(account=HUB))
    assert service.receive([body]) == [None]
    assert rig.node("spot").unschedulable is moved


def test_what_befalls_its_pools_is_remembered_apart_from_those_of_the_stack(rig):
    instance = rig.join("spot", capacity="spot")
    body = json.dumps(json.loads(rig.spot_event(instance)) | {"account": SPOKE})
    replace(rig.notices, senders=Senders(account=HUB)).receive([body])
    assert rig.pools.read(f"{SPOKE}/us-east-1", rig.now())
    assert not rig.pools.read("us-east-1", rig.now())


def test_the_resync_asks_the_account_of_the_cluster_for_silent_interruptions(rig):
    asked = []

    def of(cluster):
        asked.append(cluster.account)
        return rig.aws

    rig.join("spot", capacity="spot")
    resync = replace(rig.services.resync, instances_of=of)
    rig.services.resync_schedule.run()
    for request in rig.resyncs.sent:
        resync.run(request)
    assert set(asked) == {SPOKE}
