"""Certificates of API servers as EKS makes them, for servers on loopback."""

from __future__ import annotations

import ssl
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from plimsoll.adapters.clock import SystemClock

PEM = serialization.Encoding.PEM


def server_context(folder: Path) -> tuple[ssl.SSLContext, str]:
    """Return what a server needs, and the CA in PEM that signed for it.

    Args:
        folder: gets the files `tls.crt` and `tls.key`, for servers that read them by themselves.
    """
    ca, ca_key = _authority("kubernetes")
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "api")])
    address = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    certificate = (
        _builder(subject, ca.subject, key)
        .add_extension(address, critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    (folder / "tls.crt").write_bytes(certificate.public_bytes(PEM))
    (folder / "tls.key").write_bytes(
        key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    return context, ca.public_bytes(PEM).decode()


def _authority(name: str) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    """Return a CA like those of EKS: it says that it is a CA, and no key identifiers."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    return (
        _builder(subject, subject, key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256()),
        key,
    )


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = SystemClock().now()
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
    )
