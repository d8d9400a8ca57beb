"""`plimsoll tenants`: over moto's tables, bucket and stack."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from zipfile import ZipFile

import boto3
import pytest
from moto import mock_aws

from plimsoll_service.adapters.audit import DynamoAudit
from plimsoll_service.adapters.aws import ServiceAws
from plimsoll_service.adapters.members import DynamoMembers
from plimsoll_service.adapters.tenants import AwsTenants
from plimsoll_service.services.audit import operators_entry
from plimsoll_service.wire.audit import Action
from tests.contract.conftest import FakeClock
from tests.contract.test_service_stores import service_aws
from tests.support.cli_environment import MemoryEnvironment, run
from tests.support.enrolled import Key, admitted, invitation

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
OUTPUTS = {
    "MembersTable": "MembersTable",
    "PeopleTable": "PeopleTable",
    "DocumentsTable": "DocumentsTable",
    "AuditTable": "AuditTable",
    "SnapshotsBucket": "snapshots",
}


@pytest.fixture
def members(monkeypatch: pytest.MonkeyPatch) -> Iterator[DynamoMembers]:
    """Two tenants in a stack of the name that the command takes by itself."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "none")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "none")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        aws = service_aws()
        template = {
            "Resources": {"Topic": {"Type": "AWS::SNS::Topic"}},
            "Outputs": {name: {"Value": value} for name, value in OUTPUTS.items()},
        }
        boto3.client("cloudformation").create_stack(
            StackName="plimsoll-service", TemplateBody=json.dumps(template)
        )
        found = DynamoMembers(aws=aws, table="MembersTable")
        stores = AwsTenants(
            sessions=lambda _: aws,
            table="DocumentsTable",
            audit_table="AuditTable",
            bucket="snapshots",
            clock=FakeClock(NOW),
        )
        for tenant in ("acme", "globex"):
            admitted(found, Key(), invitation(tenant, now=NOW))
            stores.of(tenant).put("c", "key", b"1", expires=NOW + timedelta(days=1))
            stores.of(tenant).put_snapshot("c", "e", 1, b"2")
        yield found


def test_a_tenant_is_exported_into_a_file_that_others_cannot_read_and_that_is_never_overwritten(
    members: DynamoMembers, tmp_path: Path
):
    file = tmp_path / "acme.zip"
    words = ("tenants", "export", "acme", "--to", str(file))
    done = run(MemoryEnvironment(), *words)
    assert done.exit_code == 0, done.output
    with ZipFile(file) as found:
        names = found.namelist()
    assert f"{len(names)} files in {file}" in done.stdout
    assert "rows/acme#c/key.json" in names
    assert not [name for name in names if "globex" in name]
    (row,) = (name for name in names if name.startswith("audit/"))
    with ZipFile(file) as found:
        assert b'"action":"export"' in found.read(row)
    assert file.stat().st_mode & 0o777 == 0o600
    before = file.read_bytes()
    assert run(MemoryEnvironment(), *words).exit_code != 0
    assert file.read_bytes() == before
    assert len(members.agents()) == 2


def test_a_tenant_is_removed_only_if_that_is_confirmed(members: DynamoMembers):
    refused = run(MemoryEnvironment(), "tenants", "remove", "acme", input="n\n")
    assert refused.exit_code != 0
    assert len(members.agents()) == 2
    done = run(MemoryEnvironment(), "tenants", "remove", "acme", input="y\n")
    assert done.exit_code == 0, done.output
    assert "2 rows and objects of acme deleted" in done.stdout
    assert [agent.tenant for agent in members.agents()] == ["globex"]


def audited(tenant: str) -> list[dict[str, str]]:
    """Return the audit log of a tenant as a spreadsheet reads it, newest first."""
    done = run(MemoryEnvironment(), "tenants", "audit", tenant, "--csv")
    assert done.exit_code == 0, done.output
    return list(csv.DictReader(StringIO(done.stdout)))


def test_what_operators_do_is_in_the_log_of_the_tenant_whom_it_concerns(
    members: DynamoMembers, tmp_path: Path
):
    agent = next(each for each in members.agents() if each.tenant == "acme")
    for words in (
        ("invite", "acme", "--person", "ann"),
        ("revoke", agent.subject),
        ("revoke", "a-unknown"),
        ("export", "acme", "--to", str(tmp_path / "acme.zip")),
        ("remove", "acme", "--yes"),
    ):
        done = run(MemoryEnvironment(), "tenants", *words)
        assert done.exit_code == 0, done.output
    rows = audited("acme")
    assert [row["action"] for row in rows] == ["remove", "export", "revoke", "invite"]
    assert {row["role"] for row in rows} == {"aws"}
    assert all(row["who"].startswith("arn:aws:") for row in rows)
    assert rows[2]["object"] == f"members/{agent.subject}"
    assert (rows[3]["object"][:10], rows[3]["reason"]) == ("members/p-", "ann")
    assert audited("globex") == []


@pytest.mark.usefixtures("members")
def test_no_text_of_the_log_is_a_formula_in_a_spreadsheet():
    log = DynamoAudit(aws=ServiceAws("us-east-1"), table="AuditTable", tenant="acme")
    hostile = '=HYPERLINK("https://example.com";"x"),\n@a'
    log.append(operators_entry("arn", Action.EXPORT, "tenants/acme", now=NOW, reason=hostile))
    (row,) = audited("acme")
    assert row["reason"].startswith("'=HYPERLINK(")
    assert row["at"] == "2026-11-22T12:00:00Z"


@pytest.mark.parametrize("command", ["export", "remove", "audit"])
@pytest.mark.usefixtures("members")
def test_a_name_that_is_no_tenants_is_refused(command: str, tmp_path: Path):
    more = {"export": ("--to", str(tmp_path / "x.zip")), "remove": ("--yes",)}.get(command, ())
    done = run(MemoryEnvironment(), "tenants", command, "acme#", *more)
    assert done.exit_code == 2
    assert not (tmp_path / "x.zip").exists()
