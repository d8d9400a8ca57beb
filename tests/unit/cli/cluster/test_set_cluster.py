"""`plimsoll clusters set`: by which role a cluster of another account is reached."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.support.cli_environment import MemoryEnvironment, a_cluster, run

ROLE = "arn:aws:iam::210987654321:role/plimsoll-spoke-us-east-1"
OTHER = "arn:aws:iam::999988887777:role/plimsoll-spoke-us-east-1"
QUAY = replace(a_cluster("quay"), role=ROLE, external_id="between-us-two")
HERE = a_cluster("quay")


def environment_with(cluster):
    environment = MemoryEnvironment()
    environment.registry.add(cluster)
    return environment


@pytest.mark.parametrize(
    ("before", "args", "after"),
    [
        (QUAY, ("--external-id", "another"), replace(QUAY, external_id="another")),
        (QUAY, ("--role", OTHER), replace(QUAY, role=OTHER)),
        (
            HERE,
            ("--role", ROLE, "--external-id", "between-us-two"),
            QUAY,
        ),
        (QUAY, ("--role", "none"), HERE),
        (QUAY, ("--nodes-per-hour", "default"), QUAY),
    ],
)
def test_role_and_external_id_are_set_each_alone_or_both(before, args, after):
    environment = environment_with(before)
    assert run(environment, "clusters", "set", "quay", *args).exit_code == 0
    assert environment.registry.get("quay") == after


@pytest.mark.parametrize(
    ("before", "args"),
    [
        (HERE, ("--role", ROLE)),
        (HERE, ("--external-id", "between-us-two")),
        (QUAY, ("--role", "none", "--external-id", "between-us-two")),
        (QUAY, ("--role", "plimsoll-spoke")),
    ],
)
def test_what_cannot_be_assumed_is_refused_and_nothing_changes(before, args):
    environment = environment_with(before)
    assert run(environment, "clusters", "set", "quay", *args).exit_code == 2
    assert environment.registry.get("quay") == before


def test_the_external_id_is_not_said_again():
    environment = environment_with(QUAY)
    said = run(environment, "clusters", "set", "quay", "--external-id", "between-three")
    listed = run(environment, "clusters", "list", "--output", "json").stdout
    assert "between-three" not in said.stdout + said.stderr + listed
    assert json.loads(listed)["clusters"][0]["role"] == ROLE
