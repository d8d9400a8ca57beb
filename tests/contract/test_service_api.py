"""The API as its description says: authorizer, router and services over memory, asked as API Gateway asks.

What is asked is drawn from the description by Schemathesis, along it and against it.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
import sys
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from itertools import count
from random import Random
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from werkzeug.test import Client
from werkzeug.wrappers import Request, Response

from functions import api, authorizer
from functions.api_requests import FROM_ADDRESS_PER_MINUTE
from plimsoll.domain.errors import Throttled
from plimsoll_cli.probes.iam_requests import Request as IamRequest
from plimsoll_service import bootstrap
from plimsoll_service.adapters.access_tokens import AccessTokens
from plimsoll_service.adapters.signers import is_signed
from plimsoll_service.domain.access.principals import Principal, Role
from plimsoll_service.domain.advice.advice_requests import AdviceRequest
from plimsoll_service.domain.errors import Unproven
from plimsoll_service.openapi import OPERATIONS, Operation
from plimsoll_service.services.access import TOKENS_PER_MINUTE, AccessService
from plimsoll_service.services.cluster_rows import remember_cluster
from plimsoll_service.services.ingest import MOST_COMPRESSED_BYTES, Intake
from plimsoll_service.services.interruption_stack import InterruptionStack
from plimsoll_service.services.kept_advice import RECOMMENDATIONS
from plimsoll_service.services.people import PeopleService
from plimsoll_service.services.reads import DECISIONS_PER_MINUTE, Reads
from plimsoll_service.services.relying_party import Client as OidcClient
from plimsoll_service.services.relying_party import Device, Endpoints, RelyingParty
from plimsoll_service.services.sessions import Sessions
from plimsoll_service.services.taints import TaintForwarding
from plimsoll_service.wire.access import SIGNATURE, TIMESTAMP
from plimsoll_service.wire.advice import (
    About,
    DismissRequest,
    Recommendation,
    Recommendations,
    State,
)
from plimsoll_service.wire.documents import encode as encode_document
from plimsoll_service.wire.instructions import Result, Results
from plimsoll_service.wire.snapshot import Snapshot, encode
from plimsoll_simulation.fake_aws.people_store import MemoryPeople
from plimsoll_simulation.fake_aws.service_stores import (
    MemoryAdviceQueue,
    MemoryMembers,
    MemoryQueue,
    MemoryTenants,
    MemoryTokenKeys,
)
from plimsoll_simulation.fake_aws.stores import MemoryFrames, MemoryRegistry, MemoryReports
from tests.support.described import (
    body_of,
    path_of,
    refuse_undescribed,
    requests_for,
    signed_headers,
    versions_of,
)
from tests.support.enrolled import Key, digest_of, invitation
from tests.support.iam_evaluator import Decision, decide
from tests.support.properties import IN_TEST_LONG, drawn
from tests.support.snapshots import wire_snapshot

from .conftest import FakeClock

ARN = "arn:aws:execute-api:us-east-1:123456789012:api/live"
NOW = datetime.now(UTC)
ADDRESSES = count(2**31)
HOME = {"identity": {"sourceIp": "192.0.2.1"}}


class Context:
    function_name = memory_limit_in_mb = invoked_function_arn = aws_request_id = "1"


CLIENT = OidcClient(
    issuer="https://id.example", client_id="plimsoll", scopes="openid", groups_claim="groups"
)


class NobodySignsIn:
    """An issuer that takes every code for none."""

    def endpoints(self) -> Endpoints:
        return Endpoints(
            authorization="https://id.example/auth",
            token="https://id.example/token",
            device="https://id.example/device",
        )

    def redeem(self, form: Mapping[str, str]) -> str:
        raise Unproven("the issuer refuses: invalid_grant")

    def authorize_device(self, form: Mapping[str, str]) -> Device:
        return Device(
            device_code="d",
            user_code="ABCD-EFGH",
            verification_uri="https://id.example/device",
            expires_in=600,
            interval=5,
        )

    def claims(self, id_token: str) -> Mapping[str, Any]:
        raise Unproven("no key of the issuer signed the ID token")


@dataclass
class Gateway:
    """API Gateway with our authorizer before our API; a WSGI application."""

    queue: MemoryQueue = field(default_factory=MemoryQueue)
    members: MemoryMembers = field(default_factory=MemoryMembers)
    advice_queue: MemoryAdviceQueue = field(default_factory=MemoryAdviceQueue)

    def __post_init__(self) -> None:
        clock = FakeClock(NOW)
        self.tenants = MemoryTenants(clock)
        self.access = AccessService(
            members=self.members,
            tenants=self.tenants,
            tokens=AccessTokens(MemoryTokenKeys([b"k" * 32])),
            verify=is_signed,
            instruction_keys=list,
        )
        self.intake = Intake(
            tenants=self.tenants,
            members=self.members,
            queue=self.queue,
            clock=clock,
            snapshots_per_minute=10**6,
        )
        self.reads = Reads(
            tenants=self.tenants,
            members=self.members,
            clock=clock,
            reads_per_minute=10**6,
            polls_per_minute=10**6,
            decisions_per_minute=10**6,
        )
        self.taints = TaintForwarding(members=self.members, bus=self, clock=clock)
        self.clock = clock
        self.people_store = MemoryPeople()
        self.sessions = Sessions(store=self.people_store)
        self.people = PeopleService(sessions=self.sessions, tenants=self.tenants)
        self.relying_party = RelyingParty(client=CLIENT, provider=NobodySignsIn())
        self.registry, self.reports = MemoryRegistry(), MemoryReports()
        self.interruption_stack = InterruptionStack(
            registry=self.registry, frames=MemoryFrames(), reports=self.reports
        )
        self._enrolled: dict[tuple[int, Role, str], tuple[Principal, str]] = {}

    def forward(self, agent: str, instances: Sequence[str]) -> None:
        """Take what is put on the bus; who listens there has tests of its own."""

    def queue_changed(self, agent: str) -> None:
        """The same."""

    def stand_behind(self, patch: pytest.MonkeyPatch) -> None:
        for name in (
            "tenants",
            "members",
            "access",
            "intake",
            "reads",
            "clock",
            "advice_queue",
            "taints",
            "sessions",
            "people",
            "relying_party",
            "interruption_stack",
        ):
            patch.setattr(bootstrap, name, lambda name=name: getattr(self, name))

    def __call__(self, environ: Any, start_response: Callable[..., Any]) -> Iterable[bytes]:
        return self._answered(Request(environ))(environ, start_response)

    def _answered(self, request: Request) -> Response:
        for operation in OPERATIONS:
            path = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", operation.path)
            found = re.fullmatch(path, request.path)
            if found is None or operation.method != request.method:
                continue
            context: dict[str, Any] = {}
            if operation.role is not None:
                method = f"{ARN}/{request.method}{request.path}"
                event = {"headers": dict(request.headers), "methodArn": method}
                try:
                    said = authorizer.handler(event, Context())
                except authorizer.Unauthorized:
                    return Response("{}", status=401)
                asked = IamRequest(action="execute-api:Invoke", resource=method)
                if decide([said["policyDocument"]], asked) is not Decision.ALLOWED:
                    return Response("{}", status=403)
                context = {"authorizer": said["context"]}
            return self._called(operation.path, request, found.groupdict(), context)
        return Response("{}", status=403)

    def _called(
        self, path: str, request: Request, given: dict[str, str], context: dict[str, Any]
    ) -> Response:
        query = {name: request.args.getlist(name) for name in request.args} or None
        said = handled(
            request.method, path, given, dict(request.headers), request.get_data(), context, query
        )
        return Response(said["body"], status=said["statusCode"], headers=said["headers"])

    def enrolled(self, key: Key, role: Role, tenant: str = "acme") -> tuple[Principal, str]:
        """Let somebody in, once; return who they are, and an access token."""
        known = self._enrolled.get((key.seed, role, tenant))
        if known is None:
            known = self._enrolled[key.seed, role, tenant] = self._let_in(key, role, tenant)
        return known

    def _let_in(self, key: Key, role: Role, tenant: str) -> tuple[Principal, str]:
        token = f"join-{tenant}-{role}"
        self.members.invite(digest_of(token), invitation(tenant, role=role, now=NOW))
        answer = self.access.enrol(key.enrolment(token), NOW)
        principal = self.members.get(answer.cluster_id)
        assert principal is not None
        asked = key.assertion(principal.subject, principal.kid, NOW)
        return principal, self.access.grant(asked, NOW).access_token


def handled(  # noqa: PLR0913, PLR0917 - the parts of a request
    method: str,
    path: str,
    given: dict[str, str],
    headers: dict[str, str],
    body: bytes,
    context: dict[str, Any],
    query: dict[str, list[str]] | None = None,
) -> dict[str, Any]:
    """Call the function as API Gateway does, for a path of the template; each time from another address."""
    identity = {"sourceIp": str(ip_address(next(ADDRESSES)))}
    said_of = {"resourcePath": path, "httpMethod": method, "path": path, "identity": identity}
    event = {
        "requestContext": said_of | context,
        "headers": headers,
        "multiValueHeaders": {k: [v] for k, v in headers.items()},
        "multiValueQueryStringParameters": query,
        "pathParameters": given or None,
        "stageVariables": None,
        "body": base64.b64encode(body).decode() if body else None,
        "isBase64Encoded": bool(body),
    }
    said: dict[str, Any] = json.loads(json.dumps(api.handler(event, Context())))
    return said


@pytest.fixture(scope="module")
def gateway() -> Iterable[Gateway]:
    found = Gateway()
    with pytest.MonkeyPatch.context() as patch:
        found.stand_behind(patch)
        yield found


KEY = Key()
SLOW = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda o: o.name)
@drawn(25, many=60, suppress_health_check=SLOW)
@given(data=st.data())
def test_whatever_is_asked_is_answered_as_described_and_never_a_fault_of_ours(
    gateway: Gateway, operation: Operation, data: st.DataObject
):
    """Asked as somebody who may. `tests/e2e/test_emulator_service.py` asks the deployed service the same."""
    case = data.draw(requests_for(operation))
    who, token = gateway.enrolled(KEY, operation.role or Role.AGENT)
    path, body = path_of(case, who.subject), body_of(case, operation)
    headers = signed_headers(KEY, token, operation.method, path, at=NOW, body=body)
    headers |= versions_of(case)
    query = urlencode(case.query or {}, doseq=True)
    asked = f"{path}?{query}" if query else path
    answer = Client(gateway).open(asked, method=operation.method, data=body, headers=headers)
    refuse_undescribed(case, answer)


REQUESTS = 10_000 if IN_TEST_LONG else 2_500
TRACED = 250
"""How many at the end are watched for what they allocate: that is slow."""
MIB = 2**20


@pytest.mark.drawn
def test_thousands_of_malformed_requests_are_refused_and_take_no_memory_for_long(gateway: Gateway):
    """In process, past the gateway: what was cut, flipped, nested, blown up, signed wrongly or not at all."""
    random = Random(16)
    agent, _ = gateway.enrolled(KEY, Role.AGENT)
    context = {"authorizer": authorizer.policy(agent, f"{ARN}/GET/v1/x")["context"]}
    whole = encode(wire_snapshot(cluster_id=agent.subject, taken_at=NOW))
    posted = [o for o in OPERATIONS if o.body is not None]
    seen = Counter[int]()
    before = 0
    for number in range(REQUESTS):
        if number == REQUESTS - TRACED:
            tracemalloc.start()
        if number == REQUESTS - TRACED // 2:
            before = tracemalloc.get_traced_memory()[0]
        rare = SELDOM.get(number % TRACED)
        operation = random.choice([o for o in posted if o.compressed or rare is None])
        given = {name: word(random) for name in ("recommendation", "instruction")}
        given["cluster"] = agent.subject
        if random.random() < 0.1:
            given["cluster"] = word(random)
        path = operation.path.format(**given)
        body = rare or malformed(random, whole)
        request = KEY.request(operation.method, path, NOW, body)
        headers = {
            TIMESTAMP: request.timestamp,
            SIGNATURE: base64.b64encode(request.signature).decode(),
        }
        if random.random() < 0.1:
            headers[random.choice(list(headers))] = word(random)
        role = operation.role is not None
        said = handled(
            operation.method, operation.path, given, headers, body, context if role else {}
        )
        seen[said["statusCode"]] += 1
    after, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    sys.stdout.write(
        f"{REQUESTS} requests, by status: {dict(seen)}; of the last {TRACED}: "
        f"{peak / MIB:.1f} MiB at most, {(after - before) / MIB:.2f} MiB kept by half of them\n"
    )
    assert not [status for status in seen if status >= 500]
    assert seen[400] > REQUESTS / 3
    assert {401, 403, 413} <= seen.keys()
    assert peak < 64 * MIB
    assert after - before < MIB


SELDOM = {
    # one of each is among those that are watched
    0: gzip.compress(bytes(64 * MIB), 9),  # a thousand times its size once it is not compressed
    1: bytes(MOST_COMPRESSED_BYTES + 1),
}


def malformed(random: Random, whole: bytes) -> bytes:
    """A snapshot that was damaged, or something else altogether."""
    body = bytearray(whole)
    match random.randrange(6):
        case 0:
            return bytes(body[: random.randrange(len(body))])
        case 1:
            for _ in range(random.randrange(1, 8)):
                body[random.randrange(len(body))] = random.randrange(256)
            return bytes(body)
        case 2:
            return random.choice([b"[", b'{"a":', b'[{"x":']) * random.randrange(1, 20_000)
        case 3:
            return gzip.compress(random.choice([b"[", b'{"a":']) * random.randrange(1, 20_000), 1)
        case 4:
            return random.randbytes(random.randrange(1, 2000))
        case _:
            said = random.choice(
                ["1e999", "-0", '"\\ud800"', "null", "{}", '{"results": 1}', "[[]]"]
            )
            return random.choice([said.encode(), gzip.compress(said.encode(), 1)])


def word(random: Random) -> str:
    """Something that is no name, number or signature."""
    return random.choice(
        [
            "",
            "..",
            "a/../b",
            "%00",
            "\x00",
            "-1",
            "9" * 40,
            "١٢",
            "=" * 9,
            "x" * 5000,
            "{cluster}",
            "#",
        ]
    )


def test_a_snapshot_goes_the_whole_way(gateway: Gateway):
    agent, token = gateway.enrolled(KEY, Role.AGENT)
    path = f"/v1/clusters/{agent.subject}/snapshots"
    body = encode(
        Snapshot(
            cluster_id=agent.subject, epoch="e-1", sequence=1, taken_at=NOW, kubernetes="v1.36.3"
        )
    )
    headers = signed_headers(KEY, token, "POST", path, at=NOW, body=body)
    answer = Client(gateway).post(path, data=body, headers=headers)
    assert (answer.status_code, answer.json) == (
        202,
        {
            "accepted": 1,
            "instructions_pending": False,
            "left_out": 0,
            "next_poll_s": 60,
            "resync": False,
        },
    )
    late = gateway.clock.now()
    gateway.clock.sleep(timedelta(minutes=6).total_seconds())
    replayed = Client(gateway).post(path, data=body, headers=headers)
    gateway.clock.sleep((late - gateway.clock.now()).total_seconds())
    assert replayed.status_code == 401


def test_who_reports_or_accepts_has_the_advice_asked_for_at_once(gateway: Gateway):
    agent, agents_token = gateway.enrolled(KEY, Role.AGENT)
    person, token = gateway.enrolled(Key(2), Role.PERSON)
    advised = a_recommendation("r1", monthly=70.0)
    data = gateway.tenants.of(person.tenant)
    kept = Recommendations(recommendations=(advised,))
    expires = gateway.clock.now() + timedelta(hours=1)
    data.put(agent.subject, RECOMMENDATIONS, encode_document(kept), expires=expires)
    asked = AdviceRequest(tenant="acme", cluster=agent.subject, at=gateway.clock.now())
    gateway.advice_queue.sent.clear()
    path = f"/v1/clusters/{agent.subject}/results"
    refused = Result(id="r1", number=1, outcome="refused", reason="so", at=NOW)
    body = encode_document(Results(results=(refused,)))
    headers = signed_headers(KEY, agents_token, "POST", path, at=NOW, body=body)
    reported = Client(gateway).post(path, data=body, headers=headers)
    assert (reported.status_code, gateway.advice_queue.sent) == (200, [asked])
    taken = Client(gateway).post(
        f"/v1/clusters/{agent.subject}/recommendations/r1/accept",
        headers={"Authorization": f"Bearer {token}", "If-Match": '"1"'},
    )
    assert (taken.status_code, gateway.advice_queue.sent) == (200, [asked, asked])


def a_recommendation(id_: str, *, monthly: float, state: State = "open") -> Recommendation:
    return Recommendation(
        id=id_,
        kind="consolidate-node",
        about=About(kind="Node", name="a", uid="u"),
        reason="its pods fit elsewhere",
        monthly=monthly,
        executable=True,
        state=state,
        since=NOW,
        changed_at=NOW,
    )


TENANT_LISTS = sorted(
    o.path for o in OPERATIONS if "after" in o.query and not o.parts and o.name != "read_audit"
)
"""The keys of the audit begin with no word of their own, and its rows name no agent: it has tests below."""


@pytest.mark.parametrize("path", TENANT_LISTS)
def test_of_two_tenants_neither_lists_what_is_the_others(gateway: Gateway, path: str):
    for tenant in ("acme", "globex"):
        agent, _ = gateway.enrolled(KEY, Role.AGENT, tenant)
        other, _ = gateway.enrolled(KEY, Role.AGENT, "globex" if tenant == "acme" else "acme")
        _, token = gateway.enrolled(Key(2), Role.PERSON, tenant)
        answer = Client(gateway).get(path, headers={"Authorization": f"Bearer {token}"})
        assert answer.status_code == 200
        assert agent.subject in answer.text
        assert other.subject not in answer.text


@pytest.mark.parametrize("path", TENANT_LISTS)
@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=201",
        "limit=x",
        "after=",
        "after=x",
        "after=b3RoZXIjMQ",
        "only=all",
        "sort=name",
    ],
)
def test_a_page_that_cannot_be_is_a_bad_request(gateway: Gateway, path: str, query: str):
    _, token = gateway.enrolled(Key(2), Role.PERSON)
    headers = {"Authorization": f"Bearer {token}"}
    assert Client(gateway).get(f"{path}?{query}", headers=headers).status_code == 400


def test_recommendations_are_read_by_pages_and_by_older_clients_at_once(gateway: Gateway):
    agent, _ = gateway.enrolled(KEY, Role.AGENT)
    _, token = gateway.enrolled(Key(2), Role.PERSON)
    data = gateway.tenants.of("acme")
    states: list[State] = ["open", "open", "open", "open", "open", "done"]
    kept = [a_recommendation(f"r-{n}", monthly=float(n % 4), state=s) for n, s in enumerate(states)]
    body = encode_document(Recommendations(recommendations=tuple(kept), left_out=7))
    data.delete(agent.subject, RECOMMENDATIONS)
    data.put(agent.subject, RECOMMENDATIONS, body, expires=NOW + timedelta(days=1))

    def read(query: str) -> dict[str, Any]:
        path = f"/v1/clusters/{agent.subject}/recommendations{query}"
        answer = Client(gateway).get(path, headers={"Authorization": f"Bearer {token}"})
        found: dict[str, Any] = answer.get_json()
        return found

    best_first = ["r-3", "r-2", "r-1", "r-5", "r-0", "r-4"]
    pages, after, ends = list[str](), "", list[bool]()
    for _ in range(3):
        page = read(f"?limit=2{after}")
        assert (page["counts"], page["left_out"], page["recommendations"]) == (
            {"open": 5, "done": 1},
            7,
            [],
        )
        pages += [each["id"] for each in page["items"]]
        after = f"&after={page['next']}"
        ends.append(page["next"] is None)
    assert (pages, ends) == (best_first, [False, False, True])
    assert [each["id"] for each in read("?state=open")["items"]] == [
        "r-3",
        "r-2",
        "r-1",
        "r-0",
        "r-4",
    ]
    older = read("")
    assert [each["id"] for each in older["recommendations"]] == best_first
    data.delete(agent.subject, RECOMMENDATIONS)


def advised(gateway: Gateway, cluster: str, tenant: str = "acme") -> None:
    """Let a tenant have a cluster with one recommendation of version 1, r1."""
    data = gateway.tenants.of(tenant)
    remember_cluster(data, cluster, cluster, NOW)
    found = a_recommendation("r1", monthly=70.0)
    body = encode_document(Recommendations(recommendations=(found,)))
    data.put(cluster, RECOMMENDATIONS, body, expires=NOW + timedelta(days=1))


def asked_as(  # noqa: PLR0913, PLR0917 - the parts of a request
    gateway: Gateway, token: str, method: str, path: str, version: str = "", body: bytes = b""
) -> Any:
    headers = {"Authorization": f"Bearer {token}"} | ({"If-Match": version} if version else {})
    return Client(gateway).open(path, method=method, data=body, headers=headers)


DECISIONS = {
    "accept": b"",
    "dismiss": encode_document(DismissRequest(reason="sale", until=NOW + timedelta(days=1))),
    "cancel": b"",
}


@pytest.mark.parametrize("decision", DECISIONS)
def test_a_decision_names_the_version_that_was_seen(quiet: Gateway, decision: str):
    _, token = quiet.enrolled(Key(2), Role.PERSON)
    advised(quiet, "harbor")
    path, body = f"/v1/clusters/harbor/recommendations/r1/{decision}", DECISIONS[decision]
    if decision == "cancel":
        asked_as(quiet, token, "POST", path.replace("cancel", "accept"), '"1"')
    answers = {
        said: asked_as(quiet, token, "POST", path, said, body)
        for said in ("", "1", "*", 'W/"1"', '"2"', '"1"')
    }
    assert [each.status_code for each in answers.values()] == [428, 400, 400, 400, 412, 200]
    assert "you saw version 2" in answers['"2"'].json["detail"]
    rows = asked_as(quiet, token, "GET", f"/v1/audit?action={decision}").json["items"]
    assert {(row["version"], row["outcome"]) for row in rows} == {(1, "done"), (2, "refused")}


def test_the_second_of_two_people_is_answered_who_was_first(quiet: Gateway):
    _, ann = quiet.enrolled(Key(2), Role.PERSON)
    advised(quiet, "harbor")
    path = "/v1/clusters/harbor/recommendations/r1/accept"
    assert asked_as(quiet, ann, "POST", path, '"1"').json["accepted_by"] == "shop"
    quiet.members.invite(digest_of("bob"), invitation(name="bob", role=Role.PERSON, now=NOW))
    answer = quiet.access.enrol(Key(4).enrolment("bob"), NOW)
    bob = quiet.access.grant(Key(4).assertion(answer.cluster_id, answer.kid, NOW), NOW)
    late = asked_as(quiet, bob.access_token, "POST", path, '"1"')
    assert late.status_code == 409
    assert "shop accepted it at" in late.json["detail"]


OF_A_PERSON = [
    ("POST", "clusters/harbor/recommendations/r1/accept"),
    ("POST", "clusters/harbor/recommendations/r1/dismiss"),
    ("POST", "clusters/harbor/recommendations/r1/cancel"),
    ("GET", "clusters/harbor/instruction-log"),
    ("GET", "clusters/harbor/instruction-log/1"),
    ("GET", "audit"),
]


@pytest.mark.parametrize(("method", "path"), OF_A_PERSON, ids=[path for _, path in OF_A_PERSON])
def test_of_another_tenant_nothing_is_seen_and_nothing_decided(
    quiet: Gateway, method: str, path: str
):
    _, mine = quiet.enrolled(Key(2), Role.PERSON)
    _, theirs = quiet.enrolled(Key(2), Role.PERSON, "globex")
    advised(quiet, "harbor")
    asked_as(quiet, mine, "POST", "/v1/clusters/harbor/recommendations/r1/accept", '"1"')
    before = quiet.tenants.of("acme").get("harbor", RECOMMENDATIONS)
    body = DECISIONS["dismiss"] if "dismiss" in path else b""
    answer = asked_as(quiet, theirs, method, f"/v1/{path}", '"1"', body)
    if path == "audit":
        assert answer.json["items"] == []
    else:
        assert answer.status_code == 404
    assert quiet.tenants.of("acme").get("harbor", RECOMMENDATIONS) == before
    assert len(list(quiet.tenants.of("acme").audit.list())) == 1


@pytest.mark.parametrize(("method", "path"), OF_A_PERSON, ids=[path for _, path in OF_A_PERSON])
def test_an_agent_decides_nothing_and_reads_neither_audit_nor_log(
    quiet: Gateway, method: str, path: str
):
    agent, token = quiet.enrolled(KEY, Role.AGENT)
    path = f"/v1/{path}".replace("harbor", agent.subject)
    headers = signed_headers(KEY, token, method, path, at=NOW) | {"If-Match": '"1"'}
    assert Client(quiet).open(path, method=method, headers=headers).status_code == 403


def test_whoever_decides_too_often_is_told_when_to_come_back_and_leaves_no_more_rows(
    quiet: Gateway,
):
    _, token = quiet.enrolled(Key(2), Role.PERSON)
    advised(quiet, "harbor")
    quiet.reads = replace(quiet.reads, decisions_per_minute=DECISIONS_PER_MINUTE)
    path = "/v1/clusters/harbor/recommendations/r9/accept"
    seen = Counter(
        asked_as(quiet, token, "POST", path, f'"{n}"').status_code
        for n in range(DECISIONS_PER_MINUTE + 5)
    )
    assert seen == {404: DECISIONS_PER_MINUTE, 429: 5}
    assert len(list(quiet.tenants.of("acme").audit.list())) == DECISIONS_PER_MINUTE


@pytest.mark.parametrize(("name", "answered"), [("savings", 404), ("recommendations", 200)])
def test_a_row_that_cannot_be_read_is_no_fault_of_whoever_asks(
    gateway: Gateway, name: str, answered: int
):
    agent, _ = gateway.enrolled(KEY, Role.AGENT)
    _, token = gateway.enrolled(Key(2), Role.PERSON)
    data = gateway.tenants.of("acme")
    data.delete(agent.subject, name)
    data.put(agent.subject, name, b"{", expires=NOW + timedelta(days=1))
    path = f"/v1/clusters/{agent.subject}/{name}"
    answer = Client(gateway).get(path, headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == answered
    assert data.faults[-1][:2] == (agent.subject, name)
    data.delete(agent.subject, name)


def test_of_two_agents_neither_gets_to_the_others_cluster(gateway: Gateway):
    _, token = gateway.enrolled(KEY, Role.AGENT)
    theirs, _ = gateway.enrolled(KEY, Role.AGENT, "globex")
    for operation in OPERATIONS:
        if "cluster" in operation.parts:
            other = dict.fromkeys(operation.parts, "r1") | {"cluster": theirs.subject}
            path = operation.path.format(**other)
            headers = signed_headers(KEY, token, operation.method, path, at=NOW)
            answer = Client(gateway).open(path, method=operation.method, headers=headers)
            assert answer.status_code == 403, operation.name


# --- Limits ------------------------------------------------------------------------------------------


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> Gateway:
    """A service that nobody has asked yet."""
    found = Gateway()
    found.stand_behind(monkeypatch)
    return found


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("path", ["/v1/token", "/v1/enrolments"])
def test_of_one_address_so_many_requests_without_a_token_are_read_and_others_are_heard(path: str):
    def asked(where: dict[str, Any]) -> int:
        status: int = handled("POST", path, {}, {}, b"no JSON", where)["statusCode"]
        return status

    seen = Counter(asked(HOME) for _ in range(FROM_ADDRESS_PER_MINUTE + 5))
    assert seen == {400: FROM_ADDRESS_PER_MINUTE, 429: 5}
    assert asked({}) == 400


def test_nobody_locks_another_out_of_tokens_without_the_key(quiet: Gateway):
    agent, _ = quiet.enrolled(KEY, Role.AGENT)
    thief = Key(9)
    for _ in range(2 * TOKENS_PER_MINUTE):
        with pytest.raises(Unproven):
            quiet.access.grant(thief.assertion(agent.subject, agent.kid, NOW), NOW)
    for _ in range(TOKENS_PER_MINUTE - 1):  # the first was for the enrolment
        quiet.access.grant(KEY.assertion(agent.subject, agent.kid, NOW), NOW)
    with pytest.raises(Throttled):
        quiet.access.grant(KEY.assertion(agent.subject, agent.kid, NOW), NOW)


def test_whoever_recorded_assertions_uses_up_nothing_by_sending_them_again(quiet: Gateway):
    agent, _ = quiet.enrolled(KEY, Role.AGENT)
    fresh = KEY.assertion(agent.subject, agent.kid, NOW)
    quiet.access.grant(fresh, NOW)
    old = KEY.assertion(agent.subject, agent.kid, NOW - timedelta(days=300))
    for _ in range(TOKENS_PER_MINUTE):
        for recorded in (fresh, old):
            with pytest.raises(Unproven):
                quiet.access.grant(recorded, NOW)
    quiet.access.grant(KEY.assertion(agent.subject, agent.kid, NOW), NOW)


def test_an_agent_renews_its_token_though_it_used_up_its_assertions(quiet: Gateway):
    agent, _ = quiet.enrolled(KEY, Role.AGENT)
    for _ in range(TOKENS_PER_MINUTE - 1):
        quiet.access.grant(KEY.assertion(agent.subject, agent.kid, NOW), NOW)
    token = quiet.access.renew(agent, NOW).access_token
    assert quiet.access.authorize(token, NOW) == agent
    for _ in range(TOKENS_PER_MINUTE - 1):
        quiet.access.renew(agent, NOW)
    with pytest.raises(Throttled):
        quiet.access.renew(agent, NOW)


@pytest.mark.parametrize("name", ["push_snapshot", "forward_taints", "post_results"])
def test_of_an_agent_malformed_requests_count(quiet: Gateway, name: str):
    agent, token = quiet.enrolled(KEY, Role.AGENT)
    quiet.intake = replace(quiet.intake, snapshots_per_minute=30)
    quiet.reads = replace(quiet.reads, polls_per_minute=30)
    (operation,) = (o for o in OPERATIONS if o.name == name)
    path = operation.path.format(cluster=agent.subject)

    def asked(body: bytes, key: Key = KEY) -> int:
        headers = signed_headers(key, token, "POST", path, at=NOW, body=body)
        return Client(quiet).post(path, data=body, headers=headers).status_code

    assert {asked(b"no JSON", Key(9)) for _ in range(40)} == {401}, "what is not signed does not"
    assert Counter(asked(b"no JSON") for _ in range(35)) == {400: 30, 429: 5}


PERSON = Key(3)


@pytest.mark.parametrize("name", ["x" * 2000, "a#b", "é", ""], ids=["long", "#", "é", "empty"])
def test_a_name_that_is_none_is_a_bad_request(gateway: Gateway, name: str):
    person, _ = gateway.enrolled(PERSON, Role.PERSON)
    context = {"authorizer": authorizer.policy(person, f"{ARN}/GET/v1/x")["context"]}
    of_cluster, accept = (
        "/v1/clusters/{cluster}/savings",
        "/recommendations/{recommendation}/accept",
    )
    for method, path, named in (
        ("GET", of_cluster, {"cluster": name}),
        ("POST", f"/v1/clusters/{{cluster}}{accept}", {"cluster": "c", "recommendation": name}),
    ):
        said = handled(method, path, named, {}, b"", context)
        assert (said["statusCode"], json.loads(said["body"])["status"]) == (400, 400)


@pytest.mark.parametrize(
    ("method", "path", "kind", "status"),
    [
        ("DELETE", "/v1/clusters", "application/json", 405),
        ("GET", "/v1/clusters", "text/plain", 415),
    ],
)
def test_the_refusals_of_the_router_are_problems_too(
    method: str, path: str, kind: str, status: int
):
    said = handled(method, path, {}, {"Content-Type": kind}, b"", {})
    assert said["statusCode"] == status
    assert said["headers"]["Content-Type"] == "application/problem+json"
    assert json.loads(said["body"])["status"] == status
    if status == 405:
        assert said["headers"]["Allow"] == "GET"


def test_the_name_of_the_scheme_counts_in_any_case(gateway: Gateway):
    _, token = gateway.enrolled(PERSON, Role.PERSON)
    for scheme in ("Bearer", "bearer", "BEARER"):
        answer = Client(gateway).get("/v1/clusters", headers={"Authorization": f"{scheme} {token}"})
        assert answer.status_code == 200


def test_days_and_page_of_gpus_stand_in_the_query_and_no_other_tenant_reads_them(gateway: Gateway):
    remember_cluster(gateway.tenants.of("acme"), "harbor", "harbor", gateway.clock.now())
    path = "/v1/clusters/{cluster}/gpu"

    def status(tenant: str, **query: str) -> int:
        person, _ = gateway.enrolled(PERSON, Role.PERSON, tenant)
        context = {"authorizer": authorizer.policy(person, f"{ARN}/GET/v1/x")["context"]}
        asked = {name: [value] for name, value in query.items()}
        said = handled("GET", path, {"cluster": "harbor"}, {}, b"", context, asked)
        found: int = said["statusCode"]
        return found

    assert status("acme") == 200
    assert status("acme", days="35", next="2026-11-22#499") == 200
    assert status("acme", days="36") == 400
    assert status("acme", next="newest") == 400
    assert status("globex") == 404
