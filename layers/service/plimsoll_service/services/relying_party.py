"""Sign-in by the company's issuer: OpenID Connect's authorization code with PKCE, and the device code.

Whoever begins keeps an `Attempt`, in memory or in a cookie of the browser, and finishes with it: the
answer to another browser's attempt is of no use. The service redeems codes and takes no token from
anybody but the issuer; it keeps none either.
https://openid.net/specs/openid-connect-core-1_0.html https://www.rfc-editor.org/rfc/rfc9700
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from hmac import compare_digest
from secrets import token_urlsafe
from typing import Any, Final, Protocol
from urllib.parse import urlencode

from plimsoll.domain.errors import NotFound
from plimsoll_service.domain.access import MOST_GROUP_CHARACTERS, Identity
from plimsoll_service.domain.errors import Unproven

CLOCK_SKEW: Final = timedelta(seconds=60)
"""How far the clocks of issuer and service may differ."""
MOST_GROUPS_TOLD: Final = 1000
MOST_SUBJECT_CHARACTERS: Final = 255
"""https://openid.net/specs/openid-connect-core-1_0.html#IDToken"""
MOST_NAME_CHARACTERS: Final = 64
_DEVICE_GRANT: Final = "urn:ietf:params:oauth:grant-type:device_code"


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """How the issuer knows the service."""

    issuer: str
    client_id: str
    scopes: str
    """Separated by spaces, `openid` among them."""
    groups_claim: str
    """The claim of the ID token that lists the groups of a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoints:
    """What the issuer's discovery document tells."""

    authorization: str
    token: str
    device: str | None = None
    """None: it has no device flow."""
    names_itself: bool = False
    """Whether its answers in the browser carry `iss` (RFC 9207)."""


class Provider(Protocol):
    """The issuer."""

    def endpoints(self) -> Endpoints:
        """Return its endpoints.

        Raises:
            Temporary: it does not answer.
        """
        ...

    def redeem(self, form: Mapping[str, str]) -> str:
        """Return the ID token that it gives for a form of its token endpoint.

        Raises:
            Unproven: it refuses what the form holds.
            Throttled: the person did not confirm yet; after `retry_after` ask again.
            Temporary: it does not answer.
        """
        ...

    def authorize_device(self, form: Mapping[str, str]) -> Device:
        """Begin the device flow.

        Raises:
            Temporary: it does not answer.
        """
        ...

    def claims(self, id_token: str) -> Mapping[str, Any]:
        """Return the claims of an ID token that one of its keys signed.

        Raises:
            Unproven: none did.
            Temporary: its keys cannot be read.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A device flow that has begun."""

    device_code: str
    """The secret of whoever asks for the session."""
    user_code: str
    verification_uri: str
    expires_in: int
    """Seconds."""
    interval: int
    """Seconds between two questions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One sign-in in one browser. All of it is secret but the state."""

    state: str
    nonce: str
    verifier: str
    """Of PKCE."""

    @classmethod
    def new(cls, secret: Callable[[], str] = token_urlsafe) -> Attempt:
        """Return another one; `secret` returns 32 random bytes in base64url."""
        return cls(state=secret(), nonce=secret(), verifier=secret())


def challenge(verifier: str) -> str:
    """Return the S256 challenge of PKCE."""
    return urlsafe_b64encode(sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def authorization_url(
    endpoint: str, client_id: str, scopes: str, attempt: Attempt, redirect_uri: str
) -> str:
    """Return where the browser goes to sign in."""
    query = {
        "response_type": "code",
        "client_id": client_id,
        "redirect_uri": redirect_uri,
        "scope": scopes,
        "state": attempt.state,
        "nonce": attempt.nonce,
        "code_challenge": challenge(attempt.verifier),
        "code_challenge_method": "S256",
    }
    return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}"


def code_of(answer: Mapping[str, str], attempt: Attempt, *, issuer: str, names_itself: bool) -> str:
    """Return the code of what the browser brought back.

    Args:
        answer: The query of the redirect.
        attempt: What this browser began.
        issuer: Who must have answered.
        names_itself: Whether the answer must say so.

    Raises:
        Unproven: it answers another attempt, comes of another issuer, or is a refusal.
    """
    if not compare_digest(answer.get("state", "").encode(), attempt.state.encode()):
        raise Unproven("this browser did not begin the sign-in: begin again")
    if answer.get("iss", "" if names_itself else issuer) != issuer:
        raise Unproven("another issuer answered")
    if "error" in answer:
        why = answer.get("error_description") or answer["error"]
        raise Unproven(f"the issuer refused: {why[:200]}")
    code = answer.get("code", "")
    if not code:
        raise Unproven("the issuer answered without a code")
    return code


