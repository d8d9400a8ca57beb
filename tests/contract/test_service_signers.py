"""Who signs instructions: KMS, and a local key on rigs. What either signs, its public key proves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from plimsoll.domain.errors import BadInput, MissingRights
from plimsoll_service.adapters.signers import KmsSigner, LocalSigner, is_signed

ARN = "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
SEED = bytes(range(32))
MESSAGE = b"plimsoll-instruction-v1\nabc"


def local() -> LocalSigner:
    return LocalSigner.of("rig", SEED)


def kms() -> KmsSigner:
    """Return a signer whose KMS checks each call against AWS's own model, and signs with a key of ours."""
    key = Ed25519PrivateKey.from_private_bytes(SEED)
    client, stubber = stubbed()
    der = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    stubber.add_response("get_public_key", {"PublicKey": der}, {"KeyId": ARN})
    stubber.add_response(
        "sign",
        {"Signature": key.sign(MESSAGE)},
        {
            "KeyId": ARN,
            "Message": MESSAGE,
            "MessageType": "RAW",
            "SigningAlgorithm": "ED25519_SHA_512",
        },
    )
    return KmsSigner(client, ARN)


def stubbed() -> tuple[Any, Stubber]:
    client = boto3.client(
        "kms", "us-east-1", aws_access_key_id="testing", aws_secret_access_key="testing"
    )
    stubber = Stubber(client)
    stubber.activate()
    return client, stubber


@pytest.mark.parametrize("signer_of", [local, kms])
def test_a_signature_is_proven_by_the_public_key(
    signer_of: Callable[[], LocalSigner | KmsSigner],
):
    signer = signer_of()
    public = signer.public_key()
    signature = signer.sign(MESSAGE)
    assert (len(public), len(signature)) == (32, 64)
    assert is_signed(public, signature, MESSAGE)
    assert not is_signed(public, signature, MESSAGE + b"d")


def test_the_specs_of_kms_have_such_a_key():
    model = stubbed()[0].meta.service_model
    assert "ECC_NIST_EDWARDS25519" in model.shape_for("KeySpec").enum
    assert "ED25519_SHA_512" in model.shape_for("SigningAlgorithmSpec").enum


def test_a_key_of_another_kind_is_refused():
    client, stubber = stubbed()
    der = (
        generate_private_key(SECP256R1())
        .public_key()
        .public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    )
    stubber.add_response("get_public_key", {"PublicKey": der}, {"KeyId": ARN})
    with pytest.raises(BadInput, match="EDWARDS25519"):
        KmsSigner(client, ARN).public_key()


def test_a_role_that_may_not_sign_is_told_so():
    client, stubber = stubbed()
    stubber.add_client_error(
        "sign", "AccessDeniedException", http_status_code=400, expected_params=None
    )
    with pytest.raises(MissingRights):
        KmsSigner(client, ARN).sign(MESSAGE)
