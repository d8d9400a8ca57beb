"""What the store of people promises: in memory, and in moto's DynamoDB."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from moto import mock_aws

from plimsoll_service.adapters.aws import ServiceAws
from plimsoll_service.adapters.people_table import PeopleTable
from plimsoll_service.domain.access import ApiToken, Binding, Grant, PersonRole, Session
from plimsoll_service.services.sessions import PeopleStore
from plimsoll_simulation.fake_aws.people_store import MemoryPeople
from tests.package.template import requests_for_tables

from .conftest import kept_for_ever

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
LATER = NOW + timedelta(minutes=5)
VIEWER = Grant(role=PersonRole.VIEWER)
ON_SHOP = Grant(role=PersonRole.OPERATOR, clusters=frozenset({"a-1", "a-2"}))


@pytest.fixture(params=["memory", "moto"])
def store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[PeopleStore]:
    if request.param == "memory":
        yield MemoryPeople()
        return
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "none")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "none")
    with mock_aws():
        aws = ServiceAws("us-east-1")
        said = requests_for_tables("service.yaml")["PeopleTable"]
        aws.dynamodb.create_table(TableName="PeopleTable", **said)
        yield PeopleTable(aws=aws, table="PeopleTable")
        rows = kept_for_ever(aws.dynamodb, ["PeopleTable"])
        assert all("group" in row for row in rows), "all but bindings expires"


def session(tenant: str = "acme", its: str = "s-1", *, person: str = "u-1") -> Session:
    return Session(
        id=its,
        tenant=tenant,
        person=person,
        name="ann",
        groups=frozenset({"sre", "web"}),
        began=NOW,
        seen=NOW,
    )


def token(tenant: str = "acme", its: str = "t-1", grant: Grant = VIEWER) -> ApiToken:
    return ApiToken(
        id=its,
        tenant=tenant,
        name="ci",
        grant=grant,
        made_by="ann",
        made=NOW,
        expires=NOW + timedelta(days=30),
    )


def test_a_binding_is_found_by_its_tenant_and_among_all(store: PeopleStore):
    of_acme = Binding(tenant="acme", group="sre", grant=ON_SHOP)
    of_others = Binding(tenant="acme-2", group="sre", grant=VIEWER)
    for binding in (of_acme, of_others):
        store.bind(binding)
    assert store.bindings("acme") == [of_acme]
    assert store.bindings("acme-2") == [of_others]
    assert store.bindings("nobody") == []
    assert set(store.bindings(None)) == {of_acme, of_others}


def test_a_group_that_is_bound_again_has_its_new_role_alone(store: PeopleStore):
    for grant in (ON_SHOP, VIEWER):
        store.bind(Binding(tenant="acme", group="sre", grant=grant))
    assert [binding.grant for binding in store.bindings("acme")] == [VIEWER]


def test_groups_whose_names_hold_every_character_are_kept_apart(store: PeopleStore):
    names = ["a#b", "a", "CN=SRE,OU=Groups/*", "шторм", " "]
    for name in names:
        store.bind(Binding(tenant="acme", group=name, grant=VIEWER))
    assert store.unbind("acme", "a")
    assert {b.group for b in store.bindings("acme")} == set(names) - {"a"}


def test_unbinding_twice_is_once(store: PeopleStore):
    store.bind(Binding(tenant="acme", group="sre", grant=VIEWER))
    assert [store.unbind("acme", "sre") for _ in range(2)] == [True, False]
    assert store.bindings(None) == []


def test_a_session_is_found_by_its_own_tenant_alone(store: PeopleStore):
    store.begin(session())
    assert store.session("acme", "s-1") == session()
    assert store.session("other", "s-1") is None
    assert list(store.sessions("acme")) == [session()]
    assert list(store.sessions("other")) == []


def test_a_token_is_kept_with_its_limits_and_is_no_session(store: PeopleStore):
    for its, grant in (("t-1", VIEWER), ("t-2", ON_SHOP)):
        store.keep(token(its=its, grant=grant))
    store.begin(session())
    assert store.token("acme", "t-2") == token(its="t-2", grant=ON_SHOP)
    assert {t.id for t in store.tokens("acme")} == {"t-1", "t-2"}
    assert [s.id for s in store.sessions("acme")] == ["s-1"]


def test_when_a_session_or_token_was_used_is_written_down(store: PeopleStore):
    store.begin(session())
    store.keep(token())
    for its in ("s-1", "t-1"):
        store.seen("acme", its, LATER)
    found, kept = store.session("acme", "s-1"), store.token("acme", "t-1")
    assert found is not None
    assert kept is not None
    assert (found.seen, found.expires, kept.seen) == (LATER, session().expires, LATER)


@pytest.mark.parametrize("its", ["s-1", "t-1"])
def test_a_use_that_comes_after_the_end_brings_nothing_back(store: PeopleStore, its: str):
    store.begin(session())
    store.keep(token())
    assert [store.end("acme", its) for _ in range(2)] == [True, False]
    store.seen("acme", its, LATER)
    assert store.session("acme", its) is None
    assert store.token("acme", its) is None
    assert its not in {session.id for session in store.sessions("acme")}
    assert its not in {token.id for token in store.tokens("acme")}


def test_nobody_ends_a_session_of_another_tenant(store: PeopleStore):
    store.begin(session())
    assert not store.end("other", "s-1")
    assert store.session("acme", "s-1") == session()
