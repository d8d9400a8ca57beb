"""The agent against the service's own code over HTTP, and against a fake cluster: from join token to result.

The server here only routes; how API Gateway and Lambda do that, the rigs show.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, override
from urllib.request import urlopen

import msgspec
import pytest
from msgspec import structs

from plimsoll.adapters.clock import SystemClock
from plimsoll.domain.errors import BadInput, MissingRights, Temporary
from plimsoll.domain.kubernetes import NAMESPACE
from plimsoll_agent.calls import CALLS, KEY
from plimsoll_agent.config import Config
from plimsoll_agent.loops import Loops
from plimsoll_agent.metrics_server import serve
from plimsoll_agent.output import Output
from plimsoll_agent.wiring import put_together
from plimsoll_service.adapters.access_tokens import AccessTokens
from plimsoll_service.adapters.signers import LocalSigner, is_signed
from plimsoll_service.domain.access.principals import Invitation, Principal, Role
from plimsoll_service.domain.errors import Unproven
from plimsoll_service.services.access import (
    AccessService,
    SignedRequest,
    digest_of,
    refuse_others,
    refuse_unsigned,
)
from plimsoll_service.services.ingest import Intake
from plimsoll_service.services.instructions import pending, post, report, result_of
from plimsoll_service.services.taints import TaintForwarding
from plimsoll_service.wire.access import (
    Enrolment,
    InstructionKey,
    Problem,
    TokenRequest,
    agents_join_token,
)
from plimsoll_service.wire.documents import MOST_BYTES, decode
from plimsoll_service.wire.instructions import (
    Instruction,
    Plan,
    Preconditions,
    Results,
    Target,
    sign,
    succeed,
)
from plimsoll_service.wire.snapshot import decode as decode_snapshot
from plimsoll_service.wire.taints import FORWARDED
from plimsoll_simulation.fake_aws.service_stores import (
    MemoryMembers,
    MemoryQueue,
    MemoryTenants,
    MemoryTokenKeys,
)
from plimsoll_simulation.fake_cluster.cluster import FakeCluster
from plimsoll_simulation.fake_cluster.serve import FakeApiServer
from plimsoll_simulation.fake_cluster.transport import FakeTransport
from plimsoll_testbed.rigs.certificates import server_context
from tests.rights.table import right_of
from tests.support import fake_clusters
from tests.support.agent_image import image
from tests.support.enrolled import invitation
from tests.support.queue_scenes import a_job

from .conftest import Recorder
from .rights import Grant, Rights, granted_by

MANIFESTS = Path(__file__).parents[2] / "agent" / "plimsoll_agent" / "manifests"
SIGNER = LocalSigner.of("k-1", bytes([7]) * 32)
JOIN = agents_join_token("join-token-of-32-random-bytes", SIGNER.public_key())


@dataclass
class TheService:
    """The service over memory, behind HTTP."""

    members: MemoryMembers = field(default_factory=MemoryMembers)
    tenants: MemoryTenants = field(default_factory=lambda: MemoryTenants(SystemClock()))
    queue: MemoryQueue = field(default_factory=MemoryQueue)
    away: bool = False
    older: bool = False
    """Whether it knows no renewal."""
    requests: list[str] = field(default_factory=list)
    bus: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.access = AccessService(
            members=self.members,
            tenants=self.tenants,
            tokens=AccessTokens(MemoryTokenKeys([bytes(32)])),
            verify=is_signed,
            instruction_keys=lambda: [
                InstructionKey(key_id=SIGNER.key_id, public_key=SIGNER.public_key())
            ],
        )
        self.intake = Intake(
            tenants=self.tenants,
            members=self.members,
            queue=self.queue,
            clock=SystemClock(),
        )
        self.taints = TaintForwarding(members=self.members, bus=self, clock=SystemClock())

    def forward(self, agent: str, instances: Any) -> None:
        """Be the bus."""
        self.bus.append((agent, tuple(instances)))

    def queue_changed(self, agent: str) -> None:
        self.bus.append((agent, ("a queue",)))

    def invite(self) -> None:
        until = datetime.now(UTC) + timedelta(hours=1)
        invitation = Invitation(tenant="acme", role=Role.AGENT, name="harbor", expires=until)
        self.members.invite(digest_of(JOIN), invitation)

    @property
    def agent(self) -> Principal:
        (agent,) = self.members.agents()
        return agent

    @property
    def data(self) -> Any:
        return self.tenants.of("acme")

    def answer(  # noqa: C901, PLR0911 - an answer each
        self, method: str, path: str, headers: Any, body: bytes
    ) -> tuple[int, Any]:
        now = datetime.now(UTC)
        self.requests.append(f"{method} {path}")
        if self.away:
            return 503, Problem(status=503, detail="away")
        if path == "/prod/v1/enrolments":
            return 201, self.access.enrol(decode(body, Enrolment), now)
        if path == "/prod/v1/token":
            return 200, self.access.grant(decode(body, TokenRequest), now)
        principal = self.access.authorize(headers["Authorization"].removeprefix("Bearer "), now)
        if principal is None:
            raise Unproven("the token names nobody")
        signed = SignedRequest(
            method=method,
            path=path.removeprefix("/prod"),
            query="",
            timestamp=headers["X-Plimsoll-Timestamp"],
            signature=b64decode(headers["X-Plimsoll-Signature"]),
            body=body,
        )
        refuse_unsigned(principal, signed, is_signed, now)
        _, _, _, _, cluster, what = path.split("/")
        refuse_others(principal, cluster, Role.AGENT)
        match what:
            case "token" if self.older:
                return 403, Problem(status=403, detail="Missing Authentication Token")
            case "token":
                return 200, self.access.renew(principal, now)
            case "snapshots":
                return 202, self.intake.take(principal, body)
            case "taints":
                return 202, self.taints.forward(principal, body)
            case "queue-changes":
                return 202, self.taints.queue_changed(principal)
            case "instructions":
                return 200, pending(self.data, cluster)
            case _:
                results = decode(body, Results)
                report(self.data, cluster, results.results, SystemClock().now())
                return 200, results


@pytest.fixture
def service() -> Iterator[tuple[TheService, str]]:
    found = TheService()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            try:
                status, said = found.answer(self.command, self.path, self.headers, body)
            except Unproven as error:
                status, said = 401, Problem(status=401, detail=str(error))
            content = msgspec.json.encode(said)
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_GET  # noqa: N815 - as the base class looks for it

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield found, f"http://127.0.0.1:{server.server_address[1]}/prod"
        server.shutdown()


def agent_rights() -> list[Grant]:
    return granted_by(MANIFESTS / "rbac.yaml")


@dataclass
class Site:
    """A cluster in which the agent's manifests are applied, and its agent under their rights."""

    cluster: FakeCluster
    wire: Recorder
    url: str
    spool: Path

    def start(self, clock: SystemClock | None = None) -> Loops:
        config = Config(service=self.url, spool=self.spool, spool_bytes=2**20, metrics_port=0)
        clock = clock or SystemClock()
        return put_together(self.wire, config, clock, Output(clock))

    def put(self, kind: str, name: str, data: dict[str, str]) -> None:
        meta = {"name": name, "namespace": NAMESPACE}
        now = datetime.now(UTC)
        manifest = {"apiVersion": "v1", "kind": kind, "metadata": meta, "data": data}
        self.cluster.apply([manifest], now=now)

    def secret(self) -> dict[str, str]:
        found = self.cluster.store.must_get("secrets", NAMESPACE, KEY)
        data: dict[str, str] = found["data"]
        return data


