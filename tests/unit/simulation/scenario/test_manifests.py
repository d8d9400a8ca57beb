"""Kubernetes manifests of a drill: defaults as an API server fills them, mistakes with their place."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import pytest

from plimsoll_simulation.scenario.drill import read_drill
from plimsoll_simulation.scenario.kinds import KINDS
from plimsoll_simulation.scenario.manifests import Manifest, read_manifests
from plimsoll_simulation.scenario.problems import BadScenario, Problems

WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 2
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
        - name: web
          image: web:1
          resources:
            requests: {cpu: 500m, memory: 1Gi}
"""
BUDGET = """\
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec:
  maxUnavailable: 0
  selector: {matchLabels: {app: web}}
"""
DB = """\
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: shop}
spec:
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      containers: [{name: db, image: "db:1", resources: {limits: {cpu: 1}}}]
  volumeClaimTemplates:
    - metadata: {name: data}
      spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""


def read(tmp_path: Path, *texts: str) -> tuple[Manifest, ...]:
    files = []
    for i, text in enumerate(texts):
        files.append(tmp_path / f"{i}.yaml")
        files[-1].write_text(text, encoding="utf-8")
    problems = Problems()
    found = read_manifests(files, problems)
    problems.check()
    return found


def complaint(tmp_path: Path, *texts: str) -> str:
    with pytest.raises(BadScenario) as caught:
        read(tmp_path, *texts)
    return str(caught.value)


def test_a_deployment_gets_the_defaults_of_kubernetes(tmp_path):
    (web,) = read(tmp_path, WEB.replace("  replicas: 2\n", ""))
    spec = web.body["spec"]
    assert web.key == ("Deployment", "default", "web")
    assert web.body["metadata"]["namespace"] == "default"
    assert spec["replicas"] == 1
    assert spec["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"},
    }
    assert spec["template"]["spec"]["terminationGracePeriodSeconds"] == 30
    assert spec["template"]["spec"]["restartPolicy"] == "Always"


def test_defaults_do_not_leak_from_one_object_into_the_next(tmp_path):
    both = f"{WEB}---\n{WEB.replace('name: web', 'name: two')}"
    first, second = read(tmp_path, both)
    first.body["spec"]["strategy"]["rollingUpdate"]["maxSurge"] = 9
    first.body["spec"]["template"]["spec"]["securityContext"]["runAsUser"] = 0
    assert second.body["spec"]["strategy"]["rollingUpdate"]["maxSurge"] == "25%"
    assert second.body["spec"]["template"]["spec"]["securityContext"] == {}
    later, _ = read(tmp_path, both)
    assert later.body["spec"]["template"]["spec"]["securityContext"] == {}


def test_a_stateful_set_gets_its_defaults_and_its_namespace_is_added(tmp_path):
    namespace, db = read(tmp_path, DB)
    assert str(namespace) == "Namespace shop"
    assert db.namespace == "shop"
    spec = db.body["spec"]
    assert spec["podManagementPolicy"] == "OrderedReady"
    assert spec["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
    assert spec["volumeClaimTemplates"][0]["spec"]["volumeMode"] == "Filesystem"
    assert spec["template"]["spec"]["containers"][0]["resources"]["requests"] == {"cpu": 1}


def test_a_list_as_kubectl_writes_it_is_read_item_by_item(tmp_path):
    items = textwrap.indent(f"- {textwrap.indent(WEB, '  ').lstrip()}", "")
    (web,) = read(tmp_path, f"apiVersion: v1\nkind: List\nitems:\n{items}")
    assert web.name == "web"
    bad = f"apiVersion: v1\nkind: List\nitems:\n{items}".replace("replicas: 2", "replica: 2")
    assert "0.yaml:9: items[0].spec.replica" in complaint(tmp_path, bad)


def an_object(kind: str, version: str = "v1", **metadata: Any) -> str:
    metadata = {"name": "x", **metadata}
    return json.dumps({"apiVersion": version, "kind": kind, "metadata": metadata}) + "\n---\n"


def owned_by(kind: str) -> list[dict[str, Any]]:
    return [{"apiVersion": "x/v1", "kind": kind, "name": "web", "uid": "1", "controller": True}]


@pytest.mark.parametrize(
    ("text", "left_out"),
    [
        (an_object("ServiceAccount") * 3, {"ServiceAccount": 3}),
        (an_object("CronJob", "batch/v1"), {"CronJob": 1}),
        (
            an_object("ValidatingAdmissionPolicyBinding", "admissionregistration.k8s.io/v1"),
            {"ValidatingAdmissionPolicyBinding": 1},
        ),
        (an_object("Service", "serving.knative.dev/v1"), {"Service of serving.knative.dev": 1}),
        (
            an_object("Pod", annotations={"helm.sh/hook": "test"}),
            {"Pod with the annotation helm.sh/hook": 1},
        ),
        (
            an_object("Pod", ownerReferences=owned_by("ReplicaSet")),
            {"Pod that a ReplicaSet makes": 1},
        ),
        (
            json.dumps({"apiVersion": "v1", "kind": "SecretList", "items": [{"metadata": {}}] * 2}),
            {"Secret": 2},
        ),
    ],
)
def test_what_no_drill_plays_is_left_out_and_counted_by_kind(tmp_path, text, left_out):
    file = tmp_path / "chart.yaml"
    file.write_text(f"{WEB}---\n{text}", encoding="utf-8")
    problems = Problems()
    found = read_manifests([file], problems)
    problems.check()
    assert [str(each) for each in found] == ["Deployment default/web"]
    assert problems.left_out == left_out


def test_a_pod_that_a_custom_resource_owns_is_read(tmp_path):
    spec = {"containers": [{"name": "c", "image": "c"}]}
    metadata = {"name": "pg-1", "ownerReferences": owned_by("Cluster")}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    (found,) = read(tmp_path, json.dumps(pod))
    assert str(found) == "Pod default/pg-1"


def test_an_object_with_a_generated_name_is_numbered(tmp_path):
    text = WEB.replace("name: web\nspec", "generateName: web-\nspec")
    first, second, third = read(tmp_path, f"{text}---\n{text}", WEB.replace("web", "web-3"))
    assert [each.name for each in (first, second, third)] == ["web-1", "web-2", "web-3"]


def test_the_same_object_twice_names_both_places(tmp_path):
    text = complaint(tmp_path, f"# first\n{WEB}", f"{BUDGET}---\n{WEB}")
    assert "1.yaml:11: metadata.name: found Deployment default/web again" in text
    assert f"it first stands at {tmp_path}/0.yaml:2" in text


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        ("kind: Deployment", "kind: Deploymint", [":2: kind", "Write Deployment"]),
        ("kind: Deployment", "kind: Job", [":1: apiVersion", "Write apiVersion: batch/v1"]),
        ("    spec:\n", "    spec:\n      restartPolicy: Never\n", ["restartPolicy: Always"]),
        ("kind: Deployment", "kinds: Deployment", ["kind: found nothing", "Write the kind"]),
        ("  name: web\nspec", "  namespace: shop\nspec", ["metadata.name", "Add name"]),
        ("  selector:\n    matchLabels: {app: web}\n", "", ["spec.selector", "Add selector"]),
        ("    matchLabels: {app: web}", "    matchLabels: {app: api}", [":7:", "does not match"]),
        ("    matchLabels: {app: web}", "    matchLabels: {}", ["empty selector"]),
        ("cpu: 500m", "cpu: 500 m", [":17:", "requests.cpu", "500m, 2 or 1.5Gi"]),
        ("replicas: 2", "replica: 2", [":6: spec.replica", "Write replicas"]),
        ("replicas: 2", "strategy: {rollingUpdate: {maxSurge: 25}, type: Recreate}", ["Recreate"]),
        ("      labels: {app: web}", "      labels: {app: web, v: 1}", ['quotes: "1"']),
        (
            "      labels: {app: web}",
            "      labels: {app: web}\n      annotations: {drill.plimsoll.dev/stop: 40}",
            ["template.metadata.annotations", 'quotes: "40"'],
        ),
        (
            "      labels: {app: web}",
            "      labels: {app: web}\n      annotations: {drill.plimsoll.dev/stop: soon}",
            [":12:", "a duration"],
        ),
        (
            "      labels: {app: web}",
            "      labels: {app: web}\n      annotations: {drill.plimsoll.dev/stopp: 4s}",
            ["Write drill.plimsoll.dev/stop"],
        ),
        (
            "  name: web\nspec",
            "  name: web\n  annotations: {drill.plimsoll.dev/stop: 4s}\nspec",
            ["on the object", "Move it"],
        ),
        (
            "        - name: web",
            "        - {name: web, image: x}\n        - name: web",
            ["the container web again"],
        ),
    ],
)  # fmt: skip
def test_a_mistake_in_a_manifest_is_named_with_file_line_field_and_cure(tmp_path, old, new, parts):
    assert WEB.count(old) == 1
    text = complaint(tmp_path, WEB.replace(old, new))
    for part in parts:
        assert any(choice in text for choice in part.split("|")), text
    assert "0.yaml:" in text


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        ("  maxUnavailable: 0\n", "", "neither of them"),
        ("  maxUnavailable: 0\n", "  maxUnavailable: 0\n  minAvailable: 1\n", "both minAvailable"),
        ("  maxUnavailable: 0\n", "  maxUnavailable: half\n", "a percentage such as 25%"),
        ("  selector: {matchLabels: {app: web}}\n", "", "Add selector"),
    ],
)
def test_a_budget_says_exactly_one_thing(tmp_path, old, new, part):
    assert part in complaint(tmp_path, BUDGET.replace(old, new))


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_has_a_definition(kind, tmp_path):
    text = complaint(tmp_path, f"apiVersion: {KINDS[kind]}\nkind: {kind}\nbogus: 1\n")
    assert "metadata" in text
    assert "bogus" in text


SCENARIO = """\
apiVersion: plimsoll.dev/v1
kind: Drill
metadata: {name: small}
spec:
  clusters:
    - name: harbor
      manifests: [web.yaml]
      nodeGroups:
        - {name: g, kind: static, capacity: spot, instanceType: m5.large, zones: [a], size: 3,
           allocatable: {cpu: 2, memory: 8Gi}}
  timeline:
    - {at: 1m, scale: {kind: Deployment, name: web, replicas: 3}}
    - {at: 2m, apply: later.yaml}
  expect:
    workloads: {default/web: {minReady: 1}}
