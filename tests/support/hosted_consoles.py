"""The hosted console over memory: two tenants, an issuer, an interruption stack, and a browser that sends events."""

from __future__ import annotations

import base64
import gzip
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

import msgspec
import pytest

from functions import console
from plimsoll.domain.registry import Cluster, ClusterKind
from plimsoll_console.hosted.routes import ROUTES
from plimsoll_service import bootstrap
from plimsoll_service.domain.access import Binding, Grant, PersonRole, Role, subject_of
from plimsoll_service.domain.snapshots import Arrival, Span
from plimsoll_service.services.cluster_rows import remember_cluster, tell_advised, tell_seen
from plimsoll_service.services.interruption_stack import InterruptionStack
from plimsoll_service.services.kept_advice import RECOMMENDATIONS
from plimsoll_service.services.people import PeopleService
from plimsoll_service.services.reads import Reads
from plimsoll_service.services.relying_party import Client, Device, Endpoints, RelyingParty
from plimsoll_service.services.sessions import Sessions
from plimsoll_service.wire.advice import About, Recommendation, Recommendations
from plimsoll_service.wire.clusters import AdvisedColumns, SeenColumns
from plimsoll_simulation.fake_aws.people_store import MemoryPeople
from plimsoll_simulation.fake_aws.service_stores import (
    MemoryAdviceQueue,
    MemoryMembers,
    MemoryTenants,
)
from plimsoll_simulation.fake_aws.stores import MemoryFrames, MemoryRegistry, MemoryReports
from tests.functions.conftest import Context

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
URL = "https://plimsoll.example/live/console"
ISSUER = "https://id.example"
ROLES = {"viewers": PersonRole.VIEWER, "operators": PersonRole.OPERATOR, "admins": PersonRole.ADMIN}
TENANTS = ("acme", "globex")


@dataclass
class Issuer:
    """Names whom the test says: it stands for the provider, and enforces nothing."""

    issuer: str = ISSUER
    origin: str = ISSUER
    """Where its pages are."""
    name: str = "ann"
    groups: tuple[str, ...] = ()
    nonce: str = ""

    def endpoints(self) -> Endpoints:
        return Endpoints(authorization=f"{self.origin}/authorize", token="")

    def redeem(self, form: Mapping[str, str]) -> str:
        return form["code"]

    def authorize_device(self, form: Mapping[str, str]) -> Device:
        raise NotImplementedError

    def claims(self, id_token: str) -> Mapping[str, Any]:
        issued = int(NOW.timestamp())
        return {
            "iss": self.issuer,
            "aud": "plimsoll",
            "sub": f"{id_token}-{self.name}",
            "preferred_username": self.name,
            "groups": [*self.groups],
            "nonce": self.nonce,
            "iat": issued,
            "exp": issued + 3600,
        }


@dataclass
class Settings:
    """What the console reads of its settings."""

    console_url: str = URL