@pytest.fixture
def site(service: tuple[TheService, str], tmp_path: Path) -> Site:
    the_service, url = service
    the_service.invite()
    now = datetime.now(UTC) - timedelta(minutes=10)
    cluster = FakeCluster(now=now)
    for name in ("kube-system", NAMESPACE):
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        cluster.apply([namespace], now=now)
    cluster.join(fake_clusters.a_node("a"), now=now)
    cluster.apply([fake_clusters.a_deployment("web", 3)], now=now)
    cluster.step(datetime.now(UTC))
    wire = Recorder(FakeTransport(cluster, SystemClock()), Rights(granted=agent_rights()))
    found = Site(cluster, wire, url, tmp_path / "spool")
    found.put("Secret", KEY, {"join-token": b64encode(JOIN.encode()).decode()})
    found.put("ConfigMap", "plimsoll-agent-journal", {})
    found.put(
        "ConfigMap", "plimsoll-agent-policy", {"kinds": "label-node", "labels": "plimsoll.dev/"}
    )
    return found


def test_the_agent_enrols_once_and_what_it_tells_is_kept_by_the_service(service, site):
    the_service, _ = service
    running = site.start()
    running.sender.take()
    assert running.sender.send() == 60
    agent = the_service.agent
    assert (
        agent.cluster_uid
        == site.cluster.store.must_get("namespaces", "", "kube-system")["metadata"]["uid"]
    )
    (arrival,) = the_service.queue.sent
    body = the_service.data.get_snapshot(agent.subject, arrival.epoch, arrival.sequence)
    owners = [pod.owner.name for pod in decode_snapshot(body).pods if pod.owner is not None]
    assert owners == ["web"] * 3
    again = site.start()
    again.sender.take()
    again.sender.send()
    assert len(the_service.queue.sent) == 2
    assert the_service.requests.count("POST /prod/v1/enrolments") == 1


