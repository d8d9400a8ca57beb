"""Who gets into the optimisation service, and how long a stolen or revoked key is worth something."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from plimsoll.domain.errors import BadInput, Conflict, Temporary
from plimsoll_service.adapters.access_tokens import AccessTokens
from plimsoll_service.adapters.signers import is_signed
from plimsoll_service.domain.access.principals import TOKEN_LIFE, Principal, Role, checked_name
from plimsoll_service.domain.errors import Forbidden, Unproven
from plimsoll_service.services.access import (
    AccessService,
    refuse_others,
    refuse_unsigned,
)
from plimsoll_service.services.clusters import clusters
from plimsoll_service.services.paging import PageRequest
from plimsoll_service.services.ports import TenantData
from plimsoll_service.wire.access import InstructionKey
from plimsoll_simulation.fake_aws.service_stores import (
    MemoryMembers,
    MemoryTenants,
    MemoryTokenKeys,
)
from tests.support.enrolled import Key, agent_of, digest_of, invitation

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
OLD_KEY, NEW_KEY = b"0" * 32, b"1" * 32
PINNED = InstructionKey(key_id="instructions", public_key=b"p" * 32)


@dataclass
class Door:
    members: MemoryMembers
    service: AccessService

    def enrolled(self, key: Key, token: str = "join-1", tenant: str = "acme") -> Principal:
        self.members.invite(digest_of(token), invitation(tenant, now=NOW))
        answer = self.service.enrol(key.enrolment(token), NOW)
        found = self.members.get(answer.cluster_id)
        assert found is not None
        return found

    def token(self, key: Key, agent: Principal, at: datetime = NOW) -> str:
        return self.service.grant(key.assertion(agent.subject, agent.kid, at), at).access_token


@dataclass
class Clock:
    time: datetime = NOW

    def now(self) -> datetime:
        return self.time


def door(*keys: bytes, clock: Clock | None = None) -> Door:
    members = MemoryMembers()
    return Door(
        members,
        AccessService(
            members=members,
            tenants=MemoryTenants(clock or Clock()),
            tokens=AccessTokens(MemoryTokenKeys(keys or (NEW_KEY,))),
            verify=is_signed,
            instruction_keys=lambda: [PINNED],
        ),
    )


# --- Enrolment -------------------------------------------------------------------------------------


def test_an_agent_enrols_and_learns_its_cluster_and_the_keys_to_pin():
    at, key = door(), Key()
    at.members.invite(digest_of("join-1"), invitation(now=NOW))
    answer = at.service.enrol(key.enrolment("join-1"), NOW)
    assert answer.instruction_keys == (PINNED,)
    agent = at.members.get(answer.cluster_id)
    assert agent is not None
    assert (agent.tenant, agent.name, agent.public_key) == ("acme", "shop", key.public)


def test_an_answer_that_was_lost_is_given_again_to_the_same_key():
    at, key = door(), Key()
    at.members.invite(digest_of("join-1"), invitation(now=NOW))
    asked = key.enrolment("join-1")
    assert at.service.enrol(asked, NOW) == at.service.enrol(asked, NOW)


def test_where_the_keys_to_pin_cannot_be_read_no_join_token_is_spent_and_the_former_key_stands():
    def away() -> list[InstructionKey]:
        raise Temporary("KMS does not answer")

    at, former, later = door(), Key(1), Key(2)
    agent = at.enrolled(former)
    at.members.invite(digest_of("join-2"), invitation(now=NOW))
    with pytest.raises(Temporary):
        replace(at.service, instruction_keys=away).enrol(later.enrolment("join-2"), NOW)
    assert at.members.get(agent.subject) == agent
    assert at.service.enrol(Key(3).enrolment("join-2"), NOW).instruction_keys == (PINNED,)


@pytest.mark.parametrize(
    ("token", "after"),
    [("join-2", 0 * SECOND), ("join-1", timedelta(hours=1))],
    ids=["unknown", "expired"],
)
def test_a_join_token_that_is_not_good_lets_nobody_in(token, after):
    at = door()
    at.members.invite(digest_of("join-1"), invitation(now=NOW))
    with pytest.raises(Unproven, match="join token"):
        at.service.enrol(Key().enrolment(token), NOW + after)
    assert not at.members.agents()


def test_a_join_token_is_good_for_one_key():
    at = door()
    first = at.enrolled(Key(1))
    with pytest.raises(Unproven, match="was used"):
        at.service.enrol(Key(2).enrolment("join-1"), NOW)
    assert at.members.get(first.subject) == first


def test_nobody_enrols_a_key_that_is_not_theirs():
    at = door()
    at.members.invite(digest_of("join-1"), invitation(now=NOW))
    forged = Key(1).enrolment("join-1")
    stolen = Key(2).enrolment("join-1")
    with pytest.raises(Unproven, match="not signed"):
        at.service.enrol(
            type(forged)(
                join_token=forged.join_token,
                public_key=stolen.public_key,
                cluster_uid=forged.cluster_uid,
                signature=forged.signature,
            ),
            NOW,
        )


def test_a_key_is_rotated_by_another_join_token_and_the_old_one_is_worth_nothing():
    at, old, new = door(), Key(1), Key(2)
    before = at.enrolled(old)
    token = at.token(old, before)
    after = at.enrolled(new, "join-2")
    assert after.subject == before.subject
    assert at.service.authorize(token, NOW) is None
    with pytest.raises(Unproven):
        at.token(old, before)
    assert at.service.authorize(at.token(new, after), NOW) == after


def test_a_key_that_was_replaced_does_not_put_itself_back():
    at, old, new = door(), Key(1), Key(2)
    at.enrolled(old)
    after = at.enrolled(new, "join-2")
    with pytest.raises(Unproven, match="another enrolment"):
        at.service.enrol(old.enrolment("join-1"), NOW)
    assert at.members.get(after.subject) == after


def test_the_name_of_a_cluster_stays_while_its_agent_gets_tokens_and_expires_after_a_revocation():
    clock = Clock()
    at, key = door(clock=clock), Key()
    agent, data = at.enrolled(key), at.service.tenants.of("acme")
    for _ in range(3):
        clock.time += timedelta(days=300)
        at.token(key, agent, clock.time)
        assert named(data, clock.time) == [(agent.subject, agent.name)]
    at.members.revoke(agent.subject, clock.time)
    clock.time += timedelta(days=401)
    assert named(data, clock.time) == []


def named(data: TenantData, now: datetime) -> list[tuple[str, str]]:
    return [(each.id, each.name) for each in clusters(data, PageRequest(), now).items]


def test_revoking_ends_what_was_given_out_for_that_name_before():
    at, key = door(), Key()
    agent = at.enrolled(key)
    at.members.invite(digest_of("join-2"), invitation(now=NOW))
    at.members.revoke(agent.subject, NOW)
    for token in ("join-1", "join-2"):
        for each in (key, Key(2)):
            with pytest.raises(Unproven, match="revocation"):
                at.service.enrol(each.enrolment(token), NOW)
    assert at.members.get(agent.subject) is None
    assert at.enrolled(key, "join-3") == agent


def test_revoking_a_name_that_nobody_has_yet_ends_its_invitation():
    at, subject = door(), invitation(now=NOW).subject
    at.members.invite(digest_of("join-1"), invitation(now=NOW))
    at.members.revoke(subject, NOW)
    with pytest.raises(Unproven, match="revocation"):
        at.service.enrol(Key().enrolment("join-1"), NOW)


def test_a_join_token_replaces_only_the_key_that_stood_when_it_was_made():
    at = door()
    for token in ("join-1", "join-2"):
        at.members.invite(digest_of(token), invitation(now=NOW))
    first = at.service.enrol(Key(1).enrolment("join-1"), NOW)
    with pytest.raises(Unproven, match="another enrolment"):
        at.service.enrol(Key(2).enrolment("join-2"), NOW)
    assert at.members.get(first.cluster_id) == agent_of(Key(1), now=NOW)


def test_another_cluster_does_not_take_the_name_of_one_that_is_enrolled():
    at = door()
    first = at.enrolled(Key(1))
    at.members.invite(digest_of("join-2"), invitation(now=NOW))
    with pytest.raises(Conflict, match="revoke"):
        at.service.enrol(Key(2).enrolment("join-2", cluster_uid="another"), NOW)
    at.members.revoke(first.subject, NOW)
    at.members.invite(digest_of("join-3"), invitation(now=NOW))
    at.service.enrol(Key(2).enrolment("join-3", cluster_uid="another"), NOW)


def test_two_tenants_with_a_cluster_of_the_same_name_are_two():
    at = door()
    one, other = at.enrolled(Key(1)), at.enrolled(Key(2), "join-2", tenant="globex")
    assert one.subject != other.subject


@pytest.mark.parametrize("name", ["", "*", "a#b", "a/b", "A", "-a", "a" * 41, "ä"])
def test_a_name_that_could_reach_others_data_is_refused(name):
    with pytest.raises(BadInput):
        checked_name(name, "a tenant")


# --- Tokens ----------------------------------------------------------------------------------------


def test_an_access_token_is_good_for_ten_minutes():
    at, key = door(), Key()
    agent = at.enrolled(key)
    token = at.token(key, agent)
    assert at.service.authorize(token, NOW + TOKEN_LIFE - SECOND) == agent
    assert at.service.authorize(token, NOW + TOKEN_LIFE) is None


def test_whoever_is_revoked_is_out_with_the_next_look():
    at, key = door(), Key()
    agent = at.enrolled(key)
    token = at.token(key, agent)
    at.members.revoke(agent.subject, NOW)
    assert at.service.authorize(token, NOW) is None
    with pytest.raises(Unproven):
        at.token(key, agent)


def test_an_assertion_is_good_once():
    at, key = door(), Key()
    agent = at.enrolled(key)
    asked = key.assertion(agent.subject, agent.kid, NOW)
    at.service.grant(asked, NOW)
    with pytest.raises(Unproven, match="used before"):
        at.service.grant(asked, NOW + SECOND)


@pytest.mark.parametrize("minutes", [-10, 10])
def test_a_clock_that_is_ten_minutes_off_is_told_so(minutes):
    at, key = door(), Key()
    agent = at.enrolled(key)
    with pytest.raises(Unproven, match="here it is"):
        at.service.grant(
            key.assertion(agent.subject, agent.kid, NOW + timedelta(minutes=minutes)), NOW
        )


@pytest.mark.parametrize("minutes", [-4, 4])
def test_a_clock_that_is_four_minutes_off_will_do(minutes):
    at, key = door(), Key()
    agent = at.enrolled(key)
    said = key.assertion(agent.subject, agent.kid, NOW + timedelta(minutes=minutes))
    assert at.service.grant(said, NOW).expires_in == TOKEN_LIFE.total_seconds()


def test_an_assertion_that_claims_a_long_life_is_refused():
    at, key = door(), Key()
    agent = at.enrolled(key)
    with pytest.raises(Unproven, match="longer"):
        at.service.grant(key.assertion(agent.subject, agent.kid, NOW, life=3600), NOW)


def test_the_key_of_one_cluster_gets_no_token_for_another():
    at, mine, yours = door(), Key(1), Key(2)
    one, other = at.enrolled(mine), at.enrolled(yours, "join-2", tenant="globex")
    for kid in (one.kid, other.kid):
        with pytest.raises(Unproven):
            at.service.grant(mine.assertion(other.subject, kid, NOW), NOW)


def test_tokens_outlive_the_rotation_of_the_key_that_signs_them_and_no_second_one():
    at, key = door(OLD_KEY), Key()
    agent = at.enrolled(key)
    token = at.token(key, agent)
    rotated = replace(at.service, tokens=AccessTokens(MemoryTokenKeys([NEW_KEY, OLD_KEY])))
    assert rotated.authorize(token, NOW) == agent
    again = replace(at.service, tokens=AccessTokens(MemoryTokenKeys([b"2" * 32, NEW_KEY])))
    assert again.authorize(token, NOW) is None


def test_a_token_without_a_signature_is_worth_nothing():
    at, key = door(), Key()
    token = at.token(key, at.enrolled(key))
    _, claims, _ = token.split(".")
    none = "eyJhbGciOiJub25lIn0"  # {"alg":"none"}
    for forged in (f"{none}.{claims}.", "", "a.b.c", "x" * 5000, f"{token}x"):
        assert at.service.authorize(forged, NOW) is None


@pytest.mark.parametrize(
    "odd",
    [{"crit": 1}, {"crit": [1]}, {"b64": False}, {"alg": ["HS256"]}, {"zip": "DEF"}, {"kid": {}}],
    ids=str,
)
def test_a_token_with_an_odd_header_is_worth_nothing_and_no_fault(odd):
    at, key = door(), Key()
    _, claims, signature = at.token(key, at.enrolled(key)).split(".")
    header = urlsafe_b64encode(json.dumps({"alg": "HS256", "typ": "JWT"} | odd).encode())
    forged = f"{header.decode().rstrip('=')}.{claims}.{signature}"
    assert at.service.authorize(forged, NOW) is None


def test_no_token_that_anybody_could_write_is_a_fault():
    at, random = door(), Random(7)
    agent = at.enrolled(Key())
    token = at.token(Key(), agent)
    for _ in range(3000):
        changed = list(token)
        for _ in range(random.randrange(1, 6)):
            changed[random.randrange(len(changed))] = random.choice("aZ_-.=é\x00 {")
        # the last letter has bits that are not part of the signature
        assert at.service.authorize("".join(changed), NOW) in {None, agent}


# --- Requests --------------------------------------------------------------------------------------


def test_a_request_is_signed_over_all_its_parts():
    key = Key()
    agent = agent_of(key, now=NOW)
    request = key.request("POST", "/v1/x", NOW, b"body", "a=b")
    refuse_unsigned(agent, request, is_signed, NOW)
    for changed in (
        replace(request, method="GET"),
        replace(request, path="/v1/y"),
        replace(request, query=""),
        replace(request, timestamp=str(int(request.timestamp) + 1)),
        replace(request, body=b"other"),
        replace(request, signature=bytes(64)),
        replace(request, timestamp=""),
        replace(request, timestamp="-1"),
    ):
        with pytest.raises(Unproven):
            refuse_unsigned(agent, changed, is_signed, NOW)


@pytest.mark.parametrize("seconds", [-301, 301])
def test_a_request_that_was_signed_long_ago_is_no_longer_good(seconds):
    key = Key()
    request = key.request("GET", "/v1/x", NOW)
    with pytest.raises(Unproven, match="was signed at"):
        refuse_unsigned(agent_of(key, now=NOW), request, is_signed, NOW + seconds * SECOND)


def test_an_agent_gets_to_its_own_cluster_only():
    agent = agent_of(Key(), now=NOW)
    refuse_others(agent, agent.subject, Role.AGENT)
    with pytest.raises(Forbidden, match="another cluster"):
        refuse_others(agent, agent_of(Key(), "globex", now=NOW).subject, Role.AGENT)
    with pytest.raises(Forbidden, match="for the role person"):
        refuse_others(agent, agent.subject, Role.PERSON)
