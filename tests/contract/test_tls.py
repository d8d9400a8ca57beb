"""The official client over TLS: the CA is given in memory and is the only one that is trusted."""

from __future__ import annotations

import ssl
import threading
from base64 import b64encode
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import ClassVar

import pytest
from botocore.stub import Stubber
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from plimsoll.adapters.aws import Aws
from plimsoll.adapters.clock import SystemClock
from plimsoll.adapters.clusters import OpenClusters
from plimsoll.adapters.kubernetes.calls import GET_FLOW_SCHEMA
from plimsoll.adapters.kubernetes.client import ClientTransport
from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.clusters import Cluster, ClusterKind, Mode
from plimsoll.domain.errors import Refused, Temporary
from plimsoll_cli.checks.probe import probe_of

PEM = serialization.Encoding.PEM


def authority(name: str) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    """A CA as EKS makes them: it says that it is a CA, and no key identifiers."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    return (
        builder(subject, subject, key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256()),
        key,
    )


def builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
    )


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
    ca, ca_key = authority("kubernetes")
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "api")])
    address = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    certificate = (
        builder(subject, ca.subject, key)
        .add_extension(address, critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    (tmp_path / "cert.pem").write_bytes(certificate.public_bytes(PEM))
    (tmp_path / "key.pem").write_bytes(
        key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.handle_error = lambda *_: None  # type: ignore[method-assign] # a refused handshake is meant
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"https://127.0.0.1:{server.server_port}", ca.public_bytes(PEM).decode()
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_certificate_of_the_given_ca_is_trusted(served: tuple[str, str]) -> None:
    url, ca = served
    assert ClientTransport(url, ca=ca).call("GET", "/api/v1/nodes").status == 200


def test_a_certificate_of_another_ca_is_refused(served: tuple[str, str]) -> None:
    url, _ = served
    other = authority("kubernetes")[0].public_bytes(PEM).decode()
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
