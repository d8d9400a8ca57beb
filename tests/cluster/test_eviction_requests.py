"""EvictionRequests in Kubernetes 1.37: the API server keeps them, and no controller answers them.

Decision record 0026 rests on this. A failure here means that the time has come to read it again.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest

from plimsoll_simulation.fake_cluster.conditions import is_deleting, is_ready
from plimsoll_testbed.rigs.endpoints import ReadyEndpoints
from tests.cluster.ground import Ground, Json
from tests.cluster.harbor import Harbor, drainer
from tests.support.fake_clusters import MERGE, a_deployment, a_pod

pytestmark = pytest.mark.cluster

API = "lifecycle.k8s.io/v1alpha1"
RESPONDER = "example.com/switch-over"
NAMED = {"name": RESPONDER, "priority": 10_001}
EVICTOR = "imperative-eviction.k8s.io/evictor"
ANSWER_SECONDS = 5.0
"""The controller of Kubernetes 1.38 answers at once, or after three seconds where it does not know the pod yet."""


@pytest.fixture
def ground(ground: Ground) -> Ground:
    if ground.call("GET", f"/apis/{API}").status == 404:
        pytest.skip(f"Kubernetes {ground.plane.version} has no {API}")
    return ground


def _path(ground: Ground, resource: str) -> str:
    return f"/apis/{API}/namespaces/{ground.name}/{resource}"


def _running(ground: Ground, name: str, *responders: Json) -> Json:
    """Return the target that names a pod which is Ready."""
    ground.nodes(name)
    pod = a_pod(name)
    ground.apply({**pod, "spec": {**pod["spec"], "evictionResponders": list(responders)}})
    [found] = ground.until(lambda: ground.serving(name))
    assert found["spec"].get("evictionResponders", []) == list(responders)
    return _target(found)


def _target(pod: Json) -> Json:
    return {"pod": {key: pod["metadata"][key] for key in ("name", "uid")}}


def _requested(ground: Ground, name: str, target: Json) -> str:
    """Request an eviction; return the path of the request."""
    spec = {"target": target, "requester": "plimsoll.dev/interruption", "intent": "Eviction"}
    path = _path(ground, "evictionrequests")
    ground.create(path, {"metadata": {"name": name}, "spec": spec})
    return f"{path}/{name}"


def test_no_controller_answers_a_request(ground: Ground):
    asked = _running(ground, "asked", NAMED)
    plain = _running(ground, "plain")

    requests = [_requested(ground, "asked", asked), _requested(ground, "plain", plain)]
    time.sleep(ANSWER_SECONDS)

    assert ground.get(_path(ground, "evictions"))["items"] == []
    assert [ground.get(request)["status"] for request in requests] == [{}, {}]
    assert [(is_ready(p), is_deleting(p)) for p in ground.pods()] == [(True, False)] * 2


def test_nor_does_one_answer_an_eviction_that_somebody_else_makes(ground: Ground):
    target = _running(ground, "asked")
    path = _path(ground, "evictions")
    ground.create(path, {"metadata": {"name": "asked"}, "spec": {"target": target}})
    time.sleep(ANSWER_SECONDS)

    assert ground.get(f"{path}/asked")["status"] == {}
    assert ground.serving("asked") != []


def test_the_api_server_holds_the_order_of_responders_and_not_who_writes(ground: Ground):
    target = _running(ground, "asked", NAMED)
    path = _path(ground, "evictions")
    ground.create(path, {"metadata": {"name": "asked"}, "spec": {"target": target}})

    states = [
        {**NAMED, "state": "Active"},
        {"name": EVICTOR, "priority": 100, "state": "Inactive"},
    ]
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    started, beating = {"startTime": now}, {"startTime": now, "heartbeatTime": now}

    def written(first: Json, second: Json) -> int:
        responders = [{"name": RESPONDER, **first}, {"name": EVICTOR, **second}]
        status = {"status": {"targetResponders": states, "responders": responders}}
        return ground.call("PATCH", f"{path}/asked/status", status, MERGE).status

    assert written(started, {}) == 200
    assert written(started, beating) == 422
    assert written(beating, {}) == 200
    assert written({**beating, "completionTime": now}, {}) == 200


def test_a_pod_that_names_a_responder_is_released_and_drained_like_any_other(ground: Ground):
    def made(app: str, replicas: int, template: Json) -> Json:
        spec = {**template["spec"], "evictionResponders": [NAMED]}
        return a_deployment(app, replicas, {**template, "spec": spec})

    with drainer(ground.plane), ReadyEndpoints(ground.plane.kubeconfig()) as endpoints:
        harbor = Harbor(ground, endpoints, made=made, web=1)
        [pod] = ground.serving("web")
        _requested(ground, "web", _target(pod))

        status, said = harbor.drain()

        assert (status, harbor.on(harbor.old), len(harbor.on(harbor.new))) == (0, [], 1), said
        assert harbor.seconds_below("web", 1) == 0
