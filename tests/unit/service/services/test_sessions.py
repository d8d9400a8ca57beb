"""Sessions and API tokens: who is let in by them, to what, and how long."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.domain.errors import BadInput
from plimsoll_service.domain.access import (
    SESSION_IDLE,
    SESSION_LIFE,
    Bearer,
    BearerKind,
    Binding,
    Grant,
    Identity,
    PersonRole,
    Principal,
    Role,
    checked_grant,
    csrf_token,
    grants_of,
    grants_text,
)
from plimsoll_service.domain.errors import Forbidden
from plimsoll_service.services.sessions import MOST_TOKENS, Sessions
from plimsoll_simulation.fake_aws.people_store import MemoryPeople
from plimsoll_simulation.fake_aws.service_stores import MemoryMembers
from tests.support.enrolled import Key, admitted, invitation

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
VIEWER, OPERATOR, ADMIN = PersonRole
ANN = Identity(issuer="https://id", subject="1", name="ann", groups=frozenset({"sre", "web"}))


@dataclass
class Office:
    """A tenant's people."""

    store: MemoryPeople = field(default_factory=MemoryPeople)

    def __post_init__(self) -> None:
        self.sessions = Sessions(store=self.store)

    def bind(self, group: str, role: PersonRole, *clusters: str, tenant: str = "acme") -> None:
        grant = checked_grant(role, clusters)
        self.store.bind(Binding(tenant=tenant, group=group, grant=grant))

    def signed_in(self, identity: Identity = ANN, tenant: str | None = None) -> str:
        return self.sessions.begin(identity, tenant, NOW)[0].text

    def found(self, bearer: str, after: timedelta = timedelta()) -> Principal | None:
        return self.sessions.find(bearer, NOW + after)


def test_who_signed_in_is_found_with_the_role_of_their_group():
    office = Office()
    office.bind("sre", OPERATOR)
    found = office.found(office.signed_in())
    assert found is not None
    assert (found.subject, found.tenant, found.name) == (ANN.person, "acme", "ann")
    assert (found.may(OPERATOR), found.may(ADMIN)) == (True, False)


def test_roles_of_several_groups_hold_each_where_it_was_given():
    office = Office()
    office.bind("sre", OPERATOR, "a-1")
    office.bind("web", VIEWER, "a-2")
    found = office.found(office.signed_in())
    assert found is not None
    may = {(role, c) for role in PersonRole for c in ("a-1", "a-2", "a-3") if found.may(role, c)}
    assert may == {(VIEWER, "a-1"), (OPERATOR, "a-1"), (VIEWER, "a-2")}
    assert not found.may(VIEWER), "what belongs to the tenant as a whole is in no cluster"


def test_nobody_signs_in_whose_groups_are_bound_to_nothing():
    office = Office()
    office.bind("others", ADMIN)
    with pytest.raises(Forbidden, match="no group of ann"):
        office.signed_in()
    office.bind("sre", ADMIN, tenant="globex")
    with pytest.raises(Forbidden, match="acme"):
        office.signed_in(tenant="acme")


def test_who_belongs_to_several_tenants_names_one_and_reaches_no_other():
    office = Office()
    office.bind("sre", VIEWER)
    office.bind("web", ADMIN, tenant="globex")
    with pytest.raises(BadInput, match="acme, globex"):
        office.signed_in()
    found = office.found(office.signed_in(tenant="acme"))
    assert found is not None
    assert (found.tenant, found.may(ADMIN)) == ("acme", False)


def test_a_session_of_one_tenant_is_none_of_another_under_any_spelling():
    office = Office()
    office.bind("sre", ADMIN)
    bearer = office.signed_in()
    assert office.found(bearer.replace("_acme_", "_globex_")) is None
    assert office.found(bearer.replace("_s_", "_t_")) is None
    assert office.found(f"{bearer} ") is None
    assert office.found(bearer[:-1]) is None


def test_a_session_ends_when_it_is_ended():
    office = Office()
    office.bind("sre", VIEWER)
    bearer = office.signed_in()
    found = office.found(bearer)
    assert found is not None
    assert office.sessions.end("acme", found.kid)
    assert office.found(bearer) is None


def test_a_session_ends_with_the_binding_of_its_group_and_changes_with_it():
    office = Office()
    office.bind("sre", ADMIN)
    bearer = office.signed_in()
    office.bind("sre", VIEWER)
    found = office.found(bearer)
    assert found is not None
    assert found.highest is VIEWER
    office.store.unbind("acme", "sre")
    assert office.found(bearer) is None


def test_a_group_that_is_bound_later_gives_nothing_to_a_session_that_was_there():
    """What a session may become was looked at when the issuer spoke last."""
    office = Office()
    office.bind("sre", VIEWER)
    bearer = office.signed_in()
    office.bind("web", ADMIN)
    found = office.found(bearer)
    assert found is not None
    assert found.highest is VIEWER


