"""`plimsoll tenants bind`, `unbind`, `people`, `sign-out` and `tokens`: over moto's tables and stack."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from click.testing import Result
from moto import mock_aws

from plimsoll_service.adapters.audit import DynamoAudit
from plimsoll_service.adapters.aws import ServiceAws
from plimsoll_service.adapters.people_table import PeopleTable
from plimsoll_service.domain.access import Identity, PersonRole
from plimsoll_service.services.sessions import Sessions
from tests.contract.test_service_stores import service_aws
from tests.support.cli_environment import MemoryEnvironment, run
from tests.support.enrolled import Key, agent_of

OUTPUTS = {name: name for name in ("MembersTable", "PeopleTable", "DocumentsTable", "AuditTable")}
ANN = Identity(issuer="https://id", subject="1", name="ann", groups=frozenset({"sre", "web"}))
VIEWER, OPERATOR, ADMIN = PersonRole


def now() -> datetime:
    return datetime.now(UTC)


@dataclass
class Desk:
    """An operator's command line, and the tables behind it."""

    aws: ServiceAws

    def __post_init__(self) -> None:
        self.sessions = Sessions(store=PeopleTable(aws=self.aws, table="PeopleTable"))

    def run(self, *words: str) -> Result:
        return run(MemoryEnvironment(), "tenants", *words)

    def done(self, *words: str) -> str:
        result = self.run(*words)
        assert result.exit_code == 0, result.output
        return result.stdout

    def people(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.done("people", "acme", "--output", "json"))
        return found

    def recorded(self) -> list[tuple[str, str]]:
        log = DynamoAudit(aws=self.aws, table="AuditTable", tenant="acme")
        return sorted((entry.action.value, entry.object) for _, entry in log.list())


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    for name, value in {
        "AWS_ACCESS_KEY_ID": "none",
        "AWS_SECRET_ACCESS_KEY": "none",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    with mock_aws():
        aws = service_aws()
        template = {
            "Resources": {"Topic": {"Type": "AWS::SNS::Topic"}},
            "Outputs": {name: {"Value": value} for name, value in OUTPUTS.items()},
        }
        boto3.client("cloudformation").create_stack(
            StackName="plimsoll-service", TemplateBody=json.dumps(template)
        )
        yield Desk(aws)


def test_people_of_a_bound_group_may_what_its_role_says_where_it_says(desk: Desk):
    desk.done("bind", "acme", "sre", "--role", "operator", "--cluster", "shop")
    bearer, _ = desk.sessions.begin(ANN, "acme", now())
    found = desk.sessions.find(bearer.text, now())
    assert found is not None
    shop = agent_of(Key(), now=now()).subject
    assert (found.may(OPERATOR, shop), found.may(VIEWER, "a-other")) == (True, False)
    assert desk.recorded() == [("bind", "bindings/sre")]


def test_a_group_that_is_unbound_is_listed_no_more_and_lets_nobody_in(desk: Desk):
    desk.done("bind", "acme", "sre", "--role", "viewer")
    bearer, _ = desk.sessions.begin(ANN, "acme", now())
    desk.done("unbind", "acme", "sre")
    assert desk.people()["bindings"] == []
    assert desk.sessions.find(bearer.text, now()) is None
    again = desk.run("unbind", "acme", "sre")
    assert (again.exit_code, "is not bound" in again.stderr) == (2, True)
    assert desk.recorded() == [("bind", "bindings/sre"), ("unbind", "bindings/sre")]


def test_who_is_signed_out_has_no_session_and_may_sign_in_again(desk: Desk):
    desk.done("bind", "acme", "sre", "--role", "viewer")
    for _ in range(2):
        desk.sessions.begin(ANN, "acme", now())
    assert "2 sessions" in desk.done("sign-out", "acme", ANN.person)
    assert desk.people()["sessions"] == []
    bearer, _ = desk.sessions.begin(ANN, "acme", now())
    assert desk.sessions.find(bearer.text, now()) is not None


def test_a_token_is_printed_alone_on_standard_output_and_listed_without_its_secret(desk: Desk):
    bearer = desk.done("tokens", "create", "acme", "ci", "--role", "viewer", "--days", "7").strip()
    found = desk.sessions.find(bearer, now())
    assert found is not None
    assert (found.name, found.may(VIEWER), found.may(OPERATOR)) == ("ci", True, False)
    people = desk.people()
    assert bearer not in json.dumps(people)
    [listed] = people["tokens"]
    desk.done("tokens", "revoke", "acme", listed["id"])
    assert desk.sessions.find(bearer, now()) is None
    actions = [action for action, _ in desk.recorded()]
    assert actions == ["create-token", "revoke-token"]


def test_the_table_shows_all_and_no_escape_sequence(desk: Desk):
    desk.done("bind", "acme", "sre", "--role", "viewer")
    hostile = Identity(
        issuer="https://id", subject="2", name="\x1b[31mroot", groups=frozenset({"sre"})
    )
    desk.sessions.begin(hostile, "acme", now())
    desk.done("tokens", "create", "acme", "ci", "--role", "operator")
    shown = desk.done("people", "acme")
    assert [each in shown for each in ("sre", "[31mroot", hostile.person, "ci")] == [True] * 4
    assert "\x1b" not in shown


@pytest.mark.parametrize(
    "words",
    [
        ("bind", "acme#", "sre", "--role", "viewer"),
        ("bind", "acme", "", "--role", "viewer"),
        ("bind", "acme", "g" * 257, "--role", "viewer"),
        ("bind", "acme", "a\nb", "--role", "viewer"),
        ("bind", "acme", "sre", "--role", "admin", "--cluster", "shop"),
        ("bind", "acme", "sre", "--role", "root"),
        ("bind", "acme", "sre"),
        ("tokens", "create", "acme", "ci", "--role", "admin"),
        ("tokens", "create", "acme", "ci", "--role", "viewer", "--days", "366"),
        ("tokens", "revoke", "acme", "s-1"),
    ],
    ids=" ".join,
)
def test_what_cannot_be_bound_or_made_is_refused_and_leaves_nothing(
    desk: Desk, words: tuple[str, ...]
):
    assert desk.run(*words).exit_code == 2
    found = desk.people()
    assert (found["bindings"], found["tokens"], desk.recorded()) == ([], [], [])
