"""Whether a name, a kubeconfig, an EKS cluster and a registration mean the same cluster."""

from __future__ import annotations

from plimsoll.domain.errors import BadInput
from plimsoll.domain.registry import Cluster, ClusterKind
from plimsoll_cli.stack import Stack


def is_registered(there: Cluster | None, cluster: Cluster) -> bool:
    """Whether a cluster is registered and reached in the way that is asked for, whatever its mode and policy."""
    return there is not None and all(
        getattr(there, part) == getattr(cluster, part)
        for part in ("kind", "region", "endpoint", "ca", "secret", "role", "external_id")
    )


def taken(cluster: Cluster, stack: Stack) -> BadInput:
    """Return the error that another cluster of the stack has the name."""
    remove = stack.command("clusters", "remove", cluster.name)
    return BadInput(
        f"another cluster is registered as {cluster.name} already: choose another name, or remove that cluster "
        f"first ({remove})"
    )


def is_same_cluster(server: str, ca: str | None, url: str, expected: str) -> bool:
    """Whether a kubeconfig leads to the cluster at a URL.

    Either the addresses are equal, or the certificate authorities are: each EKS cluster has one of its own, and a
    tunnel or a proxy to a private endpoint has another address.

    Args:
        server: the address in the kubeconfig.
        ca: the CA certificate that it trusts, in PEM; None: it names none.
        url: the address of the cluster.
        expected: the CA certificate of the cluster, in PEM; "" where it is not known.
    """
    if server.rstrip("/").lower() == url.rstrip("/").lower():
        return True
    return bool(expected.strip()) and ca is not None and ca.strip() == expected.strip()


def unproven(cluster: Cluster, server: str) -> str | None:
    """Say what nothing proves about a cluster that is no EKS cluster; None: its registered address is the context's."""
    if cluster.kind is ClusterKind.EKS or is_same_cluster(server, None, cluster.endpoint or "", ""):
        return None
    return f"Not proven: nothing proves that the context ({server}) and the endpoint ({cluster.endpoint}) are one cluster."
