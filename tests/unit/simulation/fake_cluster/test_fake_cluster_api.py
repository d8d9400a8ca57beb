"""The REST surface: lists, writes and their conflicts, patches, and refusals in their shape."""

from __future__ import annotations

from typing import Any

from tests.support.fake_clusters import (
    NODES,
    PODS,
    Play,
    a_node,
    a_pod,
    a_template,
)


def item_names(answer: Any) -> list[str]:
    return [item["metadata"]["name"] for item in answer.body["items"]]


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


def test_discovery_names_versions_groups_and_resources(play: Play):
    assert play.get("/version")["minor"] == "37"
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


def test_an_object_in_the_wrong_place_or_shape_is_refused(play: Play):
    elsewhere = a_pod("x")
    elsewhere["metadata"]["namespace"] = "kube-system"
    assert play.call("POST", PODS, elsewhere).status == 400
    assert play.call("POST", PODS, ["x"]).status == 400
    assert play.call("POST", "/api/v1/pods", a_pod("x")).status == 405
    renamed = {**a_node("a"), "metadata": {"name": "b"}}
    assert play.call("PUT", f"{NODES}/a", renamed).status == 400
    unknown = a_pod("x", a_template("x", priorityClassName="nobody"))
    assert play.call("POST", PODS, unknown).status == 403
