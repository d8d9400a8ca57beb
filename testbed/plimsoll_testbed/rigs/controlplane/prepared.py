"""What a control plane holds before anybody uses it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from plimsoll.adapters.kubernetes.transport import Transport
from plimsoll.domain.errors import Refused
from plimsoll_simulation.fake_cluster.controllers.volumes import DRIVER
from plimsoll_testbed.rigs.controlplane.users import TRUSTED

_CREATED: Final = 201
_RBAC: Final = "rbac.authorization.k8s.io"


def service_account_key(file: Path) -> None:
    """Write a fresh key for service account tokens."""
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - with plimsoll[rigs]
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415 - with plimsoll[rigs]

    key = ec.generate_private_key(ec.SECP256R1())
    file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )
    file.chmod(0o600)


def prepare(api: Transport) -> None:
    """Create what must be there: rights of the played parts, the driver and its storage class.

    Raises:
        Refused: the API server does not take one.
    """
    for collection, body in (
        (f"/apis/{_RBAC}/v1/clusterrolebindings", _binding()),
        (
            "/apis/storage.k8s.io/v1/csidrivers",
            {"metadata": {"name": DRIVER}, "spec": {"attachRequired": True}},
        ),
        ("/apis/storage.k8s.io/v1/storageclasses", _storage_class()),
    ):
        answer = api.call("POST", collection, body=body, content_type="application/json")
        if answer.status != _CREATED:
            raise Refused(f"POST {collection}: {answer.status} {answer.body}")


def _binding() -> dict[str, Any]:
    return {
        "metadata": {"name": "rig"},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "User", "apiGroup": _RBAC, "name": name} for name in TRUSTED],
    }


def _storage_class() -> dict[str, Any]:
    return {
        "metadata": {
            "name": "gp3",
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
        },
        "provisioner": DRIVER,
        "volumeBindingMode": "WaitForFirstConsumer",
        "reclaimPolicy": "Delete",
    }