class AheadClock(SystemClock):
    """A clock that may be ahead."""

    ahead = timedelta()

    @override
    def now(self) -> datetime:
        return super().now() + self.ahead


def sends_at(agent, clock: AheadClock, *seconds: int) -> None:
    for each in seconds:
        clock.ahead = timedelta(seconds=each)
        agent.sender.take()
        agent.sender.send()


def test_a_running_agent_renews_its_token_without_the_path_that_everybody_shares(
    service, site, monkeypatch
):
    the_service, _ = service
    monkeypatch.setattr("plimsoll_service.services.access.TOKEN_LIFE", timedelta(minutes=4))
    clock = AheadClock()
    sends_at(site.start(clock), clock, 0, 60, 130, 190)
    asked = [each for each in the_service.requests if each.endswith("/token")]
    own = f"POST /prod/v1/clusters/{the_service.agent.subject}/token"
    assert asked == ["POST /prod/v1/token", own]
    assert len(the_service.queue.sent) == 4


def test_where_a_token_is_not_renewed_an_assertion_replaces_it(service, site, monkeypatch):
    the_service, _ = service
    monkeypatch.setattr("plimsoll_service.services.access.TOKEN_LIFE", timedelta(minutes=4))
    the_service.older = True
    clock = AheadClock()
    sends_at(site.start(clock), clock, 0, 130, 190, 220)
    assert the_service.requests.count("POST /prod/v1/token") == 2
    assert len(the_service.queue.sent) == 4


def test_the_private_key_never_leaves_the_cluster_and_the_join_token_is_forgotten(service, site):
    the_service, _ = service
    seen: list[bytes] = []
    answer = the_service.answer

    def hear(method: str, path: str, headers: Any, body: bytes) -> Any:
        seen.append(str(headers).encode() + body)
        return answer(method, path, headers, body)

    the_service.answer = hear
    running = site.start()
    running.sender.take()
    running.sender.send()
    secret = site.secret()
    assert "join-token" not in secret
    private = b64decode(secret["private-key"])
    assert len(private) == 32
    said = b"".join(seen)
    assert private not in said
    assert secret["private-key"].encode() not in said
    assert private.hex().encode() not in said


def test_an_agent_that_dies_before_it_hears_the_answer_enrols_the_same_key_again(service, site):
    the_service, _ = service
    answer = the_service.answer

    def unheard(method: str, path: str, headers: Any, body: bytes) -> Any:
        answer(method, path, headers, body)
        return 503, Problem(status=503)

    the_service.answer = unheard
    with pytest.raises(Temporary):
        site.start()
    the_service.answer = answer
    first = the_service.agent
    site.start()
    assert the_service.agent == first


