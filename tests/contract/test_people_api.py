"""People of two tenants at the API: authorizer, router and services over memory, behind a real issuer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import requests
from werkzeug.serving import make_server
from werkzeug.test import Client

from plimsoll.adapters.clock import SystemClock
from plimsoll.domain.errors import BadInput, MissingRights, Refused
from plimsoll_cli.service.login import log_in, log_out, logged_in
from plimsoll_cli.service.sign_in import by_browser, by_device, issuer_of
from plimsoll_service.adapters.identity_provider import OidcProvider
from plimsoll_service.domain.access import Binding, PersonRole, Role, checked_grant
from plimsoll_service.openapi import OPERATIONS
from plimsoll_service.services.cluster_rows import remember_cluster
from plimsoll_service.services.relying_party import Attempt, RelyingParty
from plimsoll_service.wire.audit import Action
from plimsoll_service.wire.clusters import Clusters
from plimsoll_service.wire.people import Issuer as IssuerAnswer
from plimsoll_service.wire.people import People, StartedDevice
from tests.support.enrolled import Key, admitted, digest_of, invitation
from tests.support.oidc import Issuer, an_issuer, brought_back, query_of

from .test_service_api import Gateway

REDIRECT = "http://127.0.0.1:9/callback"
VIEWER, OPERATOR, ADMIN = PersonRole
PEOPLE = {
    "ann": ["acme-admins"],
    "bob": ["acme-viewers"],
    "kim": ["globex-admins"],
    "eve": [],
}


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    found = an_issuer(people=PEOPLE)
    with found.running():
        yield found


@dataclass
class Company:
    """Two tenants of one issuer, with a cluster each."""

    gateway: Gateway
    issuer: Issuer

    def __post_init__(self) -> None:
        self.clusters = {tenant: self._enrolled(tenant) for tenant in ("acme", "globex")}
        self.bind("acme-admins", ADMIN)
        self.bind("acme-viewers", VIEWER)
        self.bind("globex-admins", ADMIN, tenant="globex")

    def _enrolled(self, tenant: str) -> str:
        now = self.gateway.clock.now()
        agent = admitted(self.gateway.members, Key(), invitation(tenant, now=now))
        remember_cluster(self.gateway.tenants.of(tenant), agent.subject, agent.name, now)
        return agent.subject

    def bind(self, group: str, role: PersonRole, *clusters: str, tenant: str = "acme") -> None:
        grant = checked_grant(role, clusters)
        self.gateway.people_store.bind(Binding(tenant=tenant, group=group, grant=grant))

    def signed_in(self, name: str) -> str:
        """Sign in by the issuer, redeem the code at the API, and return the session."""
        attempt, url = self.gateway.relying_party.begin(REDIRECT)
        answer = query_of(brought_back(url, name))
        said = {
            "code": answer["code"],
            "verifier": attempt.verifier,
            "nonce": attempt.nonce,
            "redirect_uri": REDIRECT,
        }
        status, begun = self.asked("POST", "/v1/sessions", body=said)
        assert status == 201, begun
        token: str = begun["token"]
        return token

    def asked(
        self, method: str, path: str, bearer: str = "", body: Any = None
    ) -> tuple[int, dict[str, Any]]:
        headers = {"Authorization": f"Bearer {bearer}"} if bearer else {}
        data = b"" if body is None else json.dumps(body).encode()
        headers["Content-Type"] = "application/json"
        answer = Client(self.gateway).open(path, method=method, data=data, headers=headers)
        return answer.status_code, json.loads(answer.data)


@pytest.fixture
def company(issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> Company:
    gateway = Gateway()
    clock = SystemClock()
    gateway.clock = clock  # type: ignore[assignment] # the issuer's tokens are of now
    provider = OidcProvider(client=issuer.client, secret=str, clock=clock)
    gateway.relying_party = RelyingParty(client=issuer.client, provider=provider)
    gateway.stand_behind(monkeypatch)
    return Company(gateway, issuer)


def test_who_signed_in_reads_the_clusters_of_their_tenant(company: Company):
    status, found = company.asked("GET", "/v1/clusters", company.signed_in("bob"))
    assert status == 200
    assert [each["id"] for each in found["clusters"]] == [company.clusters["acme"]]


def test_who_belongs_to_no_tenant_gets_no_session(company: Company):
    attempt, url = company.gateway.relying_party.begin(REDIRECT)
    code = query_of(brought_back(url, "eve"))["code"]
    said = {
        "code": code,
        "verifier": attempt.verifier,
        "nonce": attempt.nonce,
        "redirect_uri": REDIRECT,
    }
    status, problem = company.asked("POST", "/v1/sessions", body=said)
    assert (status, "no group of eve" in problem["detail"]) == (403, True)


@pytest.mark.parametrize(
    "wrong",
    [
        {"verifier": "v" * 43},
        {"nonce": "n" * 43},
        {"redirect_uri": "http://127.0.0.1:10/callback"},
        {"code": "c" * 43},
    ],
    ids=str,
)
def test_a_sign_in_with_a_part_that_is_not_its_own_is_refused(
    company: Company, wrong: dict[str, str]
):
    attempt, url = company.gateway.relying_party.begin(REDIRECT)
    said = {
        "code": query_of(brought_back(url))["code"],
        "verifier": attempt.verifier,
        "nonce": attempt.nonce,
        "redirect_uri": REDIRECT,
    }
    status, _ = company.asked("POST", "/v1/sessions", body=said | wrong)
    assert status == 401


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"code": "c", "device_code": "d"},
        {"code": "c", "redirect_uri": "https://console.example/callback"},
        {"code": "c" * 5000},
    ],
    ids=str,
)
def test_what_is_no_sign_in_is_a_bad_request(company: Company, said: dict[str, str]):
    assert company.asked("POST", "/v1/sessions", body=said)[0] == 400


def test_a_revoked_session_is_out_at_its_next_request(company: Company):
    ann, bob = company.signed_in("ann"), company.signed_in("bob")
    _, people = company.asked("GET", "/v1/people", ann)
    [his] = [each["id"] for each in people["sessions"] if each["name"] == "bob"]
    assert company.asked("GET", "/v1/clusters", bob)[0] == 200
    assert company.asked("DELETE", f"/v1/people/{his}", ann) == (200, {"id": his})
    assert company.asked("GET", "/v1/clusters", bob)[0] == 401
    rows = [entry for _, entry in company.gateway.tenants.of("acme").audit.list("~")]
    done = [(row.who, row.role, row.action, row.object) for row in rows]
    assert done == [("ann", "admin", Action.REVOKE, f"sessions/{his}")]


def test_a_group_that_is_unbound_loses_its_sessions(company: Company):
    bob = company.signed_in("bob")
    company.gateway.people_store.unbind("acme", "acme-viewers")
    assert company.asked("GET", "/v1/clusters", bob)[0] == 401


def test_who_signs_out_is_out_and_nobody_else(company: Company):
    mine, other = company.signed_in("bob"), company.signed_in("bob")
    assert company.asked("DELETE", "/v1/session", mine)[0] == 200
    assert company.asked("GET", "/v1/clusters", mine)[0] == 401
    assert company.asked("GET", "/v1/clusters", other)[0] == 200


def test_a_person_who_is_limited_to_clusters_sees_no_other_of_their_tenant(company: Company):
    now = company.gateway.clock.now()
    remember_cluster(company.gateway.tenants.of("acme"), "a-other", "other", now)
    company.bind("acme-viewers", VIEWER, "a-other")
    bob = company.signed_in("bob")
    _, found = company.asked("GET", "/v1/clusters", bob)
    assert [each["id"] for each in found["clusters"]] == ["a-other"]
    shop = company.clusters["acme"]
    for path in ("savings", "workloads", "interruptions", "pools", "hours", "recommendations"):
        status, problem = company.asked("GET", f"/v1/clusters/{shop}/{path}", bob)
        assert (status, problem["detail"]) == (404, f"there is no cluster {shop}"), path


def test_a_viewer_decides_nothing_and_sees_nobodys_access(company: Company):
    bob, shop = company.signed_in("bob"), company.clusters["acme"]
    for method, path in (
        ("POST", f"/v1/clusters/{shop}/recommendations/r-1/accept"),
        ("GET", "/v1/people"),
        ("GET", "/v1/audit"),
        ("DELETE", "/v1/people/s-1"),
        ("POST", "/v1/tokens"),
    ):
        assert company.asked(method, path, bob, {})[0] == 403, path


def test_two_tenants_see_nothing_of_each_other_on_any_route(company: Company):
    """Asked by the admin of another tenant, with ids that exist."""
    kim, ann = company.signed_in("kim"), company.signed_in("ann")
    _, made = company.asked("POST", "/v1/tokens", ann, token("ci"))
    _, people = company.asked("GET", "/v1/people", ann)
    mine = [each["id"] for each in people["sessions"]] + [made["id"]]
    ours = {company.clusters["acme"], "acme-admins", *mine}
    asked = [o for o in OPERATIONS if o.role is Role.PERSON and o.name != "end_session"]
    for operation, access in product(asked, mine):
        named = dict.fromkeys(operation.parts, "1") | {"access": access}
        path = operation.path.format(**named | {"cluster": company.clusters["acme"]})
        body = token("theirs") if operation.name == "make_token" else {}
        status, answer = company.asked(operation.method, path, kim, body)
        if "{" in operation.path:
            assert status in {400, 404, 428}, (operation.name, status)
        else:
            assert status < 300, (operation.name, status)
            assert not [each for each in ours if each in json.dumps(answer)], operation.name
    assert company.asked("GET", "/v1/clusters", ann)[0] == 200
    assert company.asked("GET", "/v1/clusters", made["token"])[0] == 200


def token(name: str, role: str = "viewer") -> dict[str, Any]:
    return {"name": name, "grant": {"role": role}, "days": 30}


def test_an_api_token_reads_until_it_is_revoked_and_its_secret_is_told_once(company: Company):
    ann = company.signed_in("ann")
    status, made = company.asked("POST", "/v1/tokens", ann, token("ci"))
    assert status == 201
    assert company.asked("GET", "/v1/clusters", made["token"])[0] == 200
    _, people = company.asked("GET", "/v1/people", ann)
    assert made["token"] not in json.dumps(people)
    assert [(each["id"], each["made_by"]) for each in people["tokens"]] == [(made["id"], "ann")]
    assert company.asked("DELETE", f"/v1/people/{made['id']}", ann)[0] == 200
    assert company.asked("GET", "/v1/clusters", made["token"])[0] == 401


@pytest.mark.parametrize(
    "wrong",
    [
        token("ci", "admin"),
        token("a#b"),
        {**token("ci"), "days": 366},
        {**token("ci"), "grant": {"role": "viewer", "clusters": []}},
        {**token("ci"), "grant": {"role": "viewer", "clusters": ["a-1"] * 21}},
    ],
    ids=str,
)
def test_a_token_that_may_not_be_is_a_bad_request(company: Company, wrong: dict[str, Any]):
    assert company.asked("POST", "/v1/tokens", company.signed_in("ann"), wrong)[0] == 400


# --- The command line -----------------------------------------------------------------------------


@pytest.fixture
def url(company: Company) -> Iterator[str]:
    server = make_server("127.0.0.1", 0, company.gateway, threaded=True)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def in_a_browser(name: str = "ann", *, before: tuple[str, ...] = ()) -> Any:
    """Open addresses as a browser does, in the time of the command line; others come `before`."""

    def opens(address: str) -> bool:
        def follows() -> None:
            back = brought_back(address, name)
            for query in before:
                stranger = requests.get(f"{back.partition('?')[0]}?{query}", timeout=10)
                assert stranger.status_code == 400
            requests.get(back, timeout=10)

        Thread(target=follows, daemon=True).start()
        return True

    return opens


def known(url: str) -> IssuerAnswer:
    found = issuer_of(url, SystemClock())
    assert found is not None
    return found


def test_the_command_line_signs_in_by_the_browser_reads_and_signs_out(
    company: Company, url: str, tmp_path: Path
):
    clock, shown = SystemClock(), list[str]()
    done = by_browser(
        tmp_path, url, known(url), None, clock, show=shown.append, open_browser=in_a_browser()
    )
    assert (done.tenant, done.name, len(shown)) == ("acme", "ann", 1)
    service = logged_in(tmp_path, clock)
    assert service.call("GET", "/v1/clusters", Clusters).clusters[0].id == company.clusters["acme"]
    assert (tmp_path / "service.json").stat().st_mode & 0o777 == 0o600
    log_out(tmp_path, clock)
    with pytest.raises(MissingRights, match="plimsoll login"):
        service.call("GET", "/v1/clusters", Clusters)
    with pytest.raises(BadInput, match="not logged in"):
        log_out(tmp_path, clock)


def test_what_another_page_sends_to_the_callback_changes_nothing(url: str, tmp_path: Path):
    others = ("state=x&code=stolen", "code=stolen", f"state={Attempt.new().state}&error=denied")
    done = by_browser(
        tmp_path,
        url,
        known(url),
        None,
        SystemClock(),
        show=lambda _: None,
        open_browser=in_a_browser(before=others),
    )
    assert done.name == "ann"


def test_a_refusal_of_the_service_leaves_the_login_that_was_there(url: str, tmp_path: Path):
    (tmp_path / "service.json").write_text("as it was")
    with pytest.raises((Refused, MissingRights), match="no group of eve"):
        by_browser(
            tmp_path,
            url,
            known(url),
            None,
            SystemClock(),
            show=lambda _: None,
            open_browser=in_a_browser("eve"),
        )
    assert (tmp_path / "service.json").read_text() == "as it was"


def test_who_signs_in_keeps_the_key_that_is_the_way_in_when_the_issuer_is_lost(
    company: Company, url: str, tmp_path: Path
):
    clock = SystemClock()
    now = clock.now()
    company.gateway.members.invite(
        digest_of("join"), invitation(name="root", role=Role.PERSON, now=now)
    )
    log_in(tmp_path, url, "join", clock)
    by_browser(
        tmp_path,
        url,
        known(url),
        None,
        clock,
        show=lambda _: None,
        open_browser=in_a_browser("bob"),
    )
    with pytest.raises(MissingRights):
        logged_in(tmp_path, clock).call("GET", "/v1/people", People)
    log_out(tmp_path, clock)
    found = logged_in(tmp_path, clock).call("GET", "/v1/people", People)
    assert [each.group for each in found.bindings] == ["acme-admins", "acme-viewers"]


def test_the_command_line_signs_in_by_a_device_code(url: str, tmp_path: Path):
    def confirm(started: StartedDevice) -> None:
        Thread(target=brought_back, args=(started.verification_uri, "bob"), daemon=True).start()

    done = by_device(tmp_path, url, None, SystemClock(), show=confirm)
    assert (done.tenant, done.name) == ("acme", "bob")
