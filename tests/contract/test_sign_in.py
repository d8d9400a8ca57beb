"""Sign-in against a real issuer that enforces PKCE: what it gives for a sign-in, and what is refused."""

from __future__ import annotations

import hmac
import json
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey

from plimsoll.domain.errors import MissingRights, Temporary, Throttled
from plimsoll_service.adapters.identity_provider import OidcProvider
from plimsoll_service.domain.access import Identity
from plimsoll_service.domain.errors import Unproven
from plimsoll_service.services.relying_party import Attempt, RelyingParty
from tests.support.oidc import KEYS, Issuer, an_issuer, brought_back, query_of

REDIRECT = "http://127.0.0.1:9/callback"


@dataclass
class Clock:
    ahead: timedelta = timedelta()

    def now(self) -> datetime:
        return datetime.now(UTC) + self.ahead


def party_of(issuer: Issuer, /, *, clock: Clock | None = None, **client: str) -> RelyingParty:
    known = replace(issuer.client, **client)
    provider = OidcProvider(client=known, secret=lambda: issuer.secret, clock=clock or Clock())
    return RelyingParty(client=known, provider=provider)


def now() -> datetime:
    return datetime.now(UTC)


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    found = an_issuer()
    with found.running():
        yield found


def begun(issuer: Issuer, name: str = "ann") -> tuple[RelyingParty, Attempt, Mapping[str, str]]:
    party = party_of(issuer)
    attempt, url = party.begin(REDIRECT)
    return party, attempt, query_of(brought_back(url, name))


def test_a_person_signs_in_by_the_browser_and_is_known_by_issuer_and_subject(issuer: Issuer):
    party, attempt, answer = begun(issuer)
    assert party.finish(answer, attempt, REDIRECT, now()) == Identity(
        issuer=issuer.url, subject="ann", name="ann", groups=frozenset({"sre", "web"})
    )


def test_a_code_is_good_once(issuer: Issuer):
    party, attempt, answer = begun(issuer)
    party.finish(answer, attempt, REDIRECT, now())
    with pytest.raises(Unproven, match="invalid_grant"):
        party.finish(answer, attempt, REDIRECT, now())


@pytest.mark.parametrize(
    ("wrong", "why"),
    [({"verifier": "v" * 43}, "invalid_grant"), ({"nonce": "n" * 43}, "nonce")],
)
def test_a_code_is_of_no_use_without_what_its_browser_kept(
    issuer: Issuer, wrong: dict[str, str], why: str
):
    party, attempt, answer = begun(issuer)
    with pytest.raises(Unproven, match=why):
        party.finish(answer, replace(attempt, **wrong), REDIRECT, now())


def test_the_answer_to_another_browsers_attempt_is_refused_and_its_code_not_spent(issuer: Issuer):
    party, theirs, answer = begun(issuer)
    with pytest.raises(Unproven, match="did not begin"):
        party.finish(answer, Attempt.new(), REDIRECT, now())
    assert party.finish(answer, theirs, REDIRECT, now()).subject == "ann"


@pytest.mark.parametrize("said", [{"iss": "https://other.example"}, {"iss": None}])
def test_an_answer_must_come_of_the_issuer_that_was_asked(
    issuer: Issuer, said: dict[str, str | None]
):
    party, attempt, answer = begun(issuer)
    other = {k: v for k, v in {**answer, **said}.items() if v is not None}
    with pytest.raises(Unproven, match="another issuer"):
        party.finish(other, attempt, REDIRECT, now())


def test_a_code_is_redeemed_for_its_own_address_alone(issuer: Issuer):
    party, attempt, answer = begun(issuer)
    with pytest.raises(Unproven, match="invalid_grant"):
        party.finish(answer, attempt, "http://127.0.0.1:10/callback", now())


def test_a_sign_in_without_a_challenge_is_refused_by_the_issuer(issuer: Issuer):
    _, url = party_of(issuer).begin(REDIRECT)
    bare = "&".join(p for p in url.split("&") if not p.startswith("code_challenge"))
    assert query_of(brought_back(bare))["error"] == "invalid_request"


def test_the_document_of_another_issuer_is_refused(issuer: Issuer):
    """Its address with another name: the document names the issuer, and not what was configured."""
    other = party_of(issuer, issuer=issuer.url.replace("127.0.0.1", "localhost"))
    with pytest.raises(Temporary, match="OidcIssuer"):
        other.begin(REDIRECT)


def test_a_client_that_the_issuer_does_not_know_is_a_fault_of_the_operator(issuer: Issuer):
    with pytest.raises(MissingRights, match="invalid_client"):
        party_of(issuer, client_id="unknown").redeem("c", "v" * 43, "n", REDIRECT, now())


def test_an_issuer_that_does_not_answer_is_asked_again():
    with pytest.raises(Temporary, match="does not answer"):
        party_of(Issuer(port=9)).begin(REDIRECT)


def test_a_client_with_a_secret_redeems_codes_by_it():
    issuer = an_issuer(secret="a secret/with+signs" * 2)
    with issuer.running():
        party, attempt, answer = begun(issuer)
        with pytest.raises(MissingRights, match="invalid_client"):
            party_of(replace(issuer, secret="another")).finish(answer, attempt, REDIRECT, now())
        assert party.finish(answer, attempt, REDIRECT, now()).subject == "ann"


# --- What the issuer's own keys signed, and what they did not -------------------------------------


