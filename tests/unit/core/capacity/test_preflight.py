"""What would be short if all spot went, told once when it is and once when it is not any more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest

from plimsoll.domain.capacity import (
    VcpuQuota,
    preflights_of,
    short_of_addresses,
    short_of_maxima,
    short_of_quota,
    short_of_taints,
    short_of_templates,
    spot_loss,
)
from plimsoll.domain.capacity.preflight import SpotLoss
from plimsoll.domain.errors import MissingRights, PlimsollError
from plimsoll.domain.node_groups import NodeGroup
from plimsoll.domain.registry import Mode, ResyncRequest
from plimsoll.domain.reports import Metric
from tests.support.builders import a_group, a_node, a_pod, deployment_json
from tests.support.observations import looked
from tests.support.workload_sets import WiredServices

SPOT = [a_node(f"spot-{n}", capacity="spot", cpu="8", memory="32Gi") for n in range(2)]
TWO_NODES = spot_loss(SPOT)


def reachable(*subnets: str, **how) -> NodeGroup:
    return replace(a_group(**how), subnets=subnets)


def said(group: NodeGroup, free: Mapping[str, int], loss: SpotLoss = TWO_NODES) -> list[str]:
    return [each.says for each in short_of_addresses(loss, [group], free)]


def test_as_much_is_asked_for_as_the_spot_nodes_are_and_their_pods_that_move():
    pods = [
        a_pod("web", node="spot-0"),
        a_pod("agent", node="spot-0", owner=("DaemonSet", "agent")),
        a_pod("base", node="od-0"),
    ]
    loss = spot_loss([*SPOT, a_node("od-0")], pods)
    assert (loss.amounts.cpu, loss.vcpus, loss.pods) == (16_000, 16, 1)


def test_nothing_is_short_where_there_is_no_spot_node():
    loss = spot_loss([a_node("od-0")])
    assert not [*short_of_maxima(loss, []), *short_of_quota(loss, VcpuQuota(limit=8, used=9))]
    assert not said(reachable("a"), {"a": 0}, loss)


def test_a_workload_on_spot_whose_pods_may_return_to_an_interrupted_node_is_named_with_its_cure():
    everything = [{"operator": "Exists"}]
    pods = [
        a_pod("web", node="spot-0", tolerations=everything),
        a_pod("api", node="spot-0"),
        a_pod("log", node="spot-0", owner=("DaemonSet", "log"), tolerations=everything),
        a_pod("base", node="od-0", tolerations=everything),
    ]
    (short,) = short_of_taints(looked([*SPOT, a_node("od-0")], pods))

    assert short.says.startswith("Deployment default/web: 1 of its pods tolerate")
    assert "named taints" in short.cure


@pytest.mark.parametrize(("maximum", "short"), [(1, True), (2, False)])
def test_maxima_count_on_demand_groups_alone(maximum, short):
    groups = [a_group(max_size=maximum), a_group("spot", capacity="spot")]
    assert bool([*short_of_maxima(TWO_NODES, groups)]) is short


@pytest.mark.parametrize(("used", "short"), [(49, True), (48, False)])
def test_a_quota_is_short_where_less_is_free_than_the_spot_nodes_have(used, short):
    found = [*short_of_quota(TWO_NODES, VcpuQuota(limit=64, used=used))]
    assert [f"--desired-value {used + 16}" in each.cure for each in found] == [True] * short


def test_a_node_takes_an_address_and_each_of_its_pods_another():
    assert not said(reachable("a"), {"a": 2})
    full = replace(TWO_NODES, pods=20)
    assert not said(reachable("a"), {"a": 22}, full)
    [words] = said(reachable("a"), {"a": 21}, full)
    assert "8 of 16 CPUs" in words
    assert "base (21 free, 11 for each node)" in words


def test_groups_share_what_is_free_in_a_subnet():
    groups = [reachable("a", name=name, max_size=1) for name in ("base", "more")]
    assert not [*short_of_addresses(TWO_NODES, groups, {"a": 2})]
    assert [*short_of_addresses(TWO_NODES, groups, {"a": 1})]
    elsewhere = [groups[0], reachable("b", name="more", max_size=1)]
    assert not [*short_of_addresses(TWO_NODES, elsewhere, {"a": 1, "b": 1})]


def test_addresses_say_nothing_of_groups_whose_subnets_are_not_known_or_that_are_at_their_maxima():
    assert not said(a_group(), {"a": 0})
    assert not said(reachable("other"), {"a": 0})
    assert not said(reachable("a", max_size=0), {"a": 0})


def test_an_image_that_is_gone_is_named_for_groups_that_may_grow():
    group = replace(a_group(), image="ami-1")
    assert not [*short_of_templates([group, a_group("plain")], {"ami-1"})]
    [found] = short_of_templates([group, replace(group, name="shut", may_grow=False)], set())
    assert found.key == "node group base: launch-template-broken"


# --- Told when it changes ------------------------------------------------------------------------------


@dataclass
class Limits:
    """An account with a quota, or one that may not be read."""

    vcpus: VcpuQuota | PlimsollError

    def quota(self) -> VcpuQuota:
        if isinstance(self.vcpus, PlimsollError):
            raise self.vcpus
        return self.vcpus

    def free_addresses(self, subnets: Sequence[str]) -> Mapping[str, int]:
        return {}

    def images(self, ids: Sequence[str]) -> Sequence[str]:
        return ids


AMPLE, SCARCE = VcpuQuota(limit=640, used=0), VcpuQuota(limit=1, used=0)


@pytest.fixture
def wired() -> WiredServices:
    """The cluster `harbor` with a spot node, and an on-demand group that may take its place."""
    wired = WiredServices(mode=Mode.OBSERVE)
    wired.join("spot", capacity="spot")
    wired.aws.groups = [a_group(max_size=9)]
    wired.limits = Limits(AMPLE)
    return wired


def an_hour(wired: WiredServices, limits: VcpuQuota | PlimsollError) -> list[str]:
    """Let an hour pass with these limits, and return the subjects that people are told."""
    wired.limits = Limits(limits)
    wired.sleep(3600)
    wired.services.resync_schedule.run(preflight=True)
    (request,) = wired.resyncs.sent
    wired.resyncs.sent = []
    wired.announcer.told.clear()
    wired.services.preflight.run(request)
    return [subject for subject, _ in wired.announcer.told]


def test_a_warning_is_told_once_and_once_when_it_is_cured(wired):
    short, well = (
        "harbor: 1 short before a storm",
        "harbor: nothing is short any more before a storm",
    )
    told = [an_hour(wired, quota) for quota in (AMPLE, SCARCE, SCARCE, AMPLE, AMPLE, SCARCE)]
    assert told == [[], [short], [], [well], [], [short]]
    assert "request-service-quota-increase" in wired.announcer.told[0][1]


def test_the_same_shortfall_in_other_numbers_is_not_told_again(wired):
    assert an_hour(wired, SCARCE)
    assert not an_hour(wired, replace(SCARCE, limit=0))


def test_what_cannot_be_read_now_is_neither_cured_nor_short_and_hides_nothing(wired):
    denied = MissingRights("read the quota: AccessDenied")
    assert not an_hour(wired, denied)
    assert an_hour(wired, SCARCE)
    assert not an_hour(wired, denied)
    wired.aws.groups = []
    assert an_hour(wired, denied) == ["harbor: 2 short before a storm"]
    assert "not compared" in wired.telemetry.warned


def test_each_run_counts_what_is_short(wired):
    for quota, expected in ((SCARCE, 1), (AMPLE, 0)):
        wired.telemetry.metrics.clear()
        an_hour(wired, quota)
        assert wired.telemetry.metrics[Metric.CAPACITY_SHORT] == expected


def test_each_run_counts_the_admission_policies_that_are_missing(wired):
    """So a binding that somebody deletes rings an alarm within the hour, though nobody asks the doctor."""
    for missing in ((), ("plimsoll-pods",), ()):
        wired.policies_missing = missing
        wired.telemetry.metrics.clear()
        assert an_hour(wired, AMPLE) == []
        assert wired.telemetry.metrics[Metric.POLICIES_MISSING] == len(missing)
        assert ("policies missing" in wired.telemetry.warned) is bool(missing)
        wired.telemetry.warned.clear()


def test_policies_that_cannot_be_tried_ring_nothing_and_hide_nothing(wired):
    wired.policies_missing = MissingRights("list nodes: 403")
    assert an_hour(wired, SCARCE)
    assert Metric.POLICIES_MISSING not in wired.telemetry.metrics
    assert "policies not tried" in wired.telemetry.warned


def test_a_warning_that_could_not_be_told_is_told_the_next_time(wired, monkeypatch):
    def away(subject: str, text: str) -> None:
        raise MissingRights("publish: AccessDenied")

    with monkeypatch.context() as broken:
        broken.setattr(wired.announcer, "tell", away)
        assert an_hour(wired, SCARCE) == []
    assert not wired.reports.list(preflights_of("harbor"))
    assert an_hour(wired, SCARCE) == ["harbor: 1 short before a storm"]


def test_a_request_that_comes_twice_is_told_once_and_one_of_the_last_hour_not_at_all(wired):
    assert an_hour(wired, SCARCE)
    until = (wired.time + timedelta(hours=1)).isoformat()
    request = ResyncRequest(cluster="harbor", label="harbor", until=until, preflight=True)
    wired.services.preflight.run(request)
    wired.limits = Limits(AMPLE)
    wired.sleep(3600)
    wired.services.preflight.run(request)
    assert len(wired.announcer.told) == 1


def test_a_model_that_loads_longer_than_a_notice_is_told_before_its_pool_goes(wired):
    wired.join("gpu", capacity="spot", extended={"nvidia.com/gpu": "1"})
    model = deployment_json("llm", replicas=1)
    template = model["spec"]["template"]
    template["metadata"]["annotations"] = {"drill.plimsoll.dev/startup": "200s"}
    asks = {"cpu": "100m", "nvidia.com/gpu": "1"}
    template["spec"]["containers"][0]["resources"] = {"requests": asks, "limits": asks}
    wired.apply(model, settle=240)
    assert an_hour(wired, AMPLE) == ["harbor: 1 short before a storm"]
    assert (
        "Deployment default/llm: a replacement is Ready 272 s after" in wired.announcer.told[0][1]
    )


def test_nothing_is_written_and_a_cluster_that_was_removed_is_nothing_to_do(wired):
    version = wired.version()
    an_hour(wired, SCARCE)
    assert wired.version() == version
    wired.registry.remove("harbor")
    request = ResyncRequest(cluster="harbor", label="harbor", until="2999-01-01T00:00:00+00:00")
    wired.services.preflight.run(request)
