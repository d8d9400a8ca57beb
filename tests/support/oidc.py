"""The company's issuer: npm's `oidc-provider`, which enforces PKCE, in a process of its own; and a browser for it."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from socket import create_server
from typing import Any
from urllib.parse import parse_qsl, urljoin, urlsplit

import pytest
import requests
from joserfc import jwt
from joserfc.jwk import RSAKey

from plimsoll_service.services.relying_party import Client
from tests.package.template import ROOT

TOOLS = ROOT / ".tools" / "oidc"
CLIENT = "plimsoll"
MOST_STEPS = 20
KEYS = {name: RSAKey.generate_key(2048, {"kid": name, "use": "sig"}) for name in ("one", "two")}


@dataclass(kw_only=True)
class Issuer:
    """One running issuer. Its private keys are known, so that a test can sign what it never would."""

    port: int
    people: Mapping[str, list[str]] = field(
        default_factory=lambda: {"ann": ["sre", "web"], "bob": ["web"], "eve": []}
    )
    redirect_uris: tuple[str, ...] = ("http://127.0.0.1/callback",)
    secret: str = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def client(self) -> Client:
        return Client(
            issuer=self.url,
            client_id=CLIENT,
            scopes="openid profile groups",
            groups_claim="groups",
        )

    @contextmanager
    def running(self, key: str = "one") -> Iterator[None]:
        """Run it with one signing key."""
        registered: dict[str, Any] = {
            "client_id": CLIENT,
            "redirect_uris": self.redirect_uris,
            "application_type": "native",
            "response_types": ["code"],
            "grant_types": ["authorization_code", "urn:ietf:params:oauth:grant-type:device_code"],
        }
        if self.secret:
            registered["client_secret"] = self.secret
        else:
            registered["token_endpoint_auth_method"] = "none"
        said = {
            "port": self.port,
            "clients": [registered],
            "jwks": {"keys": [KEYS[key].as_dict(private=True)]},
            "people": self.people,
        }
        with subprocess.Popen(
            [TOOLS / "node", TOOLS / "provider.mjs"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as process:
            try:
                assert process.stdin is not None
                assert process.stdout is not None
                process.stdin.write(json.dumps(said) + "\n")
                process.stdin.flush()
                assert json.loads(process.stdout.readline()) == {"port": self.port}
                yield
            finally:
                process.terminate()

    def id_token(self, claims: Mapping[str, Any], *, key: str = "one") -> str:
        """Return an ID token of any claims, signed by a key of the issuer."""
        return jwt.encode({"alg": "RS256", "kid": key}, dict(claims), KEYS[key])


def an_issuer(**more: Any) -> Issuer:
    """Return an issuer at a free port, or skip: it is not installed."""
    if not (TOOLS / ".ready").exists():
        pytest.skip(
            "oidc-provider is not installed: `make .tools/oidc/.ready` needs npm's registry"
        )
    with create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    return Issuer(port=port, **more)


def brought_back(start: str, name: str = "ann", *, until: str = "http://127.0.0.1") -> str:
    """Sign in as a browser does, page by page, and return the address that it is sent to in the end.

    Args:
        start: Where the sign-in begins.
        name: Who signs in.
        until: How the address begins that is not opened any more.
    """
    browser, url = requests.Session(), start
    issuer = urlsplit(start).netloc
    for _ in range(MOST_STEPS):
        if urlsplit(url).netloc != issuer and url.startswith(until):
            return url
        answer = browser.get(url, allow_redirects=False, timeout=30)
        for _ in range(MOST_STEPS):
            if answer.status_code != 200 or "<form" not in answer.text:
                break
            answer = _submitted(browser, answer.text, name)
        if "location" not in answer.headers:
            return f"{url} answers {answer.status_code}"
        url = urljoin(url, answer.headers["location"])
    raise AssertionError(f"the sign-in does not end: {url}")


def query_of(address: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(address).query))


def _submitted(browser: requests.Session, page: str, name: str) -> requests.Response:
    action = re.search(r'<form[^>]*action="([^"]+)"', page)
    assert action is not None
    hidden = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', page))
    said = {**hidden, "login": name, "password": "any"}
    return browser.post(action.group(1), data=said, allow_redirects=False, timeout=30)
