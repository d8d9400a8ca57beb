"""The admission policies that the doctor reads, since no dry run of the group can try them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll_cli.doctor.policy_checks import SHIPPED
from plimsoll_cli.probes.admission import digest_of
from tests.support.doctor import findings_by_check, guarding, healthy

INFRA = Path(__file__).parents[4] / "infra"
BATCH, AGENT = "infra/cluster/batch", "infra/agent/act"


def manifests(kind: str) -> Iterator[Mapping[str, Any]]:
    for folder in ("cluster", "agent/act"):
        for file in sorted((INFRA / folder).rglob("*.yaml")):
            for found in yaml.safe_load_all(file.read_text(encoding="utf-8")):
                if found["kind"] == kind:
                    yield found


def told(*, roles: tuple[str, ...], without: str = "", changed: str = "", unbound: str = ""):
    """Return what the doctor says of a cluster with all manifests of some ClusterRoles, but for these."""
    environment = healthy()
    policies = [p for p in manifests("ValidatingAdmissionPolicy") if named(p) != without]
    for policy in policies:
        if named(policy) == changed:
            policy["spec"]["validations"].pop()
    guarding(environment).lists |= {
        "validatingadmissionpolicies": policies,
        "validatingadmissionpolicybindings": [
            b for b in manifests("ValidatingAdmissionPolicyBinding") if named(b) != unbound
        ],
        "clusterroles": [{"metadata": {"name": name}} for name in roles],
    }
    status, found = findings_by_check(environment)
    return status, {check: f for check, f in found.items() if check.startswith("policies")}


def named(manifest: Mapping[str, Any]) -> str:
    return str(manifest["metadata"]["name"])


def test_the_digests_are_those_of_the_manifests():
    ships = {named(p): digest_of(p) for p in manifests("ValidatingAdmissionPolicy")}
    for each in SHIPPED:
        assert each.digests == {name: ships[name] for name in each.digests}
        assert each.role in {named(role) for role in manifests("ClusterRole")}


def test_where_an_overlay_is_not_applied_nothing_is_said_of_its_policies():
    assert told(roles=("plimsoll",), without="plimsoll-queues") == (0, {})


def test_policies_that_are_in_force_as_they_ship_are_fine():
    status, found = told(roles=tuple(each.role for each in SHIPPED))
    assert {check: f["state"] for check, f in found.items()} == {
        f"policies of {each.folder}": "ok" for each in SHIPPED
    }
    assert status == 0


@pytest.mark.parametrize("name", [min(each.digests) for each in SHIPPED])
@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("without", "missing or not bound"),
        ("unbound", "missing or not bound"),
        ("changed", "of another version"),
    ],
)
def test_a_policy_that_is_missing_not_bound_or_old_is_named_with_its_cure(name, how, says):
    (each,) = (each for each in SHIPPED if name in each.digests)
    status, found = told(roles=(each.role,), **{how: name})
    said = found[f"policies of {each.folder}"]
    assert status == 1
    assert f"{says}: {name}" in said["says"]
    assert said["cure"] == (
        f"kubectl apply -k {each.folder}"
        if each.overlay is None
        else "plimsoll clusters add harbor --context CONTEXT --overlay injection --stack plimsoll"
    )
