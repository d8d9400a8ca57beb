"""Which clusters a tenant has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from plimsoll_service.services.ports import TenantData

_CLUSTER: Final = "cluster#"


def known_clusters(data: TenantData) -> Sequence[tuple[str, str]]:
    """Return the clusters of a tenant, by id: id and name."""
    found = data.list("", _CLUSTER, f"{_CLUSTER}~")
    return [(each.key.removeprefix(_CLUSTER), each.body.decode()) for each in found]


def remember_cluster(data: TenantData, cluster: str, name: str) -> None:
    """Write down that a tenant has a cluster. Again is once."""
    key = f"{_CLUSTER}{cluster}"
    if data.get("", key) is None:
        data.put("", key, name.encode())


def has_cluster(data: TenantData, cluster: str) -> bool:
    """Whether a tenant has a cluster."""
    return data.get("", f"{_CLUSTER}{cluster}") is not None
