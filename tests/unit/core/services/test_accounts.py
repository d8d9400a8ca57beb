"""Clusters in several accounts: each notice is about a cluster of its own account, and EC2 is asked there."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from plimsoll.domain.errors import MissingRights, Temporary
from plimsoll.domain.registry import Cluster
from plimsoll.domain.reports import Metric
from plimsoll.services.notices import NoticeService
from plimsoll.services.trusted_sources import TrustedSources
from tests.support.workload_sets import Aws, WiredServices, a_spot_notice, advised, deployment

HUB, SPOKE, STRANGER = "111122223333", "210987654321", "999988887777"
EVENTS = Path(__file__).parents[3] / "events"
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
    service = replace(rig.notices, sources=TrustedSources(account=HUB))
    assert service.receive([body]) == [None]
    assert rig.node("spot").unschedulable is moved


def test_what_befalls_its_pools_is_remembered_apart_from_those_of_the_stack(rig):
    instance = rig.join("spot", capacity="spot")
    body = json.dumps(json.loads(rig.spot_event(instance)) | {"account": SPOKE})
    replace(rig.notices, sources=TrustedSources(account=HUB)).receive([body])
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


class Accounts:
    """EC2 of several accounts, for a service of the hub."""

    def __init__(self, rig: WiredServices) -> None:
        self._rig = rig
        self.hub = Aws()
        self.by_id: dict[str | None, Aws] = {}
        """By the external id with which the role is assumed."""
        self.service: NoticeService = self._over(rig.notices)

    def _over(self, notices: NoticeService) -> NoticeService:
        sources = TrustedSources(account=HUB, region="us-east-1")
        locator = replace(
            notices.locator, instances=self.hub, instances_of=self._of, sources=sources
        )
        confirmation = replace(notices.confirmation, locator=locator, instances_of=self._of)
        shifts = replace(notices.zonal_shifts, sources=sources, instances_of=self._of)
        return replace(
            notices,
            locator=locator,
            confirmation=confirmation,
            sources=sources,
            zonal_shifts=shifts,
        )

    def _of(self, cluster: Cluster) -> Aws:
        return self.by_id.setdefault(cluster.external_id, Aws())

    def known_to(self, external_id: str | None, instance: str) -> None:
        aws = self.by_id[external_id] = self.by_id.get(external_id, Aws())
        aws.known[instance] = self._rig.aws.known[instance]


@pytest.fixture
def accounts(rig: WiredServices) -> Accounts:
    return Accounts(rig)


def of_account(rig: WiredServices, instance: str, account: str, **more: str) -> str:
    said: dict[str, Any] = json.loads(rig.spot_event(instance)) | {"account": account} | more
    return json.dumps(said)


def register(rig: WiredServices, name: str, **how: Any) -> None:
    rig.registry.add(replace(rig.cluster, name=name, **how))


def test_an_instance_that_is_not_indexed_is_looked_up_in_the_account_of_its_event(rig, accounts):
    instance = rig.join("spot", capacity="spot")
    accounts.known_to("between-us-two", instance)
    assert accounts.service.receive([of_account(rig, instance, SPOKE)]) == [None]
    assert rig.node("spot").unschedulable
    assert accounts.hub.described == []


def test_of_an_account_without_clusters_ec2_is_not_asked(rig, accounts):
    instance = rig.join("spot", capacity="spot")
    assert accounts.service.receive([of_account(rig, instance, STRANGER)]) == [None]
    assert accounts.hub.described == []
    assert not accounts.by_id
    assert rig.telemetry.metrics[Metric.NOTICES_NOT_OURS] == 1


def test_of_a_region_without_clusters_in_that_account_ec2_is_not_asked(rig, accounts):
    instance = rig.join("spot", capacity="spot")
    body = of_account(rig, instance, SPOKE, region="eu-west-1")
    assert accounts.service.receive([body]) == [None]
    assert not accounts.by_id


def test_a_cluster_of_the_hub_in_another_region_is_asked_there(rig, accounts):
    register(rig, "lisbon", role=None, external_id=None, region="eu-west-1")
    instance = rig.join("spot", capacity="spot")
    accounts.known_to(None, instance)
    body = of_account(rig, instance, HUB, region="eu-west-1")
    assert accounts.service.receive([body]) == [None]
    assert accounts.by_id[None].described == [instance]
    assert accounts.hub.described == []


def test_tags_of_one_account_name_no_cluster_of_another(rig, accounts):
    """Whoever owns an account of a spoke may tag instances there with any name."""
    register(rig, "theirs", role=ROLE.replace(SPOKE, STRANGER), external_id="with-the-stranger")
    instance = rig.join("spot", capacity="spot")  # its tags name harbor
    accounts.known_to("with-the-stranger", instance)
    assert accounts.service.receive([of_account(rig, instance, STRANGER)]) == [None]
    assert not rig.node("spot").unschedulable
    assert "notice from another account or region" in rig.telemetry.warned


def test_a_wrong_external_id_costs_no_other_cluster_of_its_account(rig, accounts):
    register(rig, "astray", external_id="not-what-it-asks-for")
    accounts.by_id["not-what-it-asks-for"] = Aws(fails=MissingRights("AccessDenied"))
    instance = rig.join("spot", capacity="spot")
    accounts.known_to("between-us-two", instance)
    assert accounts.service.receive([of_account(rig, instance, SPOKE)]) == [None]
    assert rig.node("spot").unschedulable


def test_an_account_that_cannot_be_asked_costs_no_notice_of_another(rig, accounts):
    ours, theirs = (rig.join(name, capacity="spot") for name in ("ours", "theirs"))
    register(rig, "astray", role=ROLE.replace(SPOKE, STRANGER), external_id="wrong")
    accounts.by_id["wrong"] = Aws(fails=MissingRights("AccessDenied"))
    accounts.known_to("between-us-two", ours)
    bodies = [of_account(rig, theirs, STRANGER), of_account(rig, ours, SPOKE)]
    failed, done = accounts.service.receive(bodies)
    assert isinstance(failed, MissingRights)
    assert done is None
    assert rig.node("ours").unschedulable


def test_without_the_registry_a_notice_of_another_account_comes_back_and_one_of_the_hub_does_not(
    rig, accounts
):
    class Away:
        def list(self) -> list[Cluster]:
            raise Temporary("DynamoDB does not answer")

    theirs, unknown = rig.join("spot", capacity="spot"), "i-0123456789abcdef0"
    service = replace(accounts.service, locator=replace(accounts.service.locator, registry=Away()))
    bodies = [of_account(rig, theirs, SPOKE), of_account(rig, unknown, HUB)]
    failed, done = service.receive(bodies)
    assert isinstance(failed, Temporary)
    assert done is None


def taint_of(rig: WiredServices, instance: str) -> str:
    return json.dumps(
        {
            "version": "0",
            "id": "said",
            "detail-type": "Plimsoll Interruption Taint",
            "source": "plimsoll.service",
            "account": HUB,
            "time": f"{rig.time:%Y-%m-%dT%H:%M:%SZ}",
            "region": "us-east-1",
            "resources": [],
            "detail": {"agent": "a-shop", "instances": [instance]},
        }
    )


@pytest.fixture
def bound(rig: WiredServices) -> None:
    """The cluster in the spoke is bound to its agent, which talks to the service in the hub."""
    rig.registry.update(replace(rig.cluster, agent="a-shop"))


@pytest.mark.usefixtures("bound")
@pytest.mark.parametrize("indexed", [True, False])
def test_what_an_agent_forwards_is_confirmed_in_the_account_of_its_cluster(rig, accounts, indexed):
    instance = rig.join("spot", capacity="spot")
    if indexed:
        rig.resync.run()
    accounts.known_to("between-us-two", instance)
    there = accounts.by_id["between-us-two"]
    there.silent = [replace(a_spot_notice(rig, instance), account=SPOKE)]
    assert accounts.service.receive([taint_of(rig, instance)]) == [None]
    assert rig.node("spot").unschedulable
    assert there.questions == [[instance]]
    assert (accounts.hub.questions, accounts.hub.described) == ([], [])


@pytest.mark.usefixtures("bound")
def test_an_account_that_does_not_answer_costs_no_agent_of_another(rig, accounts):
    register(rig, "own", role=None, external_id=None, agent="a-own")
    away, here = (rig.join(name, capacity="spot") for name in ("away", "here"))
    accounts.by_id |= {
        "between-us-two": Aws(fails=MissingRights("AccessDenied")),
        None: accounts.hub,
    }
    accounts.known_to(None, here)
    tags = (("kubernetes.io/cluster/own", "owned"),)
    accounts.hub.known[here] = replace(rig.aws.known[here], tags=tags)
    accounts.hub.silent = [replace(a_spot_notice(rig, here), account=HUB)]
    told = json.loads(taint_of(rig, here))
    told["detail"]["agent"] = "a-own"
    failed, done = accounts.service.receive([taint_of(rig, away), json.dumps(told)])
    assert isinstance(failed, MissingRights)
    assert done is None
    assert rig.node("here").unschedulable


def test_a_zonal_shift_of_another_account_is_kept_with_the_name_of_the_account(rig, accounts):
    shift = json.loads((EVENTS / "zonal-autoshift.json").read_text()) | {"account": SPOKE}
    assert accounts.service.receive([json.dumps(shift)]) == [None]
    [report] = rig.reports.list("*")
    assert str(report.reasons[0]).endswith(f"in the account {SPOKE}")


@pytest.mark.parametrize("refused", [MissingRights("AccessDenied"), Temporary("no answer")])
def test_pods_leave_a_node_on_advice_although_its_account_says_nothing(refused):
    """EC2 is asked about it at once, since it has no deadline; only how it ends stays unknown."""
    rig = WiredServices()
    rig.join("od")
    instance = rig.join("spot", capacity="spot")
    rig.apply(deployment(replicas=2))
    advised(rig, instance)
    rig.aws.fails = refused
    rig.drains.reconcile("harbor", "me", seconds=60)
    assert rig.pods_on("spot") == []
    assert rig.node("spot").unschedulable
    assert rig.ready("web") == 2