@dataclass(frozen=True, slots=True, kw_only=True)
class RelyingParty:
    """Redeems what the issuer gives for the identity of a person."""

    client: Client
    provider: Provider

    def begin(self, redirect_uri: str) -> tuple[Attempt, str]:
        """Begin a sign-in; return what the browser has to keep, and where it goes."""
        attempt = Attempt.new()
        endpoint = self.provider.endpoints().authorization
        client = self.client
        return attempt, authorization_url(
            endpoint, client.client_id, client.scopes, attempt, redirect_uri
        )

    def finish(
        self, answer: Mapping[str, str], attempt: Attempt, redirect_uri: str, now: datetime
    ) -> Identity:
        """Return who signed in, by the query of the redirect and what this browser kept.

        Raises:
            Unproven: see `code_of` and `redeem`.
            Temporary: the issuer does not answer.
        """
        named = self.provider.endpoints().names_itself
        code = code_of(answer, attempt, issuer=self.client.issuer, names_itself=named)
        return self.redeem(code, attempt.verifier, attempt.nonce, redirect_uri, now)

    def redeem(
        self, code: str, verifier: str, nonce: str, redirect_uri: str, now: datetime
    ) -> Identity:
        """Return whom a code names.

        Raises:
            Unproven: the issuer refuses it, or its token is not for this sign-in.
            Temporary: the issuer does not answer.
        """
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": verifier,
        }
        return self._identity(self.provider.redeem(form), nonce, now)

    def begin_device(self) -> Device:
        """Begin the device flow.

        Raises:
            NotFound: the issuer has none.
            Temporary: it does not answer.
        """
        if self.provider.endpoints().device is None:
            raise NotFound("the issuer offers no sign-in by device code")
        return self.provider.authorize_device({"scope": self.client.scopes})

    def redeem_device(self, device_code: str, now: datetime) -> Identity:
        """Return who confirmed a device code.

        Raises:
            Throttled: nobody did yet; after `retry_after` ask again.
            Unproven: it has expired, or was refused.
            Temporary: the issuer does not answer.
        """
        form = {"grant_type": _DEVICE_GRANT, "device_code": device_code}
        return self._identity(self.provider.redeem(form), None, now)

    def _identity(self, id_token: str, nonce: str | None, now: datetime) -> Identity:
        claims = self.provider.claims(id_token)
        refuse_other_claims(claims, self.client, nonce, now)
        return identity_of(claims, self.client)


def refuse_other_claims(
    claims: Mapping[str, Any], client: Client, nonce: str | None, now: datetime
) -> None:
    """Let only claims pass that the issuer made for this client, and for this attempt, and lately.

    Args:
        claims: Of an ID token whose signature was checked.
        client: Who is meant.
        nonce: Of the attempt; None: the device flow has none.
        now: The time.

    Raises:
        Unproven: they are none; the message says which claim.
    """
    if claims.get("iss") != client.issuer:
        raise Unproven("the ID token is of another issuer")
    told = claims.get("aud")
    audience = [told] if isinstance(told, str) else told
    if not isinstance(audience, list) or client.client_id not in audience:
        raise Unproven("the ID token is for another client (aud)")
    party = claims.get("azp", None if len(audience) > 1 else client.client_id)
    if party != client.client_id:
        raise Unproven("the ID token was given to another client (azp)")
    expires, issued = _seconds(claims, "exp"), _seconds(claims, "iat")
    if now.timestamp() >= expires + CLOCK_SKEW.total_seconds():
        raise Unproven("the ID token has expired")
    if issued > now.timestamp() + CLOCK_SKEW.total_seconds():
        raise Unproven("the ID token is from the future: check the clocks")
    if nonce is not None:
        given = claims.get("nonce")
        if not isinstance(given, str) or not compare_digest(given.encode(), nonce.encode()):
            raise Unproven("the ID token is of another sign-in (nonce)")


def identity_of(claims: Mapping[str, Any], client: Client) -> Identity:
    """Return whom checked claims name.

    Raises:
        Unproven: the subject or the groups are none.
    """
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject) <= MOST_SUBJECT_CHARACTERS:
        raise Unproven("the ID token names no subject (sub)")
    told = claims.get(client.groups_claim, [])
    groups = [told] if isinstance(told, str) else told
    if not isinstance(groups, list) or len(groups) > MOST_GROUPS_TOLD:
        raise Unproven(f"the claim {client.groups_claim} is no list of at most 1,000 groups")
    return Identity(
        issuer=client.issuer,
        subject=subject,
        name=_shown(claims.get("preferred_username") or claims.get("name") or subject),
        groups=frozenset(
            group
            for group in groups
            if isinstance(group, str) and 0 < len(group) <= MOST_GROUP_CHARACTERS
        ),
    )


def _seconds(claims: Mapping[str, Any], name: str) -> float:
    found = claims.get(name)
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise Unproven(f"the ID token has no time {name}")
    return found


def _shown(name: object) -> str:
    """Return a name without what would break a line or a log."""
    kept = "".join(character for character in str(name) if character.isprintable())
    return kept[:MOST_NAME_CHARACTERS] or "?"
