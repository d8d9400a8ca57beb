"""The rights and policies of frameworks, rendered from their rows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from plimsoll_batch.domain.frameworks import FRAMEWORKS, JOB, NAMES, rows_of
from plimsoll_cli.batch.framework_manifests import rendered, text_of
from tests.support.cli_environment import MemoryEnvironment, run

CLUSTER = Path(__file__).parents[4] / "infra" / "cluster"
ROWS = {(row.group, row.resource) for row in (JOB, *FRAMEWORKS)}


def documents(path: str):
    return [*yaml.safe_load_all((CLUSTER / path).read_text(encoding="utf-8"))]


def named(found, kind, name):
    (one,) = (d for d in found if d["kind"] == kind and d["metadata"]["name"] == name)
    return one


def kinds_of(policy) -> set[tuple[str, str]]:
    return {
        (group, resource)
        for rule in policy["spec"]["matchConstraints"]["resourceRules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


def test_what_stands_in_the_folder_is_what_is_printed_for_jobs():
    kept = (CLUSTER / "batch" / "jobs.yaml").read_text(encoding="utf-8").splitlines(keepends=True)
    lines = iter(kept)
    body = [line for line in lines if not line.startswith("#")]
    printed = run(MemoryEnvironment(), "queues", "manifests")
    assert printed.exit_code == 0
    assert "".join(body) == printed.output


def test_rights_are_those_of_the_rows_and_a_child_is_only_read():
    rules = named(rendered(("trainer", "ray")), "ClusterRole", "plimsoll-batch-frameworks")["rules"]
    said = {rule["resources"][0]: rule["verbs"] for rule in rules}
    whole = ["get", "list", "watch", "patch"]
    assert said == {
        "trainjobs": whole,
        "rayjobs": whole,
        "rayclusters": whole,
        "jobsets": ["list", "watch"],
    }


@pytest.mark.parametrize("name", NAMES)
def test_each_kind_is_suspended_waits_and_is_written_by_fields(name):
    found = rendered((name,))
    for row in rows_of((name,)):
        about = {(row.group, row.resource)}
        queues, fields = f"plimsoll-queues-{row.resource}", f"plimsoll-batch-{row.resource}"
        for kind, policy in (("Mutating", queues), ("Validating", queues), ("Validating", fields)):
            assert kinds_of(named(found, f"{kind}AdmissionPolicy", policy)) == about
            bound = named(found, f"{kind}AdmissionPolicyBinding", policy)
            assert bound["spec"]["policyName"] == policy


def test_a_file_says_the_same_as_the_manifests():
    assert [*yaml.safe_load_all(text_of(rendered(NAMES)))] == json.loads(
        json.dumps(rendered(NAMES))
    )


def test_each_refusal_of_a_row_is_one_of_its_policy():
    found = rendered(("ray",))
    said = named(found, "ValidatingAdmissionPolicy", "plimsoll-queues-rayjobs")["spec"][
        "validations"
    ]
    expressions = [each["expression"] for each in said]
    assert (
        "oldObject != null || dyn(object)[?'spec'][?'shutdownAfterJobFinishes'].orValue(false) in [true]"
        in expressions
    )
    assert (
        "oldObject != null || !dyn(object)[?'spec'][?'clusterSelector'].hasValue()" in expressions
    )


def test_an_unknown_framework_is_refused_with_those_that_are_known():
    result = run(MemoryEnvironment(), "queues", "manifests", "--frameworks", "jobset,volcano")
    assert result.exit_code == 2
    assert "jobset, ray, trainer, kubeflow, mpi, spark, not volcano" in result.output


@pytest.mark.parametrize(
    ("file", "policy"),
    [("access", "plimsoll-queue-access"), ("required", "plimsoll-queue-required")],
)
def test_who_may_use_a_queue_is_asked_of_every_kind(file, policy):
    found = documents(f"batch-access/{file}.yaml")
    pods = {("", "pods")}
    assert kinds_of(named(found, "ValidatingAdmissionPolicy", policy)) == ROWS | pods


def test_the_planner_may_tell_by_events_of_every_kind():
    found = documents("batch/fields.yaml")
    policy = named(found, "ValidatingAdmissionPolicy", "plimsoll-batch-events")
    (validation,) = policy["spec"]["validations"]
    for row in (JOB, *FRAMEWORKS):
        assert f"'{row.kind}'" in validation["expression"]
