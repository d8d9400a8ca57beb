"""Promises of owners over a fake cluster: the layout that is chosen, what new pods get, and what is told."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from plimsoll.domain.errors import Conflict, Temporary
from plimsoll.domain.interruptions import Policy
from plimsoll.domain.kubernetes import KEEP_READY, MIN_ON_DEMAND, Ref
from plimsoll.domain.placement import ChosenLayout, Layout, Promise
from plimsoll.domain.placement.load_line import ALL_ON_DEMAND, NO_FLOOR
from plimsoll.domain.registry import Mode
from plimsoll.domain.spot import CapacityPool, HeldPool, PoolEvent, PoolEventKind
from plimsoll_simulation.fake_cluster.transport import FakeTransport
from tests.support.cli_environment import MemoryEnvironment, run
from tests.support.fake_clusters import MERGE
from tests.support.floors import a_cluster, standing
from tests.support.workload_sets import WiredServices, deployment

WEB = Ref("Deployment", "default", "web")
FLOORS_OF_DEFAULT = "/api/v1/namespaces/default/configmaps/plimsoll-floors"
HOUR = timedelta(hours=1)
POOLS = [CapacityPool(f"{family}.large", "us-east-1a", "spot") for family in ("m5", "c5")]


def slow(promise: str | None, floor: str | None = None) -> dict[str, Any]:
    """Return a Deployment whose pods start slowly, and which promises this."""
    manifest = deployment(replicas=8)
    stated = {KEEP_READY: promise, MIN_ON_DEMAND: floor}
    manifest["metadata"]["annotations"] = {key: v for key, v in stated.items() if v is not None}
    pods = manifest["spec"]["template"]["metadata"]
    pods["annotations"] = {"drill.plimsoll.dev/startup": "170s"}
    return manifest


def stood(wired: WiredServices, days: float) -> None:
    """Let all spot pools have stood for so many days."""
    for pool in POOLS:
        since = wired.time - timedelta(days=days)
        known = next((h for h in wired.pools.held(wired.cluster.place) if h.pool == pool), None)
        held = HeldPool(pool=pool, since=since, hours=24 * days, at=wired.time)
        wired.pools.count(wired.cluster.place, known, held)


def reclaimed(wired: WiredServices) -> None:
    """Let all spot pools be reclaimed now."""
    events = [PoolEvent(pool=p, kind=PoolEventKind.INTERRUPTION, at=wired.time) for p in POOLS]
    wired.pools.put(wired.cluster.place, events)


@pytest.fixture
def wired() -> WiredServices:
    """Return a cluster whose namespace `default` opted in, and whose spot pools have stood for a month."""
    found = a_cluster()
    environment = MemoryEnvironment()
    environment.transports["harbor"] = FakeTransport(found.fake_cluster, found)
    installed = run(environment, "install-policy", "--context", "harbor", "--namespace", "default")
    assert installed.exit_code == 0
    stood(found, 30)
    return found


def rounds(wired: WiredServices, count: int) -> None:
    for _ in range(count):
        wired.placement.run()
        for _ in range(3):
            wired.drains.reconcile("harbor", "me")
        wired.sleep(300)


def told(wired: WiredServices) -> str | None:
    """Return what the admission policy is told of the Deployment."""
    data = wired.get(FLOORS_OF_DEFAULT).get("data") or {}
    entry: str | None = data.get("deployment.web")
    return entry


def chosen(wired: WiredServices) -> ChosenLayout:
    return wired.layouts.read("harbor")[WEB]


def events(wired: WiredServices) -> list[str]:
    return [
        f"{event['reason']}: {event['message']}"
        for event in wired.get("/api/v1/events")["items"]
        if event["involvedObject"]["name"] == "web"
    ]


def test_a_promise_that_spot_keeps_needs_no_floor(wired: WiredServices):
    wired.apply(slow("50%"), settle=200)
    rounds(wired, 2)
    assert chosen(wired).layout == NO_FLOOR
    assert told(wired) is None
    assert events(wired) == []


def test_the_layout_that_keeps_it_is_injected_once_the_nodes_are_labelled(wired: WiredServices):
    stood(wired, 0.2)
    wired.apply(slow("75%"), settle=200)
    rounds(wired, 1)
    assert chosen(wired) == ChosenLayout(
        promise=Promise.parse("75%"), layout=Layout(3, 2), at=chosen(wired).at
    )
    (event,) = events(wired)
    assert event.startswith("LineChanged: Deployment default/web: its layout is 3 + 2 from now on")
    assert "instead of no floor: of 8 replicas at least" in event
    rounds(wired, 12)
    assert told(wired) == "3-2"
    assert standing(wired)["od"] >= 4
    version = wired.version()
    wired.placement.run()
    assert wired.version() == version  # steady


def test_a_promise_of_the_cluster_counts_where_nobody_else_promises(wired: WiredServices):
    wired.registry.update(replace(wired.cluster, policy=Policy(keep_ready="75%, 99.9%")))
    stood(wired, 0.2)
    wired.apply(slow(None), settle=200)
    rounds(wired, 1)
    assert chosen(wired).layout == Layout(3, 2)
    wired.apply(slow("0"), settle=200)
    rounds(wired, 1)
    assert told(wired) is None


def test_it_goes_up_after_a_day_and_what_pods_stand_on_follows(wired: WiredServices):
    wired.apply(slow("75%"), settle=200)
    rounds(wired, 1)
    since = None
    while chosen(wired).layout == NO_FLOOR:
        since = chosen(wired).above
        assert since is None or wired.time - since < timedelta(days=1, hours=1)
        wired.sleep(3600)
        reclaimed(wired)
        wired.placement.run()
    assert since is not None
    assert wired.time - since == timedelta(days=1)
    assert chosen(wired).changed == wired.time
    (event,) = events(wired)
    assert event.startswith("LineChanged: ")


def test_where_the_owner_takes_the_promise_away_labels_stay_and_moves_end(wired: WiredServices):
    stood(wired, 0.2)
    wired.apply(slow("75%"), settle=200)
    rounds(wired, 12)
    labels = wired.node("od-0").labels
    gone = {"metadata": {"annotations": {KEEP_READY: None}}}
    path = "/apis/apps/v1/namespaces/default/deployments/web"
    wired.fake_cluster.handle("PATCH", path, {}, gone, MERGE, now=wired.time)
    rounds(wired, 2)
    assert told(wired) is None
    assert {key: value for key, value in labels.items() if "spread" in key}
    assert wired.node("od-0").labels == labels
    where = standing(wired)
    rounds(wired, 2)
    assert standing(wired) == where


@pytest.mark.parametrize("bad", ["most", "60%" * 100_000])
def test_a_promise_that_nobody_understands_keeps_the_layout_that_stands(
    wired: WiredServices, bad: str
):
    stood(wired, 0.2)
    wired.apply(slow("75%"), settle=200)
    rounds(wired, 12)
    stands = standing(wired)
    assert told(wired) == "3-2"
    wired.apply(slow(bad), settle=0)
    rounds(wired, 2)
    assert told(wired) == "3-2"
    assert standing(wired) == stands
    event, _ = sorted(events(wired))
    assert event.startswith("KeepReadyNotUnderstood: Deployment default/web: the annotation")
    assert len(event) < 1_100


@pytest.mark.parametrize("how", ["read", "memory", "write"])
def test_where_the_memory_fails_what_stands_is_kept(
    wired: WiredServices, how: str, monkeypatch: pytest.MonkeyPatch
):
    stood(wired, 0.2)
    wired.apply(slow("75%"), settle=200)
    rounds(wired, 12)
    version = wired.version()

    def throttled(*_: object) -> None:
        raise Temporary("throttled")

    store: object = wired.pools if how == "memory" else wired.layouts
    monkeypatch.setattr(store, how, throttled)
    stood(wired, 60)
    wired.placement.run()
    assert (told(wired), wired.version()) == ("3-2", version)


def test_where_the_first_choice_cannot_be_written_nothing_is_injected(
    wired: WiredServices, monkeypatch: pytest.MonkeyPatch
):
    def chosen_by_another(*_: object) -> None:
        raise Conflict("chosen in between")

    stood(wired, 0.2)
    wired.apply(slow("75%"), settle=200)
    monkeypatch.setattr(wired.layouts, "write", chosen_by_another)
    rounds(wired, 3)
    assert told(wired) is None
    assert events(wired) == []
    assert "layouts not written" not in str(wired.telemetry.warned)


def test_where_the_memory_is_lost_the_layout_of_the_objects_is_remembered_anew(
    wired: WiredServices,
):
    stood(wired, 0.2)
    wired.apply(slow("75%"), settle=200)
    rounds(wired, 12)
    wired.layouts.forget()
    stood(wired, 30)  # the first choice would be no floor now
    rounds(wired, 2)
    assert (told(wired), chosen(wired).layout) == ("3-2", Layout(3, 2))


def test_the_floor_that_its_owner_states_stays_beneath(wired: WiredServices):
    wired.apply(slow("50%", floor="2"), settle=200)
    rounds(wired, 4)
    assert chosen(wired).layout == Layout(1, 2)
    assert told(wired) == "2"
    for floor, layout in (("6", Layout(3, 1)), ("7", ALL_ON_DEMAND)):
        wired.apply(slow("50%", floor=floor), settle=0)
        rounds(wired, 1)
        assert chosen(wired).layout == layout


def test_a_promise_that_spot_cannot_keep_names_the_part_and_the_cure(wired: WiredServices):
    stood(wired, 0.2)
    wired.apply(slow("100%, 99.99%"), settle=200)
    rounds(wired, 1)
    assert chosen(wired).layout == ALL_ON_DEMAND
    impossible, _ = sorted(events(wired), reverse=True)
    assert impossible.startswith("PromiseNotPossible: Deployment default/web: no layout with spot")
    assert "The longest part of the window is the start of its pods (170 s)" in impossible


def test_where_nothing_may_be_written_the_layout_is_remembered_and_told_by_the_plan_alone():
    watching = a_cluster(mode=Mode.OBSERVE)
    stood(watching, 0.2)
    watching.apply(slow("75%"), settle=200)
    version = watching.version()
    watching.placement.run()
    assert watching.version() == version
    assert chosen(watching).layout == Layout(3, 2)