@dataclass
class HostedConsole:
    """What stands behind the console. It is its own clock."""

    time: datetime = NOW
    issuer: Issuer = field(default_factory=Issuer)
    settings: Settings = field(default_factory=Settings)
    people: MemoryPeople = field(default_factory=MemoryPeople)
    queue: MemoryAdviceQueue = field(default_factory=MemoryAdviceQueue)
    frames: MemoryFrames = field(default_factory=MemoryFrames)
    reports: MemoryReports = field(default_factory=MemoryReports)
    registry: MemoryRegistry = field(default_factory=MemoryRegistry)
    with_stack: bool = True

    def __post_init__(self) -> None:
        self.tenants = MemoryTenants(self)
        self.members = MemoryMembers()
        self.sessions = Sessions(store=self.people)
        for tenant in TENANTS:
            for group, role in ROLES.items():
                self.bind(tenant, f"{tenant}-{group}", Grant(role=role))

    def now(self) -> datetime:
        return self.time

    def bind(self, tenant: str, group: str, grant: Grant) -> None:
        self.people.bind(Binding(tenant=tenant, group=group, grant=grant))

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Put it in the place of what AWS holds."""
        party = RelyingParty(
            client=Client(
                issuer=self.issuer.issuer,
                client_id="plimsoll",
                scopes="openid",
                groups_claim="groups",
            ),
            provider=self.issuer,
        )
        reads = Reads(tenants=self.tenants, members=self.members, clock=self)
        stack = InterruptionStack(registry=self.registry, frames=self.frames, reports=self.reports)
        for name, found in {
            "clock": self,
            "config": self.settings,
            "tenants": self.tenants,
            "members": self.members,
            "sessions": self.sessions,
            "people": PeopleService(sessions=self.sessions, tenants=self.tenants),
            "reads": reads,
            "relying_party": party,
            "advice_queue": self.queue,
            "interruption_stack": stack if self.with_stack else None,
        }.items():
            patch.setattr(bootstrap, name, lambda found=found: found)

    def enrol(self, tenant: str, name: str) -> str:
        """Let a cluster's agent in, and return its id."""
        agent = subject_of(tenant, Role.AGENT, name)
        remember_cluster(self.tenants.of(tenant), agent, name, self.time)
        return agent

    def register(self, name: str, agent: str) -> None:
        """Register a cluster in the interruption stack, bound to an agent."""
        self.registry.add(
            Cluster(name=name, kind=ClusterKind.EKS, region="us-east-1", added=NOW, agent=agent)
        )

    def see(self, tenant: str, cluster: str, *, interrupted: int = 0) -> None:
        """Work a snapshot of a cluster in, as far as its row goes."""
        seen = SeenColumns(
            taken_at=self.time,
            received_at=self.time,
            nodes=4,
            spot=3,
            open_interruptions=interrupted,
        )
        arrival = Arrival(
            tenant=tenant,
            cluster=cluster,
            epoch="e",
            sequence=1,
            base=0,
            received_at=self.time,
            digest="",
        )
        tell_seen(self.tenants.of(tenant), arrival, seen, self.time)

    def advise(self, tenant: str, cluster: str, *found: Recommendation) -> None:
        """Keep recommendations of a cluster, and tell of them in its row."""
        data = self.tenants.of(tenant)
        told = AdvisedColumns(
            taken_at=self.time,
            floors=2,
            floors_missed=1,
            decisions=sum(each.state == "open" for each in found),
            monthly=280.32,
            saveable=61.32,
        )
        tell_advised(data, cluster, told, self.time)
        before = data.get(cluster, RECOMMENDATIONS)
        data.put(
            cluster,
            RECOMMENDATIONS,
            msgspec.json.encode(Recommendations(recommendations=found)),
            version=before.version if before else 0,
            expires=self.time + Span.DAY.kept,
        )


def screens(**named: str) -> set[str]:
    """The path of every screen from the root of the console, with these names in it: a new route is among them."""
    usual = {"cluster": "shop", "recommendation": "r-1", "interruption": "i-1@x"}
    usual |= {"kind": "Deployment", "namespace": "shop", "name": "web"}
    return {r.path.format(**usual | named).strip("/") for r in ROUTES if r.method == "GET"}


def a_recommendation(id_: str = "r-1", name: str = "ip-10-0-3-7", **facts: Any) -> Recommendation:
    return Recommendation(
        **{
            "id": id_,
            "kind": "consolidate-node",
            "about": About(kind="Node", name=name, uid=f"uid-{id_}"),
            "reason": f"its 6 pods fit on 3 other nodes ({name})",
            "monthly": 61.32,
            "executable": True,
            "since": NOW - timedelta(days=1),
            "changed_at": NOW - timedelta(days=1),
            "version": 7,
            **facts,
        }
    )


@dataclass
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def words(self) -> str:
        """What a browser shows: its words, one space apart."""
        return " ".join(re.sub(r"<[^>]*>", " ", self.text).split())


