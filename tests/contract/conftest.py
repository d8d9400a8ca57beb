"""What the contract suites run against. Only here do tests know which adapter is behind a port."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from botocore.loaders import create_loader
from moto import mock_aws

from plimsoll.adapters.aws import Aws
from plimsoll.adapters.dynamodb.codec import TTL
from plimsoll.adapters.kubernetes import KubernetesCluster, Response, Transport
from plimsoll.adapters.workers import ThreadWorkers
from plimsoll.domain.errors import Refused
from plimsoll_simulation.checkout import Checkout
from plimsoll_simulation.fake_cluster.cluster import FakeCluster
from plimsoll_simulation.fake_cluster.serve import FakeApiServer
from plimsoll_simulation.fake_cluster.transport import FakeTransport
from plimsoll_simulation.rigs.access import Access
from plimsoll_testbed.rigs.emulated.ministack import MiniStack

from .rights import Rights

REGION = "eu-west-1"
T0 = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test may ever reach an account, whatever the developer's environment says."""
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture(scope="session", autouse=True)
def quick_aws() -> Iterator[None]:
    """Read the descriptions of the services once, EC2's alone takes a second; and of moto's images only one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("botocore.session.create_loader", cache(create_loader))
        patch.setenv("MOTO_AMIS_PATH", str(Path(__file__).with_name("images.json")))
        yield


@pytest.fixture
def moto_aws(credentials: None) -> Iterator[Aws]:
    """AWS as moto plays it, in this process."""
    with mock_aws():
        yield Aws(REGION)


@pytest.fixture(scope="session")
def emulator_endpoint() -> Iterator[str]:
    """The URL of an emulated AWS, over real HTTP."""
    try:
        _ = Checkout.find().ministack
    except Refused as missing:
        pytest.skip(str(missing))
    with MiniStack() as emulator:
        yield emulator.url


class Answers:
    """Answers given in AWS's place, for what moto never says; None lets moto answer.

    The last one is given again and again; of two for one operation the newer answers.
    """

    def __init__(self, aws: Aws, service: str, operation: str, *answers: object) -> None:
        self.asked: list[dict[str, Any]] = []
        self._answers = list(answers)
        in_charge: dict[str, Answers] = aws.__dict__.setdefault("answers", {})
        name = f"{service}.{operation}"
        if name not in in_charge:
            events = getattr(aws, service).meta.events

            def note(**said: Any) -> None:
                in_charge[name].note(**said)

            def answer(**_: object) -> Any:
                return in_charge[name].answer()

            events.register(f"provide-client-params.{name}", note)
            events.register(f"before-call.{name}", answer)
        in_charge[name] = self

    @property
    def calls(self) -> int:
        return len(self.asked)

    def note(self, params: dict[str, Any], **_: object) -> None:
        self.asked.append(params)

    def answer(self) -> Any:
        answer: Any = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if answer is None:
            return None

        class Http:
            status_code = answer.get("status", 200)

        return Http(), {**answer, "ResponseMetadata": {"HTTPStatusCode": Http.status_code}}


def refused(code: str, message: str = "\u2026", status: int = 400) -> dict[str, Any]:
    """An answer that is an error of AWS."""
    return {"status": status, "Error": {"Code": code, "Message": message}}


class FakeClock:
    """A clock that stands still until it is moved."""

    def __init__(self, now: datetime) -> None:
        self._now = now

    def now(self) -> datetime:
        return self._now

    def sleep(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)


def kept_for_ever(dynamodb: Any, tables: Sequence[str]) -> list[Mapping[str, Any]]:
    """Return the rows of tables that never expire."""
    rows = (row for name in tables for row in dynamodb.scan(TableName=name)["Items"])
    return [row for row in rows if TTL not in row]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(T0)


@pytest.fixture
def warnings() -> list[str]:
    return []


@dataclass
class Recorder:
    """A transport that remembers what was asked, and may answer in the cluster's place."""

    inner: Transport
    rights: Rights = field(default_factory=Rights)
    asked: list[tuple[str, str, Mapping[str, str], object]] = field(default_factory=list)
    instead: list[Response | None] = field(default_factory=list)
    """The next answers; None lets the cluster answer."""
    at: dict[str, Response] = field(default_factory=dict)
    """What to answer at a path, always."""

    silent: bool = False
    """Watches tell nothing, as over a connection whose other end is gone."""

    def call(self, method: str, path: str, **request: Any) -> Response:
        self.asked.append((method, path, dict(request.get("query") or {}), request.get("body")))
        refused = self.rights.refuse(method, path, request.get("query"))
        answer = self.instead.pop(0) if self.instead else self.at.get(path)
        if answer is not None:
            return answer
        if refused is not None:
            return refused
        if self.silent and "watch" in (request.get("query") or {}):
            return Response(status=200, events=Silence())
        return self.inner.call(method, path, **request)


class Silence:
    """A watch that never tells anything."""

    over = False

    def take(self) -> tuple[()]:
        return ()

    def close(self) -> None:
        pass


class Ended(Silence):
    """A watch whose other end hung up at once."""

    over = True


@dataclass
class ContractRig:
    """A cluster as our adapter sees it, and as it is."""

    api: KubernetesCluster
    fake_cluster: FakeCluster
    wire: Recorder
    clock: FakeClock
    warnings: list[str]

    @property
    def rights(self) -> Rights:
        return self.wire.rights

    def apply(self, *manifests: dict[str, Any]) -> None:
        self.fake_cluster.apply(manifests, now=self.clock.now())

    def join(self, node: dict[str, Any]) -> None:
        self.fake_cluster.join(node, now=self.clock.now())

    def get(self, path: str) -> dict[str, Any]:
        found: dict[str, Any] = self.fake_cluster.handle("GET", path, now=self.clock.now()).body
        return found

    def wait(self, seconds: float) -> None:
        self.clock.sleep(seconds)
        self.fake_cluster.step(self.clock.now())


def machine(name: str) -> dict[str, Any]:
    """The Node of an instance `i-…<name>` in zone `eu-west-1<name>`."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "topology.kubernetes.io/zone": f"eu-west-1{name}",
            },
        },
        "spec": {"providerID": f"aws:///eu-west-1{name}/i-{name:0>17}"},
        "status": {"allocatable": {"cpu": "2", "memory": "4Gi", "pods": "29"}},
    }


@pytest.fixture(scope="session")
def workers() -> Iterator[ThreadWorkers]:
    threads = ThreadWorkers()
    yield threads
    threads.close()


@pytest.fixture
def fake_cluster() -> FakeCluster:
    return FakeCluster(now=T0)


@pytest.fixture(params=["in process", "over HTTP"])
def rig(
    request: pytest.FixtureRequest, fake_cluster: FakeCluster, workers: ThreadWorkers
) -> Iterator[ContractRig]:
    """One small cluster, reached in process or by our client over HTTP."""
    clock, warnings = FakeClock(T0), list[str]()
    with ExitStack() as opened:
        if request.param == "in process":
            transport: Transport = FakeTransport(fake_cluster, clock)
        else:

            def now() -> datetime:
                fake_cluster.step(clock.now())
                return clock.now()

            server = opened.enter_context(FakeApiServer(fake_cluster, now=now))
            transport = Access(url=server.url, token=server.token).transport()
        wire = Recorder(transport)
        api = KubernetesCluster(wire, "shop", clock, workers=workers, warn=warnings.append)
        yield ContractRig(api, fake_cluster, wire, clock, warnings)
