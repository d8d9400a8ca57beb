"""Who wrote which field: Plimsoll changes nothing of it but by what it writes itself, also beside ten others."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial
from typing import Any

import pytest

from plimsoll.adapters.clock import SystemClock
from plimsoll.adapters.kubernetes import KubernetesCluster, Transport
from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.kubernetes import INTERRUPTION
from plimsoll_testbed.rigs.controlplane import ControlPlane
from tests.cluster.ground import Ground
from tests.cluster.installed import message_of
from tests.rights.attempts import Computed, patch
from tests.support.fake_clusters import a_deployment

pytestmark = pytest.mark.cluster

type Json = dict[str, Any]

OURS: Json = {"metadata": {"annotations": {"plimsoll.dev/doctor": "1"}}}
DRY = {"dryRun": "All"}
ANCIENT = "ancient-changes/"


@pytest.fixture(scope="module")
def shop(guarded: ControlPlane) -> Iterator[Ground]:
    with Ground(guarded) as ground:
        ground.nodes("a")
        ground.apply(a_deployment("web", 1))
        ground.until(ground.serving)
        marks = {
            "metadata": {"labels": {"theirs": "1"}, "annotations": {"plimsoll.dev/doctor": "0"}}
        }
        for path in paths(ground):
            assert patch(ground.api, path, marks).status == 200
        yield ground


@pytest.fixture(params=["Node", "Pod"])
def path(request: pytest.FixtureRequest, shop: Ground) -> str:
    return paths(shop)[request.param == "Pod"]


def paths(shop: Ground) -> tuple[str, str]:
    [pod] = shop.serving("web")
    return f"/api/v1/nodes/{shop.name}-a", f"{shop.pods_path}/{pod['metadata']['name']}"


def of_admin(entries: list[Json]) -> Json:
    return next(e for e in entries if "f:theirs" in str(e))


def is_tainted(shop: Ground, node: str, *, tainted: bool) -> bool:
    return len(shop.get(node)["spec"].get("taints", ())) == tainted


@pytest.mark.parametrize("name", ["kubectl", "plimsoll-1", "ancient-changes"])
def test_a_field_manager_of_another_name_is_refused(path: str, ours: Transport, name: str):
    answer = patch(ours, path, OURS, **DRY, fieldManager=name)
    assert f"says that {name} wrote this" in message_of(answer)
    assert patch(ours, path, OURS, **DRY, fieldManager="plimsoll").status == 200


def test_no_number_of_names_pushes_out_what_another_wrote(shop: Ground, path: str, ours: Transport):
    before = of_admin(shop.get(path)["metadata"]["managedFields"])
    for number in range(12):
        body = {"metadata": {"annotations": {"plimsoll.dev/doctor": f"by {number}"}}}
        patch(ours, path, body, fieldManager=f"plimsoll-{number}")
    assert before in shop.get(path)["metadata"]["managedFields"]


def test_a_node_may_be_cordoned_that_another_cordoned_before(shop: Ground, ours: Transport):
    node, _ = paths(shop)
    for unschedulable in (True, None):
        assert patch(shop.api, node, {"spec": {"unschedulable": unschedulable}}).status == 200
        shop.until(partial(is_tainted, shop, node, tainted=unschedulable is not None))
        taints = shop.get(node)["spec"].get("taints", [])
        ours_too = [{"key": INTERRUPTION, "effect": "NoSchedule"}, *taints]
        body = {"spec": {"unschedulable": not unschedulable or None, "taints": ours_too}}
        answer = patch(ours, node, body, **DRY)
        assert answer.status == 200, answer.body


@pytest.fixture(scope="module")
def crowd(guarded: ControlPlane) -> Iterator[Ground]:
    """A Node and a pod on which twelve others wrote, kubectl last: the API server merged the first entries."""
    with Ground(guarded) as ground:
        ground.nodes("a")
        ground.apply(a_deployment("web", 1))
        ground.until(ground.serving)
        for path in paths(ground):
            for number in range(11):
                write_as(ground, path, f"manager-{number}", 150)
        time.sleep(1.1)  # of one second, the API server merges by name
        for path in paths(ground):
            write_as(ground, path, "kubectl", 1)
            assert len(updates(ground.get(path))) == 10
        yield ground


@pytest.fixture(params=["Node", "Pod"])
def crowded(request: pytest.FixtureRequest, crowd: Ground) -> str:
    return paths(crowd)[request.param == "Pod"]


def write_as(ground: Ground, path: str, manager: str, count: int) -> None:
    marks = {f"{manager}-{number}": "1" for number in range(count)}
    body = {"metadata": {"annotations": marks}}
    assert patch(ground.api, path, body, fieldManager=manager).status == 200


def updates(obj: Json) -> dict[str, Json]:
    """Return its entries but ours, oldest first."""
    entries = [e for e in obj["metadata"]["managedFields"] if e["operation"] == "Update"]
    return {f"{e['manager']}/{e.get('subresource', '')}": e for e in entries}


def test_an_object_that_ten_others_wrote_on_is_changed_all_the_same(
    crowd: Ground, crowded: str, ours: Transport
):
    """The oldest entry goes into that of ancient changes, and no other is touched."""
    before = updates(crowd.get(crowded))
    answer = patch(ours, crowded, OURS, **DRY)
    assert answer.status == 200, answer.body
    after = updates(answer.body)
    assert after.pop("plimsoll/")
    [oldest] = before.keys() - after.keys()
    assert after.pop(ANCIENT)["time"] == before[oldest]["time"]
    assert after.items() <= before.items()


def merged_by_hand(entries: dict[str, Json]) -> None:
    into(entries, "kubectl/")


def into(entries: dict[str, Json], name: str) -> None:
    gone, ancient = entries.pop(name), entries[ANCIENT]
    marks = gone["fieldsV1"]["f:metadata"]["f:annotations"]
    ancient["fieldsV1"]["f:metadata"].setdefault("f:annotations", {}).update(marks)
    ancient["time"] = gone["time"]


def oldest_of(entries: dict[str, Json]) -> str:
    return next(name for name in entries if name != ANCIENT)


def without_the_oldest(entries: dict[str, Json]) -> None:
    entries.pop(oldest_of(entries))


def one_field_short(entries: dict[str, Json]) -> None:
    oldest = oldest_of(entries)
    into(entries, oldest)
    del entries[ANCIENT]["fieldsV1"]["f:metadata"]["f:annotations"][f"f:{oldest[:-1]}-0"]


def one_field_more(entries: dict[str, Json]) -> None:
    into(entries, oldest_of(entries))
    entries[ANCIENT]["fieldsV1"]["f:metadata"]["f:annotations"]["f:other"] = {}


def at_any_time(entries: dict[str, Json]) -> None:
    into(entries, oldest_of(entries))
    entries[ANCIENT]["time"] = "2100-01-01T00:00:00Z"


def two_at_once(entries: dict[str, Json]) -> None:
    into(entries, oldest_of(entries))
    into(entries, oldest_of(entries))


def under_another_name(entries: dict[str, Json]) -> None:
    # Not the oldest: the API server merges that one whatever its name, unless another of the same second sorts before it.
    entries["kubectl/"]["manager"] = "somebody"


@pytest.mark.parametrize(
    "forge",
    [
        merged_by_hand,
        without_the_oldest,
        one_field_short,
        one_field_more,
        at_any_time,
        two_at_once,
        under_another_name,
    ],
)
def test_of_ten_entries_only_the_oldest_becomes_ancient_and_whole(
    crowd: Ground, crowded: str, ours: Transport, forge: Callable[[dict[str, Json]], None]
):
    obj = crowd.get(crowded)
    entries = updates(obj)
    applied = [e for e in obj["metadata"]["managedFields"] if e["operation"] == "Apply"]
    forge(entries)
    body = deepcopy(OURS)
    body["metadata"]["managedFields"] = [*applied, *entries.values()]
    answer = patch(ours, crowded, body, **DRY)
    assert answer.status == 403, answer.body
    assert "'plimsoll-history'" in message_of(answer)


def test_it_becomes_so_once_however_often_we_write(crowd: Ground, crowded: str, ours: Transport):
    assert patch(ours, crowded, OURS).status == 200
    before = updates(crowd.get(crowded))
    del before["plimsoll/"]
    for number in range(3):
        body = {
            "metadata": {
                "annotations": {"plimsoll.dev/doctor": f"again {number}"},
                "managedFields": [*before.values()],
            }
        }
        patch(ours, crowded, body)
        ours_too = Computed.entry({"manager": "plimsoll", "time": "2000-01-01T00:00:00Z"})
        body = {"metadata": {"managedFields": [*before.values(), ours_too]}}
        patch(ours, crowded, body)
    after = updates(crowd.get(crowded))
    assert after.pop("plimsoll/")
    assert after == before


def test_a_release_and_its_way_back_change_only_what_is_said_of_their_fields(
    guarded: ControlPlane,
):
    with Ground(guarded) as ground:
        ground.nodes("a")
        ground.apply(a_deployment("web", 1))
        ground.until(ground.serving)
        plimsoll = guarded.transport("plimsoll")
        api = KubernetesCluster(plimsoll, ground.name, SystemClock(), workers=SerialWorkers())
        seen = api.observe()
        [made] = [r for r in seen.replica_sets.values() if r.ref.namespace == ground.name]
        [pod] = [p for p in seen.pods if p.namespace == ground.name]
        api.release(pod, made, "i-1@noon")
        [released] = [p for p in api.observe().pods if p.uid == pod.uid]
        api.undo_release(released, made)
        [back] = [p for p in api.observe().pods if p.uid == pod.uid]
        assert back.owner == made.ref
