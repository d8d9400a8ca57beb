"""Who wrote which field: Plimsoll changes nothing of it but by what it writes itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial
from typing import Any

import pytest

from plimsoll.adapters.clock import SystemClock
from plimsoll.adapters.kubernetes import KubernetesCluster, Response, Transport
from plimsoll.adapters.kubernetes.requests import MERGE_PATCH
from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.kubernetes import INTERRUPTION
from plimsoll_testbed.rigs.controlplane import ControlPlane
from tests.cluster.ground import Ground
from tests.cluster.installed import message_of
from tests.support.fake_clusters import a_deployment

pytestmark = pytest.mark.cluster

type Json = dict[str, Any]
type Forge = Callable[[list[Json]], list[Json]]

OURS = {"metadata": {"annotations": {"plimsoll.dev/doctor": "1"}}}
DRY = {"dryRun": "All"}


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


def patch(api: Transport, path: str, body: Json, **query: str) -> Response:
    return api.call("PATCH", path, query=query, body=body, content_type=MERGE_PATCH)


def of_admin(entries: list[Json]) -> Json:
    return next(e for e in entries if "f:theirs" in str(e))


def an_entry(manager: str) -> Json:
    fields: Json = {"f:metadata": {"f:labels": {"f:theirs": {}}}}
    return {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }


def is_tainted(shop: Ground, node: str, *, tainted: bool) -> bool:
    return len(shop.get(node)["spec"].get("taints", ())) == tainted


def renamed(entries: list[Json]) -> list[Json]:
    of_admin(entries)["manager"] = "plimsoll-other"
    return entries


def without_a_field(entries: list[Json]) -> list[Json]:
    del of_admin(entries)["fieldsV1"]["f:metadata"]["f:labels"]["f:theirs"]
    return entries


def with_a_field(entries: list[Json]) -> list[Json]:
    of_admin(entries)["fieldsV1"]["f:metadata"]["f:labels"]["f:app"] = {}
    return entries


def with_another_field(entries: list[Json]) -> list[Json]:
    of_admin(entries)["fieldsV1"]["f:spec"] = {"f:priority": {}}
    return entries


def at_another_time(entries: list[Json]) -> list[Json]:
    of_admin(entries)["time"] = "2026-01-01T00:00:00Z"
    return entries


@pytest.mark.parametrize(
    ("forge", "named"),
    [
        (lambda _: [{}], "is emptied"),
        (lambda _: [an_entry("plimsoll")], "no longer says what admin wrote"),
        (lambda entries: [*entries, an_entry("kubectl")], "says that kubectl wrote this"),
        (renamed, "no longer says what admin wrote"),
        (without_a_field, "no longer says what admin wrote"),
        (with_a_field, "says that admin wrote this"),
        (with_another_field, "says that admin wrote this"),
        (at_another_time, "no longer says what admin wrote"),
    ],
    ids=[
        "emptied",
        "replaced",
        "forged",
        "renamed",
        "a field off",
        "a label on",
        "another field on",
        "another time",
    ],
)
def test_what_others_wrote_stays_said(
    shop: Ground, path: str, ours: Transport, forge: Forge, named: str
):
    entries = forge(deepcopy(shop.get(path)["metadata"]["managedFields"]))
    answer = patch(ours, path, {"metadata": {"managedFields": entries}}, **DRY)
    assert answer.status == 403, answer.body
    assert "'plimsoll-history'" in message_of(answer)
    assert named in message_of(answer)


def test_a_field_manager_of_another_name_is_refused(path: str, ours: Transport):
    answer = patch(ours, path, OURS, **DRY, fieldManager="kubectl")
    assert "says that kubectl wrote this" in message_of(answer)
    assert patch(ours, path, OURS, **DRY, fieldManager="plimsoll-doctor").status == 200


def test_what_another_wrote_of_our_fields_may_be_changed_and_taken_off(path: str, ours: Transport):
    for value in ("1", None):
        body = {"metadata": {"annotations": {"plimsoll.dev/doctor": value}}}
        answer = patch(ours, path, body, **DRY)
        assert answer.status == 200, answer.body


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


def test_an_object_that_ten_others_wrote_on_is_changed_all_the_same(
    shop: Ground, path: str, ours: Transport
):
    for number in range(12):
        body = {"metadata": {"annotations": {f"theirs-{number}": "1"}}}
        assert patch(shop.api, path, body, fieldManager=f"manager-{number}").status == 200
    answer = patch(ours, path, OURS, **DRY)
    assert answer.status == 200, answer.body


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