"""


def drill(tmp_path: Path, scenario: str = SCENARIO, web: str = WEB, later: str = WEB) -> str:
    (tmp_path / "drill.yaml").write_text(scenario)
    (tmp_path / "web.yaml").write_text(web)
    (tmp_path / "later.yaml").write_text(later)
    try:
        found = read_drill(tmp_path / "drill.yaml")
    except BadScenario as error:
        return str(error)
    assert [m.name for m in found.objects["harbor"]] == ["web"]
    assert [m.name for m in found.applied[tmp_path / "later.yaml"]] == ["web"]
    return ""


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        ("name: web, replicas", "name: wb, replicas", [":12:", "Write Deployment default/web"]),
        ("{kind: Deployment", "{kind: StatefulSet", ["unknown workload StatefulSet default/web"]),
        ("default/web:", "default/api:", [":15:", "unknown workload default/api"]),
        ("cpu: 2", "cpu: 300m", ["web.yaml:13:", "larger nodes"]),
    ],
)
def test_a_scenario_that_does_not_fit_its_manifests_is_refused(tmp_path, old, new, parts):
    text = drill(tmp_path, scenario=SCENARIO.replace(old, new))
    assert all(part in text for part in parts), text


@pytest.mark.parametrize(
    ("new", "part"),
    [
        ("priorityClassName: top", "unknown priority class top"),
        ("volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]", "unknown claim data"),
    ],
)
def test_what_a_pod_refers_to_has_to_be_there(tmp_path, new, part):
    web = WEB.replace("      containers:", f"      {new}\n      containers:")
    assert part in drill(tmp_path, web=web, later=WEB)


def test_an_apply_cannot_change_a_selector(tmp_path):
    later = WEB.replace("{app: web}", "{app: web, tier: front}")
    assert "cannot be changed" in drill(tmp_path, later=later)