def test_enrolment_begins_the_journal_and_a_later_start_takes_an_empty_one_for_lost(service, site):
    running = site.start()
    assert running.executor.journal.load().since is None
    site.put("ConfigMap", "plimsoll-agent-journal", {"journal": ""})
    assert site.start().executor.journal.load().since is not None


def test_an_answer_of_the_service_that_is_too_long_is_not_read_to_its_end(service, site):
    the_service, _ = service
    running = site.start()
    the_service.answer = lambda *_: (200, Problem(status=200, detail="x" * (MOST_BYTES + 1)))
    with pytest.raises(Temporary, match="more than"):
        running.executor.round()


def test_a_used_or_unknown_join_token_is_refused_with_the_reason(service, site):
    site.put("Secret", KEY, {"join-token": b64encode(b"another").decode()})
    with pytest.raises(MissingRights, match="join token is unknown"):
        site.start()


def test_a_service_that_was_taken_over_does_not_choose_the_key_that_an_agent_follows(service, site):
    the_service, _ = service
    answer = the_service.answer
    forged = InstructionKey(key_id=SIGNER.key_id, public_key=bytes([8]) * 32)

    def taken_over(method: str, path: str, headers: Any, body: bytes) -> Any:
        status, said = answer(method, path, headers, body)
        return status, structs.replace(said, instruction_keys=(*said.instruction_keys, forged))

    the_service.answer = taken_over
    with pytest.raises(BadInput, match="does not tell of"):
        site.start()
    the_service.answer = answer
    assert site.start().executor.policy().instruction_keys.keys() == {SIGNER.key_id}


def test_a_service_that_names_no_key_spends_no_join_token(service, site):
    the_service, _ = service
    answer = the_service.answer

    def silent(method: str, path: str, headers: Any, body: bytes) -> Any:
        status, said = answer(method, path, headers, body)
        return status, structs.replace(said, instruction_keys=())

    the_service.answer = silent
    with pytest.raises(BadInput, match="names no key"):
        site.start()
    assert b64decode(site.secret()["join-token"]) == JOIN.encode()
    the_service.answer = answer
    assert site.start().executor.policy().instruction_keys.keys() == {SIGNER.key_id}


def test_a_join_token_that_tells_of_no_key_enrols_no_agent(service, site):
    the_service, _ = service
    bare = JOIN.partition(".")[0]
    now = datetime.now(UTC)
    the_service.members.invite(digest_of(bare), invitation(name="harbor", now=now))
    site.put("Secret", KEY, {"join-token": b64encode(bare.encode()).decode()})
    with pytest.raises(BadInput, match="does not tell of"):
        site.start()


def test_a_key_that_the_former_one_signed_is_followed_and_no_other(service, site):
    the_service, _ = service
    running = site.start()
    rotated, foreign = (LocalSigner.of(f"k-{n}", bytes([n]) * 32) for n in (2, 3))
    now = datetime.now(UTC)
    for number, signer, by in ((1, foreign, rotated), (2, rotated, SIGNER)):
        asked = Instruction(
            id=f"r-{number}",
            cluster_id=the_service.agent.subject,
            number=number,
            issued_at=now,
            expires_at=now + timedelta(minutes=10),
            kind="label-node",
            target=Target(name="a", uid="another"),
            preconditions=Preconditions(),
            labels={"plimsoll.dev/group": "a"},
            plan=Plan(reason="a try"),
        )
        successor = succeed(by, signer.key_id, signer.public_key())
        signed = sign(asked, replace(signer, successor=successor))
        post(the_service.data, the_service.agent.subject, number, signed, asked.expires_at)
    running.executor.round()
    cluster = the_service.agent.subject
    assert result_of(the_service.data, cluster, 1) is None
    answered = result_of(the_service.data, cluster, 2)
    assert answered is not None
    assert answered.outcome == "refused"  # it was read, and is about another Node
    for each in (running, site.start()):
        assert each.executor.policy().instruction_keys.keys() == {rotated.key_id}


