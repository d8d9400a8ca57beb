"""A drain goes on while the registry's table cannot be read."""

from __future__ import annotations

import pytest

from plimsoll.adapters.cached_registry import CachedRegistry
from plimsoll.domain.errors import Temporary
from plimsoll.domain.registry import Cluster, ClusterKind
from plimsoll.domain.reports import Metric
from plimsoll_simulation.fake_aws.stores import MemoryRegistry
from tests.support.builders import NOON

HARBOR = Cluster(name="harbor", kind=ClusterKind.EKS, region="us-east-1", added=NOON)


class Telemetry:
    """Keeps warnings."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def log(self, message: str, **facts: object) -> None: ...

    def warn(self, message: str, **facts: object) -> None:
        self.warnings.append(message)

    def count(self, metric: Metric, value: float = 1, *, cluster: str | None = None) -> None: ...


class Flaky(MemoryRegistry):
    """A registry whose table is away for a while."""

    away = False

    def get(self, name: str) -> Cluster | None:
        if self.away:
            raise Temporary("away")
        return super().get(name)

    def list(self):
        if self.away:
            raise Temporary("away")
        return super().list()


def test_what_was_read_before_the_outage_is_answered_and_warned_about():
    table, telemetry = Flaky([HARBOR]), Telemetry()
    registry = CachedRegistry(table, telemetry)
    registry.get("harbor")
    table.away = True

    assert registry.get("harbor") == HARBOR
    assert registry.list() == [HARBOR]
    assert len(telemetry.warnings) == 2


def test_what_was_never_read_is_not_invented():
    table = Flaky([HARBOR])
    table.away = True

    with pytest.raises(Temporary):
        CachedRegistry(table, Telemetry()).get("harbor")
    with pytest.raises(Temporary):
        CachedRegistry(table, Telemetry()).list()


def test_a_cluster_that_was_removed_is_forgotten():
    table = Flaky([HARBOR])
    registry = CachedRegistry(table, Telemetry())
    registry.get("harbor")
    table.remove("harbor")
    assert registry.get("harbor") is None
    table.away = True

    with pytest.raises(Temporary):
        registry.get("harbor")
