"""The operators of two frameworks at play on a fake cluster: as their sources say, and no more than tests need.

A PyTorchJob makes its pods itself, and takes all of them away while it is suspended. A JobSet makes Jobs, and merges
what its templates say by then into theirs: https://github.com/kubernetes-sigs/jobset/pull/1294.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from tests.support.fake_clusters import Json
from tests.support.queue_scenes import JOBS, Scene

PYTORCH = "/apis/kubeflow.org/v1/namespaces/lab/pytorchjobs"
JOBSETS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/lab/jobsets"
PODS = "/api/v1/namespaces/lab/pods"
FLAVORS = """
frameworks: [jobset, kubeflow]
flavors:
  - {name: a, nodeLabels: {pool: a}}
  - {name: b, nodeLabels: {pool: b}}
queues:
  - name: lab
    preemption: {withinQueue: LowerPriority}
    resourceGroups:
      - flavors:
          - {name: a, resources: {cpu: {nominal: 4}}}
          - {name: b, resources: {cpu: {nominal: 4}}}
"""


def a_template(cpu: str = "1", run: str | None = None, **spec: Any) -> Json:
    """Return a template of pods that take a whole node."""
    requests = {"requests": {"cpu": cpu}}
    return {
        "metadata": {"annotations": {"drill.plimsoll.dev/run": run} if run else {}},
        "spec": {
            "containers": [{"name": "main", "image": "x", "resources": requests}],
            **spec,
        },
    }


def named(name: str, annotations: Mapping[str, str] | None = None) -> Json:
    """Return the metadata of an object in the queue `lab`."""
    labels = {"plimsoll.dev/queue": "lab"}
    return {
        "name": name,
        "namespace": "lab",
        "labels": labels,
        "annotations": dict(annotations or {}),
    }


def a_pytorch_job(
    name: str, workers: int = 2, annotations: Mapping[str, str] | None = None, **template: Any
) -> Json:
    """Return a suspended PyTorchJob of a master and workers."""
    roles = {
        "Master": {"replicas": 1, "template": a_template(restartPolicy="Never", **template)},
        "Worker": {"replicas": workers, "template": a_template(restartPolicy="Never", **template)},
    }
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": named(name, annotations),
        "spec": {"runPolicy": {"suspend": True}, "pytorchReplicaSpecs": roles},
    }


def a_job_set(
    name: str, workers: int = 2, annotations: Mapping[str, str] | None = None, **template: Any
) -> Json:
    """Return a suspended JobSet of a driver and workers."""

    def role(called: str, pods: int) -> Json:
        job = {
            "parallelism": pods,
            "completions": pods,
            "template": a_template(restartPolicy="Never", **template),
        }
        return {"name": called, "replicas": 1, "template": {"spec": job}}

    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": named(name, annotations),
        "spec": {"suspend": True, "replicatedJobs": [role("driver", 1), role("workers", workers)]},
    }


class Operators:
    """Both, on the cluster of a scene; they act when a test lets them."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._store = scene.play.cluster.store

    def act(self, seconds: float = 0.2) -> None:
        """Bring about what the objects say, and let some time pass."""
        for each in [*self._store.all("pytorchjobs")]:
            self._pytorch(each)
        for each in [*self._store.all("jobsets")]:
            self._job_set(each)
        self._scene.clock.sleep(seconds)

    def _pytorch(self, obj: Json) -> None:
        name, spec = obj["metadata"]["name"], obj["spec"]
        label = "training.kubeflow.org/job-name"
        pods = {
            pod["metadata"]["name"]: pod
            for pod in self._store.all("pods")
            if (pod["metadata"].get("labels") or {}).get(label) == name
        }
        if _ended(obj):
            return
        if spec["runPolicy"].get("suspend"):
            for pod in pods:
                self._scene.play.call("DELETE", f"{PODS}/{pod}")
            return
        wanted = {
            f"{name}-{role.lower()}-{i}": (role.lower(), each["template"])
            for role, each in spec["pytorchReplicaSpecs"].items()
            for i in range(each["replicas"])
        }
        for pod, (role, template) in wanted.items():
            if pod not in pods:
                labels = {label: name, "training.kubeflow.org/replica-type": role}
                self._make(PODS, obj, pod, labels, template["metadata"], {"spec": template["spec"]})
        done = Counter(
            pods[pod]["metadata"]["labels"]["training.kubeflow.org/replica-type"]
            for pod in wanted.keys() & pods.keys()
            if pods[pod]["status"]["phase"] == "Succeeded"
        )
        if done.total() == len(wanted):
            self._end(PYTORCH, obj, "Succeeded")
        elif done:
            roles = spec["pytorchReplicaSpecs"]
            counts = {role: {"succeeded": done[role.lower()]} for role in roles}
            self._say(PYTORCH, obj, {"replicaStatuses": counts})

    def _job_set(self, obj: Json) -> None:
        if _ended(obj):
            return
        name, done = obj["metadata"]["name"], []
        for each in obj["spec"]["replicatedJobs"]:
            job, spec = f"{name}-{each['name']}-0", each["template"]["spec"]
            there = self._store.get("jobs", "lab", job)
            suspend = bool(obj["spec"].get("suspend"))
            if there is None:
                labels = {
                    "jobset.sigs.k8s.io/jobset-name": name,
                    "jobset.sigs.k8s.io/replicatedjob-name": each["name"],
                }
                template = spec["template"]
                meta = {**template["metadata"], "labels": labels}
                made = {**spec, "suspend": suspend, "template": {**template, "metadata": meta}}
                self._make(JOBS, obj, job, labels, {}, {"spec": made})
                continue
            done.append(_is(there, "Complete"))
            if bool(there["spec"].get("suspend")) != suspend:
                pod = spec["template"]["spec"]
                change: Json = {"suspend": suspend}
                if not suspend:
                    selector = {"nodeSelector": pod.get("nodeSelector") or {}}
                    change["template"] = {"spec": selector}
                self._scene.play.patch(f"{JOBS}/{job}", {"spec": change})
        if done and all(done):
            self._end(JOBSETS, obj, "Completed")
        elif any(done):
            names = [each["name"] for each in obj["spec"]["replicatedJobs"]]
            counts = [
                {"name": role, "succeeded": int(ended)}
                for role, ended in zip(names, done, strict=False)
            ]
            self._say(JOBSETS, obj, {"replicatedJobsStatus": counts})

    def _make(  # noqa: PLR0913, PLR0917 - the parts of an object
        self, path: str, owner: Json, name: str, labels: Json, meta: Json, parts: Json
    ) -> None:
        reference = {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            "controller": True,
        }
        metadata = {
            **meta,
            "name": name,
            "namespace": "lab",
            "labels": labels,
            "ownerReferences": [reference],
        }
        answer = self._scene.play.call("POST", path, {"metadata": metadata, **parts})
        assert answer.status == 201, answer.body

    def _end(self, path: str, obj: Json, condition: str) -> None:
        self._say(path, obj, {"conditions": [{"type": condition, "status": "True"}]})

    def _say(self, path: str, obj: Json, status: Json) -> None:
        body = {"status": status}
        self._scene.play.patch(f"{path}/{obj['metadata']['name']}/status", body)


def _is(obj: Json, condition: str) -> bool:
    found = (obj.get("status") or {}).get("conditions") or []
    return any(each["type"] == condition and each["status"] == "True" for each in found)


def _ended(obj: Json) -> bool:
    return any(_is(obj, each) for each in ("Succeeded", "Failed", "Completed"))
