"""Access entries and tags of node groups: AWS's protocols over the fleet, and the twin in memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext

import pytest

from plimsoll.adapters.aws import Aws
from plimsoll.adapters.clock import SystemClock
from plimsoll_cli.setup.access import AwsClusterAccess, ClusterAccess, TaggedGroup
from plimsoll_simulation.fake_aws.fleet import Fleet
from plimsoll_simulation.fake_aws.nodegroups import GroupKind, NodeGroupSpec
from plimsoll_simulation.rigs.access import Access
from plimsoll_testbed.rigs.emulated.awsfleet import SERVICES, AwsFleet
from tests.support.cli_environment import a_cluster
from tests.support.cluster_setups import ROLES, MemoryAccess, harbor_in_eks

from .conftest import REGION, T0

HARBOR = a_cluster()
ROLE = ROLES[0]


def a_spec(name: str, kind: GroupKind) -> NodeGroupSpec:
    return NodeGroupSpec(
        name=name,
        kind=kind,
        capacity="on-demand",
        instance_type="m6i.xlarge",
        zones=(f"{REGION}a",),
        size=1,
        max=4,
        allocatable={"cpu": "4", "memory": "16Gi"},
    )


@pytest.fixture(params=["AWS", "memory"])
def access(
    request: pytest.FixtureRequest, credentials: None, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ClusterAccess]:
    if request.param == "memory":
        arn = f"arn:aws:eks:{REGION}:111122223333:nodegroup/harbor/web/drill"
        yield MemoryAccess(
            groups=[
                TaggedGroup(name="base", resource="base", managed=False, may_grow=True),
                TaggedGroup(name="web", resource=arn, managed=True, may_grow=True),
            ]
        )
        return
    fleet = Fleet("harbor", [a_spec("base", "asg"), a_spec("web", "eks-nodegroup")], seed=7, now=T0)
    found = harbor_in_eks()
    servers = {"harbor": Access(url=found.url, token="", ca=found.ca)}
    with AwsFleet([fleet], clock=lambda: T0, lock=nullcontext(), api_servers=servers) as server:
        for service in SERVICES:
            monkeypatch.setenv(f"AWS_ENDPOINT_URL_{service}", server.url)
        yield AwsClusterAccess(Aws(REGION), "plimsoll", SystemClock())


def test_a_cluster_is_found_by_its_name(access: ClusterAccess):
    assert access.find(HARBOR) == harbor_in_eks()
    assert access.find(a_cluster("quay")) is None


def test_a_role_is_put_into_the_group_and_taken_out_again_however_often(access: ClusterAccess):
    assert access.groups_of(HARBOR, ROLE) is None
    for _ in range(2):
        access.grant(HARBOR, ROLE)
        assert access.groups_of(HARBOR, ROLE) == ("plimsoll",)
    for _ in range(2):
        access.revoke(HARBOR, ROLE)
        assert access.groups_of(HARBOR, ROLE) is None


def test_each_kind_of_node_group_is_tagged_where_iam_checks_it(access: ClusterAccess):
    found = access.node_groups(HARBOR)
    assert [(g.may_grow, g.set_by_add) for g in found] == [(True, False)] * 2
    for allowed in (False, False, True, True):
        for group in access.node_groups(HARBOR):
            access.let_grow(HARBOR, group, allowed=allowed)
        found = access.node_groups(HARBOR)
        assert [(g.name, g.managed, g.may_grow, g.set_by_add) for g in found] == [
            ("base", False, allowed, allowed),
            ("web", True, allowed, allowed),
        ]
        assert found[1].resource.startswith("arn:aws:eks:")