def test_without_key_and_token_it_says_where_to_put_one(site):
    site.put("Secret", KEY, {"join-token": ""})
    with pytest.raises(BadInput, match="join-token"):
        site.start()


def test_a_revoked_key_is_told_so_and_nothing_is_lost(service, site):
    the_service, _ = service
    running = site.start()
    agent = the_service.agent
    the_service.members.revoke(agent.subject, datetime.now(UTC))
    running.sender.take()
    assert running.sender.send() != 60
    assert len(running.sender.spool.entries) == 1
    the_service.invite()
    again = (digest_of(JOIN), agent.public_key, agent.cluster_uid, datetime.now(UTC))
    assert the_service.members.admit(*again) == agent
    running.sender.send()
    assert running.sender.spool.entries == []


def test_an_instruction_is_taken_and_its_result_comes_back(service, site):
    the_service, _ = service
    running = site.start()
    agent, now = the_service.agent, datetime.now(UTC)
    node = site.cluster.store.must_get("nodes", "", "a")
    asked = Instruction(
        id="r-1",
        cluster_id=agent.subject,
        number=1,
        issued_at=now,
        expires_at=now + timedelta(minutes=10),
        kind="label-node",
        target=Target(
            name="a", uid=node["metadata"]["uid"], provider_id=node["spec"]["providerID"]
        ),
        preconditions=Preconditions(),
        labels={"plimsoll.dev/group": "a"},
        plan=Plan(reason="a try"),
    )
    post(the_service.data, agent.subject, 1, sign(asked, SIGNER), asked.expires_at)
    running.sender.take()
    running.sender.send()
    assert running.sender.pending
    running.executor.round()
    result = result_of(the_service.data, agent.subject, 1)
    assert result is not None
    assert result.outcome == "would-do"
    assert pending(the_service.data, agent.subject).instructions == ()


def test_an_interruption_taint_gets_to_the_bus_under_the_name_of_the_agent(service, site):
    the_service, _ = service
    running = site.start()
    running.taints.round()
    body = {"spec": {"taints": [{"key": FORWARDED[0], "effect": "NoSchedule"}]}}
    site.cluster.handle(
        "PATCH", "/api/v1/nodes/a", {}, body, fake_clusters.MERGE, now=datetime.now(UTC)
    )
    running.taints.round()
    (node,) = running.executor.api.nodes()
    assert the_service.bus == [(the_service.agent.subject, (node.instance,))]


def test_a_job_of_a_queue_gets_to_the_bus_under_the_name_of_the_agent(service, site):
    the_service, _ = service
    running = site.start()
    running.queues.round()
    assert the_service.bus == []
    lab = {"kind": "Namespace", "metadata": {"name": "lab"}}
    site.cluster.apply([lab, a_job("train")], now=datetime.now(UTC))
    running.queues.round()
    assert the_service.bus == [(the_service.agent.subject, ("a queue",))]


def test_all_loops_run_until_they_are_stopped_and_prometheus_hears_of_it(service, site):
    the_service, _ = service
    running = site.start()
    clock = SystemClock()
    output = Output(clock)
    running.sender.measures = output
    server = serve(output.registry, 0, running.healthy)
    loops = (
        running.send_snapshots,
        running.execute_instructions,
        running.forward_taints,
        running.report_queue_changes,
    )
    threads = [Thread(target=loop) for loop in loops]
    for thread in threads:
        thread.start()
    until = datetime.now(UTC) + timedelta(seconds=20)
    while not the_service.queue.sent and datetime.now(UTC) < until:
        clock.sleep(0.05)
    port = server.server_address[1]
    with urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        said = answer.read().decode()
    with urlopen(f"http://127.0.0.1:{port}/healthz") as answer:
        assert answer.status == 200
    running.stop()
    for thread in threads:
        thread.join(20)
    server.shutdown()
    server.server_close()
    assert 'plimsoll_agent_snapshots_taken_total{kind="full"} 1.0' in said
    assert not any(thread.is_alive() for thread in threads)


