"""A round of advice: what fails for one cluster costs no other."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import pytest

from plimsoll.domain.errors import Temporary
from plimsoll_service.domain.principals import Principal, Role
from plimsoll_service.services.recommendations import SAVINGS
from plimsoll_service.services.rounds import AdviceRounds
from plimsoll_testbed.model.service_stores import MemoryMembers, MemoryTenantData
from tests.support.advised import SIGNER, AdvisedCluster, harbor, prices

AWAY = Temporary("it does not answer")


@dataclass
class OneTenantAway:
    """The data of two tenants; that of the tenant `pier` cannot be reached."""

    data: MemoryTenantData
    error: Exception
    away: str = "pier"

    def of(self, tenant: str) -> MemoryTenantData:
        if tenant == self.away:
            raise self.error
        return self.data


@pytest.fixture
def cluster() -> AdvisedCluster:
    made = AdvisedCluster()
    made.push(harbor())
    return made


def rounds(cluster: AdvisedCluster, *tenants: str, error: Exception = AWAY) -> AdviceRounds:
    members = MemoryMembers()
    for tenant in tenants:
        members.admit(
            Principal(
                subject=tenant,
                tenant=tenant,
                role=Role.AGENT,
                name=tenant,
                kid="k",
                public_key=bytes(32),
                cluster_uid=tenant,
            )
        )
    return AdviceRounds(
        tenants=OneTenantAway(cluster.data, error),
        members=members,
        prices=prices,
        signer=lambda: SIGNER,
        clock=cluster,
    )


@pytest.mark.parametrize("error", [AWAY, RuntimeError("a bug")])
def test_a_tenant_that_fails_costs_no_other(cluster, error):
    found = rounds(cluster, "pier", "harbor", "quay", error=error).run(lambda: True)
    assert found.failed.keys() == {"pier"}
    assert found.advised["quay"] is None  # it has sent nothing yet
    assert cluster.data.get("harbor", SAVINGS) is not None


def test_what_there_is_no_time_for_is_named(cluster):
    turns = iter([True, False])
    found = rounds(cluster, "harbor", "quay").run(lambda: next(turns))
    assert len(found.advised) == len(found.left) == 1
    assert found.advised.keys() | set(found.left) == {"harbor", "quay"}


def test_who_comes_first_differs_from_round_to_round(cluster):
    tenants = [f"t{n}" for n in range(5)]
    first: set[str] = set()
    for _ in range(40):
        cluster.advise()
        first |= rounds(cluster, *tenants).run(partial(next, iter([True, False]))).advised.keys()
    assert first == set(tenants)
