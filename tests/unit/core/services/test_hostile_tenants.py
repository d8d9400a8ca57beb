"""Whatever a tenant writes costs his own workload: nothing raises, and nobody else's plan changes.

Hypothesis fills every field of every kind that a tenant can write; `crafted` holds the worst that an
API server takes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.adapters.kubernetes import KubernetesCluster, calls
from plimsoll.adapters.kubernetes.objects import parse_pod
from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.disruptions.stop_times import stop_time
from plimsoll.domain.drain import plan_drain
from plimsoll.domain.drain.plan_builder import MOST_NAMED
from plimsoll.domain.observation import Observation
from plimsoll.services.drains import DrainService
from tests.support.builders import NOON, pod_json
from tests.support.cli_environment import StillClock, a_cluster, an_environment, run
from tests.support.hostile import (
    CALLS,
    SHOP,
    TENANT,
    Canned,
    HostileTenant,
    Json,
    crafted,
    mutated,
    of_spread_shop,
    of_tenant,
    placement_of_others,
    places,
    plans_of_others,
)
from tests.support.properties import drawn
from tests.support.workload_sets import WiredServices

CRAFTED = crafted()
ALONE: dict[object, object] = {}
"""What is planned without the object, by what is left."""
randoms = st.randoms(use_true_random=False)


def check_nobody_else_notices(
    cluster: HostileTenant,
    kind: str,
    obj: Json,
    planned: Callable[[Observation], object] = plans_of_others,
) -> None:
    cluster.write(kind, obj)
    found = planned(cluster.api.observe())
    cluster.without(kind, obj)
    left = planned, kind, tuple(o["metadata"]["uid"] for o in cluster.server.items[kind])
    if left not in ALONE:
        ALONE[left] = planned(cluster.api.observe())
    assert found == ALONE[left]


@pytest.fixture(scope="module")
def cluster() -> HostileTenant:
    return HostileTenant(StillClock())


@pytest.fixture(scope="module")
def spread() -> HostileTenant:
    return HostileTenant(StillClock(), of_spread_shop())


@drawn(100, many=300)
@given(random=randoms)
def test_no_field_that_a_tenant_writes_changes_the_plan_for_others(
    cluster: HostileTenant, random: Random
):
    check_nobody_else_notices(cluster, *mutated(random))


@pytest.mark.parametrize("name", CRAFTED)
def test_the_worst_that_an_api_server_takes_changes_no_plan_for_others(
    cluster: HostileTenant, name: str
):
    check_nobody_else_notices(cluster, *CRAFTED[name])


@drawn(100, many=300)
@given(random=randoms)
def test_no_field_that_a_tenant_writes_changes_the_placement_of_others(
    spread: HostileTenant, random: Random
):
    check_nobody_else_notices(spread, *mutated(random), planned=placement_of_others)


@pytest.mark.parametrize("name", CRAFTED)
def test_the_worst_that_an_api_server_takes_changes_no_placement_of_others(
    spread: HostileTenant, name: str
):
    check_nobody_else_notices(spread, *CRAFTED[name], planned=placement_of_others)


def test_what_placement_does_for_others_is_something():
    found = placement_of_others(HostileTenant(StillClock(), of_spread_shop()).api.observe())
    assert found[-1] == f"Pod {SHOP}/web-0"


def test_every_kind_that_is_read_is_filled():
    assert {kind for kind, _ in CRAFTED.values()} | {"VolumeAttachment"} == set(CALLS)
    assert all(of_tenant()[kind] for kind in CALLS)


def play(services: WiredServices, server: Canned) -> None:
    """Resync the cluster, and let it be drained."""
    services.api = KubernetesCluster(server, "harbor", services, workers=SerialWorkers())
    services.resync.run()
    drains: DrainService = services.drains
    drains.reconcile("harbor", "me", seconds=0)


@drawn(20, many=60)
@given(random=randoms)
def test_resync_and_drain_go_on_whatever_a_tenant_writes(random: Random):
    cluster = HostileTenant(StillClock())
    cluster.write(*mutated(random))
    play(WiredServices(), cluster.server)
    assert any("shop" in path for _, path in cluster.server.written)


@pytest.mark.parametrize("name", CRAFTED)
def test_resync_and_drain_go_on_with_the_worst(name: str):
    cluster = HostileTenant(StillClock())
    cluster.write(*CRAFTED[name])
    play(WiredServices(), cluster.server)
    assert any("shop" in path for _, path in cluster.server.written)


def doctor(kind: str, obj: Json) -> None:
    """Look the cluster over, with the object alone of its kind: trials take the first."""
    environment, _ = an_environment()
    items = {each: list(objs) for each, objs in of_tenant().items()}
    environment.transports["harbor"] = Canned(items | {kind: [obj]})
    result = run(environment, "doctor", "--cluster", a_cluster().name, "--output", "json")
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert '"findings"' in result.stdout


@drawn(20, many=60)
@given(random=randoms)
def test_the_doctor_goes_on_whatever_a_tenant_writes(random: Random):
    doctor(*mutated(random))


@pytest.mark.parametrize("name", [name for name in CRAFTED if name.startswith(("Node", "pod"))])
def test_the_doctor_goes_on_with_the_worst(name: str):
    doctor(*CRAFTED[name])


def test_what_is_left_out_is_counted_and_named_in_the_report():
    cluster, services = HostileTenant(StillClock()), WiredServices()
    kind, obj = CRAFTED["budget, a small two"]
    cluster.write(kind, obj)
    play(services, cluster.server)

    assert services.telemetry.metrics["ObjectsLeftOut"] == 1
    (report,) = services.reports.list("harbor")
    (named,) = [told for one in report.reasons if (told := str(one)).startswith("left out")]
    assert named.startswith(f"left out: PodDisruptionBudget {TENANT}/web: spec.minAvailable")
    assert named.endswith("matching regex '^[0-9]{1,9}%\\\\Z'")


def test_a_report_names_few_of_many():
    cluster = HostileTenant(StillClock())
    bad = [{"metadata": {"name": f"b{n}", "namespace": TENANT}, "spec": 1} for n in range(1000)]
    cluster.write("Service", bad[0])
    cluster.server.items["Service"] = bad
    seen = cluster.api.observe()

    (report,) = plan_drain(seen, NOON).reports
    assert len(seen.left_out) == 1000
    assert sum(reason.verb == "left out:" for reason in report.reasons) == MOST_NAMED + 1
    assert "left out: 1000 objects in all" in map(str, report.reasons)


def test_a_pod_whose_place_cannot_be_read_leaves_at_its_last_call_with_its_whole_grace():
    pod = parse_pod(
        pod_json(tolerations=[{"operator": "Exists"}] * 101, grace_seconds=90, node="spot")
    )
    assert pod.unread is not None
    assert "tolerations: Expected `array` of length <= 100" in pod.unread
    assert stop_time(pod).seconds == 90

    cluster = HostileTenant(StillClock())
    cluster.write(*CRAFTED["pod, 10,000 tolerations"])
    seen = cluster.api.observe()
    told = [
        [s for s in plan_drain(seen, NOON.replace(minute=m, second=s)).steps
         if s.action.target == f"Pod {TENANT}/web-0"]
        for m, s in ((0, 1), (1, 58))
    ]  # fmt: skip
    assert [[step.action.verb for step in steps] for steps in told] == [[], ["evict"]]


def test_places_reach_every_field():
    assert [key for _, key in places({"a": [{"b": 1}], "c": 2})] == ["a", 0, "b", "c"]


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(b'{"metadata":' + b"[" * 9_900 + b"]" * 9_900 + b"}", id="nested"),
        pytest.param(
            b'{"metadata":{"name":"b"},"spec":{"priority":' + b"9" * 5_000 + b"}}", id="digits"
        ),
        pytest.param(b'{"metadata":{"name":"\xff"}}', id="no text"),
        pytest.param(b'{"metadata":{"name":null,"labels":{"a":[]}}}', id="a list for a label"),
        pytest.param(b"[]", id="no object"),
        pytest.param(b"null", id="nothing"),
    ],
)
def test_a_bad_object_in_the_bytes_of_a_page_costs_itself_only(bad: bytes):
    good = json.dumps(pod_json("good")).encode()
    page = b'{"metadata":{},"items":[%b,%b,%b]}' % (good, bad, good.replace(b"good", b"fine"))
    server = Canned({})
    server.pages[calls.LIST_PODS.path()] = page
    seen = KubernetesCluster(server, "harbor", StillClock(), workers=SerialWorkers()).observe()
    assert [pod.name for pod in seen.pods if pod.unread is None] == ["good", "fine"]
    assert len(seen.left_out) == 1
