"""What suspended Jobs count for equals what a real API server makes of their pods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from plimsoll.adapters.kubernetes import Response
from plimsoll.adapters.kubernetes.objects import parse_pod
from plimsoll.adapters.kubernetes.requests import Requests
from plimsoll.domain.kubernetes import Resources
from plimsoll_batch.adapters.kubernetes.calls import GRANT
from plimsoll_batch.adapters.kubernetes.job_reader import job_reader
from plimsoll_batch.adapters.kubernetes.pod_admission import PodAdmission
from plimsoll_batch.domain.jobs import Job
from plimsoll_testbed.rigs.controlplane import ControlPlane
from tests.cluster.installed import message_of, until
from tests.support.fake_clusters import Json
from tests.support.queue_scenes import a_job

pytestmark = pytest.mark.cluster

RANGES: Final[dict[str, list[list[Json]]]] = {
    "free": [],
    "defaults": [
        [
            {
                "type": "Container",
                "default": {"cpu": "500m", "memory": "256Mi", "example.com/licence": "1"},
                "defaultRequest": {"cpu": "200m", "ephemeral-storage": "1Gi"},
            }
        ]
    ],
    "bounds": [
        [
            {"type": "Container", "min": {"cpu": "100m"}, "max": {"cpu": "1500m"}},
            {"type": "Pod", "min": {"cpu": "300m"}, "max": {"cpu": "2"}},
        ]
    ],
    "ratio": [
        [
            {"type": "Container", "default": {"cpu": "1"}, "maxLimitRequestRatio": {"cpu": "1.5"}},
            {"type": "Pod", "maxLimitRequestRatio": {"cpu": "1.2"}},
        ]
    ],
    "two": [
        [{"type": "Container", "defaultRequest": {"cpu": "300m"}}],
        [{"type": "Container", "max": {"memory": "1Gi"}, "min": {"memory": "64Mi"}}],
    ],
}
"""By namespace, of each of its LimitRanges."""


def box(name: str = "main", *, requests: Any = None, limits: Any = None, **more: Any) -> Json:
    said = {"requests": requests or {}, "limits": limits or {}}
    return {"name": name, "image": "x", "resources": said, **more}


TEMPLATES: Final[dict[str, Json]] = {
    "silent": {"containers": [box()]},
    "limited": {"containers": [box(limits={"cpu": "1"})]},
    "asking": {"containers": [box(requests={"cpu": "800m", "memory": "32Mi"})]},
    "both": {"containers": [box(requests={"cpu": "400m"}, limits={"cpu": "1"})]},
    "large": {"containers": [box(limits={"cpu": "1"}), box("other", limits={"cpu": "1500m"})]},
    "starting": {"containers": [box()], "initContainers": [box("first", requests={"cpu": "1"})]},
    "beside": {
        "containers": [box(limits={"cpu": "200m"})],
        "initContainers": [box("log", limits={"cpu": "100m"}, restartPolicy="Always")],
    },
    "heavy": {"containers": [box()], "runtimeClassName": "heavy"},
    "lost": {"containers": [box()], "runtimeClassName": "nothing"},
}
HEAVY: Final[Json] = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": "heavy"},
    "handler": "heavy",
    "overhead": {"podFixed": {"cpu": "250m", "memory": "64Mi"}},
    "scheduling": {"nodeSelector": {"runtime": "heavy"}, "tolerations": [{"key": "heavy"}]},
}
REFUSALS: Final = ("usage per", "ratio per", "RuntimeClass", "must be less than or equal to")


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with ControlPlane() as plane:
        assert post(plane, "/apis/node.k8s.io/v1/runtimeclasses", HEAVY).status == 201
        for namespace, ranges in RANGES.items():
            assert (
                post(plane, "/api/v1/namespaces", {"metadata": {"name": namespace}}).status == 201
            )
            for number, limits in enumerate(ranges):
                body = {"metadata": {"name": f"l-{number}"}, "spec": {"limits": limits}}
                path = f"/api/v1/namespaces/{namespace}/limitranges"
                assert post(plane, path, body).status == 201
        yield plane


def post(plane: ControlPlane, path: str, body: Json) -> Response:
    return plane.transport().call("POST", path, body=body, content_type="application/json")


def made(plane: ControlPlane, namespace: str, spec: Json) -> Resources | str | None:
    """Return what a pod requests as the API server makes it, or "refused"; None: it cannot tell yet."""
    body = {"metadata": {"name": "probe"}, "spec": spec}
    answer = post(plane, f"/api/v1/namespaces/{namespace}/pods?dryRun=All", body)
    if answer.status == 201:
        assert isinstance(answer.body, dict)
        return parse_pod(answer.body).scheduling.requests
    return "refused" if any(word in message_of(answer) for word in REFUSALS) else None


def counted(plane: ControlPlane, namespace: str, spec: Json) -> Job:
    requests = Requests(transport=plane.transport(), cluster="here", grant=GRANT)
    job = a_job("probe")
    job["metadata"] |= {
        "namespace": namespace,
        "uid": "u",
        "creationTimestamp": "2026-11-17T14:00:00Z",
    }
    job["spec"]["template"]["spec"] = {"restartPolicy": "Never", **spec}
    found = job_reader(PodAdmission.read(requests, pytest.fail))(job)
    assert found is not None
    return found


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("namespace", RANGES)
def test_a_suspended_job_counts_for_the_pods_that_the_api_server_will_make(
    plane: ControlPlane, namespace: str, template: str
):
    job = counted(plane, namespace, TEMPLATES[template])
    expected = "refused" if job.wrong else job.scheduling.requests
    until(lambda: made(plane, namespace, TEMPLATES[template]) is not None)
    seen = made(plane, namespace, TEMPLATES[template])
    assert seen == expected, job.wrong
    if namespace == "free":
        assert bool(job.wrong) is (template == "lost")


def test_a_runtime_class_also_says_where_pods_run(plane: ControlPlane):
    scheduling = counted(plane, "free", TEMPLATES["heavy"]).scheduling
    body = {"metadata": {"name": "probe"}, "spec": TEMPLATES["heavy"]}
    answer = post(plane, "/api/v1/namespaces/free/pods?dryRun=All", body)
    assert isinstance(answer.body, dict)
    real = parse_pod(answer.body).scheduling
    assert scheduling.node_selector == real.node_selector == {"runtime": "heavy"}
    assert set(scheduling.tolerations) <= set(real.tolerations)
