"""The client over TLS: the CA is given in memory and is the only one that is trusted."""

from __future__ import annotations

import threading
from base64 import b64encode
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
from botocore.stub import Stubber

from plimsoll.adapters.aws import Aws
from plimsoll.adapters.clock import SystemClock
from plimsoll.adapters.clusters import OpenClusters
from plimsoll.adapters.kubernetes.calls import GET_FLOW_SCHEMA
from plimsoll.adapters.kubernetes.client import ClientTransport
from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.errors import Refused, Temporary
from plimsoll.domain.registry import Cluster, ClusterKind, Mode
from plimsoll_cli.probes.kubernetes import probe_of
from plimsoll_testbed.rigs.certificates import server_context


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    seen: ClassVar[dict[str, Mapping[str, str]]] = {}
    """By path: the headers of the last request."""

    def do_GET(self) -> None:
        self.seen[self.path] = dict(self.headers)
        body = b'{"kind": "NodeList", "items": []}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        pass


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """The URL of an API server, and the CA that signed its certificate."""
    context, ca = server_context(tmp_path)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.handle_error = lambda *_: None  # type: ignore[method-assign] # a refused handshake is meant
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"https://127.0.0.1:{server.server_port}", ca
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_certificate_of_the_given_ca_is_trusted(served: tuple[str, str]) -> None:
    url, ca = served
    assert ClientTransport(url, ca=ca).call("GET", "/api/v1/nodes").status == 200


def test_a_certificate_of_another_ca_is_refused(served: tuple[str, str], tmp_path: Path) -> None:
    url, _ = served
    _, other = server_context(tmp_path)
    with pytest.raises(Refused, match="cannot be trusted"):
        ClientTransport(url, ca=other).call("GET", "/api/v1/nodes")


def test_a_private_ca_is_not_trusted_unless_it_is_given(served: tuple[str, str]) -> None:
    url, _ = served
    with pytest.raises(Refused, match="cannot be trusted"):
        ClientTransport(url).call("GET", "/api/v1/nodes")


def test_a_closed_port_is_temporary() -> None:
    with pytest.raises(Temporary, match="does not answer GET"):
        ClientTransport("https://127.0.0.1:9").call("GET", "/api/v1/nodes")


def test_in_eks_the_doctor_asks_as_himself_and_tries_as_one_of_our_group(
    served: tuple[str, str], moto_aws: Aws
) -> None:
    url, ca = served
    found = {
        "name": "harbor",
        "status": "ACTIVE",
        "endpoint": url,
        "certificateAuthority": {"data": b64encode(ca.encode()).decode()},
    }
    cluster = Cluster(
        name="harbor",
        kind=ClusterKind.EKS,
        mode=Mode.OBSERVE,
        region="eu-west-1",
        added=datetime.now(UTC),
    )
    clusters = OpenClusters(moto_aws, SystemClock(), SerialWorkers())
    probe = probe_of(clusters, SerialWorkers(), cluster)
    with Stubber(moto_aws.eks) as eks:
        for _ in range(2):
            eks.add_response("describe_cluster", {"cluster": found}, {"name": "harbor"})
        probe.version()
        probe.queue()
    asked, tried = Handler.seen["/version"], Handler.seen[GET_FLOW_SCHEMA.path(name="plimsoll")]
    assert not {name for name in asked if name.startswith("Impersonate")}
    assert {name: said for name, said in tried.items() if name.startswith("Impersonate")} == {
        "Impersonate-User": "plimsoll-doctor",
        "Impersonate-Group": "plimsoll",
    }