def claims(issuer: Issuer, **other: Any) -> dict[str, Any]:
    seconds = int(now().timestamp())
    said = {
        "iss": issuer.url,
        "aud": "plimsoll",
        "sub": "ann",
        "nonce": "n",
        "iat": seconds,
        "exp": seconds + 60,
    }
    return {name: value for name, value in (said | other).items() if value is not None}


class Telling(OidcProvider):
    """The issuer, whose token endpoint gives what a test made of its keys."""

    def redeem(self, form: Mapping[str, str]) -> str:
        return form["code"]


def told(issuer: Issuer, token: str) -> Identity:
    provider = Telling(client=issuer.client, secret=str, clock=Clock())
    party = RelyingParty(client=issuer.client, provider=provider)
    return party.redeem(token, "v" * 43, "n", REDIRECT, now())


LONG_AGO = 1_000_000_000


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"iss": "https://other.example"}, "another issuer"),
        ({"aud": "another"}, "aud"),
        ({"aud": ["another"]}, "aud"),
        ({"aud": None}, "aud"),
        ({"aud": ["plimsoll", "another"]}, "azp"),
        ({"aud": ["plimsoll", "another"], "azp": "another"}, "azp"),
        ({"azp": "another"}, "azp"),
        ({"exp": LONG_AGO}, "expired"),
        ({"exp": None}, "exp"),
        ({"exp": "9999999999"}, "exp"),
        ({"iat": 9_999_999_999}, "future"),
        ({"iat": None}, "iat"),
        ({"nonce": "another"}, "nonce"),
        ({"nonce": None}, "nonce"),
        ({"sub": None}, "sub"),
        ({"sub": "s" * 256}, "sub"),
        ({"groups": {"sre": True}}, "groups"),
    ],
    ids=str,
)
def test_a_token_whose_claims_are_not_for_this_sign_in_is_refused(
    issuer: Issuer, other: dict[str, Any], why: str
):
    with pytest.raises(Unproven, match=why):
        told(issuer, issuer.id_token(claims(issuer, **other)))


@pytest.mark.parametrize(
    "other",
    [{}, {"aud": ["plimsoll"]}, {"aud": ["plimsoll", "another"], "azp": "plimsoll"}],
    ids=str,
)
def test_a_token_for_this_sign_in_is_taken(issuer: Issuer, other: dict[str, Any]):
    assert told(issuer, issuer.id_token(claims(issuer, **other))).subject == "ann"


def unsigned(said: Mapping[str, Any], header: Mapping[str, str]) -> str:
    parts = (json.dumps(header), json.dumps(said))
    return ".".join(urlsafe_b64encode(p.encode()).rstrip(b"=").decode() for p in parts) + "."


def test_a_token_that_nobody_signed_is_refused(issuer: Issuer):
    for alg in ("none", "None", "NONE"):
        with pytest.raises(Unproven):
            told(issuer, unsigned(claims(issuer), {"alg": alg, "kid": "one"}))


def test_the_public_key_of_the_issuer_is_no_secret_to_sign_with(issuer: Issuer):
    public = KEYS["one"].as_pem(private=False)
    head = unsigned(claims(issuer), {"alg": "HS256", "kid": "one"}).removesuffix(".")
    signature = hmac.digest(public, head.encode(), "sha256")
    with pytest.raises(Unproven):
        told(issuer, f"{head}.{urlsafe_b64encode(signature).rstrip(b'=').decode()}")


def test_a_token_by_a_strangers_key_under_the_issuers_name_is_refused(issuer: Issuer):
    stranger = RSAKey.generate_key(2048)
    with pytest.raises(Unproven):
        told(issuer, jwt.encode({"alg": "RS256", "kid": "one"}, claims(issuer), stranger))


def test_a_token_that_was_changed_is_refused(issuer: Issuer):
    head, _, signature = issuer.id_token(claims(issuer)).split(".")
    body = unsigned(claims(issuer, sub="root"), {}).split(".")[1]
    with pytest.raises(Unproven):
        told(issuer, f"{head}.{body}.{signature}")


def test_a_rotated_key_is_read_at_once_and_the_one_before_it_is_not_good_any_more():
    issuer = an_issuer()
    party = party_of(issuer)
    with issuer.running("one"):
        attempt, url = party.begin(REDIRECT)
        answer = query_of(brought_back(url))
        assert party.finish(answer, attempt, REDIRECT, now()).subject == "ann"
    with issuer.running("two"):
        attempt, url = party.begin(REDIRECT)
        answer = query_of(brought_back(url, "bob"))
        assert party.finish(answer, attempt, REDIRECT, now()).subject == "bob"
        with pytest.raises(Unproven):
            party.provider.claims(issuer.id_token(claims(issuer), key="one"))


# --- Device code ----------------------------------------------------------------------------------


def test_a_device_waits_until_a_person_confirmed_it_and_gets_its_token_once(issuer: Issuer):
    party = party_of(issuer)
    device = party.begin_device()
    with pytest.raises(Throttled) as waits:
        party.redeem_device(device.device_code, now())
    assert waits.value.retry_after == 5
    brought_back(device.verification_uri, "bob")
    found = party.redeem_device(device.device_code, now())
    assert (found.subject, found.groups) == ("bob", frozenset({"web"}))
    with pytest.raises(Unproven):
        party.redeem_device(device.device_code, now())


def test_a_device_code_that_nobody_gave_out_is_refused(issuer: Issuer):
    with pytest.raises(Unproven):
        party_of(issuer).redeem_device("x" * 43, now())
