"""The token for EKS and the ways into a cluster, without a socket."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64decode
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from moto import mock_aws

from plimsoll.adapters import eks
from plimsoll.adapters.aws import Aws
from plimsoll.adapters.clusters import LazyTransport, OpenClusters, check_endpoint
from plimsoll.adapters.eks import EksToken
from plimsoll.adapters.kubernetes import Response
from plimsoll.adapters.secrets import TOKEN_KEPT, SecretToken
from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.errors import BadInput, NotFound, Refused, Temporary
from plimsoll.domain.registry import Cluster, ClusterKind, Mode

T0 = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
BARE = Cluster(
    name="bare",
    kind=ClusterKind.ENDPOINT,
    region="eu-west-1",
    endpoint="https://10.0.0.1:6443",
    secret="plimsoll/bare",
    added=T0,
)


class Clock:
    def __init__(self) -> None:
        self.time = T0

    def now(self) -> datetime:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[Aws]:
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "session/token+with=signs")
    with mock_aws():
        yield Aws("eu-west-1")


def url_of(token: str) -> str:
    text = token.removeprefix("k8s-aws-v1.")
    return urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()


def test_the_token_is_a_presigned_request_to_the_regional_sts(aws: Aws) -> None:
    token = EksToken(aws, "shop", Clock()).get()
    assert token.startswith("k8s-aws-v1.")
    assert "=" not in token
    url = urlsplit(url_of(token))
    query = parse_qs(url.query, strict_parsing=True)
    assert (url.scheme, url.netloc, url.path) == ("https", "sts.eu-west-1.amazonaws.com", "/")
    assert query["Action"] == ["GetCallerIdentity"]
    assert query["Version"] == ["2011-06-15"]
    assert query["X-Amz-Expires"] == ["60"]
    assert query["X-Amz-SignedHeaders"] == ["host;x-k8s-aws-id"]
    assert query["X-Amz-Credential"][0].endswith("/eu-west-1/sts/aws4_request")
    assert query["X-Amz-Security-Token"] == ["session/token+with=signs"]
    assert len(query["X-Amz-Signature"][0]) == 64


def test_the_signature_covers_the_name_of_the_cluster(aws: Aws) -> None:
    def signature(cluster: str) -> str:
        return parse_qs(url_of(EksToken(aws, cluster, Clock()).get()))["X-Amz-Signature"][0]

    assert signature("shop") != signature("other")


def test_another_partition_has_another_host(aws: Aws) -> None:
    token = EksToken(aws.in_region("cn-north-1"), "shop", Clock()).get()
    assert urlsplit(url_of(token)).netloc == "sts.cn-north-1.amazonaws.com.cn"


def test_a_token_is_used_for_fourteen_minutes_and_not_longer(aws: Aws) -> None:
    clock = Clock()
    token = CountedToken(aws, "shop", clock)
    token.get()
    clock.sleep(14 * 60 - 1)
    token.get()
    assert token.made == 1
    clock.sleep(1)
    token.get()
    assert token.made == 2


def test_a_token_that_was_refused_is_made_anew(aws: Aws) -> None:
    token = CountedToken(aws, "shop", Clock())
    token.get()
    token.forget()
    token.get()
    assert token.made == 2


class CountedToken(EksToken):
    made = 0

    def _make(self) -> str:
        self.made += 1
        return super()._make()


class FakeEks:
    def __init__(self, cluster: dict[str, Any]) -> None:
        self.cluster = cluster

    def describe_cluster(self, name: str) -> dict[str, Any]:
        return {"cluster": {"name": name, **self.cluster}}


class FakeAws:
    def __init__(self, **clients: Any) -> None:
        self.__dict__.update(clients)


def described(**cluster: Any) -> eks.Endpoint:
    return eks.describe(FakeAws(eks=FakeEks(cluster)), "shop")  # type: ignore[arg-type] # the one client


def test_the_ca_of_a_cluster_is_decoded() -> None:
    data = b64encode(b"-----BEGIN CERTIFICATE-----").decode()
    found = described(status="ACTIVE", endpoint="https://x", certificateAuthority={"data": data})
    assert found == eks.Endpoint(url="https://x", ca="-----BEGIN CERTIFICATE-----")


def test_a_cluster_that_is_being_made_is_asked_again_later() -> None:
    with pytest.raises(Temporary, match="CREATING"):
        described(status="CREATING")


def test_a_cluster_that_is_being_deleted_is_refused() -> None:
    with pytest.raises(Refused, match="DELETING"):
        described(status="DELETING", endpoint="https://x")


def test_an_unknown_cluster_is_not_found(aws: Aws) -> None:
    with pytest.raises(NotFound, match="describe EKS cluster shop"):
        eks.describe(aws, "shop")


@pytest.mark.parametrize(
    "text", ["abc.def.ghi", " abc.def.ghi\n", json.dumps({"token": "abc.def.ghi", "note": "x"})]
)
def test_a_secret_holds_the_token_as_text_or_in_a_field(aws: Aws, text: str) -> None:
    aws.secretsmanager.create_secret(Name="plimsoll/bare", SecretString=text)
    assert SecretToken(aws, "plimsoll/bare", Clock()).get() == "abc.def.ghi"


@pytest.mark.parametrize("text", ["two words", '{"password": "hunter2"}', '{"token": 7}', "{nope"])
def test_a_secret_without_a_token_is_named_and_not_shown(aws: Aws, text: str) -> None:
    aws.secretsmanager.create_secret(Name="plimsoll/bare", SecretString=text)
    with pytest.raises(BadInput, match="plimsoll/bare") as caught:
        SecretToken(aws, "plimsoll/bare", Clock()).get()
    assert "hunter2" not in str(caught.value)


def test_a_missing_secret_is_not_found(aws: Aws) -> None:
    with pytest.raises(NotFound, match="read the secret plimsoll/bare"):
        SecretToken(aws, "plimsoll/bare", Clock()).get()


def test_a_rotated_secret_is_taken_over_after_a_while_or_when_refused(aws: Aws) -> None:
    clock = Clock()
    aws.secretsmanager.create_secret(Name="s", SecretString="one")
    token = SecretToken(aws, "s", clock)
    assert token.get() == "one"
    aws.secretsmanager.put_secret_value(SecretId="s", SecretString="two")
    assert token.get() == "one"
    clock.time += TOKEN_KEPT
    assert token.get() == "two"
    aws.secretsmanager.put_secret_value(SecretId="s", SecretString="three")
    token.forget()
    assert token.get() == "three"


@pytest.mark.parametrize(
    "endpoint", ["http://127.0.0.1:8080", "http://localhost:1", "http://[::1]:1"]
)
def test_http_is_taken_on_loopback(endpoint: str) -> None:
    check_endpoint(replace(BARE, endpoint=endpoint, secret=None))


@pytest.mark.parametrize(
    ("endpoint", "said"),
    [
        (None, "no endpoint"),
        ("http://10.0.0.1:6443", "must be https"),
        ("http://127.0.0.1.example.com", "must be https"),
        ("10.0.0.1:6443", "must be a URL"),
        ("https://", "must be a URL"),
        ("https://host:port", "is no URL"),
        ("ftp://host", "must be a URL"),
    ],
)
def test_an_endpoint_that_cannot_be_trusted_is_bad_input(endpoint: str | None, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        check_endpoint(replace(BARE, endpoint=endpoint))


def test_a_cluster_without_a_token_is_bad_input() -> None:
    with pytest.raises(BadInput, match="no secret"):
        check_endpoint(replace(BARE, secret=None))


def test_a_cluster_is_opened_once_whatever_its_mode(aws: Aws) -> None:
    clusters = OpenClusters(aws, Clock(), SerialWorkers())
    opened = clusters.open(BARE)
    assert clusters.open(replace(BARE, mode=Mode.ACT)) is opened
    assert clusters.open(replace(BARE, endpoint="https://10.0.0.2")) is not opened


def test_an_eks_cluster_is_looked_up_at_the_first_request(aws: Aws) -> None:
    cluster = replace(BARE, kind=ClusterKind.EKS, endpoint=None, secret=None)
    opened = OpenClusters(aws, Clock(), SerialWorkers()).open(cluster)
    with pytest.raises(NotFound, match="describe EKS cluster bare"):
        opened.nodes()


class Untrusted:
    def call(self, method: str, path: str, **request: Any) -> Response:
        raise Refused("another CA")


def test_a_connection_that_is_no_longer_trusted_is_made_anew() -> None:
    made: list[Untrusted] = []

    def make() -> Untrusted:
        made.append(Untrusted())
        return made[-1]

    transport = LazyTransport(make)
    for _ in range(2):
        with pytest.raises(Refused):
            transport.call("GET", "/")
    assert len(made) == 2