def routed(method: str, path: str) -> tuple[str, dict[str, str]]:
    """Return the resource that API Gateway finds for a path, and what stands in its parameters."""
    # Literal parts win over parameters.
    for resource in sorted(console.app.routes, key=lambda r: (r.count("{"), r)):
        named = re.fullmatch(re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", re.escape(resource)), path)
        if named and method in console.app.routes[resource]:
            return resource, named.groupdict()
    return "/console/{page+}", {"page": path.removeprefix("/console/")}


def event_of(
    method: str, path: str, query: str, headers: Mapping[str, str], body: bytes = b""
) -> dict[str, Any]:
    """Return a request as API Gateway hands it over. `path` begins with /console."""
    resource, named = routed(method, path.rstrip("/"))
    asked = dict(parse_qsl(query))
    return {
        "resource": resource,
        "path": path,
        "httpMethod": method,
        "requestContext": {
            "resourcePath": resource,
            "httpMethod": method,
            "path": f"/live{path}",
            "identity": {"sourceIp": "192.0.2.1"},
        },
        "headers": dict(headers),
        "multiValueHeaders": {name: [value] for name, value in headers.items()},
        "queryStringParameters": asked or None,
        "multiValueQueryStringParameters": {n: [v] for n, v in asked.items()} or None,
        "pathParameters": named or None,
        "stageVariables": None,
        "body": base64.b64encode(body).decode() if body else None,
        "isBase64Encoded": bool(body),
    }


@contextmanager
def served(console_: HostedConsole) -> Iterator[str]:
    """Serve a console as API Gateway does, with an issuer that lets everybody in; give its address."""
    asking = Lock()  # Chalice keeps one request at a time

    class Gateway(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(b"")

        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers["content-length"])))

        def _answer(self, body: bytes) -> None:
            path, _, query = self.path.partition("?")
            if path == "/authorize":
                asked = dict(parse_qsl(query))
                console_.issuer.nonce = asked["nonce"]
                back = urlencode({"code": "c", "state": asked["state"]})
                self.send_response(302)
                self.send_header("location", f"{asked['redirect_uri']}?{back}")
                self.end_headers()
                return
            headers = {name.lower(): value for name, value in self.headers.items()}
            event = event_of(self.command, path.removeprefix("/live"), query, headers, body)
            with asking:
                answered = console.handler(event, Context())
            self.send_response(answered["statusCode"])
            for name, value in answered["headers"].items():
                self.send_header(name, value)
            for name, values in answered["multiValueHeaders"].items():
                for value in values:
                    self.send_header(name, value)
            self.end_headers()
            self.wfile.write(base64.b64decode(answered["body"]))

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Gateway) as server:
        origin = f"http://127.0.0.1:{server.server_port}"
        console_.settings.console_url = f"{origin}/live/console"
        console_.issuer.origin = origin
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield console_.settings.console_url
        finally:
            server.shutdown()
            thread.join()


class Browser:
    """Asks the handler, keeps cookies, and sends forms as a browser does."""

    def __init__(self, console: HostedConsole) -> None:
        self.console = console
        self.cookies: dict[str, str] = {}
        self.lines: list[str] = []
        """Every header that set a cookie."""

    def get(self, path: str = "", **headers: str) -> Answer:
        return self._ask("GET", path, b"", headers)

    def post(self, path: str, form: Mapping[str, str], **headers: str) -> Answer:
        said = {
            "content-type": "application/x-www-form-urlencoded",
            "sec-fetch-site": "same-origin",
        }
        return self._ask("POST", path, urlencode(form).encode(), said | headers)

    def send(self, page: str, action: str, **filled: str) -> Answer:
        """Fill in the form of a page that carries an action, and send it."""
        forms = re.findall(r"<form[^>]*method=\"post\".*?</form>", self.get(page).text, re.DOTALL)
        (form,) = (each for each in forms if f'value="{action}"' in each)
        fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', form))
        target = re.search(r'action="([^"]*)"', form)
        assert target
        return self.post(self.below(page, target[1]), fields | filled)

    def below(self, page: str, link: str) -> str:
        """Return where a link of a page leads, from the root of the console."""
        return urljoin(f"{URL}/{page}", link).removeprefix(f"{URL}/")

    def sign_in(self, *groups: str, name: str = "ann", to: str = "", tenant: str = "") -> Answer:
        """Sign in by the issuer; return the last answer."""
        query = urlencode({n: v for n, v in {"to": to, "tenant": tenant}.items() if v})
        begun = self.get(f"sign-in/begin?{query}")
        asked = dict(parse_qsl(urlsplit(begun.headers["location"]).query))
        issuer = self.console.issuer
        issuer.name, issuer.groups, issuer.nonce = name, groups, asked["nonce"]
        back = urlencode({"code": "c", "state": asked["state"]})
        return self.get(f"sign-in/callback?{back}")

    def _ask(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        bare, _, query = path.partition("?")
        said = {
            "accept": "text/html",
            "accept-encoding": "gzip",
            "cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items()),
        } | {name.replace("_", "-"): value for name, value in headers.items()}
        answered = console.handler(
            event_of(method, f"/console/{bare}", query, said, body), Context()
        )
        assert answered["isBase64Encoded"]
        found = base64.b64decode(answered["body"])
        if answered["headers"].get("content-encoding") == "gzip":
            found = gzip.decompress(found)
        for line in answered["multiValueHeaders"].get("set-cookie", []):
            self.lines.append(line)
            name, _, value = line.partition(";")[0].partition("=")
            if "Max-Age=0" in line:
                self.cookies.pop(name, None)
            else:
                self.cookies[name] = value
        return Answer(answered["statusCode"], answered["headers"], found)
