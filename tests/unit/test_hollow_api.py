"""The REST surface: lists, writes and their conflicts, patches, and refusals in their shape."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll_testbed.model.hollow.patches import patched
from plimsoll_testbed.model.hollow.refusals import RefusedError
from tests.support.hollows import (
    DEPLOYMENTS,
    MERGE,
    NODES,
    PODS,
    STRATEGIC,
    Play,
    a_deployment,
    a_node,
    a_pod,
    a_template,
)

LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
JSON_PATCH = "application/json-patch+json"


@pytest.fixture
def play() -> Play:
    play = Play()
    play.nodes("a", "b")
    return play


def item_names(answer: Any) -> list[str]:
    return [item["metadata"]["name"] for item in answer.body["items"]]


def test_lists_are_selected_by_labels_and_fields(play: Play):
    play.apply(a_pod("x"), a_pod("y"), a_pod("large", a_template("large", cpu="100")))
    play.wait(20)
    assert item_names(play.call("GET", PODS, labelSelector="app in (x, y)")) == ["x", "y"]
    assert item_names(play.call("GET", PODS, labelSelector="app!=x,app")) == ["large", "y"]
    assert item_names(play.call("GET", PODS, labelSelector="!app")) == []
    assert item_names(play.call("GET", PODS, fieldSelector="status.phase=Pending")) == ["large"]
    assert item_names(play.call("GET", "/api/v1/pods", fieldSelector="metadata.name=x")) == ["x"]
    on_a = item_names(play.call("GET", PODS, fieldSelector="spec.nodeName=a"))
    on_b = item_names(play.call("GET", PODS, fieldSelector="spec.nodeName=b"))
    assert sorted(on_a + on_b) == ["x", "y"]
    assert play.call("GET", PODS, fieldSelector="spec.color=red").status == 400


def test_a_long_list_comes_in_pages(play: Play):
    play.apply(*(a_pod(f"p{i}") for i in range(5)))
    first = play.call("GET", PODS, limit="2")
    assert item_names(first) == ["p0", "p1"]
    assert first.body["metadata"]["remainingItemCount"] == 3
    token = first.body["metadata"]["continue"]
    second = play.call("GET", PODS, **{"limit": "2", "continue": token})
    token = second.body["metadata"]["continue"]
    third = play.call("GET", PODS, **{"limit": "2", "continue": token})
    assert item_names(second) + item_names(third) == ["p2", "p3", "p4"]
    assert "continue" not in third.body["metadata"]


def test_a_taken_name_and_an_old_version_are_conflicts_of_two_kinds(play: Play):
    lease: dict[str, Any] = {"metadata": {"name": "drains"}, "spec": {"holderIdentity": "one"}}
    created = play.call("POST", LEASES, lease)
    assert created.status == 201
    again = play.call("POST", LEASES, lease)
    assert (again.status, again.body["reason"]) == (409, "AlreadyExists")
    mine = {**created.body, "spec": {"holderIdentity": "two"}}
    assert play.call("PUT", f"{LEASES}/drains", mine).status == 200
    late = play.call("PUT", f"{LEASES}/drains", mine)
    assert (late.status, late.body["reason"]) == (409, "Conflict")
    assert "the object has been modified" in late.body["message"]
    assert late.body["details"] == {
        "name": "drains",
        "kind": "leases",
        "group": "coordination.k8s.io",
    }


def test_the_spec_of_a_pod_cannot_be_changed(play: Play):
    play.apply(a_pod("x"))
    answer = play.call("PATCH", f"{PODS}/x", {"spec": {"nodeName": "b"}})
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")


def test_a_pod_is_bound_once(play: Play):
    play.apply(a_pod("x", a_template("x", schedulerName="nobody")))
    binding = {"metadata": {"name": "x"}, "target": {"kind": "Node", "name": "b"}}
    assert play.call("POST", f"{PODS}/x/binding", binding).status == 201
    assert play.call("POST", f"{PODS}/x/binding", binding).status == 409
    play.wait(20)
    assert play.pods_on("b") == {"x"}


def test_what_is_not_there_or_not_served_is_refused_in_the_servers_shape(play: Play):
    missing = play.call("GET", f"{PODS}/none")
    assert missing.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'pods "none" not found',
        "reason": "NotFound",
        "details": {"name": "none", "kind": "pods"},
        "code": 404,
    }
    assert play.call("GET", "/apis/example.com/v1/things").status == 404
    assert play.call("GET", f"{PODS}/x/log").status == 404
    assert play.call("PUT", PODS, {}).status == 405
    assert play.call("PATCH", f"{NODES}/a", {}, "application/apply-patch+yaml").status == 415
    elsewhere = "/api/v1/namespaces/elsewhere/pods"
    refused = play.call("POST", elsewhere, {"metadata": {"name": "x"}, "spec": {}})
    assert (refused.status, refused.body["message"]) == (404, 'namespaces "elsewhere" not found')


def test_a_selector_that_misses_its_own_template_is_refused(play: Play):
    wrong = a_deployment("web", 1, a_template("other"))
    answer = play.call("POST", DEPLOYMENTS, wrong)
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")


def test_a_dry_run_shows_and_stores_nothing(play: Play):
    answer = play.call("PATCH", f"{NODES}/a", {"spec": {"unschedulable": True}}, dryRun="All")
    assert answer.body["spec"]["unschedulable"] is True
    assert "unschedulable" not in play.get(f"{NODES}/a")["spec"]


def test_discovery_names_versions_groups_and_resources(play: Play):
    assert play.get("/version")["minor"] == "36"
    assert play.get("/readyz") == {"status": "ok"}
    assert play.get("/api")["versions"] == ["v1"]
    assert "policy" in {g["name"] for g in play.get("/apis")["groups"]}
    served = {r["name"] for r in play.get("/apis/apps/v1")["resources"]}
    assert {"deployments", "deployments/scale", "deployments/status"} <= served
    core = {r["name"]: r for r in play.get("/api/v1")["resources"]}
    assert core["pods/eviction"]["group"] == "policy"
    assert not core["nodes"]["namespaced"]


def test_a_stored_object_is_never_changed_in_place(play: Play):
    before = play.get(f"{NODES}/a")
    spec, version = before["spec"], before["metadata"]["resourceVersion"]
    play.cordon("a")
    assert before["spec"] is spec
    assert "unschedulable" not in spec
    assert before["metadata"]["resourceVersion"] == version


def test_a_merge_patch_replaces_lists_and_takes_away_what_is_null():
    obj = {"a": {"b": 1, "c": [1, 2]}, "d": 1}
    assert patched(obj, {"a": {"b": None, "c": [3]}, "d": 2}, MERGE) == {"a": {"c": [3]}, "d": 2}


def test_a_strategic_patch_merges_conditions_by_type_and_replaces_taints():
    obj = {
        "status": {
            "conditions": [{"type": "A", "status": "True"}, {"type": "B", "status": "True"}]
        },
        "spec": {"taints": [{"key": "x", "effect": "NoSchedule"}]},
    }
    patch = {
        "status": {"conditions": [{"type": "B", "status": "False"}]},
        "spec": {"taints": [{"key": "y", "effect": "NoSchedule"}]},
    }
    result = patched(obj, patch, STRATEGIC)
    assert [c["status"] for c in result["status"]["conditions"]] == ["True", "False"]
    assert [t["key"] for t in result["spec"]["taints"]] == ["y"]
    deletion = {"status": {"conditions": [{"type": "A", "$patch": "delete"}]}}
    assert [c["type"] for c in patched(obj, deletion, STRATEGIC)["status"]["conditions"]] == ["B"]


def test_a_json_patch_operates_in_order_and_stops_at_a_failed_test():
    obj = {"metadata": {"annotations": {"a/b": "1"}}, "list": [1, 2]}
    operations = [
        {"op": "test", "path": "/metadata/annotations/a~1b", "value": "1"},
        {"op": "replace", "path": "/metadata/annotations/a~1b", "value": "2"},
        {"op": "add", "path": "/list/-", "value": 3},
        {"op": "remove", "path": "/list/0"},
    ]
    result = patched(obj, operations, JSON_PATCH)
    assert result == {"metadata": {"annotations": {"a/b": "2"}}, "list": [2, 3]}
    with pytest.raises(Exception, match="testing value"):
        patched(obj, [{"op": "test", "path": "/list/0", "value": 9}], JSON_PATCH)
    with pytest.raises(Exception, match="does not fit"):
        patched(obj, [{"op": "remove", "path": "/none"}], JSON_PATCH)


def test_a_token_of_another_server_is_refused(play: Play):
    answer = play.call("GET", PODS, **{"limit": "1", "continue": "abc"})
    assert (answer.status, answer.body["reason"]) == (400, "BadRequest")


def test_a_collection_is_deleted_by_selector(play: Play):
    play.apply(a_pod("x"), a_pod("y"))
    play.wait(20)
    assert play.call("DELETE", PODS, labelSelector="app=x").status == 200
    play.wait(10)
    assert play.names() == {"y"}


def test_a_name_may_be_made_by_the_server(play: Play):
    answer = play.call("POST", PODS, {"metadata": {"generateName": "job-"}, "spec": {}})
    assert answer.status == 201
    assert answer.body["metadata"]["name"].startswith("job-")


def test_a_scale_is_read_and_replaced_under_its_version(play: Play):
    play.apply(a_deployment("web", 1))
    scale = play.get(f"{DEPLOYMENTS}/web/scale")
    assert scale["spec"] == {"replicas": 1}
    assert scale["status"]["selector"] == "app=web"
    more = {**scale, "spec": {"replicas": 2}}
    assert play.call("PUT", f"{DEPLOYMENTS}/web/scale", more).status == 200
    assert play.call("PUT", f"{DEPLOYMENTS}/web/scale", more).status == 409
    less = {"spec": {"replicas": -1}}
    assert play.call("PATCH", f"{DEPLOYMENTS}/web/scale", less).status == 422
    assert play.call("GET", f"{NODES}/a/scale").status == 404


def test_an_object_in_the_wrong_place_or_shape_is_refused(play: Play):
    elsewhere = a_pod("x")
    elsewhere["metadata"]["namespace"] = "kube-system"
    assert play.call("POST", PODS, elsewhere).status == 400
    assert play.call("POST", PODS, ["x"]).status == 400
    assert play.call("POST", PODS, {"metadata": {"name": "Not_A_Name"}}).status == 422
    assert play.call("POST", "/api/v1/pods", a_pod("x")).status == 405
    assert play.call("POST", DEPLOYMENTS, a_deployment("web", -1)).status == 422
    renamed = {**a_node("a"), "metadata": {"name": "b"}}
    assert play.call("PUT", f"{NODES}/a", renamed).status == 400
    unknown = a_pod("x", a_template("x", priorityClassName="nobody"))
    assert play.call("POST", PODS, unknown).status == 403


@pytest.mark.parametrize(
    "labels", ["tier in (", "=a", "a=b,,c", "a in", "a b", "a=-", "!", "a!=b,"]
)
def test_a_label_selector_that_is_none_is_refused(play: Play, labels: str):
    answer = play.call("GET", PODS, labelSelector=labels)
    assert (answer.status, answer.body["reason"]) == (400, "BadRequest")


@pytest.mark.parametrize(
    ("labels", "found"),
    [
        ("tier = a", {"one"}),
        ("tier in ( a , b )", {"one", "two"}),
        ("tier notin (a)", {"two", "three"}),
        ("!tier", {"three"}),
        ("gen>3", {"two"}),
        ("gen<3,tier", {"one"}),
        ("tier!=", {"one", "two", "three"}),
    ],
)
def test_label_selectors_are_read_as_the_server_reads_them(
    play: Play, labels: str, found: set[str]
):
    for name, more in (("one", {"tier": "a", "gen": "1"}), ("two", {"tier": "b", "gen": "5"})):
        pod = a_pod(name)
        pod["metadata"]["labels"] |= more
        play.apply(pod)
    play.apply(a_pod("three"))
    items = play.call("GET", PODS, labelSelector=labels).body["items"]
    assert {item["metadata"]["name"] for item in items} == found


def test_each_kind_is_selected_by_fields_of_its_own(play: Play):
    assert play.call("GET", DEPLOYMENTS, fieldSelector="spec.nodeName=a").status == 400
    assert play.call("GET", NODES, fieldSelector="metadata.namespace=a").status == 400
    play.apply(a_pod("one"))
    for fields in ("spec.restartPolicy=Always", "spec.hostNetwork=false"):
        assert len(play.call("GET", PODS, fieldSelector=fields).body["items"]) == 1
    ready = play.call("GET", NODES, fieldSelector="spec.unschedulable=false").body["items"]
    assert len(ready) == len(play.get(NODES)["items"])


def test_a_json_patch_that_does_not_fit_cannot_be_processed():
    for operation in (
        {"op": "test", "path": "/a", "value": 2},
        {"op": "remove", "path": "/b"},
        {"op": "add", "path": "/b/c", "value": 1},
        {"op": "jump", "path": "/a"},
    ):
        with pytest.raises(RefusedError) as refused:
            patched({"a": 1}, [operation], "application/json-patch+json")
        assert (refused.value.code, refused.value.status["reason"]) == (422, "Invalid")


def test_a_json_patch_replaces_also_what_is_not_there():
    operation = {"op": "replace", "path": "/b", "value": 1}
    assert patched({}, [operation], "application/json-patch+json") == {"b": 1}


def test_a_strategic_patch_puts_new_items_before_the_old_ones():
    before = {"containers": [{"name": "a"}, {"name": "b"}]}
    patch = {"containers": [{"name": "new"}, {"name": "b", "image": "x"}]}
    after = patched(before, patch, STRATEGIC)
    assert [c["name"] for c in after["containers"]] == ["new", "a", "b"]
