"""The Terraform module: read by python-hcl2, and held to the arguments that the AWS provider knows.

No Terraform runs here. `infra/local/terraform_schema.py` made the schema from the provider's own.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import hcl2
import pytest

from plimsoll.domain.kubernetes.names import GROW, HOOK_MARK, RENEW
from plimsoll_cli.doctor.drainer_checks import RIGHT_SECONDS
from plimsoll_cli.probes.kubernetes import GROUP
from plimsoll_cli.stack import CLUSTER_ROLES
from tests.package.template import ROOT, template

MODULE = ROOT / "infra" / "terraform"
FILES = sorted(MODULE.glob("*.tf"))
SCHEMA: Any = json.loads((Path(__file__).parent / "terraform_schema.json").read_text("utf-8"))["resources"]  # fmt: skip
# Terraform's own resource, and what every resource takes.
SCHEMA["terraform_data"] = {
    "arguments": {"input": False, "triggers_replace": False},
    "attributes": ["id", "input", "output"],
    "blocks": {},
}
META = {"count", "depends_on", "for_each", "lifecycle", "provider", "provisioner"}
REFERENCE = re.compile(r"\b((?:data\.)?(?:aws|terraform)_\w+)\.(\w+)(?:\[[^\]]+\])?\.(\w+)")
USED = re.compile(r"\b(var|local)\.(\w+)")


def unquoted(value: Any) -> Any:
    """A parsed file without the quotes and marks that python-hcl2 keeps."""
    match value:
        case dict():
            return {unquoted(k): unquoted(v) for k, v in value.items() if not k.startswith("__")}
        case list():
            return [unquoted(each) for each in value]
        case str():
            return value[1:-1] if value.startswith('"') else value
        case _:
            return value


SOURCE = "\n".join(file.read_text("utf-8") for file in FILES)


@cache
def module() -> Any:
    """All files, parsed as one: each parse takes half a second."""
    return unquoted(hcl2.loads(SOURCE))


def blocks(kind: str) -> list[Any]:
    found: list[Any] = module()[kind]
    return found


def resources() -> dict[tuple[str, str], Any]:
    """All resources and data sources: (type, name) -> arguments."""
    return {
        (prefix + kind, name): arguments
        for prefix, block in (("", "resource"), ("data.", "data"))
        for each in blocks(block)
        for kind, named in each.items()
        for name, arguments in named.items()
    }


def variables() -> dict[str, Any]:
    return {name: said for block in blocks("variable") for name, said in block.items()}


@pytest.mark.parametrize(("kind", "name"), resources())
def test_a_resource_has_the_arguments_that_the_provider_asks_for_and_no_others(
    kind: str, name: str
):
    given, known = resources()[kind, name], SCHEMA[kind]
    check(set(given) - META, known["arguments"])
    for block, arguments in known["blocks"].items():
        for each in given.get(block, []):
            check(set(each), arguments)


def check(given: set[str], known: dict[str, bool]) -> None:
    assert given <= set(known)
    assert {name for name, required in known.items() if required} <= given


def test_every_reference_leads_to_a_resource_and_an_attribute_of_it():
    found = REFERENCE.findall(SOURCE)
    assert len(found) > 5
    for kind, name, attribute in found:
        assert (kind, name) in resources()
        assert attribute in SCHEMA[kind]["attributes"]


def test_every_variable_and_local_is_declared_described_and_used():
    [local] = blocks("locals")
    declared = {("var", name) for name in variables()} | {("local", name) for name in local}
    assert set(USED.findall(SOURCE)) == declared
    assert all(said["description"] and said["type"] for said in variables().values())


def test_the_functions_roles_come_to_clusters_in_the_group_of_the_manifests():
    [local] = blocks("locals")
    assert set(local["roles"]) == set(CLUSTER_ROLES)
    assert set(CLUSTER_ROLES) <= set(template()["Outputs"])
    entry = resources()["aws_eks_access_entry", "function"]
    assert entry["kubernetes_groups"] == [GROUP]
    assert entry["principal_arn"].endswith("outputs[each.value.role]}")


def test_tags_are_those_that_plimsoll_reads():
    [tag] = resources()["aws_autoscaling_group_tag", "permission"]["tag"]
    [validation] = variables()["auto_scaling_groups"]["validation"]
    allowed = re.findall(r'"(\w+)"', validation["condition"])
    keys = {tag["key"].replace("${each.value.tag}", name) for name in allowed}
    assert keys == {GROW, RENEW, HOOK_MARK}
    assert tag["value"] == "true"


def test_karpenter_s_queue_is_delayed_as_the_doctor_asks():
    [told] = resources()["terraform_data", "karpenter_queue_delay"]["provisioner"]
    assert told["local-exec"]["command"].endswith(f"--attributes DelaySeconds={RIGHT_SECONDS}")


def test_the_page_names_every_variable_that_has_no_default():
    page = (ROOT / "docs/operate/terraform.md").read_text("utf-8")
    for name, said in variables().items():
        assert "default" in said or re.search(rf"^  {name}\s+=", page, re.MULTILINE), name