def test_the_agent_asks_for_all_that_its_table_of_calls_lists(service, site):
    running = site.start()
    running.sender.take()
    running.sender.keep_up()
    running.executor.policy()
    running.executor.api.node("a")
    running.executor.api.observe()
    with suppress(MissingRights):
        running.executor.journal.save(running.executor.journal.load())
    table = {right_of(call) for call in CALLS}
    not_here = {
        "rollouts",
        "ingresses",
        "endpointslices",
        "limitranges",
        "verticalpodautoscalers",
    }  # a watch follows a list that succeeded
    unseen = {(v, g, r) for v, g, r in table if v == "watch" and r in not_here}
    unseen |= {("list", "argoproj.io", "rollouts")}
    unseen |= {("list", "autoscaling.k8s.io", "verticalpodautoscalers")}
    assert table - unseen <= site.wire.rights.used


def test_the_command_runs_it_by_a_kubeconfig_until_it_is_told_to_stop(service, site, tmp_path):
    the_service, url = service
    with FakeApiServer(site.cluster) as server:
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(
            json.dumps(
                {
                    "current-context": "harbor",
                    "clusters": [{"name": "c", "cluster": {"server": server.url}}],
                    "users": [{"name": "u", "user": {"token": server.token}}],
                    "contexts": [{"name": "harbor", "context": {"cluster": "c", "user": "u"}}],
                }
            )
        )
        words = ["agent", "run", "--service", url, "--spool", str(site.spool)]
        process = subprocess.Popen(
            [sys.executable, "-c", "from plimsoll_cli import main; main()", *words],
            env=os.environ | {"KUBECONFIG": str(kubeconfig)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        until = datetime.now(UTC) + timedelta(seconds=60)
        while not the_service.queue.sent and datetime.now(UTC) < until and process.poll() is None:
            SystemClock().sleep(0.1)
        process.terminate()
        said, _ = process.communicate(timeout=30)
    assert process.returncode == 0, said
    assert len(the_service.queue.sent) == 1, said


IN_A_POD = """
import sys
from pathlib import Path
from plimsoll_agent import __main__ as entry

entry.ACCOUNT, entry.api_server = Path(sys.argv[1]), lambda: sys.argv[2]
sys.exit(entry.main())
"""


@pytest.fixture(scope="module")
def files_of_the_image(tmp_path_factory) -> Path:
    return image(tmp_path_factory.mktemp("image"))


def python(files: Path, *words: str, **environment: str) -> subprocess.Popen[str]:
    """Run Python as the image does: with its files, and none of this environment's."""
    return subprocess.Popen(
        [sys.executable, "-S", *words],
        cwd=files,
        env={"PYTHONPATH": str(files), "PYTHONDONTWRITEBYTECODE": "1", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_the_entry_point_of_the_image_runs_from_the_wheel_until_it_is_told_to_stop(
    service, site, files_of_the_image, tmp_path
):
    the_service, url = service
    with FakeApiServer(site.cluster) as server:
        account = tmp_path / "account"
        account.mkdir()
        _, ca = server_context(tmp_path)
        (account / "ca.crt").write_text(ca)
        (account / "token").write_text(server.token)
        process = python(
            files_of_the_image,
            *("-c", IN_A_POD, str(account), server.url),
            PLIMSOLL_SERVICE=url,
            PLIMSOLL_SPOOL=str(site.spool),
            PLIMSOLL_SPOOL_MIB="1",
            PLIMSOLL_METRICS_PORT="0",
        )
        until = datetime.now(UTC) + timedelta(seconds=60)
        while not the_service.queue.sent and datetime.now(UTC) < until and process.poll() is None:
            SystemClock().sleep(0.1)
        process.terminate()
        said, _ = process.communicate(timeout=30)
    assert process.returncode == 0, said
    assert len(the_service.queue.sent) == 1, said


def test_outside_of_a_pod_the_entry_point_says_what_it_lacks(files_of_the_image):
    process = python(files_of_the_image, "-m", "plimsoll_agent")
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    line = json.loads(said)
    assert line["message"] == "the agent cannot start"
    assert "PLIMSOLL_SERVICE is missing" in line["because"]