def test_a_session_ends_after_its_life_however_much_it_is_used():
    office = Office()
    office.bind("sre", VIEWER)
    bearer = office.signed_in()
    half = SESSION_IDLE / 2
    for used in range(1, SESSION_LIFE // half):
        assert office.found(bearer, used * half) is not None
    assert office.found(bearer, SESSION_LIFE) is None


def test_a_session_that_is_not_used_ends():
    office = Office()
    office.bind("sre", VIEWER)
    bearer = office.signed_in()
    assert office.found(bearer, SESSION_IDLE) is None


def test_all_sessions_of_a_person_end_and_nobody_elses():
    office = Office()
    office.bind("sre", VIEWER)
    bob = Identity(issuer="https://id", subject="2", name="ann", groups=frozenset({"sre"}))
    mine, again, his = office.signed_in(), office.signed_in(), office.signed_in(bob)
    assert office.sessions.end_all("globex", ANN.person) == 0
    assert office.sessions.end_all("acme", ANN.person) == 2
    assert [office.found(each) is None for each in (mine, again, his)] == [True, True, False]


def test_a_person_is_the_subject_of_one_issuer_whatever_they_are_called():
    same = Identity(issuer="https://id", subject="1", name="other", groups=frozenset())
    elsewhere = Identity(issuer="https://id/", subject="1", name="ann", groups=ANN.groups)
    shifted = Identity(issuer="https://i", subject="d\n1", name="ann", groups=ANN.groups)
    assert same.person == ANN.person
    assert len({ANN.person, elsewhere.person, shifted.person}) == 3


def test_neither_the_store_nor_the_token_of_forms_tells_the_secret():
    office = Office()
    office.bind("sre", VIEWER)
    bearer = office.signed_in()
    secret = bearer.rpartition("_")[2]
    assert secret not in repr(office.store)
    assert secret not in csrf_token(bearer)
    assert csrf_token(bearer) != csrf_token(office.signed_in())


# --- API tokens -----------------------------------------------------------------------------------


def made(office: Office, grant: Grant, days: int = 30, name: str = "ci") -> str:
    life = timedelta(days=days)
    bearer, _ = office.sessions.make_token("acme", name, grant, made_by="ann", life=life, now=NOW)
    return bearer.text


def test_a_token_lets_a_program_do_its_work_until_it_expires():
    office = Office()
    bearer = made(office, checked_grant(OPERATOR, ["a-1"]))
    found = office.found(bearer, timedelta(days=29))
    assert found is not None
    assert (found.role, found.tenant, found.name) == (Role.PERSON, "acme", "ci")
    assert (found.may(OPERATOR, "a-1"), found.may(VIEWER, "a-2")) == (True, False)
    assert office.found(bearer, timedelta(days=30)) is None
    [listed] = office.sessions.tokens("acme", NOW)
    assert (listed.made_by, listed.seen) == ("ann", NOW + timedelta(days=29))


def test_a_token_that_is_revoked_is_out_at_its_next_request():
    office = Office()
    bearer = made(office, Grant(role=VIEWER))
    [token] = office.sessions.tokens("acme", NOW)
    assert not office.sessions.end("globex", token.id)
    assert office.found(bearer) is not None
    assert office.sessions.end("acme", token.id)
    assert office.found(bearer) is None


@pytest.mark.parametrize(
    ("grant", "days", "name"),
    [
        (Grant(role=ADMIN), 30, "ci"),
        (Grant(role=VIEWER), 366, "ci"),
        (Grant(role=VIEWER), 0, "ci"),
        (Grant(role=VIEWER), 30, "a#b"),
    ],
    ids=str,
)
def test_a_token_is_no_admin_lives_a_year_at_most_and_has_a_name(
    grant: Grant, days: int, name: str
):
    office = Office()
    with pytest.raises(BadInput):
        made(office, grant, days, name)
    assert office.sessions.tokens("acme", NOW) == []


def test_a_tenant_has_only_so_many_tokens():
    office = Office()
    for _ in range(MOST_TOKENS):
        made(office, Grant(role=VIEWER))
    with pytest.raises(BadInput, match="revoke one"):
        made(office, Grant(role=VIEWER))


# --- What is parsed -------------------------------------------------------------------------------


@given(st.text(max_size=120) | st.from_regex(r"plimsoll_[a-z]_[^_]*_.*", fullmatch=True))
def test_whatever_is_shown_finds_nobody(text: str):
    assert Office().found(text) is None


def test_a_bearer_is_read_as_it_was_made():
    made_of = Bearer.of(BearerKind.TOKEN, "acme", "_-" * 21 + "x")
    assert Bearer.read(made_of.text) == made_of


def test_grants_go_through_the_authorizer_unchanged():
    grants = (
        Grant(role=ADMIN),
        Grant(role=VIEWER, clusters=frozenset({"a-1", "a-2"})),
    )
    assert grants_of(grants_text(grants)) == grants
    assert grants_of(grants_text(())) == ()


def test_an_admin_is_limited_to_no_cluster_and_others_to_no_more_than_twenty():
    with pytest.raises(BadInput, match="whole tenant"):
        checked_grant(ADMIN, ["a-1"])
    with pytest.raises(BadInput, match="too many"):
        checked_grant(VIEWER, [f"a-{n}" for n in range(21)])


def test_who_came_by_a_key_is_an_admin_and_an_agent_is_nothing():
    members = MemoryMembers()
    person = admitted(members, Key(), invitation(name="ann", role=Role.PERSON, now=NOW))
    agent = admitted(members, Key(2), invitation(now=NOW))
    assert (person.highest, person.may(ADMIN), agent.highest) == (ADMIN, True, None)
